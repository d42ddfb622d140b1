//! Appends: offsets, acks, repeats, refusals, back-pressure.
use super::rig::*;
use crate::append::TURN_BYTES;
use mink_log::Recovered;
use mink_router::{AppendError, Appended, Lost};
use mink_types::{BucketEpoch, BucketId, BucketIndex, Offset, TableId};
use s3stream::ChunkEnd;
use std::time::Duration;

#[test]
fn i1_i4_an_ack_waits_for_the_chunk_and_what_is_acked_is_readable() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (base, first) = rig.ordered(bucket, batch(3)).await;
        let (entries, told) = rig.chunk().await;
        let (next, second) = rig.ordered(bucket, batch(2)).await;
        assert_eq!((base, next), (0, 3));
        assert_eq!((entries[0].base_offset, entries[0].count), (Offset(0), 3));
        rig.settle().await;
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert!(
            answer.batches.is_empty() && answer.high_watermark == Offset(0),
            "I3: not durable, not visible"
        );

        told(ChunkEnd::Durable);
        let acked = first.durable().await.expect("durable");
        assert_eq!((acked.base_offset, acked.duplicate), (Offset(0), false));
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert_eq!((bases(&answer.batches), answer.high_watermark), (vec![0], Offset(3)));
        assert!(poll_now(second.durable()).is_none(), "the second is in another chunk");
    });
}

#[test]
fn i5_chunks_are_acked_in_order_whatever_the_order_of_their_ends() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, first) = rig.ordered(bucket, batch(1)).await;
        let (_, first_told) = rig.chunk().await;
        let (_, second) = rig.ordered(bucket, batch(1)).await;
        let (_, second_told) = rig.chunk().await;
        second_told(ChunkEnd::Durable);
        rig.settle().await;
        assert!(rig.read(bucket, 0).await.expect("readable").batches.is_empty());
        first_told(ChunkEnd::Durable);
        assert_eq!(first.durable().await.expect("durable").base_offset, Offset(0));
        assert_eq!(second.durable().await.expect("durable").base_offset, Offset(1));
    });
}

#[test]
fn i6_a_repeat_in_flight_is_answered_when_the_original_is_durable_and_stored_once() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, original) = rig.ordered(bucket, stamped(2, 7, 0)).await;
        let (_, told) = rig.chunk().await;
        let (_, behind) = rig.ordered(bucket, stamped(2, 7, 2)).await;
        let (_, told_behind) = rig.chunk().await;
        let (base, repeat) = rig.ordered(bucket, stamped(2, 7, 0)).await;
        assert_eq!(base, 0);
        rig.settle().await;
        assert_eq!(rig.sink.waiting(), 0, "a repeat makes no entry");
        told(ChunkEnd::Durable);
        assert!(!original.durable().await.expect("durable").duplicate);
        let repeated = rig.append(bucket, stamped(2, 7, 0)).await;
        for ticket in [repeat, repeated] {
            let acked = ticket.durable().await.expect("durable");
            assert_eq!((acked.base_offset, acked.duplicate), (Offset(0), true));
        }
        assert!(poll_now(behind.durable()).is_none(), "what is behind still waits");
        told_behind(ChunkEnd::Durable);
        assert_eq!(rig.stats().await.duplicates, 2);
    });
}

#[test]
fn i7_refusals_come_at_once_and_change_nothing() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let other = rig.bucket(1);
        let unknown = BucketId::unpartitioned(TableId(1), BucketIndex(0));
        assert_eq!(rig.refused(unknown, batch(1)).await, AppendError::NotOwner { bucket: unknown });
        assert_eq!(rig.refused(other, batch(1)).await, AppendError::NotOwner { bucket: other });
        rig.metadata.borrow_mut().open(other);
        rig.send_view().await;
        assert_eq!(rig.refused(other, batch(1)).await, AppendError::Opening { bucket: other });
        let large = rig.refused(bucket, large_batch(2 << 20)).await;
        assert!(matches!(large, AppendError::TooLarge { bytes_max: 1_048_588, .. }), "{large}");
        let gap = rig.refused(bucket, stamped(1, 7, 5)).await;
        assert!(matches!(gap, AppendError::OutOfOrder { .. }), "{gap}");
        rig.settle().await;
        assert_eq!(rig.sink.waiting(), 0);
        assert_eq!(rig.ordered(bucket, batch(1)).await.0, 0);
        let refused = rig.stats().await.refused;
        assert_eq!(
            (refused.not_owner, refused.opening, refused.too_large, refused.out_of_order),
            (2, 1, 1, 1)
        );
    });
}

#[test]
fn back_pressure_a_wal_without_room_stops_appends_and_nothing_else_and_refuses_none() {
    sim_with(
        |mut config| {
            config.lanes.appends = 4;
            config
        },
        |rig| async move {
            let bucket = rig.open(0).await;
            rig.sink.set_room(0);
            let mut tickets = Vec::new();
            for _ in 0..4 {
                tickets.push(rig.append(bucket, batch(1)).await);
            }
            rig.settle().await;
            assert!(poll_now(tickets[0].ordered()).is_none(), "no room, no offset");
            assert!(poll_now(rig.append(bucket, batch(1))).is_none(), "the lane is full: its sender waits");
            // Requests and the node's messages go on.
            assert!(rig.read(bucket, 0).await.is_ok());
            assert_eq!(rig.stats().await.appended_batches, 0);
            rig.sink.set_room(1);
            for mut ticket in tickets {
                // One chunk at a time, as much as waits each time.
                while poll_now(ticket.ordered()).is_none() {
                    if let Some((_, told)) = rig.sink.take() {
                        told(ChunkEnd::Durable);
                    }
                    rig.runtime.service().sleep(Duration::from_micros(100)).await;
                }
            }
            assert_eq!(rig.stats().await.refused, crate::AppendRefusals::default());
        },
    );
}

