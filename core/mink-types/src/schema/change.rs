//! Changes of a schema, as ALTER TABLE asks for them.
//!
//! Lives on: anywhere (pure).
//! Invariants: all changes of a list are taken, in their order, or none; rows that are stored need not be rewritten for any.
use super::check::check;
use super::create::{Ids, name_fixed};
use super::error::{cut, listed, shown, shown_below};
use super::{DataType, Field, FieldId, KEY, KeyUse, SCHEMA_CHANGES_MAX, Schema, SchemaError, SchemaId};
use std::collections::{BTreeMap, BTreeSet};

/// Where a column goes among its siblings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ColumnPlace {
    #[default]
    Last,
    First,
    /// Behind the sibling of this name.
    After(String),
}

/// One change. Paths go from a column down: names of the fields of a ROW, `element`, `key`, `value`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SchemaChange {
    /// A nullable column, or with a `parent` a field of that ROW. Its ids are not looked at: they are given anew.
    AddColumn {
        parent: Vec<String>,
        column: Field,
        place: ColumnPlace,
    },
    DropColumn {
        path: Vec<String>,
    },
    RenameColumn {
        path: Vec<String>,
        name: String,
    },
    /// To a wider type. Fields of a nested one are matched by name; they may be reordered and relaxed with it.
    ChangeType {
        path: Vec<String>,
        data_type: DataType,
    },
    Move {
        path: Vec<String>,
        place: ColumnPlace,
    },
    DropNotNull {
        path: Vec<String>,
    },
    SetComment {
        path: Vec<String>,
        comment: Option<String>,
    },
}

impl Schema {
    /// The next schema: this one after all of `changes`, in their order.
    pub fn alter(&self, changes: &[SchemaChange]) -> Result<Schema, SchemaError> {
        if changes.len() > SCHEMA_CHANGES_MAX {
            return Err(SchemaError::Changes);
        }
        let id = SchemaId(self.id.0.checked_add(1).ok_or(SchemaError::IdsUsedUp)?);
        let mut next = Schema { id, ..self.clone() };
        for change in changes {
            next.apply(change)?;
        }
        if next.columns == self.columns {
            return Err(SchemaError::Unchanged);
        }
        check(&next)?;
        Ok(next)
    }

    /// By what the column with this id is used, first of all.
    pub fn used_by(&self, id: FieldId) -> Option<KeyUse> {
        let uses = [
            (KeyUse::PrimaryKey, &self.primary_key),
            (KeyUse::PartitionedBy, &self.partitioned_by),
            (KeyUse::BucketKey, &self.bucket_key),
        ];
        uses.into_iter().find(|(_, ids)| ids.contains(&id)).map(|(used_by, _)| used_by)
    }

