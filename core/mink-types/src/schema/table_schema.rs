//! The schema of a table at one id.
//!
//! Lives on: anywhere (pure).
use super::{Field, FieldId};
use std::fmt;

/// The number of a schema within its table: 1 for the one it was created with, then one more with each change. Batches carry it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SchemaId(pub u32);

impl SchemaId {
    /// The schema that a table is created with.
    pub const FIRST: SchemaId = SchemaId(1);
}

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Columns of a table, and which of them its key, partitions and buckets go by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Schema {
    pub(super) id: SchemaId,
    pub(super) columns: Vec<Field>,
    /// The highest id that any schema of this table has given: the next field gets the one after it.
    pub(super) last_field: FieldId,
    /// `PRIMARY KEY`, in its order; empty for a log table.
    pub(super) primary_key: Vec<FieldId>,
    /// `PARTITIONED BY`, in its order; empty for a table that is not partitioned.
    pub(super) partitioned_by: Vec<FieldId>,
    /// `bucket.key`, in its order; empty when rows go to any bucket.
    pub(super) bucket_key: Vec<FieldId>,
}

impl Schema {
    pub fn id(&self) -> SchemaId {
        self.id
    }

    /// The columns, in the order in which they are shown.
    pub fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// The highest field id that this table has given so far.
    pub fn last_field(&self) -> FieldId {
        self.last_field
    }

    /// The columns of the primary key, in its order; none for a log table.
    pub fn primary_key(&self) -> &[FieldId] {
        &self.primary_key
    }

    /// The columns that rows are partitioned by, in their order.
    pub fn partitioned_by(&self) -> &[FieldId] {
        &self.partitioned_by
    }

    /// The columns whose hash chooses a row's bucket, in their order; none when rows go to any bucket.
    pub fn bucket_key(&self) -> &[FieldId] {
        &self.bucket_key
    }

    /// The column of this name, as written (names are told apart by case).
    pub fn column(&self, name: &str) -> Option<&Field> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column with this id. Nested fields are not found here.
    pub fn column_by_id(&self, id: FieldId) -> Option<&Field> {
        self.columns.iter().find(|column| column.id == id)
    }
}
