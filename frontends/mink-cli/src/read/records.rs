//! Records of Kafka's by offset or time.
//!
//! Lives on: one task per partition when it follows, else the command's task.
//! Invariants: without `--follow` it ends at the records that were there when it began; what is read and not yet printed is bounded.
use super::From;
use super::away::Watch;
use crate::address::{Kafka, NodeAddress, topic};
use crate::failure::{Failure, interrupted};
use crate::form::named::check_partition_number;
use crate::form::{self, Encoding};
use crate::output::{Form, Printer, printer};
use mink_client::{Client, ClientError, ErrorKind, Position, ReadRecord, Reader};
use mink_types::TablePath;
use std::collections::BTreeSet;
use std::io::{Write, stderr};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long one request waits for new records.
const WAIT: Duration = Duration::from_secs(5);
/// How often it is looked for partitions that are new.
const DISCOVER_EVERY: Duration = Duration::from_secs(1);
/// Reads that may wait to be printed while following.
const UNPRINTED_MAX: usize = 8;

/// What is read, and how it is shown.
#[derive(Debug)]
pub(super) struct RecordsArgs {
    pub(super) table: TablePath,
    pub(super) from: From,
    pub(super) follow: bool,
    pub(super) limit: Option<u64>,
    pub(super) partition: Option<i32>,
    pub(super) encoding: Encoding,
    pub(super) output: Form,
    pub(super) node: NodeAddress,
}

/// Reads and prints.
pub(super) async fn read(args: RecordsArgs) -> Result<(), Failure> {
    let mut printer = printer(args.output, form::COLUMNS)?;
    let topic = topic(&args.table);
    let Kafka { client, address } = args.node.kafka().await?;
    let failed = Failure::kafka(&address);
    let found = client.find_topic(&topic).await.map_err(&failed)?;
    let found = found.ok_or_else(|| {
        Failure::failed(format!("there is no table {}; `mink table list` shows those there are", args.table))
    })?;
    let mut partitions: Vec<i32> = found.partitions.iter().map(|partition| partition.index).collect();
    check_partition_number(&args.table, partitions.len(), args.partition)?;
    if let Some(only) = args.partition {
        partitions = vec![only];
    }
    let limit = args.limit.unwrap_or(u64::MAX);
    let grows = args.partition.is_none();
    let reading = Reading { client, topic, from: args.from, encoding: args.encoding, grows };
    if args.follow {
        let watch = Watch::new(&address, stderr());
        reading.follow(&partitions, limit, &mut printer, &failed, watch).await?;
    } else {
        reading.until_end(&partitions, limit, &mut printer, &failed).await?;
    }
    printer.finish()
}

/// Whether the node does not answer, which it may do later.
fn is_away(error: &ClientError) -> bool {
    matches!(error.kind(), ErrorKind::Connection | ErrorKind::Timeout)
}

/// What all partitions have in common.
struct Reading {
    client: Client,
    topic: String,
    from: From,
    encoding: Encoding,
    /// Whether partitions that are made later are followed, too.
    grows: bool,
}

/// What one read of a partition came to.
type Arrived = Result<(i32, Vec<ReadRecord>), ClientError>;

impl Reading {
    /// Where to begin in a partition; `only` if no other one is read.
    async fn begin(
        &self,
        partition: i32,
        only: bool,
        failed: &impl Fn(ClientError) -> Failure,
    ) -> Result<i64, Failure> {
        let position = match self.from {
            From::Offset(offset) => return self.within(partition, offset, only).await.map_err(failed)?,
            From::Position(position) => position,
        };
        match self.client.offset(&self.topic, partition, position).await.map_err(failed)?.offset {
            Some(offset) => Ok(offset),
            // Nothing is that young: what comes next is.
            None => self.end(partition).await.map_err(failed),
        }
    }

    /// An offset that the partition has, or its end. Of several partitions each begins as near to it as it can.
    async fn within(
        &self,
        partition: i32,
        offset: i64,
        only: bool,
    ) -> Result<Result<i64, Failure>, ClientError> {
        let earliest = self.client.offset(&self.topic, partition, Position::Earliest).await?;
        let (start, end) = (earliest.offset.unwrap_or(0), self.end(partition).await?);
        if only && !(start..=end).contains(&offset) {
            let what = format!(
                "partition {partition} has the offsets {start} to {end} (the next one), not {offset}"
            );
            return Ok(Err(Failure::failed(format!("{what}; or begin at earliest or latest"))));
        }
        Ok(Ok(offset.clamp(start, end)))
    }

