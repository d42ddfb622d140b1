//! Inflating the records of a batch under a cap.
//!
//! Lives on: anywhere (pure). Costs CPU by the cap: on a core, only within the budget its caller keeps.
//! Invariants: I20: at no time does the output exceed the cap; sizes that the bytes state are believed only as far
//! as the bytes that are really there could produce them (K-29).

use std::io::{self, Read};

use super::Codec;
use super::codec::{XERIAL_HEADER_BYTES, XERIAL_MAGIC};
use crate::bounded::Bounded;
use crate::{RecordError, RecordErrorKind};

/// What a codec may hold beside the output while it inflates, in bytes: lz4 with linked blocks of 4 MiB is the
/// hungriest (one block in, two and 64 KiB out), zstd has a window of 8 MiB.
pub const INFLATE_WORKING_BYTES_MAX: usize = 16 << 20;

/// 8 MiB, the window that RFC 9659 lets every decoder expect; the format itself allows 2 GiB and more.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
const _: () = assert!(1_usize << ZSTD_WINDOW_LOG_MAX < INFLATE_WORKING_BYTES_MAX);
const LZ4_FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Three bytes of snappy copy at most 64, so no block grows more than this; a greater stated length is a lie.
const SNAPPY_GROWTH_MAX: usize = 22;
/// First step of the output, if the input does not ask for more.
const STEP_BYTES_MIN: usize = 4 * 1024;
/// First guess of how far records shrink.
const GROWTH_EXPECTED: usize = 4;

/// The plain bytes behind `compressed`.
pub(crate) fn inflate(codec: Codec, compressed: &[u8], bytes_max: usize) -> Result<Vec<u8>, RecordError> {
    let output = Output::new(compressed.len(), bytes_max);
    match codec {
        Codec::None => Ok(compressed.to_vec()),
        Codec::Gzip => output.fill(codec, flate2::bufread::MultiGzDecoder::new(compressed)),
        Codec::Snappy => snappy(compressed, output),
        Codec::Lz4 => lz4(compressed, output),
        Codec::Zstd => {
            let decoder = ::zstd::stream::read::Decoder::with_buffer(compressed).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Ok(decoder)
            });
            output.fill(codec, decoder.map_err(|error| damaged(codec, error))?)
        }
    }
}

fn damaged(codec: Codec, error: impl std::fmt::Display) -> RecordError {
    RecordError::invalid(format!("the records are not sound {codec}: {error}"))
}

fn lz4(compressed: &[u8], output: Output) -> Result<Vec<u8>, RecordError> {
    // The decoder would also take the legacy frame format with blocks of 8 MiB, which no Kafka client writes.
    if !compressed.starts_with(&LZ4_FRAME_MAGIC) {
        return Err(damaged(Codec::Lz4, "no lz4 frame"));
    }
    output.fill(Codec::Lz4, lz4_flex::frame::FrameDecoder::new(compressed))
}

/// A bare block, as librdkafka sends it, or snappy-java's framing: blocks with a length before each.
fn snappy(compressed: &[u8], mut output: Output) -> Result<Vec<u8>, RecordError> {
    let mut decoder = snap::raw::Decoder::new();
    if !compressed.starts_with(&XERIAL_MAGIC) {
        output.block(&mut decoder, compressed)?;
        return Ok(output.plain);
    }
    let cut = || damaged(Codec::Snappy, "a block is cut short");
    let mut at = Bounded::new(compressed);
    while !at.rest().is_empty() {
        // Streams put one after the other start again with a header.
        if at.rest().starts_with(&XERIAL_MAGIC) {
            at.take(XERIAL_HEADER_BYTES).ok_or_else(cut)?;
            continue;
        }
        let length = at.i32().and_then(|length| usize::try_from(length).ok()).ok_or_else(cut)?;
        let block = at.take(length).ok_or_else(cut)?;
        output.block(&mut decoder, block)?;
    }
    Ok(output.plain)
}

/// Plain bytes that grow up to the cap.
struct Output {
    plain: Vec<u8>,
    bytes_max: usize,
}

impl Output {
    fn new(compressed_bytes: usize, bytes_max: usize) -> Self {
        let first = compressed_bytes.saturating_mul(GROWTH_EXPECTED).max(STEP_BYTES_MIN);
        Self { plain: Vec::with_capacity(first.min(bytes_max)), bytes_max }
    }

    fn full(&self) -> RecordError {
        RecordError::new(
            RecordErrorKind::InflatedTooLarge,
            format!("the records inflate to more than {} bytes, the most that is read back", self.bytes_max),
        )
    }

    /// Makes room for `more` bytes: doubled, so that growth is cheap, but never beyond the cap.
    fn reserve(&mut self, more: usize) {
        let needed = self.plain.len().saturating_add(more);
        if needed > self.plain.capacity() {
            let target = self.plain.capacity().saturating_mul(2).max(needed).min(self.bytes_max);
            self.plain.reserve_exact(target.saturating_sub(self.plain.len()));
        }
    }

    /// Reads to the end, or to one byte beyond the cap, which is the error.
    fn fill(mut self, codec: Codec, mut from: impl Read) -> Result<Vec<u8>, RecordError> {
        let mut filled = 0;
        loop {
            if filled == self.bytes_max {
                let mut beyond = [0];
                return match read(&mut from, &mut beyond).map_err(|error| damaged(codec, error))? {
                    0 => Ok(self.plain),
                    _ => Err(self.full()),
                };
            }
            if filled == self.plain.len() {
                self.reserve(1);
                let room = self.plain.capacity().min(self.bytes_max);
                self.plain.resize(room, 0);
            }
            let target = self.plain.get_mut(filled..).unwrap_or_default();
            match read(&mut from, target).map_err(|error| damaged(codec, error))? {
                0 => {
                    self.plain.truncate(filled);
                    return Ok(self.plain);
                }
                count => filled += count,
            }
        }
    }

    /// Appends one snappy block.
    fn block(&mut self, decoder: &mut snap::raw::Decoder, block: &[u8]) -> Result<(), RecordError> {
        let stated = snap::raw::decompress_len(block).map_err(|error| damaged(Codec::Snappy, error))?;
        if stated > block.len().saturating_mul(SNAPPY_GROWTH_MAX) {
            return Err(damaged(
                Codec::Snappy,
                format_args!("a block of {} bytes states {stated} inside", block.len()),
            ));
        }
        if stated > self.bytes_max - self.plain.len() {
            return Err(self.full());
        }
        let start = self.plain.len();
        self.reserve(stated);
        self.plain.resize(start + stated, 0);
        let target = self.plain.get_mut(start..).unwrap_or_default();
        let written = decoder.decompress(block, target).map_err(|error| damaged(Codec::Snappy, error))?;
        self.plain.truncate(start + written);
        Ok(())
    }
}

fn read(from: &mut impl Read, target: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(target) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
