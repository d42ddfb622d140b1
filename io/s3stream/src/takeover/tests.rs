//! Takeovers: the walk over each kind of hole, seals, adoption, histories of owners that die, stall and live on.
use std::collections::BTreeSet;
use std::time::Duration;

use mink_object::{FaultAnswer, ObjectKey, ObjectStore, Op};
use mink_types::{ObjectId, Offset, OffsetRange, WalNumber};

use super::*;
use crate::read::{ReadRequest, Reader};
use crate::testing::{Hang, When, World, bucket, chain, cluster, in_world, witness};
use crate::{ChunkEnd, ErrorKind, sweep_wal};

const MS: Duration = Duration::from_millis(1);

fn wal_key(incarnation: u64, number: u64) -> ObjectKey {
    ObjectKey::object(&cluster(), ObjectId::Wal { chain: chain(incarnation), number: WalNumber(number) })
}

/// Removes or replaces an object as no code of ours would.
async fn tamper(world: &World, key: &ObjectKey, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
    let whole = world.memory.get(key, mink_object::Span::Whole { max: 64 << 20 }).await.unwrap();
    for (_, outcome) in world.memory.delete(std::slice::from_ref(key)).await {
        assert!(outcome.is_done());
    }
    if let Some(bytes) = change(whole.to_vec()) {
        assert!(world.memory.put(key, &bytes::Bytes::from(bytes).into()).await.is_done());
    }
}

/// The moments at which a node may die around a flush.
#[derive(Clone, Copy, Debug)]
enum Crash {
    // After each of these has been done and nothing since.
    WalPut,
    StreamPut,
    Commit,
    Trim,
    Delete,
}

/// K-6, T-1: crash there, restart as incarnation 2, and once more as 3.
fn crash_at(crash: Crash) {
    in_world(crash as u64, |mut world| async move {
        world.config.linger = MS;
        let mut node = world.node(1, &[1, 2]).await;
        for n in 0..6u64 {
            node.write(n % 2 + 1).await;
        }
        if matches!(crash, Crash::Trim | Crash::Delete) {
            if matches!(crash, Crash::Trim) {
                world.seam.close_gate(Op::Delete, "");
            }
            node.wal.flush_now().await.unwrap();
            world.sleep(MS * 20).await;
        }
        if matches!(crash, Crash::StreamPut | Crash::Commit) {
            let hang = if matches!(crash, Crash::Commit) { Hang::After } else { Hang::Before };
            world.meta.lock().unwrap().hang = Some(hang);
            assert!(world.service.timeout(MS * 50, node.wal.flush_now()).await.is_err());
        }
        // A write whose PUT is applied, but whose ack is never told.
        world.seam.fault(Op::Put, "", When::After, FaultAnswer::Lost, 1);
        world.seam.close_gate(Op::Get, "");
        drop(node.append(1).await);
        world.sleep(MS * 50).await;
        assert_eq!(world.ack_order.lock().unwrap().len(), 6);
        node.wal.stop().await;
        world.seam.open_gates();

        let (recovered, adoption) = world.take_over(1, 2).await;
        assert_eq!((recovered.seal, recovered.lost.len(), adoption.gaps.len()), (WalNumber(7), 0, 0));
        world.check_acked(&[1, 2]).await;
        let mut second = world.node(2, &[1, 2]).await;
        second.write(1).await;
        second.write(2).await;
        second.wal.stop().await;
        world.take_over(2, 3).await;
        world.check_acked(&[1, 2]).await;
        // Dead chains are cleaned; what is referenced stays readable, the recorded seal stays.
        for dead in [1, 2] {
            sweep(&world, dead).await;
        }
        world.check_acked(&[1, 2]).await;
        assert!(world.names("wal", 1).await.contains(&7));
        assert_eq!((world.end(bucket(1)), world.end(bucket(2))), (Offset(5), Offset(4)));
    });
}

async fn sweep(world: &World, dead: u64) {
    let mut keep: BTreeSet<WalNumber> =
        world.meta.lock().unwrap().chains[&chain(dead)].seal.iter().copied().collect();
    for range in [1, 2].into_iter().flat_map(|n| world.ranges(bucket(n))) {
        if let ObjectId::Wal { chain: of, number } = range.object
            && of == chain(dead)
        {
            keep.insert(number);
        }
    }
    let swept = sweep_wal(world.store.as_ref(), &cluster(), chain(dead), &keep).await.unwrap();
    assert_eq!(swept.failed, 0);
    let left: BTreeSet<WalNumber> = world.names("wal", dead).await.into_iter().map(WalNumber).collect();
    assert_eq!(left, keep);
}

#[test]
fn k_6_t_1_crash_after_the_wal_put() {
    crash_at(Crash::WalPut);
}

#[test]
fn k_6_t_1_crash_after_the_stream_put() {
    crash_at(Crash::StreamPut);
}

#[test]
fn k_6_t_1_crash_after_the_commit() {
    crash_at(Crash::Commit);
}

#[test]
fn k_6_crash_after_the_trim() {
    crash_at(Crash::Trim);
}

#[test]
fn k_6_crash_after_the_delete() {
    crash_at(Crash::Delete);
}

