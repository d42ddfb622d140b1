//! Starts that are raised: what readers see then, and what the memory keeps.
use super::rig::*;
use crate::Control;
use mink_router::{Located, Position, ReadError, reply};
use mink_types::{BucketEpoch, BucketId, Offset};

async fn start_at(rig: &Rig, bucket: BucketId, epoch: u32, start: u64) {
    let (reply, answer) = reply();
    let (epoch, start) = (BucketEpoch(epoch), Offset(start));
    rig.control(Control::Start { bucket, epoch, start, reply }).await;
    answer.answer().await.expect("answered");
}

#[test]
fn what_lies_below_a_raised_start_is_out_of_range_and_leaves_the_memory_at_once() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2), batch(2), batch(2)]).await;
        rig.committed(&entries).await;
        assert_eq!(rig.stats().await.tail_batches, 3);
        // Within a batch: that batch stays, for it holds what is kept.
        start_at(&rig, bucket, 1, 3).await;
        assert_eq!(rig.stats().await.tail_batches, 2);
        let outside = ReadError::OutOfRange { bucket, offset: Offset(2), start: Offset(3), end: Offset(6) };
        assert_eq!(rig.read(bucket, 2).await, Err(outside));
        let answer = rig.read(bucket, 3).await.expect("readable");
        assert_eq!((bases(&answer.batches), answer.log_start), (vec![2, 4], Offset(3)));
        let earliest = Located::Offset { offset: Offset(3), epoch: BucketEpoch(1) };
        assert_eq!(rig.locate(bucket, Position::Earliest).await, Ok(earliest));
        // Another epoch's word, and one that goes back, change nothing.
        start_at(&rig, bucket, 2, 6).await;
        start_at(&rig, bucket, 1, 1).await;
        assert_eq!(rig.read(bucket, 3).await.expect("readable").log_start, Offset(3));
        start_at(&rig, bucket, 1, 6).await;
        assert_eq!(rig.stats().await.tail_batches, 0);
        // The log goes on where it was.
        assert_eq!(rig.ordered(bucket, batch(1)).await.0, 6);
    });
}

#[test]
fn i14_what_is_not_durable_is_not_dropped_by_a_start_beyond_it() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[batch(2)]).await;
        let (_, waiting) = rig.ordered(bucket, batch(2)).await;
        start_at(&rig, bucket, 1, 4).await;
        assert_eq!(rig.stats().await.tail_batches, 1);
        let (_, told) = rig.chunk().await;
        told(s3stream::ChunkEnd::Durable);
        assert_eq!(waiting.durable().await.expect("durable").base_offset, Offset(2));
        assert_eq!(bases(&rig.read(bucket, 2).await.expect("readable").batches), [2]);
    });
}

#[test]
fn i20_batches_that_retention_takes_leave_no_place_behind_though_an_older_one_stays() {
    sim(|rig| async move {
        let (idle, busy) = (rig.open(0).await, rig.open(1).await);
        rig.stored(idle, &[batch(1)]).await;
        let mut end = 0;
        for _ in 0..30 {
            let entries = rig.stored(busy, &vec![batch(1); 100]).await;
            end += 100;
            rig.committed(&entries).await;
            start_at(&rig, busy, 1, end).await;
        }
        let stats = rig.stats().await;
        assert_eq!(stats.tail_batches, 1);
        assert!(stats.tail_places <= 2_048, "{} places for one batch", stats.tail_places);
        // Evictions still find what they look for.
        let entries = rig.stored(busy, &[batch(1)]).await;
        rig.committed(&entries).await;
        assert_eq!(
            bases(&rig.read(busy, end).await.expect("readable").batches),
            [i64::try_from(end).expect("small")]
        );
    });
}
