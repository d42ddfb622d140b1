//! Consumer groups over crashes, takeovers and outages, on whole nodes.
//!
//! Lives on: the simulation's thread.
mod ends;

use super::suspect::PATIENCE;
use super::{Machine, Site, story};
use crate::NodeConfig;
use async_trait::async_trait;
use bytes::Bytes;
use mink_api::{AdminError, Broker, GroupCoordinator, MetricValue};
use mink_group::{
    CommitRequest, CommittedOffset, GroupError, GroupId, GroupLimits, GroupState, HeartbeatRequest,
    JoinRequest, Joined, MemberId, OffsetToCommit, Protocol, SyncRequest, TopicKey, coordinator_bucket,
};
use mink_metadata::Listener;
use mink_object::{Counted, FaultAnswer, FaultSeam, ObjectStore, Op, Request};
use mink_rt::Service;
use mink_types::{BucketId, BucketIndex, DatabaseName, NodeId, TableId, TableOptions, TablePath};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn group() -> GroupId {
    GroupId::new("readers").expect("an id")
}

fn config(site: &Site, node: u32) -> NodeConfig {
    let listener = Listener { name: "kafka".into(), host: "127.0.0.1".into(), port: 9_092 };
    let groups = GroupLimits { rebalance_delay_ms: 0, ..GroupLimits::default() };
    NodeConfig { listeners: vec![listener], groups, ..site.config(node) }
}

fn topic(table: TableId) -> TopicKey {
    TopicKey { table, bucket: BucketIndex(0) }
}

/// A commit of a consumer that is no member.
fn alone(table: TableId, offset: i64, metadata: &str) -> CommitRequest {
    let offset = OffsetToCommit { topic: topic(table), offset, leader_epoch: -1, metadata: metadata.into() };
    CommitRequest {
        group: group(),
        member: MemberId::new(""),
        instance: None,
        generation: -1,
        offsets: vec![offset],
        retention_ms: None,
    }
}

fn of_member(joined: &Joined, generation: i32, table: TableId, offset: i64) -> CommitRequest {
    CommitRequest { member: joined.member.clone(), generation, ..alone(table, offset, "") }
}

fn beat(joined: &Joined) -> HeartbeatRequest {
    HeartbeatRequest {
        group: group(),
        member: joined.member.clone(),
        instance: None,
        generation: joined.generation,
    }
}

/// A member of a group of one, with its assignment.
async fn member(groups: &dyn GroupCoordinator) -> Joined {
    let request = JoinRequest {
        group: group(),
        member: MemberId::new(""),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: Some(30_000),
        protocol_type: "consumer".into(),
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"\0\0\0\0\0\0\0\0\0\0"),
        }],
        member_id_required: false,
        can_skip_assignment: false,
        unique: [7; 16],
    };
    let joined = groups.join(request).await.expect("joins");
    let request = SyncRequest {
        group: group(),
        member: joined.member.clone(),
        instance: None,
        generation: joined.generation,
        protocol_type: None,
        protocol: None,
        assignments: vec![(joined.member.clone(), Bytes::from_static(b"all"))],
    };
    let synced = groups.sync(request).await.expect("syncs");
    assert_eq!(synced.assignment, "all");
    joined
}

impl Machine {
    /// The groups of this node, once it coordinates the one group of these tests and has read its log.
    async fn coordinates(&self, site: &Site) -> Arc<dyn GroupCoordinator> {
        let (groups, me) = (self.node.groups(), self.node.admin().identity().node);
        site.until(PATIENCE * 2, async || {
            let found = groups.coordinator(&group()).await;
            found.is_ok_and(|broker| broker.node == me) && groups.offsets(&group(), None).await.is_ok()
        })
        .await;
        groups
    }

    /// The log of the one group's coordinator.
    fn group_bucket(&self) -> BucketId {
        let state = self.state();
        let path = TablePath::parse("__mink.group_offsets").expect("valid");
        let table = state.table_at(&path).expect("made");
        BucketId::unpartitioned(table.id, BucketIndex(coordinator_bucket(&group(), table.buckets)))
    }

    async fn topic(&self, name: &str) -> TableId {
        self.create_with(name, TableOptions::default()).await
    }
}

