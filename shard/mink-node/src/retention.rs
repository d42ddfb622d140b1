//! Retention: raises the starts of this node's logs, by age, by size, or because a client asked.
//!
//! Lives on: one task on the service runtime; [`Context::raise_start`] wherever it is called.
//! Owns: the clock of ages, which buckets it has looked at, when it must look again.
//! Invariants: decision 0013: ages go by commit times against a clock that no jump of the wall clock moves; P-12, P-15: what goes is decided
//! by the metadata alone, as this node has applied it, and the log judges it again by epoch and committed end: without the database
//! nothing is dropped; I14: ranges go from the log here, objects by the collector's rule. Nothing polls: a commit makes it look at
//! the buckets that changed, other options at those of their table, and the moment at which the next range dies is computed.
use crate::context::Context;
use futures::StreamExt as _;
use mink_coordinator::{RetentionClock, expires_otherwise, expiry, producers_expire};
use mink_metadata::{Bucket, Command, CommandResult, Invalid, Refusal, State};
use mink_router::reply;
use mink_rt::{Instant, Service};
use mink_shard::Control;
use mink_sql::MetadataError;
use mink_types::{BucketEpoch, BucketId, CommitTime, Offset};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Least time between two looks: commits of a busy node come many times a second.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a command that the log did not take.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Starts raised by one look. The next look is [`LOOK_PAUSE`] later, so this bounds their rate, too.
const RAISES_PER_LOOK: usize = 4_096;
/// Commands that wait for their result at a time: as many as the log puts into one row.
const RAISES_AT_ONCE: usize = 512;
/// Buckets that are looked at without a pause.
const LOOKS_AT_ONCE: usize = 4_096;

/// What retention has done since the node began.
#[derive(Debug, Default)]
pub(crate) struct RetentionCounters {
    pub(crate) raises: AtomicU64,
    pub(crate) offsets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// A start to be raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Raise {
    pub(crate) bucket: BucketId,
    pub(crate) epoch: BucketEpoch,
    pub(crate) start: Offset,
}

/// Why a start was not raised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RaiseError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// Monotonic time as the clocks of commit times take it.
pub(crate) fn uptime(service: &Service) -> Duration {
    Duration::from_nanos(service.now().as_nanos())
}

/// The clock of ages, read at the node's start, before a shard takes its first append.
pub(crate) fn clock(service: &Service, state: &State) -> RetentionClock {
    let newest = |(_, bucket): (_, &Bucket)| bucket.ranges.get_max().map(|(_, range)| range.last_commit_time);
    let newest = state.buckets().filter_map(newest).filter(|time| time.0 > 0).max();
    let clock = RetentionClock::new(service.wall().as_millis(), uptime(service), newest);
    if clock.behind() > Duration::ZERO {
        let behind = clock.behind();
        tracing::info!(
            ?behind,
            "the wall clock is far ahead of the newest commit, retention catches up with it slowly"
        );
    }
    clock
}

/// What the task remembers between two looks.
#[derive(Debug)]
struct Retention {
    clock: RetentionClock,
    /// The view of the last look; all buckets are looked at without one.
    seen: Option<State>,
    /// When the next range dies.
    due: Option<CommitTime>,
}

/// Runs until the node ends.
pub(crate) async fn retain(context: Arc<Context>, clock: RetentionClock) {
    let mut retention = Retention { clock, seen: None, due: None };
    let mut changes = context.metadata.changes();
    loop {
        let again = retention.look(&context).await;
        context.service.sleep(again.map_or(LOOK_PAUSE, |pause| pause.max(LOOK_PAUSE))).await;
        if again.is_some() {
            // The next look is at everything, whatever changes meanwhile.
            retention.seen = None;
            continue;
        }
        let changed = changes.next();
        let change = match retention.next(&context.service) {
            Some(at) => context.service.timeout(at.duration_since(context.service.now()), changed).await.ok(),
            None => Some(changed.await),
        };
        if matches!(change, Some(None)) {
            return;
        }
    }
}

impl Retention {
    /// When the next range dies.
    fn next(&self, service: &Service) -> Option<Instant> {
        let now = service.now();
        self.due.map(|due| now + self.clock.reaches(due).saturating_sub(uptime(service)))
    }

    /// Looks at the buckets that changed, or at all if one is due, and raises what must be. Gives a pause if there is more to do.
    async fn look(&mut self, context: &Context) -> Option<Duration> {
        if context.is_draining() {
            return None;
        }
        let state = context.state();
        let now = self.clock.now(uptime(&context.service));
        let all = self.due.is_some_and(|due| due <= now);
        let before = self.seen.replace(state.clone()).filter(|_| !all);
        let changed: Vec<BucketId> = if let Some(before) = &before {
            changed(&state, before)
        } else {
            self.due = None;
            state.hanging(context.me()).collect()
        };
        let (mut raises, mut forgets) = (Vec::new(), Vec::new());
        for (at, id) in changed.into_iter().enumerate() {
            if at % LOOKS_AT_ONCE == LOOKS_AT_ONCE - 1 {
                // A hundred thousand buckets take a while; others want the thread, too.
                context.service.sleep(Duration::from_millis(1)).await;
            }
            let Some(bucket) = state.bucket(&id).filter(|bucket| bucket.owner == Some(context.me())) else {
                continue;
            };
            let Some(table) = state.table(id.table) else { continue };
            let found = expiry(bucket, &table.options, now);
            self.due = self.due.into_iter().chain(found.due).min();
            raises.extend(found.start.map(|start| Raise { bucket: id, epoch: bucket.epoch, start }));
            match producers_expire(bucket, context.config.limits.producer_expiry_ms) {
                Some(due) if due <= now => {
                    forgets.push(Raise { bucket: id, epoch: bucket.epoch, start: bucket.end });
                }
                due => self.due = self.due.into_iter().chain(due).min(),
            }
        }
        let more = raises.len().max(forgets.len()) > RAISES_PER_LOOK;
        raises.truncate(RAISES_PER_LOOK);
        forgets.truncate(RAISES_PER_LOOK);
        let raised = context.raise_starts(raises).await;
        if context.forget_producers(forgets).await && raised {
            more.then_some(LOOK_PAUSE)
        } else {
            Some(RETRY_PAUSE)
        }
    }
}

