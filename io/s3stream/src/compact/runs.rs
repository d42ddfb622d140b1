//! How a job is cut: runs that each fit an object, steps that each fit the window.
//!
//! Lives on: service runtime (pure).
//! Invariants: I2: a run's entries follow each other without a hole, as its footers have it; T-18: cuts lie between ranges.
use mink_types::{BucketEpoch, BucketId, Offset, OffsetRange};

use super::source::Sources;
use super::{CompactionEnd, CompactionMove};
use crate::entry::IndexEntry;
use crate::flush::plan::STATE_RESERVE_BYTES;
use crate::format::encoded_bytes;
use crate::read::ObjectRange;
use crate::takeover::RANGES_PER_COMMIT;
use crate::wal::WalConfig;

/// Ranges that become one range of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) bucket: BucketId,
    pub(super) epoch: BucketEpoch,
    pub(super) ranges: Vec<ObjectRange>,
    pub(super) entries: usize,
    pub(super) bytes: u64,
}

impl Run {
    pub(super) fn start(&self) -> Offset {
        self.ranges.first().map_or(Offset(0), |range| range.range.start)
    }
}

/// The moves as runs that each fit an object: one that does not is cut between two of its ranges.
pub(super) fn runs(
    config: &WalConfig,
    moves: &[CompactionMove],
    sources: &Sources,
) -> Result<Vec<Run>, CompactionEnd> {
    let mut runs: Vec<Run> = Vec::new();
    for moved in moves {
        let mut begun = false;
        for range in &moved.ranges {
            let (entries, bytes) = extent(moved.bucket, range, sources)?;
            let fits = |run: &Run| {
                let all = encoded_bytes(run.entries + entries, run.bytes + bytes);
                all + STATE_RESERVE_BYTES <= config.object_bytes_max
            };
            match runs.last_mut().filter(|run| begun && fits(run)) {
                Some(run) => {
                    run.ranges.push(*range);
                    run.entries += entries;
                    run.bytes += bytes;
                }
                None => runs.push(Run {
                    bucket: moved.bucket,
                    epoch: moved.epoch,
                    ranges: vec![*range],
                    entries,
                    bytes,
                }),
            }
            begun = true;
        }
    }
    Ok(runs)
}

/// Number and bytes of a range's entries, which must fill it.
fn extent(bucket: BucketId, range: &ObjectRange, sources: &Sources) -> Result<(usize, u64), CompactionEnd> {
    let (mut next, mut entries, mut bytes) = (range.range.start, 0, 0u64);
    for (_, _, entry) in sources.entries(bucket, range)? {
        if entry.base_offset != next {
            break;
        }
        next = entry.end();
        entries += 1;
        bytes += u64::from(entry.length);
    }
    if next == range.range.end {
        return Ok((entries, bytes));
    }
    let reason = format!("{bucket}: its footer ends at {next} in the range {:?}", range.range);
    Err(CompactionEnd::Unreadable { object: range.object, reason })
}

/// Runs in order, as many together as fit the window and one command.
pub(super) fn steps(runs: Vec<Run>, window_bytes: u64) -> Vec<Vec<Run>> {
    let mut steps: Vec<Vec<Run>> = Vec::new();
    let mut bytes = 0u64;
    for run in runs {
        let fits = bytes.saturating_add(run.bytes) <= window_bytes;
        if let Some(step) = steps.last_mut().filter(|step| fits && step.len() < RANGES_PER_COMMIT) {
            bytes += run.bytes;
            step.push(run);
        } else {
            bytes = run.bytes;
            steps.push(vec![run]);
        }
    }
    steps
}

/// Whether an entry belongs to a range: a decision is made before the record at its offset.
pub(super) fn lies_in(entry: &IndexEntry, range: OffsetRange) -> bool {
    range.start <= entry.base_offset && entry.end() <= range.end && entry.base_offset < range.end
}