/// Ends a process as `kill -9` does; its directory is free for the next one.
fn crash(machine: Machine) {
    machine.process.kill();
    drop(machine);
}

async fn committed(groups: &dyn GroupCoordinator, table: TableId) -> Option<CommittedOffset> {
    let topics = Some(vec![topic(table)]);
    let mut offsets = groups.offsets(&group(), topics).await.expect("told");
    offsets.pop().expect("one").1
}

async fn commit(groups: &dyn GroupCoordinator, request: CommitRequest) {
    assert_eq!(groups.commit(request).await, Ok(vec![Ok(())]));
}

#[test]
fn an_idle_node_makes_no_internal_table_and_the_first_search_makes_it() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        site.sleep(PATIENCE).await;
        assert!(node.state().database(&DatabaseName::internal()).is_none());
        let found = node.node.groups().coordinator(&group()).await;
        assert_eq!(found, Ok(Broker { node: NodeId(1), host: "127.0.0.1".into(), port: 9_092 }));
        let table = node.group_bucket().table;
        assert_eq!(
            node.state().table(table).map(|table| (table.buckets, table.options.log_ttl_ms)),
            Some((16, None))
        );
        node.coordinates(&site).await;
        node.node.stop().await;
    });
}

#[test]
fn nobody_changes_the_internal_table_or_takes_its_name() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        node.coordinates(&site).await;
        let (admin, bucket) = (node.node.admin(), node.group_bucket());
        let options = node.state().table(bucket.table).expect("there").options.clone();
        let more = TableOptions { buckets: 32, ..options.clone() };
        let refusals = [
            admin.drop_table(bucket.table).await.err(),
            admin.alter_table(bucket.table, options, more, None).await.err(),
            admin.create_database(DatabaseName::internal()).await.err(),
            admin.drop_database(DatabaseName::internal()).await.err(),
            admin
                .create_table(TablePath::parse("__mink.t").expect("valid"), TableOptions::default(), None)
                .await
                .err(),
            admin
                .create_table(
                    TablePath::parse("kafka.__mink.t").expect("valid"),
                    TableOptions::default(),
                    None,
                )
                .await
                .err(),
        ];
        for refusal in refusals {
            assert!(matches!(refusal, Some(AdminError::Invalid { .. })), "{refusal:?}");
        }
        node.node.stop().await;
    });
}

#[test]
fn i18_commits_and_generations_outlive_the_process() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        let joined = member(&*groups).await;
        assert_eq!(groups.heartbeat(beat(&joined)).await, Ok(()));
        commit(&*groups, of_member(&joined, joined.generation, table, 41)).await;
        crash(node);

        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(41));
        assert_eq!(groups.heartbeat(beat(&joined)).await, Ok(()), "still in its generation");
        let old = of_member(&joined, joined.generation - 1, table, 7);
        assert_eq!(groups.commit(old).await, Err(GroupError::IllegalGeneration));
        assert_eq!(groups.commit(alone(table, 7, "")).await, Err(GroupError::UnknownMemberId));
        commit(&*groups, of_member(&joined, joined.generation, table, 42)).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(42));
        let stable = groups.describe(&group()).await.expect("told");
        assert_eq!((stable.state, stable.members.len()), (GroupState::Stable, 1));
        node.node.stop().await;
    });
}

#[test]
fn i18_a_member_that_is_gone_with_the_crash_loses_its_session_on_the_successor() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        let joined = member(&*groups).await;
        crash(node);
        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        site.sleep(Duration::from_secs(29)).await;
        assert_eq!(groups.describe(&group()).await.expect("told").members.len(), 1, "a whole session");
        site.sleep(Duration::from_secs(3)).await;
        let described = groups.describe(&group()).await.expect("told");
        assert_eq!((described.state, described.members.len()), (GroupState::Empty, 0));
        assert_eq!(groups.heartbeat(beat(&joined)).await, Err(GroupError::UnknownMemberId));
        node.node.stop().await;
    });
}

