//! The task that coordinates consumer groups.
//!
//! Lives on: one task on the service runtime.
//! Owns: a coordinator for each bucket of the internal table that is open here.     Talks to: frontends, by questions; the tasks of the
//! openings, by chunks and events; the metadata.
//! Invariants: I18: a coordinator lives as long as one epoch of its bucket does here; it never waits for the store, the database or
//! a client: members keep their sessions while the store is away. An idle one costs nothing: one timer, set to the next deadline. I20: all
//! coordinators together hold so many bytes at most (`coordinator_bytes_max`), whichever of them holds them.
use super::clock::{self, GroupClock};
use super::coordinator::{Coordinator, Log, chunk_bytes_max};
use super::fullness::Fullness;
use super::log::{self, Event, LogParts, Opening, What};
use super::{Ask, table};
use crate::context::Context;
use crate::retention::{Raise, RaiseError};
use futures::channel::oneshot;
use futures::{FutureExt as _, select_biased};
use mink_coordinator::RetentionClock;
use mink_group::{GroupError, Now};
use mink_metadata::State;
use mink_router::{BytePermits, Receiver, Sender, lane};
use mink_rt::{Instant, Task};
use mink_types::{BucketEpoch, BucketId, BucketIndex, TableId};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Events that wait to be taken.
const EVENTS_MAX: usize = 64;
/// Bytes of appends that are not durable yet, over all coordinators, are bounded by what one may hold, and by this; one that is larger
/// passes alone.
const APPENDS_BYTES_MAX: usize = 16 << 20;
/// Pause before a log's start is raised again that the database did not take.
const RAISE_PAUSE: Duration = Duration::from_secs(10);

/// All coordinators of a node.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(super) context: Arc<Context>,
    clock: GroupClock,
    permits: BytePermits,
    events: Sender<Event>,
    /// The internal table as it was when a coordinator was opened last: its id and the number of its buckets.
    pub(super) table: Option<(TableId, u32)>,
    pub(super) coordinators: BTreeMap<BucketIndex, Coordinator>,
    /// Openings that were given up and may still have appends on their way.
    ending: BTreeMap<BucketIndex, Task>,
    openings: u64,
    pub(super) fullness: Fullness,
    /// The view by which tables were last looked for that are gone.
    seen: State,
}

