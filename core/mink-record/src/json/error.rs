//! Why a row is refused: where in it, what was found there, and what is accepted.
//!
//! Lives on: anywhere (pure).
//! Invariants: J4: at most `SHOWN_CHARS_MAX` characters of the row, escaped; the rest of the text is the table's.
use super::SHOWN_CHARS_MAX;
use std::fmt;

/// What is wrong, by what the sender must do about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text is not one JSON object.
    Syntax,
    /// A field that is unknown, named twice, missing, or at odds with the record's key.
    Field,
    /// A value that is not of its column's type.
    Value,
    /// The row alone is larger than the limits: it can never be taken.
    TooLarge,
    /// The builder is full. Finish the batch and push the same row again.
    Full,
    /// A record without a value.
    Tombstone,
}

/// A row that was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(Box<Refused>);

/// Behind a pointer, for every step of reading gives a result.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refused {
    kind: JsonErrorKind,
    path: String,
    message: String,
}

impl JsonError {
    pub(super) fn new(kind: JsonErrorKind, message: impl Into<String>) -> JsonError {
        JsonError(Box::new(Refused { kind, path: String::new(), message: message.into() }))
    }

    pub(super) fn field(message: impl Into<String>) -> JsonError {
        JsonError::new(JsonErrorKind::Field, message)
    }

    pub(super) fn value(message: impl Into<String>) -> JsonError {
        JsonError::new(JsonErrorKind::Value, message)
    }

    pub fn kind(&self) -> JsonErrorKind {
        self.0.kind
    }

    /// Where it is: `items[3].price`; empty if it is the row as a whole.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What was found and what is accepted, without the path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same, seen from one level above: in the column of this name.
    pub(super) fn below(mut self, name: &str) -> JsonError {
        let dot = if self.0.path.is_empty() || self.0.path.starts_with('[') { "" } else { "." };
        let name = shown(name, NAME_CHARS_MAX);
        self.0.path = format!("{name}{dot}{}", self.0.path);
        self
    }

    /// The same, seen from one level above: in the element or entry at this place.
    pub(super) fn at(mut self, place: usize) -> JsonError {
        let dot = if self.0.path.is_empty() || self.0.path.starts_with('[') { "" } else { "." };
        self.0.path = format!("[{place}]{dot}{}", self.0.path);
        self
    }

    /// The same, of a record's key.
    pub(super) fn in_key(mut self) -> JsonError {
        self.0.message.insert_str(0, "in the record's key: ");
        self
    }

    /// The same; nothing but this row is in the builder, so that it will never fit.
    pub(super) fn alone(mut self, bytes_max: usize) -> JsonError {
        self.0.kind = JsonErrorKind::TooLarge;
        self.0.message = format!("the row has more than {bytes_max} bytes as columns; send a smaller one");
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Characters of a column's name that an error repeats.
const NAME_CHARS_MAX: usize = 120;

/// At most so many characters of a text, escaped.
fn shown(text: &str, chars_max: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(chars_max).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// A column of the table.
pub(super) fn named(name: &str) -> String {
    format!("`{}`", shown(name, NAME_CHARS_MAX))
}

/// A piece of the row.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", shown(text, SHOWN_CHARS_MAX))
}
