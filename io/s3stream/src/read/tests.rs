//! Reading: whole batches from the one asked for, checksums, missing and lost objects, recovery of a bucket.
mod bounds;
mod damaged;
mod joins;
mod requests;
mod shelf;

use std::time::Duration;

use mink_object::{FaultAnswer, ObjectKey, ObjectStore, Op, Span};
use mink_types::{BucketEpoch, Offset, Timestamp};

use super::*;
use crate::entry::EpochStart;
use crate::testing::{When, World, bucket, chain, cluster, in_world};

/// A world with two stream objects of bucket 1 (offsets 0..6 in batches of 2, then 6..12) beside bucket 2.
async fn two_objects(world: &World) {
    let mut node = world.node(1, &[1, 2]).await;
    for _ in 0..2 {
        let batches = vec![node.batch(1, 2), node.batch(1, 2), node.batch(2, 1), node.batch(1, 2)];
        assert_eq!(node.push(batches).await.await, Ok(crate::ChunkEnd::Durable));
        node.wal.flush_now().await.unwrap();
    }
    node.wal.stop().await;
}

fn request(world: &World, from: u64, bytes_max: usize) -> ReadRequest {
    ReadRequest { bucket: bucket(1), objects: world.ranges(bucket(1)), from: Offset(from), bytes_max }
}

fn bases(answer: &ReadAnswer) -> Vec<u64> {
    answer.batches.iter().map(|batch| batch.base_offset.0).collect()
}

#[test]
fn k_14_p_18_the_batch_that_holds_the_offset_comes_whole_and_first() {
    in_world(1, |world| async move {
        two_objects(&world).await;
        let reader = world.reader();
        for (from, first) in [(0, 0), (1, 0), (3, 2), (5, 4), (6, 6), (11, 10)] {
            let answer = reader.read(&request(&world, from, 1)).await.unwrap();
            assert_eq!(bases(&answer), [first], "from {from}: one batch even if it passes the limit");
        }
        let answer = reader.read(&request(&world, 3, 1 << 20)).await.unwrap();
        assert_eq!(bases(&answer), [2, 4, 6, 8, 10], "goes on into the next object");
        assert_eq!(answer.next(), Some(Offset(12)));
    });
}

#[test]
fn an_answer_stays_within_its_limit() {
    in_world(2, |world| async move {
        two_objects(&world).await;
        let reader = world.reader();
        let one = reader.read(&request(&world, 0, 1)).await.unwrap().bytes;
        let answer = reader.read(&request(&world, 0, 2 * one + 1)).await.unwrap();
        assert_eq!(bases(&answer), [0, 2]);
        let answer = reader.read(&request(&world, 4, 2 * one)).await.unwrap();
        assert_eq!(bases(&answer), [4, 6], "the limit counts over objects");
    });
}

#[test]
fn footers_and_blocks_are_read_once() {
    in_world(3, |world| async move {
        two_objects(&world).await;
        let reader = world.reader();
        let before = world.store.stats().requests_of(Op::Get);
        reader.recover_bucket(bucket(1), &world.ranges(bucket(1)), Offset(12)).await.unwrap();
        assert_eq!(world.store.stats().requests_of(Op::Get) - before, 1, "the newest footer alone");
        reader.read(&request(&world, 6, 1)).await.unwrap();
        assert_eq!(world.store.stats().requests_of(Op::Get) - before, 2, "the block alone");
        reader.read(&request(&world, 6, 1)).await.unwrap();
        reader.read(&request(&world, 10, 1)).await.unwrap();
        assert_eq!(world.store.stats().requests_of(Op::Get) - before, 2, "nothing");
        reader.read(&request(&world, 0, 1)).await.unwrap();
        assert_eq!(world.store.stats().requests_of(Op::Get) - before, 3, "a small object in one GET");
        assert_eq!((reader.stats().misses, reader.stats().footer_misses), (1, 2));
    });
}

#[test]
fn p_14_a_missing_object_fails_its_own_range_only() {
    in_world(4, |world| async move {
        two_objects(&world).await;
        let first = world.ranges(bucket(1))[0].object;
        for (_, outcome) in world.memory.delete(&[ObjectKey::object(&cluster(), first)]).await {
            assert!(outcome.is_done());
        }
        let reader = world.reader();
        let error = reader.read(&request(&world, 0, 100)).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Missing { object: first });
        assert_eq!(bases(&reader.read(&request(&world, 6, 1)).await.unwrap()), [6]);
        // A hole in the plan itself is never jumped over (I2).
        let mut holed = request(&world, 0, 100);
        holed.objects.remove(0);
        assert_eq!(*reader.read(&holed).await.unwrap_err().kind(), ErrorKind::Misuse);
    });
}