#[test]
fn back_pressure_chunks_in_flight_are_bounded() {
    sim_with(
        |mut config| {
            config.lanes.chunks = 2;
            config
        },
        |rig| async move {
            let bucket = rig.open(0).await;
            let (_, _first) = rig.ordered(bucket, batch(1)).await;
            let (_, _second) = rig.ordered(bucket, batch(1)).await;
            let mut third = rig.append(bucket, batch(1)).await;
            rig.settle().await;
            assert!(poll_now(third.ordered()).is_none());
            assert_eq!(rig.stats().await.chunks_in_flight, 2);
            let (_, told) = rig.chunk().await;
            told(ChunkEnd::Durable);
            assert!(third.ordered().await.expect("answered").is_ok());
        },
    );
}

#[test]
fn requests_that_never_end_do_not_keep_appends_out() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let rig = std::rc::Rc::new(rig);
        let mut ticket = rig.append(bucket, batch(1)).await;
        let flood = {
            let rig = std::rc::Rc::clone(&rig);
            async move {
                loop {
                    // A full lane of requests at all times.
                    drop(rig.watch(&[(bucket, 0)]).await);
                }
            }
        };
        let both = futures::future::select(Box::pin(flood), Box::pin(ticket.ordered())).await;
        assert!(matches!(both, futures::future::Either::Right((Ok(Ok(_)), _))));
    });
}

#[test]
fn one_copy_tail_and_wal_hold_the_same_bytes_and_the_frame_is_free() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let frame = batch(3);
        rig.stored(bucket, &[batch(5)]).await;
        let entries = rig.stored(bucket, std::slice::from_ref(&frame)).await;
        let answer = rig.read(bucket, 5).await.expect("readable");
        assert_eq!(answer.batches[0].as_ptr(), entries[0].bytes.as_ptr(), "shared");
        assert!(frame.is_unique(), "the frame is not held");
        assert_eq!(bases(&answer.batches), vec![5]);
        assert_eq!(answer.batches[0][12..16], 1_i32.to_be_bytes(), "the leader epoch is the bucket's");
        assert_eq!(answer.batches[0][16..], frame[16..]);
    });
}

#[test]
fn i20_a_chunk_ends_at_a_turns_bytes() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        rig.sink.set_room(0);
        let half = TURN_BYTES / 2;
        let mut tickets = Vec::new();
        for _ in 0..6 {
            tickets.push(rig.append(bucket, large_batch(half)).await);
        }
        rig.settle().await;
        rig.sink.set_room(usize::MAX);
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 6 {
            let (entries, told) = rig.chunk().await;
            told(ChunkEnd::Durable);
            sizes.push(entries.len());
        }
        assert_eq!(sizes, vec![2, 2, 2]);
        for (n, mut ticket) in tickets.into_iter().enumerate() {
            assert!(ticket.ordered().await.expect("answered").is_ok());
            let acked: Result<Appended, Lost> = ticket.durable().await;
            assert_eq!(acked.expect("durable").base_offset, Offset(n as u64));
        }
    });
}

#[test]
fn a_reopened_bucket_takes_nothing_from_chunks_of_its_former_life() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, lost) = rig.ordered(bucket, batch(5)).await;
        let (_, told) = rig.chunk().await;
        rig.control(crate::Control::Close { bucket }).await;
        assert_eq!(lost.durable().await, Err(Lost));
        let recovered = Recovered { epoch: BucketEpoch(2), ..Recovered::default() };
        rig.open_from(bucket, recovered).await.expect("opened");
        let (base, ticket) = rig.ordered(bucket, batch(1)).await;
        assert_eq!(base, 0);
        told(ChunkEnd::Durable);
        rig.settle().await;
        assert!(poll_now(ticket.durable()).is_none());
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert_eq!(answer.high_watermark, Offset(0));
    });
}

#[test]
fn acks_are_timed_from_their_offset_and_what_is_never_acked_is_not_counted() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let (_, ticket) = rig.ordered(bucket, stamped(2, 7, 0)).await;
        let (_, told) = rig.chunk().await;
        let (_, repeat) = rig.ordered(bucket, stamped(2, 7, 0)).await;
        rig.runtime.service().sleep(Duration::from_millis(30)).await;
        told(ChunkEnd::Durable);
        ticket.durable().await.expect("durable");
        repeat.durable().await.expect("durable");
        let (_, lost) = rig.ordered(bucket, stamped(1, 7, 2)).await;
        let (_, told) = rig.chunk().await;
        told(ChunkEnd::Fenced);
        lost.durable().await.expect_err("lost");
        let acks = rig.stats().await.ack_latency;
        assert_eq!(acks.count(), 2, "the batch and its repeat");
        let fifty = Some(Duration::from_millis(50));
        assert!(acks.buckets().any(|bucket| bucket == (fifty, 2)), "{acks:?}");
        assert!(acks.sum() >= Duration::from_millis(60), "{acks:?}");
    });
}

#[test]
fn i7_without_the_lease_what_is_remembered_of_producers_refuses_nothing_for_good() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        // A successor may have taken what comes between.
        rig.runtime.service().sleep(Duration::from_hours(1)).await;
        assert_eq!(rig.refused(bucket, stamped(1, 7, 5)).await, AppendError::NotOwner { bucket });
        rig.lease().await;
        rig.settle().await;
        let told = rig.refused(bucket, stamped(1, 7, 5)).await;
        assert!(matches!(told, AppendError::OutOfOrder { .. }), "{told}");
    });
}
