//! One column, or one field below it.
//!
//! Lives on: anywhere (pure).
use super::{DataType, Literal};
use std::fmt;

/// The id of a column or nested field: unique in its table for ever, from 1. Readers map by it, never by name or place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldId(pub u32);

impl FieldId {
    /// Not given yet: what the fields of a draft and of a new column carry.
    pub const NONE: FieldId = FieldId(0);
}

impl fmt::Display for FieldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A column, or a field of a nested type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Field {
    pub id: FieldId,
    pub name: String,
    pub data_type: DataType,
    /// Whether a value may be missing.
    pub nullable: bool,
    /// What rows have that were written before the column was there, and rows whose writer does not know it; null if there is none.
    /// Columns only, never nested fields.
    pub default: Option<Literal>,
    pub comment: Option<String>,
}

impl Field {
    /// A field that may be null, without an id, a default or a comment.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Field {
        let name = name.into();
        Field { id: FieldId::NONE, name, data_type, nullable: true, default: None, comment: None }
    }

    /// The same field, never null.
    #[must_use]
    pub fn not_null(self) -> Field {
        Field { nullable: false, ..self }
    }
}
