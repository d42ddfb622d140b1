//! The coordinator of one bucket, and what it has on its way to the log.
//!
//! Lives on: within the task that coordinates.
//! Owns: the groups of one bucket.     Talks to: the task of its opening, one chunk at a time.
//! Invariants: I18: what is appended goes to the log in the order in which the groups asked for it; a checkpoint is written when nothing
//! else is on its way, before anything that was asked for later.
use super::append::record_bytes;
use super::ask::Token;
use super::checkpoint::Checkpoints;
use super::load::Loaded;
use super::log::{Chunk, Opening, Stored};
use futures::channel::oneshot;
use mink_group::{Append, AppendRefused, Effects, GroupError, GroupLimits, Groups, Handle, KeyedRecord, Now};
use mink_record::kafka::HEADER_BYTES;
use mink_router::Sender;
use mink_rt::{Instant, Task};
use mink_types::{BucketEpoch, Offset};
use std::collections::VecDeque;

/// Appends are joined up to so many bytes of batch, if the table takes that much.
const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug)]
enum Stage {
    Loading,
    Serving(Box<Groups<Token>>),
    /// Its log cannot be read.
    Broken,
}

/// One coordinator.
#[derive(Debug)]
pub(super) struct Coordinator {
    pub(super) opening: Opening,
    pub(super) epoch: BucketEpoch,
    pub(super) log: Log,
    stage: Stage,
    checkpoints: Checkpoints,
    /// What the groups want appended, in order.
    queue: VecDeque<Append>,
    /// Parts of a checkpoint that are still to be handed over; they go first.
    parts: VecDeque<Vec<KeyedRecord>>,
    /// A chunk is being handed over.
    is_handing: bool,
    /// Chunks whose outcome is not known yet.
    on_their_way: usize,
    /// The task of the opening took no chunk.
    is_lost: bool,
}

/// The way to the task of an opening.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) chunks: Sender<Chunk>,
    pub(super) chunk_bytes_max: usize,
    pub(super) task: Task,
    /// Ends it when it is dropped.
    pub(super) _stop: oneshot::Sender<()>,
}

impl Coordinator {
    pub(super) fn new(opening: Opening, epoch: BucketEpoch, log: Log) -> Coordinator {
        Coordinator {
            opening,
            epoch,
            log,
            stage: Stage::Loading,
            checkpoints: Checkpoints::new(0, Offset(0)),
            queue: VecDeque::new(),
            parts: VecDeque::new(),
            is_handing: false,
            on_their_way: 0,
            is_lost: false,
        }
    }

    /// The groups, if they are served.
    pub(super) fn groups(&self) -> Option<&Groups<Token>> {
        match &self.stage {
            Stage::Serving(groups) => Some(groups),
            Stage::Loading | Stage::Broken => None,
        }
    }

    /// Why the groups are not served, if so.
    pub(super) fn refusal(&self) -> Option<GroupError> {
        match &self.stage {
            Stage::Serving(_) => None,
            Stage::Loading => Some(GroupError::CoordinatorLoadInProgress),
            Stage::Broken => Some(GroupError::CoordinatorNotAvailable),
        }
    }

    pub(super) fn load(&mut self, limits: GroupLimits, loaded: Loaded, now: Now) {
        self.checkpoints = Checkpoints::new(loaded.bytes, loaded.end);
        self.stage = Stage::Serving(Box::new(Groups::load(limits, loaded.fold, now)));
    }

    pub(super) fn broken(&mut self) {
        self.stage = Stage::Broken;
    }

    /// One step of the groups: its answers leave, what it wants appended goes on its way. None if they are not served.
    pub(super) fn step<R>(
        &mut self,
        now: Now,
        run: impl FnOnce(&mut Groups<Token>, &mut Effects<Token>) -> R,
    ) -> Option<R> {
        let Stage::Serving(groups) = &mut self.stage else { return None };
        let mut effects = Effects::default();
        let result = run(groups, &mut effects);
        answer(&mut effects);
        self.queue.extend(effects.appends);
        self.pump(now);
        Some(result)
    }

