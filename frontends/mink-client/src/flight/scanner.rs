//! Reads rows: of one bucket or all, up to the end or following it, going on by itself where a connection broke.
//!
//! Lives on: any tokio runtime; no task of its own, dropping a stream ends its calls.
//! Owns: how far each bucket has been read.
//! Invariants: I2: within a bucket each row is given once, in the order of offsets, whatever breaks; where a scan begins and ends is told by
//! the tickets that it begins with, and does not move when it is tried again. What a server says about the place of its rows is checked
//! against that.
mod bucket;
mod decode;
mod follow;
#[cfg(test)]
mod tests;

use super::client::{Place, table_path};
use super::{FlightClient, FlightError};
use arrow_array::RecordBatch;
use bucket::BucketScan;
use follow::{Calls, Follow};
use futures::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};
use mink_proto::{
    Comparison, Earliest, Latest, Operator, PartitionValue, Position, Scan, TableDescription, position,
};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Buckets that one stream follows: each is a call, and a node takes no more of them from one connection than about twice as many.
const FOLLOWED_MAX: usize = 64;
/// Buckets that are read side by side.
const SIDE_BY_SIDE: usize = 4;

/// Where to begin in each bucket.
///
/// ```no_run
/// use mink_client::flight::Start;
/// # fn example(client: mink_client::flight::FlightClient) {
/// let rows = client.scan("sales.orders").bucket(0).from(Start::Offset(1_000)).follow();
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// The first row that is kept.
    #[default]
    Earliest,
    /// Behind the last row that is there when the scan begins.
    Latest,
    /// This offset; `OutOfRange` if it is not kept any more, or lies beyond the end.
    Offset(u64),
    /// The first row that was taken in at this time or later, in ms since 1970.
    TimeMs(i64),
}

/// Rows of one bucket, with neighbouring offsets unless a filter has left some out.
///
/// ```no_run
/// # async fn example(mut rows: mink_client::flight::RowStream) -> Result<(), mink_client::flight::FlightError> {
/// while let Some(rows) = rows.next().await {
///     let rows = rows?;
///     println!("{} rows; noted: bucket {} is read below {}", rows.batch.num_rows(), rows.bucket, rows.next_offset);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Rows {
    pub batch: RecordBatch,
    pub bucket: u32,
    pub partition: u64,
    /// Offset of the first row that was looked at.
    pub base_offset: u64,
    /// Where a reader that stops behind these rows goes on.
    pub next_offset: u64,
    /// When the rows were taken in, in ms since 1970.
    pub commit_time_ms: i64,
}

/// A scan that is being set up. What is not said: all columns, all rows, all buckets, from the first row that is kept.
///
/// ```no_run
/// use mink_client::flight::{Operator, Start};
/// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
/// let scan = client.scan("sales.orders").columns(["id", "amount"]).filter("amount", Operator::Greater, "100.00");
/// // Those that are there, then those that come.
/// let mut there = scan.clone().limit(10).rows();
/// let mut coming = scan.from(Start::Latest).follow();
/// # while let Some(rows) = there.next().await { rows?; }
/// # while let Some(rows) = coming.next().await { rows?; }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read before `rows` or `follow`"]
pub struct ScanBuilder {
    client: FlightClient,
    table: String,
    scan: Scan,
    patience: Duration,
    evolves: bool,
}

impl ScanBuilder {
    pub(super) fn new(client: FlightClient, table: &str) -> ScanBuilder {
        let (scan, patience) = (Scan::default(), Duration::from_mins(2));
        ScanBuilder { client, table: table.into(), scan, patience, evolves: false }
    }

