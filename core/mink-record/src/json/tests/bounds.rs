//! What a builder holds is bounded, whatever a row's text makes of a few bytes.

use super::*;
use crate::arrow::ARROW_ROWS_MAX;
use mink_types::schema::Literal;

/// A table whose elements are rows of many columns: `{},` takes three bytes of a text.
fn wide() -> Schema {
    let fields =
        (0..1_000).map(|at| Field::new(format!("f{at}"), DataType::Decimal { precision: 38, scale: 0 }));
    one(DataType::array(DataType::Row(fields.collect())))
}

#[test]
fn a_row_that_becomes_larger_than_the_limit_is_refused_while_it_is_read() {
    let limits = JsonLimits { held_bytes_max: 1 << 20, ..JsonLimits::default() };
    for element in ["{},", "null,"] {
        let mut rows = RowsBuilder::with_limits(&wide(), limits);
        let text = format!("{{\"c\":[{}{{}}]}}", element.repeat(100_000));
        let error = rows.push_json(text.as_bytes()).expect_err("1.6 GB of columns");
        assert_eq!(error.kind(), JsonErrorKind::TooLarge);
        assert_eq!(error.message(), "the row has more than 1048576 bytes as columns; send a smaller one");
        assert_eq!(error.path(), "c[65]", "it ended as soon as the limit was met");
        assert_eq!((rows.len(), rows.bytes()), (0, 0));
    }
}

#[test]
fn a_full_builder_takes_the_same_row_once_it_is_finished() {
    let default = Some(Literal::Bytes(vec![7; 1_000]));
    let table = schema(vec![Field { default, ..Field::new("b", DataType::Bytes) }]);
    let limits = JsonLimits { held_bytes_max: 10_100, ..JsonLimits::default() };
    let mut rows = RowsBuilder::with_limits(&table, limits);
    let pushed = (0..100).take_while(|_| rows.push_json(b"{}").is_ok()).count();
    assert_eq!((pushed, rows.bytes()), (10, 10_040));
    let error = rows.push_json(b"{}").expect_err("ten rows fill it");
    assert_eq!(error.kind(), JsonErrorKind::Full);
    assert_eq!(rows.finish().expect("sound columns").num_rows(), 10);
    rows.push_json(b"{}").expect("there is room again");
    assert_eq!(rows.bytes(), 1_004);
}

#[test]
fn a_batch_has_at_most_so_many_rows() {
    let mut rows = RowsBuilder::new(&one(DataType::Boolean));
    for _ in 0..ARROW_ROWS_MAX {
        rows.push_json(b"{}").expect("room for it");
    }
    assert_eq!(rows.push_json(b"{}").expect_err("no more rows").kind(), JsonErrorKind::Full);
    assert_eq!(rows.len(), ARROW_ROWS_MAX);
}

#[test]
fn a_longer_text_than_the_caller_allows_is_refused_unread() {
    let limits = JsonLimits { row_bytes_max: 10, ..JsonLimits::default() };
    let mut rows = RowsBuilder::with_limits(&one(DataType::Int), limits);
    rows.push_json(b"{\"c\":1234}").expect("ten bytes");
    let error = rows.push_json(b"{\"c\":12345}").expect_err("eleven bytes");
    assert_eq!(
        (error.kind(), error.message()),
        (JsonErrorKind::TooLarge, "the row has 11 bytes; use at most 10")
    );
    assert_eq!(rows.len(), 1);
}

#[test]
fn texts_nest_as_deep_as_their_type_and_no_deeper() {
    let deep = (1..32).fold(DataType::Int, |inner, _| DataType::array(inner));
    let text = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(value(deep.clone(), &text(31)), Ok(text(31)));
    assert!(value(deep.clone(), &text(32)).is_err());
    let error = value(deep, &"[".repeat(1_000_000)).expect_err("deeper than any stack");
    assert_eq!(error.kind(), JsonErrorKind::Value);
}
