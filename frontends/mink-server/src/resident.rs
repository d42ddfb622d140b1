//! What the listeners and the process as a whole hold, beside what they may hold.
//!
//! Lives on: the service runtime; a read of `/proc` without a wait.
//! Owns: the budgets of requests and answers.
use crate::memory::Memory;
use mink_api::Metric;
use mink_kafka::{AnswerPermits, FramePermits};
use mink_router::BytePermits;
use mink_types::Limits;
use std::fs;

/// Where Linux tells a process its own size.
const STATUS: &str = "/proc/self/status";

/// The budgets that connections take from.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    /// Of frames up to 2 MiB, and of larger ones.
    pub(crate) requests: FramePermits,
    pub(crate) large_requests: FramePermits,
    pub(crate) answers: AnswerPermits,
    /// Of messages of Arrow Flight, and of rows on their way to its clients.
    pub(crate) flight_requests: BytePermits,
    pub(crate) flight_answers: BytePermits,
}

impl Permits {
    pub(crate) fn of(memory: &Memory, limits: &Limits) -> Permits {
        let half = memory.requests / 2;
        Permits {
            requests: FramePermits::ordinary(half),
            large_requests: FramePermits::large(half, u64::from(limits.frame_bytes_max)),
            answers: AnswerPermits::new(memory.answers),
            flight_requests: BytePermits::new(memory.flight_requests()),
            flight_answers: BytePermits::new(memory.flight - memory.flight_requests()),
        }
    }

    fn held(&self) -> [(&'static str, u64); 3] {
        let requests = [&self.requests, &self.large_requests].map(FramePermits::held_bytes).iter().sum();
        let flight =
            [&self.flight_requests, &self.flight_answers].map(|of| of.total_bytes() - of.free_bytes());
        let answers = self.answers.total_bytes() - self.answers.free_bytes();
        [("requests", requests), ("answers", answers), ("flight", flight.iter().sum())]
    }
}

/// What of the budgets is taken, the bound of each part, and what is resident.
pub(crate) fn memory_metrics(memory: &Memory, permits: &Permits) -> Vec<Metric> {
    let bound = |part, bytes| {
        Metric::level("mink_memory_bound_bytes", "memory that a part may hold", bytes).label("part", part)
    };
    let mut metrics: Vec<Metric> =
        memory.parts().into_iter().map(|(part, bytes)| bound(part, bytes)).collect();
    metrics.push(bound("total", memory.total));
    metrics.extend(permits.held().into_iter().map(|(part, bytes)| {
        Metric::level("mink_memory_bytes", "memory held, by part", bytes).label("part", part)
    }));
    if let Some(bytes) = resident_bytes() {
        let help = "resident memory of the process";
        metrics.push(Metric::level("process_resident_memory_bytes", help, bytes));
    }
    metrics
}

/// Resident memory of this process; none where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string(STATUS).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_told_with_its_bound_and_the_process_with_its_size() {
        let memory = Memory::split(1 << 30).expect("enough");
        let metrics = memory_metrics(&memory, &Permits::of(&memory, &Limits::default()));
        let named = |name: &str| metrics.iter().filter(|metric| metric.name == name).count();
        assert_eq!(named("mink_memory_bound_bytes"), memory.parts().len() + 1);
        assert_eq!((named("mink_memory_bytes"), named("process_resident_memory_bytes")), (3, 1));
        assert!(resident_bytes().expect("Linux says it") > 1 << 20);
    }
}
