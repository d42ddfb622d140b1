//! Why a schema or a change of it is refused: which column, and what would be accepted.
//!
//! Lives on: anywhere (pure).
use super::{
    COLUMN_NAME_BYTES_MAX, COMMENT_BYTES_MAX, KEY_COLUMNS_MAX, SCHEMA_CHANGES_MAX, SCHEMA_DEPTH_MAX,
    SCHEMA_FIELDS_MAX, SCHEMA_TEXT_BYTES_MAX,
};
use std::fmt;

/// What a column is used by, so that it must be there, be scalar, never null and of one type for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyUse {
    PrimaryKey,
    PartitionedBy,
    BucketKey,
}

impl fmt::Display for KeyUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyUse::PrimaryKey => "PRIMARY KEY",
            KeyUse::PartitionedBy => "PARTITIONED BY",
            KeyUse::BucketKey => "bucket.key",
        })
    }
}

/// A schema, or a change of one, that cannot be taken. Columns are named by their path, escaped and cut for show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    #[error("a table without columns; name at least one")]
    NoColumns,
    #[error("column {column}: {data_type} is not accepted; use {accepted}")]
    Type { column: String, data_type: String, accepted: &'static str },
    #[error(
        "column {column}: this is no name for it; use 1 to {COLUMN_NAME_BYTES_MAX} bytes without control characters"
    )]
    Name { column: String },
    #[error("column {column} is named twice; use names that are unique in the table, or in their ROW")]
    Twice { column: String },
    #[error("there is no column {column}; use {known}")]
    Unknown { column: String, known: String },
    #[error("column {column} is nested too deeply; use at most {SCHEMA_DEPTH_MAX} levels")]
    Depth { column: String },
    #[error("more columns and nested fields than a schema takes; use at most {SCHEMA_FIELDS_MAX} together")]
    Fields,
    #[error(
        "names, comments and defaults are longer than a schema takes; use at most {SCHEMA_TEXT_BYTES_MAX} bytes together"
    )]
    Text,
    #[error("column {column}: its default is not accepted; use {accepted}")]
    Default { column: String, accepted: String },
    #[error(
        "column {column}: its comment is not accepted; use at most {COMMENT_BYTES_MAX} bytes, without control characters but tabs and newlines, on a column or a field of a ROW"
    )]
    Comment { column: String },
    #[error("{used_by}: column {column} is not accepted; use {accepted}")]
    Key { used_by: KeyUse, column: String, accepted: &'static str },
    #[error("{used_by}: too many columns; use at most {KEY_COLUMNS_MAX}")]
    KeyColumns { used_by: KeyUse },
    #[error(
        "column {column} is used by {used_by}: it cannot be {refused}, only renamed, moved and commented on"
    )]
    InUse { column: String, used_by: KeyUse, refused: &'static str },
    #[error("column {column}: {from} cannot become {to}; use {accepted}")]
    NotWider { column: String, from: String, to: String, accepted: String },
    #[error("column {column}: {problem}")]
    Change { column: String, problem: &'static str },
    #[error("column {column}: this changes nothing; leave it out")]
    Nothing { column: String },
    #[error("the schema is as it was; name at least one change")]
    Unchanged,
    #[error("too many changes at once; use at most {SCHEMA_CHANGES_MAX}")]
    Changes,
    #[error("the ids of this table's schemas or fields are used up; make a new table")]
    IdsUsedUp,
    /// Only what was not made by this module is so.
    #[error("this is no schema: {0}")]
    Malformed(&'static str),
    /// Only what no list of changes gives is so, as the next.
    #[error("the schema does not follow the one before it: {0}")]
    NotAfter(&'static str),
    #[error("the schema does not follow the one before it: column {column}: {problem}")]
    NotNext { column: String, problem: &'static str },
}

/// Longest text of the user's that an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// How many names an error lists.
const LISTED_MAX: usize = 12;

/// A path for an error's text.
pub(super) fn shown<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (place, name) in path.into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        text.extend(name.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug));
        if text.chars().count() > SHOWN_CHARS_MAX {
            break;
        }
    }
    if text.is_empty() { "\"\"".to_owned() } else { cut(&text) }
}

/// The path of a field below `parent`.
pub(super) fn shown_below(parent: &[String], name: &str) -> String {
    shown(parent.iter().map(String::as_str).chain([name]))
}

/// At most as much text as an error repeats.
pub(super) fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(SHOWN_CHARS_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// The names there are, for an error's text: not all of a great many.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names = names.map(|name| shown([name]));
    let mut list = names.by_ref().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
    if names.next().is_some() {
        list.push_str(", …");
    }
    if list.is_empty() { "a column without fields as it is".to_owned() } else { list }
}
