//! A schema taken apart, for what stores it.
//!
//! Lives on: anywhere (pure).
use super::check::check;
use super::{Field, FieldId, Schema, SchemaError, SchemaId};

/// All of a schema. It is one only when [`Schema::from_parts`] has looked at it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SchemaParts {
    pub id: SchemaId,
    pub columns: Vec<Field>,
    pub last_field: FieldId,
    pub primary_key: Vec<FieldId>,
    pub partitioned_by: Vec<FieldId>,
    pub bucket_key: Vec<FieldId>,
}

impl Schema {
    pub fn to_parts(&self) -> SchemaParts {
        let Schema { id, columns, last_field, primary_key, partitioned_by, bucket_key } = self.clone();
        SchemaParts { id, columns, last_field, primary_key, partitioned_by, bucket_key }
    }

    /// The schema that these are the parts of, if they are those of one. They may be anybody's bytes.
    pub fn from_parts(parts: SchemaParts) -> Result<Schema, SchemaError> {
        let SchemaParts { id, columns, last_field, primary_key, partitioned_by, bucket_key } = parts;
        let schema = Schema { id, columns, last_field, primary_key, partitioned_by, bucket_key };
        check(&schema)?;
        Ok(schema)
    }
}
