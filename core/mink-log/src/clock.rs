//! The clock that commit times are taken from: the wall clock, unless it leaps ahead or steps back.
//!
//! Lives on: one per core (pure; the caller reads the clocks).
//! Owns: the last pair of readings.
//! Invariants: a leap of the wall clock of more than an hour beyond the time that passed is never taken over: commit times
//! never go back, so one wrong reading would let retention drop everything at once (decision 0013). Nor is a step back followed: a bucket
//! whose commit times stood still meanwhile would hold records that look older than they are.
use mink_types::CommitTime;
use std::time::Duration;

/// How far the wall clock may run ahead of the monotonic one between two readings, in ms.
pub const CLOCK_JUMP_MS_MAX: i64 = 60 * 60 * 1000;

/// The wall clock is ahead of the time that passed: a person should look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockJump {
    pub ahead_ms: i64,
}

/// Turns clock readings into commit times.
#[derive(Clone, Debug, Default)]
pub struct CommitClock {
    last: Option<Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    time: CommitTime,
    uptime: Duration,
}

impl CommitClock {
    /// The commit time for a wall clock reading (ms since 1970) and a monotonic one. While the wall clock is more than an hour
    /// ahead, or behind, time goes on at the pace of the monotonic clock. Take a first reading when the clock is made: it is what later
    /// ones are judged by.
    pub fn read(&mut self, wall_ms: i64, uptime: Duration) -> (CommitTime, Option<ClockJump>) {
        let Some(last) = self.last else {
            let time = CommitTime(wall_ms);
            self.last = Some(Reading { time, uptime });
            return (time, None);
        };
        let passed = uptime.saturating_sub(last.uptime);
        let expected = last.time.0.saturating_add(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX));
        let ahead_ms = wall_ms.saturating_sub(expected);
        if ahead_ms < 0 {
            (CommitTime(expected), None)
        } else if ahead_ms <= CLOCK_JUMP_MS_MAX {
            let time = CommitTime(wall_ms);
            self.last = Some(Reading { time, uptime });
            (time, None)
        } else {
            // The reading is kept as it was: adding up many truncated steps would let the clock fall behind.
            (CommitTime(expected), Some(ClockJump { ahead_ms }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = CLOCK_JUMP_MS_MAX;

    #[test]
    fn an_idle_hour_is_no_leap() {
        let mut clock = CommitClock::default();
        clock.read(1_000, Duration::ZERO);
        let later = clock.read(1_000 + 5 * HOUR, Duration::from_hours(5));
        assert_eq!(later, (CommitTime(1_000 + 5 * HOUR), None));
    }

    #[test]
    fn a_leap_beyond_an_hour_is_told_and_not_taken_over_and_heals() {
        let mut clock = CommitClock::default();
        clock.read(1_000, Duration::ZERO);
        let leapt = clock.read(1_000 + 3 * HOUR, Duration::from_secs(10));
        assert_eq!(leapt, (CommitTime(11_000), Some(ClockJump { ahead_ms: 3 * HOUR - 10_000 })));
        let healed = clock.read(21_000, Duration::from_secs(20));
        assert_eq!(healed, (CommitTime(21_000), None));
    }

    #[test]
    fn a_step_back_is_not_followed_and_heals() {
        let mut clock = CommitClock::default();
        clock.read(HOUR * 9, Duration::ZERO);
        assert_eq!(clock.read(HOUR * 2, Duration::from_secs(1)), (CommitTime(HOUR * 9 + 1_000), None));
        let idle = clock.read(HOUR * 5, Duration::from_hours(3));
        assert_eq!(idle, (CommitTime(HOUR * 12), None), "an idle clock goes on, too");
        let healed = clock.read(HOUR * 13 + 5, Duration::from_hours(4));
        assert_eq!(healed, (CommitTime(HOUR * 13 + 5), None));
    }
}
