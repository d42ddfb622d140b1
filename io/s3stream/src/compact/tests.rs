//! Compaction against a store with faults: bytes, offsets and states stay; two never claim one range; a crash costs nothing.
use std::sync::Arc;
use std::time::Duration;

use mink_object::{FaultAnswer, ObjectKey, ObjectStore, Op, Span};
use mink_types::{BucketId, ObjectId, Offset};

use crate::testing::{CountingFold, Hang, Node, When, World, bucket, chain, cluster, in_world};
use crate::*;

const MS: Duration = Duration::from_millis(1);

/// A compactor in the name of a node.
pub(crate) fn compactor(world: &World, node: &Node, bytes_per_second: u64) -> Arc<Compactor> {
    Arc::new(Compactor::new(CompactionParts {
        wal: node.wal.clone(),
        reader: world.reader(),
        wal_store: world.object_store(),
        bytes_per_second,
        window_bytes: 1_500,
        own_bytes: world.config.own_object_bytes,
    }))
}

/// Everything of these buckets that is not lost, as long runs.
pub(crate) fn everything(world: &World, buckets: &[u64]) -> CompactionJob {
    let mut moves: Vec<CompactionMove> = Vec::new();
    for id in buckets.iter().map(|n| bucket(*n)) {
        let epoch = world.meta.lock().unwrap().buckets[&id].epoch;
        let mut joins = false;
        for range in world.ranges(id) {
            if range.length == 0 {
                joins = false;
                continue;
            }
            match moves.last_mut().filter(|_| joins) {
                Some(last) => last.ranges.push(range),
                None => moves.push(CompactionMove { bucket: id, epoch, ranges: vec![range] }),
            }
            joins = true;
        }
    }
    let view = world.clone();
    let before = move |id: BucketId, start: Offset| {
        let mut ranges = view.ranges(id);
        ranges.retain(|range| range.range.end <= start);
        ranges
    };
    CompactionJob { moves, before: Arc::new(before) }
}

/// Two buckets with offsets from a dead chain (flushed, then adopted) and from the owner of now, who is given.
async fn two_lives(world: &World) -> Node {
    let mut first = world.node(1, &[1, 2]).await;
    for round in 0..6 {
        first.write(1).await;
        first.write(2).await;
        if round < 4 {
            first.wal.flush_now().await.unwrap();
        }
    }
    first.wal.stop().await;
    world.take_over(1, 2).await;
    let mut second = world.node(2, &[1, 2]).await;
    for _ in 0..3 {
        second.write(1).await;
        second.write(2).await;
        second.wal.flush_now().await.unwrap();
    }
    second
}

fn objects(world: &World, n: u64) -> usize {
    let mut objects: Vec<ObjectId> = world.ranges(bucket(n)).iter().map(|range| range.object).collect();
    objects.dedup();
    objects.len()
}

#[test]
fn i2_t_3_bytes_offsets_epochs_and_producers_stay_as_they_were() {
    in_world(1, |world| async move {
        let mut node = two_lives(&world).await;
        let before = (world.read_all(bucket(1)).await, world.read_all(bucket(2)).await);
        let states = (world.recovery(bucket(1)).await, world.recovery(bucket(2)).await);
        assert_eq!(objects(&world, 1), 9, "four flushed, two adopted, three of the second life");
        let compactor = compactor(&world, &node, u64::MAX);
        assert_eq!(compactor.run(&everything(&world, &[1, 2])).await, CompactionEnd::Done);
        assert_eq!((objects(&world, 1), world.ranges(bucket(1)).len()), (1, 1));
        assert_eq!((world.read_all(bucket(1)).await, world.read_all(bucket(2)).await), before);
        for (n, old) in [(1, states.0), (2, states.1)] {
            let new = world.recovery(bucket(n)).await;
            assert_eq!((&new.producers, new.snapshot_at, new.entries.len()), (&old.producers, Offset(9), 0));
            assert_eq!((new.epochs, new.last_commit_time), (old.epochs, old.last_commit_time));
        }
        let stats = compactor.stats();
        assert_eq!((stats.objects_read, stats.objects_written, stats.rewrites), (11, 1, 1));
        // The flusher goes on behind it under numbers of its own.
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        assert_eq!(world.recovery(bucket(1)).await.producers.as_ref(), b"10");
        world.check_acked(&[1, 2]).await;
    });
}

