//! The two clocks of a group's steps.
//!
//! Lives on: the service runtime.
//! Invariants: decision 0013: what is stored goes by the clock of ages, which no jump of the wall clock moves, so none makes an offset
//! look older than it is.
use crate::retention::uptime;
use mink_coordinator::RetentionClock;
use mink_group::Now;
use mink_rt::{Instant, Service};
use std::time::Duration;

const NANOS_PER_MS: u64 = 1_000_000;

/// Reads both.
#[derive(Debug)]
pub(super) struct GroupClock {
    pub(super) service: Service,
    pub(super) ages: RetentionClock,
}

impl GroupClock {
    pub(super) fn now(&self) -> Now {
        let monotonic_ms = self.service.now().as_nanos() / NANOS_PER_MS;
        Now { monotonic_ms, wall: self.ages.now(uptime(&self.service)) }
    }
}

/// The moment at which a step's monotonic time is `ms`.
pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
