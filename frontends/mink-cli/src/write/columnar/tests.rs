//! Files of each form, read in portions with their rows.
use super::super::portion::Portion;
use super::super::target::tests::{target, target_of_x};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use std::io::Write;
use std::sync::Arc;

/// Rows numbered from `first`.
fn numbered(first: i64, count: i64) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(first..first + count)) as ArrayRef;
    let texts = Arc::new(StringArray::from_iter_values((first..first + count).map(|n| format!("row {n}"))))
        as ArrayRef;
    RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).expect("two columns")
}

fn parquet(batches: &[RecordBatch]) -> Vec<u8> {
    let mut file = Vec::new();
    let schema = batches.first().expect("a batch").schema();
    let mut writer = ArrowWriter::try_new(&mut file, schema, None).expect("a file");
    for batch in batches {
        writer.write(batch).expect("written");
    }
    writer.close().expect("ended");
    file
}

fn arrow_file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer =
        FileWriter::try_new(&mut file, &batches.first().expect("a batch").schema()).expect("a file");
    for batch in batches {
        writer.write(batch).expect("written");
    }
    writer.finish().expect("ended");
    drop(writer);
    file
}

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer =
        StreamWriter::try_new(&mut file, &batches.first().expect("a batch").schema()).expect("a stream");
    for batch in batches {
        writer.write(batch).expect("written");
    }
    writer.finish().expect("ended");
    drop(writer);
    file
}

/// What was read of a file with these bytes, and how it ended.
fn read(bytes: &[u8], is_parquet: bool, target: &Target) -> (Vec<Portion>, Result<(), String>) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    let source = Source::open(file.path()).expect("it is there");
    let (sink, mut receiver) = Sink::collecting(1_024);
    let progress = Progress::default();
    let ended = if is_parquet {
        read_parquet(source, target, &progress, &sink)
    } else {
        read_arrow(source, target, &progress, &sink)
    };
    drop(sink);
    let mut portions = Vec::new();
    while let Ok(portion) = receiver.try_recv() {
        portions.push(portion.expect("rows"));
    }
    if ended.is_ok() && !portions.is_empty() {
        let (read, total) = progress.get();
        assert_eq!(read, total, "all is read");
    }
    let ended = ended.map_err(|stop| match stop {
        Stop::Wrong(what) => what,
        Stop::Nobody => panic!("a test listens"),
    });
    (portions, ended)
}

fn numbers(portions: &[Portion]) -> Vec<i64> {
    let column = |portion: &Portion| {
        portion.rows.column(0).as_primitive::<Int64Type>().values().iter().copied().collect::<Vec<_>>()
    };
    portions.iter().flat_map(column).collect()
}

#[test]
fn every_form_gives_all_rows_in_order_with_their_places() {
    let batches = [numbered(0, 10_000), numbered(10_000, 1), numbered(10_001, 9_999)];
    let target = target("n BIGINT, s STRING");
    for (bytes, is_parquet) in
        [(parquet(&batches), true), (arrow_file(&batches), false), (arrow_stream(&batches), false)]
    {
        let (portions, ended) = read(&bytes, is_parquet, &target);
        assert_eq!(ended, Ok(()));
        assert_eq!(numbers(&portions), (0..20_000).collect::<Vec<_>>());
        assert!(portions.len() > 2 && portions.iter().all(|portion| portion.rows.num_rows() <= PORTION_ROWS));
        let mut next = 1;
        for Portion { rows, place } in &portions {
            assert_eq!((place.first, place.last), (next, next + rows.num_rows() as u64 - 1));
            next = place.last + 1;
        }
    }
}

#[test]
fn a_row_that_does_not_fit_is_named_and_rows_before_it_are_there() {
    let batches = [numbered(100, 20), numbered(120, 20)];
    for (bytes, is_parquet) in
        [(parquet(&batches), true), (arrow_file(&batches), false), (arrow_stream(&batches), false)]
    {
        let (portions, ended) = read(&bytes, is_parquet, &target("n TINYINT, s STRING"));
        let what = ended.expect_err("128 is too large");
        assert!(what.starts_with("row 29: n: found 128, which TINYINT"), "{what}");
        assert_eq!(portions.iter().map(|portion| portion.rows.num_rows()).sum::<usize>(), 28);
    }
}

