//! Parquet and Arrow files into rows.
//!
//! Lives on: the reading thread.
//! Invariants: I20: rows come in pieces of about `PORTION_BYTES`, never a whole file at once (an Arrow batch comes as it was written).
//! Rows are counted from 1; an error names the row, and rows before it are handed on.
use super::FileForm;
use super::convert::{Misfit, Plan};
use super::input::{Source, cannot_read, spool};
use super::magic::Magic;
use super::portion::{PORTION_BYTES, PORTION_ROWS, Progress, Sink, Stop};
use super::row_bytes::bytes_of;
use super::target::Target;
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

/// Reads a Parquet file. Its index lies at its end, so that stdin is kept in a file first.
pub(super) fn read_parquet(
    source: Source,
    target: &Target,
    progress: &Progress,
    sink: &Sink,
) -> Result<(), Stop> {
    let mut file = match source {
        Source::File(file) => file,
        Source::Stdin => spool(std::io::stdin())?,
    };
    let magic = Magic::of(&begin_of(&mut file)?);
    magic.instead_of(FileForm::Parquet).map_or(Ok(()), |what| Err(Stop::Wrong(what.into())))?;
    rewind(&mut file)?;
    let unreadable = |error: &dyn std::fmt::Display| format!("no Parquet file that can be read: {error}");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(&error))?;
    let plan = Plan::new(builder.schema(), target)?;
    let groups = builder.metadata().row_groups();
    let rows: u64 = groups.iter().filter_map(|group| u64::try_from(group.num_rows()).ok()).sum();
    let bytes: u64 = groups.iter().filter_map(|group| u64::try_from(group.total_byte_size()).ok()).sum();
    progress.set_total(rows);
    let mask = ProjectionMask::roots(builder.parquet_schema(), plan.places().iter().copied());
    let batch_rows = rows_of(rows, usize::try_from(bytes).unwrap_or(usize::MAX));
    let reader = builder.with_projection(mask).with_batch_size(batch_rows).build();
    let reader = reader.map_err(|error| unreadable(&error))?;
    let mut rows = Rows { plan: &plan, target, progress, sink, before: 0, row_is_progress: true };
    for batch in reader {
        rows.take(&batch.map_err(|error| rows.damaged(&error))?)?;
    }
    Ok(())
}

/// Reads a file or a stream of Arrow: it tells itself which.
pub(super) fn read_arrow(
    source: Source,
    target: &Target,
    progress: &Progress,
    sink: &Sink,
) -> Result<(), Stop> {
    match source {
        Source::File(mut file) => {
            let is_file = is_arrow_file(&begin_of(&mut file)?)?;
            rewind(&mut file)?;
            if is_file {
                return read_arrow_file(file, target, progress, sink);
            }
            read_arrow_stream(Source::File(file).bytes(progress), target, progress, sink)
        }
        Source::Stdin => {
            let mut bytes = Source::Stdin.bytes(progress);
            let begin = begin_of(&mut bytes)?;
            let whole = Cursor::new(begin.clone()).chain(bytes);
            if is_arrow_file(&begin)? {
                return read_arrow_file(spool(whole)?, target, progress, sink);
            }
            read_arrow_stream(whole, target, progress, sink)
        }
    }
}

/// The first bytes, by which a file is told apart from others.
fn begin_of(bytes: &mut impl Read) -> Result<Vec<u8>, Stop> {
    let mut begin = Vec::new();
    let read = bytes.take(Magic::BYTES as u64).read_to_end(&mut begin);
    read.map(|_| begin).map_err(|error| cannot_read(&error))
}

fn rewind(file: &mut File) -> Result<(), Stop> {
    file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| cannot_read(&error))
}

/// Whether it is a file, and no stream. Whatever else a text begins with would be taken for the length of a message.
fn is_arrow_file(begin: &[u8]) -> Result<bool, Stop> {
    const UNKNOWN: &str = "no Arrow file or stream that can be read: it does not begin as one (those of Arrow before 0.15 are not taken)";
    match Magic::of(begin) {
        Magic::ArrowFile => Ok(true),
        Magic::ArrowStream => Ok(false),
        other => Err(Stop::Wrong(other.instead_of(FileForm::Arrow).unwrap_or(UNKNOWN).into())),
    }
}

