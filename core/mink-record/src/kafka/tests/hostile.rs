//! Bytes that lie about themselves (K-28, K-29, I19).

use super::*;

#[test]
fn k_28_counts_beyond_the_bytes_are_refused() {
    let batch = simple(3, Codec::None);
    let count = forged(&batch, |bytes| {
        put(57, i32::MAX.to_be_bytes())(bytes);
        put(23, (i32::MAX - 1).to_be_bytes())(bytes);
    });
    assert_eq!(produced_kind(&count), Kind::InvalidRecord);
    assert_eq!(decoded_kind(&count), Kind::InvalidRecord);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let count = forged(&simple(3, codec), |bytes| {
            put(57, i32::MAX.to_be_bytes())(bytes);
            put(23, (i32::MAX - 1).to_be_bytes())(bytes);
        });
        assert_eq!(produced_kind(&count), Kind::InvalidRecord, "{codec}");
        assert_eq!(decoded_kind(&count), Kind::InvalidRecord, "{codec}");
    }
    // length 11, attributes, deltas 0 0, null key, null value, header count i32::MAX
    let headers = [10 << 1, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(decoded_kind(&with_payload(Codec::None, 1, &headers)), Kind::InvalidRecord);
    // the same with -1 headers
    let headers = [6 << 1, 0, 0, 0, 1, 1, 1];
    assert_eq!(decoded_kind(&with_payload(Codec::None, 1, &headers)), Kind::InvalidRecord);
}

#[test]
fn i19_records_that_do_not_fill_their_lengths_are_refused() {
    let sound = [6 << 1, 0, 0, 0, 1, 1, 0];
    assert_eq!(decode(&with_payload(Codec::None, 1, &sound)).unwrap().len(), 1);
    for (why, payload) in [
        ("a byte behind the headers", &[7 << 1, 0, 0, 0, 1, 1, 0, 0][..]),
        ("a byte behind the records", &[6 << 1, 0, 0, 0, 1, 1, 0, 0]),
        ("length -1", &[1, 0, 0, 0, 1, 1, 0]),
        ("length beyond the end", &[7 << 1, 0, 0, 0, 1, 1, 0]),
        ("key length -2", &[6 << 1, 0, 0, 0, 3, 1, 0]),
        ("value beyond the record", &[6 << 1, 0, 0, 0, 1, 4, 0]),
        ("null header name", &[8 << 1, 0, 0, 0, 1, 1, 2, 1, 1]),
        ("offset delta 1 of one record", &[6 << 1, 0, 0, 2, 1, 1, 0]),
        ("offset delta -1", &[6 << 1, 0, 0, 1, 1, 1, 0]),
    ] {
        assert_eq!(decoded_kind(&with_payload(Codec::None, 1, payload)), Kind::InvalidRecord, "{why}");
    }
}

#[test]
fn i2_offsets_of_a_batch_never_repeat_or_fall() {
    let record = |delta: u8| [6 << 1, 0, 0, delta << 1, 1, 1, 0];
    let two =
        |first, second| decode(&with_payload(Codec::None, 2, &[record(first), record(second)].concat()));
    assert_eq!(two(0, 1).unwrap().len(), 2);
    assert_eq!(two(0, 0).unwrap_err().kind(), Kind::InvalidRecord);
    assert_eq!(two(1, 0).unwrap_err().kind(), Kind::InvalidRecord);
    assert_eq!(two(1, 2).unwrap_err().kind(), Kind::InvalidRecord);
}

#[test]
fn k_16_a_batch_with_gaps_or_none_left_is_read() {
    let gap = forged(&with_payload(Codec::None, 1, &[6 << 1, 0, 0, 4 << 1, 1, 1, 0]), put(23, [0, 0, 0, 9]));
    assert_eq!(decode(&gap).unwrap()[0].offset, 4);
    assert_eq!(BatchHeader::parse(&gap).unwrap().last_offset(), 9);
    for codec in Codec::ALL {
        assert_eq!(decode(&with_payload(codec, 0, &[])).unwrap(), []);
    }
}

