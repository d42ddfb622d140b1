//! A writer's columns as those of the table: by name, cast where the types allow it, checked against every rule of the schema.
//!
//! Lives on: anywhere (pure). Looks at each value once; copies only what is cast or filled in.
//! Invariants: what comes out has exactly the table's Arrow schema, NOT NULL holds at every depth, and no value breaks its type's rule.
//! I20: what a cast or a default makes more of (values that many views or keys share, columns that were left out) is counted before it
//! is made.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, ListArray, MapArray, OffsetSizeTrait, RecordBatch, StructArray,
    make_array, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use mink_types::schema::{DataType, Field};
use std::sync::Arc;

use super::check::{check_keys, check_values};
use super::constant::{default_bytes, default_column, row_bytes};
use super::decode::assemble;
use super::types::{arrow_field, arrow_type, entries_field};
use crate::{RecordError, RecordErrorKind};

/// Columns of the table.
pub(super) struct Conformed {
    pub(super) batch: RecordBatch,
    /// Whether values that no row refers to were left out: then the buffers that they came from are not what is stored.
    pub(super) cut: bool,
}

/// `source` says for each column of `columns` which of `batch` it is, none for one that is left out.
pub(super) fn conform(
    batch: &RecordBatch,
    columns: &[Field],
    source: &[Option<usize>],
    schema: &SchemaRef,
    bytes_max: usize,
) -> Result<Conformed, RecordError> {
    let mut conformer = Conformer { cut: false, bytes_max, left: bytes_max };
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, source) in columns.iter().zip(source) {
        let array = if let Some(array) = source.and_then(|at| batch.columns().get(at)) {
            conformer.field(array, column, &column.name, None)?
        } else {
            conformer.spend(default_bytes(column, batch.num_rows()))?;
            default_column(column, batch.num_rows())?
        };
        arrays.push(array);
    }
    let batch = assemble(schema, arrays, batch.num_rows())?;
    Ok(Conformed { batch, cut: conformer.cut })
}

struct Conformer {
    cut: bool,
    bytes_max: usize,
    /// Of `bytes_max`, what may still be made of nothing.
    left: usize,
}

fn unlike(path: &str, data_type: &ArrowType, wanted: &DataType) -> RecordError {
    RecordError::mismatch(format!("column {path:?} is {data_type}; the table's type is {wanted}"))
}

