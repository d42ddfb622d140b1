//! Columns of a Parquet or Arrow file as the columns of the table: found by name, converted where no value changes.
//!
//! Lives on: the reading thread.
//! Owns: nothing.
//! Invariants: what comes out has the table's Arrow types, NOT NULL holds at every depth, no value breaks its type's rule and none is
//! rounded or cut; what does not fit is refused with its row, its column and what is accepted. Types are looked at before any row is read.
mod check;
mod fits;
mod scalar;
#[cfg(test)]
mod tests;

use super::target::Target;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{
    DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema, SchemaRef, SortOptions,
};
use mink_record::arrow::arrow_field;
use mink_types::schema::{DataType, Field};
use std::cmp::Ordering;
use std::sync::Arc;

/// How the rows of one file become rows of the table.
#[derive(Debug)]
pub(super) struct Plan {
    /// Places of the columns in the file that are read, in the file's order.
    places: Vec<usize>,
    /// What each of them becomes.
    columns: Vec<Field>,
    schema: SchemaRef,
}

/// A value that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Misfit {
    /// Its entry in the column; of the whole column, its row.
    pub(super) at: usize,
    pub(super) path: String,
    pub(super) what: String,
}

impl Misfit {
    fn new(at: usize, path: &str, what: impl Into<String>) -> Misfit {
        Misfit { at, path: path.into(), what: what.into() }
    }
}

impl Plan {
    /// Which columns of a file are read, and as what.
    ///
    /// # Errors
    /// A column that the table has not, one that is missing, or types that do not fit.
    pub(super) fn new(file: &ArrowSchema, target: &Target) -> Result<Plan, String> {
        let found = target.places(file.fields().iter().map(|field| field.name().as_str()))?;
        let (mut places, mut columns) = (Vec::new(), Vec::new());
        for ((place, field), column) in file.fields().iter().enumerate().zip(found) {
            let Some(column) = column.and_then(|at| target.schema.columns().get(at)) else { continue };
            fits::check(field.data_type(), column, &column.name)?;
            places.push(place);
            columns.push(column.clone());
        }
        if columns.is_empty() {
            return Err("the file has no column".into());
        }
        let fields: Vec<_> = columns.iter().map(arrow_field).collect();
        Ok(Plan { places, columns, schema: Arc::new(ArrowSchema::new(fields)) })
    }

    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Rows of the file, which have the columns at `places` alone.
    pub(super) fn convert(&self, rows: &RecordBatch) -> Result<RecordBatch, Misfit> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (array, column) in rows.columns().iter().zip(&self.columns) {
            arrays.push(convert(array, column, &column.name, None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), arrays, &options)
            .map_err(|error| Misfit::new(0, "", error.to_string()))
    }
}

/// `mask`: the entries that count, where the array lies in a ROW that may be null.
fn convert(
    array: &ArrayRef,
    field: &Field,
    path: &str,
    mask: Option<&NullBuffer>,
) -> Result<ArrayRef, Misfit> {
    let array = plain(array, path)?;
    if !field.nullable {
        check_not_null(&array, path, mask)?;
    }
    let wanted = arrow_field(field);
    if array.data_type() == &ArrowType::Null {
        return Ok(new_null_array(wanted.data_type(), array.len()));
    }
    match &field.data_type {
        DataType::Array(element) => list(&array, element, path),
        DataType::Map { key, value } => map(&array, (key, value), wanted.data_type(), path),
        DataType::Row(children) => {
            let valid = NullBuffer::union(mask, array.logical_nulls().as_ref());
            row(&array, children, path, valid.as_ref())
        }
        data_type => {
            let valid = NullBuffer::union(mask, array.logical_nulls().as_ref());
            let converted = scalar::convert(&array, data_type, wanted.data_type(), path)?;
            check::check(&converted, data_type, valid.as_ref(), path)?;
            Ok(converted)
        }
    }
}

/// Entries that are written out, not as keys of a dictionary.
fn plain(array: &ArrayRef, path: &str) -> Result<ArrayRef, Misfit> {
    match array.data_type() {
        ArrowType::Dictionary(_, value) => {
            cast(array, value).map_err(|error| Misfit::new(0, path, error.to_string()))
        }
        _ => Ok(ArrayRef::clone(array)),
    }
}

/// Nulls where a ROW above is null do not count.
fn check_not_null(array: &ArrayRef, path: &str, mask: Option<&NullBuffer>) -> Result<(), Misfit> {
    let Some(nulls) = array.logical_nulls() else { return Ok(()) };
    let row = (0..nulls.len()).find(|row| nulls.is_null(*row) && mask.is_none_or(|mask| mask.is_valid(*row)));
    row.map_or(Ok(()), |row| Err(Misfit::new(row, path, "null, but it is NOT NULL")))
}

/// Elements, by the one form of lists that tables have.
fn list(array: &ArrayRef, element: &Field, path: &str) -> Result<ArrayRef, Misfit> {
    let unsound = |error: arrow_schema::ArrowError| Misfit::new(0, path, error.to_string());
    let of_file = match array.data_type() {
        ArrowType::List(field)
        | ArrowType::LargeList(field)
        | ArrowType::FixedSizeList(field, _)
        | ArrowType::ListView(field)
        | ArrowType::LargeListView(field) => ArrowType::List(Arc::clone(field)),
        other => return Err(Misfit::new(0, path, format!("{other} is no list"))),
    };
    let lists = cast(array, &of_file).map_err(unsound)?;
    let lists = lists.as_list_opt::<i32>().ok_or_else(|| Misfit::new(0, path, "no list"))?;
    let (offsets, values) = referred(lists.offsets(), lists.values());
    let values = convert(&values, element, &format!("{path}.{}", element.name), None)
        .map_err(|misfit| above(misfit, &offsets))?;
    let list = ListArray::try_new(arrow_field(element), offsets, values, lists.nulls().cloned());
    Ok(Arc::new(list.map_err(unsound)?))
}

