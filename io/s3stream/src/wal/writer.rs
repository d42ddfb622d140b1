//! The writer's loop: chunks in, objects out, acks in chain order, flushes and trims behind.
//!
//! Lives on: one task on the service runtime.
//! Owns: all of the chain's state. Jobs (a PUT, a flush, a deletion, the seal) are tasks of their own that end in one event
//! here; they are cancelled when the writer ends, so a fenced process stops sending.
//! Invariants: I1, I5 by [`Chain`]; I20 by [`decide`]; decision 0003: a number's bytes are frozen when it is cut.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::StreamExt as _;
use mink_rt::{Instant, Service, fail_point, mutant};
use mink_types::{ClusterName, ClusterUuid, ObjectId, ObjectKey, WalChain, WalNumber, Witness};

use super::behind::{Behind, FlushDue, Untrimmed};
use super::budget::PutBudget;
use super::chain::Chain;
use super::cut::{Cut, CutView, decide};
use super::jobs::{JobLost, Jobs};
use super::waiting::Waiting;
use super::{Control, Drained, WalConfig, WalEnd, WalParts, WalStats};
use crate::batcher::{Chunk, ChunkEnd, Completion};
use crate::create::{Created, Creator, Frozen};
use crate::flush::book::Book;
use crate::flush::{FlushEnd, Flusher};
use crate::format::{Header, Nonce, ObjectKind, Sealer, build, by_bucket, encoded_bytes, seal};
use crate::trim;

/// What wakes the writer.
enum Event {
    Control(Option<Control>),
    Chunk(Option<Chunk>),
    Job(Result<JobEnd, JobLost>),
    Timer,
}

/// How a job ended.
enum JobEnd {
    Put(WalNumber, Created),
    Flushed(FlushEnd),
    Deleted { below: u64, all: bool },
    Sealed(WalNumber, Created),
}

/// A number between freezing and durable.
struct Flying {
    object: Untrimmed,
    done: Vec<Completion>,
}

/// How far the chain is on its way to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// No chunk comes any more; the rest is made durable and committed.
    Draining,
    Sealing,
}

pub(super) struct Writer {
    service: Service,
    cluster: ClusterName,
    uuid: ClusterUuid,
    chain_id: WalChain,
    config: Arc<WalConfig>,
    witness: Arc<dyn Fn() -> Witness + Send + Sync>,
    creator: Creator,
    flusher: Arc<Flusher>,
    controls: mpsc::Receiver<Control>,
    lane: mpsc::Receiver<Chunk>,
    lane_open: bool,
    jobs: Jobs<JobEnd>,
    shared_stats: Arc<Mutex<WalStats>>,

    waiting: Waiting,
    budget: Arc<PutBudget>,
    chain: Chain<Flying>,
    behind: Behind,
    untrimmed_bytes: u64,
    bytes_cut: u64,
    /// Cutting waits for a trim.
    full: bool,
    phase: Phase,
    end: Option<WalEnd>,
}

impl Writer {
    pub(super) fn new(
        parts: WalParts,
        controls: mpsc::Receiver<Control>,
        lane: mpsc::Receiver<Chunk>,
        shared_stats: Arc<Mutex<WalStats>>,
        book: Arc<Book>,
    ) -> Writer {
        let config = Arc::new(parts.config);
        let creator = |store| Creator::new(parts.service.clone(), store, Arc::clone(&config));
        // An ack waits for a WAL object; nobody waits for a stream object.
        let hedges = config.hedge_puts.then(Arc::default);
        let budget = Arc::new(PutBudget::new(&config));
        let wal = Creator { hedges, budget: Some(Arc::clone(&budget)), ..creator(parts.wal_store) };
        let stream = Creator { repeats: Arc::clone(&wal.repeats), ..creator(parts.stream_store) };
        let flusher = Flusher {
            creator: stream,
            cluster: parts.cluster.clone(),
            uuid: parts.uuid,
            chain: parts.chain,
            commits: parts.commits,
            fold: parts.fold,
            witness: Arc::clone(&parts.witness),
            book,
            counter: AtomicU64::new(0),
        };
        Writer {
            cluster: parts.cluster,
            uuid: parts.uuid,
            chain_id: parts.chain,
            witness: parts.witness,
            creator: wal,
            flusher: Arc::new(flusher),
            controls,
            lane,
            lane_open: true,
            jobs: Jobs::new(parts.service.clone()),
            shared_stats,
            waiting: Waiting::default(),
            budget,
            chain: Chain::new(),
            behind: Behind::new(Arc::clone(&config)),
            untrimmed_bytes: 0,
            bytes_cut: 0,
            full: false,
            phase: Phase::Open,
            end: None,
            service: parts.service,
            config,
        }
    }

