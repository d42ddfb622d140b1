//! What ends: a node that drains under its groups, offsets that nobody needs, a log that is no log of groups.
//!
//! Lives on: the simulation's thread.
use super::{alone, beat, commit, committed, config, crash, group, member, of_member};
use crate::NodeConfig;
use crate::tests::story;
use bytes::Bytes;
use futures::FutureExt as _;
use mink_group::{GroupError, GroupLimits, GroupState, JoinRequest, MemberId, Protocol};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);

/// What a second member asks for.
fn another() -> JoinRequest {
    JoinRequest {
        group: group(),
        member: MemberId::new(""),
        instance: None,
        client_id: "d".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: Some(300_000),
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: Bytes::from_static(&[0; 10]) }],
        member_id_required: false,
        can_skip_assignment: false,
        unique: [8; 16],
    }
}

#[test]
fn a_node_that_drains_tells_waiting_members_at_once_and_the_next_one_knows_them() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        let joined = member(&*groups).await;
        commit(&*groups, of_member(&joined, joined.generation, table, 4)).await;
        let asked = Arc::clone(&groups);
        let waiting = site.world.runtime().service().spawn("join", async move {
            assert_eq!(asked.join(another()).await.map_err(|no| no.error), Err(GroupError::NotCoordinator));
        });
        site.until(MINUTE, async || {
            groups.describe(&group()).await.expect("told").state == GroupState::PreparingRebalance
        })
        .await;
        let (before, mut waiting) = (site.now(), Box::pin(waiting.join()));
        assert!((&mut waiting).now_or_never().is_none(), "it waits for the first member");
        drop(node.node.drain(Duration::from_secs(30)).await);
        drop(waiting.await);
        assert!(site.now().duration_since(before) < Duration::from_secs(5), "it was told by the drain");
        assert_eq!(groups.heartbeat(beat(&joined)).await, Err(GroupError::NotCoordinator));
        let late = of_member(&joined, joined.generation, table, 5);
        assert_eq!(groups.commit(late).await, Err(GroupError::NotCoordinator));
        assert_eq!(groups.coordinator(&group()).await, Err(GroupError::CoordinatorNotAvailable));

        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        assert_eq!(groups.heartbeat(beat(&joined)).await, Ok(()));
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(4));
        node.node.stop().await;
    });
}

#[test]
fn offsets_that_nobody_needs_expire_by_their_age_over_restarts_and_stay_gone() {
    story(|site| async move {
        let keeps = |minutes: u64| {
            let offsets_retention_ms = minutes * 60_000;
            let groups = GroupLimits { offsets_retention_ms, ..GroupLimits::default() };
            NodeConfig { groups, ..config(&site, 1) }
        };
        let node = site.start(keeps(40)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        commit(&*groups, alone(table, 3, "")).await;
        site.sleep(MINUTE * 25).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(3));
        crash(node);
        let node = site.start(keeps(40)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        site.sleep(MINUTE * 12).await;
        assert_eq!(committed(&*groups, table).await.map(|found| found.offset), Some(3), "37 minutes old");
        site.sleep(MINUTE * 12).await;
        assert_eq!(committed(&*groups, table).await, None, "49 minutes old, looked at each 10");
        crash(node);
        // The decision is in the log: an owner with another retention, or another clock, does not take it back.
        let node = site.start(keeps(10_000)).await.expect("starts");
        let groups = node.coordinates(&site).await;
        assert_eq!(committed(&*groups, table).await, None);
        assert_eq!(groups.list(Vec::new()).await, Ok(Vec::new()), "the group had nothing else");
        node.node.stop().await;
    });
}

/// I18: a coordinator that cannot read its log forgets nothing: it does not serve.
#[test]
fn i18_a_log_that_holds_what_no_coordinator_wrote_is_not_served() {
    story(|site| async move {
        let node = site.start(config(&site, 1)).await.expect("starts");
        let table = node.topic("t").await;
        let groups = node.coordinates(&site).await;
        commit(&*groups, alone(table, 3, "")).await;
        node.append(node.group_bucket(), 1).await;
        crash(node);
        let node = site.start(config(&site, 1)).await.expect("starts");
        let groups = node.node.groups();
        assert!(groups.coordinator(&group()).await.is_ok(), "there is one");
        site.until(MINUTE, async || {
            groups.offsets(&group(), None).await == Err(GroupError::CoordinatorNotAvailable)
        })
        .await;
        assert_eq!(groups.commit(alone(table, 4, "")).await, Err(GroupError::CoordinatorNotAvailable));
        let joined = groups.join(another()).await.map_err(|no| no.error);
        assert_eq!(joined, Err(GroupError::CoordinatorNotAvailable));
        node.node.stop().await;
    });
}