/// The buckets whose logs may expire otherwise than in `before`, each once: other options change none of their table's buckets.
fn changed(state: &State, before: &State) -> Vec<BucketId> {
    let altered =
        state.tables_altered_since(before).filter(|(old, new)| expires_otherwise(&old.options, &new.options));
    let of_altered = altered.flat_map(|(_, table)| table.bucket_ids());
    let mut changed: Vec<BucketId> =
        state.buckets_since(before).map(|(id, _)| *id).chain(of_altered).collect();
    changed.sort_unstable();
    changed.dedup();
    changed
}

impl Context {
    /// Raises many starts; false if one must be tried again.
    async fn raise_starts(&self, raises: Vec<Raise>) -> bool {
        let ends = futures::stream::iter(raises.into_iter().map(|raise| self.raise_start(raise)));
        let ends: Vec<Result<Offset, RaiseError>> = ends.buffer_unordered(RAISES_AT_ONCE).collect().await;
        let mut whole = true;
        for error in ends.into_iter().filter_map(Result::err) {
            match error {
                // It moved, or its table was dropped: no longer ours to judge.
                RaiseError::Refused(refusal) => tracing::debug!(%refusal, "log start not raised"),
                RaiseError::Metadata(error) => {
                    tracing::debug!(%error, "log start not raised");
                    whole = false;
                }
            }
        }
        whole
    }

    /// Lets logs without records forget their producers; false if one must be tried again.
    async fn forget_producers(&self, logs: Vec<Raise>) -> bool {
        let by = self.me();
        let forgets = logs.into_iter().map(|Raise { bucket, epoch, start: end }| async move {
            match self.metadata.submit(Command::ForgetProducers { by, bucket, epoch, end }).await {
                Ok(CommandResult::Done(_)) => true,
                // It has records again, moved, or its table was dropped.
                Ok(CommandResult::Refused(refusal)) => {
                    tracing::debug!(%bucket, %refusal, "producers not forgotten");
                    true
                }
                Err(error) => {
                    tracing::debug!(%bucket, %error, "producers not forgotten");
                    false
                }
            }
        });
        let ends: Vec<bool> = futures::stream::iter(forgets).buffer_unordered(RAISES_AT_ONCE).collect().await;
        ends.into_iter().all(|whole| whole)
    }

    /// Raises the start of a log, up to its committed end, and gives where it begins then: also if it was there before. Once this is
    /// done no reader of this node sees anything below.
    pub(crate) async fn raise_start(&self, raise: Raise) -> Result<Offset, RaiseError> {
        let Raise { bucket: id, epoch, start } = raise;
        let before = self.state();
        let command = Command::RaiseStart { by: self.me(), bucket: id, epoch, start };
        let refusal = match self.metadata.submit(command).await? {
            CommandResult::Done(_) => None,
            CommandResult::Refused(refusal) => Some(refusal),
        };
        let state = self.state();
        let known = state.bucket(&id).filter(|bucket| bucket.epoch == epoch);
        let begins = known.map_or(start, |bucket| bucket.start);
        match refusal {
            None => self.retention.count(before.bucket(&id), begins),
            // Somebody else has raised it as far meanwhile.
            Some(Refusal::Invalid(Invalid::StartOutOfRange)) if begins >= start => {}
            Some(refusal) => {
                self.retention.refused.fetch_add(1, Ordering::Relaxed);
                return Err(refusal.into());
            }
        }
        if let Some(shard) = self.shard(id) {
            let (reply, answer) = reply();
            drop(shard.controls.send(Control::Start { bucket: id, epoch, start: begins, reply }).await);
            // A shard that is gone serves nobody.
            let _ = answer.answer().await;
        }
        Ok(begins)
    }
}

impl RetentionCounters {
    /// The log of `bucket`, as it was before, begins at `start` now.
    fn count(&self, bucket: Option<&Bucket>, start: Offset) {
        let Some(bucket) = bucket else { return };
        let gone = bucket.ranges_from(bucket.start).take_while(|(range, _)| range.end <= start);
        let bytes = gone.fold(0_u64, |sum, (_, range)| sum.saturating_add(range.bytes));
        self.raises.fetch_add(1, Ordering::Relaxed);
        self.offsets.fetch_add(start.0.saturating_sub(bucket.start.0), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
