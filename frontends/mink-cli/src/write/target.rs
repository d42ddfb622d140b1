//! The columns that are written, of which table.
//!
//! Lives on: anywhere (pure).
//! Invariants: a column that is left out may be null or has a default.
use crate::failure::Failure;
use crate::form::columns::{RowTable, chosen, listed};
use mink_types::TablePath;
use mink_types::schema::{Field, Schema};

/// Where rows go.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: TablePath,
    /// The columns that are written.
    pub(super) schema: Schema,
    /// Whether they were named: then what else a file has is passed over.
    pub(super) is_chosen: bool,
}

impl Target {
    /// These columns of a table, or all of them.
    pub(super) fn new(table: &RowTable, names: &[String]) -> Result<Target, Failure> {
        let schema = chosen(&table.schema, &table.path, names)?;
        let left_out = |column: &&Field| schema.column(&column.name).is_none() && must_be_given(column);
        if let Some(column) = table.schema.columns().iter().find(left_out) {
            return Err(Failure::usage(format!(
                "--columns leaves {:?} out, which is NOT NULL without a default; name it too",
                column.name
            )));
        }
        Ok(Target { path: table.path.clone(), schema, is_chosen: !names.is_empty() })
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

/// Whether a row without it is refused.
fn must_be_given(column: &Field) -> bool {
    !column.nullable && column.default.is_none()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::form::columns::tests::{path, schema};

    /// A table with these columns, all of which are written.
    pub(crate) fn target(columns: &str) -> Target {
        Target { path: path(), schema: schema(columns), is_chosen: false }
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
}
