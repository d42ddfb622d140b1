//! The decoders that meet outside bytes, one target each.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: whatever the bytes, a target returns. Checksums are made right first, or no mutation would get behind them.
use crate::allocator::within;
use crate::flight::{flight_descriptor, flight_put, flight_ticket};
use crate::json_rows::{HELD_BYTES_MAX, json_rows};
use crate::seeds::arrow_table;
use crate::settings::settings;
use crate::statement::statement;
use bytes::Bytes;
use mink_group::{CommittedOffset, GroupValue, Record, RecordKey};
use mink_kafka_wire::{RequestHeader, decode_request};
use mink_log::{ProducerLimits, fold_producers, snapshot_info};
use mink_metadata::{Row, State};
use mink_record::arrow::{ArrowBatch, EncodeOptions, Intake, IpcMessage, arrow_schema};
use mink_record::kafka::{
    BatchHeader, Codec, ProducedLimits, batches, check_produced, first_at_or_after, keyless,
    max_timestamp_record, records, set_append_time,
};
use mink_types::{
    ArrowCompression, ClusterName, DatabaseName, Limits, LogIndex, RowHash, TableName, TableOptions,
};
use s3stream::format::{Header, TAIL_BYTES, Tail};
use sha2::{Digest as _, Sha256};

/// What a batch may inflate to here.
pub(crate) const INFLATED_MAX: usize = 1 << 20;
/// A codec's own state: window and tables of zstd above all (8 MiB is its largest window here).
const CODEC_STATE: usize = 12 << 20;

/// Of a batch: where its length, its checksum and its attributes stand.
const BATCH_LENGTH_AT: usize = 8;
const BATCH_CHECKSUM_AT: usize = 17;
const BATCH_ATTRIBUTES_AT: usize = 21;

/// A decoder.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, as `--target` takes it.
    pub name: &'static str,
    run: fn(Vec<u8>),
    /// Bytes at the beginning that mutations leave alone.
    pub fixed: usize,
    /// What it may hold: `factor` times the input, and `constant` bytes.
    factor: usize,
    constant: usize,
}

impl Target {
    /// Decodes `input`; gives the most bytes that were held meanwhile.
    ///
    /// # Panics
    /// If the decoder does: a fault that the fuzzer looks for. More memory than its budget ends the process.
    pub fn attempt(&self, input: Vec<u8>) -> usize {
        let budget = input.len() * self.factor + self.constant;
        within(budget, || (self.run)(input))
    }
}

const fn target(name: &'static str, run: fn(Vec<u8>), fixed: usize) -> Target {
    Target { name, run, fixed, factor: 16, constant: 64 << 10 }
}

const fn inflating(name: &'static str, run: fn(Vec<u8>)) -> Target {
    Target { name, run, fixed: 0, factor: 4, constant: 2 * INFLATED_MAX + CODEC_STATE }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    // Its key and version stay, so that every API is met as often as it stands in the seeds.
    target("request", request, 4),
    target("batch", batch, 0),
    inflating("records-none", |input| codec(Codec::None, input)),
    inflating("records-gzip", |input| codec(Codec::Gzip, input)),
    inflating("records-snappy", |input| codec(Codec::Snappy, input)),
    inflating("records-lz4", |input| codec(Codec::Lz4, input)),
    inflating("records-zstd", |input| codec(Codec::Zstd, input)),
    // Decoded, conformed and written anew: the same bytes some times over, each within the cap.
    Target {
        name: "arrow-batch",
        run: arrow_batch,
        fixed: 0,
        factor: 16,
        constant: 12 * INFLATED_MAX + CODEC_STATE,
    },
    // Columns that grow by doubling, as they are read, and once more as they are read again.
    Target { name: "json-rows", run: json_rows, fixed: 0, factor: 16, constant: 12 * HELD_BYTES_MAX },
    // Beside the message, what a scan of the table takes: its columns, and what their rows are compared by.
    Target { name: "flight-ticket", run: flight_ticket, fixed: 0, factor: 64, constant: 1 << 20 },
    Target { name: "flight-descriptor", run: flight_descriptor, fixed: 0, factor: 64, constant: 1 << 20 },
    // As arrow-batch, and once more for the parts that the rows of a message go to.
    Target {
        name: "flight-put",
        run: flight_put,
        fixed: 0,
        factor: 32,
        constant: 16 * INFLATED_MAX + CODEC_STATE,
    },
    target("object", object, 0),
    target("footer", footer, 0),
    target("snapshot", snapshot, 0),
    target("row", row, 0),
    target("producers", producers, 0),
    target("group-records", group_records, 0),
    target("config", config, 0),
    // Most of what it holds are the seventy flags themselves, built some times over.
    Target { name: "settings", run: settings, fixed: 0, factor: 16, constant: 1 << 20 },
    // `a INT,` is a field of a schema, of which a growing list holds three for one; it is then held as a statement, as a schema and as
    // what its text is read as again.
    Target { name: "statement", run: statement, fixed: 0, factor: 256, constant: 64 << 10 },
];