impl Conformer {
    fn spend(&mut self, bytes: usize) -> Result<(), RecordError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::InflatedTooLarge,
                format!(
                    "the rows have more than {} bytes with their defaults and without views and dictionaries; send fewer rows in each \
                     batch",
                    self.bytes_max
                ),
            )
        })?;
        Ok(())
    }

    /// `mask`: the entries that count, where the array lies in a ROW that may be null.
    fn field(
        &mut self,
        array: &ArrayRef,
        field: &Field,
        path: &str,
        mask: Option<&NullBuffer>,
    ) -> Result<ArrayRef, RecordError> {
        if !field.nullable {
            check_not_null(array, path, mask)?;
        }
        let valid = NullBuffer::union(mask, array.logical_nulls().as_ref());
        match &field.data_type {
            DataType::Array(element) => self.array(array, field, element, path),
            DataType::Map { key, value } => self.map(array, field, (key, value), path, valid.as_ref()),
            DataType::Row(children) => self.row(array, field, children, path, valid.as_ref()),
            scalar => {
                self.spend(shared_bytes(array))?;
                let array = cast_scalar(array, &arrow_type(scalar))
                    .ok_or_else(|| unlike(path, array.data_type(), scalar))?;
                check_values(&array, scalar, valid.as_ref(), path)?;
                Ok(array)
            }
        }
    }

    fn array(
        &mut self,
        array: &ArrayRef,
        field: &Field,
        element: &Field,
        path: &str,
    ) -> Result<ArrayRef, RecordError> {
        let parts = match array.data_type() {
            ArrowType::List(_) => array.as_list_opt::<i32>().and_then(list_parts),
            ArrowType::LargeList(_) => array.as_list_opt::<i64>().and_then(list_parts),
            _ => None,
        };
        let (offsets, values, nulls) =
            parts.ok_or_else(|| unlike(path, array.data_type(), &field.data_type))?;
        let (offsets, values) = self.referred(offsets, values);
        let values = self.field(&values, element, &format!("{path}.{}", element.name), None)?;
        let list =
            ListArray::try_new(arrow_field(element), offsets, values, nulls).map_err(|_| misfit(path))?;
        Ok(Arc::new(list))
    }

    fn map(
        &mut self,
        array: &ArrayRef,
        field: &Field,
        (key, value): (&Field, &Field),
        path: &str,
        valid: Option<&NullBuffer>,
    ) -> Result<ArrayRef, RecordError> {
        let other = || unlike(path, array.data_type(), &field.data_type);
        let map = array.as_map_opt().ok_or_else(other)?;
        let (_, offsets, entries, nulls, _) = map.clone().into_parts();
        let (offsets, entries) = self.referred(offsets, Arc::new(entries) as ArrayRef);
        let pair = entries.as_struct_opt().ok_or_else(other)?;
        let (Some(keys), Some(values), 2) =
            (pair.columns().first(), pair.columns().get(1), pair.num_columns())
        else {
            return Err(other());
        };
        check_not_null(&entries, path, None)?;
        let keys = self.field(keys, key, &format!("{path}.{}", key.name), None)?;
        check_keys(&keys, &offsets, valid, path)?;
        let values = self.field(values, value, &format!("{path}.{}", value.name), None)?;
        let entries_field = entries_field(key, value);
        let ArrowType::Struct(fields) = entries_field.data_type().clone() else { return Err(other()) };
        let entries = StructArray::try_new(fields, vec![keys, values], None).map_err(|_| misfit(path))?;
        let map =
            MapArray::try_new(entries_field, offsets, entries, nulls, false).map_err(|_| misfit(path))?;
        Ok(Arc::new(map))
    }

    /// Fields by name.
    fn row(
        &mut self,
        array: &ArrayRef,
        field: &Field,
        children: &[Field],
        path: &str,
        valid: Option<&NullBuffer>,
    ) -> Result<ArrayRef, RecordError> {
        let row = array.as_struct_opt().ok_or_else(|| unlike(path, array.data_type(), &field.data_type))?;
        let mut columns = Vec::with_capacity(children.len());
        for child in children {
            let below = format!("{path}.{}", child.name);
            columns.push(match row.column_by_name(&child.name) {
                Some(column) => self.field(column, child, &below, valid)?,
                None if child.nullable => {
                    let data_type = arrow_type(&child.data_type);
                    self.spend(row_bytes(&data_type).saturating_mul(row.len()))?;
                    new_null_array(&data_type, row.len())
                }
                None => {
                    return Err(RecordError::mismatch(format!(
                        "field {below:?} is NOT NULL; send a value for it"
                    )));
                }
            });
        }
        let fields = children.iter().map(arrow_field).collect();
        let row = StructArray::try_new(fields, columns, row.nulls().cloned()).map_err(|_| misfit(path))?;
        Ok(Arc::new(row))
    }

    /// Offsets from 0 on, and the values they refer to alone.
    fn referred(&mut self, offsets: OffsetBuffer<i32>, values: ArrayRef) -> (OffsetBuffer<i32>, ArrayRef) {
        let first = offsets.first().copied().unwrap_or_default();
        let last = offsets.last().copied().unwrap_or_default();
        let (from, to) =
            (usize::try_from(first).unwrap_or_default(), usize::try_from(last).unwrap_or_default());
        if from == 0 && to == values.len() {
            return (offsets, values);
        }
        self.cut = true;
        let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
        (OffsetBuffer::new(ScalarBuffer::from(moved)), values.slice(from, to - from))
    }
}

