//! Writes answers to a connection's socket: segments as they are, many in one system call.
//!
//! Lives on: the service runtime, one per connection.
//! Owns: nothing beyond a call.
//! Invariants: a client that does not take its answer loses its connection, so that it cannot hold the node's answer memory.
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;
use tokio::net::tcp::WriteHalf;

/// Pieces per system call.
const PIECES_MAX: usize = 64;

/// Slowest rate at which a client may take an answer, in bytes per second, after its first `patience`.
const RATE_MIN: u64 = 256 << 10;

/// Why an answer was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The client took too long.
    Deadline,
    /// The socket broke.
    Broken(io::Error),
}

/// Writes all segments in order.
pub(crate) async fn write_all(
    half: &WriteHalf<'_>,
    segments: VecDeque<Bytes>,
    patience: Duration,
) -> Result<(), WriteError> {
    let bytes: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
    let limit = patience + Duration::from_secs(bytes / RATE_MIN);
    match tokio::time::timeout(limit, write_segments(half, segments)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(WriteError::Broken(error)),
        Err(_elapsed) => Err(WriteError::Deadline),
    }
}

async fn write_segments(half: &WriteHalf<'_>, mut segments: VecDeque<Bytes>) -> io::Result<()> {
    while !segments.is_empty() {
        match try_write(half, &segments) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => advance(&mut segments, written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => half.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
