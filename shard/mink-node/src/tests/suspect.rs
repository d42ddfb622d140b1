//! Lives that stop beating while others go on.
//!
//! Lives on: the simulation's thread.
use super::{Machine, Site, TTL, story};
use crate::NodeConfig;
use mink_metadata::{Command, CommandResult};
use mink_object::{Counted, ObjectStore};
use mink_rt::SimClock;
use mink_types::{BucketId, BucketIndex, Incarnation, Offset, TableOptions, WalNumber};
use s3stream::WalConfig;
use std::sync::Arc;
use std::time::Duration;

/// A suspicion, a takeover and its wait, with the pauses between.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn fenced(site: &Site, by: &Machine, incarnation: Incarnation) -> Duration {
    let begun = site.world.runtime().service().now();
    while !by.state().incarnation(incarnation).is_some_and(|life| life.fenced) {
        let waited = site.world.runtime().service().now().duration_since(begun);
        assert!(waited < PATIENCE, "{incarnation} is not fenced after {waited:?}");
        site.sleep(Duration::from_millis(100)).await;
    }
    site.world.runtime().service().now().duration_since(begun)
}

/// A command in the name of `by` that trims its chain though nothing was committed: what a broken node would do.
async fn trim(site: &Site, by: Incarnation, trim: u64) {
    let process = site.world.process(SimClock::default());
    let metadata = site.metadata(&process.runtime(), &site.log).await.expect("opens");
    let commit = Command::Commit { by, source: by, objects: Vec::new(), trim: Some(WalNumber(trim)) };
    let result = metadata.submit(commit).await.expect("answered");
    assert!(matches!(result, CommandResult::Done(_)), "{result:?}");
    process.kill();
}

#[test]
fn i5_an_elder_opens_buckets_again_once_a_younger_life_that_never_fenced_it_has_expired() {
    story(|site| async move {
        let elder = site.start(site.config(1)).await.expect("starts");
        assert!(elder.create("before", 2, PATIENCE).await);
        let younger = site.stillborn(1).await;
        // Until it has expired the younger one may come to life and fence its elder: nothing is opened against it.
        assert!(!elder.create("between", 2, TTL / 2).await);
        let after = fenced(&site, &elder, younger).await;
        assert!(after > TTL / 2, "it had a whole lease of silence");
        assert!(elder.create("after", 2, PATIENCE).await);
        let state = elder.state();
        assert!(state.buckets().all(|(_, bucket)| bucket.owner == Some(elder.id())), "{state:?}");
        // What the dead life left is cleaned like any other.
        site.sleep(PATIENCE + super::GRACE).await;
        assert!(elder.state().incarnation(younger).is_some_and(|life| life.swept));
        elder.node.stop().await;
    });
}

#[test]
fn i13_a_nodes_buckets_move_to_another_when_its_process_is_gone_and_it_is_fenced_for_good() {
    story(|site| async move {
        let (one, two) = (
            site.start(site.config(1)).await.expect("starts"),
            site.start(site.config(2)).await.expect("starts"),
        );
        // A node waits for those that it opens itself.
        one.create("t", 4, TTL).await;
        let (dead, taker) = (one.id(), two.id());
        assert_eq!((one.state().hanging(dead).count(), one.state().hanging(taker).count()), (2, 2));
        one.process.kill();
        // The silence by which it was given up is the wait for its lease: not another lease after that.
        let served = async || two.node.admin().status().await.buckets.len();
        site.until(TTL * 2, async || served().await == 4).await;
        let state = two.state();
        assert_eq!((state.hanging(dead).count(), state.hanging(taker).count()), (0, 4));
        assert_eq!(state.buckets().filter(|(_, bucket)| bucket.epoch.0 == 2).count(), 2, "{state:?}");
        let status = two.node.admin().status().await;
        assert!(status.is_ready() && status.buckets.len() == 4, "{status:?}");
        two.node.stop().await;
    });
}

