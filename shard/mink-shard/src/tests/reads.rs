//! Reads and watches: tail, objects, order, bounds, lease.
use super::rig::*;
use crate::Control;
use mink_router::{Read, ReadError, Reads, Request, reply};
use mink_types::{Offset, WalNumber};
use s3stream::ChunkEnd;
use std::time::Duration;

fn nothing_in_memory(mut config: crate::ShardConfig) -> crate::ShardConfig {
    config.tail_bytes = 0;
    config
}

#[test]
fn k_14_reads_find_the_batch_that_holds_the_offset() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[batch(2), batch(2)]).await;
        for (from, expected) in [(0, vec![0, 2]), (1, vec![0, 2]), (3, vec![2]), (4, vec![])] {
            let answer = rig.read(bucket, from).await.expect("readable");
            assert_eq!(bases(&answer.batches), expected, "from {from}");
            assert_eq!((answer.high_watermark, answer.log_start), (Offset(4), Offset(0)));
        }
        let outside = ReadError::OutOfRange { bucket, offset: Offset(5), start: Offset(0), end: Offset(4) };
        assert_eq!(rig.read(bucket, 5).await, Err(outside));
    });
}

#[test]
fn a_reader_of_another_epoch_or_of_a_bucket_that_is_not_here_is_told() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let other = rig.bucket(1);
        assert_eq!(rig.read(other, 0).await, Err(ReadError::NotOwner { bucket: other }));
        rig.metadata.borrow_mut().open(other);
        rig.send_view().await;
        assert_eq!(rig.read(other, 0).await, Err(ReadError::Opening { bucket: other }));
        let (sender, answer) = reply();
        let reads = [Some(0), Some(1), Some(2), None].map(|leader_epoch| Read {
            bucket,
            from: Offset(0),
            bytes_max: 10,
            leader_epoch,
        });
        let reads = Request::Reads(Reads { reads: reads.to_vec(), bytes_max: 100, reply: sender });
        assert!(rig.handle.requests.send(reads).await.is_ok());
        let answers = answer.answer().await.expect("answered");
        assert!(matches!(answers[0], Err(ReadError::EpochDiffers { found: 0, .. })));
        assert!(matches!(answers[2], Err(ReadError::EpochDiffers { found: 2, .. })));
        assert!(answers[1].is_ok() && answers[3].is_ok());
    });
}

#[test]
fn kip_74_the_first_read_with_data_gets_a_batch_the_others_what_is_left() {
    sim(|rig| async move {
        let (a, b, empty) = (rig.open(0).await, rig.open(1).await, rig.open(2).await);
        rig.stored(a, &[batch(1), batch(1)]).await;
        rig.stored(b, &[batch(1), batch(1)]).await;
        let one = u32::try_from(batch(1).len()).expect("small");
        let counts = |answers: mink_router::ReadsAnswer| -> Vec<usize> {
            answers.into_iter().map(|answer| answer.expect("readable").batches.len()).collect()
        };
        let reads = [(empty, 0, 1000), (a, 0, 1000), (b, 0, 1000)];
        assert_eq!(counts(rig.read_all(&reads, 1).await), [0, 1, 0]);
        assert_eq!(counts(rig.read_all(&reads, 3 * one).await), [0, 2, 1]);
        assert_eq!(counts(rig.read_all(&[(b, 0, 1), (a, 0, one)], 1000).await), [1, 1]);
        assert_eq!(counts(rig.read_all(&[(b, 0, 1), (a, 0, one - 1)], 1000).await), [1, 0]);
    });
}

#[test]
fn a_watch_is_answered_at_once_when_there_is_more_than_was_seen() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[batch(2)]).await;
        rig.watch(&[(bucket, 1)]).await.answer().await.expect("answered");
        rig.watch(&[(rig.bucket(3), 0)]).await.answer().await.expect("not here: nothing to wait for");
    });
}

