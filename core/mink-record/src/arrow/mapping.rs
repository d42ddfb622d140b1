//! Rows of a batch as another schema of the same table shows them: by field id, never by name or place.
//!
//! Lives on: anywhere (pure). Copies only columns whose type was widened.
//! Invariants: I20: what is made of nothing (defaults, nulls, wider values) is counted before it is made, so that rows of few bytes never become
//! many. A column that the writer did not know has its default, or null, in every row; a field that was dropped is left out; the
//! values of all others are the same, in a type that holds them all.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as ArrowType, FieldRef, SchemaRef};
use mink_types::schema::{DataType, Field, FieldId, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ARROW_INFLATED_BYTES_MAX;
use super::conform::{retyped, strict_cast};
use super::constant::{default_bytes, default_column, row_bytes};
use super::decode::assemble;
use super::types::{FIELD_ID_KEY, arrow_field, arrow_type, entries_field};
use crate::{RecordError, RecordErrorKind};

/// The way from one schema of a table to another, for some columns or all.
#[derive(Clone, Debug)]
pub struct Mapping {
    columns: Vec<Column>,
    schema: SchemaRef,
    stored: Vec<FieldId>,
    identity: bool,
    whole: bool,
}

/// One column of the result.
#[derive(Clone, Debug)]
struct Column {
    /// As its writer knew it; none if it did not.
    from: Option<Field>,
    to: Field,
}

impl Mapping {
    /// From the schema that a batch was written with to the one that is wanted: all its columns, or those of `projection`, in that order.
    ///
    /// # Errors
    /// `SchemaMismatch` if `wanted` has no such column, or if the type of a field cannot hold what was stored (the schemas are of
    /// different tables, or `wanted` is the older one).
    pub fn new(
        stored: &Schema,
        wanted: &Schema,
        projection: Option<&[FieldId]>,
    ) -> Result<Mapping, RecordError> {
        let mut columns = Vec::new();
        match projection {
            None => columns.extend(wanted.columns().iter().map(|to| column_of(stored, to))),
            Some(ids) => {
                for id in ids {
                    let to = wanted.column_by_id(*id).ok_or_else(|| {
                        RecordError::mismatch(format!("schema {} has no column {id}", wanted.id()))
                    })?;
                    if columns.iter().any(|column: &Column| column.to.id == *id) {
                        return Err(RecordError::mismatch(format!("column {:?} is wanted twice", to.name)));
                    }
                    columns.push(column_of(stored, to));
                }
            }
        }
        let mut identity = true;
        for Column { from, to } in &columns {
            match from {
                Some(from) => {
                    check_readable(from, to, &to.name)?;
                    identity &= same_layout(from, to);
                }
                None => identity = false,
            }
        }
        let fields: Vec<FieldRef> = columns.iter().map(|column| arrow_field(&column.to)).collect();
        let needed: Vec<FieldId> =
            columns.iter().filter_map(|column| column.from.as_ref()).map(|from| from.id).collect();
        let whole = identity && needed.iter().eq(stored.columns().iter().map(|column| &column.id));
        Ok(Mapping {
            columns,
            schema: Arc::new(arrow_schema::Schema::new(fields)),
            stored: needed,
            identity,
            whole,
        })
    }

    /// The Arrow schema of what comes out.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The stored columns that are needed, in the order of the result: what to prune a batch to.
    pub fn stored_columns(&self) -> &[FieldId] {
        &self.stored
    }

    /// Whether the stored bytes of [`Mapping::stored_columns`] are those of the result, so that a pruned message can be passed on without
    /// decoding it. Names and the digits of a DECIMAL are not in those bytes.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    /// Whether even a whole stored message can be passed on: an identity of all columns, in their order.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Maps rows that were decoded by the stored schema, all columns or at least the needed ones.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows that lack a column, or have it in another type; `InvalidRecord` for a value that the wanted type does
    /// not hold (64 bits of nanoseconds end in 2262) or a null where `wanted` is an older schema that says NOT NULL; `InflatedTooLarge`
    /// where fields that the writer did not know, or wider ones, take more than one batch may: see [`Mapping::map_first`].
    pub fn map(&self, batch: &RecordBatch) -> Result<RecordBatch, RecordError> {
        let schema = batch.schema_ref();
        let by_id: BTreeMap<&str, &ArrayRef> = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .filter_map(|(field, array)| field.metadata().get(FIELD_ID_KEY).map(|id| (id.as_str(), array)))
            .collect();
        let mut room = Room { left: ARROW_INFLATED_BYTES_MAX };
        let mut arrays = Vec::with_capacity(self.columns.len());
        for Column { from, to } in &self.columns {
            arrays.push(match from {
                None => {
                    room.spend(default_bytes(to, batch.num_rows()))?;
                    default_column(to, batch.num_rows())?
                }
                Some(from) => {
                    let id = from.id.to_string();
                    let array = by_id
                        .get(id.as_str())
                        .filter(|array| *array.data_type() == arrow_type(&from.data_type));
                    let array = array.ok_or_else(|| {
                        RecordError::mismatch(format!(
                            "the rows have no column {id} of type {}",
                            from.data_type
                        ))
                    })?;
                    map_array(array, from, to, &to.name, &mut room)?
                }
            });
        }
        assemble(&self.schema, arrays, batch.num_rows())
    }

    /// Maps as [`Mapping::map`] does, and only the first rows where all of them would take more than one batch may. What comes out has as
    /// many rows as were mapped; the caller goes on behind them.
    ///
    /// # Errors
    /// As [`Mapping::map`]; `InflatedTooLarge` only where a single row takes so much.
    pub fn map_first(&self, batch: &RecordBatch) -> Result<RecordBatch, RecordError> {
        let mut rows = batch.num_rows();
        loop {
            match self.map(&batch.slice(0, rows)) {
                Err(error) if error.kind() == RecordErrorKind::InflatedTooLarge && rows > 1 => {
                    rows = rows.div_ceil(2);
                }
                mapped => return mapped,
            }
        }
    }
}

/// Offsets from 0 on, and which entries they refer to.
fn referred(offsets: &OffsetBuffer<i32>) -> (OffsetBuffer<i32>, usize, usize) {
    let first = offsets.first().copied().unwrap_or_default();
    let last = offsets.last().copied().unwrap_or_default();
    let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    let from = usize::try_from(first).unwrap_or_default();
    let count = usize::try_from(last.saturating_sub(first)).unwrap_or_default();
    (OffsetBuffer::new(ScalarBuffer::from(moved)), from, count)
}

/// What may still be made of nothing.
struct Room {
    left: usize,
}

impl Room {
    fn spend(&mut self, bytes: usize) -> Result<(), RecordError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::InflatedTooLarge,
                format!(
                    "with the columns of the newer schema the rows have more than {ARROW_INFLATED_BYTES_MAX} bytes; read fewer rows, \
                     or fewer columns, at once"
                ),
            )
        })?;
        Ok(())
    }
}

