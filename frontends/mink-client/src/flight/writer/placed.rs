//! Where rows have come to lie, and how those who wrote them are told.
//!
//! Lives on: anywhere.
//! Owns: the promises to those who wrote rows that have not ended.
//! Invariants: rows end in the order in which they were written to their bucket, each once.
use crate::flight::{FlightError, FlightErrorKind};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Rows with neighbouring offsets.
///
/// ```
/// use mink_client::flight::Placed;
/// let placed = Placed { partition: 0, bucket: 3, base_offset: 40, rows: 2 };
/// assert_eq!(placed.offsets(), 40..42);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    pub partition: u64,
    pub bucket: u32,
    /// Offset of the first row.
    pub base_offset: u64,
    pub rows: u64,
}

impl Placed {
    /// The rows' offsets.
    pub fn offsets(&self) -> Range<u64> {
        self.base_offset..self.base_offset.saturating_add(self.rows)
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.offsets();
        write!(f, "offsets {start}..{end} of bucket {} of partition {}", self.bucket, self.partition)
    }
}

impl From<&mink_proto::Placed> for Placed {
    fn from(placed: &mink_proto::Placed) -> Placed {
        Placed {
            partition: placed.partition,
            bucket: placed.bucket,
            base_offset: placed.base_offset,
            rows: placed.rows,
        }
    }
}

/// What a writer has stored in one bucket since it was last asked. Rows of other writers may lie between.
///
/// ```no_run
/// # async fn example(writer: mink_client::flight::Writer) -> Result<(), mink_client::flight::FlightError> {
/// for stored in writer.flush().await? {
///     println!("{} rows in bucket {}, below {}", stored.rows, stored.bucket, stored.end_offset);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    pub partition: u64,
    pub bucket: u32,
    /// Of the first row.
    pub first_offset: u64,
    /// Behind the last row.
    pub end_offset: u64,
    pub rows: u64,
}

/// What became of the rows of one `write`.
pub(super) type Ended = Result<Vec<Placed>, FlightError>;
/// What a flush tells.
pub(super) type Flushed = Result<Vec<Stored>, FlightError>;

/// Resolves to where the rows of one `write` lie, once they are durable. May be dropped: they are sent all the same. Rows that an earlier
/// attempt stored so long ago that the server knows only that they are there have no place in it.
///
/// Rows that belong to several buckets are several batches: if some of them are stored and others are not, the error is `Unknown` and says
/// where those lie that are.
///
/// ```no_run
/// # async fn example(
/// #     writer: mink_client::flight::Writer, first: arrow_array::RecordBatch, second: arrow_array::RecordBatch,
/// # ) -> Result<(), mink_client::flight::FlightError> {
/// // Both are under way before either is waited for.
/// let (first, second) = (writer.write(first).await?, writer.write(second).await?);
/// println!("{:?}, then {:?}", first.await?, second.await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "awaiting it tells whether the rows were stored"]
pub struct Receipt(Vec<Part>);

/// The rows of one bucket.
#[derive(Debug)]
enum Part {
    Waits(oneshot::Receiver<Ended>),
    Ended(Ended),
}

impl Receipt {
    /// Of rows that go to so many buckets, and the ends that tell it.
    pub(super) fn new(parts: usize) -> (Vec<oneshot::Sender<Ended>>, Receipt) {
        let both = (0..parts).map(|_| oneshot::channel());
        let (told, waiting) = both.map(|(told, waits)| (told, Part::Waits(waits))).unzip();
        (told, Receipt(waiting))
    }

    /// Of no rows.
    pub(super) fn empty() -> Receipt {
        Receipt(Vec::new())
    }
}

