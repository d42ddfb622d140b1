//! Pieces of a file on their way to its table or topic, and the thread that reads them.
//!
//! Lives on: the reading thread on one side, the command's task on the other.
//! Owns: the bound on what is read and not yet handed to the writer.
//! Invariants: I20: at most `PORTIONS_MAX` portions wait; a file that is read to its end is told apart from a reader that died.
use super::json;
use super::target::Target;
use crate::failure::Failure;
use arrow_array::RecordBatch;
use mink_record::json::{JsonErrorKind, RowsBuilder};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// Portions that wait for the writer.
const PORTIONS_MAX: usize = 4;
/// From how many bytes or rows on a portion goes. The client joins small ones, so that a slow source need not wait.
pub(super) const PORTION_BYTES: usize = 1 << 20;
pub(super) const PORTION_ROWS: usize = 8_192;

/// Rows of a file.
#[derive(Debug)]
pub(super) struct Portion {
    pub(super) rows: RecordBatch,
    pub(super) place: Place,
}

/// Where rows stand in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// What is counted: `line` or `row`.
    pub(super) noun: &'static str,
    /// From 1.
    pub(super) first: u64,
    pub(super) last: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { noun, first, last } = self;
        if first == last { write!(f, "{noun} {first}") } else { write!(f, "{noun}s {first} to {last}") }
    }
}

/// Why reading ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The writer has gone.
    Nobody,
    /// The file is not what it must be: where, and what is wrong.
    Wrong(String),
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Wrong(what)
    }
}

/// The reader's way out.
#[derive(Debug)]
pub(super) struct Sink<T = Portion>(mpsc::Sender<Result<T, String>>);

impl<T> Sink<T> {
    pub(super) fn send(&self, portion: T) -> Result<(), Stop> {
        self.0.blocking_send(Ok(portion)).map_err(|_| Stop::Nobody)
    }
}

impl Sink {
    /// Sends rows as the table takes them: those before the first one that it does not take. `number` is what counts the row at a place.
    pub(super) fn send_rows(
        &self,
        rows: RecordBatch,
        target: &Target,
        noun: &'static str,
        number: impl Fn(usize) -> u64,
    ) -> Result<(), Stop> {
        let (rows, unfit) = target.fit(rows).map_err(|error| format!("{noun} {}: {error}", number(0)))?;
        if let Some(last) = rows.num_rows().checked_sub(1) {
            let place = Place { noun, first: number(0), last: number(last) };
            self.send(Portion { rows, place })?;
        }
        unfit.map_or(Ok(()), |unfit| Err(Stop::Wrong(format!("{noun} {}: {}", number(unfit.at), unfit.what))))
    }

    /// A way out and its other end, without a thread.
    #[cfg(test)]
    pub(super) fn collecting(portions: usize) -> (Sink, mpsc::Receiver<Result<Portion, String>>) {
        let (sender, receiver) = mpsc::channel(portions);
        (Sink(sender), receiver)
    }
}

/// How far a file has been read, of how much; 0 of 0 while that is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<[AtomicU64; 2]>);

impl Progress {
    pub(super) fn set_total(&self, total: u64) {
        self.0.last().into_iter().for_each(|at| at.store(total, Ordering::Relaxed));
    }

    pub(super) fn add(&self, read: u64) {
        self.0.first().into_iter().for_each(|at| {
            at.fetch_add(read, Ordering::Relaxed);
        });
    }

    /// What is read, and the whole.
    pub(super) fn get(&self) -> (u64, u64) {
        let [read, total] = &*self.0;
        (read.load(Ordering::Relaxed), total.load(Ordering::Relaxed))
    }
}

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Reading<T = Portion> {
    portions: mpsc::Receiver<Result<T, String>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Reading<T> {
    /// Reads on a thread of its own: stdin may keep it waiting for ever, and a process must be able to end all the same.
    pub(super) fn start(
        read: impl FnOnce(&Sink<T>) -> Result<(), Stop> + Send + 'static,
    ) -> Result<Reading<T>, Failure> {
        let (sender, portions) = mpsc::channel(PORTIONS_MAX);
        let thread = std::thread::Builder::new().name("mink-write".into()).spawn(move || {
            let sink = Sink(sender);
            if let Err(Stop::Wrong(what)) = read(&sink) {
                // Who does not listen any more has an error of its own.
                drop(sink.0.blocking_send(Err(what)));
            }
        });
        let thread = thread.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Reading { portions, thread: Some(thread) })
    }

    /// The next rows; none at the end. An error ends it.
    pub(super) async fn next(&mut self) -> Option<Result<T, String>> {
        if let Some(portion) = self.portions.recv().await {
            return Some(portion);
        }
        // The thread has let go of its end, so it ends now.
        let died = self.thread.take().is_some_and(|thread| thread.join().is_err());
        died.then(|| Err("the file is damaged in a way that its reader does not survive".to_owned()))
    }
}

/// Collects rows that come as JSON into portions.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    target: &'a Target,
    rows: RowsBuilder,
    /// The line of each row.
    lines: Vec<u64>,
}

