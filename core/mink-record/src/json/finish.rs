//! Columns that were filled, as Arrow's arrays.
//!
//! Lives on: anywhere (pure). Copies nothing but times of 32 bits.
//! Invariants: Arrow's validating builder looks at every array once more; afterwards the columns are empty.
use super::column::{Column, Slices, Values};
use super::fields::Fields;
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType as ArrowType, Fields as ArrowFields};
use std::mem::{replace, take};

impl Fields {
    /// An array per column, whose Arrow types are these.
    pub(super) fn finish(&mut self, types: &ArrowFields) -> Result<Vec<ArrayRef>, ArrowError> {
        Ok(self.data(types)?.into_iter().map(make_array).collect())
    }

    fn data(&mut self, types: &ArrowFields) -> Result<Vec<ArrayData>, ArrowError> {
        let columns = self.columns.iter_mut().zip(types);
        columns.map(|(named, field)| named.column.data(field.data_type())).collect()
    }
}

impl Column {
    fn data(&mut self, data_type: &ArrowType) -> Result<ArrayData, ArrowError> {
        let len = self.len();
        let nulls = self.nulls.finish().filter(|nulls| nulls.null_count() > 0);
        let array = ArrayData::builder(data_type.clone()).len(len).nulls(nulls);
        let array = match (&mut self.values, data_type) {
            (Values::Boolean(values), _) => array.add_buffer(values.finish().into_inner()),
            (Values::TinyInt(values), _) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::SmallInt(values), _) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::Int(values) | Values::Date(values), _) => {
                array.add_buffer(Buffer::from_vec(take(values)))
            }
            (Values::Time { units, .. }, ArrowType::Time32(_)) => {
                let narrow: Result<Vec<i32>, _> = take(units).into_iter().map(i32::try_from).collect();
                let narrow = narrow.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
                array.add_buffer(Buffer::from_vec(narrow))
            }
            (
                Values::BigInt(values)
                | Values::Time { units: values, .. }
                | Values::Timestamp { units: values, .. },
                _,
            ) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::Float(values), _) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::Double(values), _) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::Decimal { values, .. }, _) => array.add_buffer(Buffer::from_vec(take(values))),
            (Values::Text { bytes, .. } | Values::Bytes { bytes, .. }, _) => {
                let Slices { offsets, data } = bytes;
                array.add_buffer(taken(offsets)).add_buffer(Buffer::from_vec(take(data)))
            }
            (Values::Array { offsets, element }, ArrowType::List(field)) => {
                array.add_buffer(taken(offsets)).add_child_data(element.data(field.data_type())?)
            }
            (Values::Map { offsets, entries }, ArrowType::Map(field, _)) => {
                let array = array.add_buffer(taken(offsets));
                let ArrowType::Struct(pair) = field.data_type() else { return Err(other()) };
                let data = entries.data(pair)?;
                let len = data.first().map_or(0, ArrayData::len);
                let below =
                    ArrayData::builder(field.data_type().clone()).len(len).child_data(data).build()?;
                array.add_child_data(below)
            }
            (Values::Row(fields), ArrowType::Struct(types)) => array.child_data(fields.data(types)?),
            _ => return Err(other()),
        };
        array.build()
    }
}

/// The offsets, of which those that come next begin with 0 again.
fn taken(offsets: &mut Vec<i32>) -> Buffer {
    Buffer::from_vec(replace(offsets, vec![0]))
}

fn other() -> ArrowError {
    ArrowError::SchemaError("a column is not stored as its type says".to_owned())
}