#[test]
fn p_3_a_second_crash_during_recovery_loses_nothing() {
    in_world(1, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..7 {
            node.write(1).await;
        }
        node.wal.stop().await;
        // The first taker seals and dies before it commits anything; the second walks again.
        let first = world.takeover(1, 2).run().await.unwrap();
        let (second, _) = world.take_over(1, 3).await;
        assert_eq!((second.seal, second.objects.len()), (first.seal, 7));
        assert_eq!(second.sealed_by.chain, chain(2));
        world.check_acked(&[1]).await;
    });
}

#[test]
fn k_6_what_a_dead_taker_has_committed_is_dropped_from_the_next_adoption() {
    in_world(12, |mut world| async move {
        world.config.linger = MS;
        let mut node = world.node(1, &[1]).await;
        for _ in 0..3 {
            node.write(1).await;
        }
        node.wal.stop().await;
        world.meta.lock().unwrap().chains.get_mut(&chain(1)).unwrap().fenced = true;
        // The first taker commits one object of three, and dies.
        let recovered = world.takeover(1, 2).run().await.unwrap();
        let view = BucketView { epoch: mink_types::BucketEpoch(1), end: Offset(0) };
        let mut commit = recovered.adopt(|_| Some(view)).commits(chain(1)).remove(0);
        commit.objects.truncate(1);
        assert_eq!(world.meta.lock().unwrap().judge(chain(2), &commit), crate::CommitEnd::Applied);
        let (_, adoption) = world.take_over(1, 3).await;
        assert_eq!((adoption.objects.len(), adoption.gaps.len(), adoption.lost.len()), (2, 0, 0));
        world.check_acked(&[1]).await;
    });
}

#[test]
fn two_takers_at_once_meet_at_one_seal() {
    for seed in 0..20 {
        in_world(seed, |world| async move {
            world.seam.latency(Op::Put, MS, MS * 50);
            world.seam.latency(Op::Get, MS, MS * 50);
            let mut node = world.node(1, &[1]).await;
            node.write(1).await;
            let (a, b) = (world.takeover(1, 2), world.takeover(1, 3));
            // The old owner writes on meanwhile; whatever is acked must be found by both.
            let (a, b, ()) = futures::join!(a.run(), b.run(), async {
                for _ in 0..5 {
                    if node.append(1).await.await != Ok(ChunkEnd::Durable) {
                        return;
                    }
                }
            });
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!((a.seal, &a.sealed_by, a.objects.len()), (b.seal, &b.sealed_by, b.objects.len()));
            assert!(a.lost.is_empty() && b.lost.is_empty());
            world.take_over(1, 4).await;
            world.check_acked(&[1]).await;
        });
    }
}

#[test]
fn a_lost_object_is_proven_named_and_costs_only_its_own_range() {
    in_world(2, |world| async move {
        let mut node = world.node(1, &[1, 2]).await;
        for n in [1, 2, 1, 1, 2] {
            node.write(n).await;
        }
        node.wal.stop().await;
        tamper(&world, &wal_key(1, 2), |_| None).await;
        let (recovered, adoption) = world.take_over(1, 2).await;
        assert_eq!((recovered.lost.as_slice(), recovered.seal), (&[WalNumber(2)][..], WalNumber(5)));
        let range = OffsetRange { start: Offset(1), end: Offset(2) };
        assert_eq!(adoption.lost, [LostRange { bucket: bucket(1), range, number: WalNumber(2) }]);
        assert!(adoption.gaps.is_empty());
        // P-14: the other bucket, and what lies before and behind, can be read.
        assert_eq!(world.read_all(bucket(2)).await.len(), 2);
        let reader = world.reader();
        assert_eq!(read_at(&world, &reader, 0).await, Ok(Offset(0)));
        assert_eq!(read_at(&world, &reader, 2).await, Ok(Offset(2)));
        let object = ObjectId::Wal { chain: chain(1), number: WalNumber(2) };
        assert_eq!(read_at(&world, &reader, 1).await, Err(ErrorKind::Lost { object }));
        // The bucket lives on behind it.
        let mut next = world.node(2, &[1]).await;
        next.write(1).await;
        next.wal.flush_now().await.unwrap();
        assert_eq!(read_at(&world, &reader, 3).await, Ok(Offset(3)));
    });
}

async fn read_at(world: &World, reader: &Reader, from: u64) -> Result<Offset, ErrorKind> {
    let objects = world.ranges(bucket(1));
    let request = ReadRequest { bucket: bucket(1), objects, from: Offset(from), bytes_max: 1 };
    match reader.read(&request).await {
        Ok(answer) => Ok(answer.batches[0].base_offset),
        Err(error) => Err(error.kind().clone()),
    }
}

#[test]
fn a_lost_object_at_the_end_cannot_be_told_from_a_free_number() {
    in_world(3, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.write(1).await;
        node.wal.stop().await;
        tamper(&world, &wal_key(1, 1), |_| None).await;
        let (recovered, _) = world.take_over(1, 2).await;
        assert_eq!((recovered.seal, recovered.lost.len()), (WalNumber(1), 0));
    });
}

