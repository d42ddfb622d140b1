//! The columns that are written, of which table, and what makes its rows of those of a file.
//!
//! Lives on: anywhere (pure).
//! Invariants: a column that is left out may be null, has a default, or is of the partition that is named.
use super::partition::{Partition, Unfit};
use super::row_bytes::BatchBound;
use crate::failure::Failure;
use crate::form::columns::{RowTable, chosen, listed};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use mink_types::TablePath;
use mink_types::schema::{Field, Schema, SchemaDraft};

/// Where rows go.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: TablePath,
    /// The columns that are written. Those of the partition that is named have its values as their defaults.
    pub(super) schema: Schema,
    /// Whether they were named: then what else a file has is passed over.
    pub(super) is_chosen: bool,
    pub(super) partition: Partition,
    pub(super) bound: BatchBound,
}

impl Target {
    /// These columns of a table, or all of them, in this partition if one is named.
    pub(super) fn new(table: &RowTable, names: &[String], partition: Partition) -> Result<Target, Failure> {
        let schema = with_defaults(chosen(&table.schema, &table.path, names)?, &partition)?;
        let left_out = |column: &&Field| {
            schema.column(&column.name).is_none()
                && must_be_given(column)
                && partition.value(&column.name).is_none()
        };
        if let Some(column) = table.schema.columns().iter().find(left_out) {
            return Err(Failure::usage(format!(
                "--columns leaves {:?} out, which is NOT NULL without a default; name it too",
                column.name
            )));
        }
        let (path, is_chosen, bound) = (table.path.clone(), !names.is_empty(), BatchBound::of(table));
        Ok(Target { path, schema, is_chosen, partition, bound })
    }

    /// Rows of the file as the table takes them; of rows with one that it does not take, those before it, and why that one is not.
    pub(super) fn fit(&self, mut rows: RecordBatch) -> Result<(RecordBatch, Option<Unfit>), ArrowError> {
        let mut unfit = self.partition.first_other(&rows)?;
        if let Some(other) = &unfit {
            rows = rows.slice(0, other.at);
        }
        if let Some(large) = self.bound.first_too_large(&rows) {
            rows = rows.slice(0, large.at);
            unfit = Some(large);
        }
        Ok((self.partition.fill(rows)?, unfit))
    }

    /// Where the columns of a file lie among those that are written; none for one that is passed over.
    ///
    /// # Errors
    /// A column that the table has not, that stands twice, or that is missing and may not be.
    pub(super) fn places<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Option<usize>>, String> {
        let columns = self.schema.columns();
        let mut places = Vec::new();
        for name in names {
            let place = columns.iter().position(|column| column.name == name);
            if place.is_none() && !self.is_chosen {
                return Err(format!(
                    "the file has a column {name:?}, which {} has not (it has {}); --columns A,B writes only those that it names",
                    self.path,
                    listed(&self.schema)
                ));
            }
            if place.is_some() && places.contains(&place) {
                return Err(format!("the file has the column {name:?} twice"));
            }
            places.push(place);
        }
        let missing = |(place, column): &(usize, &Field)| {
            !places.contains(&Some(*place)) && (self.is_chosen || must_be_given(column))
        };
        match columns.iter().enumerate().find(missing) {
            Some((_, column)) if self.is_chosen => Err(format!("the file has no column {:?}", column.name)),
            Some((_, column)) => Err(format!(
                "the file has no column {:?}, which is NOT NULL without a default in {}",
                column.name, self.path
            )),
            None => Ok(places),
        }
    }
}

/// The columns, of which those that the partition names have its values as defaults: so a row that does not say them has them.
fn with_defaults(schema: Schema, partition: &Partition) -> Result<Schema, Failure> {
    let with_value = |column: &Field| match partition.value(&column.name) {
        Some(value) => Field { default: Some(value.clone()), ..column.clone() },
        None => column.clone(),
    };
    let columns: Vec<Field> = schema.columns().iter().map(with_value).collect();
    if columns == schema.columns() {
        return Ok(schema);
    }
    let draft = SchemaDraft { columns, ..SchemaDraft::default() };
    Schema::create(draft).map_err(|error| Failure::failed(format!("--partition: {error}")))
}

