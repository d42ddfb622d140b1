//! Batches that inflate a thousandfold stay under the cap, measured by the process's own memory (K-28, K-29).
//!
//! A binary of its own with one test, so that nothing else allocates meanwhile.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's own data")]

use std::io::Write;

use bytes::Bytes;
use mink_record::RecordErrorKind;
use mink_record::kafka::{
    BatchBuilder, BatchHeader, Codec, HEADER_BYTES, INFLATE_WORKING_BYTES_MAX, ProducedLimits, RecordRef,
    check_produced, first_at_or_after, records,
};

const CAP: usize = 16 << 20;
const LIMITS: ProducedLimits = ProducedLimits { batch_bytes_max: 8 << 20, inflated_bytes_max: CAP };
/// What a step of growth holds twice, at most half of the cap, and the allocator's own.
const SLACK: usize = CAP / 2 + (2 << 20);

#[test]
fn bombs_and_great_counts_stay_under_the_cap() {
    k_28_great_counts_allocate_nothing();
    k_29_bombs_stop_at_the_cap(Codec::Gzip, &gzip());
    k_29_bombs_stop_at_the_cap(Codec::Snappy, &snappy());
    k_29_bombs_stop_at_the_cap(Codec::Lz4, &lz4());
    k_29_bombs_stop_at_the_cap(Codec::Zstd, &zstd());
}

fn k_28_great_counts_allocate_nothing() {
    // A record with i32::MAX headers.
    let headers = [10 << 1, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    let with_headers = batch(Codec::None, 1, &headers);
    let with_records = batch(Codec::None, i32::MAX, &headers);
    // Reserved memory shows in the size of the address space, whether it is touched or not.
    let before = status("VmPeak:");
    for bytes in [with_headers, with_records] {
        let header = BatchHeader::parse(&bytes).unwrap();
        let read = records(&header, bytes, CAP).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        assert_eq!(read.unwrap_err().kind(), RecordErrorKind::InvalidRecord);
    }
    assert!(status("VmPeak:") - before < 1 << 20);
}

fn k_29_bombs_stop_at_the_cap(codec: Codec, payload: &[u8]) {
    let bytes = batch(codec, 1_000, payload);
    let header = check_produced(&bytes, LIMITS).expect("nothing is inflated to accept a batch");
    let lookup = |bytes| first_at_or_after(&header, bytes, 0, CAP).map(drop);
    let all = |bytes| records(&header, bytes, CAP).map(drop);
    for read in [&lookup as &dyn Fn(Bytes) -> _, &all] {
        // Resets the high mark of resident memory.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status("VmRSS:");
        let error = read(bytes.clone()).unwrap_err();
        assert_eq!(error.kind(), RecordErrorKind::InflatedTooLarge, "{codec}: {error}");
        let grown = status("VmHWM:").saturating_sub(before);
        assert!(grown < CAP + INFLATE_WORKING_BYTES_MAX + SLACK, "{codec} grew the process by {grown} bytes");
        println!("{codec}: {} bytes, grown by {grown}", payload.len());
    }
}

/// A field of /proc/self/status in bytes.
fn status(field: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

const SEED_BYTES: usize = 16 << 20;

/// 4 MiB that are 4 GiB of zeros: members inflate one after the other.
fn gzip() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; SEED_BYTES]).unwrap();
    encoder.finish().unwrap().repeat(256)
}

/// 1 MiB that is more than 4 GiB of zeros: frames inflate one after the other.
fn zstd() -> Vec<u8> {
    let frame = zstd::bulk::compress(&vec![0; SEED_BYTES], 3).unwrap();
    frame.repeat((1 << 20) / frame.len())
}

/// 1 MiB that is 250 MiB of zeros, the most that lz4 can do.
fn lz4() -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max4MB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    for _ in 0..250 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
}

/// 1.2 MiB that are 25 MiB of zeros, the most that snappy can do.
fn snappy() -> Vec<u8> {
    let block = snap::raw::Encoder::new().compress_vec(&vec![0; 1 << 20]).unwrap();
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for _ in 0..25 {
        framed.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
        framed.extend_from_slice(&block);
    }
    framed
}

/// A batch with this record count and these bytes as its records.
fn batch(codec: Codec, count: i32, payload: &[u8]) -> Bytes {
    let mut builder = BatchBuilder::new();
    builder.push(RecordRef::default()).unwrap();
    let mut bytes = builder.build(Codec::None, None).unwrap().to_vec();
    bytes.truncate(HEADER_BYTES);
    bytes.extend_from_slice(payload);
    let length = u32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[22] = codec as u8;
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}
