//! A table that is followed while its buckets, partitions and columns change.

use super::*;

/// The next so many numbers of a tail, in order.
async fn next(tail: &mut RowStream, count: usize) -> Vec<i64> {
    let mut found = Vec::new();
    while found.len() < count {
        let rows = tokio::time::timeout(COMES_WITHIN, tail.next()).await.expect("rows come");
        let batch = rows.expect("a tail has no end").unwrap().batch;
        found.extend(batch.column_by_name("n").unwrap().as_primitive::<Int64Type>().values());
    }
    found.sort_unstable();
    found
}

/// T-37: what is made while a table is followed is read from its first row; a partition that is dropped leaves.
#[tokio::test]
async fn t_37_partitions_and_buckets_made_meanwhile_are_read_from_their_first_row() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "grows").await;
    client.sql("CREATE TABLE grows.days (n BIGINT, day INT NOT NULL) PARTITIONED BY (day)").await.unwrap();
    let writer = client.writer("grows.days").open().await.unwrap();
    let write = async |day: i32, numbers: std::ops::Range<i64>| {
        let days = Arc::new(arrow_array::Int32Array::from(vec![day; numbers.clone().count()])) as ArrayRef;
        let made = writer.write(rows(vec![("n", longs(numbers)), ("day", days)])).await.unwrap().await;
        made.unwrap();
    };
    write(1, 0..5).await;
    let mut tail = client.scan("grows.days").from(Start::Latest).follow();
    // It has begun once it has a row that came behind its begin.
    let (begun, ()) = tokio::join!(next(&mut tail, 1), async {
        // Each may lie before the begin or behind it: some do behind.
        for n in 1_000_000..1_000_020 {
            write(1, n..n + 1).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(begun[0] >= 1_000_000, "rows before the begin are not read: {begun:?}");
    // Made and filled within one interval of discovery.
    write(2, 10..20).await;
    let mut found = Vec::new();
    while found.len() < 10 {
        found.extend(next(&mut tail, 1).await.into_iter().filter(|n| *n < 1_000_000));
    }
    assert_eq!(found, (10..20).collect::<Vec<_>>());
    client.sql("ALTER TABLE grows.days DROP PARTITION (day = 1)").await.unwrap();
    write(2, 20..21).await;
    assert_eq!(next(&mut tail, 1).await, [20]);
    write(1, 30..33).await;
    assert_eq!(next(&mut tail, 3).await, [30, 31, 32]);
    client.sql("ALTER TABLE grows.days SET ('bucket.num' = '3')").await.unwrap();
    for n in 40..46 {
        let day = Arc::new(arrow_array::Int32Array::from(vec![2])) as ArrayRef;
        let to = client.writer("grows.days").open().await.unwrap();
        to.write(rows(vec![("n", longs([n])), ("day", day)])).await.unwrap().await.unwrap();
    }
    assert_eq!(next(&mut tail, 6).await, (40..46).collect::<Vec<_>>());
    // Whoever follows one partition learns that it is gone.
    let mut only = client.scan("grows.days").partition("day", "2").follow();
    assert_eq!(next(&mut only, 17).await.len(), 17);
    client.sql("ALTER TABLE grows.days DROP PARTITION (day = 2)").await.unwrap();
    let ended = tokio::time::timeout(COMES_WITHIN, only.next()).await.expect("it ends");
    let error = ended.expect("with an error").expect_err("it is gone");
    assert_eq!(error.kind(), FlightErrorKind::NotFound);
    assert!(error.message().contains("day=2"), "{error}");
    client.sql("DROP TABLE grows.days").await.unwrap();
    let ended = tokio::time::timeout(COMES_WITHIN, tail.next()).await.expect("it ends");
    assert_eq!(ended.expect("with an error").expect_err("it is gone").kind(), FlightErrorKind::NotFound);
    node.stop(DRAINS_WITHIN).await.unwrap();
}

/// A tail whose columns cannot hold what is written says where, or goes on with the newest.
#[tokio::test]
async fn a_tail_goes_on_over_a_wider_type_if_it_may_and_else_says_from_where_on() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "wider").await;
    client.sql("CREATE TABLE wider.rows (n INT NOT NULL)").await.unwrap();
    let ints = |n: i32| rows(vec![("n", Arc::new(arrow_array::Int32Array::from(vec![n])) as ArrayRef)]);
    client.writer("wider.rows").open().await.unwrap().write(ints(1)).await.unwrap().await.unwrap();
    let (mut strict, mut evolving) =
        (client.scan("wider.rows").follow(), client.scan("wider.rows").evolving().follow());
    for tail in [&mut strict, &mut evolving] {
        assert_eq!(tail.next().await.unwrap().unwrap().next_offset, 1);
    }
    client.sql("ALTER TABLE wider.rows ALTER COLUMN n TYPE BIGINT").await.unwrap();
    client.sql("ALTER TABLE wider.rows ALTER COLUMN n DROP NOT NULL").await.unwrap();
    let writer = client.writer("wider.rows").open().await.unwrap();
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1 << 40)]));
    writer.write(rows(vec![("n", wide)])).await.unwrap().await.unwrap();
    let more =
        tokio::time::timeout(COMES_WITHIN, evolving.next()).await.expect("rows come").unwrap().unwrap();
    assert_eq!(more.batch.column(0).as_primitive::<Int64Type>().values()[1], 1 << 40);
    assert!(more.batch.column(0).is_null(0) && more.base_offset == 1, "{more:?}");
    let ended = tokio::time::timeout(COMES_WITHIN, strict.next()).await.expect("it ends").unwrap();
    let error = ended.expect_err("its columns do not hold that");
    assert_eq!(error.kind(), FlightErrorKind::Refused);
    for word in ["wider.rows was altered", "bucket 0", "offset 1", "newest schema"] {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
    node.stop(DRAINS_WITHIN).await.unwrap();
}
