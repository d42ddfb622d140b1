//! Records of Kafka as rows: the columns that a topic's table has for whoever reads it as Arrow (FEATURES section 5).
//!
//! Lives on: anywhere (pure). Costs CPU by what a batch inflates to: off the cores.
//! Invariants: I2: a row for each record, in their order; I19, I20.

use arrow_array::builder::{
    BinaryBuilder, ListBuilder, StringBuilder, StructBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, FieldRef, Fields};
use bytes::Bytes;
use mink_types::schema::{DataType, Field, Schema, SchemaDraft};
use std::sync::{Arc, LazyLock};

use super::types::{INSTANT_ZONE, arrow_schema};
use crate::RecordError;
use crate::kafka::{BatchHeader, records};

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let header = DataType::Row(vec![
        Field::new("key", DataType::String).not_null(),
        Field::new("value", DataType::Bytes),
    ]);
    let columns = vec![
        Field::new("key", DataType::Bytes),
        Field::new("value", DataType::Bytes),
        Field::new("headers", DataType::array(header)),
        Field::new("timestamp", DataType::TimestampLtz { precision: 3 }),
    ];
    let draft = SchemaDraft { columns, ..SchemaDraft::default() };
    Arc::new(Schema::create(draft).expect("a test makes it"))
});

/// The columns of a table in the `kafka` format: `key BYTES, value BYTES, headers ARRAY<ROW<key STRING, value BYTES>>, timestamp
/// TIMESTAMP_LTZ(3)`.
pub fn kafka_table_schema() -> Arc<Schema> {
    Arc::clone(&SCHEMA)
}

/// The records of one batch, which `header` begins, as rows of [`kafka_table_schema`]. A record without a timestamp has null there; the
/// bytes of a header's key that are not UTF-8 are replaced, as text has no place for them.
///
/// # Errors
/// As [`records`]; the whole batch is refused then.
pub fn kafka_rows(
    header: &BatchHeader,
    batch: Bytes,
    inflated_bytes_max: usize,
) -> Result<RecordBatch, RecordError> {
    let schema = arrow_schema(&SCHEMA);
    let pair = pair_of(schema.field(2).data_type())
        .ok_or_else(|| RecordError::invalid("headers are no list of pairs"))?;
    let (mut keys, mut values) = (BinaryBuilder::new(), BinaryBuilder::new());
    let mut times = TimestampMillisecondBuilder::new().with_timezone(INSTANT_ZONE);
    let of_pair: Vec<Box<dyn arrow_array::builder::ArrayBuilder>> =
        vec![Box::new(StringBuilder::new()), Box::new(BinaryBuilder::new())];
    let mut headers = ListBuilder::new(StructBuilder::new(pair.1, of_pair)).with_field(pair.0);
    for record in records(header, batch, inflated_bytes_max)? {
        let record = record?;
        keys.append_option(record.key.as_deref());
        values.append_option(record.value.as_deref());
        times.append_option((record.timestamp >= 0).then_some(record.timestamp));
        for header in record.headers.iter() {
            let pair = headers.values();
            if let Some(key) = pair.field_builder::<StringBuilder>(0) {
                key.append_value(String::from_utf8_lossy(&header.key));
            }
            if let Some(value) = pair.field_builder::<BinaryBuilder>(1) {
                value.append_option(header.value.as_deref());
            }
            pair.append(true);
        }
        headers.append(true);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(keys.finish()),
        Arc::new(values.finish()),
        Arc::new(headers.finish()),
        Arc::new(times.finish()),
    ];
    RecordBatch::try_new(schema, columns).map_err(|error| RecordError::invalid(error.to_string()))
}

/// The field of a list's elements, and their own fields.
fn pair_of(list: &ArrowType) -> Option<(FieldRef, Fields)> {
    let ArrowType::List(element) = list else { return None };
    let ArrowType::Struct(fields) = element.data_type() else { return None };
    Some((FieldRef::clone(element), fields.clone()))
}