#[test]
fn i18_another_node_that_takes_the_bucket_over_knows_the_group() {
    story(|site| async move {
        let one = site.start(config(&site, 1)).await.expect("starts");
        let table = one.topic("t").await;
        let groups = one.coordinates(&site).await;
        let joined = member(&*groups).await;
        commit(&*groups, of_member(&joined, joined.generation, table, 5)).await;
        let two = site.start(config(&site, 2)).await.expect("starts");
        let elsewhere = two.node.groups();
        assert_eq!(elsewhere.coordinator(&group()).await.map(|broker| broker.node), Ok(NodeId(1)));
        assert_eq!(elsewhere.heartbeat(beat(&joined)).await, Err(GroupError::NotCoordinator));
        one.process.kill();
        let groups = two.coordinates(&site).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(5));
        assert_eq!(groups.heartbeat(beat(&joined)).await, Ok(()));
        two.node.stop().await;
    });
}

#[test]
fn i3_a_node_that_stood_still_tells_nothing_of_groups_that_another_has_taken_over() {
    story(|site| async move {
        let one = site.start(config(&site, 1)).await.expect("starts");
        let table = one.topic("t").await;
        let stale = one.coordinates(&site).await;
        let joined = member(&*stale).await;
        let two = site.start(config(&site, 2)).await.expect("starts");
        one.process.pause();
        let groups = two.coordinates(&site).await;
        commit(&*groups, of_member(&joined, joined.generation, table, 3)).await;
        one.process.resume();
        assert_eq!(stale.heartbeat(beat(&joined)).await, Err(GroupError::NotCoordinator));
        assert_eq!(stale.offsets(&group(), None).await, Err(GroupError::NotCoordinator));
        let late = of_member(&joined, joined.generation, table, 2);
        assert_eq!(stale.commit(late).await, Err(GroupError::NotCoordinator), "its chain is sealed");
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(3));
        two.node.stop().await;
    });
}

/// A store that takes no object while it is away.
#[derive(Debug)]
struct Away(AtomicBool);

#[async_trait]
impl FaultSeam for Away {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        (request.op == Op::Put && self.0.load(Ordering::Relaxed)).then_some(FaultAnswer::Lost)
    }

    async fn after(&self, _: Request<'_>) -> Option<FaultAnswer> {
        None
    }
}

#[test]
fn while_the_store_is_away_a_commit_waits_and_heartbeats_go_on() {
    story(|site| async move {
        let away = Arc::new(Away(AtomicBool::new(false)));
        let store = Counted::new(Arc::clone(&site.store), Some(Arc::<Away>::clone(&away)));
        let site = Site { store: Arc::new(store), ..site };
        let node = site.start(config(&site, 1)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        let joined = member(&*groups).await;
        away.0.store(true, Ordering::Relaxed);
        let (request, asked) = (of_member(&joined, joined.generation, table, 9), Arc::clone(&groups));
        let answered = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&answered);
        let task = site.world.runtime().service().spawn("commit", async move {
            assert_eq!(asked.commit(request).await, Ok(vec![Ok(())]));
            told.store(true, Ordering::Relaxed);
        });
        for _ in 0..6 {
            site.sleep(Duration::from_secs(10)).await;
            assert_eq!(groups.heartbeat(beat(&joined)).await, Ok(()));
            assert!(!answered.load(Ordering::Relaxed), "it is not durable");
            assert_eq!(committed(&*groups, table).await, None, "nor does anybody see it");
        }
        away.0.store(false, Ordering::Relaxed);
        site.until(PATIENCE, async || answered.load(Ordering::Relaxed)).await;
        drop(task.join().await);
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(9));
        node.node.stop().await;
    });
}

/// A store whose PUTs take their time.
#[derive(Debug)]
struct Slow(Service);

#[async_trait]
impl FaultSeam for Slow {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        if request.op == Op::Put {
            self.0.sleep(Duration::from_millis(50)).await;
        }
        None
    }

    async fn after(&self, _: Request<'_>) -> Option<FaultAnswer> {
        None
    }
}