    pub(super) fn flusher(&self) -> Arc<Flusher> {
        Arc::clone(&self.flusher)
    }

    pub(super) async fn run(mut self) -> WalEnd {
        let mut timer: Option<(Instant, BoxFuture<'static, ()>)> = None;
        loop {
            self.take_chunks();
            let cut_at = self.cut_due();
            let flush_at = self.flush_if_due();
            self.seal_if_drained();
            self.publish();
            if let Some(end) = self.end.take() {
                // With the writer go its jobs, and every chunk that is not durable is told.
                tracing::info!(%end, "WAL writer ended");
                return end;
            }
            let wake_at = [cut_at, flush_at].into_iter().flatten().min();
            if timer.as_ref().map(|(at, _)| *at) != wake_at {
                timer = wake_at.map(|at| (at, self.service.sleep_until(at).boxed()));
            }
            let event = self.next(timer.as_mut().map(|(_, sleep)| sleep)).await;
            if matches!(event, Event::Timer) {
                timer = None;
            }
            self.handle(event);
        }
    }

    /// The next event. Control first, then ends of jobs (they ack and make room), then new chunks.
    async fn next(&mut self, timer: Option<&mut BoxFuture<'static, ()>>) -> Event {
        let room = self.has_room();
        let lane = &mut self.lane;
        let chunk = async { if room { lane.next().await } else { std::future::pending().await } };
        let timer = async {
            match timer {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        futures::select_biased! {
            control = self.controls.next().fuse() => Event::Control(control),
            end = self.jobs.next().fuse() => Event::Job(end),
            chunk = chunk.fuse() => Event::Chunk(chunk),
            () = timer.fuse() => Event::Timer,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Control(Some(Control::Flush(tell))) => {
                self.behind.wait_for(self.chain.durable_below(), tell);
            }
            Event::Control(Some(Control::Drain)) => {
                if self.phase == Phase::Open {
                    self.phase = Phase::Draining;
                    self.lane.close();
                }
            }
            Event::Control(Some(Control::Stop) | None) => self.stop(WalEnd::Stopped),
            Event::Chunk(Some(chunk)) => self.waiting.push(chunk, self.service.now()),
            Event::Chunk(None) => self.lane_open = false,
            Event::Job(Ok(end)) => self.job_ended(end),
            Event::Job(Err(JobLost(name))) => {
                tracing::error!(job = name, "a task of the WAL was lost, stopping");
                self.stop(WalEnd::Panicked);
            }
            Event::Timer => {}
        }
    }

    fn job_ended(&mut self, end: JobEnd) {
        match end {
            JobEnd::Put(number, Created::Ours) => self.created(number),
            JobEnd::Sealed(seal, Created::Ours) => self.stop(WalEnd::Drained(Drained { seal })),
            JobEnd::Put(number, other) | JobEnd::Sealed(number, other) => self.occupied(number, other),
            JobEnd::Flushed(end) => self.flushed(end),
            JobEnd::Deleted { below, all } => self.behind.deleted(below, all),
        }
    }

    fn has_room(&self) -> bool {
        self.lane_open && self.waiting.has_room(self.config.waiting_bytes_max)
    }

    /// Takes what lies in the lanes already, so that chunks of one moment share an object.
    fn take_chunks(&mut self) {
        while self.has_room() {
            match self.lane.next().now_or_never() {
                Some(Some(chunk)) => self.waiting.push(chunk, self.service.now()),
                Some(None) => self.lane_open = false,
                None => return,
            }
        }
    }

    /// Cuts all that is due; when the next will be.
    fn cut_due(&mut self) -> Option<Instant> {
        loop {
            let (chunks, next_bytes) = self.waiting.next_object(self.config.object_bytes_max);
            let (in_flight, draining) = (self.chain.in_flight(), self.phase != Phase::Open);
            let view = CutView {
                now: self.service.now(),
                oldest: self.waiting.oldest(),
                waiting_bytes: self.waiting.bytes(),
                next_bytes,
                in_flight,
                untrimmed_bytes: self.untrimmed_bytes,
                untrimmed_objects: self.untrimmed_objects(),
                budget_at: self.budget.cut_at(in_flight > 0 && !draining),
                draining,
            };
            let cut = decide(&self.config, &view);
            self.full = cut == Cut::Full;
            match cut {
                Cut::Now => self.cut(chunks, view.now),
                Cut::At(at) => return Some(at),
                Cut::Wait | Cut::Full => return None,
            }
        }
    }

    fn untrimmed_objects(&self) -> usize {
        self.behind.len() + self.chain.in_flight()
    }

    /// Freezes the next number: from here its bytes are settled.
    fn cut(&mut self, chunks: usize, now: Instant) {
        let cutting = self.waiting.cut(chunks);
        self.budget.cut(now);
        let header = self.header(ObjectKind::Data, self.chain.next());
        let entries = Arc::new(cutting.entries);
        let bytes = encoded_bytes(entries.len(), cutting.data_bytes);
        self.untrimmed_bytes += bytes;
        self.bytes_cut += bytes;
        let object = Untrimmed { entries: Arc::clone(&entries), bytes, data_bytes: cutting.data_bytes };
        let mut done = cutting.done;
        if mutant("ack-before-durable") {
            done.drain(..).for_each(|completion| completion.tell(ChunkEnd::Durable));
        }
        let number = self.chain.freeze(Flying { object, done });
        debug_assert_eq!(number.0, header.number);
        let (creator, key) = (self.creator.clone(), ObjectKey::object(&self.cluster, header.object()));
        self.jobs.start("wal-put", async move {
            // Checksums of up to 64 MiB are this task's work, not the writer's; nothing is sent before they are made.
            let built = build(&header, by_bucket(entries.iter()));
            drop(entries);
            let frozen = Frozen { id: header.object(), key, payload: built.payload, nonce: header.nonce };
            fail_point("wal.put.before");
            let created = creator.create(&frozen).await;
            fail_point("wal.put.after");
            JobEnd::Put(number, created)
        });
    }

    fn header(&self, kind: ObjectKind, number: WalNumber) -> Header {
        Header {
            kind,
            cluster: self.uuid,
            chain: self.chain_id,
            number: number.0,
            nonce: Nonce::of(self.service.random_u64(), self.service.random_u64()),
            witness: (self.witness)(),
            durable_through: self.chain.durable_through(),
        }
    }

    /// An object is there: ack what is durable in order now.
    fn created(&mut self, number: WalNumber) {
        let now = self.service.now();
        for (_, Flying { object, done }) in self.chain.created(number) {
            self.behind.push(object, now);
            for completion in done {
                completion.tell(ChunkEnd::Durable);
            }
        }
    }

    /// A number holds something else than our bytes: never ack it or a later one.
    fn occupied(&mut self, number: WalNumber, what: Created) {
        let object = ObjectId::Wal { chain: self.chain_id, number };
        match what {
            Created::Ours => {}
            Created::Sealed(by) => {
                let (node, incarnation) = (by.chain.node.0, by.chain.incarnation.0);
                tracing::info!(%object, node, incarnation, "chain is sealed");
                self.stop(WalEnd::Fenced { by: Some(by) });
            }
            Created::Foreign { what } => {
                tracing::error!(%object, what, "a WAL object is not what this node wrote, stopping");
                self.stop(WalEnd::Foreign { object, what });
            }
        }
    }

    /// Starts a flush of what is durable, if it is time; when it will be.
    fn flush_if_due(&mut self) -> Option<Instant> {
        let urgent = self.full || self.phase != Phase::Open;
        match self.behind.flush_due(self.service.now(), urgent) {
            FlushDue::Not => None,
            FlushDue::At(at) => Some(at),
            FlushDue::Now(work) => {
                debug_assert!(work.trim <= self.chain.durable_below());
                if mutant("trim-before-commit") {
                    let (store, cluster, chain) =
                        (Arc::clone(&self.creator.store), self.cluster.clone(), self.chain_id);
                    let numbers = 0..work.trim.0.saturating_sub(1);
                    self.jobs.start("wal-trim", async move {
                        JobEnd::Deleted {
                            below: 0,
                            all: trim::delete(store.as_ref(), &cluster, chain, numbers).await,
                        }
                    });
                }
                let flusher = Arc::clone(&self.flusher);
                self.jobs.start("wal-flush", async move { JobEnd::Flushed(flusher.flush(work).await) });
                None
            }
        }
    }

    fn flushed(&mut self, end: FlushEnd) {
        match end {
            FlushEnd::Applied { trim } => {
                self.untrimmed_bytes -= self.behind.applied(trim);
                self.delete_trimmed();
            }
            FlushEnd::Refused { fenced: true, reason, .. } => {
                tracing::info!(reason, "commit refused: this incarnation is fenced");
                self.stop(WalEnd::Fenced { by: None });
            }
            FlushEnd::Refused { fenced: false, partly, reason } => {
                tracing::error!(reason, "commit of flushed data refused");
                let again = self.behind.refused(self.service.now(), self.service.random_u64());
                if partly || !again {
                    self.stop(WalEnd::Refused { reason });
                }
            }
            FlushEnd::CommitsStopped => self.stop(WalEnd::CommitsStopped),
            FlushEnd::Foreign { object, what } => {
                tracing::error!(%object, what, "a stream object is not what this node wrote, stopping");
                self.stop(WalEnd::Foreign { object, what });
            }
        }
    }

    fn delete_trimmed(&mut self) {
        let Some(numbers) = self.behind.delete_due() else {
            return;
        };
        let (store, cluster, chain) = (Arc::clone(&self.creator.store), self.cluster.clone(), self.chain_id);
        self.jobs.start("wal-trim", async move {
            let below = numbers.end;
            JobEnd::Deleted { below, all: trim::delete(store.as_ref(), &cluster, chain, numbers).await }
        });
    }

    fn seal_if_drained(&mut self) {
        let empty = !self.lane_open && self.waiting.len() == 0 && self.chain.in_flight() == 0;
        if self.phase != Phase::Draining || !empty || !self.behind.is_done() || self.end.is_some() {
            return;
        }
        self.phase = Phase::Sealing;
        let number = self.chain.next();
        let by = Sealer { chain: self.chain_id };
        let header = self.header(ObjectKind::Seal { by }, number);
        let (creator, key) = (self.creator.clone(), ObjectKey::object(&self.cluster, header.object()));
        self.jobs.start("wal-seal", async move {
            let payload = seal(&header).payload;
            let frozen = Frozen { id: header.object(), key, payload, nonce: header.nonce };
            JobEnd::Sealed(number, creator.create(&frozen).await)
        });
    }

    fn stop(&mut self, end: WalEnd) {
        self.end.get_or_insert(end);
    }

    fn publish(&self) {
        let (flushes, refusals) = self.behind.counts();
        let stats = WalStats {
            next: self.chain.next().0,
            durable_below: self.chain.durable_below().0,
            trim: self.behind.trim(),
            bytes_cut: self.bytes_cut,
            waiting_chunks: self.waiting.len(),
            waiting_bytes: self.waiting.bytes(),
            in_flight: self.chain.in_flight(),
            untrimmed_objects: self.untrimmed_objects(),
            untrimmed_bytes: self.untrimmed_bytes,
            full: self.full,
            repeats: self.creator.repeats.load(Ordering::Relaxed),
            hedges: self.creator.hedges.as_ref().map_or(0, |hedges| hedges.sent()),
            hedges_won: self.creator.hedges.as_ref().map_or(0, |hedges| hedges.won()),
            flushes,
            refusals,
        };
        *self.shared_stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}
