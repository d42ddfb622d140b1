//! Whether the type of a file's column can become the type of the table's.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is let through here, the conversion knows; whether each value fits is seen when it is converted.
use super::{pair_of, shown};
use arrow_schema::DataType as ArrowType;
use mink_types::schema::{DataType, Field};

/// Checks a column and all below it.
pub(super) fn check(found: &ArrowType, wanted: &Field, path: &str) -> Result<(), String> {
    let unlike = || {
        Err(format!(
            "column {path}: the file has {}, the table {}; {}",
            shown(found),
            wanted.data_type,
            accepted(&wanted.data_type)
        ))
    };
    let below = |child: &ArrowType, field: &Field| check(child, field, &format!("{path}.{}", field.name));
    match (found, &wanted.data_type) {
        (ArrowType::Dictionary(_, value), _) => check(value, wanted, path),
        (ArrowType::Null, _) if wanted.nullable => Ok(()),
        (
            ArrowType::List(child)
            | ArrowType::LargeList(child)
            | ArrowType::FixedSizeList(child, _)
            | ArrowType::ListView(child)
            | ArrowType::LargeListView(child),
            DataType::Array(element),
        ) => below(child.data_type(), element),
        (ArrowType::Map(entries, _), DataType::Map { key, value }) => {
            let Some((found_key, found_value)) = pair_of(entries) else { return unlike() };
            below(found_key.data_type(), key)?;
            below(found_value.data_type(), value)
        }
        (ArrowType::Struct(fields), DataType::Row(children)) => {
            for field in fields {
                let Some(child) = children.iter().find(|child| child.name == *field.name()) else {
                    return Err(format!(
                        "column {path}: the file has a field {:?} in it, which the table's {} has not",
                        field.name(),
                        wanted.data_type
                    ));
                };
                below(field.data_type(), child)?;
            }
            let missing =
                |child: &&Field| !child.nullable && !fields.iter().any(|field| field.name() == &child.name);
            match children.iter().find(missing) {
                Some(child) => Err(format!(
                    "column {path}: the file has no field {:?} in it, which is NOT NULL",
                    child.name
                )),
                None => Ok(()),
            }
        }
        (found, wanted) if takes(wanted, found) => Ok(()),
        _ => unlike(),
    }
}

/// Whether a scalar of the table may come from values of such a type.
fn takes(wanted: &DataType, found: &ArrowType) -> bool {
    match wanted {
        DataType::Boolean => matches!(found, ArrowType::Boolean),
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => found.is_integer(),
        DataType::Float | DataType::Double => found.is_integer() || found.is_floating(),
        DataType::Decimal { .. } => {
            found.is_integer()
                || matches!(
                    found,
                    ArrowType::Decimal32(..)
                        | ArrowType::Decimal64(..)
                        | ArrowType::Decimal128(..)
                        | ArrowType::Decimal256(..)
                )
        }
        DataType::Char { .. } | DataType::String => {
            matches!(found, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
        }
        DataType::Binary { .. } | DataType::Bytes => matches!(
            found,
            ArrowType::Binary
                | ArrowType::LargeBinary
                | ArrowType::BinaryView
                | ArrowType::FixedSizeBinary(_)
        ),
        DataType::Date => matches!(found, ArrowType::Date32 | ArrowType::Date64),
        DataType::Time { .. } => matches!(found, ArrowType::Time32(_) | ArrowType::Time64(_)),
        DataType::Timestamp { .. } => matches!(found, ArrowType::Timestamp(_, None)),
        DataType::TimestampLtz { .. } => matches!(found, ArrowType::Timestamp(_, Some(_))),
        DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => false,
    }
}

/// What the column takes, in words.
fn accepted(wanted: &DataType) -> &'static str {
    match wanted {
        DataType::Boolean => "it takes booleans",
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => {
            "it takes integers of any width, signed or not"
        }
        DataType::Float | DataType::Double => "it takes floats and integers",
        DataType::Decimal { .. } => "it takes decimals and integers, no floats: cast those in the file",
        DataType::Char { .. } | DataType::String => "it takes strings",
        DataType::Binary { .. } | DataType::Bytes => "it takes binary values",
        DataType::Date => "it takes dates",
        DataType::Time { .. } => "it takes times of day",
        DataType::Timestamp { .. } => {
            "it takes timestamps without a time zone; one with a zone is an instant, TIMESTAMP_LTZ"
        }
        DataType::TimestampLtz { .. } => {
            "it takes timestamps with a time zone; one without says no instant: give it its zone in the file"
        }
        DataType::Array(_) => "it takes lists",
        DataType::Map { .. } => "it takes maps",
        DataType::Row(_) => "it takes structs",
    }
}
