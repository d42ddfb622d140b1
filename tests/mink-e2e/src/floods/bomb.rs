//! A batch of a MiB whose one record says that it has 2 GB, in a stream that goes on for almost 4 GiB: made byte by byte, since no encoder
//! would hold it.
//! Lives on: anywhere (pure).

use bytes::Bytes;
use mink_record::kafka::{BatchBuilder, Codec, RecordRef};

/// Each block of the stream is four bytes long and stands for so many.
const BLOCK: u32 = 16 << 10;
const BLOCKS: usize = (1 << 18) - 64;

/// Where the header of a batch has its fields, and where its records begin.
const LENGTH_AT: usize = 8;
const CHECKSUM_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const RECORDS_AT: usize = 61;
const ZSTD: u8 = 4;

/// A batch that passes every check but that of its records.
pub(super) fn batch_of_4_gib(timestamp: i64) -> Bytes {
    let mut builder = BatchBuilder::new();
    let record = RecordRef { timestamp, key: Some(b"k"), value: Some(b"v"), headers: &[] };
    builder.push(record).unwrap();
    let mut batch = builder.build(Codec::None, None).unwrap()[..RECORDS_AT].to_vec();
    batch[ATTRIBUTES_AT + 1] |= ZSTD;
    batch.extend_from_slice(&stream());
    let length = i32::try_from(batch.len() - LENGTH_AT - 4).unwrap();
    batch[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_be_bytes());
    batch.into()
}

/// A zstd frame: the beginning of a record, then zeros without end.
fn stream() -> Vec<u8> {
    // Magic number; no size stated, no checksum; a window of 128 KiB.
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let mut record = varint(2_000_000_100);
    // Attributes, time and offset since the batch's, the key, and the value's length.
    record.extend_from_slice(&[0, 0, 0, 2, b'k']);
    record.extend(varint(2_000_000_000));
    let raw = u32::try_from(record.len()).unwrap() << 3;
    stream.extend_from_slice(&raw.to_le_bytes()[..3]);
    stream.extend_from_slice(&record);
    for block in 1..=BLOCKS {
        let last = u32::from(block == BLOCKS);
        stream.extend_from_slice(&(BLOCK << 3 | 1 << 1 | last).to_le_bytes()[..3]);
        stream.push(0);
    }
    stream
}

/// A number as records have it.
fn varint(number: u64) -> Vec<u8> {
    let mut left = number << 1;
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push(u8::try_from(left & 0x7f).unwrap() | 0x80);
        left >>= 7;
    }
    bytes.push(u8::try_from(left).unwrap());
    bytes
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
