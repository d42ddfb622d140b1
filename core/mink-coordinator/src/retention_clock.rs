//! The clock that ages are measured by.
//!
//! Lives on: anywhere (pure; the caller reads the clocks).
//! Owns: the reading at the node's start.
//! Invariants: decision 0013: no jump of the wall clock deletes young data or stops retention. Commit times come from clocks that were read
//! when this one was, and that never fall behind the monotonic time since; this one never runs ahead of it. So nothing looks older
//! than it is, and what the wall clock was set ahead by makes retention late, by an hour a jump at most, and no more.
use mink_types::CommitTime;
use std::time::Duration;

/// How far the wall clock at a start may lie ahead of the newest known commit, in ms: the same as for a jump while a node runs.
const AHEAD_MS_MAX: i64 = 60 * 60 * 1000;

/// Time for retention: the wall clock as it was at the start, and monotonic time since.
///
/// A node that starts with a wall clock far ahead of the newest commit was down for long, or has a wrong clock; it cannot know. So it
/// begins an hour behind the newest commit and goes at double pace until it has caught up: a wrong clock is noticed (every append is
/// stamped with it) before it has cost anything old enough to matter, and after a long pause retention catches up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionClock {
    /// The wall clock at the start, in ms.
    wall: i64,
    /// Where this clock began; at or before `wall`.
    begin: i64,
    uptime: Duration,
}

impl RetentionClock {
    /// A clock read now: wall clock (ms since 1970), monotonic time, and the newest commit time of the metadata, if there is any.
    pub fn new(wall_ms: i64, uptime: Duration, newest: Option<CommitTime>) -> RetentionClock {
        let most = newest.map_or(i64::MAX, |newest| newest.0.saturating_add(AHEAD_MS_MAX));
        RetentionClock { wall: wall_ms, begin: wall_ms.min(most), uptime }
    }

    /// How far it lies behind the wall clock of the start, at the start.
    pub fn behind(&self) -> Duration {
        Duration::from_millis(self.wall.abs_diff(self.begin))
    }

    /// The time at a monotonic reading.
    pub fn now(&self, uptime: Duration) -> CommitTime {
        let passed = i64::try_from(uptime.saturating_sub(self.uptime).as_millis()).unwrap_or(i64::MAX);
        let full = self.wall.saturating_add(passed);
        CommitTime(full.min(self.begin.saturating_add(passed).saturating_add(passed)))
    }

    /// The monotonic reading at which it shows `time` or more.
    pub fn reaches(&self, time: CommitTime) -> Duration {
        let full = time.0.saturating_sub(self.wall).max(0).unsigned_abs();
        let double = time.0.saturating_sub(self.begin).max(0).unsigned_abs().div_ceil(2);
        self.uptime.saturating_add(Duration::from_millis(full.max(double)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = AHEAD_MS_MAX;
    const STARTED: Duration = Duration::from_secs(77);

    fn at(ms: i64) -> Duration {
        STARTED + Duration::from_millis(ms.unsigned_abs())
    }

    #[test]
    fn it_goes_on_from_the_wall_clock_of_the_start_whatever_that_says_later() {
        for newest in
            [None, Some(CommitTime(10 * HOUR)), Some(CommitTime(9 * HOUR)), Some(CommitTime(i64::MAX))]
        {
            let clock = RetentionClock::new(10 * HOUR, STARTED, newest);
            assert_eq!(clock.now(at(0)), CommitTime(10 * HOUR), "{newest:?}");
            assert_eq!(clock.now(at(5 * HOUR)), CommitTime(15 * HOUR));
            assert_eq!(clock.reaches(CommitTime(15 * HOUR)), at(5 * HOUR));
            assert_eq!(clock.reaches(CommitTime(HOUR)), at(0), "long ago");
            assert_eq!(clock.behind(), Duration::ZERO);
        }
    }

    #[test]
    fn a_start_far_ahead_of_all_commits_deletes_nothing_at_once_and_catches_up() {
        let newest = Some(CommitTime(10 * HOUR));
        let clock = RetentionClock::new(100 * HOUR, STARTED, newest);
        assert_eq!(clock.now(at(0)), CommitTime(11 * HOUR));
        assert_eq!(clock.behind(), Duration::from_hours(89));
        assert_eq!(clock.now(at(10 * HOUR)), CommitTime(31 * HOUR));
        assert_eq!(clock.now(at(89 * HOUR)), CommitTime(189 * HOUR), "caught up");
        assert_eq!(clock.now(at(90 * HOUR)), CommitTime(190 * HOUR), "and no faster from there on");
    }

    #[test]
    fn t_17_the_moment_at_which_something_is_due_is_the_first_one() {
        let clocks =
            [None, Some(CommitTime(3 * HOUR))].map(|newest| RetentionClock::new(9 * HOUR, STARTED, newest));
        for clock in clocks {
            for time in [0, 4 * HOUR, 4 * HOUR + 1, 9 * HOUR + 7, 14 * HOUR, 14 * HOUR + 1, 40 * HOUR] {
                let due = clock.reaches(CommitTime(time));
                assert!(clock.now(due).0 >= time, "{clock:?} {time}");
                let before = due.saturating_sub(Duration::from_millis(1));
                assert!(due == STARTED || clock.now(before).0 < time, "{clock:?} {time}");
            }
        }
    }
}
