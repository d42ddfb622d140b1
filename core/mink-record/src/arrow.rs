//! Record batches of Arrow: the bytes of a log in the `arrow` format.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; every function is a value to a value.
//! Invariants: I19 (a message of a client is checked wholly before any of it is believed; stored ones are checked again when they are
//! read, for no code here is `unsafe`), I20 (what buffers inflate to is capped in sum).     See: docs/decisions/0024-arrow-batches.md
//!
//! A stored batch begins with the 61 bytes of Kafka's header ([`kafka`](crate::kafka)), with magic 16, so that a log is kept, recovered
//! and read by the same fields. What follows is little-endian; places count from the start of the batch:
//!
//! | at | size | field |
//! |----|------|-------|
//! | 61 | 4 | schema id |
//! | 65 | 1 | version = 1 |
//! | 66 | 1 | flags = 0 |
//! | 67 | 2 | reserved |
//! | 69 | 4 | length of the statistics |
//! | 73 | 4 | length of the metadata |
//! | 77 | | statistics, then zeros up to a multiple of 8 |
//! | | | metadata: an IPC message with a record batch as its header, then zeros up to a multiple of 8 |
//! | | | body: to the end of the batch |
//!
//! ```
//! use arrow_array::{ArrayRef, Int32Array, RecordBatch};
//! use mink_record::arrow::{ArrowBatch, EncodeOptions, encode};
//! use mink_types::ArrowCompression;
//! use mink_types::schema::{DataType, Field, FieldId, Schema, SchemaDraft};
//! use std::sync::Arc;
//!
//! let column = Field {
//!     id: FieldId::NONE, name: "n".into(), data_type: DataType::Int, nullable: true, default: None, comment: None,
//! };
//! let schema = Schema::create(SchemaDraft { columns: vec![column], ..SchemaDraft::default() })?;
//! let rows = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)])?;
//! let stored = encode(&rows, &schema, EncodeOptions { compression: ArrowCompression::Zstd }, None)?;
//! assert_eq!(ArrowBatch::parse(&stored)?.decode(&schema)?.column(0), rows.column(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buckets;
mod check;
mod conform;
mod constant;
mod decode;
mod encode;
mod frame;
mod inflate;
mod intake;
mod kafka_rows;
mod layout;
mod mapping;
mod message;
mod prune;
mod receive;
mod stated;
mod statistics;
mod types;

pub use buckets::{Buckets, literal_at, partition_values, rows_at};
pub use constant::literal_array;
pub use encode::{EncodeOptions, encode, ipc_message};
pub use frame::ArrowBatch;
pub use intake::{Intake, IpcMessage, decode_message};
pub use kafka_rows::{kafka_rows, kafka_table_schema};
pub use mapping::Mapping;
pub use prune::Pruned;
pub use receive::Received;
pub use stated::{StatedSchema, read_schema};
pub use statistics::{ColumnStatistics, STATISTICS_VALUE_BYTES_MAX};
pub use types::{FIELD_ID_KEY, arrow_field, arrow_schema};

/// Rows of one batch.
pub const ARROW_ROWS_MAX: usize = 1 << 20;
/// What the buffers of one batch may inflate to in sum, in bytes; a node's own limit may be lower when it accepts one.
pub const ARROW_INFLATED_BYTES_MAX: usize = 128 << 20;

#[cfg(test)]
mod tests;
