//! The pump: one task for each core that takes messages in a fixed order and alone changes the shard.
//!
//! Lives on: one per core.
//! Owns: the receiving ends of the shard's lanes.
//! Invariants: completions first, since they free memory, places and waiting clients, and are never refused; then the node's
//! messages, which are few and may end a bucket; then requests; then appends, and those only while the WAL has room for a
//! chunk: full, it stops sockets, never refuses (I7). Each kind has a bound per turn, so none starves another.
use crate::append::TURN_BYTES;
use crate::durable::ChunkDone;
use crate::locate::Asked;
use crate::shard::{IoDone, Shard};
use crate::{ChunkSink, Inbox, ObjectReads};
use futures::future::{FutureExt as _, LocalBoxFuture};
use mink_router::{Append, Receiver, Request, lane};
use mink_rt::{Core, Service};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Messages of each kind that one turn takes beyond the first.
const CONTROLS_PER_TURN: usize = 16;
const REQUESTS_PER_TURN: usize = 64;
const APPENDS_PER_TURN: usize = 512;

/// What a shard works with.
#[derive(Debug)]
pub struct ShardParts {
    /// Its way to the WAL writer.
    pub sink: Box<dyn ChunkSink>,
    pub objects: Arc<dyn ObjectReads>,
    /// Where object reads run.
    pub service: Service,
}

/// Why a pump ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShardEnd {
    /// [`crate::Control::Stop`], or all handles are gone.
    Asked,
    /// The cores were told to stop.
    Cores,
}

enum Event {
    Chunk(ChunkDone),
    Io(IoDone),
    Control(crate::Control),
    Request(Request),
    Append(Append),
    /// The WAL writer has ended.
    WalGone,
    Ended(ShardEnd),
}

struct Lanes {
    inbox: Inbox,
    chunks: Receiver<ChunkDone>,
    io: Receiver<IoDone>,
    cores_stop: LocalBoxFuture<'static, ()>,
}

/// Runs a shard on its core until it is told to stop. What is not durable then ends as lost.
pub async fn run(core: Core, inbox: Inbox, parts: ShardParts) -> ShardEnd {
    let (chunks_told, chunks) = lane(inbox.config.lanes.chunks);
    // Two at least: one is always kept for the next request, and a read that is planned again needs its own.
    let (io_told, io) = lane(inbox.config.lanes.reads.max(2));
    let mut shard = Shard::new(core.clone(), inbox.config, parts, chunks_told, io_told);
    let mut lanes = Lanes { inbox, chunks, io, cores_stop: core.stopped().boxed_local() };
    loop {
        let event = poll_fn(|context| lanes.poll(&mut shard, context)).await;
        if let Err(end) = lanes.turn(&mut shard, &core, event).await {
            return end;
        }
        core.yield_if_due().await;
    }
}

impl Lanes {
    /// The next message, in the order that the module's head explains.
    fn poll(&mut self, shard: &mut Shard, context: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(Some(done)) = self.chunks.poll_recv(context) {
            return Poll::Ready(Event::Chunk(done));
        }
        if let Poll::Ready(Some(done)) = self.io.poll_recv(context) {
            return Poll::Ready(Event::Io(done));
        }
        match self.inbox.controls.poll_recv(context) {
            Poll::Ready(Some(control)) => return Poll::Ready(Event::Control(control)),
            Poll::Ready(None) => return Poll::Ready(Event::Ended(ShardEnd::Asked)),
            Poll::Pending => {}
        }
        // Without a place for its answer a request waits; the answer that frees one wakes the pump.
        if shard.keep_io_place()
            && let Poll::Ready(Some(request)) = self.inbox.requests.poll_recv(context)
        {
            return Poll::Ready(Event::Request(request));
        }
        match poll_wal(shard, context) {
            Poll::Ready(true) => {
                if let Poll::Ready(Some(append)) = self.inbox.appends.poll_recv(context) {
                    return Poll::Ready(Event::Append(append));
                }
            }
            Poll::Ready(false) => return Poll::Ready(Event::WalGone),
            Poll::Pending => {}
        }
        self.cores_stop.poll_unpin(context).map(|()| Event::Ended(ShardEnd::Cores))
    }

