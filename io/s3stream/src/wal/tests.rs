//! The WAL writer: cuts, order of acks, outcomes of PUTs, back-pressure, flush and trim.
use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::FutureExt as _;
use futures::stream::FuturesUnordered;
use mink_object::{Counted, FaultAnswer, MemoryStore, ObjectStore as _, Op};
use mink_types::{ObjectId, Offset, WalNumber};

use super::*;
use crate::testing::{Hang, When, World, bucket, chain, in_world};
use crate::{ChunkEnd, Entry, sweep_wal};

const MS: Duration = Duration::from_millis(1);

/// Number `n` as the end of its key.
fn key(n: u64) -> String {
    format!("/{n:020}")
}

fn slow(world: &World, least: u32, most: u32) {
    world.seam.latency(Op::Put, MS * least, MS * most);
}

#[test]
fn an_idle_node_sends_no_request() {
    in_world(1, |world| async move {
        let mut node = world.node(1, &[1]).await;
        world.sleep(Duration::from_mins(10)).await;
        assert_eq!(world.store.stats().requests_total(), 0);
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        let after = world.store.stats().requests_total();
        world.sleep(Duration::from_mins(10)).await;
        assert_eq!(world.store.stats().requests_total(), after);
        assert_eq!((node.wal.stats().trim, node.wal.stats().untrimmed_objects), (1, 0));
    });
}

#[test]
fn a_write_is_acked_within_the_stores_latency_and_readable_after_the_flush() {
    in_world(2, |world| async move {
        slow(&world, 10, 10);
        let mut node = world.node(1, &[1, 2]).await;
        let begun = world.service.now();
        node.write(1).await;
        assert!(world.service.now() - begun < MS * 12, "cut at once");
        node.write(2).await;
        node.wal.flush_now().await.unwrap();
        world.check_acked(&[1, 2]).await;
        assert_eq!(world.names("stream", 1).await, [0], "small buckets share one object");
    });
}

#[test]
fn steady_load_on_a_50_ms_store_makes_about_20_puts_a_second() {
    in_world(3, |world| async move {
        slow(&world, 50, 50);
        let mut node = world.node(1, &[1]).await;
        for _ in 0..3_000 {
            drop(node.append(1).await);
            world.sleep(MS).await;
        }
        let puts = world.store.stats().requests_of(Op::Put);
        assert!((55..=66).contains(&puts), "{puts} PUTs in three seconds");
        assert_eq!(node.wal.stats().repeats, 0);
    });
}

#[test]
fn the_budget_bounds_puts_on_a_fast_store() {
    in_world(4, |mut world| async move {
        slow(&world, 1, 2);
        world.config.puts_per_second = Some(20);
        let mut node = world.node(1, &[1]).await;
        for _ in 0..5_000 {
            drop(node.append(1).await);
            world.sleep(MS).await;
        }
        let puts = world.store.stats().requests_of(Op::Put);
        assert!((115..=121).contains(&puts), "{puts} PUTs in five seconds: a burst of 20, then 20 a second");
    });
}

#[test]
fn i1_acks_come_in_chain_order_whatever_the_order_of_answers() {
    for seed in 0..20 {
        in_world(seed, |mut world| async move {
            slow(&world, 1, 200);
            world.config.linger = MS;
            let mut node = world.node(1, &[1, 2, 3]).await;
            let mut told = FuturesUnordered::new();
            for n in 0..150u64 {
                told.push(node.append(n % 3 + 1).await);
                world.sleep(MS * 2).await;
            }
            while let Some(end) = told.next().await {
                assert_eq!(end, Ok(ChunkEnd::Durable));
            }
            let order = world.ack_order.lock().unwrap().clone();
            let pushed: Vec<_> = (0..150u64).map(|n| (bucket(n % 3 + 1), Offset(n / 3))).collect();
            assert_eq!(order, pushed);
            assert!(node.wal.stats().next > 20, "several objects were in flight");
        });
    }
}

#[test]
fn four_coins_on_every_request_lose_nothing_and_ack_once() {
    for seed in 0..20 {
        in_world(seed, |mut world| async move {
            slow(&world, 1, 20);
            world.config.linger = MS;
            world.seam.percent(30);
            let mut node = world.node(1, &[1, 2]).await;
            let mut told = FuturesUnordered::new();
            for n in 0..100u64 {
                told.push(node.append(n % 2 + 1).await);
                world.sleep(MS * 3).await;
            }
            while let Some(end) = told.next().await {
                assert_eq!(end, Ok(ChunkEnd::Durable));
            }
            assert!(node.wal.stats().repeats > 0, "faults struck");
            node.wal.flush_now().await.unwrap();
            world.seam.percent(0);
            assert_eq!(world.ack_order.lock().unwrap().len(), 100);
            world.check_acked(&[1, 2]).await;
        });
    }
}

