//! Schemas of typed tables: columns with stable ids, and what may follow what (FEATURES section 1).
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; a schema is a value, and a change gives another one with the next id.
//! Invariants: every column and nested field has an id that is never given twice in one table; a schema that exists is within the
//! bounds below, and what its key, its partitions and its buckets name exists, is scalar and is not changed by any ALTER.

mod change;
mod check;
mod create;
mod data_type;
mod display;
mod error;
mod field;
mod fits;
mod follows;
mod literal;
mod parts;
mod table_schema;
mod widen;

pub use change::{ColumnPlace, SchemaChange};
pub use create::SchemaDraft;
pub use data_type::{DataType, TimeUnit};
use data_type::{ELEMENT, KEY, VALUE};
pub use error::{KeyUse, SchemaError};
pub use field::{Field, FieldId};
pub use literal::Literal;
pub use parts::SchemaParts;
pub use table_schema::{Schema, SchemaId};

/// Columns and nested fields of one schema, together.
pub const SCHEMA_FIELDS_MAX: usize = 4_096;
/// How deeply types may be nested; a scalar column is at depth 1.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// Longest name of a column, in bytes.
pub const COLUMN_NAME_BYTES_MAX: usize = 255;
/// Longest comment on a column, in bytes.
pub const COMMENT_BYTES_MAX: usize = 1_024;
/// Names, comments and defaults of one schema, together, in bytes: it goes into one row of the command log.
pub const SCHEMA_TEXT_BYTES_MAX: usize = 256 << 10;
/// Longest default of a column, in bytes.
pub const DEFAULT_BYTES_MAX: usize = 1_024;
/// Columns of a primary key, of the partitions or of a bucket key.
pub const KEY_COLUMNS_MAX: usize = 32;
/// Changes in one list.
pub const SCHEMA_CHANGES_MAX: usize = 1_000;
/// Most digits of a DECIMAL.
pub const DECIMAL_PRECISION_MAX: u8 = 38;
/// Most digits behind the second.
pub const TIME_PRECISION_MAX: u8 = 9;
/// Longest CHAR or BINARY.
pub const LENGTH_MAX: u32 = i32::MAX as u32;

#[cfg(test)]
mod tests;
