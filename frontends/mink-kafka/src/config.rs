//! What the listener is started with.
//!
//! Lives on: anywhere.
use mink_router::BytePermits;
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
    /// Bytes of requests that the node may hold, shared with everyone who holds requests.
    pub request_permits: BytePermits,
    /// The same for requests above 2 MiB, apart: whoever declares much and sends little keeps only such requests waiting.
    pub large_request_permits: BytePermits,
    /// Bytes of Fetch answers that the node may hold until clients have taken them. One answer may pass it by one batch.
    pub answer_permits: BytePermits,
    /// How long connections may take to finish what was ordered once the listener stops.
    pub drain_timeout: Duration,
}
