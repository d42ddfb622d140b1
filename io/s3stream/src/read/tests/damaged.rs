//! P-14: recoveries pass over objects that are gone or damaged for certain, and over nothing else (decision 0016).
use bytes::BytesMut;

use super::*;

/// Puts other bytes in the place of an object; none: it is gone.
async fn replace(world: &World, object: ObjectId, bytes: Option<Bytes>) {
    let key = ObjectKey::object(&cluster(), object);
    for (_, outcome) in world.memory.delete(std::slice::from_ref(&key)).await {
        assert!(outcome.is_done());
    }
    if let Some(bytes) = bytes {
        assert!(world.memory.put(&key, &bytes.into()).await.is_done());
    }
}

async fn whole(world: &World, object: ObjectId) -> Bytes {
    let key = ObjectKey::object(&cluster(), object);
    world.memory.get(&key, Span::Whole { max: 1 << 20 }).await.unwrap()
}

fn range(start: u64, end: u64) -> OffsetRange {
    OffsetRange { start: Offset(start), end: Offset(end) }
}

/// Whatever is wrong with the newest object, the older one tells.
fn passed_over(seed: u64, missing: bool, damage: impl Fn(&Bytes, &Bytes) -> Option<Bytes> + 'static) {
    in_world(seed, move |world| async move {
        two_objects(&world).await;
        let (objects, reader) = (world.ranges(bucket(1)), world.reader());
        let (older, newest) = (objects[0].object, objects[1].object);
        let bytes = damage(&whole(&world, newest).await, &whole(&world, older).await);
        replace(&world, newest, bytes).await;
        let found = reader.recover_bucket(bucket(1), &objects, Offset(12)).await.unwrap();
        assert_eq!(
            (found.producers.as_ref(), found.snapshot_at, found.end),
            (&b"6"[..], Offset(6), Offset(12))
        );
        assert_eq!((found.lost.as_slice(), found.entries.len()), (&[range(6, 12)][..], 0));
        assert_eq!(found.last_commit_time.map(|time| time.0), Some(1_004));
        assert_eq!(found.epochs, [EpochStart { epoch: BucketEpoch(1), start: Offset(0) }]);
        let [lost] = found.unreadable.as_slice() else { panic!("{found:?}") };
        assert_eq!((lost.object, lost.range), (newest, range(6, 12)));
        let kind = if missing {
            ErrorKind::Missing { object: newest }
        } else {
            ErrorKind::Corrupt { object: newest }
        };
        assert_eq!(*lost.error.kind(), kind);
        // The other bucket in it is told at once, and the object once.
        let (before, other) = (world.service.now(), world.ranges(bucket(2)));
        let found = reader.recover_bucket(bucket(2), &other, Offset(2)).await.unwrap();
        assert_eq!((found.lost, world.service.now()), (vec![range(1, 2)], before));
        assert_eq!([(); 2].map(|()| reader.tell_damaged(newest)), [true, false]);
        assert_eq!(reader.stats().damaged_objects, 1);
    });
}

#[test]
fn p_14_a_newest_object_that_is_gone_is_passed_over() {
    passed_over(1, true, |_, _| None);
}

#[test]
fn p_14_a_truncated_one_is_passed_over() {
    passed_over(2, false, |newest, _| Some(newest.slice(..newest.len() / 2)));
    passed_over(3, false, |_, _| Some(Bytes::new()));
}

#[test]
fn p_14_a_zeroed_one_is_passed_over() {
    passed_over(4, false, |newest, _| Some(BytesMut::zeroed(newest.len()).freeze()));
}

#[test]
fn p_14_p_1_one_with_a_flipped_bit_in_its_footer_is_passed_over() {
    for from_end in [3, 50] {
        passed_over(5, false, move |newest, _| {
            let mut bad = newest.to_vec();
            let at = bad.len() - from_end;
            bad[at] ^= 1;
            Some(bad.into())
        });
    }
}

#[test]
fn p_14_another_valid_object_in_its_place_is_passed_over() {
    passed_over(6, false, |_, older| Some(older.clone()));
}

#[test]
fn p_14_a_bucket_of_which_nothing_can_be_read_opens_at_its_end() {
    in_world(7, |world| async move {
        two_objects(&world).await;
        let objects = world.ranges(bucket(1));
        for object in &objects {
            replace(&world, object.object, None).await;
        }
        let found = world.reader().recover_bucket(bucket(1), &objects, Offset(12)).await.unwrap();
        assert_eq!((found.end, found.lost), (Offset(12), vec![range(0, 6), range(6, 12)]));
        assert_eq!((found.producers.len(), found.last_commit_time, found.epochs.len()), (0, None, 0));
    });
}

