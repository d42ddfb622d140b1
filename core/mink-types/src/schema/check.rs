//! What every schema promises, looked at whenever one is made.
//!
//! Lives on: anywhere (pure).
//! Invariants: goes down no deeper than `SCHEMA_DEPTH_MAX` and past no more than `SCHEMA_FIELDS_MAX` fields, whatever it is given.
use super::data_type::{ELEMENT, KEY, VALUE};
use super::error::{cut, shown};
use super::{
    COLUMN_NAME_BYTES_MAX, COMMENT_BYTES_MAX, DECIMAL_PRECISION_MAX, DEFAULT_BYTES_MAX, DataType, Field,
    FieldId, KEY_COLUMNS_MAX, KeyUse, LENGTH_MAX, Literal, SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX,
    SCHEMA_TEXT_BYTES_MAX, Schema, SchemaError, SchemaId, TIME_PRECISION_MAX,
};
use std::collections::BTreeSet;

/// Whether this is a schema.
pub(super) fn check(schema: &Schema) -> Result<(), SchemaError> {
    if schema.id < SchemaId::FIRST {
        return Err(SchemaError::Malformed("its id is 0; ids start at 1"));
    }
    if schema.columns.is_empty() {
        return Err(SchemaError::NoColumns);
    }
    let mut walk = Walk { path: Vec::new(), ids: BTreeSet::new(), id_last: schema.last_field, text_bytes: 0 };
    walk.siblings(&schema.columns)?;
    check_keys(schema)
}

/// The walk over all fields, depth first.
struct Walk<'a> {
    /// Names from the column down to the field that is looked at.
    path: Vec<&'a str>,
    ids: BTreeSet<FieldId>,
    id_last: FieldId,
    text_bytes: usize,
}

impl<'a> Walk<'a> {
    /// Columns, or fields of a ROW.
    fn siblings(&mut self, fields: &'a [Field]) -> Result<(), SchemaError> {
        let mut names = BTreeSet::new();
        for field in fields {
            self.path.push(&field.name);
            let bytes = field.name.len();
            if bytes == 0 || bytes > COLUMN_NAME_BYTES_MAX || field.name.contains(char::is_control) {
                return Err(SchemaError::Name { column: self.shown() });
            }
            if !names.insert(field.name.as_str()) {
                return Err(SchemaError::Twice { column: self.shown() });
            }
            self.field(field)?;
            self.path.pop();
        }
        Ok(())
    }

    /// The element of an ARRAY, the key or the value of a MAP.
    fn only_child(&mut self, field: &'a Field, name: &'static str) -> Result<(), SchemaError> {
        self.path.push(name);
        if field.name != name {
            return Err(SchemaError::Malformed(
                "elements, keys and values are called element, key and value",
            ));
        }
        if field.comment.is_some() {
            return Err(SchemaError::Comment { column: self.shown() });
        }
        self.field(field)?;
        self.path.pop();
        Ok(())
    }

