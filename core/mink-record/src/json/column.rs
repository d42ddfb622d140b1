//! Columns that grow by one value after the other, and shrink again when a row is refused.
//!
//! Lives on: anywhere (pure).
//! Owns: the values of one column, and of the columns below it.
//! Invariants: between rows every column has as many entries as there are rows (below a list: as its last offset says); J2 and J3: what is
//! appended was paid for out of `Held` first.
use super::error::{JsonError, JsonErrorKind};
use super::fields::Fields;
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use mink_types::schema::{DataType, Field, Literal};

/// What a builder holds, and what it may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) bytes: usize,
    pub(super) bytes_max: usize,
}

impl Held {
    pub(super) fn pay(&mut self, bytes: usize) -> Result<(), JsonError> {
        match self.bytes.checked_add(bytes).filter(|bytes| *bytes <= self.bytes_max) {
            Some(bytes) => {
                self.bytes = bytes;
                Ok(())
            }
            None => Err(full()),
        }
    }
}

pub(super) fn full() -> JsonError {
    JsonError::new(JsonErrorKind::Full, "the batch is full; finish it and push the row again")
}

/// The values of a column or nested field.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) nullable: bool,
    /// What one entry takes without its text and its elements.
    pub(super) width: usize,
    pub(super) nulls: NullBufferBuilder,
    pub(super) values: Values,
}

/// One per kind of value. A null has an entry here too.
#[derive(Debug)]
pub(super) enum Values {
    Boolean(BooleanBufferBuilder),
    TinyInt(Vec<i8>),
    SmallInt(Vec<i16>),
    Int(Vec<i32>),
    BigInt(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal {
        precision: u8,
        scale: u8,
        values: Vec<i128>,
    },
    /// At most so many characters.
    Text {
        length: Option<u32>,
        bytes: Slices,
    },
    /// At most so many bytes.
    Bytes {
        length: Option<u32>,
        bytes: Slices,
    },
    Date(Vec<i32>),
    Time {
        precision: u8,
        units: Vec<i64>,
    },
    Timestamp {
        precision: u8,
        instant: bool,
        units: Vec<i64>,
    },
    Array {
        offsets: Vec<i32>,
        element: Box<Column>,
    },
    /// Entries are pairs of a key and a value.
    Map {
        offsets: Vec<i32>,
        entries: Fields,
    },
    Row(Fields),
}

/// Pieces of bytes, one behind the other.
#[derive(Debug)]
pub(super) struct Slices {
    pub(super) offsets: Vec<i32>,
    pub(super) data: Vec<u8>,
}

impl Slices {
    fn new() -> Slices {
        Slices { offsets: vec![0], data: Vec::new() }
    }

    /// Ends the piece that was appended to `data`.
    pub(super) fn close(&mut self) -> Result<(), JsonError> {
        // `Held` allows fewer than 31 bits of them.
        self.offsets.push(i32::try_from(self.data.len()).map_err(|_| full())?);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.data.truncate(last(&self.offsets));
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        self.data.get(range(&self.offsets, at)).unwrap_or_default()
    }
}

/// The last of some offsets.
fn last(offsets: &[i32]) -> usize {
    offsets.last().and_then(|last| usize::try_from(*last).ok()).unwrap_or_default()
}

/// What the entry `at` has of what the offsets are into.
pub(super) fn range(offsets: &[i32], at: usize) -> std::ops::Range<usize> {
    let offset = |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok());
    offset(at).unwrap_or_default()..offset(at + 1).unwrap_or_default()
}

impl Column {
    pub(super) fn new(field: &Field) -> Column {
        let values = Values::new(&field.data_type);
        Column { nullable: field.nullable, width: values.width(), nulls: NullBufferBuilder::new(0), values }
    }

    pub(super) fn len(&self) -> usize {
        self.nulls.len()
    }

    /// A null, or where none may be what a null ROW above has there: it is never seen.
    pub(super) fn append_unseen(&mut self) {
        self.nulls.append(!self.nullable);
        self.values.append_beneath_null();
    }

    pub(super) fn append_null(&mut self) {
        self.nulls.append_null();
        self.values.append_beneath_null();
    }