#[test]
fn p_14_what_is_written_behind_the_loss_has_a_whole_footer_again() {
    in_world(8, |world| async move {
        two_objects(&world).await;
        replace(&world, world.ranges(bucket(1))[1].object, None).await;
        world.take_over(1, 2).await;
        let mut node = world.node(2, &[1, 2]).await;
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        let found = world.recovery(bucket(1)).await;
        assert_eq!((found.producers.as_ref(), found.snapshot_at), (&b"7"[..], Offset(13)));
        assert_eq!((found.lost.len(), found.unreadable.len()), (0, 0));
        let starts: Vec<_> = found.epochs.iter().map(|start| (start.epoch.0, start.start.0)).collect();
        assert_eq!(starts, [(1, 0), (2, 12)]);
        let answer = world.reader().read(&request(&world, 12, 100)).await.unwrap();
        assert_eq!(bases(&answer), [12]);
    });
}

#[test]
fn p_14_an_adopted_object_that_is_gone_costs_its_own_entries() {
    in_world(9, |world| async move {
        let mut node = world.node(1, &[1]).await;
        node.write(1).await;
        node.wal.flush_now().await.unwrap();
        for _ in 0..3 {
            node.write(1).await;
        }
        node.wal.stop().await;
        world.take_over(1, 2).await;
        let objects = world.ranges(bucket(1));
        assert_eq!(objects.len(), 4);
        replace(&world, objects[2].object, None).await;
        let found = world.reader().recover_bucket(bucket(1), &objects, Offset(4)).await.unwrap();
        let entries: Vec<u64> = found.entries.iter().map(|entry| entry.base_offset.0).collect();
        assert_eq!((entries, found.lost, found.snapshot_at), (vec![1, 3], vec![range(2, 3)], Offset(1)));
    });
}

#[test]
fn p_14_many_lost_objects_are_looked_at_together() {
    in_world(10, |world| async move {
        let mut node = world.node(1, &[1]).await;
        for _ in 0..200 {
            node.write(1).await;
            node.wal.flush_now().await.unwrap();
        }
        let objects = world.ranges(bucket(1));
        for object in objects.iter().skip(1) {
            replace(&world, object.object, None).await;
        }
        let before = world.service.now();
        let found = world.reader().recover_bucket(bucket(1), &objects, Offset(200)).await.unwrap();
        assert_eq!((found.lost.len(), found.snapshot_at), (199, Offset(1)));
        let took = world.service.now() - before;
        assert!(took < Duration::from_secs(25), "{took:?}");
    });
}

#[test]
fn p_14_what_the_store_does_not_answer_is_no_damage() {
    in_world(11, |world| async move {
        two_objects(&world).await;
        let (objects, reader) = (world.ranges(bucket(1)), world.reader());
        world.seam.down(true);
        let error = reader.recover_bucket(bucket(1), &objects, Offset(12)).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Retry);
        assert!(!reader.tell_damaged(objects[1].object));
        world.seam.down(false);
        // A gateway that fails over may not find it for a moment.
        world.seam.fault(Op::Get, "", When::Before, FaultAnswer::Status(404), 2);
        let found = reader.recover_bucket(bucket(1), &objects, Offset(12)).await.unwrap();
        assert_eq!((found.snapshot_at, found.lost.len()), (Offset(12), 0));
    });
}

#[test]
fn p_14_an_object_that_was_put_back_is_read_again() {
    in_world(12, |world| async move {
        two_objects(&world).await;
        let (objects, reader) = (world.ranges(bucket(1)), world.reader());
        let bytes = whole(&world, objects[1].object).await;
        replace(&world, objects[1].object, None).await;
        let recover = || reader.recover_bucket(bucket(1), &objects, Offset(12));
        assert_eq!(recover().await.unwrap().snapshot_at, Offset(6));
        replace(&world, objects[1].object, Some(bytes)).await;
        world.sleep(Duration::from_mins(2)).await;
        assert_eq!(recover().await.unwrap().snapshot_at, Offset(12));
        assert_eq!(reader.stats().damaged_objects, 0);
    });
}
