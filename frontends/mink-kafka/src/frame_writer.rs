//! Writes answers to a connection's socket: segments as they are, many in one system call.
//!
//! Lives on: the service runtime, one per connection.
//! Owns: nothing beyond a call.
//! Invariants: I20: a client that does not take its answer loses its connection: within its patience in any case, soon when others wait
//! for the memory of answers. What a stalled answer holds is its own bytes: a slice of a batch would keep the whole chunk it lies in.
use crate::answer_permits::AnswerMemory;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;
use tokio::net::tcp::WriteHalf;
use tokio::time::{Instant, timeout};

/// Pieces per system call.
const PIECES_MAX: usize = 64;

/// Slowest rate at which a client may take an answer, in bytes per second, after its first `patience`.
const RATE_MIN: u64 = 256 << 10;

/// A client that takes nothing for so long is slow. When it must go, its memory says.
const SLOW_AFTER: Duration = Duration::from_millis(500);

/// Segments up to this length are copied out of what they lie in once their client is slow. Larger batches lie alone.
const UNPINNED_BYTES_MAX: usize = 256 << 10;

/// Why an answer was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The client took too long.
    Deadline,
    /// The socket broke.
    Broken(io::Error),
}

/// Writes all segments in order. `memory` is what one of them holds of the memory for answers, if any.
pub(crate) async fn write_all(
    half: &WriteHalf<'_>,
    segments: VecDeque<Bytes>,
    patience: Duration,
    memory: Option<&AnswerMemory>,
) -> Result<(), WriteError> {
    let bytes: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
    let limit = patience + Duration::from_secs(bytes / RATE_MIN);
    match timeout(limit, write_segments(half, segments, memory)).await {
        Ok(written) => written,
        Err(_elapsed) => Err(WriteError::Deadline),
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Broken(error)
    }
}

async fn write_segments(
    half: &WriteHalf<'_>,
    mut segments: VecDeque<Bytes>,
    memory: Option<&AnswerMemory>,
) -> Result<(), WriteError> {
    let mut pinned = memory.is_some();
    while !segments.is_empty() {
        match try_write(half, &segments) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            Ok(written) => advance(&mut segments, written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(half, &mut segments, &mut pinned, memory).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until the socket takes more.
async fn wait(
    half: &WriteHalf<'_>,
    segments: &mut VecDeque<Bytes>,
    pinned: &mut bool,
    memory: Option<&AnswerMemory>,
) -> Result<(), WriteError> {
    let began = Instant::now();
    loop {
        if let Ok(writable) = timeout(SLOW_AFTER, half.writable()).await {
            return Ok(writable?);
        }
        if std::mem::take(pinned) {
            unpin(segments);
        }
        if memory.is_some_and(|memory| memory.is_over(began.elapsed())) {
            return Err(WriteError::Deadline);
        }
    }
}

/// Copies small segments, neighbours into one.
fn unpin(segments: &mut VecDeque<Bytes>) {
    let mut own = VecDeque::with_capacity(segments.len());
    let mut copied = BytesMut::new();
    while let Some(segment) = segments.pop_front() {
        if segment.len() <= UNPINNED_BYTES_MAX {
            copied.extend_from_slice(&segment);
        }
        if segment.len() > UNPINNED_BYTES_MAX || copied.len() >= UNPINNED_BYTES_MAX {
            push(&mut own, &mut copied);
        }
        if segment.len() > UNPINNED_BYTES_MAX {
            own.push_back(segment);
        }
    }
    push(&mut own, &mut copied);
    *segments = own;
}

/// Moves what was copied, in as much memory as it needs.
fn push(own: &mut VecDeque<Bytes>, copied: &mut BytesMut) {
    if !copied.is_empty() {
        own.push_back(Bytes::from(std::mem::take(copied).to_vec()));
    }
}

fn try_write(half: &WriteHalf<'_>, segments: &VecDeque<Bytes>) -> io::Result<usize> {
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let count = segments.len().min(PIECES_MAX);
    for (piece, segment) in pieces.iter_mut().zip(segments) {
        *piece = IoSlice::new(segment);
    }
    half.try_write_vectored(pieces.get(..count).unwrap_or_default())
}

fn advance(segments: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = segments.front_mut() {
        if first.len() > written {
            first.advance(written);
            return;
        }
        written -= first.len();
        segments.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_a_slow_answer_holds_copies_of_its_small_segments_in_their_order() {
        let chunk = Bytes::from(vec![7; 1 << 20]);
        let large = Bytes::from(vec![9; UNPINNED_BYTES_MAX + 1]);
        let mut segments: VecDeque<Bytes> =
            [chunk.slice(0..10), chunk.slice(10..30), large.clone(), chunk.slice(5..6)].into();
        let before: Vec<u8> = segments.iter().flatten().copied().collect();
        unpin(&mut segments);
        assert!(chunk.is_unique(), "nothing of the chunk is held any more");
        assert_eq!(segments.iter().flatten().copied().collect::<Vec<u8>>(), before);
        assert_eq!(segments.iter().map(Bytes::len).collect::<Vec<_>>(), [30, large.len(), 1]);
        assert_eq!(segments[1].as_ptr(), large.as_ptr(), "what lies alone is not copied");
    }

    #[test]
    fn what_was_written_leaves_the_front_and_nothing_else() {
        let mut segments: VecDeque<Bytes> =
            ["abc", "", "de"].map(|text| Bytes::from_static(text.as_bytes())).into();
        advance(&mut segments, 1);
        assert_eq!(segments[0], "bc");
        advance(&mut segments, 3);
        assert_eq!(segments, [Bytes::from_static(b"e")]);
        advance(&mut segments, 1);
        assert!(segments.is_empty());
    }
}
