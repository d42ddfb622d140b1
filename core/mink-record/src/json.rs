//! Rows as JSON: one object per row, read straight into columns, and written so that the same row always gives the same bytes.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing but a builder's rows.
//! Invariants: J1 what [`JsonWriter`] writes, [`RowsBuilder`] reads as the same values; J2 a refused row leaves no trace; J3 what a
//! builder holds is counted while a row is read, whatever its text says of sizes; J4 no error repeats more than
//! [`SHOWN_CHARS_MAX`] characters of a row.     See: docs/json.md
//!
//! ```
//! use mink_record::json::{JsonWriter, RowsBuilder};
//! use mink_types::schema::{DataType, Field, Schema, SchemaDraft};
//!
//! let columns = vec![
//!     Field::new("id", DataType::BigInt).not_null(),
//!     Field::new("price", DataType::Decimal { precision: 12, scale: 2 }),
//! ];
//! let schema = Schema::create(SchemaDraft { columns, ..SchemaDraft::default() })?;
//! let mut rows = RowsBuilder::new(&schema);
//! rows.push_json(br#"{"price": 1.5, "id": 7}"#)?;
//! let refused = rows.push_json(br#"{"id": 8, "price": 1.505}"#).expect_err("three digits behind the point");
//! assert_eq!(refused.path(), "price");
//! assert_eq!(rows.len(), 1);
//!
//! let mut text = Vec::new();
//! JsonWriter::new(&schema).write_row(&rows.finish()?, 0, &mut text)?;
//! assert_eq!(text, br#"{"id":7,"price":1.50}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
mod compare;
mod error;
mod fields;
mod finish;
mod moment;
mod number;
mod read;
mod records_in;
mod records_out;
mod rows;
mod text;
mod writer;

pub use error::{JsonError, JsonErrorKind};
pub use records_in::{RecordsIntake, RefusedRecords, SentTo, rows_of_records};
pub use records_out::{RecordsRoom, RecordsWriter, RowsPlace, WrittenRecords};
pub use rows::{JsonLimits, RowsBuilder};
pub use writer::JsonWriter;

/// Characters of a row that an error repeats.
pub const SHOWN_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests;