fn request(input: Vec<u8>) {
    if let Ok((header, body)) = RequestHeader::decode(Bytes::from(input)) {
        drop(std::hint::black_box(decode_request(header.api_key, header.api_version, body)));
    }
}

fn batch(mut input: Vec<u8>) {
    let limits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: INFLATED_MAX };
    drop(check_produced(&input, limits));
    seal_batch(&mut input);
    drop(check_produced(&input, limits));
    for found in batches(Bytes::from(input.clone())) {
        let Ok((header, bytes)) = found else { break };
        drop(header.verify_checksum(&bytes));
    }
    // What corrects a checksum must find the one that looking at all bytes finds.
    let sound = |batch: &[u8]| {
        let header = BatchHeader::parse(batch).ok()?;
        header.verify_checksum(batch).ok()
    };
    if sound(&input).is_some() && set_append_time(&mut input, 1_700_000_000_000).is_ok() {
        assert!(sound(&input).is_some(), "the checksum was not corrected");
    }
}

/// Reads the records of a batch as a node does that trusts its header.
fn codec(codec: Codec, mut input: Vec<u8>) {
    if let Some(attributes) = input.get_mut(BATCH_ATTRIBUTES_AT + 1) {
        *attributes = *attributes & !7 | codec as u8;
    }
    seal_batch(&mut input);
    let Ok(header) = BatchHeader::parse(&input) else { return };
    let bytes = Bytes::from(input);
    if let Ok(records) = records(&header, bytes.clone(), INFLATED_MAX) {
        for record in records {
            let Ok(record) = record else { break };
            std::hint::black_box(record.headers.iter().count());
        }
    }
    drop(first_at_or_after(&header, bytes.clone(), 1, INFLATED_MAX));
    drop(max_timestamp_record(&header, bytes.clone(), INFLATED_MAX));
    drop(keyless(&header, bytes, INFLATED_MAX, 16));
}

/// A stored batch of Arrow, and its message as one that a client sends.
fn arrow_batch(mut input: Vec<u8>) {
    seal_batch(&mut input);
    let table = arrow_table();
    let Ok(batch) = ArrowBatch::parse(&Bytes::from(input)) else { return };
    drop(std::hint::black_box(batch.statistics()));
    let ids: Vec<_> = table.columns().iter().rev().map(|column| column.id).collect();
    drop(std::hint::black_box(batch.prune(&table, &ids)));
    let Ok(intake) = Intake::new(&table, &arrow_schema(&table)) else { return };
    let limits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: INFLATED_MAX };
    let message = IpcMessage { metadata: batch.metadata(), body: batch.body() };
    for compression in [ArrowCompression::None, ArrowCompression::Zstd] {
        let Ok(stored) = intake.accept(message, limits, EncodeOptions { compression }, None) else {
            continue;
        };
        // What is acked must be read by everyone.
        let stored = ArrowBatch::parse(&stored).unwrap_or_else(|error| panic!("accepted, but {error}"));
        let rows = stored.decode(&table).unwrap_or_else(|error| panic!("accepted, but {error}"));
        assert_eq!(rows.num_rows(), stored.rows());
        assert!(stored.verify_checksum().is_ok() && stored.statistics().is_ok());
        assert!(stored.prune(&table, &ids).is_ok());
    }
}