#[test]
fn p_1_an_attempt_that_failed_after_the_body_was_read_leaves_the_next_one_whole() {
    in_world(5, |world| async move {
        world.seam.fault(Op::Put, &key(0), When::Before, FaultAnswer::Status(500), 1);
        let mut node = world.node(1, &[1]).await;
        let batches: Vec<Entry> = (0..3).map(|_| node.batch(1, 10)).collect();
        assert_eq!(node.push(batches).await.await, Ok(ChunkEnd::Durable));
        node.wal.flush_now().await.unwrap();
        assert_eq!(world.read_all(bucket(1)).await.len(), 3);
        assert_eq!(world.end(bucket(1)), Offset(30));
        world.check_acked(&[1]).await;
    });
}

#[test]
fn k_3_applied_but_the_answer_lost_is_one_ack_and_no_step_down() {
    in_world(6, |world| async move {
        world.seam.fault(Op::Put, &key(0), When::After, FaultAnswer::Lost, 1);
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.write(1).await;
        assert_eq!(world.ack_order.lock().unwrap().len(), 2);
        assert!(node.wal.ended().now_or_never().is_none());
        assert_eq!(node.wal.stats().repeats, 1);
    });
}

#[test]
fn k_4_a_conflict_decides_nothing() {
    in_world(7, |world| async move {
        world.seam.fault(Op::Put, &key(0), When::Before, FaultAnswer::Status(409), 3);
        world.seam.fault(Op::Put, &key(1), When::After, FaultAnswer::Status(409), 1);
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.write(1).await;
        assert!(node.wal.ended().now_or_never().is_none());
    });
}

#[test]
fn a_412_that_is_a_lie_is_not_believed() {
    in_world(8, |world| async move {
        world.seam.fault(Op::Put, &key(0), When::Before, FaultAnswer::Status(412), 2);
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
    });
}

#[test]
fn a_full_store_holds_writes_back_and_heals() {
    in_world(9, |world| async move {
        world.seam.fault(Op::Put, &key(0), When::Before, FaultAnswer::Status(403), 5);
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        assert_eq!(node.wal.stats().repeats, 5);
    });
}

#[test]
fn i20_untrimmed_wal_is_bounded_while_commits_hang_and_goes_on_after() {
    in_world(11, |mut world| async move {
        world.config.untrimmed_objects_max = 8;
        world.config.linger = MS;
        slow(&world, 1, 1);
        let mut node = world.node(1, &[1]).await;
        world.meta.lock().unwrap().refuse = 0;
        // No flush can end: its stream objects are held back.
        world.seam.close_gate(Op::Put, "/00000000000000000000");
        let first = node.append(1).await;
        world.sleep(MS * 100).await;
        assert_eq!(node.wal.stats().durable_below, 0);
        let mut told = FuturesUnordered::new();
        told.push(first);
        for _ in 0..20 {
            told.push(node.append(1).await);
            world.sleep(MS * 10).await;
        }
        assert_eq!(node.wal.stats().next, 8, "{:?}", node.wal.stats());
        assert!(node.wal.stats().full);
        world.seam.open_gates();
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
        node.wal.flush_now().await.unwrap();
        world.check_acked(&[1]).await;
    });
}

#[test]
fn p_2_the_trim_never_passes_a_number_that_is_not_durable() {
    in_world(12, |mut world| async move {
        world.config.linger = MS;
        let mut node = world.node(1, &[1, 2]).await;
        // Bucket 1 lies in number 0, which is late; bucket 2 in number 1, which is there at once.
        world.seam.close_gate(Op::Put, &key(0));
        let late = node.append(1).await;
        world.sleep(MS * 5).await;
        let early = node.append(2).await;
        world.sleep(MS * 50).await;
        assert_eq!(world.names("wal", 1).await, [1]);
        node.wal.flush_now().await.unwrap();
        assert!(
            world.meta.lock().unwrap().commits.is_empty(),
            "nothing is durable in order, so nothing is flushed"
        );
        world.seam.open_gates();
        assert_eq!((late.await, early.await), (Ok(ChunkEnd::Durable), Ok(ChunkEnd::Durable)));
        node.wal.flush_now().await.unwrap();
        assert_eq!(world.meta.lock().unwrap().chains[&chain(1)].trim, WalNumber(2));
        world.check_acked(&[1, 2]).await;
    });
}

