//! What is built is read back, here and by another implementation, in both directions.

use super::*;

fn list() -> impl Strategy<Value = Vec<Owned>> {
    let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
    let headers = proptest::collection::vec((".{0,12}", bytes()), 0..4);
    let time = prop_oneof![Just(-1_i64), 0_i64..1 << 45, -(1_i64 << 61)..1 << 61];
    let record = (time, bytes(), bytes(), headers).prop_map(|(timestamp, key, value, headers)| Owned {
        timestamp,
        key,
        value,
        headers,
    });
    proptest::collection::vec(record, 1..30)
}

fn codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(Codec::ALL.to_vec())
}

fn oracle_codec(codec: Codec) -> oracle::Compression {
    match codec {
        Codec::None => oracle::Compression::None,
        Codec::Gzip => oracle::Compression::Gzip,
        Codec::Snappy => oracle::Compression::Snappy,
        Codec::Lz4 => oracle::Compression::Lz4,
        Codec::Zstd => oracle::Compression::Zstd,
    }
}

fn oracle_record(index: usize, record: &Owned) -> oracle::Record {
    let index = index as i64;
    oracle::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: 7,
        producer_epoch: 3,
        timestamp_type: oracle::TimestampType::Creation,
        offset: index,
        sequence: 100 + index as i32,
        timestamp: record.timestamp,
        key: record.key.clone().map(Into::into),
        value: record.value.clone().map(Into::into),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (key.clone().into(), value.clone().map(Into::into)))
            .collect(),
    }
}

/// The oracle keeps headers in a map, so names must differ.
fn distinct_headers(list: &mut [Owned]) {
    for record in list {
        for (index, header) in record.headers.iter_mut().enumerate() {
            header.0 = format!("{index}{}", header.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_built_is_accepted_and_read_back(list in list(), codec in codec(), base in 0_i64..1 << 60) {
        let stamp = ProducerStamp { id: 9, epoch: 2, base_sequence: i32::MAX };
        let mut bytes = build(&list, codec, Some(stamp)).to_vec();
        check_produced(&bytes, LIMITS).unwrap();
        set_offset_and_epoch(&mut bytes, base, 77).unwrap();
        let batch = Bytes::from(bytes);
        let header = BatchHeader::parse(&batch).unwrap();
        header.verify_checksum(&batch).unwrap();
        prop_assert_eq!((header.base_offset, header.partition_leader_epoch), (base, 77));
        prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (9, 2, i32::MAX));
        prop_assert_eq!(header.last_offset(), base + list.len() as i64 - 1);
        prop_assert_eq!(Some(header.max_timestamp), list.iter().map(|record| record.timestamp).max());
        let all = decode(&batch).unwrap();
        for (index, record) in all.iter().enumerate() {
            prop_assert_eq!(record.offset, base + index as i64);
        }
        prop_assert_eq!(all.into_iter().map(owned).collect::<Vec<_>>(), list);
    }

    #[test]
    fn another_implementation_reads_what_is_built(mut list in list(), codec in codec()) {
        distinct_headers(&mut list);
        let stamp = ProducerStamp { id: 7, epoch: 3, base_sequence: 100 };
        let set = oracle::RecordBatchDecoder::decode(&mut build(&list, codec, Some(stamp))).unwrap();
        let theirs: Vec<_> = list.iter().enumerate().map(|(index, r)| oracle_record(index, r)).collect();
        prop_assert_eq!(set.compression, oracle_codec(codec));
        prop_assert_eq!(set.records, theirs);
    }

    #[test]
    fn what_another_implementation_builds_is_read(mut list in list(), codec in codec()) {
        distinct_headers(&mut list);
        let theirs: Vec<_> = list.iter().enumerate().map(|(index, r)| oracle_record(index, r)).collect();
        let mut bytes = BytesMut::new();
        let options = oracle::RecordEncodeOptions { version: 2, compression: oracle_codec(codec) };
        oracle::RecordBatchEncoder::encode(&mut bytes, &theirs, &options).unwrap();
        let batch = bytes.freeze();
        let header = check_produced(&batch, LIMITS).unwrap();
        prop_assert_eq!(header.attributes.codec(), codec);
        prop_assert_eq!(decode(&batch).unwrap().into_iter().map(owned).collect::<Vec<_>>(), list);
    }
}

#[test]
fn records_beyond_every_codecs_block_size_come_back() {
    // Compressible and not, over the 32 and 64 KiB blocks of snappy and lz4.
    let mut noise = 1_u64;
    let mut value = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 56) as u8
    };
    let mixed: Vec<u8> = (0..300_000).map(|index| if index % 2_000 < 1_000 { 7 } else { value() }).collect();
    let list = vec![Owned { timestamp: 5, key: None, value: Some(mixed), headers: vec![] }; 2];
    for codec in Codec::ALL {
        let batch = build(&list, codec, None);
        let all: Vec<_> = decode(&batch).unwrap().into_iter().map(owned).collect();
        assert!(all == list, "{codec}");
    }
}

#[test]
fn records_without_compression_are_slices_of_the_batch() {
    let batch = simple(3, Codec::None);
    let inside = batch.as_ptr_range();
    for record in decode(&batch).unwrap() {
        assert!(inside.contains(&record.value.unwrap().as_ptr()));
    }
}
