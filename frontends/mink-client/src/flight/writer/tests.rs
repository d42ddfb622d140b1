//! What a writer does when things go right, and when they do not.
mod partitions;

use super::{Placed, Stored, WriterBuilder, WriterId};
use crate::flight::FlightErrorKind;
use crate::flight::fake::{Fake, Fault, batch, eventually};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mink_record::arrow::Buckets;
use mink_types::schema::{DataType, Field, Schema, SchemaDraft};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

fn placed(bucket: u32, base_offset: u64, rows: u64) -> Placed {
    Placed { partition: 0, bucket, base_offset, rows }
}

/// Lets others do all they can: several answers of the same server come back behind whatever they have sent until then.
async fn others_turn(fake: &Fake) {
    for _ in 0..10 {
        fake.client().await.tables("").await.expect("it answers");
    }
}

/// Every write is a batch of its own.
async fn writer(fake: &Fake) -> WriterBuilder {
    fake.client().await.writer("sales.orders").batch_bytes(1)
}

#[tokio::test]
async fn small_writes_travel_together_and_each_is_told_its_rows() {
    let fake = Fake::start(1).await;
    let builder = fake.client().await.writer("sales.orders").linger(Duration::from_mins(1));
    let writer = builder.open().await.expect("it opens");
    let first = writer.write(batch(0..3)).await.expect("it is taken");
    let second = writer.write(batch(3..5)).await.expect("it is taken");
    let stored = writer.flush().await.expect("they are stored");
    assert_eq!(stored, [Stored { partition: 0, bucket: 0, first_offset: 0, end_offset: 5, rows: 5 }]);
    assert_eq!(first.await, Ok(vec![placed(0, 0, 3)]));
    assert_eq!(second.await, Ok(vec![placed(0, 3, 2)]));
    assert_eq!(fake.table().attempts, [(0, None, 5)], "one batch");
    assert_eq!(writer.close().await, Ok(Vec::new()), "nothing since the flush");
}

#[tokio::test]
async fn lingering_rows_go_without_a_flush() {
    let fake = Fake::start(1).await;
    let writer = fake
        .client()
        .await
        .writer("sales.orders")
        .linger(Duration::from_millis(1))
        .open()
        .await
        .expect("opens");
    let receipt = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(receipt.await, Ok(vec![placed(0, 0, 1)]));
}

#[tokio::test]
async fn batches_are_sent_before_those_ahead_are_acked_and_no_more_than_may_be() {
    let fake = Fake::start(1).await;
    fake.acks.send_replace(false);
    let writer = writer(&fake).await.in_flight(3).open().await.expect("it opens");
    let mut receipts = Vec::new();
    for number in 0..6 {
        receipts.push(writer.write(batch(number..number + 1)).await.expect("it is taken"));
    }
    eventually("three are on their way", || fake.table().attempts.len() == 3).await;
    others_turn(&fake).await;
    assert_eq!(fake.table().attempts.len(), 3);
    fake.acks.send_replace(true);
    for (offset, receipt) in (0..).zip(receipts) {
        assert_eq!(receipt.await, Ok(vec![placed(0, offset, 1)]));
    }
    assert_eq!(fake.table().streams, 1);
}