#[test]
fn t_3_a_run_of_adopted_objects_alone_gets_the_producers_from_before_it() {
    in_world(2, |world| async move {
        let node = two_lives(&world).await;
        let mut job = everything(&world, &[1]);
        job.moves[0].ranges = job.moves[0].ranges[4..6].to_vec();
        assert!(job.moves[0].ranges.iter().all(|range| matches!(range.object, ObjectId::Wal { .. })));
        assert_eq!(compactor(&world, &node, u64::MAX).run(&job).await, CompactionEnd::Done);
        let ranges = world.ranges(bucket(1));
        let recovery = world.reader().recover_bucket(bucket(1), &ranges[4..5], Offset(6)).await.unwrap();
        assert_eq!((recovery.producers.as_ref(), recovery.snapshot_at), (&b"6"[..], Offset(6)));
        assert_eq!(world.read_all(bucket(1)).await.len(), 9);
    });
}

#[test]
fn t_18_of_two_compactions_of_one_range_one_is_refused_and_takes_its_objects_back() {
    in_world(3, |world| async move {
        let node = two_lives(&world).await;
        world.seam.latency(Op::Get, MS, MS * 20);
        let before = world.names("stream", 2).await.len();
        let job = everything(&world, &[1, 2]);
        let (one, two) = (compactor(&world, &node, u64::MAX), compactor(&world, &node, u64::MAX));
        let (one, two) = futures::join!(one.run(&job), two.run(&job));
        let done = [&one, &two].iter().filter(|end| ***end == CompactionEnd::Done).count();
        let refused = |end: &CompactionEnd| matches!(end, CompactionEnd::Refused { fenced: false, .. });
        assert!(done == 1 && (refused(&one) || refused(&two)), "{one:?} {two:?}");
        assert_eq!(world.names("stream", 2).await.len(), before + 1);
        world.check_acked(&[1, 2]).await;
    });
}

#[test]
fn i1_i14_a_crash_at_any_step_loses_nothing_and_leaves_no_orphan() {
    let crashes: [fn(&World); 5] = [
        |world| world.seam.close_gate(Op::Get, ""),
        |world| world.seam.close_gate(Op::Put, ""),
        |world| world.seam.fault(Op::Put, "", When::After, FaultAnswer::Lost, 1_000),
        |world| world.meta.lock().unwrap().hang = Some(Hang::Before),
        |world| world.meta.lock().unwrap().hang = Some(Hang::After),
    ];
    for (at, crash) in crashes.into_iter().enumerate() {
        in_world(10 + at as u64, move |world| async move {
            let node = two_lives(&world).await;
            let compactor = compactor(&world, &node, u64::MAX);
            let job = everything(&world, &[1, 2]);
            crash(&world);
            let run = world.service.timeout(Duration::from_secs(5), compactor.run(&job)).await;
            assert!(run.is_err(), "it hangs there: {run:?}");
            node.wal.stop().await;
            world.seam.open_gates();
            world.seam.heal();
            world.take_over(2, 3).await;
            let mut next = world.node(3, &[1, 2]).await;
            next.write(1).await;
            let kept = world.ranges(bucket(1)).into_iter().chain(world.ranges(bucket(2)));
            let kept = kept.filter_map(|range| match range.object {
                ObjectId::Stream { chain: of, counter } if of == chain(2) => Some(counter),
                _ => None,
            });
            let kept = kept.collect();
            sweep_stream(world.store.as_ref(), &cluster(), chain(2), &kept).await.unwrap();
            assert_eq!(world.names("stream", 2).await, kept.into_iter().collect::<Vec<_>>());
            // Planned anew by the next owner.
            next.wal.flush_now().await.unwrap();
            let again = self::compactor(&world, &next, u64::MAX);
            assert_eq!(again.run(&everything(&world, &[1, 2])).await, CompactionEnd::Done);
            world.check_acked(&[1, 2]).await;
            let recovery = world.recovery(bucket(1)).await;
            let counted = CountingFold.fold(&recovery.producers, &recovery.entries).unwrap();
            assert_eq!(counted.as_ref(), b"10", "crash {at}");
        });
    }
}

