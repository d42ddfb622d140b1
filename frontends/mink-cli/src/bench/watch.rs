//! A run as whoever started it sees it: progress on stderr, and the signals that end it.
//!
//! Lives on: the command's task, and one that waits for signals.
//! Invariants: the first signal ends the load and lets its result be told, the second ends the process at once.
use crate::failure::Failure;
use crate::numbers;
use indicatif::{ProgressBar, ProgressStyle};
use mink_client::load::Progress;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often a line is written where there is no terminal to draw on.
const TOLD_EVERY: Duration = Duration::from_secs(10);
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

/// As shells tell that a signal ended a command.
pub(super) fn exit_code(signal: u8) -> i32 {
    128 + i32::from(signal)
}

/// Which signal came, if any did.
pub(super) struct Signals(Arc<AtomicU8>);

impl Signals {
    pub(super) fn watch(progress: &Arc<Progress>) -> Result<Signals, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::failed(format!("signals: {error}")));
        let mut both = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let (came, progress) = (Arc::new(AtomicU8::new(0)), Arc::clone(progress));
        let first = Arc::clone(&came);
        tokio::spawn(async move {
            first.store(next(&mut both).await, Ordering::Release);
            progress.stop();
            eprintln!("mink: stopping; a second signal ends at once");
            std::process::exit(exit_code(next(&mut both).await));
        });
        Ok(Signals(came))
    }

    pub(super) fn came(&self) -> Option<u8> {
        let number = self.0.load(Ordering::Acquire);
        (number > 0).then_some(number)
    }
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) -> u8 {
    tokio::select! {
        _ = interrupt.recv() => SIGINT,
        _ = terminate.recv() => SIGTERM,
    }
}

/// What is drawn on a terminal; elsewhere a line now and then.
pub(super) struct Drawing {
    bar: ProgressBar,
    is_terminal: bool,
    begun: Instant,
    /// From the begin to the end of the load's time.
    time: Option<Duration>,
    told: Told,
}

/// What the last line was about.
struct Told {
    at: Instant,
    bytes: u64,
}

impl Drawing {
    pub(super) fn new(records: Option<u64>, time: Option<Duration>) -> Drawing {
        let begun = Instant::now();
        let told = Told { at: begun, bytes: 0 };
        Drawing { bar: bar(records), is_terminal: std::io::stderr().is_terminal(), begun, time, told }
    }

    pub(super) fn draw(&mut self, progress: &Progress) {
        let records = progress.records.load(Ordering::Relaxed);
        let is_over = self.time.is_some_and(|time| self.begun.elapsed() >= time);
        let waits = if is_over || progress.is_stopped() { "waits for what is outstanding" } else { "" };
        if self.is_terminal {
            self.bar.set_message(waits);
            self.bar.set_position(records);
            self.bar.tick();
            return;
        }
        let (passed, bytes) = (self.told.at.elapsed(), progress.bytes.load(Ordering::Relaxed));
        if passed >= TOLD_EVERY {
            eprintln!(
                "mink: {}",
                line(self.begun.elapsed(), records, bytes - self.told.bytes, passed, waits)
            );
            self.told = Told { at: Instant::now(), bytes };
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// `20 s: 1,000,000 records, lately 12.3 MiB/s`.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn line(since_begin: Duration, records: u64, bytes: u64, passed: Duration, waits: &str) -> String {
    let rate = bytes as f64 / f64::from(1 << 20) / passed.as_secs_f64().max(1e-9);
    let (seconds, rate) = (since_begin.as_secs(), numbers::decimal(rate, 1));
    let line = format!("{seconds} s: {}, lately {rate} MiB/s", numbers::records(records));
    if waits.is_empty() { line } else { format!("{line}; {waits}") }
}

fn bar(records: Option<u64>) -> ProgressBar {
    let (bar, template) = match records {
        Some(records) => (
            ProgressBar::new(records),
            "{bar:40} {human_pos}/{human_len} records  {per_sec}  {elapsed}  {msg}",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {human_pos} records  {per_sec}  {elapsed}  {msg}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_it_goes_lately() {
        let (begun, passed) = (Duration::from_millis(20_100), Duration::from_secs(10));
        assert_eq!(
            line(begun, 1_000_000, 100 << 20, passed, ""),
            "20 s: 1,000,000 records, lately 10.0 MiB/s"
        );
        assert!(line(begun, 1, 0, passed, "waits").ends_with("1 record, lately 0.0 MiB/s; waits"));
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!((exit_code(SIGINT), exit_code(SIGTERM)), (130, 143));
    }
}
