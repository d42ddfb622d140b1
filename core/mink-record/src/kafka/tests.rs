//! What the tests of the Kafka format share: making batches, forging them, reading them back.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small indexes of test data"
)]

mod append_time;
mod by_time;
mod golden;
mod hostile;
mod keyless;
mod produced;
mod round_trip;
mod run;

use bytes::{Bytes, BytesMut};
use kafka_protocol::records as oracle;
use proptest::prelude::*;

use super::*;
use crate::{RecordError, RecordErrorKind as Kind};

const CAP: usize = 32 << 20;
const LIMITS: ProducedLimits = ProducedLimits { batch_bytes_max: 1_048_588, inflated_bytes_max: CAP };

type OwnedHeader = (String, Option<Vec<u8>>);

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

fn build(list: &[Owned], codec: Codec, producer: Option<ProducerStamp>) -> Bytes {
    let mut builder = BatchBuilder::new();
    for record in list {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
        let record = RecordRef {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        };
        let size = builder.size_with(&record);
        builder.push(record).unwrap();
        assert_eq!(builder.size(), size, "the size is known before the record is pushed");
    }
    builder.build(codec, producer).unwrap()
}

fn simple(count: usize, codec: Codec) -> Bytes {
    let list: Vec<_> = (0..count)
        .map(|index| Owned {
            timestamp: 1_000 + index as i64,
            key: Some(b"key".to_vec()),
            value: Some(format!("value {index}").into_bytes()),
            headers: vec![("a".into(), Some(vec![1])), ("b".into(), None)],
        })
        .collect();
    build(&list, codec, None)
}

fn owned(record: Record) -> Owned {
    Owned {
        timestamp: record.timestamp,
        key: record.key.map(Into::into),
        value: record.value.map(Into::into),
        headers: record
            .headers
            .iter()
            .map(|header| (String::from_utf8(header.key.into()).unwrap(), header.value.map(Into::into)))
            .collect(),
    }
}

fn decode(batch: &Bytes) -> Result<Vec<Record>, RecordError> {
    records(&BatchHeader::parse(batch)?, batch.clone(), CAP)?.collect()
}

/// Changes a batch and gives it the checksum that fits again.
fn forged(batch: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = batch.to_vec();
    change(&mut bytes);
    sign(&mut bytes);
    bytes.into()
}

fn sign(bytes: &mut [u8]) {
    if bytes.len() > 21 {
        let checksum = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn put<const N: usize>(at: usize, field: [u8; N]) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes| bytes[at..at + N].copy_from_slice(&field)
}

/// A batch with these bytes in place of its records.
fn with_payload(codec: Codec, count: i32, payload: &[u8]) -> Bytes {
    forged(&simple(1, Codec::None), |bytes| {
        bytes.truncate(HEADER_BYTES);
        bytes.extend_from_slice(payload);
        let length = (bytes.len() - 12) as i32;
        put(8, length.to_be_bytes())(bytes);
        put(21, (codec as i16).to_be_bytes())(bytes);
        put(23, (count - 1).max(0).to_be_bytes())(bytes);
        put(57, count.to_be_bytes())(bytes);
    })
}

fn produced_kind(batch: &[u8]) -> Kind {
    check_produced(batch, LIMITS).unwrap_err().kind()
}

fn decoded_kind(batch: &Bytes) -> Kind {
    decode(batch).unwrap_err().kind()
}