impl Actor {
    /// Runs until the node ends.
    pub(crate) async fn run(context: Arc<Context>, ages: RetentionClock, mut asks: Receiver<Ask>) {
        let (events, mut told) = lane(EVENTS_MAX);
        let (mut changes, mut version) = (context.metadata.changes(), 0);
        let clock = GroupClock { service: context.service.clone(), ages };
        let permits = context.config.groups.coordinator_bytes_max.min(APPENDS_BYTES_MAX);
        let mut actor = Actor {
            clock,
            permits: BytePermits::new(permits as u64),
            events,
            table: None,
            coordinators: BTreeMap::new(),
            ending: BTreeMap::new(),
            openings: 0,
            fullness: Fullness::default(),
            seen: context.state(),
            context: Arc::clone(&context),
        };
        loop {
            let deadline = actor.deadline();
            let turn = {
                let timer = pin!(wait(&context, deadline));
                // What has happened goes before what is asked, so that an answer is the newest; buckets that close go first of all.
                select_biased! {
                    next = context.opened.changed(version).fuse() => Turn::Opened(next),
                    event = told.recv().fuse() => Turn::Told(event),
                    () = timer.fuse() => Turn::Tick,
                    state = changes.next().fuse() => Turn::Viewed(state.is_some()),
                    ask = asks.recv().fuse() => Turn::Asked(ask),
                }
            };
            match turn {
                Turn::Opened(next) => {
                    version = next;
                    actor.follow_buckets();
                }
                Turn::Told(Some(event)) => actor.event(event),
                Turn::Tick => actor.tick(),
                Turn::Viewed(true) => actor.viewed(),
                Turn::Asked(Some(ask)) => actor.answer(ask),
                // All of them end with the node alone.
                Turn::Told(None) | Turn::Viewed(false) | Turn::Asked(None) => return,
            }
        }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    /// When something is to be done unasked.
    fn deadline(&self) -> Option<Instant> {
        let groups =
            self.coordinators.values().filter_map(|coordinator| coordinator.groups()?.next_deadline());
        groups.min().map(clock::at)
    }

    /// Opens a coordinator for each bucket that was opened here, and gives up those whose bucket was closed.
    fn follow_buckets(&mut self) {
        self.table = table::find(&self.context.state());
        let Some((table, buckets)) = self.table else { return };
        for bucket in (0..buckets).map(BucketIndex) {
            let open = self.context.opened.epoch(&BucketId::unpartitioned(table, bucket));
            if self.coordinators.get(&bucket).map(|coordinator| coordinator.epoch) != open {
                self.close(bucket, GroupError::NotCoordinator);
                if let Some(epoch) = open {
                    self.open(table, bucket, epoch);
                }
            }
        }
    }

    fn open(&mut self, table: TableId, bucket: BucketIndex, epoch: BucketEpoch) {
        // Its log takes nothing any more; the next owner opens it.
        if self.context.is_draining() {
            return;
        }
        self.openings += 1;
        let opening = Opening { bucket, number: self.openings };
        let ((stop, stopped), (chunks, taken)) = (oneshot::channel(), lane(1));
        let batch_bytes_max = table::batch_bytes_max(&self.context.state(), table);
        let parts = LogParts {
            context: Arc::clone(&self.context),
            bucket: BucketId::unpartitioned(table, bucket),
            opening,
            batch_bytes_max,
            permits: self.permits.clone(),
            events: self.events.clone(),
        };
        let before = self.ending.remove(&bucket);
        let task = self.context.service.spawn("group-log", log::run(parts, before, stopped, taken));
        let log = Log { chunks, chunk_bytes_max: chunk_bytes_max(batch_bytes_max), task, _stop: stop };
        self.coordinators.insert(bucket, Coordinator::new(opening, epoch, log));
    }

    fn close(&mut self, bucket: BucketIndex, error: GroupError) {
        if let Some(coordinator) = self.coordinators.remove(&bucket) {
            self.ending.insert(bucket, coordinator.close(error));
        }
    }

    /// Gives all coordinators up: their members are told to look elsewhere, at once and not when their sessions end.
    pub(super) fn close_all(&mut self) {
        let buckets: Vec<BucketIndex> = self.coordinators.keys().copied().collect();
        for bucket in buckets {
            self.close(bucket, GroupError::NotCoordinator);
        }
    }

    /// What all coordinators but one hold, in bytes.
    pub(super) fn bytes_beside(&self, bucket: BucketIndex) -> usize {
        let others = self.coordinators.iter().filter(|(other, _)| **other != bucket);
        others.filter_map(|(_, coordinator)| Some(coordinator.groups()?.bytes())).sum()
    }

    /// Gives a coordinator up and reads its log again.
    pub(super) fn reopen(&mut self, bucket: BucketIndex) {
        let epoch = self.coordinators.get(&bucket).map(|coordinator| coordinator.epoch);
        tracing::info!(
            bucket = bucket.0,
            "it is not known what became of an append of consumer groups; their log is read again"
        );
        self.close(bucket, GroupError::CoordinatorLoadInProgress);
        if let (Some((table, _)), Some(epoch)) = (self.table, epoch) {
            self.open(table, bucket, epoch);
        }
    }

    fn event(&mut self, Event { opening, what }: Event) {
        let now = self.now();
        let bucket = opening.bucket;
        let current = self.coordinators.get_mut(&bucket);
        let Some(coordinator) = current.filter(|coordinator| coordinator.opening == opening) else { return };
        match what {
            What::Loaded(loaded) => {
                coordinator.load(self.context.config.groups.clone(), loaded, now);
                // Tables may have been dropped while nobody coordinated.
                let state = self.context.state();
                forget_tables(coordinator, &state, now);
            }
            What::Broken => coordinator.broken(),
            What::Handed => coordinator.handed(now),
            What::Stored(stored) => coordinator.stored(&stored, now),
            What::Refused { handles, why } => coordinator.refused(&handles, why, now),
            What::Unknown => return self.reopen(bucket),
            What::Raised { done } => coordinator.raised(done, now),
        }
        if coordinator.is_lost() {
            return self.reopen(bucket);
        }
        let state = self.context.state();
        self.raise(bucket, &state);
    }

    fn tick(&mut self) {
        let (now, state) = (self.now(), self.context.state());
        let kafka = &self.context.config.kafka_database;
        let name = |table| state.table(table).map(|table| table.topic_name(kafka).into());
        for coordinator in self.coordinators.values_mut() {
            coordinator.step(now, |groups, effects| groups.tick(&name, now, effects));
        }
    }

    fn viewed(&mut self) {
        let state = &self.context.state();
        let before = std::mem::replace(&mut self.seen, state.clone());
        if state.tables_gone_since(&before).next().is_some() {
            let now = self.now();
            for coordinator in self.coordinators.values_mut() {
                forget_tables(coordinator, state, now);
            }
        }
        let buckets: Vec<BucketIndex> = self.coordinators.keys().copied().collect();
        for bucket in buckets {
            self.raise(bucket, state);
        }
    }

    /// Lets a log begin at its checkpoint once that is committed.
    fn raise(&mut self, bucket: BucketIndex, state: &State) {
        let (Some((table, _)), Some(coordinator)) = (self.table, self.coordinators.get_mut(&bucket)) else {
            return;
        };
        let id = BucketId::unpartitioned(table, bucket);
        let Some(start) = state.bucket(&id).and_then(|known| coordinator.raise(known.end)) else { return };
        let raise = Raise { bucket: id, epoch: coordinator.epoch, start };
        let (opening, events) = (coordinator.opening, self.events.clone());
        let context = Arc::clone(&self.context);
        // Its end is the event.
        drop(self.context.service.spawn("group-log-start", async move {
            let done = match context.raise_start(raise).await {
                Ok(start) => {
                    tracing::debug!(bucket = %id, %start, "the log of consumer groups begins at its checkpoint");
                    true
                }
                // It moved: the next owner has a checkpoint of its own.
                Err(RaiseError::Refused(refusal)) => {
                    tracing::debug!(bucket = %id, %refusal, "log start not raised");
                    true
                }
                Err(RaiseError::Metadata(error)) => {
                    tracing::debug!(bucket = %id, %error, "log start not raised");
                    context.service.sleep(RAISE_PAUSE).await;
                    false
                }
            };
            drop(events.send(Event { opening, what: What::Raised { done } }).await);
        }));
    }
}

/// What woke the task.
enum Turn {
    Opened(u64),
    Told(Option<Event>),
    Tick,
    /// False when there will be no other view.
    Viewed(bool),
    Asked(Option<Ask>),
}

async fn wait(context: &Context, deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => context.service.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn forget_tables(coordinator: &mut Coordinator, state: &State, now: Now) {
    let is_gone = |table: TableId| state.table(table).is_none();
    coordinator.step(now, |groups, effects| groups.forget_tables(&is_gone, now, effects));
}
