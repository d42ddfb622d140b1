//! The first schema of a table, from what its CREATE says.
//!
//! Lives on: anywhere (pure).
use super::check::check;
use super::data_type::{ELEMENT, KEY, VALUE};
use super::error::{listed, shown};
use super::{DataType, Field, FieldId, SCHEMA_DEPTH_MAX, Schema, SchemaError, SchemaId};

/// What a CREATE says of a table's columns. Ids of its fields are not looked at: all are given anew.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SchemaDraft {
    pub columns: Vec<Field>,
    /// Names of columns, in order; none for a log table.
    pub primary_key: Vec<String>,
    pub partitioned_by: Vec<String>,
    /// None: what the primary key has beside the partition columns; for a log table, any bucket takes any row.
    pub bucket_key: Vec<String>,
}

impl Schema {
    /// The first schema of a table. Fields get ids from 1, each before those below it; columns that a key, the partitions or the
    /// buckets go by are made NOT NULL.
    pub fn create(draft: SchemaDraft) -> Result<Schema, SchemaError> {
        let SchemaDraft { mut columns, primary_key, partitioned_by, mut bucket_key } = draft;
        if bucket_key.is_empty() {
            let rest = primary_key.iter().filter(|name| !partitioned_by.contains(name));
            bucket_key = rest.cloned().collect();
        }
        let mut ids = Ids::after(FieldId::NONE);
        for column in &mut columns {
            ids.give(column, 1)?;
        }
        let primary_key = used(&mut columns, &primary_key)?;
        let partitioned_by = used(&mut columns, &partitioned_by)?;
        let bucket_key = used(&mut columns, &bucket_key)?;
        let (id, last_field) = (SchemaId::FIRST, ids.last());
        let schema = Schema { id, columns, last_field, primary_key, partitioned_by, bucket_key };
        check(&schema)?;
        Ok(schema)
    }
}

/// The ids of columns that rows go by. They are never null.
fn used(columns: &mut [Field], names: &[String]) -> Result<Vec<FieldId>, SchemaError> {
    let mut ids = Vec::new();
    for name in names {
        if let Some(column) = columns.iter_mut().find(|column| column.name == *name) {
            column.nullable = false;
            ids.push(column.id);
        } else {
            let known = listed(columns.iter().map(|column| column.name.as_str()));
            return Err(SchemaError::Unknown { column: shown([name.as_str()]), known });
        }
    }
    Ok(ids)
}

/// Gives ids to fields that are new to a table.
pub(super) struct Ids {
    last: FieldId,
}

impl Ids {
    pub(super) fn after(last: FieldId) -> Ids {
        Ids { last }
    }

    pub(super) fn last(&self) -> FieldId {
        self.last
    }

    /// Gives ids to a field at `depth` and to all below it, and the fields of its type the names they always have. A text may nest
    /// deeper than a stack: that is looked at before going down.
    pub(super) fn give(&mut self, field: &mut Field, depth: usize) -> Result<(), SchemaError> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::Depth { column: shown([field.name.as_str()]) });
        }
        self.last = FieldId(self.last.0.checked_add(1).ok_or(SchemaError::IdsUsedUp)?);
        field.id = self.last;
        name_fixed(&mut field.data_type);
        for child in field.data_type.children_mut() {
            self.give(child, depth + 1)?;
        }
        Ok(())
    }
}

/// Elements, keys and values are called so whoever made the type, and keys are never null.
pub(super) fn name_fixed(data_type: &mut DataType) {
    match data_type {
        DataType::Array(element) => ELEMENT.clone_into(&mut element.name),
        DataType::Map { key, value } => {
            KEY.clone_into(&mut key.name);
            key.nullable = false;
            VALUE.clone_into(&mut value.name);
        }
        _ => {}
    }
}
