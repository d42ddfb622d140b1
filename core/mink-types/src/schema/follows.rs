//! Whether one schema may come after another: what no list of changes gives is refused, whoever says it was planned so.
//!
//! Lives on: anywhere (pure).
//! Invariants: whatever [`Schema::alter`] makes of a schema follows it.
use super::error::shown;
use super::{DataType, ELEMENT, Field, FieldId, KEY, Schema, SchemaError, VALUE};
use std::collections::BTreeMap;

impl Schema {
    /// Whether some list of changes could have made this schema of `previous`.
    pub fn follows(&self, previous: &Schema) -> Result<(), SchemaError> {
        let refuse = |problem| Err(SchemaError::NotAfter(problem));
        if previous.id.0.checked_add(1) != Some(self.id.0) {
            return refuse("its id is not the next one");
        }
        if self.last_field < previous.last_field {
            return refuse("it gives ids of fields again");
        }
        if self.primary_key != previous.primary_key
            || self.partitioned_by != previous.partitioned_by
            || self.bucket_key != previous.bucket_key
        {
            return refuse("its primary key, partitions or bucket key are other ones");
        }
        if self.columns == previous.columns {
            return Err(SchemaError::Unchanged);
        }
        let mut step = Step { id_last: previous.last_field, path: Vec::new(), below_key: false };
        step.siblings(&previous.columns, &self.columns)?;
        self.keys_as_before(previous)
    }

    /// What rows go by stays as it was, but for names, places and comments.
    fn keys_as_before(&self, previous: &Schema) -> Result<(), SchemaError> {
        let used = self.primary_key.iter().chain(&self.partitioned_by).chain(&self.bucket_key);
        for id in used {
            let old = previous.column_by_id(*id).map(|column| &column.data_type);
            let Some(new) = self.column_by_id(*id) else { continue };
            if old != Some(&new.data_type) {
                let problem = "what a key goes by cannot be retyped";
                return Err(SchemaError::NotNext { column: shown([new.name.as_str()]), problem });
            }
        }
        Ok(())
    }
}

/// The walk over two schemas, field by field with the same id.
struct Step<'a> {
    /// The last id that the older one had given.
    id_last: FieldId,
    path: Vec<&'a str>,
    /// Whether this is within the key of a MAP, where fields neither come nor go.
    below_key: bool,
}

impl<'a> Step<'a> {
    /// Columns, or the fields of one ROW.
    fn siblings(&mut self, old: &[Field], new: &'a [Field]) -> Result<(), SchemaError> {
        let by_id: BTreeMap<FieldId, &Field> = old.iter().map(|field| (field.id, field)).collect();
        let mut stayed = 0;
        for field in new {
            self.path.push(&field.name);
            if let Some(same) = by_id.get(&field.id) {
                stayed += 1;
                self.field(same, field)?;
            } else if !field.nullable {
                return self.refuse("a field that is added is nullable");
            } else if self.below_key {
                return self.refuse("fields of a MAP's key are neither added nor dropped");
            } else {
                self.added(field)?;
            }
            self.path.pop();
        }
        if self.below_key && stayed < old.len() {
            return self.refuse("fields of a MAP's key are neither added nor dropped");
        }
        Ok(())
    }

    /// A field that is new, and all below it.
    fn added(&self, field: &Field) -> Result<(), SchemaError> {
        if field.id <= self.id_last {
            return self.refuse("its id was given before, elsewhere");
        }
        field.data_type.children().into_iter().try_for_each(|child| self.added(child))
    }

    fn field(&mut self, old: &Field, new: &'a Field) -> Result<(), SchemaError> {
        if old.nullable && !new.nullable {
            return self.refuse("it has been nullable and cannot become NOT NULL");
        }
        let same = match (&old.data_type, &new.data_type) {
            (DataType::Array(old), DataType::Array(new)) => return self.only_child(old, new, ELEMENT),
            (DataType::Map { key, value }, DataType::Map { key: new_key, value: new_value }) => {
                let outside = std::mem::replace(&mut self.below_key, true);
                self.only_child(key, new_key, KEY)?;
                self.below_key = outside;
                return self.only_child(value, new_value, VALUE);
            }
            (DataType::Row(old), DataType::Row(new)) => return self.siblings(old, new),
            (old, new) => old.is_scalar() && (old == new || old.widens_to(new)),
        };
        if !same {
            return self.refuse("its type is neither the same nor a wider one");
        }
        let default = old.default.as_ref();
        let default = default.map(|literal| old.data_type.widen_literal(&new.data_type, literal));
        match (default, &new.default) {
            (None, None) => Ok(()),
            (Some(Some(expected)), Some(found)) if expected == *found => Ok(()),
            _ => self.refuse("its default is another one"),
        }
    }

    /// The element of an ARRAY, the key or the value of a MAP.
    fn only_child(&mut self, old: &Field, new: &'a Field, name: &'static str) -> Result<(), SchemaError> {
        self.path.push(name);
        if old.id != new.id {
            return self.refuse("its id is another one");
        }
        self.field(old, new)?;
        self.path.pop();
        Ok(())
    }

    fn refuse(&self, problem: &'static str) -> Result<(), SchemaError> {
        Err(SchemaError::NotNext { column: shown(self.path.iter().copied()), problem })
    }
}
