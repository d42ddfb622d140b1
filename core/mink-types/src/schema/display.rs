//! Types as SQL writes them.
//!
//! Lives on: anywhere (pure).
use super::{DataType, Field};
use std::fmt;

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("BOOLEAN"),
            DataType::TinyInt => f.write_str("TINYINT"),
            DataType::SmallInt => f.write_str("SMALLINT"),
            DataType::Int => f.write_str("INT"),
            DataType::BigInt => f.write_str("BIGINT"),
            DataType::Float => f.write_str("FLOAT"),
            DataType::Double => f.write_str("DOUBLE"),
            DataType::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            DataType::Char { length } => write!(f, "CHAR({length})"),
            DataType::String => f.write_str("STRING"),
            DataType::Binary { length } => write!(f, "BINARY({length})"),
            DataType::Bytes => f.write_str("BYTES"),
            DataType::Date => f.write_str("DATE"),
            DataType::Time { precision } => write!(f, "TIME({precision})"),
            DataType::Timestamp { precision } => write!(f, "TIMESTAMP({precision})"),
            DataType::TimestampLtz { precision } => write!(f, "TIMESTAMP_LTZ({precision})"),
            DataType::Array(element) => write!(f, "ARRAY<{}{}>", element.data_type, null(element)),
            // Keys are never null; that is not said.
            DataType::Map { key, value } => {
                write!(f, "MAP<{}, {}{}>", key.data_type, value.data_type, null(value))
            }
            DataType::Row(fields) => row(fields, f),
        }
    }
}

fn row(fields: &[Field], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("ROW<")?;
    for (place, field) in fields.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        write!(f, "{comma}{} {}{}", Name(&field.name), field.data_type, null(field))?;
        if let Some(comment) = &field.comment {
            write!(f, " COMMENT '{}'", comment.replace('\'', "''"))?;
        }
    }
    f.write_str(">")
}

fn null(field: &Field) -> &'static str {
    if field.nullable { "" } else { " NOT NULL" }
}

/// A name, in double quotes if it is not a plain identifier.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if self.0.chars().all(plain) && self.0.starts_with(|c: char| !c.is_ascii_digit()) {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}
