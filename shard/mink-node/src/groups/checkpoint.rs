//! When a coordinator writes its whole state again, and from where its log is then read.
//!
//! Lives on: anywhere (pure).
//! Invariants: a checkpoint is one uninterrupted run of the log, written from a state that includes everything before it, so the
//! fold from its first record on equals the fold of the whole log; the start is raised only once all of it is durable, and only to what
//! is committed (decision 0017).
use super::log::Stored;
use mink_rt::Instant;
use mink_types::Offset;
use std::time::Duration;

/// A log that has grown by less since its last checkpoint is left alone.
const LOG_BYTES_MIN: u64 = 1 << 20;
/// So many times its state a log may grow.
const LOG_PER_STATE: u64 = 4;
/// Least time between two checkpoints: each costs a row of the metadata log.
const PAUSE: Duration = Duration::from_secs(10);

/// Where a coordinator stands with its checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// None is under way; the next not before this.
    Idle { not_before: Instant },
    /// It is written: where it begins, once that is known, and parts that are not durable yet.
    Writing { begin: Option<Offset>, left: usize },
    /// It is durable and begins here; the start waits for the commit.
    Durable { begin: Offset },
    /// The start is being raised.
    Raising { begin: Offset },
}

/// The checkpoints of one opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Checkpoints {
    /// Bytes of the log since the last checkpoint began, or since the log's start.
    log_bytes: u64,
    /// Behind the last record that is durable.
    end: Offset,
    stage: Stage,
}

impl Checkpoints {
    /// Of a log from whose start to whose end so many bytes were read.
    pub(super) fn new(log_bytes: u64, end: Offset) -> Checkpoints {
        Checkpoints { log_bytes, end, stage: Stage::Idle { not_before: Instant::ZERO } }
    }

    /// Whether it is time to write one, of a state of so many bytes.
    pub(super) fn is_due(&self, state_bytes: usize, now: Instant) -> bool {
        let most = LOG_BYTES_MIN.max(LOG_PER_STATE.saturating_mul(state_bytes as u64));
        matches!(self.stage, Stage::Idle { not_before } if now >= not_before) && self.log_bytes > most
    }

    /// One of so many parts goes to the log, of which nothing else is on its way. An empty state has no parts: nothing of the log is
    /// needed any more.
    pub(super) fn begin(&mut self, parts: usize) {
        self.log_bytes = 0;
        self.stage = match parts {
            0 => Stage::Durable { begin: self.end },
            left => Stage::Writing { begin: None, left },
        };
    }

    /// Something of the log is durable: a part of the checkpoint or not.
    pub(super) fn stored(&mut self, stored: &Stored) {
        let &Stored { base_offset, records, bytes, .. } = stored;
        self.end = Offset(base_offset.0.saturating_add(records));
        if !stored.is_checkpoint() {
            self.log_bytes = self.log_bytes.saturating_add(bytes);
            return;
        }
        if let Stage::Writing { begin, left } = self.stage {
            let begin = begin.unwrap_or(base_offset);
            self.stage = match left {
                0 | 1 => Stage::Durable { begin },
                _ => Stage::Writing { begin: Some(begin), left: left - 1 },
            };
        }
    }

    /// A part of it was refused: the log stays as it is, which is sound, and is longer.
    pub(super) fn abandon(&mut self, now: Instant) {
        self.stage = Stage::Idle { not_before: now + PAUSE };
    }

    /// Where the log can begin now that it is committed up to `end`; told once, until [`Checkpoints::raised`].
    pub(super) fn raise(&mut self, end: Offset) -> Option<Offset> {
        match self.stage {
            Stage::Durable { begin } if begin <= end => {
                self.stage = Stage::Raising { begin };
                Some(begin)
            }
            _ => None,
        }
    }

    /// The start was raised, or never will be; otherwise it is tried again.
    pub(super) fn raised(&mut self, done: bool, now: Instant) {
        if let Stage::Raising { begin } = self.stage {
            self.stage =
                if done { Stage::Idle { not_before: now + PAUSE } } else { Stage::Durable { begin } };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_group::Handle;

    const NOW: Instant = Instant::from_nanos(1 << 40);

    fn due(log_bytes: u64, state_bytes: usize) -> bool {
        Checkpoints::new(log_bytes, Offset(0)).is_due(state_bytes, NOW)
    }

    fn part(base: u64) -> Stored {
        Stored { handles: Vec::new(), base_offset: Offset(base), records: 10, bytes: 100 }
    }

    #[test]
    fn a_log_is_written_anew_when_it_is_long_for_its_state() {
        assert!(!due(LOG_BYTES_MIN, 0) && due(LOG_BYTES_MIN + 1, 0));
        assert!(!due(8 * LOG_BYTES_MIN, 2 << 20) && due(8 * LOG_BYTES_MIN + 1, 2 << 20));
    }

    #[test]
    fn i1_the_start_is_raised_when_all_parts_are_durable_and_the_first_is_committed() {
        let mut checkpoints = Checkpoints::new(2 * LOG_BYTES_MIN, Offset(70));
        checkpoints.begin(2);
        checkpoints.stored(&part(70));
        assert_eq!(checkpoints.raise(Offset(100)), None, "a part is missing");
        checkpoints.stored(&part(80));
        checkpoints.stored(&Stored { handles: vec![Handle(1)], bytes: 2 * LOG_BYTES_MIN, ..part(90) });
        assert_eq!(checkpoints.raise(Offset(69)), None, "not committed");
        assert_eq!((checkpoints.raise(Offset(70)), checkpoints.raise(Offset(71))), (Some(Offset(70)), None));
        checkpoints.raised(false, NOW);
        assert_eq!(checkpoints.raise(Offset(71)), Some(Offset(70)), "again");
        assert!(!checkpoints.is_due(0, NOW), "one at a time");
        checkpoints.raised(true, NOW);
        assert!(!checkpoints.is_due(0, NOW) && checkpoints.is_due(0, NOW + PAUSE));
    }

    #[test]
    fn of_an_empty_state_no_record_is_kept() {
        let mut checkpoints = Checkpoints::new(2 * LOG_BYTES_MIN, Offset(70));
        checkpoints.stored(&Stored { handles: vec![Handle(1)], ..part(70) });
        checkpoints.begin(0);
        assert_eq!(checkpoints.raise(Offset(80)), Some(Offset(80)));
    }

    #[test]
    fn a_refused_part_gives_the_checkpoint_up() {
        let mut checkpoints = Checkpoints::new(0, Offset(70));
        checkpoints.begin(2);
        checkpoints.stored(&part(70));
        checkpoints.abandon(NOW);
        checkpoints.stored(&part(80));
        assert_eq!(checkpoints.raise(Offset(100)), None);
    }
}
