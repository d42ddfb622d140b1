//! Compaction: carries out what the planner finds worth it, one job at a time, and raises the feature level that it needs.
//!
//! Lives on: one task on the service runtime.
//! Owns: the objects that could not be read.     Talks to: s3stream's compactor, the command log.
//! Invariants: T-18 (a job is planned on one view; if that was old, the log refuses it and it is planned anew), P-16 (a job is a running
//! plan, so what it reads is not deleted under it). Nothing polls: a view in which buckets have changed makes it plan again.
use crate::commits::rewritten;
use crate::context::Context;
use crate::error::NodeEnd;
use mink_coordinator::{CompactionPolicy, compaction};
use mink_metadata::{Command, CommandResult, FEATURE_LEVEL_MAX, State};
use mink_rt::mutant;
use mink_types::{BucketId, ObjectId, ObjectKey, Offset};
use s3stream::{CompactionEnd, CompactionJob, CompactionMove, CompactionParts, Compactor, ObjectRange};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Least time between two plans: a plan looks at every range of this node, and commits come many times a second.
const PLAN_PAUSE: Duration = Duration::from_secs(5);
/// Pause after a job that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Most objects that are remembered as unreadable; beyond it the oldest names are tried again.
const SPARED_MAX: usize = 10_000;
/// A missing object is missing for good when so many jobs in a row, each on a newer view, met none of its bytes.
const MISSING_MAX: u32 = 3;

/// How a node compacts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactionConfig {
    /// Stored bytes that are moved per second on average; 0 turns compaction off.
    pub bytes_per_second: u64,
    /// Bytes that a step may hold in memory; new objects are not longer.
    pub window_bytes: u64,
}

impl CompactionConfig {
    /// Smallest window that makes sense.
    pub const WINDOW_BYTES_MIN: u64 = 4 << 20;

    /// The sizes that the planner goes by: what fits the window.
    fn policy(&self) -> CompactionPolicy {
        let (window, defaults) =
            (self.window_bytes.max(CompactionConfig::WINDOW_BYTES_MIN), CompactionPolicy::default());
        CompactionPolicy {
            own_bytes: defaults.own_bytes.min(window / 2),
            settled_bytes: defaults.settled_bytes.min(window / 2),
            range_bytes_max: defaults.range_bytes_max.min(window / 8 * 7),
            footer_bytes_max: defaults.footer_bytes_max.min(window),
            ..defaults
        }
    }
}

/// The compactor of a node; none if compaction is off.
pub(crate) fn compactor(
    config: &crate::config::NodeConfig,
    wal: &s3stream::Wal,
    reader: &s3stream::Reader,
) -> Option<Arc<Compactor>> {
    let CompactionConfig { bytes_per_second, window_bytes } = config.compaction;
    let parts = || CompactionParts {
        wal: wal.clone(),
        reader: reader.clone(),
        wal_store: Arc::clone(&config.stores.wal),
        bytes_per_second,
        window_bytes: window_bytes.max(CompactionConfig::WINDOW_BYTES_MIN),
        own_bytes: config.compaction.policy().own_bytes,
    };
    (bytes_per_second > 0).then(|| Arc::new(Compactor::new(parts())))
}

/// Runs until the node ends.
pub(crate) async fn compact(context: Arc<Context>) {
    let mut changes = context.metadata.changes();
    let mut task = Compaction { policy: context.config.compaction.policy(), ..Compaction::default() };
    let mut seen: Option<State> = None;
    loop {
        let state = context.state();
        context.raise_feature_level(&state).await;
        let changed = seen.as_ref().is_none_or(|seen| {
            seen.feature_level() != state.feature_level() || state.buckets_since(seen).next().is_some()
        });
        if changed && !context.is_draining() {
            match task.next(&context, &state).await {
                Next::Plan => continue,
                Next::Wait => {}
                Next::Retry => {
                    context.service.sleep(RETRY_PAUSE).await;
                    continue;
                }
                Next::End => return,
            }
        }
        seen = Some(state);
        if changes.next().await.is_none() {
            return;
        }
        context.service.sleep(PLAN_PAUSE).await;
    }
}

/// What follows a plan.
enum Next {
    /// Another plan, at once.
    Plan,
    /// Nothing is to do until buckets have changed.
    Wait,
    Retry,
    End,
}

#[derive(Debug, Default)]
struct Compaction {
    policy: CompactionPolicy,
    /// Objects that cannot be read.
    spared: BTreeSet<ObjectId>,
    missing: Option<(ObjectId, u32)>,
}

impl Compaction {
    async fn next(&mut self, context: &Arc<Context>, state: &State) -> Next {
        let Some(compactor) = &context.compactor else {
            return Next::Wait;
        };
        let Some(planned) = compaction(state, context.me(), &self.policy, &self.spared) else {
            return Next::Wait;
        };
        let running = context.running.begin(state.witness().index);
        tracing::debug!(
            cause = ?planned.cause, objects = planned.replaced.len(), moves = planned.moves.len(), bytes = planned.bytes(),
            "compaction begins"
        );
        let job = job(state, &planned);
        let end = compactor.run(&job).await;
        if mutant("double-compaction") {
            double(context, compactor, &job).await;
        }
        drop(running);
        self.ended(context, end)
    }