#[test]
fn t_20_one_failed_put_of_several_stores_nothing_twice() {
    in_world(13, |mut world| async move {
        world.config.own_object_bytes = 1;
        let mut node = world.node(1, &[1, 2, 3]).await;
        for n in 1..=3 {
            node.write(n).await;
        }
        world.seam.fault(Op::Put, &key(1), When::After, FaultAnswer::Lost, 1);
        world.seam.fault(Op::Put, &key(2), When::Before, FaultAnswer::Status(503), 2);
        node.wal.flush_now().await.unwrap();
        assert_eq!(world.names("stream", 1).await, [0, 1, 2]);
        let referenced: BTreeSet<_> =
            (1..=3).flat_map(|n| world.ranges(bucket(n))).map(|r| r.object).collect();
        assert_eq!(referenced.len(), 3);
        world.check_acked(&[1, 2, 3]).await;
    });
}

#[test]
fn i14_the_object_of_a_refused_commit_is_deleted_and_the_flush_is_done_anew() {
    in_world(14, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        world.meta.lock().unwrap().refuse = 2;
        node.wal.flush_now().await.unwrap();
        assert_eq!(
            world.names("stream", 1).await,
            [2],
            "two refused objects are gone, no key was used again"
        );
        world.check_acked(&[1]).await;
        world.meta.lock().unwrap().refuse = 9;
        node.write(1).await;
        assert!(matches!(node.wal.flush_now().await, Err(WalEnd::Refused { .. })));
    });
}

#[test]
fn a_fenced_incarnation_stops_at_its_refused_commit() {
    in_world(15, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        world.meta.lock().unwrap().chains.get_mut(&chain(1)).unwrap().fenced = true;
        assert_eq!(node.wal.flush_now().await, Err(WalEnd::Fenced { by: None }));
        assert_eq!(node.append(1).await.await, Ok(ChunkEnd::Fenced));
    });
}

#[test]
fn i14_trimmed_objects_go_but_the_anchor_stays() {
    in_world(16, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..5 {
            node.write(1).await;
        }
        node.wal.flush_now().await.unwrap();
        world.until("the trim is done", || node.wal.stats().trim == 5).await;
        world.sleep(MS * 10).await;
        assert_eq!(world.names("wal", 1).await, [4]);
        // A deletion that fails is done with the next trim.
        node.write(1).await;
        world.seam.fault(Op::Delete, "", When::Before, FaultAnswer::Lost, 1);
        node.wal.flush_now().await.unwrap();
        world.sleep(MS * 10).await;
        assert_eq!(world.names("wal", 1).await, [4, 5]);
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        world.sleep(MS * 10).await;
        assert_eq!(world.names("wal", 1).await, [6]);
    });
}

#[test]
fn k_1_p_4_a_paused_writer_is_fenced_after_its_chain_was_taken_trimmed_and_swept() {
    in_world(17, |world| async move {
        let mut old = world.node(1, &[1]).await;
        old.write(1).await;
        // Number 1 is frozen, and its PUT is held back for as long as the successor likes.
        world.seam.close_gate(Op::Put, &format!("{:016x}{}", chain(1).tag, key(1)));
        let unacked = old.append(1).await;
        world.until("the PUT is on its way", || old.wal.stats().in_flight == 1).await;

        let (recovered, _) = taken_while_paused(&world).await;
        assert_eq!(recovered.seal, WalNumber(1));
        let mut new = world.node(2, &[1]).await;
        for _ in 0..4 {
            new.write(1).await;
        }
        new.wal.flush_now().await.unwrap();
        let keep = BTreeSet::from([recovered.seal]);
        let adopted: BTreeSet<WalNumber> = keep.iter().copied().chain([WalNumber(0)]).collect();
        sweep_wal(world.memory.as_ref(), &crate::testing::cluster(), chain(1), &adopted).await.unwrap();

        world.seam.open_gates();
        let WalEnd::Fenced { by: Some(by) } = old.wal.ended().await else { panic!("not fenced by a seal") };
        assert_eq!(by.chain, chain(2));
        assert_eq!(unacked.await, Ok(ChunkEnd::Fenced));
        assert_eq!(world.ack_order.lock().unwrap().len(), 5);
        world.check_acked(&[1]).await;
    });
}

/// A takeover by incarnation 2 whose seal goes past the gate that holds the old writer: the gate lets no PUT of number 1
/// through, so the seal is written below the seam.
async fn taken_while_paused(world: &World) -> (crate::Recovered, crate::Adoption) {
    let mut direct = world.clone();
    direct.store = Arc::new(Counted::new(Arc::<MemoryStore>::clone(&world.memory), None));
    direct.take_over(1, 2).await
}

