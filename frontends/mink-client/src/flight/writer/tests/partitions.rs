//! Rows that name their partition: it is made with its first row, dropped under its writer, and made anew.
use super::*;

/// I6
#[tokio::test]
async fn partitions_are_made_with_their_first_row_and_have_sequences_of_their_own() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    fake.script([Fault::LoseAck]);
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    for _ in 0..3 {
        drop(writer.write(batch(7..10)).await.expect("it is taken"));
    }
    writer.flush().await.expect("all are stored");
    let partitions = fake.table().partitions.clone();
    assert_eq!(partitions.keys().collect::<Vec<_>>(), ["7", "8", "9"]);
    for (value, partition) in partitions {
        let value = value.parse::<i64>().expect("a number");
        assert_eq!(fake.values_in(partition, 0), [value; 3]);
    }
}

#[tokio::test]
async fn a_partition_that_somebody_dropped_is_made_again() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let writer = writer(&fake).await.open().await.expect("it opens");
    writer.write(batch(7..8)).await.expect("it is taken").await.expect("it is stored");
    fake.drop_partition("7");
    fake.script([Fault::Refuse(Code::NotFound)]);
    let placed = writer.write(batch(7..8)).await.expect("it is taken").await;
    assert_eq!(placed.map(|placed| placed.len()), Ok(1));
    assert_eq!(fake.table().partitions.len(), 1);
}

/// I6: where the partition was dropped and another has its values, an idempotent writer begins with 0; rows of which nobody knows whether
/// they were stored before are stored once in it.
#[tokio::test]
async fn a_writer_counts_from_0_in_a_partition_that_was_made_anew() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let writer = writer(&fake).await.idempotent().batch_bytes(1).open().await.expect("it opens");
    for _ in 0..4 {
        writer.write(batch(7..8)).await.expect("it is taken").await.expect("it is stored");
    }
    // Dropped under an open stream; by somebody who makes it again; and while an ack is lost.
    fake.drop_partition("7");
    fake.script([Fault::Refuse(Code::NotFound)]);
    writer.write(batch(7..8)).await.expect("it is taken").await.expect("it is stored");
    let second = fake.table().partitions["7"];
    assert_eq!(fake.values_in(second, 0), [7]);
    fake.drop_partition("7");
    let third = fake.make_partition("7");
    fake.script([Fault::Refuse(Code::NotFound)]);
    writer.write(batch(7..8)).await.expect("it is taken").await.expect("it is stored");
    assert_eq!(fake.values_in(third, 0), [7]);
    fake.acks.send_replace(false);
    let lost = writer.write(batch(7..8)).await.expect("it is taken");
    eventually("it is stored", || fake.values_in(third, 0).len() == 2).await;
    fake.drop_partition("7");
    fake.cut_connections();
    fake.acks.send_replace(true);
    assert_eq!(lost.await.map(|placed| placed.len()), Ok(1));
    let fourth = fake.table().partitions["7"];
    assert_eq!(fake.values_in(fourth, 0), [7]);
    writer.close().await.expect("all went well");
}

/// I1, I6: a server that wrongly says that the partition is gone makes nobody count from 0: its rows would be taken for repeats.
#[tokio::test]
async fn a_writer_counts_on_in_a_partition_that_was_never_gone() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let writer = writer(&fake).await.idempotent().batch_bytes(1).open().await.expect("it opens");
    for round in 0..6 {
        fake.script([
            Fault::Refuse(Code::NotFound),
            if round % 2 == 0 { Fault::LoseAck } else { Fault::Take },
        ]);
        writer.write(batch(7..8)).await.expect("it is taken").await.expect("it is stored");
    }
    assert_eq!(fake.values_in(1, 0), [7; 6]);
    writer.close().await.expect("all went well");
}

/// More places than streams: lanes take turns, none waits for ever.
#[tokio::test]
async fn rows_of_many_more_partitions_than_streams_are_all_stored() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    for _ in 0..3 {
        drop(writer.write(batch(0..150)).await.expect("it is taken"));
    }
    let stored = writer.close().await.expect("all are stored");
    assert_eq!((stored.len(), stored.iter().map(|stored| stored.rows).sum::<u64>()), (150, 450));
}

/// I6: when rows go to more places than a writer has tasks for, those end and begin anew where they stood.
#[tokio::test]
async fn a_writer_outlives_more_partitions_than_it_writes_to_at_a_time() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let mut writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    writer.lanes_max = 10;
    let mut receipts = Vec::new();
    for _ in 0..3 {
        for first in 0..25 {
            receipts.push(writer.write(batch(first..first + 3)).await.expect("it is taken"));
        }
    }
    let stored = writer.flush().await.expect("all are stored");
    assert_eq!((stored.len(), stored.iter().map(|stored| stored.rows).sum::<u64>()), (27, 225));
    for receipt in receipts {
        assert_eq!(receipt.await.map(|placed| placed.len()), Ok(3));
    }
    let refused = writer.write(batch(0..11)).await.expect_err("more places than there are tasks");
    assert!(refused.message().contains("write fewer at once"), "{refused}");
    assert_eq!(writer.close().await, Ok(Vec::new()), "all was told");
    let partitions = fake.table().partitions.clone();
    for (value, partition) in partitions {
        let value = value.parse::<i64>().expect("a number");
        let writes = (0..25).filter(|first| (*first..first + 3).contains(&value)).count();
        assert_eq!(fake.values_in(partition, 0).len(), 3 * writes, "partition {value}");
    }
}

/// I7: a place that must take nothing more does not begin anew.
#[tokio::test]
async fn a_place_whose_writer_was_fenced_stays_closed_after_its_task_has_ended() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let mut writer = writer(&fake).await.idempotent().open().await.expect("it opens");
    writer.lanes_max = 1;
    fake.script([Fault::Refuse(Code::Aborted)]);
    let fenced = writer.write(batch(0..1)).await.expect("it is taken").await;
    assert_eq!(fenced.map_err(|error| error.kind()), Err(FlightErrorKind::Conflict));
    let other = writer.write(batch(1..2)).await.expect("it is taken").await;
    assert_eq!(other.map(|placed| placed.len()), Ok(1));
    let after = writer.write(batch(0..1)).await.expect("it is taken").await;
    assert_eq!(after.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    assert_eq!(writer.close().await.map_err(|error| error.kind()), Err(FlightErrorKind::Conflict));
}

/// I6
#[tokio::test]
async fn a_source_that_is_read_again_is_stored_once_in_every_partition() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let first = writer(&fake).await.idempotent().open().await.expect("it opens");
    drop(first.write(batch(1..4)).await.expect("it is taken"));
    drop(first.write(batch(1..3)).await.expect("it is taken"));
    let id = first.id().expect("it has a name");
    first.close().await.expect("they are stored");
    let again = writer(&fake).await.replay(id).open().await.expect("it opens");
    for rows in [1..4, 1..3, 2..6] {
        drop(again.write(batch(rows)).await.expect("it is taken"));
    }
    again.close().await.expect("they are stored");
    let partitions = fake.table().partitions.clone();
    for (value, times) in [("1", 2), ("2", 3), ("3", 2), ("4", 1), ("5", 1)] {
        let values = fake.values_in(partitions[value], 0);
        assert_eq!(values.len(), times, "partition {value}");
    }
}
