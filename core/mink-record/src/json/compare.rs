//! Entries of one column compared, which says whether a key stands twice and whether a row's two parts agree.
//!
//! Lives on: anywhere (pure).
//! Invariants: an order of all values: floats as by `total_cmp`, null first, lists and rows by their first difference.
use super::column::{Column, Values, range};
use std::cmp::Ordering;
use std::ops::Range;

/// Up to so many entries all pairs are compared; more are sorted.
const PAIRS_MAX: usize = 8;

impl Column {
    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        match (self.nulls.is_valid(a), self.nulls.is_valid(b)) {
            (true, true) => self.values.compare(a, b),
            (a, b) => a.cmp(&b),
        }
    }

    /// Whether two of these entries are equal.
    pub(super) fn has_twice(&self, entries: Range<usize>) -> bool {
        if entries.len() <= PAIRS_MAX {
            return entries.clone().any(|a| (entries.start..a).any(|b| self.compare(a, b).is_eq()));
        }
        let mut sorted: Vec<usize> = entries.collect();
        sorted.sort_unstable_by(|a, b| self.compare(*a, *b));
        !sorted.is_sorted_by(|a, b| self.compare(*a, *b).is_lt())
    }

    fn compare_lists(&self, a: Range<usize>, b: Range<usize>) -> Ordering {
        let shorter = a.len().cmp(&b.len());
        a.zip(b).map(|(a, b)| self.compare(a, b)).find(|order| order.is_ne()).unwrap_or(shorter)
    }
}

impl Values {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            Values::Boolean(values) => values.get_bit(a).cmp(&values.get_bit(b)),
            Values::TinyInt(values) => values.get(a).cmp(&values.get(b)),
            Values::SmallInt(values) => values.get(a).cmp(&values.get(b)),
            Values::Int(values) | Values::Date(values) => values.get(a).cmp(&values.get(b)),
            Values::BigInt(values)
            | Values::Time { units: values, .. }
            | Values::Timestamp { units: values, .. } => values.get(a).cmp(&values.get(b)),
            Values::Float(values) => match (values.get(a), values.get(b)) {
                (Some(a), Some(b)) => a.total_cmp(b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            },
            Values::Double(values) => match (values.get(a), values.get(b)) {
                (Some(a), Some(b)) => a.total_cmp(b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            },
            Values::Decimal { values, .. } => values.get(a).cmp(&values.get(b)),
            Values::Text { bytes, .. } | Values::Bytes { bytes, .. } => bytes.get(a).cmp(bytes.get(b)),
            Values::Array { offsets, element } => element.compare_lists(range(offsets, a), range(offsets, b)),
            Values::Map { offsets, entries } => {
                // Entry by entry, its key before its value.
                let (left, right) = (range(offsets, a), range(offsets, b));
                let shorter = left.len().cmp(&right.len());
                left.zip(right)
                    .map(|(a, b)| entries.compare(a, b))
                    .find(|order| order.is_ne())
                    .unwrap_or(shorter)
            }
            Values::Row(fields) => fields.compare(a, b),
        }
    }
}
