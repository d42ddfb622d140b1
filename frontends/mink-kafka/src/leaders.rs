//! Where a client that came to the wrong node should go instead, for the answers that can say so (KIP-951).
//!
//! Lives on: the service runtime, one per answer.
//! Owns: the view that one answer is made from, taken when the first refusal needs it.
use crate::node::{Node, broker_id};
use crate::topic::{self, TopicRef};
use mink_api::Broker;
use mink_kafka_wire::ErrorCode;
use mink_metadata::State;
use std::collections::BTreeSet;

/// The leader of a partition, by Kafka's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leader {
    pub(crate) id: i32,
    pub(crate) epoch: i32,
}

/// The leaders that one answer names.
pub(crate) struct Leaders<'a> {
    node: &'a Node,
    view: Option<(State, Vec<Broker>)>,
    named: BTreeSet<i32>,
}

impl<'a> Leaders<'a> {
    pub(crate) fn new(node: &'a Node) -> Leaders<'a> {
        Leaders { node, view: None, named: BTreeSet::new() }
    }

    /// Who leads a partition that was refused with `code`; none if the refusal is not about that, or nobody knows.
    pub(crate) fn instead(&mut self, code: ErrorCode, topic: &TopicRef, partition: i32) -> Option<Leader> {
        if !matches!(code, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch) {
            return None;
        }
        let node = self.node;
        let (state, brokers) = self.view.get_or_insert_with(|| (node.admin.state(), node.admin.brokers()));
        let table = topic.table(state, &node.config.kafka_database).ok()?;
        let (id, epoch) = topic::leader(state, &topic::bucket(table, partition)?, brokers);
        let id = id?;
        self.named.insert(id);
        Some(Leader { id, epoch })
    }

    /// The addresses of the leaders that were named.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (i32, &Broker)> {
        let brokers = self.view.iter().flat_map(|(_, brokers)| brokers);
        brokers.map(|broker| (broker_id(broker.node), broker)).filter(|(id, _)| self.named.contains(id))
    }
}
