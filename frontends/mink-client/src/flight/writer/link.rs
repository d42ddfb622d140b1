//! One DoPut stream: how it is opened, and what is known of it.
//!
//! Lives on: a lane's task.
//! Owns: the call, and its place among the client's streams; dropped, it is cancelled.
use super::route::{Partition, Place, partition_named};
use super::streams::Streams;
use crate::flight::FlightClient;
use crate::flight::client::Place as Bucket;
use arrow_flight::{Action, FlightData, FlightDescriptor, PutResult, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::SchemaRef;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use mink_ddl::{Change, Statement};
use mink_proto::{Append, Command, Scan, command};
use mink_types::TablePath;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;
use tonic::{Code, Status};

/// Where a lane's rows go.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) client: FlightClient,
    pub(super) append: Append,
    /// Batches that may be on their way.
    pub(super) in_flight: usize,
    /// The partition that is made before the first stream is opened; none that has to be.
    makes: Option<Making>,
    /// Of an idempotent writer: the id of the partition whose rows its sequences count, once there is one; 0 before.
    counted: Arc<AtomicU64>,
}

/// A partition that rows have named.
#[derive(Clone, Debug)]
struct Making {
    statement: String,
    is_made: Arc<AtomicBool>,
}

/// An open stream, or one that is being opened.
pub(super) struct PutStream {
    pub(super) schema: SchemaRef,
    /// Batches of the lane's queue, from its front on, that are on their way.
    pub(super) sent: usize,
    /// Batches that were acked on this stream.
    pub(super) acked: u64,
    /// Whether the call was made: before, nothing of it has left this process.
    began: Arc<AtomicBool>,
    /// The id of a partition that has the values now and is not the one whose rows were counted; 0 if that is not so.
    anew: Arc<AtomicU64>,
    messages: mpsc::Sender<FlightData>,
    acks: BoxStream<'static, Result<PutResult, Status>>,
}