#[test]
fn a_watch_is_woken_by_what_becomes_durable_not_by_what_is_ordered() {
    sim(|rig| async move {
        let (a, b) = (rig.open(0).await, rig.open(1).await);
        let mut waiting = Box::pin(rig.watch(&[(a, 0), (b, 0)]).await.answer());
        let (_, ticket) = rig.ordered(b, batch(1)).await;
        let (_, told) = rig.chunk().await;
        rig.settle().await;
        assert!(poll_now(&mut waiting).is_none());
        told(ChunkEnd::Durable);
        waiting.await.expect("woken");
        ticket.durable().await.expect("durable");
        let answer = rig.read(b, 0).await.expect("readable");
        assert_eq!(answer.high_watermark, Offset(1));
    });
}

#[test]
fn a_watch_is_woken_when_its_bucket_closes() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let waiting = rig.watch(&[(bucket, 0)]).await;
        rig.control(Control::Close { bucket }).await;
        waiting.answer().await.expect("woken");
        assert!(rig.read(bucket, 0).await.is_err());
    });
}

#[test]
fn i20_committed_batches_leave_the_tail_beyond_the_budget_and_are_read_from_objects() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2), batch(2), batch(2)]).await;
        assert_eq!(rig.stats().await.tail_batches, 3, "not committed: kept beyond the budget");
        rig.committed(&entries[..2]).await;
        assert_eq!(rig.stats().await.tail_batches, 1);
        let answer = rig.read(bucket, 1).await.expect("readable");
        assert_eq!(bases(&answer.batches), vec![0, 2]);
        assert_eq!(answer.high_watermark, Offset(6));
        let answer = rig.read(bucket, 4).await.expect("readable");
        assert_eq!(bases(&answer.batches), vec![4]);
        let stats = rig.stats().await;
        assert_eq!((stats.reads_object, stats.reads_tail, rig.objects.reads()), (1, 1, 1));
    });
}

#[test]
fn i3_objects_show_nothing_beyond_the_high_watermark() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let mut entries = rig.stored(bucket, &[batch(2)]).await;
        // The commit is in the view before the word that the second chunk is durable has come.
        let (_, ticket) = rig.ordered(bucket, batch(3)).await;
        let (new, told) = rig.chunk().await;
        entries.extend(new);
        rig.committed(&entries).await;
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert_eq!((bases(&answer.batches), answer.high_watermark), (vec![0], Offset(2)));
        assert_eq!(rig.objects.reads(), 1);
        told(ChunkEnd::Durable);
        ticket.durable().await.expect("durable");
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert_eq!((bases(&answer.batches), answer.high_watermark), (vec![0, 2], Offset(5)));
    });
}

#[test]
fn within_the_budget_nothing_is_read_from_the_store() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2), batch(2)]).await;
        rig.committed(&entries).await;
        assert_eq!(bases(&rig.read(bucket, 0).await.expect("readable").batches), vec![0, 2]);
        assert_eq!(rig.objects.reads(), 0);
    });
}

#[test]
fn answers_come_in_the_order_asked_whether_from_tail_or_object() {
    sim_with(nothing_in_memory, |rig| async move {
        let (cold, hot) = (rig.open(0).await, rig.open(1).await);
        let entries = rig.stored(cold, &[batch(1), batch(1)]).await;
        rig.stored(hot, &[batch(3)]).await;
        rig.committed(&entries).await;
        let reads = [(hot, 0, 1000), (cold, 0, 1000), (hot, 3, 1000), (cold, 1, 1000)];
        let answers = rig.read_all(&reads, 100_000).await;
        let found: Vec<_> =
            answers.into_iter().map(|answer| bases(&answer.expect("readable").batches)).collect();
        assert_eq!(found, vec![vec![0], vec![0, 1], vec![], vec![1]]);
    });
}

