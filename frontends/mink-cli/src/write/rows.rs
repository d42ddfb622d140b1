//! Rows of a file into a table with columns.
//!
//! Lives on: the command's task, and one that waits for acks.
//! Owns: the count of rows that are acked.     Talks to: the reading thread, and the client's writer.
//! Invariants: I7: what is told as written was acked, and success means that all rows were; I20: rows that are read and not acked are bounded by
//! the portions that wait, the receipts that are held and the writer's own bound.
use super::input::Source;
use super::partition::Partition;
use super::portion::{Place, Portion, Progress, Reading, Sink, Stop};
use super::target::Target;
use super::{FileForm, WriteArgs, columnar, csv, input, json};
use crate::failure::{Failure, interrupted};
use crate::form::columns::RowTable;
use crate::form::named::check_bucket;
use crate::numbers;
use arrow_array::RecordBatch;
use indicatif::{ProgressBar, ProgressStyle};
use mink_client::flight::{FlightClient, FlightError, FlightErrorKind, Receipt, Writer};
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Portions whose acks are waited for.
const RECEIPTS_MAX: usize = 1_024;

/// Without an ack for so long, a user is told.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// Rows are sent again until the user stops it.
const WITHOUT_END: Duration = Duration::from_hours(24 * 365);

/// Writes a file, or stdin, into a table.
pub(super) async fn write(
    table: &RowTable,
    client: &FlightClient,
    form: FileForm,
    args: &WriteArgs,
) -> Result<(), Failure> {
    check_bucket(table, args.bucket)?;
    let target = Target::new(table, &args.columns, Partition::new(table, &args.partition)?)?;
    let source = Source::open(&args.file)?;
    let progress = Progress::default();
    let reading = {
        let progress = progress.clone();
        Reading::start(move |sink| read(source, form, &target, &progress, sink))?
    };
    let begun = Instant::now();
    let bar = Bar::new(progress);
    let acked = Acked::default();
    let ended = tokio::select! {
        ended = deliver(table, client, args, reading, (&bar, &acked)) => ended,
        () = interrupted() => Err(stopped_by_user(acked.get())),
    };
    bar.finish();
    let Ended { failed, stopped } = ended?;
    let acked = acked.get();
    let seconds = numbers::decimal(begun.elapsed().as_secs_f64(), 2);
    let from = if input::is_stdin(&args.file) { String::new() } else { format!("{}: ", args.file.display()) };
    match (failed, stopped) {
        (Some((place, error)), _) => {
            Err(Failure::failed(format!("{from}{}", refused(place, error.kind(), error.message(), acked))))
        }
        (None, Some(what)) => {
            Err(Failure::failed(format!("{from}{what}; {} before it written", rows(acked))))
        }
        (None, None) => {
            eprintln!("{} written to {} in {seconds} s", rows(acked), table.path);
            Ok(())
        }
    }
}

fn read(
    source: Source,
    form: FileForm,
    target: &Target,
    progress: &Progress,
    sink: &Sink,
) -> Result<(), Stop> {
    match form {
        // Values alone are no rows; they have been refused before.
        FileForm::Json | FileForm::Value => json::read(source.bytes(progress), target, sink),
        FileForm::Csv => csv::read(source.bytes(progress), target, sink),
        FileForm::Parquet => columnar::read_parquet(source, target, progress, sink),
        FileForm::Arrow => columnar::read_arrow(source, target, progress, sink),
    }
}

/// `1 row`, `2,000 rows`.
fn rows(number: u64) -> String {
    format!("{} row{}", numbers::count(number), if number == 1 { "" } else { "s" })
}

/// Rows that were not written, with what is known of them.
fn refused(place: Place, kind: FlightErrorKind, words: &str, acked: u64) -> String {
    let known = match (kind, place.first == place.last) {
        (FlightErrorKind::Unknown, _) => "may be stored or not",
        (_, true) => "not stored",
        // They may have gone to several buckets, or in several messages.
        (_, false) => "not all stored",
    };
    format!("{place} {known}: {words}; {} of the file written", rows(acked))
}

/// What is known when the user stops it: acks of more may be on their way.
fn stopped_by_user(acked: u64) -> Failure {
    Failure::Interrupted(format!("interrupted: {} written; rows behind them may be stored", rows(acked)))
}

/// How writing ended.
#[derive(Default)]
struct Ended {
    /// The first rows that were not written.
    failed: Option<(Place, FlightError)>,
    /// What was wrong with the file.
    stopped: Option<String>,
}

/// Rows that are acked.
#[derive(Clone, Default)]
struct Acked(Arc<AtomicU64>);

