//! Idempotent producers, as those are told who look after a cluster.
use super::rig::*;
use crate::ShardConfig;
use mink_router::{ReadError, Request, reply};
use mink_types::{BucketId, ProducerId};
use std::time::Duration;

async fn producers(
    rig: &Rig,
    bucket: BucketId,
    from: i64,
    most: usize,
) -> Result<Vec<(i64, i32)>, ReadError> {
    let (reply, answer) = reply();
    let asked = Request::Producers { bucket, from: ProducerId(from), most, reply };
    assert!(rig.handle.requests.send(asked).await.is_ok(), "the shard runs");
    let found = answer.answer().await.expect("answered")?;
    Ok(found.iter().map(|state| (state.producer.0, state.last_sequence.0)).collect())
}

#[test]
fn i3_a_producer_is_told_of_once_its_batch_is_durable_and_by_the_owner_alone() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[stamped(1, 9, 0), stamped(1, 4, 0)]).await;
        let (_, further) = rig.ordered(bucket, stamped(2, 9, 1)).await;
        let (_, first) = rig.ordered(bucket, stamped(1, 7, 0)).await;
        assert_eq!(producers(&rig, bucket, 0, 10).await, Ok(vec![(4, 0), (9, 0)]));
        let mut entries = 0;
        while entries < 2 {
            let (new, told) = rig.chunk().await;
            told(s3stream::ChunkEnd::Durable);
            entries += new.len();
        }
        further.durable().await.expect("durable");
        first.durable().await.expect("durable");
        assert_eq!(producers(&rig, bucket, 0, 10).await, Ok(vec![(4, 0), (7, 0), (9, 2)]));
        assert_eq!(producers(&rig, bucket, 0, 2).await, Ok(vec![(4, 0), (7, 0)]));
        assert_eq!(producers(&rig, bucket, 8, 2).await, Ok(vec![(9, 2)]));
        let other = rig.bucket(1);
        assert_eq!(producers(&rig, other, 0, 2).await, Err(ReadError::NotOwner { bucket: other }));
    });
}

#[test]
fn t_9_producers_that_expire_are_counted_once_each() {
    let short = |mut config: ShardConfig| {
        config.producers.expiry_ms = 10_000;
        config
    };
    sim_with(short, |rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[stamped(1, 9, 0), stamped(1, 4, 0)]).await;
        assert_eq!(rig.stats().await.producers_expired, 0);
        rig.runtime.service().sleep(Duration::from_secs(11)).await;
        rig.lease().await;
        assert_eq!(rig.stats().await.producers_expired, 0, "time passes with what is logged");
        for _ in 0..2 {
            rig.stored(bucket, &[batch(1)]).await;
            let stats = rig.stats().await;
            assert_eq!((stats.producers_expired, stats.producers), (2, 0));
        }
    });
}