    /// The default of a column. Whether it is of the column's type, the schema has looked.
    pub(super) fn append_literal(&mut self, literal: &Literal, held: &mut Held) -> Result<(), JsonError> {
        let other = || JsonError::field("its default is not of its type; send a value");
        match (&mut self.values, literal) {
            (Values::Boolean(values), Literal::Boolean(value)) => values.append(*value),
            (Values::Float(values), Literal::Double(bits)) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a FLOAT that was widened comes back as it was"
                )]
                values.push(f64::from_bits(*bits) as f32);
            }
            (Values::Double(values), Literal::Double(bits)) => values.push(f64::from_bits(*bits)),
            (Values::Decimal { values, .. }, Literal::Decimal(unscaled)) => values.push(*unscaled),
            (Values::Text { bytes, .. }, Literal::Text(text)) => {
                held.pay(text.len())?;
                bytes.data.extend_from_slice(text.as_bytes());
                bytes.close()?;
            }
            (Values::Bytes { bytes, .. }, Literal::Bytes(value)) => {
                held.pay(value.len())?;
                bytes.data.extend_from_slice(value);
                bytes.close()?;
            }
            (values, Literal::Integer(value)) => values.append_integer(*value).ok_or_else(other)?,
            _ => return Err(other()),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    /// Forgets all but the first entries; what was appended halfway too.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.nulls.len() > len {
            self.nulls.truncate(len);
        }
        match &mut self.values {
            Values::Boolean(values) => values.truncate(len),
            Values::TinyInt(values) => values.truncate(len),
            Values::SmallInt(values) => values.truncate(len),
            Values::Int(values) | Values::Date(values) => values.truncate(len),
            Values::BigInt(values)
            | Values::Time { units: values, .. }
            | Values::Timestamp { units: values, .. } => values.truncate(len),
            Values::Float(values) => values.truncate(len),
            Values::Double(values) => values.truncate(len),
            Values::Decimal { values, .. } => values.truncate(len),
            Values::Text { bytes, .. } | Values::Bytes { bytes, .. } => bytes.truncate(len),
            Values::Array { offsets, element } => {
                offsets.truncate(len + 1);
                element.truncate(last(offsets));
            }
            Values::Map { offsets, entries } => {
                offsets.truncate(len + 1);
                entries.truncate(last(offsets));
            }
            Values::Row(fields) => fields.truncate(len),
        }
    }
}

impl Values {
    fn new(data_type: &DataType) -> Values {
        match data_type {
            DataType::Boolean => Values::Boolean(BooleanBufferBuilder::new(0)),
            DataType::TinyInt => Values::TinyInt(Vec::new()),
            DataType::SmallInt => Values::SmallInt(Vec::new()),
            DataType::Int => Values::Int(Vec::new()),
            DataType::BigInt => Values::BigInt(Vec::new()),
            DataType::Float => Values::Float(Vec::new()),
            DataType::Double => Values::Double(Vec::new()),
            DataType::Decimal { precision, scale } => {
                Values::Decimal { precision: *precision, scale: *scale, values: Vec::new() }
            }
            DataType::Char { length } => Values::Text { length: Some(*length), bytes: Slices::new() },
            DataType::String => Values::Text { length: None, bytes: Slices::new() },
            DataType::Binary { length } => Values::Bytes { length: Some(*length), bytes: Slices::new() },
            DataType::Bytes => Values::Bytes { length: None, bytes: Slices::new() },
            DataType::Date => Values::Date(Vec::new()),
            DataType::Time { precision } => Values::Time { precision: *precision, units: Vec::new() },
            DataType::Timestamp { precision } => {
                Values::Timestamp { precision: *precision, instant: false, units: Vec::new() }
            }
            DataType::TimestampLtz { precision } => {
                Values::Timestamp { precision: *precision, instant: true, units: Vec::new() }
            }
            DataType::Array(element) => {
                Values::Array { offsets: vec![0], element: Box::new(Column::new(element)) }
            }
            DataType::Map { key, value } => {
                Values::Map { offsets: vec![0], entries: Fields::new([key.as_ref(), value.as_ref()]) }
            }
            DataType::Row(fields) => Values::Row(Fields::new(fields)),
        }
    }

    fn width(&self) -> usize {
        match self {
            Values::Boolean(_) | Values::TinyInt(_) => 1,
            Values::SmallInt(_) => 2,
            Values::BigInt(_) | Values::Double(_) | Values::Time { .. } | Values::Timestamp { .. } => 8,
            Values::Decimal { .. } => 16,
            Values::Row(fields) => fields.width(),
            _ => 4,
        }
    }

    /// What stands where a null is.
    fn append_beneath_null(&mut self) {
        match self {
            Values::Boolean(values) => values.append(false),
            Values::TinyInt(values) => values.push(0),
            Values::SmallInt(values) => values.push(0),
            Values::Int(values) | Values::Date(values) => values.push(0),
            Values::BigInt(values)
            | Values::Time { units: values, .. }
            | Values::Timestamp { units: values, .. } => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text { bytes: Slices { offsets, .. }, .. }
            | Values::Bytes { bytes: Slices { offsets, .. }, .. }
            | Values::Array { offsets, .. }
            | Values::Map { offsets, .. } => offsets.push(offsets.last().copied().unwrap_or_default()),
            Values::Row(fields) => fields.append_unseen(),
        }
    }

    /// None if it is out of range, or no column of whole numbers.
    fn append_integer(&mut self, value: i64) -> Option<()> {
        match self {
            Values::TinyInt(values) => values.push(i8::try_from(value).ok()?),
            Values::SmallInt(values) => values.push(i16::try_from(value).ok()?),
            Values::Int(values) | Values::Date(values) => values.push(i32::try_from(value).ok()?),
            Values::BigInt(values)
            | Values::Time { units: values, .. }
            | Values::Timestamp { units: values, .. } => values.push(value),
            _ => return None,
        }
        Some(())
    }
}

/// Ends the list whose elements were appended.
pub(super) fn close_list(offsets: &mut Vec<i32>, elements: usize) -> Result<(), JsonError> {
    // Each was paid for with a byte at least, so that they fit.
    offsets.push(i32::try_from(elements).map_err(|_| full())?);
    Ok(())
}

/// Where the list begins whose elements are appended now.
pub(super) fn list_start(offsets: &[i32]) -> usize {
    last(offsets)
}