    /// One turn: the message that woke the pump, then what else waits, within the bounds of a turn.
    async fn turn(&mut self, shard: &mut Shard, core: &Core, event: Event) -> Result<(), ShardEnd> {
        shard.stats.turns += 1;
        let mut first_append = None;
        match event {
            Event::Chunk(done) => shard.chunk_done(done),
            Event::Io(done) => shard.io_done(done),
            Event::Control(control) => control_or_end(shard, control)?,
            Event::Request(request) => shard.request(request).await,
            Event::Append(append) => first_append = Some(append),
            Event::WalGone => self.wal_gone(shard)?,
            Event::Ended(end) => return Err(end),
        }
        // Both lanes are bounded, and only this task makes new work for them.
        for _ in 0..self.chunks.waiting() {
            let Some(done) = self.chunks.try_recv() else { break };
            shard.chunk_done(done);
            core.yield_if_due().await;
        }
        for _ in 0..self.io.waiting() {
            let Some(done) = self.io.try_recv() else { break };
            shard.io_done(done);
            core.yield_if_due().await;
        }
        for _ in 0..CONTROLS_PER_TURN {
            let Some(control) = self.inbox.controls.try_recv() else {
                break;
            };
            control_or_end(shard, control)?;
            core.yield_if_due().await;
        }
        for _ in 0..REQUESTS_PER_TURN {
            if !shard.keep_io_place() {
                break;
            }
            let Some(request) = self.inbox.requests.try_recv() else {
                break;
            };
            shard.request(request).await;
            core.yield_if_due().await;
        }
        self.appends(shard, core, first_append).await?;
        shard.look_at_what_lingers();
        while shard.evict_one() {
            core.yield_if_due().await;
        }
        Ok(())
    }

    /// Takes appends into one chunk and hands it over, if the WAL has room for one.
    async fn appends(
        &mut self,
        shard: &mut Shard,
        core: &Core,
        first: Option<Append>,
    ) -> Result<(), ShardEnd> {
        if first.is_none() && self.inbox.appends.waiting() == 0 {
            return Ok(());
        }
        // A turn that began with anything but an append looks for room here: requests that never end must not keep appends out.
        match poll_fn(|context| Poll::Ready(poll_wal(shard, context))).await {
            Poll::Ready(true) => {}
            // Whoever waits is refused by the bucket that is gone.
            Poll::Ready(false) => self.wal_gone(shard)?,
            Poll::Pending => {
                debug_assert!(first.is_none(), "room that was seen stays until it is used");
                return Ok(());
            }
        }
        let now = shard.commit_time();
        if let Some(append) = first {
            shard.append(append, now);
        }
        for _ in 0..APPENDS_PER_TURN {
            if shard.chunk.bytes >= TURN_BYTES {
                break;
            }
            let Some(append) = self.inbox.appends.try_recv() else {
                break;
            };
            shard.append(append, now);
            core.yield_if_due().await;
        }
        shard.push_chunk();
        Ok(())
    }

    /// The WAL writer has ended: this is a fence, unless the node itself leaves. It says so before it ends its WAL, so what it has said is
    /// looked at once more.
    fn wal_gone(&mut self, shard: &mut Shard) -> Result<(), ShardEnd> {
        for _ in 0..self.inbox.controls.waiting() {
            let Some(control) = self.inbox.controls.try_recv() else { break };
            control_or_end(shard, control)?;
        }
        shard.close_all();
        Ok(())
    }
}

fn control_or_end(shard: &mut Shard, control: crate::Control) -> Result<(), ShardEnd> {
    if shard.control(control) { Ok(()) } else { Err(ShardEnd::Asked) }
}

/// Whether a chunk would find room now; false when the WAL has ended. A fenced shard takes appends to refuse them.
fn poll_wal(shard: &mut Shard, context: &mut Context<'_>) -> Poll<bool> {
    if shard.fenced {
        return Poll::Ready(true);
    }
    if shard.chunk_place.is_none() {
        shard.chunk_place = shard.chunks_told.try_reserve();
        if shard.chunk_place.is_none() {
            return Poll::Pending;
        }
    }
    match shard.sink.poll_ready(context) {
        Poll::Ready(Ok(())) => Poll::Ready(true),
        Poll::Ready(Err(_)) => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    }
}

impl Shard {
    async fn request(&mut self, request: Request) {
        match request {
            Request::Reads(reads) => self.reads(reads).await,
            Request::Watch(watch) => self.watch(watch),
            Request::Locate { bucket, position, leader_epoch, reply } => {
                self.locate(Asked { bucket, leader_epoch, reply }, position);
            }
            Request::EpochEnd { bucket, epoch, leader_epoch, reply } => {
                reply.send(self.epoch_end(bucket, epoch, leader_epoch));
            }
            Request::Producers { bucket, from, most, reply } => {
                reply.send(self.producers(bucket, from, most));
            }
        }
    }
}