#[test]
fn i5_nodes_that_beat_are_never_suspected_and_an_idle_one_writes_no_row() {
    story(|site| async move {
        let (one, two) = (
            site.start(site.config(1)).await.expect("starts"),
            site.start(site.config(2)).await.expect("starts"),
        );
        site.sleep(PATIENCE).await;
        let before = site.log.last().await.expect("answers");
        site.sleep(TTL * 100).await;
        assert_eq!(site.log.last().await.expect("answers"), before, "no row");
        assert_eq!(two.state().live().count(), 2);
        // One that stands still for a while, and comes back to find its lease run out but nobody in its place.
        two.process.pause();
        site.sleep(TTL / 2).await;
        two.process.resume();
        site.sleep(TTL * 10).await;
        assert_eq!(one.state().live().count(), 2);
        one.node.stop().await;
        two.node.stop().await;
    });
}

#[test]
fn i3_a_node_that_stood_still_for_too_long_finds_itself_fenced_and_ends() {
    story(|site| async move {
        let (one, mut two) = (
            site.start(site.config(1)).await.expect("starts"),
            site.start(site.config(2)).await.expect("starts"),
        );
        two.process.pause();
        fenced(&site, &one, two.id()).await;
        two.process.resume();
        let end = two.node.ended().await;
        assert!(matches!(end, crate::NodeEnd::Fenced { .. }), "{end}");
        one.node.stop().await;
        two.node.stop().await;
    });
}

#[test]
fn k_6_a_chain_on_which_a_bucket_must_stay_is_gone_through_once_and_costs_nothing_after_that() {
    story(|site| async move {
        let store = Arc::new(Counted::new(Arc::clone(&site.store), None));
        let site = Site { store: Arc::<Counted>::clone(&store), ..site };
        let wal = WalConfig { flush_age: Duration::from_hours(1), ..WalConfig::default() };
        let one = site.start(NodeConfig { wal, ..site.config(1) }).await.expect("starts");
        let table = one.create_with("t", TableOptions { buckets: 2, ..TableOptions::default() }).await;
        assert!(one.node.admin().wait_open(table, PATIENCE).await);
        let two = site.start(site.config(2)).await.expect("starts");
        let [stuck, sound] = [0, 1].map(|index| BucketId::unpartitioned(table, BucketIndex(index)));
        for bucket in [stuck, stuck, sound] {
            one.append(bucket, 10).await;
        }
        let dead = one.id();
        one.process.kill();
        trim(&site, dead, 1).await;
        let lost = async || two.node.admin().status().await.lost;
        site.until(PATIENCE, async || two.node.admin().status().await.buckets.len() == 1).await;
        site.sleep(PATIENCE).await;
        assert_eq!((two.end(stuck), two.end(sound), two.records(sound).await), (Offset(0), Offset(10), 10));
        assert_eq!(two.state().hanging(dead).collect::<Vec<_>>(), [stuck]);
        let told = lost().await;
        assert!(matches!(&*told, [gap] if gap.contains("not opened")), "{told:?}");
        let before = (site.log.last().await.expect("answers"), store.stats().requests_total());
        site.sleep(TTL * 100).await;
        let after = (site.log.last().await.expect("answers"), store.stats().requests_total());
        assert_eq!(after, before, "no row and no request");
        assert_eq!(lost().await, told);
        two.node.stop().await;
    });
}

#[test]
fn a_chain_that_cannot_be_taken_over_holds_up_no_other_and_is_tried_ever_more_rarely() {
    story(|site| async move {
        let one = site.start(site.config(1)).await.expect("starts");
        let two = site.start(site.config(2)).await.expect("starts");
        let three = site.start(site.config(3)).await.expect("starts");
        one.create("t", 6, TTL).await;
        let ids = [one.id(), two.id(), three.id()];
        let shares = || ids.map(|id| three.state().hanging(id).count());
        site.until(PATIENCE, async || shares() == [2, 2, 2]).await;
        one.process.kill();
        two.process.kill();
        // Where this says that the chain begins nothing was ever written.
        trim(&site, one.id(), 5).await;
        site.until(PATIENCE, async || shares() == [2, 0, 4]).await;
        let before = site.log.last().await.expect("answers").index;
        site.sleep(TTL * 100).await;
        let rows = site.log.last().await.expect("answers").index.0 - before.0;
        assert!((1..=10).contains(&rows), "{rows} rows in {:?}", TTL * 100);
        assert_eq!(shares(), [2, 0, 4]);
        three.node.stop().await;
    });
}