#[test]
fn bytes_bound_what_comes_from_objects_too() {
    sim_with(nothing_in_memory, |rig| async move {
        let (a, b) = (rig.open(0).await, rig.open(1).await);
        for bucket in [a, b] {
            let entries = rig.stored(bucket, &[batch(1), batch(1), batch(1)]).await;
            rig.committed(&entries).await;
        }
        let one = u32::try_from(batch(1).len()).expect("small");
        let counts = |answers: mink_router::ReadsAnswer| -> Vec<usize> {
            answers.into_iter().map(|answer| answer.expect("readable").batches.len()).collect()
        };
        assert_eq!(counts(rig.read_all(&[(a, 0, 1), (b, 0, 1)], 1000).await), [1, 0]);
        assert_eq!(counts(rig.read_all(&[(a, 0, 2 * one), (b, 0, 2 * one)], 3 * one).await), [2, 1]);
    });
}

#[test]
fn a_missing_object_is_looked_for_once_more() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2)]).await;
        let object = rig.committed(&entries).await;
        rig.objects.miss_once(object);
        assert_eq!(bases(&rig.read(bucket, 0).await.expect("readable").batches), vec![0]);
        assert_eq!((rig.stats().await.reads_replanned, rig.objects.reads()), (1, 2));
    });
}

/// I2: retention deletes an object that a read is about to take. The log begins further on then: that is the answer, and no other object is
/// asked for what none has.
#[test]
fn a_read_whose_object_retention_has_taken_is_out_of_range() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let mut objects = Vec::new();
        for entry in &rig.stored(bucket, &[batch(2), batch(2)]).await {
            objects.push(rig.committed(std::slice::from_ref(entry)).await);
        }
        rig.objects.set_delay(Duration::from_millis(50));
        rig.objects.delete(objects[0]);
        let taken = async {
            rig.runtime.service().sleep(Duration::from_millis(20)).await;
            let (reply, answer) = reply();
            let (epoch, start) = (mink_types::BucketEpoch(1), Offset(2));
            rig.control(Control::Start { bucket, epoch, start, reply }).await;
            answer.answer().await.expect("answered");
        };
        let (answer, ()) = futures::future::join(rig.read(bucket, 0), taken).await;
        let outside = ReadError::OutOfRange { bucket, offset: Offset(0), start: Offset(2), end: Offset(4) };
        assert_eq!((answer, rig.objects.reads()), (Err(outside), 1));
        assert_eq!(bases(&rig.read(bucket, 2).await.expect("readable").batches), vec![2]);
    });
}

#[test]
fn p_14_a_lost_object_fails_its_own_range_only() {
    sim_with(nothing_in_memory, |rig| async move {
        let (p0, p1) = (rig.open(0).await, rig.open(1).await);
        let entries = rig.stored(p0, &[batch(10), batch(10), batch(10)]).await;
        let mut objects = Vec::new();
        for entry in &entries {
            objects.push(rig.committed(std::slice::from_ref(entry)).await);
        }
        rig.stored(p1, &[batch(1)]).await;
        rig.objects.delete(objects[1]);
        let answers =
            rig.read_all(&[(p0, 0, 1000), (p0, 10, 1000), (p0, 20, 1000), (p1, 0, 1000)], 100_000).await;
        assert_eq!(bases(&answers[0].as_ref().expect("readable").batches), vec![0], "never a later offset");
        assert!(
            matches!(&answers[1], Err(ReadError::Damaged { offset: Offset(10), object, .. }) if *object == objects[1]),
            "{:?}",
            answers[1]
        );
        assert_eq!(bases(&answers[2].as_ref().expect("readable").batches), vec![20]);
        assert_eq!(bases(&answers[3].as_ref().expect("readable").batches), vec![0]);
        // The chain of this node is not touched by it.
        assert_eq!(
            rig.metadata.borrow().state.incarnation(rig.metadata.borrow().me).map(|s| s.trim),
            Some(WalNumber(0))
        );
    });
}