#[test]
fn p_1_a_changed_byte_is_an_error_that_names_the_object() {
    in_world(5, |world| async move {
        two_objects(&world).await;
        let object = world.ranges(bucket(1))[0];
        let key = ObjectKey::object(&cluster(), object.object);
        let whole = world.memory.get(&key, Span::Whole { max: 1 << 20 }).await.unwrap();
        for at in [170, whole.len() - 50, whole.len() - 3] {
            let mut bad = whole.to_vec();
            bad[at] ^= 1;
            world.memory.delete(std::slice::from_ref(&key)).await;
            assert!(world.memory.put(&key, &Bytes::from(bad).into()).await.is_done());
            let error = world.reader().read(&request(&world, 0, 100)).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Corrupt { object: object.object }, "byte {at}");
        }
    });
}

#[test]
fn a_store_that_does_not_answer_is_a_retry() {
    in_world(6, |world| async move {
        two_objects(&world).await;
        world.seam.fault(Op::Get, "", When::Before, FaultAnswer::Status(503), 1);
        let reader = world.reader();
        assert_eq!(*reader.read(&request(&world, 0, 1)).await.unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(bases(&reader.read(&request(&world, 0, 1)).await.unwrap()), [0], "a failure is not kept");
        world.seam.latency(Op::Get, Duration::from_mins(1), Duration::from_mins(1));
        assert_eq!(*reader.read(&request(&world, 6, 1)).await.unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(reader.stats().gets_failed, 2);
    });
}

#[test]
fn k_15_the_first_batch_that_may_hold_the_time_is_found() {
    in_world(7, |world| async move {
        two_objects(&world).await;
        let (reader, objects) = (world.reader(), world.ranges(bucket(1)));
        let find = async |from: u64, target: i64| {
            reader.find_by_time(bucket(1), &objects, Offset(from), Timestamp(target)).await.unwrap()
        };
        // Record times are 500 + base offset.
        assert_eq!(find(0, 1).await, Some(Offset(0)));
        assert_eq!(find(0, 501).await, Some(Offset(2)));
        assert_eq!(find(0, 507).await, Some(Offset(8)));
        assert_eq!(find(10, 1).await, Some(Offset(10)));
        assert_eq!(find(0, 511).await, None);
    });
}

#[test]
fn t_3_recovery_gives_the_snapshot_and_every_entry_behind_it() {
    in_world(8, |world| async move {
        two_objects(&world).await;
        let flushed = world.recovery(bucket(1)).await;
        assert_eq!((flushed.producers.as_ref(), flushed.snapshot_at), (&b"12"[..], Offset(12)));
        assert!(flushed.entries.is_empty());
        assert_eq!(flushed.last_commit_time.map(|time| time.0), Some(1_010));
        assert_eq!(flushed.epochs, [EpochStart { epoch: BucketEpoch(1), start: Offset(0) }]);

        // A second owner writes and dies before it flushes: its objects are adopted, and hold no snapshot.
        world.take_over(1, 2).await;
        let mut node = world.node(2, &[1]).await;
        node.write(1).await;
        node.write(1).await;
        node.wal.stop().await;
        world.take_over(2, 3).await;
        let adopted = world.recovery(bucket(1)).await;
        assert_eq!((adopted.producers.as_ref(), adopted.snapshot_at), (&b"12"[..], Offset(12)));
        let behind: Vec<u64> = adopted.entries.iter().map(|entry| entry.base_offset.0).collect();
        assert_eq!((behind, adopted.end), (vec![12, 13], Offset(14)));
        assert_eq!(
            adopted.epochs.iter().map(|e| (e.epoch.0, e.start.0)).collect::<Vec<_>>(),
            [(1, 0), (2, 12)]
        );

        // The third owner's snapshot covers all of it again.
        let mut node = world.node(3, &[1]).await;
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        let again = world.recovery(bucket(1)).await;
        assert_eq!((again.producers.as_ref(), again.entries.len()), (&b"15"[..], 0));
        assert_eq!(
            again.epochs.iter().map(|e| (e.epoch.0, e.start.0)).collect::<Vec<_>>(),
            [(1, 0), (2, 12), (3, 14)]
        );
        let (object, _) = (world.ranges(bucket(1)).pop().unwrap().object, chain(3));
        assert!(matches!(object, ObjectId::Stream { chain: of, .. } if of == chain(3)));
    });
}

#[test]
fn what_a_takeover_has_read_is_not_read_again() {
    in_world(10, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..5 {
            node.write(1).await;
        }
        node.wal.stop().await;
        let (recovered, _) = world.take_over(1, 2).await;
        let (reader, objects) = (world.reader(), world.ranges(bucket(1)));
        reader.remember(&recovered);
        let before = world.store.stats().requests_total();
        let recovery = reader.recover_bucket(bucket(1), &objects, Offset(5)).await.unwrap();
        assert_eq!((recovery.entries.len(), world.store.stats().requests_total() - before), (5, 0));
    });
}

#[test]
fn a_bucket_without_anything_recovers_to_nothing() {
    in_world(9, |world| async move {
        let recovery = world.recovery(bucket(1)).await;
        assert_eq!(recovery, BucketRecovery::default());
    });
}
