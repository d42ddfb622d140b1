//! The rows that a load of Arrow batches puts: made once, sent again and again.
//!
//! Lives on: anywhere (pure); the same seed gives the same rows.
use super::pace::Random;
use crate::error::{ClientError, ErrorKind};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use std::fmt::Write as _;
use std::sync::Arc;

/// Of a row's bytes, those that are not text: three columns of 8 bytes and the text's place.
const FIXED_BYTES: usize = 28;
/// Bytes of the shortest row that can be asked for.
pub const ROW_BYTES_MIN: usize = FIXED_BYTES + 4;
/// Batches that differ from each other.
const BATCHES: usize = 8;
/// Bytes of all of them.
const BYTES_MAX: usize = 512 << 20;
/// What texts are made of.
const WORDS: [&str; 16] = [
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "granite", "harbour", "island", "juniper", "kelp",
    "lagoon", "marble", "nectar", "obsidian", "prairie",
];

/// What the rows of a load look like: `id`, `at`, `amount`, and a `note` of random words and digits that makes them as long as wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutRows {
    pub per_batch: usize,
    pub row_bytes: usize,
}

impl PutRows {
    /// The statement that makes a table for them, unless it is there.
    pub fn create_statement(table: &str, buckets: u32, options: &[(&str, &str)]) -> String {
        let mut statement = format!(
            "CREATE TABLE IF NOT EXISTS {table} (id BIGINT NOT NULL, at TIMESTAMP_LTZ(6) NOT NULL, amount DOUBLE, note STRING) WITH ('bucket.num' = '{buckets}'"
        );
        for (name, value) in options {
            // It goes into a string, which takes all.
            write!(statement, ", '{name}' = '{value}'").unwrap_or_default();
        }
        statement + ")"
    }

    /// Batches of such rows.
    ///
    /// # Errors
    /// `Misuse` for rows that are too short, or batches that are too large or have none.
    pub fn batches(self, seed: u64) -> Result<Vec<RecordBatch>, ClientError> {
        let misuse = |what: String| Err(ClientError::new(ErrorKind::Misuse, what));
        if self.row_bytes < ROW_BYTES_MIN {
            return misuse(format!("a row has at least {ROW_BYTES_MIN} bytes, not {}", self.row_bytes));
        }
        let all = self.per_batch.saturating_mul(self.row_bytes).saturating_mul(BATCHES);
        if self.per_batch == 0 || all > BYTES_MAX {
            return misuse(format!(
                "a batch has at least one row, and at most {} bytes",
                BYTES_MAX / BATCHES
            ));
        }
        let mut random = Random(seed);
        (0..BATCHES).map(|number| self.batch(number, &mut random)).collect()
    }

    fn batch(self, number: usize, random: &mut Random) -> Result<RecordBatch, ClientError> {
        let first = i64::try_from(number * self.per_batch).unwrap_or(0);
        let ids = || (0..self.per_batch).zip(first..).map(|(_, id)| id);
        // Some rows a millisecond, from 2026 on.
        let at = ids().map(|id| 1_767_225_600_000_000 + id * 137).collect::<Vec<_>>();
        let cents = |random: &mut Random| u32::try_from(random.below(1_000_000)).unwrap_or(0);
        let amount = (0..self.per_batch).map(|_| f64::from(cents(random)) / 100.0).collect::<Vec<_>>();
        let notes = (0..self.per_batch).map(|_| note(self.row_bytes - FIXED_BYTES, random));
        let notes = StringArray::from_iter_values(notes);
        let columns: [(&str, ArrayRef); 4] = [
            ("id", Arc::new(Int64Array::from_iter_values(ids()))),
            ("at", Arc::new(TimestampMicrosecondArray::from(at).with_timezone("UTC"))),
            ("amount", Arc::new(Float64Array::from(amount))),
            ("note", Arc::new(notes)),
        ];
        RecordBatch::try_from_iter(columns)
            .map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))
    }
}

/// Words and a number, so many bytes of them: as compressible as text of machines is.
fn note(bytes: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let word = WORDS.get(random.below(WORDS.len())).copied().unwrap_or_default();
        write!(text, "{word}-{} ", random.below(10_000)).unwrap_or_default();
    }
    // Of ASCII alone, so any place is one between characters.
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::bytes_of;

    #[test]
    fn rows_are_as_long_as_wanted_and_the_seed_decides_them() {
        let rows = PutRows { per_batch: 100, row_bytes: 128 };
        let batches = rows.batches(7).unwrap();
        assert_eq!(batches.len(), BATCHES);
        for batch in &batches {
            assert_eq!(batch.num_rows(), 100);
            assert!((12_800..12_810).contains(&bytes_of(batch)), "{}", bytes_of(batch));
        }
        assert_eq!(rows.batches(7).unwrap(), batches);
        assert_ne!(rows.batches(8).unwrap(), batches);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |per_batch, row_bytes| PutRows { per_batch, row_bytes }.batches(1).unwrap_err().kind();
        assert_eq!(refused(1, ROW_BYTES_MIN - 1), ErrorKind::Misuse);
        assert_eq!(refused(0, 100), ErrorKind::Misuse);
        assert_eq!(refused(usize::MAX, 100), ErrorKind::Misuse);
    }
}