#[test]
fn i18_a_long_log_begins_at_a_checkpoint_that_says_the_same() {
    story(|site| async move {
        let slow = Arc::new(Slow(site.world.runtime().service()));
        let store: Arc<dyn ObjectStore> = Arc::new(Counted::new(Arc::clone(&site.store), Some(slow)));
        let site = Site { store, ..site };
        let node = site.start(config(&site, 1)).await.expect("starts");
        let (table, other) = (node.topic("t").await, node.topic("other").await);
        let groups = node.coordinates(&site).await;
        let bucket = node.group_bucket();
        let start = || node.state().bucket(&bucket).expect("there").start.0;
        // One consumer commits the same partition over and over, others each partition once, at their own paces: of those something is
        // on its way whenever the checkpoint is written, and nothing later makes good for it.
        let same = async {
            let (metadata, mut last) = ("x".repeat(4_000), 0);
            while start() == 0 {
                assert!(last < 5_000, "the log does not begin anew");
                let all: Vec<_> =
                    (last + 1..=last + 20).map(|n| groups.commit(alone(table, n, &metadata))).collect();
                let all = futures::future::join_all(all).await;
                assert!(all.iter().all(|answer| *answer == Ok(vec![Ok(())])), "{all:?}");
                last += 20;
            }
            last
        };
        let each = (1..=5).map(async |pace| {
            let mut topics = Vec::new();
            while start() == 0 {
                let (n, mut request) = (topics.len() as u64, alone(other, 1, "once"));
                let bucket = BucketIndex(u32::try_from(pace * 10_000 + n).expect("few"));
                request.offsets.iter_mut().for_each(|offset| offset.topic.bucket = bucket);
                commit(&*groups, request).await;
                topics.push(TopicKey { table: other, bucket });
                site.sleep(Duration::from_millis(pace * 7)).await;
            }
            topics
        });
        let (last, topics) = futures::future::join(same, futures::future::join_all(each)).await;
        assert!(start() > 250, "a mebibyte of records lay before it: {}", start());
        crash(node);
        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(last));
        let topics: Vec<TopicKey> = topics.into_iter().flatten().collect();
        for (topic, found) in groups.offsets(&group(), Some(topics)).await.expect("told") {
            assert!(found.is_some(), "{topic:?} was committed");
        }
        node.node.stop().await;
    });
}

#[test]
fn k_18_the_offsets_of_a_dropped_topic_are_forgotten() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let (gone, kept) = (node.topic("gone").await, node.topic("kept").await);
        let groups = node.coordinates(&site).await;
        commit(&*groups, alone(gone, 1, "")).await;
        commit(&*groups, alone(kept, 2, "")).await;
        node.node.admin().drop_table(gone).await.expect("dropped");
        let offsets = async || groups.offsets(&group(), None).await.expect("told");
        site.until(PATIENCE * 2, async || offsets().await.len() == 1).await;
        assert_eq!(offsets().await.first().map(|(topic, _)| topic.table), Some(kept));
        node.node.stop().await;
    });
}

#[test]
fn metrics_show_groups_members_and_lag() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        assert!(node.create("t", 1, PATIENCE).await);
        let table = node.state().table_at(&TablePath::parse("kafka.t").expect("valid")).expect("there").id;
        node.append(BucketId::unpartitioned(table, BucketIndex(0)), 10).await;
        let groups = node.coordinates(&site).await;
        let joined = member(&*groups).await;
        commit(&*groups, of_member(&joined, joined.generation, table, 4)).await;
        let metrics = node.node.admin().metrics().await;
        let value =
            |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
        assert_eq!(value("mink_groups"), Some(MetricValue::Gauge(1.0)));
        assert_eq!(value("mink_group_members"), Some(MetricValue::Gauge(1.0)));
        assert_eq!(value("mink_consumer_group_lag"), Some(MetricValue::Gauge(6.0)));
        let lag = metrics.iter().find(|metric| metric.name == "mink_consumer_group_lag").expect("found");
        let labels: Vec<&str> = lag.labels.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(labels, ["readers", "t", "0"]);
        node.node.stop().await;
    });
}

#[test]
fn a_group_that_is_deleted_is_gone_after_a_restart_too() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        commit(&*groups, alone(table, 3, "")).await;
        assert_eq!(groups.list(Vec::new()).await.map(|all| all.len()), Ok(1));
        assert_eq!(groups.delete(&group()).await, Ok(()));
        assert_eq!(groups.delete(&group()).await, Err(GroupError::GroupIdNotFound));
        crash(node);
        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        assert_eq!(groups.list(Vec::new()).await, Ok(Vec::new()));
        assert_eq!(committed(&*groups, table).await, None);
        node.node.stop().await;
    });
}