#[test]
fn i5_a_fenced_owner_moves_nothing() {
    in_world(4, |world| async move {
        let node = two_lives(&world).await;
        let job = everything(&world, &[1, 2]);
        world.take_over(2, 3).await;
        let end = compactor(&world, &node, u64::MAX).run(&job).await;
        assert!(matches!(end, CompactionEnd::Refused { fenced: true, .. }), "{end:?}");
        world.check_acked(&[1, 2]).await;
    });
}

#[test]
fn t_20_a_step_that_fails_leaves_the_steps_before_it_and_no_byte_is_stored_twice() {
    in_world(5, |world| async move {
        let mut node = world.node(1, &[1, 2, 3]).await;
        for n in [1, 2, 3, 1, 2, 3] {
            let batches = (0..40).map(|_| node.batch(n, 1)).collect();
            assert_eq!(node.push(batches).await.await, Ok(ChunkEnd::Durable));
            node.wal.flush_now().await.unwrap();
        }
        let compactor = compactor(&world, &node, u64::MAX);
        // One object per step: the second PUT fails once, the third rewrite is refused.
        let job = everything(&world, &[1, 2, 3]);
        world.seam.fault(Op::Put, "7", When::Before, FaultAnswer::Status(503), 1);
        let moved: Vec<u64> = job.moves.iter().map(|m| m.ranges.iter().map(|r| r.bytes).sum()).collect();
        assert!(moved.iter().all(|bytes| (751..1_500).contains(bytes)), "each is a step: {moved:?}");
        assert_eq!(compactor.run(&job).await, CompactionEnd::Done);
        assert_eq!(world.meta.lock().unwrap().rewrites, 3);
        for n in [1, 2, 3] {
            assert_eq!(world.ranges(bucket(n)).len(), 1);
        }
        assert_eq!(world.names("stream", 1).await, (0..9).collect::<Vec<_>>(), "six old ones, three new");
        // The same job once more: its ranges are others by now. Nothing of it stays.
        assert!(matches!(compactor.run(&job).await, CompactionEnd::Refused { fenced: false, .. }));
        assert_eq!(world.names("stream", 1).await.len(), 9);
        world.check_acked(&[1, 2, 3]).await;
    });
}

#[test]
fn p_1_p_14_a_damaged_or_missing_source_is_named_and_nothing_moves() {
    in_world(6, |world| async move {
        let node = two_lives(&world).await;
        let (job, at) = (everything(&world, &[1, 2]), world.ranges(bucket(1))[2]);
        let key = ObjectKey::object(&cluster(), at.object);
        let whole = world.memory.get(&key, Span::Whole { max: 1 << 20 }).await.unwrap();
        let compactor = compactor(&world, &node, u64::MAX);
        for byte in [165, whole.len() - 60] {
            let mut bad = whole.to_vec();
            bad[byte] ^= 1;
            world.memory.delete(std::slice::from_ref(&key)).await;
            assert!(world.memory.put(&key, &bytes::Bytes::from(bad).into()).await.is_done());
            let end = compactor.run(&job).await;
            assert!(
                matches!(end, CompactionEnd::Unreadable { object, .. } if object == at.object),
                "{end:?}"
            );
        }
        world.memory.delete(std::slice::from_ref(&key)).await;
        assert_eq!(compactor.run(&job).await, CompactionEnd::Missing { object: at.object });
        assert_eq!(world.ranges(bucket(1)).len(), 9);
        world.seam.down(true);
        let end = compactor.run(&job).await;
        assert!(matches!(end, CompactionEnd::Unavailable { .. }), "{end:?}");
    });
}