fn column_of(stored: &Schema, to: &Field) -> Column {
    Column { from: stored.column_by_id(to.id).cloned(), to: to.clone() }
}

/// Pairs of fields below two of one nested type: as stored (none: not yet there), as wanted. None if they are of different types.
fn pairs<'a>(from: &'a DataType, to: &'a DataType) -> Option<Vec<(Option<&'a Field>, &'a Field)>> {
    match (from, to) {
        (DataType::Array(from), DataType::Array(to)) => Some(vec![(Some(from.as_ref()), to.as_ref())]),
        (DataType::Map { key, value }, DataType::Map { key: to_key, value: to_value }) => {
            Some(vec![(Some(key.as_ref()), to_key.as_ref()), (Some(value.as_ref()), to_value.as_ref())])
        }
        (DataType::Row(from), DataType::Row(to)) => {
            Some(to.iter().map(|to| (from.iter().find(|from| from.id == to.id), to)).collect())
        }
        _ => None,
    }
}

fn check_readable(from: &Field, to: &Field, path: &str) -> Result<(), RecordError> {
    let unlike = || {
        RecordError::mismatch(format!(
            "column {path:?} was stored as {}, which is not read as {}",
            from.data_type, to.data_type
        ))
    };
    if from.data_type.is_scalar() {
        let fits = from.data_type == to.data_type || from.data_type.widens_to(&to.data_type);
        return if fits { Ok(()) } else { Err(unlike()) };
    }
    for (from, to) in pairs(&from.data_type, &to.data_type).ok_or_else(unlike)? {
        match from {
            Some(from) => check_readable(from, to, &format!("{path}.{}", to.name))?,
            None if to.nullable => {}
            None => return Err(unlike()),
        }
    }
    Ok(())
}