#[test]
fn p_1_a_torn_or_empty_object_is_an_alarm_that_names_it() {
    for cut in [0usize, 100, 170, usize::MAX] {
        in_world(4, move |world| async move {
            let mut node = world.node(1, &[1]).await;
            for _ in 0..3 {
                node.write(1).await;
            }
            node.wal.stop().await;
            tamper(&world, &wal_key(1, 1), |mut bytes| {
                bytes.truncate(cut.min(bytes.len() - 1));
                Some(bytes)
            })
            .await;
            let (recovered, adoption) = world.take_over(1, 2).await;
            let damaged: Vec<_> = recovered.damaged.iter().map(|damaged| damaged.number).collect();
            assert_eq!((damaged, recovered.seal), (vec![WalNumber(1)], WalNumber(3)));
            assert_eq!(adoption.lost.len(), 1);
            assert_eq!(world.end(bucket(1)), Offset(3));
        });
    }
}

#[test]
fn k_6_a_gap_that_nothing_explains_stops_its_bucket_and_no_other() {
    in_world(5, |world| async move {
        let mut node = world.node(1, &[1, 2]).await;
        node.write(1).await;
        let mut skipped = node.batch(1, 1);
        skipped.base_offset = Offset(3);
        assert_eq!(node.push(vec![skipped]).await.await, Ok(ChunkEnd::Durable));
        node.write(2).await;
        node.wal.stop().await;
        let (_, adoption) = world.take_over(1, 2).await;
        let gap = Gap { bucket: bucket(1), expected: Offset(1), found: Offset(3), number: WalNumber(1) };
        assert_eq!(adoption.gaps, [gap]);
        assert_eq!((world.end(bucket(1)), world.end(bucket(2))), (Offset(1), Offset(1)));
    });
}

#[test]
fn a_missing_anchor_shows_a_stale_view() {
    in_world(6, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..3 {
            node.write(1).await;
        }
        let stale = world.takeover(1, 2);
        let early = Takeover { trim: WalNumber(1), ..world.takeover(1, 2) };
        node.wal.flush_now().await.unwrap();
        world.sleep(MS * 10).await;
        node.wal.stop().await;
        assert_eq!(*early.run().await.unwrap_err().kind(), ErrorKind::Stale);
        // At trim 0 there is no anchor to miss; this walk must not be done on a view from before the fence, and its harm is
        // bounded: it can only seal.
        assert_eq!(stale.trim, WalNumber(0));
        let good = world.takeover(1, 2).run().await.unwrap();
        assert_eq!((good.seal, good.objects.len()), (WalNumber(3), 0));
    });
}

#[test]
fn another_clusters_chain_is_refused() {
    in_world(7, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.wal.stop().await;
        let takeover = Takeover { uuid: ClusterUuid([9; 16]), ..world.takeover(1, 2) };
        assert_eq!(*takeover.run().await.unwrap_err().kind(), ErrorKind::Stale);
    });
}

#[test]
fn p_6_a_takeover_through_a_storm_of_503s_ends() {
    in_world(8, |mut world| async move {
        world.config.linger = MS;
        world.config.untrimmed_objects_max = 4_000;
        let mut node = world.node(1, &[1]).await;
        for _ in 0..300 {
            node.write(1).await;
        }
        node.wal.stop().await;
        world.seam.latency(Op::Get, MS * 20, MS * 40);
        world.seam.percent(30);
        let begun = world.service.now();
        let found = world.takeover(1, 2).run().await.unwrap();
        assert_eq!((found.seal, found.objects.len()), (WalNumber(300), 300));
        assert!(world.service.now() - begun < Duration::from_secs(30), "{:?}", world.service.now() - begun);
        world.seam.percent(0);
        world.take_over(1, 2).await;
        world.check_acked(&[1]).await;
    });
}

#[test]
fn a_store_that_never_answers_ends_in_a_retry_not_in_a_seal() {
    in_world(9, |mut world| async move {
        world.config.read_attempts_max = 4;
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.wal.stop().await;
        world.seam.down(true);
        assert_eq!(*world.takeover(1, 2).run().await.unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(world.names("wal", 1).await, [0]);
    });
}

#[test]
fn k_3_k_4_a_seal_whose_answer_is_lost_or_contended_is_one_seal() {
    in_world(10, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.wal.stop().await;
        world.seam.fault(Op::Put, "1", When::Before, FaultAnswer::Status(409), 1);
        world.seam.fault(Op::Put, "1", When::After, FaultAnswer::Lost, 1);
        let found = world.takeover(1, 2).run().await.unwrap();
        assert_eq!((found.seal, found.sealed_by.chain), (WalNumber(1), chain(2)));
        assert_eq!(world.names("wal", 1).await, [0, 1]);
    });
}

#[test]
fn i13_a_walk_tells_the_furthest_row_that_the_chain_names() {
    in_world(11, |world| async move {
        let mut node = world.node(5, &[1]).await;
        node.write(1).await;
        node.wal.stop().await;
        let found = world.takeover(5, 6).run().await.unwrap();
        assert_eq!(found.highest_witness, witness(5));
    });
}