impl Future for Receipt {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        let mut all = true;
        for part in &mut self.0 {
            if let Part::Waits(waits) = part {
                match Pin::new(waits).poll(context) {
                    Poll::Ready(ended) => *part = Part::Ended(ended.unwrap_or_else(|_| Err(gone()))),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(together(std::mem::take(&mut self.0))) } else { Poll::Pending }
    }
}

/// What became of the parts of one `write` as a whole (I7).
fn together(parts: Vec<Part>) -> Ended {
    let (mut placed, mut stored, mut first_error): (Vec<Placed>, _, Option<FlightError>) =
        (Vec::new(), false, None);
    for part in parts {
        match part {
            Part::Ended(Ok(more)) => {
                stored = true;
                placed.extend(more);
            }
            // What may have happened weighs more than what has not.
            Part::Ended(Err(error)) if error.kind() == FlightErrorKind::Unknown => first_error = Some(error),
            Part::Ended(Err(error)) => first_error = first_error.or(Some(error)),
            Part::Waits(_) => first_error = Some(gone()),
        }
    }
    match first_error {
        None => Ok(placed),
        Some(error) if !stored => Err(error),
        Some(error) => {
            let there: Vec<String> = placed.iter().map(ToString::to_string).collect();
            Err(FlightError::new(
                FlightErrorKind::Unknown,
                format!("{error}; other rows of the same write are stored: {}", there.join(", ")),
            ))
        }
    }
}

/// The writer's task has ended without a word: the runtime is shutting down.
pub(super) fn gone() -> FlightError {
    FlightError::new(
        FlightErrorKind::Unknown,
        "the writer has ended, and cannot say whether the rows were stored",
    )
}

/// The rows of one `write` that have not ended.
#[derive(Debug)]
struct Delivery {
    rows_left: u64,
    placed: Vec<Placed>,
    failed: Option<FlightError>,
    told: oneshot::Sender<Ended>,
    _room: Arc<OwnedSemaphorePermit>,
}

/// What `flush` waits for.
#[derive(Debug)]
struct Flush {
    /// Rows that must have ended.
    rows: u64,
    told: oneshot::Sender<Flushed>,
}

/// All rows of a lane that have not ended, oldest first.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    waiting: VecDeque<Delivery>,
    flushes: VecDeque<Flush>,
    /// Rows that were promised, and of those, that have ended.
    promised: u64,
    ended: u64,
    stored: BTreeMap<(u64, u32), Stored>,
    first_error: Option<FlightError>,
}

impl Deliveries {
    /// Promises an end to the rows of one `write`.
    pub(super) fn promise(
        &mut self,
        rows: u64,
        told: oneshot::Sender<Ended>,
        room: Arc<OwnedSemaphorePermit>,
    ) {
        self.promised += rows;
        self.waiting.push_back(Delivery {
            rows_left: rows,
            placed: Vec::new(),
            failed: None,
            told,
            _room: room,
        });
    }

    /// Tells the first `rows` that have not ended where they lie, in order.
    pub(super) fn placed(&mut self, runs: &[Placed]) {
        for run in runs {
            self.note(run);
            let mut run = *run;
            while run.rows > 0 {
                let taken = self.end(run.rows, |delivery, rows| match delivery.placed.last_mut() {
                    Some(last)
                        if (last.partition, last.bucket) == (run.partition, run.bucket)
                            && last.offsets().end == run.base_offset =>
                    {
                        last.rows += rows;
                    }
                    _ => delivery.placed.push(Placed { rows, ..run }),
                });
                if taken == 0 {
                    return;
                }
                run.base_offset += taken;
                run.rows -= taken;
            }
        }
    }

    /// The first `rows` that have not ended are stored, nobody knows where.
    pub(super) fn repeated(&mut self, mut rows: u64) {
        while rows > 0 {
            let taken = self.end(rows, |_, _| {});
            if taken == 0 {
                return;
            }
            rows -= taken;
        }
    }

    /// Tells the first `rows` that have not ended why.
    pub(super) fn failed(&mut self, mut rows: u64, error: &FlightError) {
        self.first_error.get_or_insert_with(|| error.clone());
        while rows > 0 {
            let taken = self.end(rows, |delivery, _| {
                delivery.failed.get_or_insert_with(|| error.clone());
            });
            if taken == 0 {
                return;
            }
            rows -= taken;
        }
    }

    /// Ends up to `most` rows of the oldest delivery; how many it were.
    fn end(&mut self, most: u64, note: impl FnOnce(&mut Delivery, u64)) -> u64 {
        let Some(first) = self.waiting.front_mut() else { return 0 };
        let rows = most.min(first.rows_left);
        note(first, rows);
        first.rows_left -= rows;
        self.ended += rows;
        if first.rows_left == 0
            && let Some(Delivery { placed, failed, told, .. }) = self.waiting.pop_front()
        {
            // Nobody need wait for it.
            drop(told.send(failed.map_or(Ok(placed), Err)));
        }
        self.answer_flushes();
        rows
    }

    fn note(&mut self, run: &Placed) {
        let Placed { partition, bucket, rows, .. } = *run;
        let Range { start, end } = run.offsets();
        add(&mut self.stored, Stored { partition, bucket, first_offset: start, end_offset: end, rows });
    }

    /// Answers once all that was promised up to now has ended.
    pub(super) fn flush(&mut self, told: oneshot::Sender<Flushed>) {
        self.flushes.push_back(Flush { rows: self.promised, told });
        self.answer_flushes();
    }

