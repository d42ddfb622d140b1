//! Batches of real clients, from testdata.

use super::*;

/// What testdata/README.md says was produced.
fn expected(index: i64, null_header: Option<Vec<u8>>) -> Owned {
    let mut headers = Vec::new();
    if index % 3 >= 1 {
        headers.push(("h".to_owned(), Some(vec![index as u8])));
    }
    if index % 3 >= 2 {
        headers.push(("ключ".to_owned(), null_header));
    }
    let filler = "x".repeat((index * 7 % 50) as usize);
    Owned {
        timestamp: 1_700_000_000_000 + index * 37 % 40 * 1_000,
        key: (index % 4 != 3).then(|| format!("key-{}", index % 7).into_bytes()),
        value: (index % 11 != 10).then(|| format!("värde {index} {filler}").into_bytes()),
        headers,
    }
}

fn check(name: &str, bytes: &'static [u8], codec: Codec) {
    let batch = Bytes::from_static(bytes);
    let header = check_produced(&batch, LIMITS).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(header.attributes.codec(), codec, "{name}");
    assert_eq!(header.record_count, 40, "{name}");
    // These two have no null for the value of a header.
    let null_header = name.starts_with("kafka").then(Vec::new);
    let all = decode(&batch).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(all.len(), 40, "{name}");
    for (index, record) in (0_i64..).zip(all) {
        assert_eq!(record.offset, index, "{name}");
        assert_eq!(owned(record), expected(index, null_header.clone()), "{name}");
    }
    // Of the shuffled times, 39 s comes at the index with index * 37 % 40 = 39.
    let last = RecordTime { offset: 27, timestamp: 1_700_000_039_000 };
    assert_eq!(max_timestamp_record(&header, batch.clone(), CAP).unwrap(), Some(last), "{name}");
    assert_eq!(first_at_or_after(&header, batch, last.timestamp, CAP).unwrap(), Some(last), "{name}");
}

macro_rules! golden {
    ($($name:literal $codec:ident)*) => {
        #[test]
        fn batches_of_real_clients_are_accepted_and_read() {
            $(check($name, include_bytes!(concat!("../../../testdata/", $name, ".batch")), Codec::$codec);)*
        }
    };
}

golden! {
    "java-none" None "java-gzip" Gzip "java-snappy" Snappy "java-lz4" Lz4 "java-zstd" Zstd
    "librdkafka-none" None "librdkafka-gzip" Gzip "librdkafka-snappy" Snappy "librdkafka-lz4" Lz4 "librdkafka-zstd" Zstd
    "kafka-python-none" None "kafka-python-gzip" Gzip "kafka-python-snappy" Snappy "kafka-python-lz4" Lz4 "kafka-python-zstd" Zstd
    "aiokafka-none" None "aiokafka-gzip" Gzip "aiokafka-snappy" Snappy "aiokafka-lz4" Lz4 "aiokafka-zstd" Zstd
    "kafkajs-none" None "kafkajs-gzip" Gzip
}

#[test]
fn our_batch_is_the_java_clients_byte_for_byte() {
    let java = include_bytes!("../../../testdata/java-none.batch");
    let header = BatchHeader::parse(java).unwrap();
    let stamp = ProducerStamp {
        id: header.producer_id,
        epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
    };
    let list: Vec<_> = (0..40).map(|index| expected(index, None)).collect();
    let mut ours = build(&list, Codec::None, Some(stamp)).to_vec();
    set_offset_and_epoch(&mut ours, 0, header.partition_leader_epoch).unwrap();
    assert_eq!(ours, java);
}