    fn field(&mut self, field: &'a Field) -> Result<(), SchemaError> {
        if self.path.len() > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::Depth { column: self.shown() });
        }
        if field.id == FieldId::NONE || field.id > self.id_last {
            return Err(SchemaError::Malformed("ids of fields go from 1 to the last one given"));
        }
        if !self.ids.insert(field.id) {
            return Err(SchemaError::Malformed("two fields have one id"));
        }
        if self.ids.len() > SCHEMA_FIELDS_MAX {
            return Err(SchemaError::Fields);
        }
        self.text(field)?;
        self.data_type(&field.data_type)?;
        self.default(field)
    }

    fn text(&mut self, field: &Field) -> Result<(), SchemaError> {
        if let Some(comment) = &field.comment {
            let control = |c: char| c.is_control() && c != '\t' && c != '\n';
            if comment.len() > COMMENT_BYTES_MAX || comment.contains(control) {
                return Err(SchemaError::Comment { column: self.shown() });
            }
        }
        let default = match &field.default {
            Some(Literal::Text(text)) => text.len(),
            Some(Literal::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        self.text_bytes += field.name.len() + field.comment.as_ref().map_or(0, String::len) + default;
        if self.text_bytes > SCHEMA_TEXT_BYTES_MAX { Err(SchemaError::Text) } else { Ok(()) }
    }

    fn data_type(&mut self, data_type: &'a DataType) -> Result<(), SchemaError> {
        let accepted = match data_type {
            DataType::Decimal { precision, scale } => {
                let fits = (1..=DECIMAL_PRECISION_MAX).contains(precision) && scale <= precision;
                (!fits).then_some("DECIMAL(p, s) with p from 1 to 38 and s from 0 to p")
            }
            DataType::Char { length } | DataType::Binary { length } => {
                let fits = (1..=LENGTH_MAX).contains(length);
                (!fits).then_some("a length from 1 to 2147483647")
            }
            DataType::Time { precision }
            | DataType::Timestamp { precision }
            | DataType::TimestampLtz { precision } => {
                (*precision > TIME_PRECISION_MAX).then_some("a precision from 0 to 9")
            }
            DataType::Row(fields) => fields.is_empty().then_some("a ROW with at least one field"),
            _ => None,
        };
        if let Some(accepted) = accepted {
            let data_type = cut(&data_type.to_string());
            return Err(SchemaError::Type { column: self.shown(), data_type, accepted });
        }
        match data_type {
            DataType::Array(element) => self.only_child(element, ELEMENT),
            DataType::Map { key, value } => {
                if key.nullable {
                    return Err(SchemaError::Malformed("the keys of a MAP are never null"));
                }
                self.only_child(key, KEY)?;
                self.only_child(value, VALUE)
            }
            DataType::Row(fields) => self.siblings(fields),
            _ => Ok(()),
        }
    }

    fn default(&self, field: &Field) -> Result<(), SchemaError> {
        let Some(default) = &field.default else { return Ok(()) };
        let refuse = |accepted: &str| {
            Err(SchemaError::Default { column: self.shown(), accepted: accepted.to_owned() })
        };
        if self.path.len() > 1 {
            return refuse("it on columns only; a nested field has none");
        }
        if let Err(accepted) = field.data_type.check_literal(default) {
            return refuse(&accepted);
        }
        let bytes = match default {
            Literal::Text(text) => text.len(),
            Literal::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if bytes > DEFAULT_BYTES_MAX {
            return refuse(&format!("at most {DEFAULT_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    fn shown(&self) -> String {
        shown(self.path.iter().copied())
    }
}

/// What rows go by: each key for itself, then what they have to do with each other.
fn check_keys(schema: &Schema) -> Result<(), SchemaError> {
    check_key(schema, KeyUse::PrimaryKey, &schema.primary_key)?;
    check_key(schema, KeyUse::PartitionedBy, &schema.partitioned_by)?;
    check_key(schema, KeyUse::BucketKey, &schema.bucket_key)?;
    let Schema { primary_key, partitioned_by, bucket_key, .. } = schema;
    let refuse = |used_by, id: FieldId, accepted| {
        let column = shown(schema.column_by_id(id).map(|column| column.name.as_str()));
        Err(SchemaError::Key { used_by, column, accepted })
    };
    if let Some(id) = bucket_key.iter().find(|id| partitioned_by.contains(id)) {
        return refuse(KeyUse::BucketKey, *id, "columns that the table is not partitioned by");
    }
    if primary_key.is_empty() {
        return Ok(());
    }
    // Else one key could be in two partitions, or in two buckets.
    if let Some(id) = partitioned_by.iter().find(|id| !primary_key.contains(id)) {
        return refuse(KeyUse::PartitionedBy, *id, "columns of the primary key");
    }
    if let Some(id) = bucket_key.iter().find(|id| !primary_key.contains(id)) {
        return refuse(KeyUse::BucketKey, *id, "columns of the primary key");
    }
    match (bucket_key.first(), primary_key.first()) {
        (None, Some(id)) => {
            refuse(KeyUse::PrimaryKey, *id, "one more column, which the table is not partitioned by")
        }
        _ => Ok(()),
    }
}

fn check_key(schema: &Schema, used_by: KeyUse, ids: &[FieldId]) -> Result<(), SchemaError> {
    if ids.len() > KEY_COLUMNS_MAX {
        return Err(SchemaError::KeyColumns { used_by });
    }
    let mut seen = BTreeSet::new();
    for id in ids {
        let column =
            schema.column_by_id(*id).ok_or(SchemaError::Malformed("a key has a column that is not there"))?;
        let refuse =
            |accepted| Err(SchemaError::Key { used_by, column: shown([column.name.as_str()]), accepted });
        if !seen.insert(*id) {
            return refuse("each column once");
        }
        if !column.data_type.is_scalar() {
            return refuse("columns of scalar types");
        }
        if column.nullable {
            return Err(SchemaError::Malformed("a column that a key has is never null"));
        }
    }
    Ok(())
}