#[test]
fn i5_no_read_without_a_lease() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.stored(bucket, &[batch(1)]).await;
        rig.runtime.service().sleep(Duration::from_millis(3_600_001)).await;
        assert_eq!(rig.read(bucket, 0).await, Err(ReadError::LeaseExpired));
        assert_eq!(rig.locate(bucket, mink_router::Position::Latest).await, Err(ReadError::LeaseExpired));
        // Acks need none: the chain itself is the fence.
        let (_, ticket) = rig.ordered(bucket, batch(1)).await;
        let (_, told) = rig.chunk().await;
        told(ChunkEnd::Durable);
        ticket.durable().await.expect("durable");
        rig.lease().await;
        assert!(rig.read(bucket, 0).await.is_ok());
    });
}

#[test]
fn i5_a_lease_that_ends_while_an_object_is_read_lets_no_answer_out() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(1)]).await;
        rig.committed(&entries).await;
        rig.objects.set_delay(Duration::from_secs(4000));
        assert_eq!(rig.read(bucket, 0).await, Err(ReadError::LeaseExpired));
        rig.lease_for(Duration::from_secs(10_000)).await;
        rig.objects.set_delay(Duration::from_millis(1));
        assert!(rig.read(bucket, 0).await.is_ok());
    });
}

#[test]
fn i5_a_bucket_that_closes_while_an_object_is_read_lets_no_answer_out() {
    sim_with(nothing_in_memory, |rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(1)]).await;
        rig.committed(&entries).await;
        rig.objects.set_delay(Duration::from_millis(50));
        let close = async {
            rig.runtime.service().sleep(Duration::from_millis(20)).await;
            rig.control(Control::Close { bucket }).await;
        };
        let (answer, ()) = futures::future::join(rig.read(bucket, 0), close).await;
        // The view still says that it is ours.
        assert_eq!(answer, Err(ReadError::Opening { bucket }));
    });
}

#[test]
fn i20_object_reads_in_flight_are_bounded_in_number_and_none_is_lost() {
    bounded_reads(|mut config| {
        config.lanes.reads = 2;
        config
    });
}

#[test]
fn i20_object_reads_in_flight_are_bounded_in_bytes_and_none_is_lost() {
    bounded_reads(|mut config| {
        config.object_read_bytes_max = 1;
        config
    });
}

fn bounded_reads(change: impl Fn(crate::ShardConfig) -> crate::ShardConfig + Copy + 'static) {
    sim_with(
        move |config| change(nothing_in_memory(config)),
        |rig| async move {
            let bucket = rig.open(0).await;
            let entries = rig.stored(bucket, &[batch(1)]).await;
            rig.committed(&entries).await;
            rig.objects.set_delay(Duration::from_millis(10));
            let reads = (0..20).map(|_| rig.read(bucket, 0));
            let mut all = Box::pin(futures::future::join_all(reads));
            assert!(poll_now(&mut all).is_none());
            rig.settle().await;
            let in_flight = rig.stats().await.object_reads_in_flight;
            assert!(in_flight <= 2, "{in_flight}");
            for answer in all.await {
                assert_eq!(bases(&answer.expect("readable").batches), vec![0]);
            }
            assert_eq!(rig.stats().await.object_reads_in_flight, 0);
        },
    );
}

#[test]
fn i20_waits_beyond_the_bound_end_at_once_and_are_counted() {
    let few = |config| crate::ShardConfig { watched_max: 2, ..config };
    sim_with(few, |rig| async move {
        let bucket = rig.open(0).await;
        let waiting = [rig.watch(&[(bucket, 0)]).await, rig.watch(&[(bucket, 0)]).await];
        let over = rig.watch(&[(bucket, 0)]).await;
        over.answer().await.expect("answered, though nothing has come");
        assert_eq!(rig.stats().await.watches_refused, 1);
        let mut waiting = waiting.into_iter();
        assert!(waiting.all(|waits| poll_now(waits.answer()).is_none()), "the others wait on");
    });
}