fn map(
    array: &ArrayRef,
    (key, value): (&Field, &Field),
    wanted: &ArrowType,
    path: &str,
) -> Result<ArrayRef, Misfit> {
    let unsound = |error: arrow_schema::ArrowError| Misfit::new(0, path, error.to_string());
    let other = || Misfit::new(0, path, "no map");
    let map = array.as_map_opt().ok_or_else(other)?;
    let entries: ArrayRef = Arc::new(map.entries().clone());
    let (offsets, entries) = referred(map.offsets(), &entries);
    let pair = entries.as_struct_opt().ok_or_else(other)?;
    let (Some(keys), Some(values)) = (pair.columns().first(), pair.columns().get(1)) else {
        return Err(other());
    };
    let converted = |array: &ArrayRef, field: &Field| {
        convert(array, field, &format!("{path}.{}", field.name), None)
            .map_err(|misfit| above(misfit, &offsets))
    };
    let columns = vec![converted(keys, key)?, converted(values, value)?];
    if let Some(at) = columns.first().map(|keys| key_twice(keys, &offsets, path)).transpose()?.flatten() {
        return Err(Misfit::new(at, path, "a key stands in it twice; use each key once"));
    }
    let ArrowType::Map(entries_field, _) = wanted else { return Err(other()) };
    let ArrowType::Struct(fields) = entries_field.data_type() else { return Err(other()) };
    let entries = StructArray::try_new(fields.clone(), columns, None).map_err(unsound)?;
    let map = MapArray::try_new(Arc::clone(entries_field), offsets, entries, map.nulls().cloned(), false);
    Ok(Arc::new(map.map_err(unsound)?))
}

/// The first map in which a key stands twice. Keys are told apart as they sort.
fn key_twice(keys: &ArrayRef, offsets: &OffsetBuffer<i32>, path: &str) -> Result<Option<usize>, Misfit> {
    let order = make_comparator(keys, keys, SortOptions::default())
        .map_err(|error| Misfit::new(0, path, error.to_string()))?;
    let mut sorted: Vec<usize> = Vec::new();
    Ok(offsets.windows(2).position(|ends| {
        let &[from, to] = ends else { return false };
        sorted.clear();
        sorted.extend(usize::try_from(from).unwrap_or_default()..usize::try_from(to).unwrap_or_default());
        sorted.sort_unstable_by(|a, b| order(*a, *b));
        sorted.windows(2).any(|pair| matches!(pair, [a, b] if order(*a, *b) == Ordering::Equal))
    }))
}

/// Fields by name. One that the file has not is null.
fn row(
    array: &ArrayRef,
    children: &[Field],
    path: &str,
    valid: Option<&NullBuffer>,
) -> Result<ArrayRef, Misfit> {
    let row = array.as_struct_opt().ok_or_else(|| Misfit::new(0, path, "no ROW"))?;
    let mut columns = Vec::with_capacity(children.len());
    for child in children {
        columns.push(match row.column_by_name(&child.name) {
            Some(column) => convert(column, child, &format!("{path}.{}", child.name), valid)?,
            None => new_null_array(arrow_field(child).data_type(), row.len()),
        });
    }
    let fields = children.iter().map(arrow_field).collect();
    let row = StructArray::try_new(fields, columns, row.nulls().cloned());
    Ok(Arc::new(row.map_err(|error| Misfit::new(0, path, error.to_string()))?))
}

/// Offsets from 0 on, and the values they refer to alone.
fn referred(offsets: &OffsetBuffer<i32>, values: &ArrayRef) -> (OffsetBuffer<i32>, ArrayRef) {
    let first = offsets.first().copied().unwrap_or_default();
    let last = offsets.last().copied().unwrap_or_default();
    let (from, to) = (usize::try_from(first).unwrap_or_default(), usize::try_from(last).unwrap_or_default());
    if from == 0 && to == values.len() {
        return (offsets.clone(), ArrayRef::clone(values));
    }
    let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    (OffsetBuffer::new(ScalarBuffer::from(moved)), values.slice(from, to - from))
}

/// A misfit of an element, seen from the list that it is in.
fn above(misfit: Misfit, offsets: &OffsetBuffer<i32>) -> Misfit {
    let entry = i32::try_from(misfit.at).unwrap_or(i32::MAX);
    // The first offset is 0: the list is the one before the first that begins behind the element.
    let at = offsets.partition_point(|offset| *offset <= entry).saturating_sub(1);
    Misfit { at, ..misfit }
}

/// The type of a file's column, for an error's text.
fn shown(data_type: &ArrowType) -> String {
    const CHARS_MAX: usize = 120;
    let whole = data_type.to_string();
    let mut short: String = whole.chars().take(CHARS_MAX).collect();
    if short.len() < whole.len() {
        short.push('…');
    }
    short
}

/// Fields below a column of a file.
fn pair_of(entries: &ArrowField) -> Option<(&ArrowField, &ArrowField)> {
    let ArrowType::Struct(fields) = entries.data_type() else { return None };
    match fields.iter().as_slice() {
        [key, value] => Some((key, value)),
        _ => None,
    }
}