#[test]
fn k_29_the_cap_is_exact() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = build(
            &[Owned { timestamp: 0, key: None, value: Some(vec![0; 200_000]), headers: vec![] }],
            codec,
            None,
        );
        let header = BatchHeader::parse(&batch).unwrap();
        // length 3, attributes, deltas 2, null key, value length 3, header count
        let inflated = 200_000 + 3 + 1 + 2 + 1 + 3 + 1;
        assert_eq!(records(&header, batch.clone(), inflated).unwrap().count(), 1, "{codec}");
        let error = records(&header, batch.clone(), inflated - 1).unwrap_err();
        assert_eq!(error.kind(), Kind::InflatedTooLarge, "{codec}");
        assert_eq!(records(&header, batch, 0).unwrap_err().kind(), Kind::InflatedTooLarge, "{codec}");
    }
}

#[test]
fn k_29_sizes_that_a_codec_states_are_not_believed() {
    // snappy: 4 GiB - 1 in five bytes
    let snappy = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert_eq!(decoded_kind(&with_payload(Codec::Snappy, 1, &snappy)), Kind::InvalidRecord);
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for length in [7, i32::MAX, -1, 8] {
        framed.truncate(16);
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(&snappy);
        assert_eq!(decoded_kind(&with_payload(Codec::Snappy, 1, &framed)), Kind::InvalidRecord, "{length}");
    }
    // zstd: a frame that wants a window of 1 GiB (exponent 20 over 1 KiB), one empty last block
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 1, 0, 0];
    assert_eq!(decoded_kind(&with_payload(Codec::Zstd, 1, &zstd)), Kind::InvalidRecord);
    // lz4: the legacy frame, which has blocks of 8 MiB
    let legacy = [0x02, 0x21, 0x4c, 0x18, 1, 0, 0, 0, 0];
    assert_eq!(decoded_kind(&with_payload(Codec::Lz4, 1, &legacy)), Kind::InvalidRecord);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        assert_eq!(decoded_kind(&with_payload(codec, 1, &[])), Kind::InvalidRecord, "{codec}");
    }
}

#[test]
fn i19_a_batch_cut_anywhere_is_an_error_and_nothing_worse() {
    for codec in Codec::ALL {
        let batch = simple(5, codec);
        for cut in 0..batch.len() {
            let cut_off = batch.slice(..cut);
            assert!(check_produced(&cut_off, LIMITS).is_err());
            assert!(decode(&cut_off).is_err());
            // Also with lengths and checksum that fit what is left.
            if cut > HEADER_BYTES {
                let resealed = with_payload(codec, 5, &batch[HEADER_BYTES..cut]);
                // An lz4 frame without its end mark and a gzip member without its trailer may still
                // hold all the records; then they must be the right ones.
                if let Ok(all) = decode(&resealed) {
                    assert_eq!(all.len(), 5, "{codec} cut at {cut}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn i19_mutations_never_panic(
        codec in proptest::sample::select(Codec::ALL.to_vec()),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = simple(20, codec).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        sign(&mut bytes);
        let batch = Bytes::from(bytes);
        let _outcome = check_produced(&batch, LIMITS);
        if let Ok(header) = BatchHeader::parse(&batch) {
            let _outcome = decode(&batch);
            let _outcome = first_at_or_after(&header, batch.clone(), 1_010, CAP);
            let _outcome = max_timestamp_record(&header, batch.clone(), CAP);
        }
        prop_assert!(batches(batch).count() < 20);
    }

    #[test]
    fn i19_noise_never_panics(codec in proptest::sample::select(Codec::ALL.to_vec()), noise: Vec<u8>) {
        let _outcome = BatchHeader::parse(&noise);
        let _outcome = check_produced(&noise, LIMITS);
        let batch = with_payload(codec, 1, &noise);
        // One record with this very length in a few bytes of noise is next to impossible, but sound if so.
        if let Ok(all) = decode(&batch) {
            prop_assert_eq!(all.len(), 1);
        }
    }
}
