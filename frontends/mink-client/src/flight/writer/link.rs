//! One DoPut stream: how it is opened, and what is known of it.
//!
//! Lives on: a lane's task.
//! Owns: the call; dropped, it is cancelled.
use crate::flight::FlightClient;
use arrow_flight::{FlightData, FlightDescriptor, PutResult, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::SchemaRef;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use mink_proto::{Append, Command, Scan, command};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tonic::Status;

/// Where a lane's rows go.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) client: FlightClient,
    pub(super) append: Append,
    /// Batches that may be on their way.
    pub(super) in_flight: usize,
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
            let address = if at_home { None } else { link.owner().await? };
            let rest = stream::poll_fn(move |context| sent.poll_recv(context));
            let put = stream::iter([first]).chain(rest);
            begins.store(true, Ordering::Relaxed);
            link.client.at(address.as_deref()).do_put(put).await.map(tonic::Response::into_inner)
        };
        let acks = stream::once(Box::pin(call)).try_flatten().boxed();
        PutStream { schema: SchemaRef::clone(schema), sent: 0, acked: 0, began, messages, acks }
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

impl PutStream {
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
