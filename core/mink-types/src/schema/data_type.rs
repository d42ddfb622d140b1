//! The types of columns, under their SQL names.
//!
//! Lives on: anywhere (pure).
use super::Field;

/// The type of a column or of a nested field. What Arrow type each is stored as, mink-record says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DataType {
    Boolean,
    /// Signed, 8 bits.
    TinyInt,
    /// Signed, 16 bits.
    SmallInt,
    /// Signed, 32 bits.
    Int,
    /// Signed, 64 bits.
    BigInt,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// `precision` decimal digits (1 to 38), `scale` of them (0 to `precision`) behind the point.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Text of at most `length` characters; shorter text is not padded.
    Char {
        length: u32,
    },
    /// Text of any length.
    String,
    /// At most `length` bytes; fewer are not padded.
    Binary {
        length: u32,
    },
    /// Bytes of any number.
    Bytes,
    /// Days since 1970-01-01.
    Date,
    /// Time of day with `precision` (0 to 9) digits behind the second.
    Time {
        precision: u8,
    },
    /// Date and time without a time zone, `precision` (0 to 9) digits behind the second.
    Timestamp {
        precision: u8,
    },
    /// An instant, `precision` (0 to 9) digits behind the second.
    TimestampLtz {
        precision: u8,
    },
    /// Elements of one type. The field's name is `element`.
    Array(Box<Field>),
    /// Keys, never null, and values. The fields' names are `key` and `value`.
    Map {
        key: Box<Field>,
        value: Box<Field>,
    },
    /// Fields with names, at least one.
    Row(Vec<Field>),
}

/// What a stored time counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl TimeUnit {
    /// The unit that holds this many digits behind the second: 0 s, 1 to 3 ms, 4 to 6 us, 7 to 9 ns.
    pub fn of_precision(precision: u8) -> TimeUnit {
        match precision {
            0 => TimeUnit::Seconds,
            1..=3 => TimeUnit::Milliseconds,
            4..=6 => TimeUnit::Microseconds,
            _ => TimeUnit::Nanoseconds,
        }
    }

    /// Units in a second.
    pub fn per_second(self) -> i64 {
        match self {
            TimeUnit::Seconds => 1,
            TimeUnit::Milliseconds => 1_000,
            TimeUnit::Microseconds => 1_000_000,
            TimeUnit::Nanoseconds => 1_000_000_000,
        }
    }
}

impl DataType {
    /// Whether it has no fields of its own: only such columns can be keys.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, DataType::Array(_) | DataType::Map { .. } | DataType::Row(_))
    }

    /// The fields directly below it, in order.
    pub fn children(&self) -> Vec<&Field> {
        match self {
            DataType::Array(element) => vec![element],
            DataType::Map { key, value } => vec![key, value],
            DataType::Row(fields) => fields.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Lists of this type, whose elements may be null.
    #[must_use]
    pub fn array(element: DataType) -> DataType {
        DataType::Array(Box::new(Field::new(ELEMENT, element)))
    }

    /// Maps between these types, whose values may be null.
    #[must_use]
    pub fn map(key: DataType, value: DataType) -> DataType {
        let key = Box::new(Field::new(KEY, key).not_null());
        DataType::Map { key, value: Box::new(Field::new(VALUE, value)) }
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut Field> {
        match self {
            DataType::Array(element) => vec![element],
            DataType::Map { key, value } => vec![key, value],
            DataType::Row(fields) => fields.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

/// What the field of an ARRAY is called.
pub(super) const ELEMENT: &str = "element";
/// What the fields of a MAP are called.
pub(super) const KEY: &str = "key";
pub(super) const VALUE: &str = "value";
