//! Consumer groups in `/metrics`: how many there are, and how far they are behind.
//!
//! Lives on: the service runtime; asked of the task that coordinates at each scrape.
//! Invariants: I20: so many series at most, whatever clients commit. Only partitions that this node serves have a lag here: it knows no
//! other's high watermark.
use super::{Ask, NodeGroups};
use crate::context::Context;
use crate::status::SHARD_ANSWER_MAX;
use mink_api::Metric;
use mink_group::{GroupId, Groups, TopicKey};
use mink_types::BucketId;
use std::sync::Arc;

/// Series of lag, all groups together, in the order of coordinators and groups.
pub(super) const LAG_SERIES_MAX: usize = 1_000;

/// How the groups of a node stand.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    groups: u64,
    members: u64,
    /// The first committed offsets.
    offsets: Vec<(GroupId, TopicKey, i64)>,
}

impl Levels {
    /// Adds one coordinator's.
    pub(super) fn add<T>(&mut self, groups: &Groups<T>) {
        self.groups += groups.len() as u64;
        self.members += groups.members() as u64;
        for summary in groups.list(&[]) {
            let room = LAG_SERIES_MAX.saturating_sub(self.offsets.len());
            if room == 0 {
                return;
            }
            // One that is being deleted has none to tell.
            let Ok(offsets) = groups.fetch_all_offsets(&summary.group) else { continue };
            let offsets = offsets.into_iter().take(room);
            self.offsets
                .extend(offsets.map(|(topic, committed)| (summary.group.clone(), topic, committed.offset)));
        }
    }
}

impl Context {
    /// What `/metrics` shows of consumer groups.
    pub(crate) async fn group_metrics(self: &Arc<Self>, metrics: &mut Vec<Metric>) {
        let asked = NodeGroups(Arc::clone(self));
        let answer = self.service.timeout(SHARD_ANSWER_MAX, asked.ask(Ask::Levels)).await;
        let Ok(Ok(levels)) = answer else { return };
        metrics.push(Metric::level(
            "mink_groups",
            "consumer groups that this node coordinates",
            levels.groups,
        ));
        let help = "members of the consumer groups that this node coordinates";
        metrics.push(Metric::level("mink_group_members", help, levels.members));
        if levels.offsets.is_empty() {
            return;
        }
        let (state, (ends, _)) = (self.state(), self.high_watermarks().await);
        for (group, topic, offset) in levels.offsets {
            let end = ends.get(&BucketId::unpartitioned(topic.table, topic.bucket));
            let (Some(end), Some(table)) = (end, state.table(topic.table)) else { continue };
            let lag = end.0.saturating_sub(u64::try_from(offset).unwrap_or(0));
            let help = "records between a committed offset and the end of its partition";
            metrics.push(
                Metric::level("mink_consumer_group_lag", help, lag)
                    .label("group", group.as_str())
                    .label("topic", table.topic_name(&self.config.kafka_database))
                    .label("partition", topic.bucket.0.to_string()),
            );
        }
    }
}
