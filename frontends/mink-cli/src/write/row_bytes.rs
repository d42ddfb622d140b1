//! Rows that no batch of the table holds, each for itself: told by their own place, where the node could only tell of all that came with it.
//!
//! Lives on: the reading thread. Costs nothing for rows that are far smaller than a batch may be.
//! Invariants: a row is refused only if the batch that a node would make of it alone is too large; whatever else is wrong is the node's to say.
use super::partition::Unfit;
use crate::form::columns::RowTable;
use crate::numbers;
use arrow_array::{Array, RecordBatch};
use mink_record::arrow::{EncodeOptions, encode};
use mink_types::schema::Schema;
use mink_types::{ArrowCompression, TableOptions, TablePath};

/// The option that says how large a batch may be.
const OPTION: &str = "max.message.bytes";

/// How large a batch of the table may be, and how it is written.
#[derive(Clone, Debug)]
pub(super) struct BatchBound {
    path: TablePath,
    schema: Schema,
    options: EncodeOptions,
    bytes_max: usize,
}

impl BatchBound {
    pub(super) fn of(table: &RowTable) -> BatchBound {
        let option = |name: &str| table.options.get(name).map(String::as_str);
        let TableOptions { batch_bytes_max, arrow_compression, .. } = TableOptions::default();
        let compression = match option("table.log.arrow.compression") {
            Some("zstd") => ArrowCompression::Zstd,
            Some("lz4") => ArrowCompression::Lz4,
            Some("none") => ArrowCompression::None,
            _ => arrow_compression,
        };
        let said = option(OPTION).and_then(|bytes| bytes.parse().ok());
        BatchBound {
            path: table.path.clone(),
            schema: table.schema.clone(),
            options: EncodeOptions { compression },
            bytes_max: said.unwrap_or(batch_bytes_max) as usize,
        }
    }

    /// The first row that is too large.
    pub(super) fn first_too_large(&self, rows: &RecordBatch) -> Option<Unfit> {
        let count = rows.num_rows();
        // Half of it leaves room for what stands beside the values.
        if bytes_of(rows) <= self.bytes_max / 2 {
            return None;
        }
        if count > 1 {
            let (first, second) = (rows.slice(0, count / 2), rows.slice(count / 2, count - count / 2));
            return self.first_too_large(&first).or_else(|| {
                let unfit = self.first_too_large(&second)?;
                Some(Unfit { at: count / 2 + unfit.at, ..unfit })
            });
        }
        let bytes = encode(rows, &self.schema, self.options, None).ok()?.len();
        (bytes > self.bytes_max).then(|| Unfit { at: 0, what: self.words(bytes) })
    }

    fn words(&self, bytes: usize) -> String {
        let (bytes, most) = (numbers::count(bytes as u64), numbers::count(self.bytes_max as u64));
        format!(
            "the row is too large: it takes {bytes} bytes, and {path} takes rows of at most {most}; make it smaller, or raise the table's \
             option {OPTION} (`ALTER TABLE {path} SET ('{OPTION}' = '...')`)",
            path = self.path
        )
    }
}

/// About what the rows take.
pub(super) fn bytes_of(rows: &RecordBatch) -> usize {
    let columns = rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
    columns.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::columns::tests::table;
    use arrow_array::{ArrayRef, StringArray};
    use std::sync::Arc;

    fn with(options: &[(&str, &str)]) -> BatchBound {
        let mut table = table("s STRING, n INT NOT NULL DEFAULT 7", &[]);
        let said = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        table.options = said.collect();
        BatchBound::of(&table)
    }

    fn bound(bytes: &str, compression: &str) -> BatchBound {
        with(&[("max.message.bytes", bytes), ("table.log.arrow.compression", compression)])
    }

    fn texts(lengths: &[usize]) -> RecordBatch {
        let texts = StringArray::from_iter_values(lengths.iter().map(|length| "x".repeat(*length)));
        RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).expect("one column")
    }

    #[test]
    fn of_many_rows_only_one_that_is_too_large_by_itself_is_told() {
        let bound = bound("10000", "none");
        assert_eq!(bound.first_too_large(&texts(&[4_000; 100])), None);
        let unfit =
            bound.first_too_large(&texts(&[9_000, 9_000, 9_000, 20_000, 90_000])).expect("the fourth");
        assert_eq!(unfit.at, 3);
        for word in
            ["the row is too large", "sales.orders takes rows of at most 10,000", "option max.message.bytes"]
        {
            assert!(unfit.what.contains(word), "{}", unfit.what);
        }
    }

    #[test]
    fn a_row_that_fits_once_it_is_compressed_is_not_too_large() {
        assert_eq!(bound("10000", "zstd").first_too_large(&texts(&[90_000])), None);
        assert!(bound("10000", "lz4").first_too_large(&texts(&[9_000_000])).is_some(), "lz4 has its bounds");
    }

    #[test]
    fn a_table_that_does_not_say_takes_what_tables_take() {
        let bound = with(&[("table.log.arrow.compression", "none")]);
        assert_eq!(bound.first_too_large(&texts(&[900_000])), None);
        assert!(bound.first_too_large(&texts(&[2_000_000])).is_some());
    }
}
