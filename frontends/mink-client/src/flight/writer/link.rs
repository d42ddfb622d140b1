//! One DoPut stream: how it is opened, and what is known of it.
//!
//! Lives on: a lane's task.
//! Owns: the call, and its place among the client's streams; dropped, it is cancelled.
use super::route::{Partition, Place, partition_named};
use super::streams::Streams;
use crate::flight::FlightClient;
use arrow_flight::{Action, FlightData, FlightDescriptor, PutResult, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::SchemaRef;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use mink_ddl::{Change, Statement};
use mink_proto::{Append, Command, Scan, command};
use mink_types::TablePath;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        Link { client, append, in_flight, makes: None }
    }

    /// The same for rows of one place, whose partition is made if rows have named it.
    pub(super) fn to(&self, path: &TablePath, place: &Place) -> Link {
        let mut link = self.clone();
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

    /// The server knows no such partition: somebody has dropped it.
    pub(super) fn is_gone(&self) {
        if let Some(makes) = &self.makes {
            makes.is_made.store(false, Ordering::Relaxed);
        }
    }

    /// Opens a stream for rows of this schema. Batches may be sent at once; whether it opens is told where acks are.
    /// `at_home`: not at the bucket's owner as the cluster tells it, but where the client is connected.
    pub(super) fn open(&self, schema: &SchemaRef, at_home: bool) -> PutStream {
        // As many as can be on their way, and the schema: sending never waits.
        let (messages, mut sent) = mpsc::channel(self.in_flight + 1);
        let command = Command { command: Some(command::Command::Append(self.append.clone())) };
        let stated: FlightData = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).into();
        let descriptor = FlightDescriptor::new_cmd(mink_proto::encode(&command));
        let first = stated.with_descriptor(descriptor);
        let (link, began) = (self.clone(), Arc::new(AtomicBool::new(false)));
        let begins = Arc::clone(&began);
        let call = async move {
            let place = link.streams().take().await;
            link.make_partition().await?;
            let address = if at_home { None } else { link.owner().await? };
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
        PutStream { schema: SchemaRef::clone(schema), sent: 0, acked: 0, began, messages, acks }
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

    async fn owner(&self) -> Result<Option<String>, Status> {
        let Append { database, table, bucket, partition, .. } = self.append.clone();
        if bucket.is_none() {
            return Ok(None);
        }
        let scan = Scan { database, table, bucket, partition, ..Scan::default() };
        let places = self.client.places(&scan).await?;
        Ok(places.into_iter().next().and_then(|place| place.address))
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
