//! Where epochs ended, as a reader is told.
use super::rig::*;
use mink_log::{EpochStart, Recovered};
use mink_router::{EpochEnd, ReadError, Request, reply};
use mink_types::{BucketEpoch, BucketId, Offset};

async fn end_of(
    rig: &Rig,
    bucket: BucketId,
    epoch: u32,
    leader: Option<i32>,
) -> Result<Option<(u32, u64)>, ReadError> {
    let (reply, answer) = reply();
    let asked = Request::EpochEnd { bucket, epoch: BucketEpoch(epoch), leader_epoch: leader, reply };
    assert!(rig.handle.requests.send(asked).await.is_ok(), "the shard runs");
    let found = answer.answer().await.expect("answered")?;
    Ok(found.map(|EpochEnd { epoch, end }| (epoch.0, end.0)))
}

#[test]
fn k_17_an_epoch_ends_where_the_next_that_wrote_began() {
    sim(|rig| async move {
        let bucket = rig.bucket(0);
        let started = |epoch, start| EpochStart { epoch: BucketEpoch(epoch), start: Offset(start) };
        let recovered = Recovered {
            epoch: BucketEpoch(9),
            end: Offset(20),
            epochs: vec![started(2, 0), started(5, 12)],
            ..Recovered::default()
        };
        rig.open_from(bucket, recovered).await.expect("opened");
        let ends = [(1, Some((1, 0))), (2, Some((2, 12))), (4, Some((2, 12))), (5, Some((5, 20)))];
        for (epoch, expected) in ends.into_iter().chain([(8, Some((5, 20))), (9, Some((9, 20))), (10, None)])
        {
            assert_eq!(end_of(&rig, bucket, epoch, None).await, Ok(expected), "epoch {epoch}");
        }
        let differs =
            end_of(&rig, bucket, 5, Some(8)).await.expect_err("a reader that believes in an older epoch");
        assert!(matches!(differs, ReadError::EpochDiffers { found: 8, .. }));
        let (_, ticket) = rig.ordered(bucket, batch_at(3, 10)).await;
        assert_eq!(end_of(&rig, bucket, 9, None).await, Ok(Some((9, 20))), "I3: not durable yet");
        let (_, told) = rig.chunk().await;
        told(s3stream::ChunkEnd::Durable);
        ticket.durable().await.expect("durable");
        assert_eq!(end_of(&rig, bucket, 8, None).await, Ok(Some((5, 20))));
        assert_eq!(end_of(&rig, bucket, 9, None).await, Ok(Some((9, 23))));
    });
}
