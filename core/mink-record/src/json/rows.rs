//! Rows of JSON on their way to a batch.
//!
//! Lives on: anywhere (pure).
//! Owns: the rows of one batch.
//! Invariants: J2: a refused row leaves the builder as it was; J3: no more bytes than the limits allow, but for room that is free.
use super::column::{Held, full};
use super::error::{JsonError, JsonErrorKind};
use super::fields::{Fields, Part};
use super::text::Text;
use crate::RecordError;
use crate::arrow::{ARROW_INFLATED_BYTES_MAX, ARROW_ROWS_MAX, arrow_schema};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use mink_types::schema::{FieldId, Schema};

/// What a builder takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonLimits {
    /// Largest row, in bytes of its text; of its key and its value together.
    pub row_bytes_max: usize,
    /// What all rows of a batch may take as columns, in bytes.
    pub held_bytes_max: usize,
}

impl Default for JsonLimits {
    /// As large as a batch may be.
    fn default() -> JsonLimits {
        JsonLimits { row_bytes_max: 32 << 20, held_bytes_max: ARROW_INFLATED_BYTES_MAX }
    }
}

const _: () = assert!(ARROW_INFLATED_BYTES_MAX <= HELD_BYTES_MOST, "offsets have 31 bits");

/// Beyond it, 32 bits of offset could end.
const HELD_BYTES_MOST: usize = i32::MAX as usize;

/// Collects rows of a table's schema. After an error it is as it was before the row.
#[derive(Debug)]
pub struct RowsBuilder {
    schema: SchemaRef,
    fields: Fields,
    /// Places of the columns that a record's key may have.
    key: Vec<usize>,
    row_bytes_max: usize,
    held: Held,
    len: usize,
}

impl RowsBuilder {
    pub fn new(schema: &Schema) -> RowsBuilder {
        RowsBuilder::with_limits(schema, JsonLimits::default())
    }

    pub fn with_limits(schema: &Schema, limits: JsonLimits) -> RowsBuilder {
        let key = if schema.primary_key().is_empty() { schema.bucket_key() } else { schema.primary_key() };
        let place = |id: &FieldId| schema.columns().iter().position(|column| column.id == *id);
        RowsBuilder {
            schema: arrow_schema(schema),
            fields: Fields::new(schema.columns()),
            key: key.iter().filter_map(place).collect(),
            row_bytes_max: limits.row_bytes_max,
            held: Held { bytes: 0, bytes_max: limits.held_bytes_max.min(HELD_BYTES_MOST) },
            len: 0,
        }
    }

    /// Appends the row of one object.
    ///
    /// # Errors
    /// With [`JsonErrorKind::Full`] the row may be pushed again after [`RowsBuilder::finish`]; with any other it is refused for good.
    pub fn push_json(&mut self, text: &[u8]) -> Result<(), JsonError> {
        self.push(None, text)
    }

    /// Appends the row of a record: an object with all columns, or with those that its key has not. The key is an object of key columns
    /// (`PRIMARY KEY`, else `bucket.key`), all or some; what both have must be the same.
    ///
    /// # Errors
    /// As [`RowsBuilder::push_json`]; a record without a value is refused.
    pub fn push_json_parts(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<(), JsonError> {
        let Some(value) = value else {
            let message =
                "a record without a value deletes, and only rows are accepted here; send a JSON object";
            return Err(JsonError::new(JsonErrorKind::Tombstone, message));
        };
        self.push(key, value)
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// About what they take as columns.
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// The rows, with the table's Arrow schema; the builder begins anew.
    ///
    /// # Errors
    /// `InvalidRecord` if Arrow finds the columns unsound, which no row makes them.
    pub fn finish(&mut self) -> Result<RecordBatch, RecordError> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        let columns = self.fields.finish(self.schema.fields());
        // After an error nothing is known of the columns: all are made empty.
        self.fields.truncate(0);
        (self.held.bytes, self.len) = (0, 0);
        let unsound = |error| RecordError::invalid(format!("the rows are no sound columns: {error}"));
        let schema = SchemaRef::clone(&self.schema);
        RecordBatch::try_new_with_options(schema, columns.map_err(unsound)?, &options).map_err(unsound)
    }

    fn push(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<(), JsonError> {
        let bytes = key.map_or(0, <[u8]>::len).saturating_add(value.len());
        if bytes > self.row_bytes_max {
            let message = format!("the row has {bytes} bytes; use at most {}", self.row_bytes_max);
            return Err(JsonError::new(JsonErrorKind::TooLarge, message));
        }
        if self.len >= ARROW_ROWS_MAX {
            return Err(full());
        }
        let held = self.held.bytes;
        match self.read(key, value) {
            Ok(()) => {
                self.len += 1;
                Ok(())
            }
            Err(error) => {
                self.fields.truncate(self.len);
                self.held.bytes = held;
                let alone = error.kind() == JsonErrorKind::Full && self.len == 0;
                Err(if alone { error.alone(self.held.bytes_max) } else { error })
            }
        }
    }

    fn read(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<(), JsonError> {
        let RowsBuilder { fields, held, len: base, .. } = self;
        let base = *base;
        held.pay(fields.width())?;
        let mut given = Vec::new();
        if let Some(key) = key {
            if self.key.is_empty() {
                let message = "the table has no key columns, but the record has a key; send it without";
                return Err(JsonError::field(message));
            }
            let part = Part { base, given: &[], only: Some(&self.key) };
            read_whole(fields, held, key, part).map_err(JsonError::in_key)?;
            let is_given =
                |place: &&usize| fields.columns.get(**place).is_some_and(|named| named.column.len() > base);
            given.extend(self.key.iter().filter(is_given).copied());
        }
        read_whole(fields, held, value, Part { base, given: &given, only: None })?;
        for place in given {
            fields.agree(place, base)?;
        }
        fields.fill(base, held)
    }
}

/// A text that is one object.
fn read_whole(fields: &mut Fields, held: &mut Held, text: &[u8], part: Part<'_>) -> Result<(), JsonError> {
    let mut text = Text::new(text)?;
    fields.read(&mut text, held, part)?;
    text.end()
}