fn read_arrow_file(file: File, target: &Target, progress: &Progress, sink: &Sink) -> Result<(), Stop> {
    let reader = FileReader::try_new(BufReader::new(file), None)
        .map_err(|error| format!("no Arrow file that can be read: {error}"))?;
    let plan = Plan::new(&reader.schema(), target)?;
    progress.set_total(reader.num_batches() as u64);
    let mut rows = Rows { plan: &plan, target, progress, sink, before: 0, row_is_progress: false };
    for batch in reader {
        rows.take_whole(&batch.map_err(|error| rows.damaged(&error))?)?;
        progress.add(1);
    }
    Ok(())
}

fn read_arrow_stream(
    bytes: impl Read,
    target: &Target,
    progress: &Progress,
    sink: &Sink,
) -> Result<(), Stop> {
    let reader = StreamReader::try_new(bytes, None)
        .map_err(|error| format!("no Arrow stream that can be read: {error}"))?;
    let plan = Plan::new(&reader.schema(), target)?;
    let mut rows = Rows { plan: &plan, target, progress, sink, before: 0, row_is_progress: false };
    for batch in reader {
        rows.take_whole(&batch.map_err(|error| rows.damaged(&error))?)?;
    }
    Ok(())
}

/// So many of these rows make a portion.
fn rows_of(rows: u64, bytes: usize) -> usize {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX).max(1);
    (PORTION_BYTES / (bytes / rows).max(1)).clamp(1, PORTION_ROWS)
}

/// Rows on their way from the file to the writer.
struct Rows<'a> {
    plan: &'a Plan,
    target: &'a Target,
    progress: &'a Progress,
    sink: &'a Sink,
    /// Rows of the file that lie before the next one.
    before: u64,
    /// Whether progress counts rows.
    row_is_progress: bool,
}

impl Rows<'_> {
    /// Takes rows with all the columns of the file.
    fn take_whole(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
        let chosen = batch.project(self.plan.places());
        self.take(&chosen.map_err(|error| self.damaged(&error))?)
    }

    /// Takes rows with the columns that are read.
    fn take(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
        let step = rows_of(batch.num_rows() as u64, bytes_of(batch));
        let mut from = 0;
        while from < batch.num_rows() {
            let part = batch.slice(from, step.min(batch.num_rows() - from));
            self.portion(&part)?;
            from += part.num_rows();
        }
        Ok(())
    }

    /// Sends the rows, or those before the first one that does not fit.
    fn portion(&mut self, part: &RecordBatch) -> Result<(), Stop> {
        let (mut good, mut first_misfit) = (part.clone(), None);
        loop {
            match self.plan.convert(&good) {
                Ok(rows) if rows.num_rows() == 0 => break,
                Ok(rows) => {
                    self.send(rows)?;
                    break;
                }
                // Another column may have one before it.
                Err(misfit) => {
                    let before = misfit.at.min(good.num_rows().saturating_sub(1));
                    first_misfit = Some(misfit);
                    if before == 0 {
                        break;
                    }
                    good = good.slice(0, before);
                }
            }
        }
        // All rows before it have been sent.
        first_misfit.map_or(Ok(()), |Misfit { path, what, .. }| {
            Err(Stop::Wrong(format!("row {}: {path}: {what}", self.before + 1)))
        })
    }

    fn send(&mut self, rows: RecordBatch) -> Result<(), Stop> {
        let (count, first) = (rows.num_rows() as u64, self.before + 1);
        self.before += count;
        if self.row_is_progress {
            self.progress.add(count);
        }
        self.sink.send_rows(rows, self.target, "row", |at| first + at as u64)
    }

    fn damaged(&self, error: &ArrowError) -> String {
        format!("row {} or behind it cannot be read: {error}", self.before + 1)
    }
}

#[cfg(test)]
mod tests;