/// What values that keys or views refer to take once each entry has its own.
fn shared_bytes(array: &ArrayRef) -> usize {
    let views = |views: &[u128]| {
        // The length of a view is its low 32 bits.
        let length = |view: u128| usize::try_from(view & u128::from(u32::MAX)).unwrap_or(usize::MAX);
        let valid = views.iter().enumerate().filter(|(at, _)| array.is_valid(*at));
        valid.map(|(_, view)| length(*view)).fold(0, usize::saturating_add)
    };
    match array.data_type() {
        ArrowType::Utf8View => array.as_string_view_opt().map_or(0, |array| views(array.views())),
        ArrowType::BinaryView => array.as_binary_view_opt().map_or(0, |array| views(array.views())),
        ArrowType::Dictionary(_, value) => {
            let dictionary =
                array.as_any_dictionary_opt().filter(|dictionary| !dictionary.values().is_empty());
            let Some(dictionary) = dictionary else { return 0 };
            let (keys, values) = (dictionary.keys(), dictionary.values());
            let lengths: Vec<usize> = (0..values.len()).map(|at| value_bytes(values, at)).collect();
            let own = row_bytes(value).saturating_mul(array.len());
            let valid =
                dictionary.normalized_keys().into_iter().enumerate().filter(|(at, _)| keys.is_valid(*at));
            valid.filter_map(|(_, key)| lengths.get(key)).fold(own, |sum, length| sum.saturating_add(*length))
        }
        _ => 0,
    }
}

fn value_bytes(values: &ArrayRef, at: usize) -> usize {
    match values.data_type() {
        ArrowType::Utf8 => values.as_string_opt::<i32>().map_or(0, |values| values.value(at).len()),
        ArrowType::LargeUtf8 => values.as_string_opt::<i64>().map_or(0, |values| values.value(at).len()),
        ArrowType::Utf8View => values.as_string_view_opt().map_or(0, |values| values.value(at).len()),
        ArrowType::Binary => values.as_binary_opt::<i32>().map_or(0, |values| values.value(at).len()),
        ArrowType::LargeBinary => values.as_binary_opt::<i64>().map_or(0, |values| values.value(at).len()),
        ArrowType::BinaryView => values.as_binary_view_opt().map_or(0, |values| values.value(at).len()),
        _ => 0,
    }
}

/// Offsets, values, nulls; none if the list is too long for offsets of 32 bits.
fn list_parts<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
) -> Option<(OffsetBuffer<i32>, ArrayRef, Option<NullBuffer>)> {
    let (_, offsets, values, nulls) = list.clone().into_parts();
    let narrow: Vec<i32> =
        offsets.iter().map(|offset| i32::try_from(offset.as_usize()).ok()).collect::<Option<_>>()?;
    Some((OffsetBuffer::new(ScalarBuffer::from(narrow)), values, nulls))
}

/// Nulls where a ROW above is null do not count.
fn check_not_null(array: &ArrayRef, path: &str, mask: Option<&NullBuffer>) -> Result<(), RecordError> {
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
    if mask.is_some_and(|mask| mask.contains(&nulls)) {
        return Ok(());
    }
    let row = (0..nulls.len()).find(|row| nulls.is_null(*row) && mask.is_none_or(|mask| mask.is_valid(*row)));
    Err(RecordError::invalid(format!(
        "column {path:?}, entry {}: null, but the column is NOT NULL",
        row.unwrap_or_default()
    )))
}

fn misfit(path: &str) -> RecordError {
    RecordError::invalid(format!(
        "column {path:?}: a null where a field is NOT NULL, or fields of unlike length"
    ))
}

/// A scalar column as `wanted`, if its type is another form of it; none if not, or if it is too long for that.
pub(super) fn cast_scalar(array: &ArrayRef, wanted: &ArrowType) -> Option<ArrayRef> {
    if array.data_type() == wanted {
        return Some(ArrayRef::clone(array));
    }
    match (array.data_type(), wanted) {
        (ArrowType::Timestamp(unit, Some(_)), ArrowType::Timestamp(wanted_unit, Some(_)))
            if unit == wanted_unit =>
        {
            // The zone is for showing: the values are the same.
            retyped(array, wanted)
        }
        (ArrowType::Dictionary(_, value), _) => {
            let plain = strict_cast(array, value)?;
            cast_scalar(&plain, wanted)
        }
        (ArrowType::LargeUtf8 | ArrowType::Utf8View, ArrowType::Utf8)
        | (ArrowType::LargeBinary | ArrowType::BinaryView, ArrowType::Binary) => strict_cast(array, wanted),
        _ => None,
    }
}

/// The same buffers under another type of the same layout.
pub(super) fn retyped(array: &ArrayRef, wanted: &ArrowType) -> Option<ArrayRef> {
    array.to_data().into_builder().data_type(wanted.clone()).build().ok().map(make_array)
}

/// None if a value does not fit.
pub(super) fn strict_cast(array: &ArrayRef, wanted: &ArrowType) -> Option<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &options).ok()
}
