//! Each row once, in order, whatever breaks.
use super::{RowStream, Start};
use crate::flight::FlightErrorKind;
use crate::flight::fake::{Fake, values};
use std::time::Duration;

/// Ten batches of ten rows in each bucket.
async fn filled(buckets: u32) -> std::sync::Arc<Fake> {
    let fake = Fake::start(buckets).await;
    for bucket in 0..buckets {
        let first = 1_000 * i64::from(bucket);
        (0..10).for_each(|batch| fake.append(bucket, first + 10 * batch..first + 10 * batch + 10));
    }
    fake
}

async fn all(mut rows: RowStream) -> Vec<i64> {
    let mut found = Vec::new();
    while let Some(rows) = rows.next().await {
        let rows = rows.expect("the scan goes on");
        assert_eq!(rows.next_offset - rows.base_offset, rows.batch.num_rows() as u64);
        found.extend(values(&rows.batch));
    }
    found
}

#[tokio::test]
async fn all_rows_of_all_buckets_are_read() {
    let fake = filled(3).await;
    let mut found = all(fake.client().await.scan("sales.orders").rows()).await;
    found.sort_unstable();
    let expected: Vec<_> = [0..100, 1_000..1_100, 2_000..2_100].into_iter().flatten().collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_scan_goes_on_behind_its_last_rows_when_connections_break() {
    let fake = filled(1).await;
    fake.table().break_scans_after.extend([3, 0, 2]);
    let found = all(fake.client().await.scan("sales.orders").rows()).await;
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    assert_eq!(fake.table().scans, 4);
}

/// I2
#[tokio::test]
async fn a_scan_that_breaks_before_its_first_row_ends_where_it_would_have() {
    let fake = filled(1).await;
    fake.table().break_scans_after.extend([0, 2]);
    fake.table().grows_at_break.extend([100..110, 110..120]);
    let scan = fake.client().await.scan("sales.orders");
    assert_eq!(all(scan.clone().rows()).await, (0..100).collect::<Vec<_>>());
    assert_eq!(all(scan.rows()).await, (0..120).collect::<Vec<_>>());
}

/// I2
#[tokio::test]
async fn a_follower_from_the_end_skips_no_row_when_its_first_call_breaks() {
    let fake = filled(1).await;
    fake.table().break_scans_after.extend([0]);
    fake.table().grows_at_break.push_back(101..102);
    let mut rows = fake.client().await.scan("sales.orders").from(Start::Latest).follow();
    let coming = tokio::spawn(async move {
        let mut found = Vec::new();
        while found.len() < 2 {
            found.extend(values(&rows.next().await.expect("it has no end").expect("it goes on").batch));
        }
        found
    });
    crate::flight::fake::eventually("it follows", || fake.table().scans > 0).await;
    fake.append(0, 100..101);
    let found = tokio::time::timeout(Duration::from_secs(20), coming).await.expect("rows come");
    assert_eq!(found.expect("it does not panic"), [100, 101]);
}

#[tokio::test]
async fn from_until_and_limit_cut_across_broken_connections() {
    let fake = filled(1).await;
    fake.table().break_scans_after.extend([2, 1]);
    let scan = fake.client().await.scan("sales.orders").from(Start::Offset(15)).until(95);
    assert_eq!(all(scan.clone().rows()).await, (15..95).collect::<Vec<_>>());
    fake.table().break_scans_after.extend([1]);
    assert_eq!(all(scan.limit(33).rows()).await, (15..48).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_limit_counts_the_rows_of_all_buckets() {
    let fake = filled(3).await;
    let found = all(fake.client().await.scan("sales.orders").limit(105).rows()).await;
    assert_eq!(found, (0..100).chain(1_000..1_005).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_follower_gets_what_comes_and_goes_on_when_connections_break() {
    let fake = filled(1).await;
    fake.table().break_scans_after.extend([4, 1]);
    let mut rows = fake.client().await.scan("sales.orders").follow();
    let mut found = Vec::new();
    for next in 100..110 {
        while found.len() < usize::try_from(next).expect("few rows") {
            let rows = tokio::time::timeout(Duration::from_secs(20), rows.next()).await.expect("rows come");
            found.extend(values(&rows.expect("it has no end").expect("it goes on").batch));
        }
        if next == 105 {
            fake.cut_connections();
        }
        fake.append(0, next..next + 1);
    }
    assert_eq!(found, (0..109).collect::<Vec<_>>());
}

#[tokio::test]
async fn buckets_are_followed_side_by_side_up_to_a_limit() {
    let fake = filled(2).await;
    let scan = fake.client().await.scan("sales.orders").limit(150);
    let found = tokio::time::timeout(Duration::from_secs(20), all(scan.follow()))
        .await
        .expect("it ends by its limit");
    assert_eq!(found.len(), 150);
    assert!(found.iter().any(|value| *value < 1_000) && found.iter().any(|value| *value >= 1_000));
}

#[tokio::test]
async fn what_cannot_be_scanned_is_refused() {
    let fake = filled(1).await;
    let client = fake.client().await;
    let kind =
        async |mut rows: RowStream| rows.next().await.expect("an error").expect_err("it is refused").kind();
    assert_eq!(kind(client.scan("sales.nothing").rows()).await, FlightErrorKind::NotFound);
    assert_eq!(kind(client.scan("nothing").rows()).await, FlightErrorKind::Refused);
    assert_eq!(kind(client.scan("sales.orders").until(3).follow()).await, FlightErrorKind::Refused);
    let wide = Fake::start(65).await;
    assert_eq!(kind(wide.client().await.scan("sales.orders").follow()).await, FlightErrorKind::Refused);
}

#[tokio::test]
async fn bytes_that_are_no_rows_end_a_scan_with_an_error() {
    let fake = filled(1).await;
    for damaged in [Vec::new(), vec![0xff; 7], vec![0xff; 4_096]] {
        fake.table().damaged_body = Some(damaged);
        let mut rows = fake.client().await.scan("sales.orders").rows();
        let error = rows.next().await.expect("an error").expect_err("they are no rows");
        assert_eq!(error.kind(), FlightErrorKind::Protocol);
        assert!(rows.next().await.is_none(), "it has ended");
    }
}

#[tokio::test]
async fn tables_are_described_and_asked_by_sql() {
    let fake = filled(2).await;
    let client = fake.client().await;
    assert_eq!(client.tables("sales.").await, Ok(vec!["sales.orders".to_owned()]));
    assert_eq!(client.tables("hr.").await, Ok(Vec::new()));
    assert_eq!(client.describe("sales.orders").await.map(|table| table.buckets), Ok(2));
    assert_eq!(client.schema("sales.orders").await, Ok(crate::flight::fake::columns()));
    assert_eq!(client.sql("SHOW TABLES").await.map(|rows| rows[0]["table"].clone()), Ok("orders".into()));
    assert_eq!(client.sql("SELECT 1").await.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
}

/// A stream that follows, and what it gives.
struct Followed(RowStream);

impl Followed {
    /// The next so many values, in their order.
    async fn next(&mut self, count: usize) -> Vec<i64> {
        let mut found = Vec::new();
        while found.len() < count {
            let rows = tokio::time::timeout(Duration::from_secs(20), self.0.next()).await.expect("rows come");
            found.extend(values(&rows.expect("it has no end").expect("it goes on").batch));
        }
        found.sort_unstable();
        found
    }
}

/// T-37: what comes to be while a table is followed is read from its first row, wherever the others began.
#[tokio::test]
async fn t_37_buckets_made_meanwhile_are_followed_from_their_first_row() {
    let fake = filled(1).await;
    let mut rows = Followed(fake.client().await.scan("sales.orders").from(Start::Latest).follow());
    let first = tokio::spawn(async move { (rows.next(1).await, rows) });
    crate::flight::fake::eventually("it follows", || fake.table().scans > 0).await;
    fake.append(0, 100..101);
    let (found, mut rows) = first.await.expect("it does not panic");
    assert_eq!(found, [100]);
    fake.append(1, 0..10);
    fake.table().buckets = 2;
    assert_eq!(rows.next(10).await, (0..10).collect::<Vec<_>>());
    fake.append(0, 101..102);
    fake.append(1, 10..11);
    assert_eq!(rows.next(2).await, [10, 101]);
}

/// T-37
#[tokio::test]
async fn t_37_partitions_come_and_go_while_a_table_is_followed() {
    let fake = Fake::start(1).await;
    fake.table().partitioned_by = vec!["id".into()];
    let scan = fake.client().await.scan("sales.orders").from(Start::Latest);
    // A table without a partition is followed, too.
    let mut rows = Followed(scan.clone().follow());
    let first = tokio::spawn(async move { (rows.next(10).await, rows) });
    crate::flight::fake::eventually("it has begun", || fake.table().infos > 0).await;
    let one = fake.make_partition("1");
    fake.append_to((one, 0), 0..10);
    let (found, mut rows) = first.await.expect("it does not panic");
    assert_eq!(found, (0..10).collect::<Vec<_>>());
    let two = fake.make_partition("2");
    fake.append_to((two, 0), 20..25);
    assert_eq!(rows.next(5).await, (20..25).collect::<Vec<_>>());
    // One that is dropped leaves, and the others go on; made anew it is another, read from its first row.
    fake.drop_partition("1");
    fake.append_to((two, 0), 25..26);
    assert_eq!(rows.next(1).await, [25]);
    let anew = fake.make_partition("1");
    fake.append_to((anew, 0), 30..32);
    assert_eq!(rows.next(2).await, [30, 31]);
    // Whoever follows it alone is told.
    let mut only = scan.partition("id", "1").from(Start::Earliest).follow();
    assert_eq!(only.next().await.expect("rows").expect("they are there").batch.num_rows(), 2);
    fake.drop_partition("1");
    let ended = only.next().await.expect("an error").expect_err("it is gone");
    assert_eq!(ended.kind(), FlightErrorKind::NotFound);
    assert!(only.next().await.is_none(), "it has ended");
    fake.append_to((two, 0), 26..27);
    assert_eq!(rows.next(1).await, [26]);
}

#[tokio::test]
async fn more_buckets_than_a_stream_follows_end_it_with_words() {
    let fake = filled(1).await;
    let mut rows = fake.client().await.scan("sales.orders").from(Start::Latest).follow();
    let ended = tokio::spawn(async move { rows.next().await });
    crate::flight::fake::eventually("it follows", || fake.table().scans > 0).await;
    fake.table().buckets = 65;
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it ends");
    let error = ended.expect("it does not panic").expect("an error").expect_err("they are too many");
    assert_eq!(error.kind(), FlightErrorKind::Refused);
    assert!(error.message().contains("sales.orders has 65 buckets to follow"), "{error}");
}

#[tokio::test]
async fn rows_that_the_columns_of_the_scan_cannot_hold_end_it_unless_it_evolves() {
    let fake = filled(1).await;
    let scan = fake.client().await.scan("sales.orders");
    let mut ends = Followed(scan.clone().follow());
    let mut evolves = Followed(scan.evolving().follow());
    assert_eq!(ends.next(100).await, evolves.next(100).await);
    fake.table().altered_at = Some(100);
    fake.append(0, 100..110);
    assert_eq!(evolves.next(10).await, (100..110).collect::<Vec<_>>());
    let error = ends.0.next().await.expect("an error").expect_err("it does not evolve");
    assert_eq!(error.kind(), FlightErrorKind::Refused);
}