    /// There is room for the next chunk.
    pub(super) fn handed(&mut self, now: Now) {
        self.is_handing = false;
        self.pump(now);
    }

    pub(super) fn stored(&mut self, stored: &Stored, now: Now) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.checkpoints.stored(stored);
        if let Some(last) = stored.handles.last() {
            self.step(now, |groups, effects| groups.durable(*last, now, effects));
        } else {
            self.pump(now);
        }
    }

    pub(super) fn refused(&mut self, handles: &[Handle], why: AppendRefused, now: Now) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        if handles.is_empty() {
            self.parts.clear();
            self.checkpoints.abandon(instant(now));
        }
        self.step(now, |groups, effects| {
            for handle in handles {
                groups.failed(*handle, why, now, effects);
            }
        });
    }

    /// Whether the log has to be opened anew.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Where the log can begin, committed up to `end` as it is.
    pub(super) fn raise(&mut self, end: Offset) -> Option<Offset> {
        self.checkpoints.raise(end)
    }

    pub(super) fn raised(&mut self, done: bool, now: Now) {
        self.checkpoints.raised(done, instant(now));
        self.pump(now);
    }

    /// Answers everyone who waits. The task of the opening ends when it knows what became of what it was given.
    pub(super) fn close(self, error: GroupError) -> Task {
        if let Stage::Serving(groups) = self.stage {
            let mut effects = Effects::default();
            groups.close(error, &mut effects);
            answer(&mut effects);
        }
        self.log.task
    }

    /// Hands the next chunk over, if there is room for it.
    fn pump(&mut self, now: Now) {
        let Stage::Serving(groups) = &self.stage else { return };
        if self.is_handing {
            return;
        }
        if self.parts.is_empty() && self.checkpoints.is_due(groups.bytes(), instant(now)) {
            // What is durable is then everything that the log holds.
            if self.on_their_way > 0 {
                return;
            }
            self.parts = cut(groups.snapshot_records(), self.log.chunk_bytes_max);
            self.checkpoints.begin(self.parts.len());
        }
        let (handles, records) = match self.parts.pop_front() {
            Some(records) => (Vec::new(), records),
            None => self.next(),
        };
        if records.is_empty() {
            return;
        }
        // The lane has room for the one chunk that is not handed over yet, if somebody takes from it.
        let sent = self.log.chunks.try_send(Chunk { handles, records, time: now.wall });
        self.is_lost = sent.is_err();
        self.is_handing = true;
        self.on_their_way += 1;
    }

    /// The next appends that fit a batch together: at least one.
    fn next(&mut self) -> (Vec<Handle>, Vec<KeyedRecord>) {
        let (mut handles, mut records) = (Vec::new(), Vec::new());
        let mut bytes = HEADER_BYTES;
        while let Some(append) = self.queue.front() {
            bytes += append.records.iter().map(record_bytes).sum::<usize>();
            if !handles.is_empty() && bytes > self.log.chunk_bytes_max {
                break;
            }
            let Some(append) = self.queue.pop_front() else { break };
            handles.push(append.handle);
            records.extend(append.records);
        }
        (handles, records)
    }
}

/// The longest chunk for a table that takes batches of so many bytes.
pub(super) fn chunk_bytes_max(batch_bytes_max: usize) -> usize {
    CHUNK_BYTES.min(batch_bytes_max)
}

fn answer(effects: &mut Effects<Token>) {
    for (token, reply) in effects.replies.drain(..) {
        token.send(reply);
    }
}

fn instant(now: Now) -> Instant {
    super::clock::at(now.monotonic_ms)
}

/// Records in parts that each fit a batch.
fn cut(records: impl Iterator<Item = KeyedRecord>, bytes_max: usize) -> VecDeque<Vec<KeyedRecord>> {
    let (mut parts, mut bytes) = (VecDeque::<Vec<KeyedRecord>>::new(), 0);
    for record in records {
        bytes += record_bytes(&record);
        match parts.back_mut() {
            Some(part) if bytes <= bytes_max => part.push(record),
            _ => {
                bytes = HEADER_BYTES + record_bytes(&record);
                parts.push_back(vec![record]);
            }
        }
    }
    parts
}
