//! The bytes of one batch, pinned.

use super::*;
use mink_types::schema::SchemaId;

const GOLDEN: &[u8] = include_bytes!("../../../testdata/arrow-none.batch");

/// What testdata/README.md says is in it.
fn expected() -> (Schema, Vec<Vec<Value>>) {
    let pair = DataType::Row(vec![
        column("b", DataType::Boolean),
        required("d", DataType::Decimal { precision: 5, scale: 2 }),
    ]);
    let map = DataType::Map {
        key: Box::new(required("key", DataType::Char { length: 4 })),
        value: Box::new(column("value", DataType::Time { precision: 3 })),
    };
    let schema = schema(vec![
        required("id", DataType::BigInt),
        column("name", DataType::String),
        column("list", DataType::Array(Box::new(column("element", pair)))),
        column("map", map),
        column("number", DataType::Double),
    ]);
    (schema, (0..4).map(row).collect())
}

fn row(n: i64) -> Vec<Value> {
    let unless_two = |value: Value| if n == 2 { Value::Null } else { value };
    let element = |m: i64| match m {
        1 => Value::Null,
        _ => Value::Row(vec![Value::Boolean(m == 0), Value::Decimal(i128::from(m) * 100)]),
    };
    let entry = |m: i64| Value::Row(vec![Value::Text(format!("k{m}")), unless_two(Value::Integer(m))]);
    vec![
        Value::Integer(n << 33),
        unless_two(Value::Text(format!("имя {n}"))),
        Value::List((0..n).map(element).collect()),
        if n == 1 { Value::Null } else { Value::List((0..n).map(entry).collect()) },
        Value::Double([0.0, f64::NAN, -1.5, 2.0][usize::try_from(n).expect("small")].to_bits()),
    ]
}

fn encoded() -> Bytes {
    let (schema, rows) = expected();
    let stamp = ProducerStamp { id: 16_777_217, epoch: 2, base_sequence: 12 };
    encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, Some(stamp)).expect("sound rows")
}

#[test]
fn the_bytes_of_a_batch_do_not_change() {
    assert_eq!(encoded(), GOLDEN);
}

#[test]
fn a_batch_of_these_bytes_is_read() {
    let (schema, rows) = expected();
    let batch = ArrowBatch::parse(&Bytes::from_static(GOLDEN)).expect("a batch");
    batch.verify_checksum().expect("its checksum");
    assert_eq!((batch.schema(), batch.rows()), (SchemaId(1), 4));
    assert_eq!(batch.header().base_sequence, 12);
    assert_eq!(rows_of(&batch.decode(&schema).expect("its own schema"), schema.columns()), rows);
    let statistics = batch.statistics().expect("sound");
    assert_eq!(
        statistics,
        [
            ColumnStatistics {
                field: FieldId(1),
                nulls: 0,
                nans: 0,
                min: Some(Literal::Integer(0)),
                max: Some(Literal::Integer(3 << 33)),
            },
            ColumnStatistics {
                field: FieldId(2),
                nulls: 1,
                nans: 0,
                min: Some(Literal::Text("имя 0".into())),
                max: Some(Literal::Text("имя 3".into())),
            },
            ColumnStatistics {
                // Behind the fields of the list and of the map.
                field: FieldId(10),
                nulls: 0,
                nans: 1,
                min: Some(Literal::Double((-1.5_f64).to_bits())),
                max: Some(Literal::Double(2.0_f64.to_bits())),
            },
        ]
    );
}

#[test]
fn the_fixed_part_is_where_the_format_says() {
    assert_eq!(GOLDEN[16], 16, "magic");
    assert_eq!(GOLDEN[61..65], 1_u32.to_le_bytes(), "schema id");
    assert_eq!(GOLDEN[65..69], [1, 0, 0, 0], "version, flags, reserved");
    let number = |at: usize| {
        let bytes = GOLDEN[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("small")
    };
    let metadata_at = (77 + number(69)).next_multiple_of(8);
    let body_at = (metadata_at + number(73)).next_multiple_of(8);
    let batch = ArrowBatch::parse(&Bytes::from_static(GOLDEN)).expect("a batch");
    assert_eq!(batch.metadata().as_ref(), &GOLDEN[metadata_at..metadata_at + number(73)]);
    assert_eq!(batch.body().as_ref(), &GOLDEN[body_at..]);
}

/// Writes the file anew: for a new version of the format only.
#[test]
#[ignore = "writes testdata/arrow-none.batch, which the test above reads: by hand, when the format has a new version"]
fn write_the_bytes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/arrow-none.batch");
    std::fs::write(path, encoded()).expect("a file");
}
