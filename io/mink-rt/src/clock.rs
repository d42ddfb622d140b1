//! Two kinds of time, kept apart by type: one that only counts, one that only labels.
//! Lives on: anywhere.
//! Owns: nothing.     Talks to: the kernel's clocks.
//! Invariants: I3 and I13 rest on `Instant` (leases); `WallTime` never decides who owns what.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point of monotonic time that goes on while the machine sleeps (`CLOCK_BOOTTIME`), in nanoseconds.
///
/// A lease holder that was suspended must see that its time has run out, so the clock must not stop with the
/// machine. Values of two machines, or of two boots, must never be compared. In the simulator it is virtual.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The clock's zero: earlier than (or equal to) every reading.
    pub const ZERO: Self = Self(0);

    /// The point `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time from `earlier` to `self`; `None` when `earlier` is later.
    pub fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// `self + duration`; `None` past the end of the clock (584 years).
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        u64::try_from(duration.as_nanos()).ok().and_then(|nanos| self.0.checked_add(nanos)).map(Self)
    }

    /// `self - duration`; `None` before the clock's zero.
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        u64::try_from(duration.as_nanos()).ok().and_then(|nanos| self.0.checked_sub(nanos)).map(Self)
    }
}

/// Saturates at the end of the clock: "never" stays "never".
impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self(u64::MAX))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// As [`Instant::duration_since`]: zero when the right side is later.
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instant({:?})", Duration::from_nanos(self.0))
    }
}

/// The wall clock: milliseconds since 1970-01-01 UTC. It may jump in either direction, so it labels records and
/// log lines and never decides anything about ownership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct WallTime(i64);

impl WallTime {
    /// The moment `millis` milliseconds after 1970 (before it when negative).
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// `self` moved by `millis`, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

/// The machine's boot-time clock.
pub(crate) fn boot_now() -> Instant {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    // macOS counts suspended time in its monotonic clock; elsewhere this is the nearest there is.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let id = rustix::time::ClockId::Monotonic;
    let read = rustix::time::clock_gettime(id);
    let seconds = u64::try_from(read.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(read.tv_nsec).unwrap_or(0);
    Instant(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// The machine's wall clock; a clock set before 1970 reads negative.
pub(crate) fn wall_now() -> WallTime {
    let signed = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    WallTime(match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => signed(after),
        Err(before) => signed(before.duration()).saturating_neg(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_saturate_and_sums_stop_at_the_end_of_the_clock() {
        let early = Instant::from_nanos(5);
        let late = early + Duration::from_nanos(7);
        assert_eq!(late.as_nanos(), 12);
        assert_eq!(late - early, Duration::from_nanos(7));
        assert_eq!(early.duration_since(late), Duration::ZERO);
        assert_eq!(early.checked_duration_since(late), None);
        assert_eq!(early.checked_sub(Duration::from_nanos(6)), None);
        assert_eq!(late.checked_add(Duration::MAX), None);
        assert_eq!(late + Duration::MAX, Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn the_boot_clock_never_goes_back_and_the_wall_clock_is_past_2020() {
        let mut last = boot_now();
        for _ in 0..10_000 {
            let now = boot_now();
            assert!(now >= last);
            last = now;
        }
        assert!(last > Instant::ZERO);
        assert!(wall_now().as_millis() > 1_577_836_800_000);
    }
}
