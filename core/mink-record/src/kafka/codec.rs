//! The compression codecs of a batch, and compressing with them.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is written here is what Kafka's Java client and librdkafka read: snappy in snappy-java's
//! framing, lz4 as a frame of independent blocks with a header checksum over the descriptor alone.

use std::fmt;
use std::io::{self, Write};

use crate::RecordError;

/// How the records of a batch are compressed. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Not at all.
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy blocks, usually in snappy-java's framing.
    Snappy = 2,
    /// LZ4 frame format.
    Lz4 = 3,
    /// RFC 8878.
    Zstd = 4,
}

impl Codec {
    /// All codecs in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| *codec as i16 == number)
    }

    /// The name that Kafka's configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Starts snappy-java's framing; its version and the oldest compatible one follow, then blocks with their lengths.
pub(super) const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version, compatible version.
pub(super) const XERIAL_HEADER_BYTES: usize = 16;
const XERIAL_VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// Of the input, for each block; what snappy-java uses.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Appends `records` to `out`, compressed.
pub(super) fn deflate(codec: Codec, records: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
    let written = match codec {
        Codec::None => {
            out.extend_from_slice(records);
            Ok(())
        }
        Codec::Gzip => gzip(records, out),
        Codec::Snappy => snappy(records, out),
        Codec::Lz4 => lz4(records, out),
        Codec::Zstd => zstd(records, out),
    };
    written
        .map_err(|error| RecordError::invalid(format!("records can't be compressed with {codec}: {error}")))
}

fn gzip(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(records)?;
    encoder.finish().map(drop)
}

fn snappy(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(&XERIAL_MAGIC);
    out.extend_from_slice(&XERIAL_VERSIONS);
    let mut encoder = snap::raw::Encoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(XERIAL_BLOCK_BYTES.min(records.len()))];
    for chunk in records.chunks(XERIAL_BLOCK_BYTES) {
        let length = encoder.compress(chunk, &mut block).map_err(io::Error::other)?;
        let stated = u32::try_from(length).map_err(io::Error::other)?;
        out.extend_from_slice(&stated.to_be_bytes());
        out.extend_from_slice(block.get(..length).unwrap_or_default());
    }
    Ok(())
}

fn lz4(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    // Kafka's Java client refuses linked blocks.
    let info = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(records)?;
    encoder.finish().map(drop).map_err(io::Error::other)
}

fn zstd(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = ::zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
    // Readers then size their window by the content instead of by the level.
    encoder.set_pledged_src_size(Some(records.len() as u64))?;
    encoder.write_all(records)?;
    encoder.finish().map(drop)
}
