//! What the listener is started with.
//!
//! Lives on: anywhere.
use crate::{AnswerPermits, FramePermits};
use mink_types::{DatabaseName, Limits};
use std::time::Duration;

/// Settings of one Kafka listener. Host and port that clients are told come from `Admin::brokers`.
#[derive(Clone, Debug)]
pub struct KafkaConfig {
    pub limits: Limits,
    /// The database whose tables are topics by their bare name; topics are created there.
    pub kafka_database: DatabaseName,
    /// Whether Metadata creates a topic that does not exist, when the client allows it.
    pub auto_create: bool,
    /// Partitions of topics that are created without a count.
    pub default_partitions: u32,
    /// Bytes of requests up to 2 MiB that the node may hold.
    pub request_permits: FramePermits,
    /// The same for larger ones, apart: who sends much and stops keeps only such requests waiting.
    pub large_request_permits: FramePermits,
    /// Bytes of Fetch answers that the node may hold until clients have taken them. One answer may pass it by one batch.
    pub answer_permits: AnswerPermits,
    /// How long connections may take to finish what was ordered once the listener stops.
    pub drain_timeout: Duration,
}
