//! The format of WAL and stream objects: header, blocks, footer, tail (docs/format.md has the tables).
//!
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: I19: no decoder panics, and no count from outside sizes an allocation beyond the bytes that remain; a
//! checksum guards every byte (header, each block, footer, tail). Little-endian only. Version 1.
mod build;
mod codec;
mod footer;
mod header;
mod tail;
#[cfg(test)]
mod tests;

pub(crate) use build::{Part, build, by_bucket, encoded_bytes, epochs_of, seal};
pub use codec::FormatError;
pub use footer::{Block, Footer, FooterBucket};
pub use header::{HEADER_BYTES, Header, Nonce, ObjectKind, Sealer};
pub(crate) use tail::split_end;
pub use tail::{TAIL_BYTES, Tail};

/// The version that this code writes, and the only one that it reads.
pub const FORMAT_VERSION: u16 = 1;
/// A block is closed at this many bytes; one long batch may make it longer. A reader fetches and checks whole blocks.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Most buckets of one stream object.
pub const BUCKETS_PER_OBJECT_MAX: usize = 4_096;
/// Longest footer that a reader takes, in bytes.
pub const FOOTER_BYTES_MAX: u32 = 32 << 20;
/// Most epoch starts that a footer keeps per bucket; the oldest go first.
pub const EPOCHS_PER_BUCKET_MAX: usize = 1_024;
