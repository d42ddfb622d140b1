//! The read lease: while it holds, no successor of this process serves or acks anything (decision 0003).
//!
//! Lives on: the service runtime.
//! Owns: the moment until which the lease holds.     Talks to: the command log's heartbeats.
//! Invariants: I3, I5: the lease counts from *before* the renewal was sent; a contender closes the heartbeats first and then waits
//! out a whole lease and a margin on its own boot-time clock. An unknown renewal renews nothing.
use mink_rt::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a lease holds and how long a contender waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeaseTimes {
    pub(crate) ttl: Duration,
}

impl LeaseTimes {
    /// Drift of two boot-time clocks over one lease that is allowed for.
    pub(crate) fn margin(self) -> Duration {
        self.ttl / 10 + Duration::from_millis(100)
    }

    /// The times that a contender goes by: the holder's lease may be longer than its own would be.
    #[must_use]
    pub(crate) fn at_least(self, holder: Duration) -> LeaseTimes {
        LeaseTimes { ttl: self.ttl.max(holder) }
    }

    /// What a contender waits, from the moment it knows that no renewal can succeed any more.
    pub(crate) fn wait(self) -> Duration {
        self.ttl + self.margin()
    }

    /// Pause between renewals: two may fail before the lease runs out.
    pub(crate) fn renew_every(self) -> Duration {
        self.ttl / 3
    }
}

/// The lease of this process. Read by every read's answer, written by the one task that renews it.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Nanoseconds of the boot-time clock; 0 before the first renewal, `ENDED` for good.
    until: AtomicU64,
}

/// No renewal, however late its answer, revives a lease that was given up.
const ENDED: u64 = u64::MAX;

impl Lease {
    /// A renewal has succeeded: the lease holds until a TTL after it was *sent*.
    pub(crate) fn renewed(&self, until: Instant) {
        self.until.fetch_max(until.as_nanos(), Ordering::AcqRel);
    }

    /// Gives the lease up, for good.
    pub(crate) fn end(&self) {
        self.until.store(ENDED, Ordering::Release);
    }

    /// Whether the lease holds at `now`.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        let until = self.until.load(Ordering::Acquire);
        until != ENDED && now.as_nanos() < until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i3_a_lease_only_grows_and_ends_for_good() {
        let (lease, ttl) = (Lease::default(), Duration::from_secs(10));
        assert!(!lease.holds(Instant::ZERO));
        let sent = Instant::ZERO + Duration::from_secs(5);
        lease.renewed(sent + ttl);
        assert!(lease.holds(sent + Duration::from_millis(9_999)));
        assert!(!lease.holds(sent + ttl));
        lease.renewed(Instant::ZERO + ttl);
        assert!(lease.holds(sent + Duration::from_secs(9)), "a late answer does not shorten it");
        lease.end();
        lease.renewed(sent + ttl);
        assert!(!lease.holds(sent), "a late answer does not revive it");
    }

    #[test]
    fn i5_a_contender_waits_longer_than_any_holder_reads() {
        let times = LeaseTimes { ttl: Duration::from_secs(10) };
        assert!(times.wait() > times.ttl);
        assert!(times.renew_every() * 3 <= times.ttl);
        let (short, long) = (Duration::from_secs(1), Duration::from_mins(1));
        assert!(times.at_least(long).wait() > long, "the holder's lease is longer");
        assert_eq!(times.at_least(short).wait(), times.wait(), "a shorter one does not shorten the margin");
    }
}
