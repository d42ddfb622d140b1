//! The bounds of the WAL, the flusher and the takeover.
//!
//! Lives on: anywhere.
//! Invariants: I20: every queue, loop and retry of this crate takes its bound from here or from a constant beside it.
use std::time::Duration;

use mink_object::PUT_BYTES_MAX;

use crate::batcher::{CHUNK_BYTES_MAX, CHUNK_ENTRIES_MAX};
use crate::format::encoded_bytes;

/// The configuration of a node's WAL.
#[derive(Clone, PartialEq, Debug)]
pub struct WalConfig {
    /// Longest time that a chunk waits while PUTs are in flight (`wal.linger`).
    pub linger: Duration,
    /// An object is cut when so many bytes wait (`wal.batch.bytes`); under a budget of PUTs one turn of it after the one before
    /// at the soonest, and is longer then.
    pub batch_bytes: u64,
    /// Longest WAL or stream object, in bytes; at most 64 MiB, which is one PUT.
    pub object_bytes_max: u64,
    /// Longest chunk that the shards push, in bytes of entries; less than [`crate::CHUNK_BYTES_MAX`] allows shorter objects.
    pub chunk_bytes_max: u64,
    /// PUTs of WAL objects in flight. A takeover looks so far ahead for the proof of a lost object, so all nodes of a
    /// cluster must use the same.
    pub puts_in_flight_max: usize,
    /// Average of WAL PUTs per second, hedges and repeats among them, with bursts of as many (`wal.puts-per-second`); none has
    /// no bound.
    pub puts_per_second: Option<u32>,
    /// Whether a WAL PUT that is much later than the recent ones is sent a second time. Of no use where PUTs are not requests
    /// of their own: a disk that stalls gets no faster by a second write.
    pub hedge_puts: bool,
    /// Chunks of one shard that may wait in its lane.
    pub lane_chunks: usize,
    /// Bytes that the writer takes out of the lanes before they are cut.
    pub waiting_bytes_max: u64,
    /// Bytes and objects of WAL that a takeover might have to read; at these the writer stops cutting until the flusher trims.
    pub untrimmed_bytes_max: u64,
    pub untrimmed_objects_max: usize,
    /// Durable data is flushed to stream objects at this age ...
    pub flush_age: Duration,
    /// ... or at so many bytes.
    pub flush_bytes: u64,
    /// A bucket with at least so many bytes in one flush gets stream objects of its own.
    pub own_object_bytes: u64,
    /// An attempt of a PUT that takes longer is given up as unknown and repeated.
    pub put_timeout: Duration,
    /// A read of the takeover that takes longer is repeated.
    pub get_timeout: Duration,
    /// First and longest pause between attempts; doubled in between, with up to a quarter of jitter.
    pub retry_pause_first: Duration,
    pub retry_pause_max: Duration,
    /// Attempts of one read during a takeover, and objects read at a time: 256 KiB of each at most where their lengths are
    /// known.
    pub read_attempts_max: u32,
    pub reads_in_flight_max: usize,
}

/// Settings that contradict each other.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("WAL configuration: {what}")]
pub struct WalConfigError {
    pub what: &'static str,
}

impl Default for WalConfig {
    fn default() -> WalConfig {
        WalConfig {
            linger: Duration::from_millis(50),
            batch_bytes: 8 << 20,
            object_bytes_max: PUT_BYTES_MAX,
            chunk_bytes_max: CHUNK_BYTES_MAX as u64,
            puts_in_flight_max: 16,
            puts_per_second: Some(20),
            hedge_puts: true,
            lane_chunks: 4,
            waiting_bytes_max: 64 << 20,
            untrimmed_bytes_max: 256 << 20,
            untrimmed_objects_max: 512,
            flush_age: Duration::from_secs(30),
            flush_bytes: 64 << 20,
            own_object_bytes: 8 << 20,
            put_timeout: Duration::from_secs(30),
            get_timeout: Duration::from_secs(30),
            retry_pause_first: Duration::from_millis(20),
            retry_pause_max: Duration::from_secs(2),
            read_attempts_max: 60,
            reads_in_flight_max: 128,
        }
    }
}

impl WalConfig {
    /// Checks the settings against each other.
    pub fn check(&self) -> Result<(), WalConfigError> {
        let largest_chunk = encoded_bytes(CHUNK_ENTRIES_MAX, self.chunk_bytes_max);
        let checks = [
            (self.object_bytes_max <= PUT_BYTES_MAX, "an object must fit into one PUT of 64 MiB"),
            (self.object_bytes_max >= largest_chunk, "an object must hold the longest chunk and its index"),
            (
                self.batch_bytes > 0 && self.batch_bytes <= self.object_bytes_max,
                "wal-batch-bytes must be 1 to 64 MiB",
            ),
            (self.puts_in_flight_max > 0, "at least one PUT must be allowed in flight"),
            (self.puts_per_second != Some(0), "a budget of no PUT per second allows no write; leave it out"),
            (self.lane_chunks > 0 && self.waiting_bytes_max > 0, "the lanes need room"),
            (
                self.untrimmed_bytes_max >= self.object_bytes_max,
                "untrimmed WAL must hold at least one object",
            ),
            (self.untrimmed_objects_max > 1, "untrimmed WAL must hold at least two objects"),
            (
                self.flush_bytes > 0 && self.flush_bytes <= self.untrimmed_bytes_max,
                "the flush must begin before the WAL is full",
            ),
            (
                self.read_attempts_max > 0 && self.reads_in_flight_max > 0,
                "a takeover needs at least one read",
            ),
            (
                self.retry_pause_first > Duration::ZERO && self.retry_pause_first <= self.retry_pause_max,
                "the first pause must not be above the longest",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(WalConfigError { what }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_together_and_a_contradiction_is_named() {
        assert_eq!(WalConfig::default().check(), Ok(()));
        let config = WalConfig { puts_per_second: Some(0), ..WalConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("no PUT per second"));
        let config = WalConfig { object_bytes_max: 1 << 20, ..WalConfig::default() };
        assert!(config.check().is_err());
    }
}
