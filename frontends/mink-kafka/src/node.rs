//! What every connection and handler of a listener shares.
//!
//! Lives on: the service runtime.
use crate::fetch_sessions::FetchSessions;
use crate::{KafkaConfig, KafkaCounters};
use mink_api::{Admin, Broker, GroupCoordinator, LogSource};
use mink_rt::Service;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The node as the handlers see it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: KafkaConfig,
    pub(crate) source: Arc<dyn LogSource>,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) groups: Arc<dyn GroupCoordinator>,
    pub(crate) service: Service,
    pub(crate) counters: KafkaCounters,
    pub(crate) sessions: FetchSessions,
    /// The one turn of whoever changes a topic or a broker: changes of one node never meet each other.
    pub(crate) alterations: Semaphore,
}

impl Node {
    /// This node among the brokers; none while it is not (yet, or any more) one that clients are sent to.
    pub(crate) fn broker(&self) -> Option<Broker> {
        let own = self.admin.identity().node;
        self.admin.brokers().into_iter().find(|broker| broker.node == own)
    }

    /// This node's id as Kafka's signed broker id.
    pub(crate) fn broker_id(&self) -> i32 {
        broker_id(self.admin.identity().node)
    }
}

/// A node id as Kafka's signed broker id.
pub(crate) fn broker_id(node: mink_types::NodeId) -> i32 {
    i32::try_from(node.0).unwrap_or(i32::MAX)
}