#[tokio::test]
async fn a_batch_whose_ack_is_lost_is_stored_once_by_an_idempotent_writer() {
    let fake = Fake::start(1).await;
    fake.script([Fault::Take, Fault::LoseAck, Fault::Take]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    let mut receipts = Vec::new();
    for number in 0..8 {
        receipts.push(writer.write(batch(2 * number..2 * number + 2)).await.expect("it is taken"));
    }
    for (number, receipt) in (0..).zip(receipts) {
        assert_eq!(receipt.await, Ok(vec![placed(0, 2 * number, 2)]));
    }
    assert_eq!(fake.values(0), (0..16).collect::<Vec<_>>());
    let repeated = fake.table().attempts.iter().filter(|(_, sequence, _)| *sequence == Some(2)).count();
    assert_eq!(repeated, 2, "the lost one was sent again under its sequence");
}

#[tokio::test]
async fn a_lost_batch_and_a_bad_answer_are_made_good_in_order() {
    let fake = Fake::start(1).await;
    fake.script([
        Fault::LoseBatch,
        Fault::Refuse(Code::Unavailable),
        Fault::StoreAndRefuse(Code::Unknown),
        Fault::Take,
        Fault::StoreAndRefuse(Code::Internal),
    ]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    for number in 0..20 {
        drop(writer.write(batch(number..number + 1)).await.expect("it is taken"));
    }
    let stored = writer.close().await.expect("all are stored");
    assert_eq!(stored, [Stored { partition: 0, bucket: 0, first_offset: 0, end_offset: 20, rows: 20 }]);
    assert_eq!(fake.values(0), (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_plain_writer_sends_again_and_may_store_twice() {
    let fake = Fake::start(1).await;
    fake.script([Fault::LoseAck]);
    let writer = writer(&fake).await.open().await.expect("it opens");
    let receipt = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(receipt.await, Ok(vec![placed(0, 1, 1)]));
    assert_eq!(fake.values(0), [0, 0]);
}

#[tokio::test]
async fn a_refused_batch_fails_alone_and_leaves_its_sequences_to_those_behind() {
    let fake = Fake::start(1).await;
    fake.script([Fault::Take, Fault::Refuse(Code::InvalidArgument)]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    let mut receipts = Vec::new();
    for number in 0..4 {
        receipts.push(writer.write(batch(number..number + 1)).await.expect("it is taken"));
    }
    let mut ends = Vec::new();
    for receipt in receipts {
        ends.push(receipt.await.map_err(|error| error.kind()));
    }
    let expected = [
        Ok(vec![placed(0, 0, 1)]),
        Err(FlightErrorKind::Refused),
        Ok(vec![placed(0, 1, 1)]),
        Ok(vec![placed(0, 2, 1)]),
    ];
    assert_eq!(ends, expected);
    assert_eq!(fake.values(0), [0, 2, 3]);
    assert_eq!(writer.flush().await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert!(writer.close().await.is_ok(), "the error was told");
}

#[tokio::test]
async fn a_batch_that_may_be_stored_is_not_told_as_refused_and_ends_its_writer() {
    let fake = Fake::start(1).await;
    fake.script([Fault::LoseAck, Fault::Refuse(Code::InvalidArgument)]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    let first = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(first.await.map_err(|error| error.kind()), Err(FlightErrorKind::Unknown));
    let second = writer.write(batch(1..2)).await.expect("it is taken");
    assert_eq!(second.await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(fake.values(0), [0]);
}

#[tokio::test]
async fn a_fenced_writer_is_told_of_a_conflict() {
    let fake = Fake::start(1).await;
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    fake.table().fence(0, writer.id().expect("it has a name").0);
    let receipt = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(receipt.await.map_err(|error| error.kind()), Err(FlightErrorKind::Conflict));
    let receipt = writer.write(batch(1..2)).await.expect("it is taken");
    assert_eq!(receipt.await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
}

#[tokio::test]
async fn what_is_not_acked_in_time_is_unknown_and_a_plain_writer_goes_on() {
    let fake = Fake::start(1).await;
    fake.acks.send_replace(false);
    let writer =
        writer(&fake).await.delivery_timeout(Duration::from_millis(300)).open().await.expect("it opens");
    let sent = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(sent.await.map_err(|error| error.kind()), Err(FlightErrorKind::Unknown));
    fake.acks.send_replace(true);
    let later = writer.write(batch(1..2)).await.expect("it is taken");
    assert_eq!(later.await, Ok(vec![placed(0, 1, 1)]));
}

#[tokio::test]
async fn what_is_not_acked_in_time_ends_an_idempotent_writer() {
    let fake = Fake::start(1).await;
    fake.acks.send_replace(false);
    let builder = writer(&fake).await.idempotent().delivery_timeout(Duration::from_millis(300));
    let writer = builder.open().await.expect("it opens");
    let sent = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(sent.await.map_err(|error| error.kind()), Err(FlightErrorKind::Unknown));
    fake.acks.send_replace(true);
    let later = writer.write(batch(1..2)).await.expect("it is taken");
    assert_eq!(later.await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(fake.values(0), [0]);
}

#[tokio::test]
async fn what_was_never_sent_is_refused() {
    let fake = Fake::start(1).await;
    let builder = writer(&fake).await.idempotent().delivery_timeout(Duration::from_millis(300));
    let writer = builder.open().await.expect("it opens");
    fake.close();
    eventually("nobody listens", || fake.is_closed()).await;
    let receipt = writer.write(batch(0..1)).await.expect("it is taken");
    assert_eq!(receipt.await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(fake.values(0), [0; 0]);
}

#[tokio::test]
async fn a_resumed_writer_goes_on_behind_what_is_stored() {
    let fake = Fake::start(2).await;
    let first = writer(&fake).await.bucket(1).idempotent().open().await.expect("it opens");
    drop(first.write(batch(0..3)).await.expect("it is taken"));
    let id = first.id().expect("it has a name");
    first.close().await.expect("they are stored");
    let again = writer(&fake).await.bucket(1).resume(id).open().await.expect("it opens");
    assert_eq!((again.stored_rows(0), again.stored_rows(1)), (0, 3));
    let receipt = again.write(batch(3..5)).await.expect("it is taken");
    assert_eq!(receipt.await, Ok(vec![placed(1, 3, 2)]));
    assert_eq!(fake.values(1), (0..5).collect::<Vec<_>>());
    let unheard_of = writer(&fake).await.resume(WriterId(99)).open().await.expect("it opens");
    assert_eq!(unheard_of.stored_rows(1), 0);
}

#[tokio::test]
async fn rows_that_are_not_acked_are_bounded_in_bytes() {
    let fake = Fake::start(1).await;
    fake.acks.send_replace(false);
    // Each batch has 100 rows of 8 bytes.
    let writer = Arc::new(writer(&fake).await.unacked_bytes(2_000).open().await.expect("it opens"));
    drop(writer.write(batch(0..100)).await.expect("it is taken"));
    drop(writer.write(batch(100..200)).await.expect("it is taken"));
    let third = tokio::spawn({
        let writer = Arc::clone(&writer);
        async move { writer.write(batch(200..300)).await }
    });
    eventually("two are stored", || fake.table().attempts.len() == 2).await;
    others_turn(&fake).await;
    assert!(!third.is_finished(), "there is no room");
    fake.acks.send_replace(true);
    let receipt = third.await.expect("it does not panic").expect("there is room again");
    assert_eq!(receipt.await, Ok(vec![placed(0, 200, 100)]));
    // What is more than the bound goes alone.
    let large = writer.write(batch(300..1_300)).await.expect("it is taken");
    assert_eq!(large.await, Ok(vec![placed(0, 300, 1_000)]));
}

#[tokio::test]
async fn the_buckets_of_a_table_take_turns_each_with_its_own_sequences() {
    let fake = Fake::start(3).await;
    fake.script([Fault::LoseAck]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    for number in 0..9 {
        drop(writer.write(batch(number..number + 1)).await.expect("it is taken"));
    }
    let stored = writer.close().await.expect("all are stored");
    assert_eq!(
        stored.iter().map(|stored| (stored.bucket, stored.rows)).collect::<Vec<_>>(),
        [(0, 3), (1, 3), (2, 3)]
    );
    let mut all: Vec<_> = (0..3).flat_map(|bucket| fake.values(bucket)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..9).collect::<Vec<_>>());
}

/// Where rows of the fake's table with so many buckets belong, by the key's hash.
fn buckets_of(rows: &RecordBatch, buckets: u32) -> Vec<u32> {
    let key = SchemaDraft {
        columns: vec![Field::new("id", DataType::BigInt)],
        bucket_key: vec!["id".into()],
        ..SchemaDraft::default()
    };
    let key = Schema::create(key).expect("a sound schema");
    Buckets::new(&key, buckets).expect("it has a key").of(rows).expect("sound rows")
}

/// I6
#[tokio::test]
async fn rows_with_a_key_go_to_their_buckets_in_order_and_once_whatever_breaks() {
    let fake = Fake::start(3).await;
    fake.table().bucket_key = vec!["id".into()];
    fake.script([Fault::Take, Fault::LoseAck, Fault::Take, Fault::LoseBatch]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    for number in 0..10 {
        drop(writer.write(batch(20 * number..20 * number + 20)).await.expect("it is taken"));
    }
    let stored = writer.close().await.expect("all are stored");
    assert_eq!(stored.iter().map(|stored| stored.rows).sum::<u64>(), 200);
    let all = buckets_of(&batch(0..200), 3);
    for bucket in 0..3 {
        let expected: Vec<_> =
            (0..200).zip(&all).filter(|(_, of)| **of == bucket).map(|(id, _)| id).collect();
        assert!(expected.len() > 20, "the hash spreads them");
        assert_eq!(fake.values(bucket), expected);
    }
}

#[tokio::test]
async fn the_receipt_of_rows_of_several_buckets_tells_all_their_places() {
    let fake = Fake::start(4).await;
    fake.table().bucket_key = vec!["id".into()];
    let writer = writer(&fake).await.open().await.expect("it opens");
    let receipt = writer.write(batch(0..100)).await.expect("it is taken");
    let placed = receipt.await.expect("they are stored");
    assert_eq!(placed.iter().map(|placed| placed.bucket).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(placed.iter().map(|placed| placed.rows).sum::<u64>(), 100);
}

/// I7
#[tokio::test]
async fn a_write_that_is_refused_in_one_bucket_alone_is_unknown_as_a_whole() {
    let fake = Fake::start(2).await;
    fake.table().bucket_key = vec!["id".into()];
    fake.script([Fault::Refuse(Code::InvalidArgument)]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    let receipt = writer.write(batch(0..50)).await.expect("it is taken");
    assert_eq!(receipt.await.map_err(|error| error.kind()), Err(FlightErrorKind::Unknown));
}

#[tokio::test]
async fn rows_that_may_go_to_any_bucket_cannot_be_replayed() {
    let fake = Fake::start(2).await;
    let error = writer(&fake).await.replay(WriterId(1)).open().await.expect_err("nobody could tell");
    assert_eq!(error.kind(), FlightErrorKind::Refused);
    assert!(writer(&fake).await.replay(WriterId(1)).bucket(1).open().await.is_ok());
}

#[tokio::test]
async fn rows_of_other_columns_have_a_stream_of_their_own() {
    let fake = Fake::start(1).await;
    let writer = fake
        .client()
        .await
        .writer("sales.orders")
        .linger(Duration::from_mins(1))
        .open()
        .await
        .expect("opens");
    let wrong = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let wrong = RecordBatch::try_from_iter([("other", wrong)]).expect("one column");
    let first = writer.write(batch(0..1)).await.expect("it is taken");
    let refused = writer.write(wrong).await.expect("it is taken");
    let last = writer.write(batch(1..2)).await.expect("it is taken");
    assert_eq!(writer.flush().await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(first.await, Ok(vec![placed(0, 0, 1)]));
    assert_eq!(refused.await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(last.await, Ok(vec![placed(0, 1, 1)]));
    assert_eq!(fake.table().streams, 2);
}

#[tokio::test]
async fn what_cannot_be_had_is_refused_before_anything_is_sent() {
    let fake = Fake::start(1).await;
    let client = fake.client().await;
    let kind = async |builder: WriterBuilder| builder.open().await.expect_err("it is refused").kind();
    assert_eq!(kind(client.writer("sales.orders").idempotent().in_flight(6)).await, FlightErrorKind::Refused);
    assert_eq!(kind(client.writer("orders")).await, FlightErrorKind::Refused);
    assert_eq!(kind(client.writer("sales.nothing")).await, FlightErrorKind::NotFound);
    let writer = client.writer("sales.orders").open().await.expect("it opens");
    assert_eq!(writer.write(batch(0..0)).await.expect("no rows are nothing").await, Ok(Vec::new()));
}
