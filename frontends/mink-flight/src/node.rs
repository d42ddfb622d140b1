//! What every call is given.
//!
//! Lives on: the service runtime.
use crate::FlightCounters;
use crate::answers::Answers;
use mink_api::{Admin, LogSource};
use mink_router::BytePermits;
use mink_rt::Service;
use mink_types::{DatabaseName, Limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What the listener is told at start.
#[derive(Clone, Debug)]
pub struct FlightConfig {
    pub limits: Limits,
    /// The database whose tables are topics by their bare name.
    pub kafka_database: DatabaseName,
    /// Bytes that messages of clients may hold, from their first byte until their rows are durable.
    pub request_permits: BytePermits,
    /// Bytes of answers that clients have not taken yet.
    pub answer_permits: BytePermits,
    /// How long calls may go on once the node stops.
    pub drain_timeout: Duration,
}

/// What every call is given.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: FlightConfig,
    pub(crate) source: Arc<dyn LogSource>,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) service: Service,
    pub(crate) counters: FlightCounters,
    /// The memory of `config.answer_permits`.
    pub(crate) answers: Answers,
    /// True once the listener stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Node {
    /// Whether the listener stops.
    pub(crate) fn stops(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Completes when the listener stops: calls without an end of their own end then.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.clone();
        // A sender that is gone has stopped, too.
        async move { drop(stopping.wait_for(|stopping| *stopping).await) }
    }
}