    /// The column or nested field at the end of a path.
    pub fn field<'a>(&'a self, path: &[String]) -> Result<&'a Field, SchemaError> {
        let mut level: Vec<&Field> = self.columns.iter().collect();
        let mut found: Option<&Field> = None;
        for (depth, name) in path.iter().enumerate() {
            let Some(field) = level.iter().find(|field| field.name == *name) else {
                let known = match found {
                    Some(scalar) if level.is_empty() => {
                        format!("{} alone, which has no fields", shown([scalar.name.as_str()]))
                    }
                    _ => listed(level.iter().map(|field| field.name.as_str())),
                };
                let column = shown(path.iter().take(depth + 1).map(String::as_str));
                return Err(SchemaError::Unknown { column, known });
            };
            found = Some(field);
            level = field.data_type.children();
        }
        found.ok_or_else(|| {
            let known = listed(level.iter().map(|field| field.name.as_str()));
            SchemaError::Unknown { column: shown([]), known }
        })
    }

    fn apply(&mut self, change: &SchemaChange) -> Result<(), SchemaError> {
        match change {
            SchemaChange::AddColumn { parent, column, place } => self.add(parent, column.clone(), place),
            SchemaChange::DropColumn { path } => self.remove(path),
            SchemaChange::RenameColumn { path, name } => self.rename(path, name),
            SchemaChange::ChangeType { path, data_type } => self.change_type(path, data_type),
            SchemaChange::Move { path, place } => self.move_to(path, place),
            SchemaChange::DropNotNull { path } => self.drop_not_null(path),
            SchemaChange::SetComment { path, comment } => {
                let field = self.field_mut(path)?;
                if field.comment == *comment {
                    return Err(SchemaError::Nothing { column: shown_path(path) });
                }
                field.comment.clone_from(comment);
                Ok(())
            }
        }
    }

    fn add(&mut self, parent: &[String], mut column: Field, place: &ColumnPlace) -> Result<(), SchemaError> {
        let name = shown_below(parent, &column.name);
        if !column.nullable {
            let problem = "rows that are stored have no value for it; add it without NOT NULL";
            return Err(SchemaError::Change { column: name, problem });
        }
        self.refuse_below_key(parent, &name)?;
        let mut ids = Ids::after(self.last_field);
        ids.give(&mut column, parent.len() + 1)?;
        let siblings = self.siblings_mut(parent, &name)?;
        if siblings.iter().any(|sibling| sibling.name == column.name) {
            return Err(SchemaError::Twice { column: name });
        }
        insert(siblings, column, place, parent)?;
        self.last_field = ids.last();
        Ok(())
    }

    fn remove(&mut self, path: &[String]) -> Result<(), SchemaError> {
        self.refuse_used(path, "dropped")?;
        let name = shown_path(path);
        let (own, parent) = split(path);
        self.refuse_below_key(parent, &name)?;
        let siblings = self.siblings_mut(parent, &name)?;
        if siblings.len() == 1 {
            let problem = "it is the last one and cannot be dropped; drop what contains it";
            return Err(SchemaError::Change { column: name, problem });
        }
        siblings.retain(|sibling| sibling.name != own);
        Ok(())
    }

    fn rename(&mut self, path: &[String], name: &str) -> Result<(), SchemaError> {
        self.field(path)?;
        let (own, parent) = split(path);
        if own == name {
            return Err(SchemaError::Nothing { column: shown_path(path) });
        }
        let siblings = self.siblings_mut(parent, &shown_path(path))?;
        if siblings.iter().any(|sibling| sibling.name == name) {
            return Err(SchemaError::Twice { column: shown_below(parent, name) });
        }
        if let Some(field) = siblings.iter_mut().find(|sibling| sibling.name == own) {
            name.clone_into(&mut field.name);
        }
        Ok(())
    }

    fn change_type(&mut self, path: &[String], data_type: &DataType) -> Result<(), SchemaError> {
        self.refuse_used(path, "retyped")?;
        let field = self.field_mut(path)?;
        let mut at: Vec<&str> = path.iter().map(String::as_str).collect();
        let wider = widened(&field.data_type, data_type, &mut at)?;
        if wider == field.data_type {
            return Err(SchemaError::Nothing { column: shown_path(path) });
        }
        if let Some(default) = &field.default {
            let refuse = || SchemaError::Default {
                column: shown_path(path),
                accepted: format!("a type that holds it; {} does not", cut(&wider.to_string())),
            };
            field.default = Some(field.data_type.widen_literal(&wider, default).ok_or_else(refuse)?);
        }
        field.data_type = wider;
        Ok(())
    }

    fn move_to(&mut self, path: &[String], place: &ColumnPlace) -> Result<(), SchemaError> {
        self.field(path)?;
        let name = shown_path(path);
        let (own, parent) = split(path);
        let siblings = self.siblings_mut(parent, &name)?;
        let Some(at) = siblings.iter().position(|sibling| sibling.name == own) else {
            return Err(SchemaError::Nothing { column: name });
        };
        let field = siblings.remove(at);
        let now = insert(siblings, field, place, parent)?;
        if now == at { Err(SchemaError::Nothing { column: name }) } else { Ok(()) }
    }

    fn drop_not_null(&mut self, path: &[String]) -> Result<(), SchemaError> {
        self.refuse_used(path, "made nullable")?;
        let name = shown_path(path);
        let (own, parent) = split(path);
        let of_map = !parent.is_empty() && matches!(self.field(parent)?.data_type, DataType::Map { .. });
        if own == KEY && of_map {
            let problem = "keys of a MAP are never null; relax its value";
            return Err(SchemaError::Change { column: name, problem });
        }
        let field = self.field_mut(path)?;
        if field.nullable {
            return Err(SchemaError::Nothing { column: name });
        }
        field.nullable = true;
        Ok(())
    }

    fn field_mut(&mut self, path: &[String]) -> Result<&mut Field, SchemaError> {
        self.field(path)?;
        let unknown = || SchemaError::Unknown { column: shown_path(path), known: listed([].into_iter()) };
        let (first, rest) = path.split_first().ok_or_else(unknown)?;
        let mut field = self.columns.iter_mut().find(|field| field.name == *first).ok_or_else(unknown)?;
        for name in rest {
            let mut children = field.data_type.children_mut().into_iter();
            field = children.find(|child| child.name == *name).ok_or_else(unknown)?;
        }
        Ok(field)
    }

    /// The columns, or the fields of the ROW at `parent`: what can be added to, dropped from, renamed and moved.
    fn siblings_mut(&mut self, parent: &[String], column: &str) -> Result<&mut Vec<Field>, SchemaError> {
        if parent.is_empty() {
            return Ok(&mut self.columns);
        }
        if let DataType::Row(fields) = &mut self.field_mut(parent)?.data_type {
            Ok(fields)
        } else {
            let problem = "only columns and fields of a ROW are added, dropped, renamed and moved";
            Err(SchemaError::Change { column: column.to_owned(), problem })
        }
    }

    fn refuse_used(&self, path: &[String], refused: &'static str) -> Result<(), SchemaError> {
        match self.used_by(self.field(path)?.id) {
            Some(used_by) => Err(SchemaError::InUse { column: shown_path(path), used_by, refused }),
            None => Ok(()),
        }
    }

    /// With a field more or less two keys of a MAP that differ could become the same one.
    fn refuse_below_key(&self, parent: &[String], column: &str) -> Result<(), SchemaError> {
        for (depth, name) in parent.iter().enumerate().skip(1) {
            let above: &[String] = parent.get(..depth).unwrap_or_default();
            if name == KEY && matches!(self.field(above)?.data_type, DataType::Map { .. }) {
                let problem = "fields of a MAP's key are neither added nor dropped; change its value";
                return Err(SchemaError::Change { column: column.to_owned(), problem });
            }
        }
        Ok(())
    }
}

