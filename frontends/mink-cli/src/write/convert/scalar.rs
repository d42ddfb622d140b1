//! Scalars as the table stores them, where the table's type has exactly the same value.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is converted and back again is what it was; the first value for which that is not so is refused.
use super::{Misfit, shown};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp::distinct;
use arrow_schema::{ArrowError, DataType as ArrowType};
use mink_types::schema::DataType;

/// Characters of a value that an error repeats.
const SHOWN_CHARS_MAX: usize = 40;

/// The column as `wanted`, which is how `data_type` is stored.
pub(super) fn convert(
    array: &ArrayRef,
    data_type: &DataType,
    wanted: &ArrowType,
    path: &str,
) -> Result<ArrayRef, Misfit> {
    if array.data_type() == wanted {
        return Ok(ArrayRef::clone(array));
    }
    let unknown = |error: ArrowError| {
        Misfit::new(0, path, format!("{} is not converted to {data_type}: {error}", shown(array.data_type())))
    };
    match (array.data_type(), wanted) {
        // Other forms of the same bytes: no value can change.
        (_, ArrowType::Utf8 | ArrowType::Binary) => {
            cast_with_options(array, wanted, &refusing()).map_err(unknown)
        }
        // A zone is for showing: the instant is the number.
        (ArrowType::Timestamp(unit, Some(_)), ArrowType::Timestamp(wanted_unit, Some(_))) => {
            let bare = retyped(array, &ArrowType::Timestamp(*unit, None)).map_err(unknown)?;
            let moved = exactly(&bare, &ArrowType::Timestamp(*wanted_unit, None), data_type, path)?;
            retyped(&moved, wanted).map_err(unknown)
        }
        _ => exactly(array, wanted, data_type, path),
    }
}

/// An error for what cannot be cast.
fn refusing() -> CastOptions<'static> {
    CastOptions { safe: false, ..CastOptions::default() }
}

/// A null for a value that cannot be cast.
fn nulling() -> CastOptions<'static> {
    CastOptions { safe: true, ..CastOptions::default() }
}

/// The same buffers under another type of the same layout.
fn retyped(array: &ArrayRef, wanted: &ArrowType) -> Result<ArrayRef, ArrowError> {
    array.to_data().into_builder().data_type(wanted.clone()).build().map(make_array)
}

/// There and back again.
fn exactly(
    array: &ArrayRef,
    wanted: &ArrowType,
    data_type: &DataType,
    path: &str,
) -> Result<ArrayRef, Misfit> {
    let cast = |array: &ArrayRef, wanted: &ArrowType| {
        cast_with_options(array, wanted, &nulling()).map_err(|error| {
            let found = shown(array.data_type());
            Misfit::new(0, path, format!("{found} is not converted to {data_type}: {error}"))
        })
    };
    let there = cast(array, wanted)?;
    if is_wider(array.data_type(), wanted) {
        return Ok(there);
    }
    let back = cast(&there, array.data_type())?;
    let changed = distinct(array, &back).map_err(|error| Misfit::new(0, path, error.to_string()))?;
    match (0..changed.len()).find(|at| changed.value(*at)) {
        Some(at) => {
            let what =
                format!("found {}, which {data_type} does not have exactly", value(array.as_ref(), at));
            Err(Misfit::new(at, path, what))
        }
        None => Ok(there),
    }
}

/// Whether each value of the one type is surely one of the other: then nobody need look.
fn is_wider(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType::{Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
    matches!(
        (from, to),
        (Int8 | UInt8, Int16 | Int32 | Int64)
            | (Int16 | UInt16, Int32 | Int64)
            | (Int32 | UInt32, Int64)
            | (Int8 | Int16 | UInt8 | UInt16 | Float16, Float32 | Float64)
            | (Int32 | UInt32 | Float32, Float64)
    )
}

/// A value, for an error's text.
pub(super) fn value(array: &dyn Array, at: usize) -> String {
    let options = FormatOptions::default();
    let Ok(formatter) = ArrayFormatter::try_new(array, &options) else { return "a value".into() };
    let whole = formatter.value(at).to_string();
    let mut chars = whole.chars();
    let mut short: String = chars.by_ref().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}
