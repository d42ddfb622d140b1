//! Finding offsets by name and by time, in tail and objects.
use super::rig::*;
use mink_router::{Located, Position};
use mink_types::{BucketEpoch, BucketId, Offset, Timestamp};
use s3stream::ChunkEnd;

async fn found(rig: &Rig, bucket: BucketId, position: Position) -> Option<i64> {
    match rig.locate(bucket, position).await.expect("readable") {
        Located::Batch { batch, epoch, .. } => {
            assert_eq!(epoch, BucketEpoch(1));
            Some(bases(&[batch])[0])
        }
        Located::Offset { offset, .. } => Some(offset.kafka()),
        Located::Nothing { .. } => None,
    }
}

async fn by_time(rig: &Rig, bucket: BucketId, time: i64) -> Option<i64> {
    found(rig, bucket, Position::at_or_after(Timestamp(time))).await
}

#[test]
fn k_15_times_are_found_across_objects_and_tail_in_offset_order() {
    sim_with(
        |mut config| {
            config.tail_bytes = 0;
            config
        },
        |rig| async move {
            let bucket = rig.open(0).await;
            assert_eq!(found(&rig, bucket, Position::MaxTimestamp).await, None);
            assert_eq!(by_time(&rig, bucket, 0).await, None);
            let times = [20, 90, 10, 50, 70, 30];
            let entries = rig.stored(bucket, &times.map(|time| batch_at(1, time))).await;
            rig.committed(&entries[..1]).await;
            rig.committed(&entries[1..3]).await;
            rig.committed(&entries[3..4]).await;
            assert_eq!(rig.stats().await.tail_batches, 2);
            for (time, expected) in [(5, Some(0)), (20, Some(0)), (21, Some(1)), (90, Some(1)), (91, None)] {
                assert_eq!(by_time(&rig, bucket, time).await, expected, "at {time}");
            }
            assert_eq!(found(&rig, bucket, Position::MaxTimestamp).await, Some(1));
            assert_eq!(found(&rig, bucket, Position::Earliest).await, Some(0));
            assert_eq!(found(&rig, bucket, Position::Latest).await, Some(6));
        },
    );
}

#[test]
fn i3_what_is_not_durable_is_not_found() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[batch_at(1, 10)]).await;
        let (_, ticket) = rig.ordered(bucket, batch_at(1, 20)).await;
        assert_eq!(by_time(&rig, bucket, 15).await, None);
        assert_eq!(found(&rig, bucket, Position::MaxTimestamp).await, Some(0));
        assert_eq!(found(&rig, bucket, Position::Latest).await, Some(1));
        let (_, told) = rig.chunk().await;
        told(ChunkEnd::Durable);
        assert_eq!(ticket.durable().await.expect("durable").base_offset, Offset(1));
        assert_eq!(by_time(&rig, bucket, 15).await, Some(1));
        assert_eq!(found(&rig, bucket, Position::MaxTimestamp).await, Some(1));
    });
}

#[test]
fn k_15_a_search_goes_on_behind_a_batch_in_objects_and_tail() {
    sim_with(
        |mut config| {
            config.tail_bytes = 0;
            config
        },
        |rig| async move {
            let bucket = rig.open(0).await;
            let times = [50, 60, 10, 70, 20, 80];
            let entries = rig.stored(bucket, &times.map(|time| batch_at(2, time))).await;
            rig.committed(&entries[..2]).await;
            rig.committed(&entries[2..4]).await;
            assert_eq!(rig.stats().await.tail_batches, 2);
            let behind = |time, from| {
                let rig = &rig;
                async move {
                    let position = Position::AtOrAfter { time: Timestamp(time), from: Offset(from) };
                    found(rig, bucket, position).await
                }
            };
            // Batches lie at 0, 2, 4 and so on; one that ends at `from` is passed over, one that holds it is not.
            for (from, expected) in [
                (0, Some(0)),
                (1, Some(0)),
                (2, Some(2)),
                (4, Some(6)),
                (7, Some(6)),
                (8, Some(10)),
                (12, None),
                (u64::MAX, None),
            ] {
                assert_eq!(behind(50, from).await, expected, "behind {from}");
            }
        },
    );
}