/// The type with which a column of type `old` goes on when `new` is asked for: ids are those of `old`.
fn widened<'a>(old: &DataType, new: &'a DataType, path: &mut Vec<&'a str>) -> Result<DataType, SchemaError> {
    match (old, new) {
        (DataType::Array(old), DataType::Array(new)) => {
            Ok(DataType::Array(Box::new(widened_field(old, new, super::ELEMENT, path)?)))
        }
        (DataType::Map { key, value }, DataType::Map { key: new_key, value: new_value }) => {
            let key = widened_field(key, new_key, KEY, path)?;
            let value = widened_field(value, new_value, super::VALUE, path)?;
            let mut map = DataType::Map { key: Box::new(key), value: Box::new(value) };
            name_fixed(&mut map);
            Ok(map)
        }
        (DataType::Row(old), DataType::Row(new)) => widened_row(old, new, path),
        (old, new) if old.is_scalar() && (old == new || old.widens_to(new)) => Ok(new.clone()),
        (old, new) => Err(SchemaError::NotWider {
            column: shown(path.iter().copied()),
            from: cut(&old.to_string()),
            to: kind_of(new),
            accepted: old.wider(),
        }),
    }
}

/// A type as an error names it. A nested one that is asked for may be deeper than a stack, so it is not written out.
fn kind_of(data_type: &DataType) -> String {
    match data_type {
        DataType::Array(_) => "an ARRAY".to_owned(),
        DataType::Map { .. } => "a MAP".to_owned(),
        DataType::Row(_) => "a ROW".to_owned(),
        scalar => scalar.to_string(),
    }
}

fn widened_row<'a>(
    old: &[Field],
    new: &'a [Field],
    path: &mut Vec<&'a str>,
) -> Result<DataType, SchemaError> {
    let by_name: BTreeMap<&str, &Field> = old.iter().map(|field| (field.name.as_str(), field)).collect();
    let mut seen = BTreeSet::new();
    let mut fields = Vec::new();
    for field in new {
        let column = || shown(path.iter().copied().chain([field.name.as_str()]));
        let Some(same) = by_name.get(field.name.as_str()) else {
            let problem = "a change of type adds no field; add it as a column, by its path";
            return Err(SchemaError::Change { column: column(), problem });
        };
        if !seen.insert(field.name.as_str()) {
            return Err(SchemaError::Twice { column: column() });
        }
        fields.push(widened_field(same, field, &field.name, path)?);
    }
    if let Some(gone) = old.iter().find(|field| !seen.contains(field.name.as_str())) {
        let column = shown(path.iter().copied().chain([gone.name.as_str()]));
        let problem = "a change of type drops no field; drop it as a column, by its path";
        return Err(SchemaError::Change { column, problem });
    }
    Ok(DataType::Row(fields))
}

fn widened_field<'a>(
    old: &Field,
    new: &'a Field,
    name: &'a str,
    path: &mut Vec<&'a str>,
) -> Result<Field, SchemaError> {
    path.push(name);
    // A MAP's key is put right by its caller.
    if old.nullable && !new.nullable {
        let problem = "it has been nullable and cannot become NOT NULL";
        return Err(SchemaError::Change { column: shown(path.iter().copied()), problem });
    }
    let data_type = widened(&old.data_type, &new.data_type, path)?;
    path.pop();
    Ok(Field {
        id: old.id,
        name: old.name.clone(),
        data_type,
        nullable: new.nullable,
        // A nested field has none; what asks for one is refused by the check.
        default: new.default.clone(),
        comment: new.comment.clone().or_else(|| old.comment.clone()),
    })
}

/// Puts a field among its siblings, and tells where.
fn insert(
    siblings: &mut Vec<Field>,
    field: Field,
    place: &ColumnPlace,
    parent: &[String],
) -> Result<usize, SchemaError> {
    let at = match place {
        ColumnPlace::First => 0,
        ColumnPlace::Last => siblings.len(),
        ColumnPlace::After(name) => {
            let before = siblings.iter().position(|sibling| sibling.name == *name);
            let known = || listed(siblings.iter().map(|sibling| sibling.name.as_str()));
            let unknown = || SchemaError::Unknown { column: shown_below(parent, name), known: known() };
            before.ok_or_else(unknown)? + 1
        }
    };
    siblings.insert(at, field);
    Ok(at)
}

/// The name at the end of a path, and the path above it.
fn split(path: &[String]) -> (&str, &[String]) {
    match path.split_last() {
        Some((own, parent)) => (own, parent),
        None => ("", &[]),
    }
}

fn shown_path(path: &[String]) -> String {
    shown(path.iter().map(String::as_str))
}