impl fmt::Debug for PutStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutStream")
            .field("sent", &self.sent)
            .field("acked", &self.acked)
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(client: FlightClient, append: Append, in_flight: usize) -> Link {
        Link { client, append, in_flight, makes: None, counted: Arc::default() }
    }

    /// The same for rows of one place, whose partition is made if rows have named it. `counted`: the id of the partition whose rows a writer
    /// has counted there.
    pub(super) fn to(&self, path: &TablePath, place: &Place, counted: u64) -> Link {
        let mut link = self.clone();
        link.counted = Arc::new(AtomicU64::new(counted));
        link.append.bucket = place.bucket;
        if !place.partition.is_empty() {
            link.append.partition = partition_named(&place.partition);
            link.makes = Some(Making::new(path, &place.partition));
        }
        link
    }

    /// The places of streams.
    pub(super) fn streams(&self) -> &Arc<Streams> {
        self.client.streams()
    }

    /// The server knows no such partition. Whether somebody has dropped one that was there, so that it is to be made again.
    pub(super) fn is_gone(&self) -> bool {
        self.makes.as_ref().is_some_and(|makes| makes.is_made.swap(false, Ordering::Relaxed))
    }

    /// The id of the partition whose rows were counted.
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// From now on rows of this partition are counted.
    pub(super) fn count_anew(&self, partition: u64) {
        self.counted.store(partition, Ordering::Relaxed);
    }

    /// Opens a stream for rows of this schema. Batches may be sent at once; whether it opens is told where acks are.
    /// `at_home`: not at the bucket's owner as the cluster tells it, but where the client is connected.
    pub(super) fn open(&self, schema: &SchemaRef, at_home: bool) -> PutStream {
        // As many as can be on their way, and the schema: sending never waits.
        let (messages, mut sent) = mpsc::channel(self.in_flight + 1);
        let stated: FlightData = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).into();
        let (link, began, anew) = (self.clone(), Arc::new(AtomicBool::new(false)), Arc::default());
        let (begins, told) = (Arc::clone(&began), Arc::clone(&anew));
        let call = async move {
            let place = link.streams().take().await;
            link.make_partition().await?;
            let found = link.place(at_home).await?;
            let partition_id = link.check(found.as_ref(), &told)?;
            let address = found.and_then(|place| place.address).filter(|_| !at_home);
            let append = Append { partition_id, ..link.append.clone() };
            let command = Command { command: Some(command::Command::Append(append)) };
            let first = stated.with_descriptor(FlightDescriptor::new_cmd(mink_proto::encode(&command)));
            let rest = stream::poll_fn(move |context| sent.poll_recv(context));
            let put = stream::iter([first]).chain(rest);
            begins.store(true, Ordering::Relaxed);
            let answer = link.client.at(address.as_deref()).do_put(put).await?;
            // The place is free again when the stream is dropped.
            Ok::<_, Status>(answer.into_inner().inspect(move |_| {
                let _ = &place;
            }))
        };
        let acks = stream::once(Box::pin(call)).try_flatten().boxed();
        PutStream { schema: SchemaRef::clone(schema), sent: 0, acked: 0, began, anew, messages, acks }
    }

    /// Makes the partition, unless that was done.
    async fn make_partition(&self) -> Result<(), Status> {
        let Some(makes) = self.makes.as_ref().filter(|makes| !makes.is_made.load(Ordering::Relaxed)) else {
            return Ok(());
        };
        let action = Action { r#type: "sql".into(), body: makes.statement.clone().into() };
        let made = async {
            let mut rows = self.client.home().do_action(action).await?.into_inner();
            while rows.message().await?.is_some() {}
            Ok(())
        };
        made.await.map_err(|status: Status| match status.code() {
            // Of the table, not of the writer: both may win when they try again.
            Code::Aborted => Status::unavailable(status.message()),
            _ => status,
        })?;
        makes.is_made.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Where the bucket is, if it matters: to whom a call goes, or which partition it is in that has the values.
    async fn place(&self, at_home: bool) -> Result<Option<Bucket>, Status> {
        let Append { database, table, bucket, partition, table_id, .. } = self.append.clone();
        if bucket.is_none() || at_home && !self.counts() {
            return Ok(None);
        }
        let scan = Scan { database, table, bucket, partition, table_id, ..Scan::default() };
        Ok(self.client.places(&scan).await?.into_iter().next())
    }

    /// Whether the sequences of its rows are those of a partition.
    fn counts(&self) -> bool {
        self.append.writer.is_some() && !self.append.partition.is_empty()
    }

    /// The partition that rows may go to: the one whose rows were counted, or the first. Another is noted in `anew`, and refused: sequences
    /// begin with 0 there.
    fn check(&self, found: Option<&Bucket>, anew: &AtomicU64) -> Result<u64, Status> {
        let Some(found) = found.map(|found| found.scan.partition_id).filter(|id| self.counts() && *id != 0)
        else {
            return Ok(0);
        };
        match self.counted() {
            0 => self.count_anew(found),
            counted if counted < found => {
                anew.store(found, Ordering::Relaxed);
                return Err(Status::unavailable("the partition was dropped and made again"));
            }
            // Ids only grow: it was made by one that the node has not heard of.
            counted if counted > found => {
                return Err(Status::unavailable("the node does not know the partition yet"));
            }
            _ => {}
        }
        Ok(found)
    }
}

impl Making {
    fn new(path: &TablePath, partition: &Partition) -> Making {
        let change = Change::AddPartition { values: partition.clone(), if_not_exists: true };
        let statement = Statement::AlterTable { path: path.clone(), change: vec![change] }.to_string();
        Making { statement, is_made: Arc::default() }
    }
}

impl PutStream {
    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.sent == 0
    }

    /// The partition that has the values now, if it is another than that whose rows were counted: nothing of the stream was sent.
    pub(super) fn anew(&self) -> Option<u64> {
        Some(self.anew.load(Ordering::Relaxed)).filter(|partition| *partition != 0)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.began.load(Ordering::Relaxed)
    }

    /// Sends a batch; false if the stream has ended, which the acks will tell.
    pub(super) fn send(&mut self, message: FlightData) -> bool {
        let sent = self.messages.try_send(message).is_ok();
        self.sent += usize::from(sent);
        sent
    }

    /// The next ack; none when the server has ended the stream.
    pub(super) async fn ack(&mut self) -> Option<Result<PutResult, Status>> {
        self.acks.next().await
    }
}
