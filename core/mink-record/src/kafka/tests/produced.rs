//! What is accepted from a producer, and the kind of each refusal.

use super::*;

#[test]
fn i19_each_fault_of_a_produced_batch_has_its_kind() {
    let batch = simple(3, Codec::None);
    check_produced(&batch, LIMITS).unwrap();
    let after_change = |change: &dyn Fn(&mut Vec<u8>)| produced_kind(&forged(&batch, |bytes| change(bytes)));
    let set = |at: usize, field: &'static [u8]| {
        after_change(&move |bytes: &mut Vec<u8>| bytes[at..at + field.len()].copy_from_slice(field))
    };

    assert_eq!(produced_kind(&[]), Kind::InvalidRecord, "no batch");
    assert_eq!(set(0, &[0, 0, 0, 0, 0, 0, 0, 1]), Kind::InvalidRecord, "base offset 1");
    assert_eq!(set(0, &[0xff; 8]), Kind::InvalidRecord, "base offset -1");
    assert_eq!(set(8, &[0, 0, 0, 48]), Kind::Corrupt, "length below a header");
    assert_eq!(set(8, &[0xff; 4]), Kind::Corrupt, "length -1");
    assert_eq!(set(8, &[0, 0, 1, 0]), Kind::Incomplete, "length beyond the end");
    assert_eq!(set(8, &[0x7f, 0xff, 0xff, 0xff]), Kind::TooLarge, "length i32::MAX");
    assert_eq!(set(16, &[0]), Kind::OldFormat);
    assert_eq!(set(16, &[1]), Kind::OldFormat);
    assert_eq!(set(16, &[3]), Kind::InvalidRecord, "magic 3");
    assert_eq!(set(16, &[0xff]), Kind::InvalidRecord, "magic -1");
    assert_eq!(set(21, &[0, 5]), Kind::UnsupportedCodec);
    assert_eq!(set(21, &[0, 7]), Kind::UnsupportedCodec);
    assert_eq!(set(21, &[0, 0x08]), Kind::InvalidTimestamp, "log append time");
    assert_eq!(set(21, &[0, 0x10]), Kind::Transactional);
    assert_eq!(set(21, &[0, 0x20]), Kind::Control);
    assert_eq!(set(21, &[0, 0x30]), Kind::Control, "a transaction marker");
    assert_eq!(set(21, &[0, 0x40]), Kind::InvalidRecord, "delete horizon");
    assert_eq!(set(21, &[0, 0x80]), Kind::InvalidRecord, "unknown bit");
    assert_eq!(set(21, &[0x80, 0]), Kind::InvalidRecord, "unknown bit, the sign");
    assert_eq!(set(23, &[0, 0, 0, 3]), Kind::InvalidRecord, "delta 3 of 3 records");
    assert_eq!(set(23, &[0xff; 4]), Kind::InvalidRecord, "delta -1");
    assert_eq!(set(57, &[0, 0, 0, 0]), Kind::InvalidRecord, "no records");
    assert_eq!(set(57, &[0xff; 4]), Kind::InvalidRecord, "-1 records");
    assert_eq!(after_change(&|bytes| bytes.push(0)), Kind::InvalidRecord, "a byte behind");
    let two = [batch.clone(), batch.clone()].concat();
    assert_eq!(produced_kind(&two), Kind::InvalidRecord, "two batches");
    let tight = ProducedLimits { batch_bytes_max: batch.len() - 1, ..LIMITS };
    assert_eq!(check_produced(&batch, tight).unwrap_err().kind(), Kind::TooLarge);
    check_produced(&batch, ProducedLimits { batch_bytes_max: batch.len(), ..LIMITS }).unwrap();
}

#[test]
fn an_old_message_set_shorter_than_a_new_header_is_named_as_such() {
    // Format 0: offset, size, CRC, magic, attributes, null key, null value: 26 bytes.
    let mut old = [0_u8; 26];
    old[11] = 14;
    old[18..26].fill(0xff);
    assert_eq!(produced_kind(&old), Kind::OldFormat);
}

#[test]
fn producer_fields_count_only_with_a_producer_id() {
    let with = |id: i64, epoch: i16, sequence: i32| {
        let batch = forged(&simple(1, Codec::None), |bytes| {
            put(43, id.to_be_bytes())(bytes);
            put(51, epoch.to_be_bytes())(bytes);
            put(53, sequence.to_be_bytes())(bytes);
        });
        check_produced(&batch, LIMITS).map(|header| header.is_idempotent()).map_err(|error| error.kind())
    };
    assert_eq!(with(-1, -1, -1), Ok(false), "Java");
    assert_eq!(with(-1, 0, 0), Ok(false), "kafkajs");
    assert_eq!(with(-1, -1, 0), Ok(false), "sarama");
    assert_eq!(with(0, 0, 0), Ok(true));
    assert_eq!(with(5, i16::MAX, i32::MAX), Ok(true));
    assert_eq!(with(5, -1, 0), Err(Kind::InvalidRecord));
    assert_eq!(with(5, 0, -1), Err(Kind::InvalidRecord));
    assert_eq!(with(-2, 0, 0), Err(Kind::InvalidRecord));
}

#[test]
fn i19_every_flipped_bit_behind_the_checksum_is_seen() {
    let batch = simple(2, Codec::Lz4);
    for at in 17 * 8..batch.len() * 8 {
        let mut bytes = batch.to_vec();
        bytes[at / 8] ^= 1 << (at % 8);
        assert_eq!(
            produced_kind(&bytes),
            Kind::Corrupt,
            "bit {at}: damage is not taken for a producer's fault"
        );
    }
}

#[test]
fn errors_say_what_would_be_accepted() {
    let limits = ProducedLimits { batch_bytes_max: 100, ..LIMITS };
    let error = check_produced(&simple(9, Codec::None), limits).unwrap_err();
    assert!(error.message().ends_with("max.message.bytes accepts 100"), "{error}");
}
