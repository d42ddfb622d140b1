//! What was put, as far as it is needed to read as much again.
//!
//! Lives on: shared by all calls; its lock is held for a moment per batch.
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Batches that are kept, and read in turn.
const KEPT_MAX: usize = 8;

/// How batches are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Codec {
    None,
    Lz4,
    Zstd,
}

impl Codec {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

/// The tables that were written to, by address.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) codec: Codec,
    tables: Mutex<BTreeMap<String, Table>>,
}

/// What was put to one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) kept: Vec<RecordBatch>,
    pub(crate) batches: u64,
    pub(crate) rows: u64,
}

impl Tables {
    pub(crate) fn new(codec: Codec) -> Tables {
        Tables { codec, tables: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table as it is now; empty if nobody has written to it.
    pub(crate) fn table(&self, name: &str) -> Table {
        self.lock().get(name).cloned().unwrap_or_default()
    }

    /// Counts a batch and drops it, unless it is one of the first; the offset of its first row.
    pub(crate) fn put(&self, name: &str, batch: RecordBatch) -> u64 {
        let mut tables = self.lock();
        if !tables.contains_key(name) {
            tables.insert(name.to_owned(), Table { schema: Some(batch.schema()), ..Table::default() });
        }
        let Some(table) = tables.get_mut(name) else { return 0 };
        let base_offset = table.rows;
        table.rows += batch.num_rows() as u64;
        table.batches += 1;
        if table.kept.len() < KEPT_MAX {
            table.kept.push(batch);
        }
        base_offset
    }
}
