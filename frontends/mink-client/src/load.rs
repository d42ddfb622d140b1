//! The load generator: how fast records, or rows of Arrow, go in and out, and how long acks and reads take.
//!
//! Lives on: a few tasks per connection, on any tokio runtime.
//! Owns: producers and readers with connections of their own.
//! Invariants: in an open loop (a rate), latency counts from the moment a record was due, so that a server that stalls cannot hide it by
//! holding up the next record; in a closed loop (no rate), from when the record, or without keys its batch, was offered to the producer. A record that was offered or due and
//! got no ack counts with the time until the run ended. What was offered, or asked
//! for, before the end of the warm-up is in no figure. A load with a duration, or one that is told to stop, ends at most `DRAIN_MAX` after that.
mod acks;
mod batches;
mod consume;
mod contents;
mod ending;
mod outcome;
mod pace;
mod produce;
mod put;
mod rows;
mod scan;
mod share;
mod tally;

#[cfg(test)]
mod tests;

pub use consume::{ConsumeLoad, consume};
pub use contents::{Items, Keys, Values};
pub use ending::{DRAIN_MAX, Progress};
pub use outcome::{LoadResult, Second};
pub use pace::{Arrivals, Pace};
pub use produce::{ProduceLoad, produce};
pub use put::{PutLoad, put};
pub use rows::{PutRows, ROW_BYTES_MIN};
pub use scan::{ScanLoad, comparison, scan};

use crate::error::{ClientError, ErrorKind};
use ending::Ending;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// From when on, and until when.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The end of the warm-up.
    measured_from: Instant,
    until: Option<Instant>,
}

impl Span {
    fn new(begun: Instant, warmup: Duration, duration: Option<Duration>) -> Span {
        let measured_from = begun + warmup;
        Span { measured_from, until: duration.map(|duration| measured_from + duration) }
    }
}

fn check_connections(connections: usize) -> Result<usize, ClientError> {
    if connections == 0 {
        return Err(ClientError::new(ErrorKind::Misuse, "a load needs at least one connection"));
    }
    Ok(connections)
}

/// Waits for all tasks; the first error ends the others.
async fn finish(
    mut tasks: JoinSet<Result<(), ClientError>>,
    span: Span,
    ending: &Ending,
) -> Result<(), ClientError> {
    let mut is_warm = false;
    loop {
        tokio::select! {
            () = sleep_until(span.measured_from), if !is_warm => {
                is_warm = true;
                ending.progress().tell_warm();
            }
            ended = tasks.join_next() => match ended {
                None => return Ok(()),
                Some(ended) => ended.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))??,
            },
        }
    }
}