/// Makes length and checksum right.
fn seal_batch(batch: &mut [u8]) {
    let length = i32::try_from(batch.len().saturating_sub(BATCH_LENGTH_AT + 4)).unwrap_or(i32::MAX);
    put(batch, BATCH_LENGTH_AT, &length.to_be_bytes());
    let crc = crc32c::crc32c(batch.get(BATCH_ATTRIBUTES_AT..).unwrap_or_default());
    put(batch, BATCH_CHECKSUM_AT, &crc.to_be_bytes());
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// A WAL or stream object: as it is, then with its tail's checksum made right.
fn object(mut input: Vec<u8>) {
    drop(std::hint::black_box(Header::decode(&input)));
    read_end(&input);
    let Some(tail) = input.len().checked_sub(TAIL_BYTES) else { return };
    let crc = crc32c::crc32c(input.get(tail..tail + TAIL_BYTES - 8).unwrap_or_default());
    put(&mut input, tail + TAIL_BYTES - 8, &crc.to_le_bytes());
    put(&mut input, tail + TAIL_BYTES - 4, b"MEND");
    read_end(&input);
}

fn read_end(object: &[u8]) {
    let Some((before, tail)) = object.len().checked_sub(TAIL_BYTES).map(|at| object.split_at(at)) else {
        return;
    };
    let Ok(tail) = Tail::decode(tail, object.len() as u64) else { return };
    let start = usize::try_from(tail.footer_position).unwrap_or(usize::MAX);
    drop(std::hint::black_box(tail.footer(before.get(start..).unwrap_or_default())));
}

/// The first 8 bytes say where it lies in its object, the rest is the footer.
#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
fn footer(input: Vec<u8>) {
    let Some((position, bytes)) = input.split_first_chunk::<8>() else { return };
    let tail = Tail {
        footer_position: u64::from_le_bytes(*position),
        footer_length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        footer_crc: crc32c::crc32c(bytes),
        total: 0,
    };
    if let Ok(footer) = tail.footer(bytes) {
        std::hint::black_box(footer.memory_bytes());
    }
}

/// A snapshot of the metadata, digest and length made right.
fn snapshot(mut input: Vec<u8>) {
    const DIGEST: usize = 32;
    drop(State::restore(&input));
    // Magic, version (4), length (8), body, digest.
    let head = State::new(mink_types::ClusterUuid([0; 16])).snapshot();
    let magic = magic_bytes(&head);
    let Some(body_end) = input.len().checked_sub(DIGEST).filter(|end| *end >= magic + 12) else { return };
    let length = (body_end - magic - 12) as u64;
    put(&mut input, magic + 4, &length.to_le_bytes());
    let digest: [u8; DIGEST] = Sha256::digest(input.get(magic + 12..body_end).unwrap_or_default()).into();
    put(&mut input, body_end, &digest);
    drop(std::hint::black_box(State::restore(&input)));
}

/// Bytes before the version of a snapshot: found where its length stands.
fn magic_bytes(snapshot: &[u8]) -> usize {
    let body = |magic: usize| snapshot.len().checked_sub(magic + 12 + 32).map(|n| (n as u64).to_le_bytes());
    (1..32)
        .find(|magic| body(*magic).is_some_and(|n| snapshot.get(magic + 4..magic + 12) == Some(n.as_slice())))
        .unwrap_or(0)
}

fn row(input: Vec<u8>) {
    let row = Row { index: LogIndex(1), hash: RowHash::default(), payload: input };
    drop(std::hint::black_box(row.commands()));
}

#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
fn producers(input: Vec<u8>) {
    let _checked = std::hint::black_box(snapshot_info(&input));
    let limits = ProducerLimits { producers_max: 10, expiry_ms: 1_000 };
    drop(std::hint::black_box(fold_producers(&input, [], limits)));
}

/// A keyed record: one byte for the length of its key, key, value.
#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
fn group_records(input: Vec<u8>) {
    let Some((length, rest)) = input.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*length).min(rest.len()));
    drop(std::hint::black_box(RecordKey::decode(key)));
    drop(std::hint::black_box(CommittedOffset::decode(value)));
    drop(std::hint::black_box(GroupValue::decode(value)));
    drop(std::hint::black_box(Record::decode(key, Some(value))));
    drop(std::hint::black_box(Record::decode(key, None)));
}

/// Text: `name=value`, as a topic's configuration and as names.
fn config(input: Vec<u8>) {
    let Ok(text) = String::from_utf8(input) else { return };
    let (name, value) = text.split_once('=').unwrap_or((&text, ""));
    let mut options = TableOptions::default();
    drop(std::hint::black_box(options.set(name, value, &Limits::default())));
    drop(std::hint::black_box(DatabaseName::new(name)));
    drop(std::hint::black_box(TableName::new(value)));
    drop(std::hint::black_box(ClusterName::new(name)));
}