/// Whether the buffers of the one are those of the other; `check_readable` has said yes.
fn same_layout(from: &Field, to: &Field) -> bool {
    if from.nullable && !to.nullable {
        return false;
    }
    if from.data_type.is_scalar() {
        let decimals =
            matches!((&from.data_type, &to.data_type), (DataType::Decimal { .. }, DataType::Decimal { .. }));
        return decimals || arrow_type(&from.data_type) == arrow_type(&to.data_type);
    }
    let in_order = || {
        from.data_type.children().iter().map(|child| child.id).eq(to
            .data_type
            .children()
            .iter()
            .map(|child| child.id))
    };
    let pairs = pairs(&from.data_type, &to.data_type).unwrap_or_default();
    in_order() && pairs.iter().all(|(from, to)| from.is_some_and(|from| same_layout(from, to)))
}

fn map_array(
    array: &ArrayRef,
    from: &Field,
    to: &Field,
    path: &str,
    room: &mut Room,
) -> Result<ArrayRef, RecordError> {
    if from.data_type == to.data_type {
        return Ok(ArrayRef::clone(array));
    }
    let unlike = || RecordError::mismatch(format!("column {path:?} is not of type {}", from.data_type));
    let misfit = || RecordError::invalid(format!("column {path:?}: a null where schema says NOT NULL"));
    match &to.data_type {
        DataType::Array(_) => {
            let list = array.as_list_opt::<i32>().ok_or_else(unlike)?;
            let (_, offsets, values, nulls) = list.clone().into_parts();
            let Some(&[(Some(below), element)]) = pairs(&from.data_type, &to.data_type).as_deref() else {
                return Err(unlike());
            };
            let (offsets, from, count) = referred(&offsets);
            let values = map_array(&values.slice(from, count), below, element, path, room)?;
            let list = ListArray::try_new(arrow_field(element), offsets, values, nulls);
            Ok(Arc::new(list.map_err(|_| misfit())?))
        }
        DataType::Map { .. } => {
            let (_, offsets, entries, nulls, _) = array.as_map_opt().ok_or_else(unlike)?.clone().into_parts();
            let (offsets, first, count) = referred(&offsets);
            let entries = entries.slice(first, count);
            let Some(&[(Some(key), to_key), (Some(value), to_value)]) =
                pairs(&from.data_type, &to.data_type).as_deref()
            else {
                return Err(unlike());
            };
            let (Some(keys), Some(values)) = (entries.columns().first(), entries.columns().get(1)) else {
                return Err(unlike());
            };
            let columns = vec![
                map_array(keys, key, to_key, path, room)?,
                map_array(values, value, to_value, path, room)?,
            ];
            let field = entries_field(to_key, to_value);
            let ArrowType::Struct(fields) = field.data_type().clone() else { return Err(unlike()) };
            let entries = StructArray::try_new(fields, columns, None).map_err(|_| misfit())?;
            let map = MapArray::try_new(field, offsets, entries, nulls, false).map_err(|_| misfit())?;
            Ok(Arc::new(map))
        }
        DataType::Row(fields) => {
            let (row, DataType::Row(stored)) = (array.as_struct_opt().ok_or_else(unlike)?, &from.data_type)
            else {
                return Err(unlike());
            };
            let mut columns = Vec::with_capacity(fields.len());
            for field in fields {
                let place = stored.iter().position(|stored| stored.id == field.id);
                let found = place.and_then(|place| Some((row.columns().get(place)?, stored.get(place)?)));
                columns.push(if let Some((column, stored)) = found {
                    map_array(column, stored, field, &format!("{path}.{}", field.name), room)?
                } else {
                    let data_type = arrow_type(&field.data_type);
                    room.spend(row_bytes(&data_type).saturating_mul(row.len()))?;
                    new_null_array(&data_type, row.len())
                });
            }
            let fields = fields.iter().map(arrow_field).collect();
            let row = StructArray::try_new(fields, columns, row.nulls().cloned()).map_err(|_| misfit())?;
            Ok(Arc::new(row))
        }
        scalar => {
            let wanted = arrow_type(scalar);
            let mapped = match (array.data_type(), &wanted) {
                (same, wanted) if same == wanted => Some(ArrayRef::clone(array)),
                (ArrowType::Decimal128(..), ArrowType::Decimal128(..)) => retyped(array, &wanted),
                _ => {
                    room.spend(row_bytes(&wanted).saturating_mul(array.len()))?;
                    strict_cast(array, &wanted)
                }
            };
            mapped.ok_or_else(|| {
                RecordError::invalid(format!("column {path:?}: a stored value is not within {scalar}"))
            })
        }
    }
}
