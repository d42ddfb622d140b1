//! What the listener may hold and how long it waits for clients.
//!
//! Lives on: anywhere.
use rustix::process::{Resource, getrlimit};
use std::time::Duration;

/// Most connections, however many the node may have: people, probes and scrapers are few.
const CONNECTIONS_MAX: usize = 256;
/// The part of the node's connections, and of the files that the process may open, that is this listener's. Others leave a fourth
/// of the files free, or 256, for everything that is not theirs: this is at most half of it.
const PART: usize = 8;
/// The fewest that are of use.
const CONNECTIONS_MIN: usize = 4;

/// The head of a request, in bytes and lines; hyper takes no less than 8 KiB.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
pub(crate) const HEADERS_MAX: usize = 64;
/// Largest body of a request, in bytes: options of a table are small.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// Settings of one HTTP listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpConfig {
    /// Connections in all. One more makes the one go that was silent for the longest.
    pub connections_max: usize,
    /// From the first byte of a request's head to its last, and from a connection to its first byte.
    pub head_deadline: Duration,
    /// From there to the last byte of its body.
    pub body_deadline: Duration,
    /// How long a client may take nothing of its answer.
    pub write_deadline: Duration,
    /// How long a connection may stay without a next request.
    pub idle_deadline: Duration,
    /// Bytes of large answers that clients have not taken yet, over all. One answer may pass it, alone.
    pub answer_bytes_max: usize,
}

impl Default for HttpConfig {
    fn default() -> HttpConfig {
        HttpConfig {
            connections_max: CONNECTIONS_MAX,
            head_deadline: Duration::from_secs(10),
            body_deadline: Duration::from_secs(10),
            write_deadline: Duration::from_secs(30),
            idle_deadline: Duration::from_mins(1),
            answer_bytes_max: 8 << 20,
        }
    }
}

impl HttpConfig {
    /// The listener's share of a node that may have so many connections, within the files that this process may open.
    pub fn beside(connections_max: u32) -> HttpConfig {
        let files = getrlimit(Resource::Nofile).current;
        let connections_max = share(to_usize(connections_max.into()), files.map_or(usize::MAX, to_usize));
        HttpConfig { connections_max, ..HttpConfig::default() }
    }
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn share(connections: usize, files: usize) -> usize {
    CONNECTIONS_MAX.min(connections / PART).min(files / PART).max(CONNECTIONS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_the_listener_takes_a_small_part_of_connections_and_of_files() {
        assert_eq!(share(10_000, 1 << 20), 256);
        assert_eq!(share(100, 1 << 20), 12);
        assert_eq!(share(10_000, 200), 25, "of 200 files the kafka listener leaves 50 to others");
        assert_eq!(share(1, 1), 4);
    }
}
