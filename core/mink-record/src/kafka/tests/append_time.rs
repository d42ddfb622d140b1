//! A batch that is told when it was appended: its checksum is right, and nothing else of it changes.

use super::*;

/// The header and its checksum, both looked at anew.
fn stamped(batch: &Bytes, time: i64) -> (BatchHeader, Vec<u8>) {
    let mut bytes = batch.to_vec();
    set_append_time(&mut bytes, time).expect("a batch");
    let header = BatchHeader::parse(&bytes).expect("a batch");
    header.verify_checksum(&bytes).expect("the checksum is right");
    (header, bytes)
}

#[test]
fn all_records_bear_the_time_and_nothing_else_changes() {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = simple(20, codec);
        let before = BatchHeader::parse(&batch).expect("a batch");
        let (after, bytes) = stamped(&batch, 1_777_000_000_123);
        assert_eq!(after.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((after.max_timestamp, after.attributes.codec()), (1_777_000_000_123, codec));
        let back = BatchHeader {
            attributes: before.attributes,
            max_timestamp: before.max_timestamp,
            checksum: before.checksum,
            ..after
        };
        assert_eq!(back, before);
        assert_eq!(&bytes[HEADER_BYTES..], &batch[HEADER_BYTES..]);
        let read: Vec<_> =
            records(&after, bytes.into(), CAP).expect("opens").map(|r| r.expect("sound")).collect();
        assert_eq!(read.len(), 20);
        assert!(read.iter().all(|record| record.timestamp == 1_777_000_000_123));
    }
}

#[test]
fn a_second_time_replaces_the_first() {
    let batch = simple(3, Codec::Gzip);
    let (_, first) = stamped(&batch, 5);
    let (_, again) = stamped(&first.into(), 1_777_000_000_000);
    assert_eq!(again, stamped(&batch, 1_777_000_000_000).1);
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut bytes = simple(3, Codec::None).to_vec();
    bytes[17] ^= 0x10;
    set_append_time(&mut bytes, 77).expect("a batch");
    let header = BatchHeader::parse(&bytes).expect("a batch");
    assert_eq!(header.verify_checksum(&bytes).expect_err("damaged").kind(), Kind::Corrupt);
}

#[test]
fn i19_what_is_no_whole_batch_is_left_alone() {
    let batch = simple(3, Codec::None);
    for length in [0, 1, HEADER_BYTES - 1, HEADER_BYTES, batch.len() - 1] {
        let mut cut = batch[..length].to_vec();
        set_append_time(&mut cut, 77).expect_err("cut");
        assert_eq!(cut, &batch[..length]);
    }
}

proptest! {
    /// The correction equals a checksum computed anew, for batches of any length, with any bytes, time and attributes.
    #[test]
    fn the_correction_is_the_checksum_computed_anew(
        body in prop::collection::vec(any::<u8>(), 0..3_000),
        time in any::<i64>(),
        before in any::<i64>(),
        codec in 0_i16..5,
    ) {
        let mut bytes = simple(1, Codec::None)[..HEADER_BYTES].to_vec();
        bytes.extend(&body);
        let length = i32::try_from(bytes.len() - 12).expect("small");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[21..23].copy_from_slice(&codec.to_be_bytes());
        bytes[35..43].copy_from_slice(&before.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
        let (after, _) = stamped(&bytes.into(), time);
        prop_assert_eq!(after.max_timestamp, time);
    }
}

#[test]
fn a_batch_of_many_megabytes_is_corrected_too() {
    let mut builder = BatchBuilder::new();
    let value = vec![0x5a; (20 << 20) + 12_345];
    builder.push(RecordRef { timestamp: 1, value: Some(&value), ..RecordRef::default() }).expect("a record");
    let batch = builder.build(Codec::None, None).expect("a batch");
    stamped(&batch, i64::MAX);
}