impl Collector<'_> {
    pub(super) fn new(target: &Target) -> Collector<'_> {
        Collector { target, rows: RowsBuilder::new(&target.schema), lines: Vec::new() }
    }

    /// Takes the row that begins in this line.
    pub(super) fn push(&mut self, line: u64, object: &[u8], sink: &Sink) -> Result<(), Stop> {
        let mut pushed = self.rows.push_json(object);
        if pushed.as_ref().is_err_and(|error| error.kind() == JsonErrorKind::Full) {
            self.flush(sink)?;
            pushed = self.rows.push_json(object);
        }
        pushed.map_err(|error| {
            format!("line {line}: {}", json::explained(&error, object, &self.target.schema))
        })?;
        self.lines.push(line);
        if self.rows.bytes() >= PORTION_BYTES || self.rows.len() >= PORTION_ROWS {
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self, sink: &Sink) -> Result<(), Stop> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.lines);
        let number = |at: usize| lines.get(at).copied().unwrap_or_default();
        let rows = self.rows.finish().map_err(|error| format!("line {}: {error}", number(0)))?;
        sink.send_rows(rows, self.target, "line", number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{target, target_of_x};
    use super::*;

    #[test]
    fn places_read_well() {
        let place = |first, last| Place { noun: "line", first, last }.to_string();
        assert_eq!((place(3, 3), place(3, 9)), ("line 3".into(), "lines 3 to 9".into()));
    }

    #[tokio::test]
    async fn an_end_an_error_and_a_dead_reader_are_told_apart() {
        let mut reading: Reading = Reading::start(|_| Ok(())).expect("a thread");
        assert!(reading.next().await.is_none());
        let mut reading: Reading = Reading::start(|_| Err(Stop::Wrong("line 7".into()))).expect("a thread");
        assert_eq!(reading.next().await.map(|read| read.map(drop)), Some(Err("line 7".into())));
        assert!(reading.next().await.is_none());
        let mut reading: Reading = Reading::start(|_| panic!("a test's own")).expect("a thread");
        let died = reading.next().await.expect("it is told").map(drop).expect_err("it died");
        assert!(died.contains("damaged"), "{died}");
    }

    #[tokio::test]
    async fn a_reader_whose_writer_has_gone_stops() {
        let (sink, receiver) = Sink::collecting(1);
        drop(receiver);
        let reader = std::thread::spawn(move || {
            let target = target("a INT");
            let mut rows = Collector::new(&target);
            rows.push(1, b"{\"a\":1}", &sink).expect("it is only collected");
            rows.flush(&sink)
        });
        assert!(matches!(reader.join().expect("it ends"), Err(Stop::Nobody)));
    }

    #[test]
    fn rows_before_a_wrong_one_are_kept_with_their_lines() {
        let (sink, mut receiver) = Sink::collecting(4);
        let target = target("a INT");
        let mut rows = Collector::new(&target);
        for line in [3, 5, 6] {
            rows.push(line, b"{\"a\":1}", &sink).expect("a row");
        }
        let Err(Stop::Wrong(what)) = rows.push(7, b"{\"a\":\"x\"}", &sink) else { panic!("no number") };
        assert!(what.starts_with("line 7: a: found"), "{what}");
        rows.flush(&sink).expect("they go");
        let portion = receiver.try_recv().expect("a portion").expect("rows");
        assert_eq!((portion.rows.num_rows(), portion.place.to_string()), (3, "lines 3 to 6".into()));
    }

    #[test]
    fn portions_are_cut_by_rows_and_by_bytes() {
        let (sink, mut receiver) = Sink::collecting(16);
        let target = target("a INT, s STRING");
        let mut rows = Collector::new(&target);
        for line in 1..=PORTION_ROWS as u64 {
            rows.push(line, b"{\"a\":1}", &sink).expect("a row");
        }
        assert_eq!(receiver.try_recv().expect("full").expect("rows").rows.num_rows(), PORTION_ROWS);
        let long = format!("{{\"s\":\"{}\"}}", "x".repeat(PORTION_BYTES));
        rows.push(1, long.as_bytes(), &sink).expect("a row");
        assert_eq!(receiver.try_recv().expect("full").expect("rows").rows.num_rows(), 1);
        rows.flush(&sink).expect("nothing is left");
        assert!(receiver.try_recv().is_err());
    }

    #[test]
    fn a_row_of_another_partition_is_told_with_its_own_line() {
        let (sink, mut receiver) = Sink::collecting(4);
        let target = target_of_x("a INT, p STRING");
        let mut rows = Collector::new(&target);
        for (line, row) in [(1, r#"{"a":1}"#), (4, r#"{"p":"x"}"#), (9, r#"{"p":"y"}"#), (10, "{}")] {
            rows.push(line, row.as_bytes(), &sink).expect("a row");
        }
        let Err(Stop::Wrong(what)) = rows.flush(&sink) else { panic!("line 9 is of another") };
        assert!(what.starts_with("line 9: p: the row has \"y\""), "{what}");
        let portion = receiver.try_recv().expect("a portion").expect("rows");
        assert_eq!((portion.rows.num_rows(), portion.place.to_string()), (2, "lines 1 to 4".into()));
    }
}