#[test]
fn p_14_a_run_whose_producers_lie_in_a_damaged_object_is_named_by_a_source_of_its_own() {
    in_world(9, |world| async move {
        let node = two_lives(&world).await;
        let ranges = world.ranges(bucket(1));
        world.memory.delete(&[ObjectKey::object(&cluster(), ranges[3].object)]).await;
        let mut job = everything(&world, &[1]);
        job.moves[0].ranges = ranges[4..6].to_vec();
        let compactor = compactor(&world, &node, u64::MAX);
        // Whoever spares what is named does not plan the same job again.
        let end = compactor.run(&job).await;
        let named = |end: &CompactionEnd| match end {
            CompactionEnd::Unreadable { object, reason } => {
                *object == ranges[5].object && reason.contains(&ranges[3].object.to_string())
            }
            _ => false,
        };
        assert!(named(&end), "{end:?}");
        job.moves[0].ranges = ranges[4..8].to_vec();
        assert_eq!(compactor.run(&job).await, CompactionEnd::Done, "this run has a snapshot of its own");
    });
}

#[test]
fn compaction_keeps_to_its_pace() {
    in_world(7, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..8 {
            let batches = (0..40).map(|_| node.batch(1, 1)).collect();
            assert_eq!(node.push(batches).await.await, Ok(ChunkEnd::Durable));
            node.wal.flush_now().await.unwrap();
        }
        let mut job = everything(&world, &[1]);
        let ranges = std::mem::take(&mut job.moves[0].ranges);
        let pair = |pair: &[ObjectRange]| CompactionMove { ranges: pair.to_vec(), ..job.moves[0].clone() };
        let moves: Vec<_> = ranges.chunks(2).map(pair).collect();
        // The last step's bytes are not waited for.
        let bytes: u64 = ranges.iter().rev().skip(2).map(|range| range.bytes).sum();
        let job = CompactionJob { moves, ..job };
        let begun = world.service.now();
        assert_eq!(compactor(&world, &node, 1_000).run(&job).await, CompactionEnd::Done);
        let took = world.service.now() - begun;
        assert!(took >= Duration::from_millis(bytes), "{bytes} bytes in {took:?}");
        assert_eq!(world.ranges(bucket(1)).len(), 4);
    });
}

#[test]
fn many_small_blocks_cost_few_gets() {
    in_world(8, |mut world| async move {
        world.config.own_object_bytes = 1 << 20;
        let buckets: Vec<u64> = (1..=40).collect();
        let mut node = world.node(1, &buckets).await;
        for _ in 0..8 {
            for n in &buckets {
                node.append(*n).await.await.unwrap();
            }
            node.wal.flush_now().await.unwrap();
        }
        let job = everything(&world, &buckets);
        let parts = CompactionParts {
            wal: node.wal.clone(),
            reader: world.reader(),
            wal_store: world.object_store(),
            bytes_per_second: u64::MAX,
            window_bytes: 1 << 20,
            own_bytes: 1 << 20,
        };
        let (gets, puts) =
            (world.store.stats().requests_of(Op::Get), world.store.stats().requests_of(Op::Put));
        assert_eq!(Compactor::new(parts).run(&job).await, CompactionEnd::Done);
        assert_eq!(world.store.stats().requests_of(Op::Get) - gets, 8, "one for each small object");
        assert_eq!(world.store.stats().requests_of(Op::Put) - puts, 1);
        world.check_acked(&buckets).await;
    });
}