    async fn end(&self, partition: i32) -> Result<i64, ClientError> {
        Ok(self.client.offset(&self.topic, partition, Position::Latest).await?.offset.unwrap_or(0))
    }

    /// Partition by partition, what is there now.
    async fn until_end<W: Write>(
        &self,
        partitions: &[i32],
        mut left: u64,
        printer: &mut Printer<W>,
        failed: &impl Fn(ClientError) -> Failure,
    ) -> Result<(), Failure> {
        for &partition in partitions {
            let end = self.end(partition).await.map_err(failed)?;
            let mut at = self.begin(partition, partitions.len() == 1, failed).await?;
            let reader = Reader::new(&self.client, &self.topic, partition);
            while at < end && left > 0 {
                let read = reader.read(at, WAIT).await.map_err(failed)?;
                at = read.next;
                let before_end = read.records.into_iter().filter(|record| record.offset < end);
                self.print(partition, before_end, &mut left, printer)?;
            }
        }
        Ok(())
    }

    /// All partitions at once, until there are enough records or the user stops it.
    async fn follow<W: Write>(
        &self,
        partitions: &[i32],
        mut left: u64,
        printer: &mut Printer<W>,
        failed: &impl Fn(ClientError) -> Failure,
        mut watch: Watch<impl Write>,
    ) -> Result<(), Failure> {
        let (records, mut arrive) = mpsc::channel(UNPRINTED_MAX);
        for &partition in partitions {
            let at = self.begin(partition, partitions.len() == 1, failed).await?;
            self.tail(partition, at, records.clone());
        }
        let (told, mut new) = mpsc::channel(UNPRINTED_MAX);
        if self.grows {
            self.discover(partitions, told);
        }
        let mut stopped = std::pin::pin!(interrupted());
        while left > 0 {
            let arrived = tokio::select! {
                arrived = arrive.recv() => arrived,
                // Whatever a new one holds has come since it was begun (T-37).
                Some(partition) = new.recv() => {
                    self.tail(partition, 0, records.clone());
                    continue;
                }
                () = &mut stopped => None,
            };
            match arrived {
                Some(Ok((partition, records))) => {
                    watch.found(true);
                    self.print(partition, records, &mut left, printer)?;
                    printer.flush()?;
                }
                // It is tried again for as long as it takes.
                Some(Err(error)) if is_away(&error) => watch.found(false),
                Some(Err(error)) => return Err(failed(error)),
                None => break,
            }
        }
        Ok(())
    }

    /// Reads on in a partition, for as long as somebody takes it.
    fn tail(&self, partition: i32, mut at: i64, records: mpsc::Sender<Arrived>) {
        // A connection each, because one that waits for records answers nothing else.
        let reader = Reader::new(&self.client.apart(), &self.topic, partition);
        tokio::spawn(async move {
            loop {
                let read = reader.read(at, WAIT).await;
                at = read.as_ref().map_or(at, |read| read.next);
                let ended = read.as_ref().is_err_and(|error| !is_away(error));
                let nobody = records.send(read.map(|read| (partition, read.records))).await.is_err();
                if nobody || ended {
                    return;
                }
            }
        });
    }

    /// Tells of partitions that are new, for as long as somebody follows.
    fn discover(&self, partitions: &[i32], told: mpsc::Sender<i32>) {
        let (client, topic) = (self.client.apart(), self.topic.clone());
        let mut known: BTreeSet<i32> = partitions.iter().copied().collect();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(DISCOVER_EVERY).await;
                if told.is_closed() {
                    return;
                }
                // Of a node that is away, or a topic that is gone, those tell who read it.
                let Ok(Some(found)) = client.find_topic(&topic).await else { continue };
                for partition in found.partitions.iter().map(|partition| partition.index) {
                    if known.insert(partition) && told.send(partition).await.is_err() {
                        return;
                    }
                }
            }
        });
    }

    fn print<W: Write>(
        &self,
        partition: i32,
        records: impl IntoIterator<Item = ReadRecord>,
        left: &mut u64,
        printer: &mut Printer<W>,
    ) -> Result<(), Failure> {
        for record in records {
            if *left == 0 {
                break;
            }
            printer.row(form::row(partition, &record, self.encoding))?;
            *left -= 1;
        }
        Ok(())
    }
}