/// Whether a row without it is refused.
fn must_be_given(column: &Field) -> bool {
    !column.nullable && column.default.is_none()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::partition::tests::partition;
    use super::*;
    use crate::form::columns::tests::table;
    use arrow_array::{ArrayRef, StringArray};
    use std::sync::Arc;

    /// A table with these columns, all of which are written.
    pub(crate) fn target(columns: &str) -> Target {
        Target::new(&table(columns, &[]), &[], Partition::default()).expect("all columns")
    }

    /// A table with these columns, partitioned by `p`, stored as they are, all of which are written to the partition `x`.
    pub(crate) fn target_of_x(columns: &str) -> Target {
        let mut table = table(columns, &["p"]);
        table.options.insert("table.log.arrow.compression".into(), "none".into());
        Target::new(&table, &[], partition(columns, &["p"], &["p=x"])).expect("all columns")
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let target = target("a INT, b INT NOT NULL, c INT NOT NULL DEFAULT 1");
        assert_eq!(target.places(["b", "a"]), Ok(vec![Some(1), Some(0)]));
        assert_eq!(target.places(["c", "b"]), Ok(vec![Some(2), Some(1)]));
    }

    #[test]
    fn unknown_double_and_missing_columns_are_refused_by_name() {
        let target = target("a INT, b INT NOT NULL");
        let words = |names: &[&str]| target.places(names.iter().copied()).expect_err("refused");
        assert!(words(&["b", "x"]).contains("\"x\", which sales.orders has not (it has a, b)"));
        assert_eq!(words(&["b", "b"]), "the file has the column \"b\" twice");
        assert!(words(&["a"]).contains("no column \"b\", which is NOT NULL"));
    }

    #[test]
    fn of_named_columns_all_must_be_there_and_others_are_passed_over() {
        let target = Target { is_chosen: true, ..target("a INT, b INT") };
        assert_eq!(target.places(["x", "b", "x", "a"]), Ok(vec![None, Some(1), None, Some(0)]));
        assert_eq!(target.places(["a"]), Err("the file has no column \"b\"".into()));
    }

    #[test]
    fn a_column_of_the_partition_that_is_named_may_be_missing_and_may_be_left_out() {
        let columns = "a INT, p STRING NOT NULL";
        assert_eq!(target_of_x(columns).places(["a"]), Ok(vec![Some(0)]));
        let only = ["a".to_owned()];
        let unnamed = Target::new(&table(columns, &["p"]), &only, Partition::default());
        assert!(matches!(unnamed, Err(Failure::Usage(words)) if words.contains("leaves \"p\" out")));
        Target::new(&table(columns, &["p"]), &only, partition(columns, &["p"], &["p=x"]))
            .expect("it is named");
    }

    #[test]
    fn of_rows_with_one_that_is_not_taken_those_before_it_are() {
        let texts = |texts: &[&str]| Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
        let long = "s".repeat(2_000_000);
        let rows = |columns| RecordBatch::try_from_iter(columns).expect("columns of one length");
        let target = target_of_x("s STRING, p STRING");
        let (fit, unfit) = target.fit(rows(vec![("s", texts(&["a", &long, "c"]))])).expect("they compare");
        assert_eq!((fit.num_rows(), fit.num_columns()), (1, 2));
        let unfit = unfit.expect("the second is too large");
        assert!(unfit.at == 1 && unfit.what.contains("too large"), "{unfit:?}");
        let other = rows(vec![("s", texts(&["a", "b", &long])), ("p", texts(&["x", "y", "x"]))]);
        let (fit, unfit) = target.fit(other).expect("they compare");
        assert!(fit.num_rows() == 1 && unfit.expect("of y").what.starts_with("p: the row has \"y\""));
    }
}