#[test]
fn of_two_columns_the_first_misfit_counts() {
    let rows = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(vec![1, 2, 3, 1_000])) as ArrayRef),
        ("b", Arc::new(Int64Array::from(vec![1, 2_000, 3, 4])) as ArrayRef),
    ]);
    let (portions, ended) =
        read(&arrow_stream(&[rows.expect("two columns")]), false, &target("a TINYINT, b TINYINT"));
    assert_eq!(ended, Err("row 2: b: found 2000, which TINYINT does not have exactly".into()));
    assert_eq!(portions.len(), 1);
}

#[test]
fn chosen_columns_alone_are_read() {
    let chosen = Target { is_chosen: true, ..target("n BIGINT") };
    for (bytes, is_parquet) in [(parquet(&[numbered(0, 3)]), true), (arrow_file(&[numbered(0, 3)]), false)] {
        let (portions, ended) = read(&bytes, is_parquet, &chosen);
        assert_eq!((ended, numbers(&portions)), (Ok(()), vec![0, 1, 2]));
        assert_eq!(portions[0].rows.num_columns(), 1);
    }
}

#[test]
fn what_is_no_such_file_or_is_cut_off_is_refused_in_words() {
    let target = target("n BIGINT, s STRING");
    let whole = parquet(&[numbered(0, 100)]);
    for bytes in [&b""[..], b"PAR1", b"not a file of this kind at all", &whole[..whole.len() / 2]] {
        let (_, ended) = read(bytes, true, &target);
        assert!(ended.expect_err("no file").contains("no Parquet file"), "{bytes:?}");
    }
    let file = arrow_file(&[numbered(0, 100)]);
    for bytes in [&b""[..], b"ARROW1", b"{\"n\":1}\n", &file[..file.len() / 2]] {
        let (portions, ended) = read(bytes, false, &target);
        assert!(ended.expect_err("no file").contains("can be read") && portions.is_empty(), "{bytes:?}");
    }
    let stream = arrow_stream(&[numbered(0, 100), numbered(100, 100)]);
    let (portions, ended) = read(&stream[..stream.len() - 600], false, &target);
    assert_eq!(numbers(&portions), (0..100).collect::<Vec<_>>());
    assert!(ended.expect_err("it is cut off").starts_with("row 101 or behind it cannot be read"));
}

#[test]
fn a_file_of_another_form_is_told_with_the_format_to_say() {
    let (target, batches) = (target("n BIGINT, s STRING"), [numbered(0, 3)]);
    let words = |bytes: Vec<u8>, is_parquet| read(&bytes, is_parquet, &target).1.expect_err("another form");
    assert!(words(arrow_file(&batches), true).contains("--format arrow"));
    assert!(words(arrow_stream(&batches), true).contains("--format arrow"));
    assert!(words(parquet(&batches), false).contains("--format parquet"));
}

#[test]
fn rows_get_the_partition_that_is_named_and_the_first_of_another_is_told() {
    let target = target_of_x("n BIGINT, s STRING, p STRING");
    let texts = |texts: &[&str]| Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
    let numbers = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    let own = RecordBatch::try_from_iter([("n", numbers), ("p", texts(&["x", "x", "y"]))]);
    let own = own.expect("columns of one length");
    for is_parquet in [true, false] {
        let file = |batch| if is_parquet { parquet(&[batch]) } else { arrow_stream(&[batch]) };
        let (portions, ended) = read(&file(numbered(0, 3)), is_parquet, &target);
        assert_eq!(ended, Ok(()));
        let filled = portions[0].rows.column_by_name("p").expect("it is filled in");
        assert_eq!(filled, &texts(&["x", "x", "x"]));
        let (portions, ended) = read(&file(own.clone()), is_parquet, &target);
        assert!(ended.expect_err("y").starts_with("row 3: p: the row has \"y\""));
        assert_eq!(portions.iter().map(|portion| portion.rows.num_rows()).sum::<usize>(), 2);
    }
}

#[test]
fn a_portion_is_bounded_by_bytes_where_rows_are_wide() {
    let wide = Arc::new(StringArray::from_iter_values((0..64).map(|_| "x".repeat(100 << 10)))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("s", wide)]).expect("one column");
    for (bytes, is_parquet) in
        [(parquet(std::slice::from_ref(&batch)), true), (arrow_stream(&[batch]), false)]
    {
        let (portions, ended) = read(&bytes, is_parquet, &target("s STRING"));
        assert_eq!(ended, Ok(()));
        assert_eq!(portions.iter().map(|portion| portion.rows.num_rows()).sum::<usize>(), 64);
        assert!(portions.iter().all(|portion| bytes_of(&portion.rows) <= 2 * PORTION_BYTES));
    }
}
