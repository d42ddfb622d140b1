//! The pace of compaction: so many bytes per second, and after foreground writes.
//!
//! Lives on: service runtime.
//! Invariants: compaction waits while the WAL is behind, but never for ever: else a node that is always busy would collect
//! objects without bound.
use std::sync::PoisonError;
use std::time::Duration;

use super::Compactor;

/// How often a busy WAL is looked at again, and how often at most before a step goes on.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
const BUSY_PAUSES_MAX: u32 = 100;

impl Compactor {
    /// Waits until a step of so many bytes may begin.
    pub(super) async fn wait_for_turn(&self, bytes: u64) {
        let service = &self.flusher.creator.service;
        for _ in 0..BUSY_PAUSES_MAX {
            if !self.foreground_is_behind() {
                break;
            }
            service.sleep(BUSY_PAUSE).await;
        }
        let rate = self.parts.bytes_per_second.max(1);
        let takes = Duration::from_micros(bytes.saturating_mul(1_000_000).div_ceil(rate));
        let begin = {
            let mut next = self.next_step.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = (*next).max(service.now());
            *next = begin + takes;
            begin
        };
        service.sleep_until(begin).await;
    }

    fn foreground_is_behind(&self) -> bool {
        let stats = self.parts.wal.stats();
        stats.full || stats.in_flight * 2 > self.flusher.creator.config.puts_in_flight_max
    }
}