    fn ended(&mut self, context: &Context, end: CompactionEnd) -> Next {
        if !matches!(end, CompactionEnd::Missing { .. }) {
            self.missing = None;
        }
        match end {
            CompactionEnd::Done => Next::Plan,
            CompactionEnd::Refused { fenced: true, .. } | CompactionEnd::CommitsStopped => Next::End,
            // Retention or a drop came first; the view that shows it is here, for the refusal has been applied. The pause is for a
            // refusal that another plan does not change: each try writes objects.
            CompactionEnd::Refused { fenced: false, reason } => {
                tracing::info!(reason, "compaction is planned anew");
                Next::Retry
            }
            CompactionEnd::Missing { object } => self.missed(object),
            CompactionEnd::Unreadable { object, reason } => {
                tracing::error!(%object, reason, "object cannot be compacted; a person must look");
                self.spare(object);
                Next::Plan
            }
            CompactionEnd::Unavailable { reason } => {
                tracing::warn!(reason, "compaction goes on in a moment");
                Next::Retry
            }
            CompactionEnd::Foreign { object, what } => {
                context.end(NodeEnd::Failed { what: format!("{object}: {what}") });
                Next::End
            }
        }
    }

    /// An object is gone: by now the view may name others. If it still is named a while later, it is lost.
    fn missed(&mut self, object: ObjectId) -> Next {
        let times = self.missing.filter(|(last, _)| *last == object).map_or(0, |(_, times)| times) + 1;
        self.missing = Some((object, times));
        if times < MISSING_MAX {
            tracing::info!(%object, times, "object is not in the store, compaction is planned anew");
            return Next::Retry;
        }
        tracing::error!(%object, "object is not in the store, and metadata refers to it; a person must look");
        self.spare(object);
        Next::Plan
    }

    fn spare(&mut self, object: ObjectId) {
        if self.spared.len() >= SPARED_MAX {
            self.spared.pop_first();
        }
        self.spared.insert(object);
    }
}

/// The mutant: carries the job out once more, and takes the refusal of that for success. So two objects claim its ranges, and what
/// metadata names for them is deleted as replaced.
async fn double(context: &Context, compactor: &Compactor, job: &CompactionJob) {
    if let CompactionEnd::Refused { .. } = compactor.run(job).await {
        let (state, cluster) = (context.state(), &context.config.cluster);
        let named = job.moves.iter().flat_map(|moved| {
            let ends = moved.ranges.first().zip(moved.ranges.last());
            ends.map_or_else(Vec::new, |(first, last)| {
                ranges(&state, moved.bucket, first.range.start..last.range.end)
            })
        });
        let keys: BTreeSet<ObjectKey> = named.map(|range| ObjectKey::object(cluster, range.object)).collect();
        drop(context.config.stores.stream.delete(&keys.into_iter().collect::<Vec<_>>()).await);
    }
}

/// A planned job as s3stream takes it, with what the view knows of the objects.
fn job(state: &State, planned: &mink_coordinator::CompactionJob) -> CompactionJob {
    let moves = planned.moves.iter().map(|moved| CompactionMove {
        bucket: moved.bucket,
        epoch: moved.epoch,
        ranges: ranges(state, moved.bucket, moved.range().start..moved.range().end),
    });
    let view = state.clone();
    CompactionJob {
        moves: moves.collect(),
        before: Arc::new(move |bucket, start| ranges(&view, bucket, Offset(0)..start)),
    }
}

/// The ranges of a bucket that begin within these offsets.
fn ranges(state: &State, bucket: BucketId, within: std::ops::Range<Offset>) -> Vec<ObjectRange> {
    let all = state.objects_of(&bucket).skip_while(|(range, ..)| range.start < within.start);
    let found = all.take_while(|(range, ..)| range.start < within.end);
    found
        .map(|(range, place, object)| ObjectRange {
            object: place.object,
            range,
            max_timestamp: place.max_timestamp,
            bytes: place.bytes,
            length: object.length,
            footer_length: object.footer_length,
            checksum: object.checksum,
        })
        .collect()
}

impl Context {
    /// Raises the feature level as far as every live node knows it. Until then what is new is not written, and an older
    /// program can take this chain over.
    pub(crate) async fn raise_feature_level(&self, state: &State) {
        for level in state.feature_level() + 1..=FEATURE_LEVEL_MAX {
            if state.live().any(|(_, node)| node.feature_level_max < level) {
                return;
            }
            match self.metadata.submit(Command::RaiseFeatureLevel { level }).await {
                Ok(CommandResult::Done(_)) => tracing::info!(level, "feature level raised"),
                // Another node was faster, or one that does not know it has come.
                Ok(CommandResult::Refused(refusal)) => {
                    tracing::debug!(level, %refusal, "feature level not raised");
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

/// s3stream's rewrite as a command of the log.
pub(crate) fn command(by: mink_types::Incarnation, rewrite: s3stream::StreamRewrite) -> Command {
    Command::Rewrite {
        by,
        replaced: rewrite.replaced,
        objects: rewrite.objects.into_iter().map(rewritten).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_what_is_planned_fits_the_window() {
        for window_bytes in [0, 1 << 20, 5 << 20, 8 << 20, 32 << 20, 64 << 20] {
            let policy = CompactionConfig { bytes_per_second: 1, window_bytes }.policy();
            let window = window_bytes.max(CompactionConfig::WINDOW_BYTES_MIN);
            assert!(policy.own_bytes <= policy.settled_bytes, "{policy:?}");
            assert!(policy.settled_bytes <= policy.range_bytes_max, "{policy:?}");
            assert!(policy.range_bytes_max < window && policy.footer_bytes_max <= window, "{policy:?}");
        }
        let large = CompactionConfig { bytes_per_second: 1, window_bytes: 64 << 20 };
        assert_eq!(large.policy(), CompactionPolicy::default());
    }
}
