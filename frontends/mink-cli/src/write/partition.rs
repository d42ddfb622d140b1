//! The partition that `--partition` names: rows that do not say theirs get its values, and no row says another.
//!
//! Lives on: the reading thread; what is named is read before.
//! Invariants: a row is never moved to a partition that it does not say.
use crate::failure::Failure;
use crate::form::columns::RowTable;
use crate::form::named;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, Scalar};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_ord::cmp::distinct;
use arrow_schema::{ArrowError, FieldRef, Schema as ArrowSchema};
use mink_record::arrow::{arrow_field, literal_array};
use mink_types::schema::{Field, Literal};
use std::sync::Arc;

/// Most of a row's own value that an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 80;

/// Columns of a table's partitions with the one value that all rows have there; empty if none is named.
#[derive(Clone, Debug, Default)]
pub(super) struct Partition(Vec<Named>);

#[derive(Clone, Debug)]
struct Named {
    column: Field,
    literal: Literal,
    /// The value, as an array of one entry.
    value: ArrayRef,
}

/// A row that is not taken as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unfit {
    /// Its place among those that it came with.
    pub(super) at: usize,
    pub(super) what: String,
}

impl Partition {
    /// What the command line names of this table.
    pub(super) fn new(table: &RowTable, given: &[String]) -> Result<Partition, Failure> {
        let named = named::partition(table, given)?.into_iter().map(|(column, literal)| {
            let value = literal_array(&column.data_type, &literal).ok_or_else(|| {
                Failure::usage(format!("--partition: column {:?} has no such value", column.name))
            })?;
            Ok(Named { column, literal, value })
        });
        Ok(Partition(named.collect::<Result<_, Failure>>()?))
    }

    /// The value that the column has in all rows, if it is named.
    pub(super) fn value(&self, column: &str) -> Option<&Literal> {
        self.0.iter().find(|named| named.column.name == column).map(|named| &named.literal)
    }

    /// The first row that says another partition.
    pub(super) fn first_other(&self, rows: &RecordBatch) -> Result<Option<Unfit>, ArrowError> {
        let mut first: Option<Unfit> = None;
        for Named { column, value, .. } in &self.0 {
            let Some(own) = rows.column_by_name(&column.name) else { continue };
            let differs = distinct(own, &Scalar::new(ArrayRef::clone(value)))?;
            let Some(at) = (0..differs.len()).find(|at| differs.value(*at)) else { continue };
            if first.as_ref().is_none_or(|first| at < first.at) {
                let (name, own, wanted) = (&column.name, shown(own, at)?, shown(value, 0)?);
                let what = format!(
                    "{name}: the row has {own}, and --partition says {wanted}; leave --partition out, and each row goes to its own partition"
                );
                first = Some(Unfit { at, what });
            }
        }
        Ok(first)
    }

    /// The rows with all columns that are named.
    pub(super) fn fill(&self, rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let is_missing = |named: &&Named| rows.column_by_name(&named.column.name).is_none();
        let missing: Vec<&Named> = self.0.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(rows);
        }
        let mut fields: Vec<FieldRef> = rows.schema_ref().fields().iter().map(Arc::clone).collect();
        let mut columns = rows.columns().to_vec();
        for Named { column, value, .. } in missing {
            fields.push(arrow_field(column));
            columns.push(repeated(value, rows.num_rows())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)
    }
}

/// The one value of an array, so often.
fn repeated(value: &ArrayRef, rows: usize) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::from(vec![0; rows]);
    let dictionary = DictionaryArray::<Int32Type>::try_new(keys, ArrayRef::clone(value))?;
    cast(&dictionary, value.data_type())
}

fn shown(array: &ArrayRef, at: usize) -> Result<String, ArrowError> {
    if array.is_null(at) {
        return Ok("null".to_owned());
    }
    let text = array_value_to_string(array, at)?;
    Ok(match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::form::columns::tests::table;
    use arrow_array::{Int64Array, StringArray};

    /// What these words name of a table.
    pub(crate) fn partition(columns: &str, partitioned_by: &[&str], given: &[&str]) -> Partition {
        let given: Vec<String> = given.iter().map(|given| (*given).to_owned()).collect();
        Partition::new(&table(columns, partitioned_by), &given).expect("it has these columns")
    }

    fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    #[test]
    fn rows_that_do_not_say_their_partition_get_the_one_that_is_named() {
        for (sql, value) in [
            ("STRING", "eu"),
            ("DATE", "2026-01-31"),
            ("DECIMAL(10, 2)", "1.50"),
            ("BOOLEAN", "true"),
            ("TIMESTAMP(3)", "2026-01-31 10:00:00"),
            ("BYTES", "00ff"),
        ] {
            let named = partition(&format!("n BIGINT, p {sql}"), &["p"], &[&format!("p={value}")]);
            let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
            let filled = named.fill(rows(vec![("n", numbers)])).expect(sql);
            assert_eq!(filled.num_rows(), 2);
            assert_eq!(named.first_other(&filled).expect(sql), None);
            // What has its own value is left as it is.
            assert_eq!(named.fill(filled.clone()).expect(sql), filled);
        }
    }

    #[test]
    fn the_first_row_that_says_another_partition_is_told_with_both_values() {
        let named = partition("d STRING, r STRING", &["d", "r"], &["r=eu", "d=1"]);
        let texts = |texts: Vec<Option<&str>>| Arc::new(StringArray::from(texts)) as ArrayRef;
        let found = rows(vec![
            ("d", texts(vec![Some("1"), Some("1"), Some("2")])),
            ("r", texts(vec![Some("eu"), None, Some("us")])),
        ]);
        let unfit = named.first_other(&found).expect("they compare").expect("two rows do");
        assert_eq!(unfit.at, 1);
        assert!(unfit.what.starts_with("r: the row has null, and --partition says \"eu\""), "{}", unfit.what);
        assert_eq!(named.first_other(&found.slice(0, 1)).expect("they compare"), None);
    }
}