impl Acked {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, rows: u64) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Hands all rows to a writer, which is opened with the first.
async fn deliver(
    table: &RowTable,
    client: &FlightClient,
    args: &WriteArgs,
    mut reading: Reading,
    (bar, acked): (&Bar, &Acked),
) -> Result<Ended, Failure> {
    let first = match reading.next().await {
        Some(Ok(first)) => first,
        Some(Err(what)) => return Ok(Ended { stopped: Some(what), ..Ended::default() }),
        None => return Ok(Ended::default()),
    };
    let writer = open(table, client, args.bucket).await?;
    let (receipts, settling) = settle(acked.clone(), args.node.admin.addr.clone());
    let (mut next, mut read, mut stopped) = (Some(Ok(first)), 0, None);
    while let Some(portion) = next {
        let Portion { rows, place } = match portion {
            Ok(portion) => portion,
            Err(what) => {
                stopped = Some(what);
                break;
            }
        };
        let count = rows.num_rows() as u64;
        let sent = hand_over(&writer, rows, Sent { place, count }, &receipts).await;
        read += count;
        bar.tick(read);
        if !sent {
            break;
        }
        next = tokio::select! {
            next = reading.next() => next,
            // Something was refused: nobody waits for more of the file.
            () = receipts.closed() => None,
        };
    }
    drop(receipts);
    let failed = settling.await.map_err(|_| Failure::failed("the task that waits for acks has ended"))?;
    // What became of the rows, their receipts have told.
    drop(writer.close().await);
    Ok(Ended { failed, stopped })
}

/// A writer. Of a table with partitions each row says its own: the one that is named has been filled in.
async fn open(table: &RowTable, client: &FlightClient, bucket: Option<u32>) -> Result<Writer, Failure> {
    let mut builder = client.writer(&table.path.to_string()).idempotent().delivery_timeout(WITHOUT_END);
    if let Some(bucket) = bucket {
        builder = builder.bucket(bucket);
    }
    builder.open().await.map_err(|error| Failure::flight(&error))
}

/// Gives rows to the writer; false if there is no use in more.
async fn hand_over(writer: &Writer, rows: RecordBatch, sent: Sent, receipts: &Receipts) -> bool {
    let receipt = writer.write(rows).await;
    let goes_on = receipt.is_ok();
    receipts.send((sent, receipt)).await.is_ok() && goes_on
}

/// Rows that were handed over.
#[derive(Clone, Copy, Debug)]
struct Sent {
    place: Place,
    count: u64,
}

/// What is handed over, with its receipt.
type Receipts = mpsc::Sender<(Sent, Result<Receipt, FlightError>)>;

/// Waits for receipts in the order of the file: the first rows that were not written. After them it takes no more, but waits for those it
/// has.
fn settle(acked: Acked, address: String) -> (Receipts, JoinHandle<Option<(Place, FlightError)>>) {
    let (sender, mut waiting): (Receipts, _) = mpsc::channel(RECEIPTS_MAX);
    let settling = tokio::spawn(async move {
        let mut failed = None;
        while let Some((sent, receipt)) = waiting.recv().await {
            let ended = match receipt {
                Ok(receipt) => patiently(receipt, &address, acked.get(), std::io::stderr()).await.map(drop),
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => acked.add(sent.count),
                Err(error) => {
                    waiting.close();
                    failed.get_or_insert((sent.place, error));
                }
            }
        }
        failed
    });
    (sender, settling)
}

/// Waits for an ack, and tells `out` when it takes long: the client tries again for as long as it takes.
async fn patiently<T>(ack: impl Future<Output = T>, address: &str, acked: u64, mut out: impl Write) -> T {
    let mut ack = pin!(ack);
    if let Ok(ended) = timeout(QUIET_MAX, &mut ack).await {
        return ended;
    }
    let seconds = QUIET_MAX.as_secs();
    // Nothing is left to tell when stderr itself is gone.
    drop(writeln!(
        out,
        "no ack from the node at {address} for {seconds} s: is it running? Trying again until it answers; {} of the file written so far",
        rows(acked)
    ));
    let ended = ack.await;
    drop(writeln!(out, "the node at {address} answers again"));
    ended
}

/// Progress on a terminal.
struct Bar {
    bar: ProgressBar,
    progress: Progress,
}

impl Bar {
    fn new(progress: Progress) -> Bar {
        Bar { bar: ProgressBar::new_spinner(), progress }
    }

    fn tick(&self, rows_read: u64) {
        let (read, total) = self.progress.get();
        if total > 0 {
            if self.bar.length() != Some(total) {
                self.bar.set_length(total);
                if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent}% {msg}") {
                    self.bar.set_style(style);
                }
            }
            self.bar.set_position(read.min(total));
        }
        self.bar.set_message(rows(rows_read));
        self.bar.tick();
    }

    fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_away_is_told_of_once_it_has_not_acked_for_long() {
        let mut said = Vec::new();
        patiently(tokio::time::sleep(QUIET_MAX / 2), "box:1", 0, &mut said).await;
        assert!(said.is_empty(), "it was in time");
        patiently(tokio::time::sleep(QUIET_MAX * 9), "box:1", 7, &mut said).await;
        let said = String::from_utf8(said).expect("words");
        assert!(
            said.contains("no ack from the node at box:1")
                && said.contains("7 rows of the file written so far"),
            "{said}"
        );
        assert!(said.ends_with("the node at box:1 answers again\n"), "{said}");
    }

    #[test]
    fn what_was_not_written_is_told_with_its_place_and_with_what_is_known_of_it() {
        let place = Place { noun: "line", first: 3, last: 9 };
        let words = refused(place, FlightErrorKind::Refused, "too large", 2);
        assert_eq!(words, "lines 3 to 9 not all stored: too large; 2 rows of the file written");
        let words = refused(place, FlightErrorKind::Unknown, "the connection broke", 1);
        assert!(
            words.contains("may be stored or not") && words.ends_with("1 row of the file written"),
            "{words}"
        );
    }
}