    fn answer_flushes(&mut self) {
        while self.flushes.front().is_some_and(|flush| flush.rows <= self.ended) {
            let Some(flush) = self.flushes.pop_front() else { return };
            drop(flush.told.send(self.untold()));
        }
    }

    /// What no flush has told yet of the rows that have ended.
    pub(super) fn untold(&mut self) -> Flushed {
        let stored = std::mem::take(&mut self.stored).into_values().collect();
        self.first_error.take().map_or(Ok(stored), Err)
    }
}

/// Adds rows to those of the same bucket.
pub(super) fn add(all: &mut BTreeMap<(u64, u32), Stored>, more: Stored) {
    let of = all.entry((more.partition, more.bucket)).or_insert(Stored { rows: 0, ..more });
    of.first_offset = of.first_offset.min(more.first_offset);
    of.end_offset = of.end_offset.max(more.end_offset);
    of.rows += more.rows;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    async fn promise(deliveries: &mut Deliveries, rows: u64) -> Receipt {
        let room = Arc::new(Semaphore::new(1)).acquire_owned().await.expect("it is not closed");
        let (told, receipt) = Receipt::new(1);
        deliveries.promise(rows, told.into_iter().next().expect("of one part"), Arc::new(room));
        receipt
    }

    fn run(base_offset: u64, rows: u64) -> Placed {
        Placed { partition: 0, bucket: 0, base_offset, rows }
    }

    #[tokio::test]
    async fn each_write_is_told_its_own_rows_whatever_they_travelled_in() {
        let mut deliveries = Deliveries::default();
        let first = promise(&mut deliveries, 3).await;
        let second = promise(&mut deliveries, 2).await;
        deliveries.placed(&[run(10, 2)]);
        deliveries.placed(&[run(12, 2), run(20, 1)]);
        assert_eq!(first.await, Ok(vec![run(10, 3)]));
        assert_eq!(second.await, Ok(vec![run(13, 1), run(20, 1)]));
    }

    #[tokio::test]
    async fn rows_that_were_stored_long_before_end_well_and_have_no_place() {
        let mut deliveries = Deliveries::default();
        let (first, second) = (promise(&mut deliveries, 3).await, promise(&mut deliveries, 2).await);
        deliveries.repeated(4);
        deliveries.placed(&[run(7, 1)]);
        assert_eq!((first.await, second.await), (Ok(Vec::new()), Ok(vec![run(7, 1)])));
    }

    /// I7
    #[tokio::test]
    async fn a_write_of_which_a_part_is_stored_is_not_told_as_refused() {
        let ends = async |ends: Vec<Ended>| {
            let (told, receipt) = Receipt::new(ends.len());
            told.into_iter().zip(ends).for_each(|(told, end)| drop(told.send(end)));
            receipt.await
        };
        let (refused, other) = (FlightError::refused("no"), FlightError::refused("nor this"));
        let unsure = FlightError::new(FlightErrorKind::Unknown, "lost");
        assert_eq!(
            ends(vec![Ok(vec![run(1, 1)]), Ok(vec![run(9, 2)])]).await,
            Ok(vec![run(1, 1), run(9, 2)])
        );
        assert_eq!(ends(vec![Err(refused.clone()), Err(other)]).await, Err(refused.clone()));
        assert_eq!(ends(vec![Err(refused.clone()), Err(unsure.clone())]).await, Err(unsure));
        let error = ends(vec![Err(refused), Ok(vec![run(4, 2)])]).await.expect_err("a part is not stored");
        assert_eq!(error.kind(), FlightErrorKind::Unknown);
        assert!(error.message().contains("4..6 of bucket 0"), "{error}");
    }

    #[tokio::test]
    async fn a_flush_waits_for_what_came_before_it_and_tells_its_first_error_once() {
        let mut deliveries = Deliveries::default();
        drop((promise(&mut deliveries, 1).await, promise(&mut deliveries, 1).await));
        let (told, mut flushed) = oneshot::channel();
        deliveries.flush(told);
        deliveries.failed(1, &FlightError::refused("no"));
        assert!(flushed.try_recv().is_err(), "one row has not ended");
        deliveries.placed(&[run(5, 1)]);
        assert_eq!(flushed.await.expect("it was answered"), Err(FlightError::refused("no")));
        let (told, flushed) = oneshot::channel();
        deliveries.flush(told);
        assert_eq!(flushed.await.expect("it was answered"), Ok(Vec::new()));
    }
}