#[test]
fn t_2_k_5_a_late_flush_of_the_old_owner_changes_nothing() {
    in_world(18, |world| async move {
        let mut old = world.node(1, &[1]).await;
        old.write(1).await;
        // The old owner's stream object is written only after the bucket has moved.
        world.seam.close_gate(Op::Put, &format!("{:016x}{}", chain(1).tag, key(0)));
        let flush = old.wal.clone();
        let mut flushed = std::pin::pin!(flush.flush_now());
        assert!(world.service.timeout(MS * 20, &mut flushed).await.is_err());
        world.take_over(1, 2).await;
        let mut new = world.node(2, &[1]).await;
        new.write(1).await;
        world.seam.open_gates();
        assert_eq!(flushed.await, Err(WalEnd::Fenced { by: None }));
        new.wal.flush_now().await.unwrap();
        assert!(world.names("stream", 1).await.is_empty(), "the refused object is deleted");
        world.check_acked(&[1]).await;
        assert_eq!(world.end(bucket(1)), Offset(2));
    });
}

#[test]
fn a_drain_makes_all_durable_commits_it_and_seals() {
    in_world(19, |world| async move {
        slow(&world, 5, 50);
        let mut node = world.node(1, &[1, 2]).await;
        let mut told = FuturesUnordered::new();
        for n in 0..30u64 {
            told.push(node.append(n % 2 + 1).await);
            world.sleep(MS).await;
        }
        let drained = node.wal.drain().await.unwrap();
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
        assert_eq!(world.meta.lock().unwrap().chains[&chain(1)].trim, drained.seal);
        world.check_acked(&[1, 2]).await;
        // A takeover of the drained chain finds the seal and nothing to adopt.
        let (recovered, adoption) = world.take_over(1, 2).await;
        assert_eq!((recovered.seal, recovered.sealed_by.chain), (drained.seal, chain(1)));
        assert!(recovered.objects.is_empty() && adoption.objects.is_empty());
    });
}

#[test]
fn a_drain_that_meets_a_seal_says_that_it_was_fenced() {
    in_world(20, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        world.takeover(1, 2).run().await.unwrap();
        assert!(matches!(node.wal.drain().await, Err(WalEnd::Fenced { by: Some(_) })));
    });
}

#[test]
fn a_foreign_object_under_a_number_stops_the_writer_with_its_name() {
    in_world(21, |world| async move {
        let mut other = world.node(1, &[1]).await;
        other.write(1).await;
        other.wal.stop().await;
        // Another process that believes to be the same incarnation, tag and all.
        world.meta.lock().unwrap().buckets.clear();
        let mut node = world.node(1, &[1]).await;
        assert_eq!(node.append(1).await.await, Ok(ChunkEnd::Fenced));
        let WalEnd::Foreign { object, .. } = node.wal.ended().await else {
            panic!("not stopped by the object")
        };
        assert_eq!(object, ObjectId::Wal { chain: chain(1), number: WalNumber(0) });
    });
}

#[test]
fn flush_age_flushes_without_being_asked() {
    in_world(22, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        world.sleep(Duration::from_secs(29)).await;
        assert_eq!(node.wal.stats().flushes, 0);
        world.sleep(Duration::from_secs(2)).await;
        assert_eq!(node.wal.stats().flushes, 1);
    });
}

#[test]
fn p_2_a_flush_of_very_many_buckets_is_several_commits_and_only_the_last_one_trims() {
    for refuse_at in [None, Some(1)] {
        in_world(24, move |world| async move {
            let buckets: Vec<u64> = (1..=9_000).collect();
            let mut node = world.node(1, &buckets).await;
            let entries: Vec<Entry> = buckets.iter().map(|n| node.batch(*n, 1)).collect();
            assert_eq!(node.push(entries).await.await, Ok(ChunkEnd::Durable));
            world.meta.lock().unwrap().refuse_at = refuse_at;
            let flushed = node.wal.flush_now().await;
            let trims: Vec<_> = world.meta.lock().unwrap().commits.iter().map(|commit| commit.trim).collect();
            if refuse_at.is_none() {
                assert_eq!((flushed, trims), (Ok(()), vec![None, Some(WalNumber(1))]));
            } else {
                // What was applied stays, what was refused is deleted; the rest is for a takeover, from the old trim.
                assert!(matches!(flushed, Err(WalEnd::Refused { .. })));
                assert_eq!((trims, world.names("stream", 1).await), (vec![None], vec![0, 1]));
                world.meta.lock().unwrap().refuse_at = None;
                let (_, adoption) = world.take_over(1, 2).await;
                assert!(adoption.gaps.is_empty() && adoption.objects[0].ranges.len() == 9_000 - 8_192);
            }
            world.check_acked(&[1, 4_096, 4_097, 9_000]).await;
        });
    }
}

#[test]
fn a_commit_that_hangs_does_not_hold_up_acks() {
    in_world(23, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        world.meta.lock().unwrap().hang = Some(Hang::Before);
        let wal = node.wal.clone();
        assert!(world.service.timeout(MS * 100, wal.flush_now()).await.is_err());
        node.write(1).await;
        assert_eq!(node.wal.stats().durable_below, 2);
    });
}
