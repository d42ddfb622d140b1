//! Pauses between attempts.
//!
//! Lives on: anywhere (pure).
use std::time::Duration;

/// First and longest pause.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Twice as long each time, up to a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(PAUSE_FIRST)
    }
}

impl Backoff {
    /// How long to wait before the next attempt.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX);
        pause
    }
}
