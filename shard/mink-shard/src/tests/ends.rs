//! How things end: release, close, fence, stop.
use super::rig::*;
use crate::{Control, OpenError, ReleaseError, Released, ShardEnd};
use mink_log::Recovered;
use mink_router::{AppendError, Lost, ReadError, Waiting, reply};
use mink_types::{BucketEpoch, BucketId, Offset};
use s3stream::ChunkEnd;

async fn release(rig: &Rig, bucket: BucketId) -> Waiting<Result<Released, ReleaseError>> {
    let (reply, answer) = reply();
    rig.control(Control::Release { bucket, reply }).await;
    answer
}

#[test]
fn a_release_takes_no_more_appends_and_waits_until_all_is_durable() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, ticket) = rig.ordered(bucket, batch(2)).await;
        let (_, told) = rig.chunk().await;
        let mut waiting = Box::pin(release(&rig, bucket).await.answer());
        assert_eq!(rig.refused(bucket, batch(1)).await, AppendError::Draining);
        rig.settle().await;
        assert!(poll_now(&mut waiting).is_none());
        told(ChunkEnd::Durable);
        let released = waiting.await.expect("answered").expect("released");
        assert_eq!((released.end, released.epoch), (Offset(2), BucketEpoch(1)));
        ticket.durable().await.expect("durable");
        assert!(rig.read(bucket, 0).await.is_ok(), "still readable");
        assert!(release(&rig, bucket).await.answer().await.expect("answered").is_ok());
        rig.control(Control::Close { bucket }).await;
        let gone = release(&rig, bucket).await.answer().await.expect("answered");
        assert_eq!(gone, Err(ReleaseError::NotOpen { bucket }));
    });
}

#[test]
fn i5_i7_a_fence_loses_what_is_ordered_and_closes_everything() {
    sim(|rig| async move {
        let (a, b) = (rig.open(0).await, rig.open(1).await);
        rig.stored(b, &[batch(1)]).await;
        let (_, first) = rig.ordered(a, batch(1)).await;
        let (_, told) = rig.chunk().await;
        let (_, second) = rig.ordered(b, batch(1)).await;
        let (_, told_second) = rig.chunk().await;
        let waiting = rig.watch(&[(a, 0)]).await;
        told(ChunkEnd::Fenced);
        assert_eq!(first.durable().await, Err(Lost));
        assert_eq!(second.durable().await, Err(Lost));
        waiting.answer().await.expect("woken");
        // A late word of success changes nothing.
        told_second(ChunkEnd::Durable);
        for bucket in [a, b] {
            assert_eq!(rig.refused(bucket, batch(1)).await, AppendError::NotOwner { bucket });
            assert_eq!(rig.read(bucket, 0).await, Err(ReadError::NotOwner { bucket }));
        }
        let again = Recovered { epoch: BucketEpoch(2), ..Recovered::default() };
        assert_eq!(rig.open_from(a, again).await, Err(OpenError::Fenced));
        let stats = rig.stats().await;
        assert!(
            stats.fenced && stats.buckets == 0 && stats.tail_batches == 0 && stats.appends_in_flight == 0
        );
    });
}

#[test]
fn i5_a_chunk_whose_writer_died_counts_as_fenced() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, ticket) = rig.ordered(bucket, batch(1)).await;
        drop(rig.chunk().await);
        assert_eq!(ticket.durable().await, Err(Lost));
        assert!(rig.stats().await.fenced);
    });
}

#[test]
fn i5_a_wal_that_has_ended_closes_everything_even_without_a_chunk() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.sink.close();
        assert_eq!(rig.refused(bucket, batch(1)).await, AppendError::NotOwner { bucket });
        assert!(rig.stats().await.fenced);
    });
}

#[test]
fn close_all_is_a_fence() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, ticket) = rig.ordered(bucket, batch(1)).await;
        let released = release(&rig, bucket).await;
        rig.control(Control::CloseAll).await;
        assert_eq!(ticket.durable().await, Err(Lost));
        assert_eq!(released.answer().await, Ok(Err(ReleaseError::NotOpen { bucket })));
        assert_eq!(rig.refused(bucket, batch(1)).await, AppendError::NotOwner { bucket });
    });
}

#[test]
fn a_bucket_opens_once_on_its_own_shard_from_sound_state() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let state = Recovered { epoch: BucketEpoch(1), ..Recovered::default() };
        assert_eq!(rig.open_from(bucket, state.clone()).await, Err(OpenError::Open { bucket }));
        let broken = Recovered { start: Offset(5), ..state };
        let other = rig.bucket(1);
        let refused = rig.open_from(other, broken).await;
        assert!(matches!(refused, Err(OpenError::Recover { .. })), "{refused:?}");
        assert_eq!(rig.read(other, 0).await, Err(ReadError::NotOwner { bucket: other }));
    });
    sim_with(
        |mut config| {
            config.shards = 2;
            config
        },
        |rig| async move {
            let mut wrong = 0;
            for index in 0..4 {
                let state = Recovered { epoch: BucketEpoch(1), ..Recovered::default() };
                let opened = rig.open_from(rig.bucket(index), state).await;
                wrong += usize::from(matches!(opened, Err(OpenError::WrongShard { .. })));
            }
            assert_eq!(wrong, 2);
        },
    );
}

#[test]
fn a_chain_that_ends_behind_a_stop_is_no_fence() {
    sim(|mut rig| async move {
        let bucket = rig.open(0).await;
        // More than one turn takes: it comes to the append, and so to the end of the chain, before the stop.
        for _ in 0..20 {
            rig.lease().await;
        }
        rig.control(Control::Stop).await;
        rig.sink.close();
        let mut ticket = rig.append(bucket, batch(1)).await;
        assert_eq!(ticket.ordered().await.map(drop), Err(Lost), "a fence would refuse it");
        rig.cores.take().expect("running").join().await.expect("no panic");
        assert_eq!(*rig.ended.lock().expect("one thread"), Some(ShardEnd::Asked));
    });
}

#[test]
fn a_stop_loses_what_is_not_durable_and_ends_the_pump() {
    sim(|mut rig| async move {
        let bucket = rig.open(0).await;
        let (_, ticket) = rig.ordered(bucket, batch(1)).await;
        rig.control(Control::Stop).await;
        assert_eq!(ticket.durable().await, Err(Lost));
        rig.cores.take().expect("running").join().await.expect("no panic");
        assert_eq!(*rig.ended.lock().expect("one thread"), Some(ShardEnd::Asked));
    });
    sim(|mut rig| async move {
        let cores = rig.cores.take().expect("running");
        cores.stop();
        cores.join().await.expect("no panic");
        assert_eq!(*rig.ended.lock().expect("one thread"), Some(ShardEnd::Cores));
        assert!(
            rig.handle.controls.send(Control::CloseAll).await.is_err(),
            "nobody waits for a shard that ended"
        );
    });
}