    /// Only these columns, in this order.
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> ScanBuilder {
        self.scan.columns = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Only rows that meet this, and all that was asked for before. The value is text of the column's type; `IsNull` and `IsNotNull` do not
    /// look at it.
    pub fn filter(mut self, column: &str, operator: Operator, value: &str) -> ScanBuilder {
        let comparison = Comparison { column: column.into(), operator: operator.into(), value: value.into() };
        self.scan.filter.push(comparison);
        self
    }

    /// Only this bucket.
    pub fn bucket(mut self, bucket: u32) -> ScanBuilder {
        self.scan.bucket = Some(bucket);
        self
    }

    /// Only the partition with this value of this column; one call for each column that the table is partitioned by.
    pub fn partition(mut self, column: &str, value: &str) -> ScanBuilder {
        self.scan.partition.push(PartitionValue { column: column.into(), value: value.into() });
        self
    }

    /// Where to begin in each bucket.
    pub fn from(mut self, start: Start) -> ScanBuilder {
        let position = match start {
            Start::Earliest => position::Position::Earliest(Earliest {}),
            Start::Latest => position::Position::Latest(Latest {}),
            Start::Offset(offset) => position::Position::Offset(offset),
            Start::TimeMs(time) => position::Position::TimestampMs(time),
        };
        self.scan.from = Some(Position { position: Some(position) });
        self
    }

    /// The first offset of each bucket that is not read. Not for a scan that follows.
    pub fn until(mut self, offset: u64) -> ScanBuilder {
        self.scan.until = Some(offset);
        self
    }

    /// At most so many rows. With a filter, `next_offset` of the last ones may lie behind rows that the limit has left out.
    pub fn limit(mut self, rows: u64) -> ScanBuilder {
        self.scan.limit = Some(rows);
        self
    }

    /// For how long a scan that gets nowhere is tried again.
    pub fn patience(mut self, patience: Duration) -> ScanBuilder {
        self.patience = patience;
        self
    }

    /// Goes on with the table's newest columns when rows come that those of the scan cannot hold, since a type was widened, or a column
    /// became nullable. Rows before and behind then differ in their schema, bucket by bucket. Without it the scan ends there as `Refused`.
    pub fn evolving(mut self) -> ScanBuilder {
        self.evolves = true;
        self
    }

    /// The rows that are there. Buckets come side by side, or one after the other if there is a limit.
    pub fn rows(self) -> RowStream {
        let buckets = async move {
            let (scan, _) = self.described().await?;
            let (places, calls) = (self.places(&scan).await?, self.calls());
            let buckets = places.into_iter().map(move |place| BucketScan::new(calls.clone(), place, false));
            Ok::<_, FlightError>(match scan.limit {
                Some(limit) => bucket::in_turn(buckets.collect(), limit),
                None => stream::iter(buckets).map(BucketScan::rows).flatten_unordered(SIDE_BY_SIDE).boxed(),
            })
        };
        RowStream(stream::once(Box::pin(buckets)).try_flatten().boxed())
    }

    /// The rows that are there and those that come, for as long as the stream is read. Buckets and partitions that are made meanwhile are
    /// read from their first row on, wherever the scan began in the others; a partition that is dropped leaves. Up to 64 buckets.
    pub fn follow(self) -> RowStream {
        let limit = self.scan.limit.unwrap_or(u64::MAX);
        let buckets = async move {
            if self.scan.until.is_some() {
                return Err(FlightError::refused(
                    "a scan that follows has no end: leave `until` out, or use `rows`",
                ));
            }
            let (scan, described) = self.described().await?;
            let is_partitioned = !described.partitioned_by.is_empty();
            let grows = scan.bucket.is_none() || is_partitioned && scan.partition.is_empty();
            let places = self.places(&scan).await?;
            Ok(Follow::new(self.calls(), scan, places, grows)?.rows())
        };
        RowStream(limited(stream::once(Box::pin(buckets)).try_flatten().boxed(), limit))
    }

    fn calls(&self) -> Calls {
        Calls { client: self.client.clone(), patience: self.patience, evolves: self.evolves }
    }

    /// What is read, of the table as it is now: whatever becomes of it, all rows of the stream are of this one.
    async fn described(&self) -> Result<(Scan, TableDescription), FlightError> {
        let path = table_path(&self.table)?;
        let described = self.client.describe(&self.table).await?;
        let scan = Scan {
            database: path.database.to_string(),
            table: path.table.to_string(),
            table_id: described.table_id,
            schema: Some(described.schema).filter(|schema| *schema != 0),
            ..self.scan.clone()
        };
        Ok((scan, described))
    }

    async fn places(&self, scan: &Scan) -> Result<Vec<Place>, FlightError> {
        self.client.places(scan).await.map_err(|status| FlightError::from_status(&status))
    }
}

/// Ends behind so many rows, of buckets that are followed side by side.
fn limited(
    rows: BoxStream<'static, Result<Rows, FlightError>>,
    limit: u64,
) -> BoxStream<'static, Result<Rows, FlightError>> {
    if limit == u64::MAX {
        return rows;
    }
    let next = |(mut rows, left): (BoxStream<'static, Result<Rows, FlightError>>, u64)| async move {
        if left == 0 {
            return None;
        }
        match rows.next().await? {
            Ok(mut found) => {
                let count = found.batch.num_rows() as u64;
                if count > left {
                    let kept = usize::try_from(left).unwrap_or(usize::MAX);
                    found.batch = found.batch.slice(0, kept);
                    if found.next_offset - found.base_offset == count {
                        found.next_offset = found.base_offset + left;
                    }
                }
                Some((Ok(found), (rows, left.saturating_sub(count))))
            }
            Err(error) => Some((Err(error), (rows, 0))),
        }
    };
    stream::unfold((rows, limit), next).boxed()
}

/// The rows of a scan, in order within each bucket. After an error it has ended.
///
/// ```no_run
/// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
/// use futures::TryStreamExt;
/// let all: Vec<_> = client.scan("sales.orders").rows().try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream reads nothing before it is polled"]
pub struct RowStream(BoxStream<'static, Result<Rows, FlightError>>);

impl RowStream {
    /// The next rows; none at the end.
    pub async fn next(&mut self) -> Option<Result<Rows, FlightError>> {
        self.0.next().await
    }
}

impl Stream for RowStream {
    type Item = Result<Rows, FlightError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream").finish_non_exhaustive()
    }
}
