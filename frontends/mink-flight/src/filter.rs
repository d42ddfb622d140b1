//! Rows that meet all of some comparisons.
//!
//! Lives on: anywhere (pure).
//! Invariants: a batch is passed over only if its statistics show that no row of it meets them all; null meets IS NULL alone; NaN is
//! equal to itself and greater than all else, as in Arrow's total order.
use crate::status::IntoStatus;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow_ord::cmp;
use arrow_schema::ArrowError;
use mink_ddl::literal_of;
use mink_proto::{Comparison, Operator};
use mink_record::arrow::{ColumnStatistics, literal_array};
use mink_types::TablePath;
use mink_types::schema::{FieldId, Literal, Schema};
use std::cmp::Ordering;
use tonic::Status;

/// Comparisons of columns with constants, all of which a row must meet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
struct Term {
    field: FieldId,
    operator: Operator,
    /// The constant, and as an array of one row; none for IS NULL and IS NOT NULL.
    constant: Option<(Literal, ArrayRef)>,
}

/// Comparisons of one scan.
const TERMS_MAX: usize = 256;

impl Filter {
    /// Checks names, operators and constants against the schema that the rows are to have.
    pub(crate) fn new(
        path: &TablePath,
        schema: &Schema,
        comparisons: &[Comparison],
    ) -> Result<Filter, Status> {
        if comparisons.len() > TERMS_MAX {
            return Err(Status::invalid_argument(format!(
                "{} comparisons; at most {TERMS_MAX} are accepted",
                comparisons.len()
            )));
        }
        let terms = comparisons.iter().map(|comparison| term(path, schema, comparison));
        Ok(Filter { terms: terms.collect::<Result<_, _>>()? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The columns that it looks at.
    pub(crate) fn fields(&self) -> impl Iterator<Item = FieldId> + '_ {
        self.terms.iter().map(|term| term.field)
    }

    /// Whether a batch of `rows` rows with these statistics may have a row that meets all. What nothing is known of may.
    pub(crate) fn may_match(&self, rows: u64, statistics: &[ColumnStatistics]) -> bool {
        self.terms.iter().all(|term| {
            statistics
                .iter()
                .find(|column| column.field == term.field)
                .is_none_or(|column| term.may_match(rows, column))
        })
    }

    /// Which rows of a batch meet all; its columns are found by `column`.
    pub(crate) fn rows(
        &self,
        batch: &RecordBatch,
        column: impl Fn(FieldId) -> Option<usize>,
    ) -> Result<BooleanArray, Status> {
        let mut all: Option<BooleanArray> = None;
        for term in &self.terms {
            let array = column(term.field)
                .and_then(|at| batch.columns().get(at))
                .ok_or_else(|| Status::internal(format!("column {} is not among those read", term.field)))?;
            let met = term.rows(array).map_err(|error| Status::internal(error.to_string()))?;
            all = Some(match all {
                None => met,
                Some(all) => both(&all, &met),
            });
        }
        Ok(all.unwrap_or_else(|| BooleanArray::from(vec![true; batch.num_rows()])))
    }
}

/// Both, where neither has nulls.
fn both(left: &BooleanArray, right: &BooleanArray) -> BooleanArray {
    BooleanArray::new(left.values() & right.values(), None)
}

fn term(path: &TablePath, schema: &Schema, comparison: &Comparison) -> Result<Term, Status> {
    let name = &comparison.column;
    let column = schema.column(name).ok_or_else(|| {
        let names: Vec<_> = schema.columns().iter().map(|column| column.name.as_str()).collect();
        Status::invalid_argument(format!("table {path} has no column {name:?}; it has {}", names.join(", ")))
    })?;
    let operator = Operator::try_from(comparison.operator)
        .ok()
        .filter(|operator| *operator != Operator::Unspecified)
        .ok_or_else(|| {
            Status::invalid_argument(format!("column {name:?}: operator {} is unknown", comparison.operator))
        })?;
    if matches!(operator, Operator::IsNull | Operator::IsNotNull) {
        return Ok(Term { field: column.id, operator, constant: None });
    }
    if !column.data_type.is_scalar() {
        return Err(Status::invalid_argument(format!(
            "column {name:?} of table {path} is {}; only scalar columns are compared with constants",
            column.data_type
        )));
    }
    let literal = literal_of(&column.data_type, &comparison.value).map_err(|error| {
        Status::invalid_argument(format!("column {name:?}: {}", error.into_status().message()))
    })?;
    let array = literal_array(&column.data_type, &literal)
        .ok_or_else(|| Status::internal(format!("column {name:?}: the constant has no array")))?;
    Ok(Term { field: column.id, operator, constant: Some((literal, array)) })
}

impl Term {
    fn may_match(&self, rows: u64, column: &ColumnStatistics) -> bool {
        let Some((constant, _)) = &self.constant else {
            return match self.operator {
                Operator::IsNull => column.nulls > 0,
                _ => column.nulls < rows,
            };
        };
        if column.nulls >= rows {
            return false;
        }
        // Bounds that are not there, or of another kind, or beside NaN, tell nothing.
        let against = |bound: &Option<Literal>| bound.as_ref().and_then(|bound| compare(bound, constant));
        if column.nans > 0 {
            return true;
        }
        let (min, max) = (against(&column.min), against(&column.max));
        match self.operator {
            Operator::Equal => min != Some(Ordering::Greater) && max != Some(Ordering::Less),
            Operator::Less => min.is_none_or(Ordering::is_lt),
            Operator::LessOrEqual => min.is_none_or(Ordering::is_le),
            Operator::Greater => max.is_none_or(Ordering::is_gt),
            Operator::GreaterOrEqual => max.is_none_or(Ordering::is_ge),
            Operator::NotEqual | Operator::IsNull | Operator::IsNotNull | Operator::Unspecified => true,
        }
    }

    fn rows(&self, array: &ArrayRef) -> Result<BooleanArray, ArrowError> {
        let met = match &self.constant {
            None => {
                let is_null = self.operator == Operator::IsNull;
                return Ok((0..array.len()).map(|at| Some(array.is_null(at) == is_null)).collect());
            }
            Some((_, constant)) => {
                let constant = Scalar::new(ArrayRef::clone(constant));
                match self.operator {
                    Operator::Equal => cmp::eq(array, &constant)?,
                    Operator::NotEqual => cmp::neq(array, &constant)?,
                    Operator::Less => cmp::lt(array, &constant)?,
                    Operator::LessOrEqual => cmp::lt_eq(array, &constant)?,
                    Operator::Greater => cmp::gt(array, &constant)?,
                    Operator::GreaterOrEqual => cmp::gt_eq(array, &constant)?,
                    Operator::IsNull | Operator::IsNotNull | Operator::Unspecified => {
                        return Err(ArrowError::InvalidArgumentError("not a comparison".into()));
                    }
                }
            }
        };
        // What is compared with null is not met.
        Ok(match met.nulls() {
            Some(nulls) => BooleanArray::new(met.values() & nulls.inner(), None),
            None => met,
        })
    }
}

/// The order of two constants of one type; none if they are not of one.
fn compare(left: &Literal, right: &Literal) -> Option<Ordering> {
    match (left, right) {
        (Literal::Double(left), Literal::Double(right)) => {
            Some(f64::from_bits(*left).total_cmp(&f64::from_bits(*right)))
        }
        _ if std::mem::discriminant(left) == std::mem::discriminant(right) => Some(left.cmp(right)),
        _ => None,
    }
}
