//! What the mutations begin with: sound inputs of each decoder.
//!
//! Lives on: the process; reads files of the repository.
use arrow_array::RecordBatch;
use mink_group::{CommittedOffset, GroupId, GroupValue, MemberId, MemberValue, RecordKey, TopicKey};
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use mink_kafka_wire::{OFFERED, Records, Request, encode_request, offer};
use mink_log::{LoggedBatch, ProducerLimits, Stamp, fold_producers};
use mink_metadata::{Command, FEATURE_LEVEL_MAX, Group, NewPartition, NewTable, State};
use mink_record::arrow::{ArrowBatch, EncodeOptions, encode};
use mink_record::kafka::{BatchBuilder, Codec, HeaderRef, RecordRef};
use mink_types::schema::{DataType, Field, FieldId, Literal, Schema, SchemaDraft};
use mink_types::{
    ArrowCompression, BucketIndex, ClusterUuid, CommitTime, DatabaseName, Incarnation, LogFormat, Offset,
    PartitionId, ProducerEpoch, ProducerId, RequestId, Sequence, SessionId, TableId, TableOptions, TablePath,
    TableUuid, WalNumber, Witness,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest seed that is taken from a file.
const SEED_BYTES_MAX: usize = 64 << 10;

/// Sound inputs of a target; never none.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = match target {
        "request" => requests(),
        "arrow-batch" => arrow_batches(),
        "json-rows" => crate::json_rows::seeds(),
        "flight-ticket" => crate::flight::tickets(),
        "flight-descriptor" => crate::flight::descriptors(),
        "flight-put" => crate::flight::puts(),
        "object" => objects(),
        "footer" => footers(),
        "snapshot" => snapshots(),
        "row" => rows(),
        "producers" => vec![producers()],
        "group-records" => group_records(),
        "config" => configs(),
        "settings" => read_all(&corpus("settings")),
        "statement" => read_all(&corpus("statements")),
        name => batches(name),
    };
    if seeds.is_empty() {
        seeds.push(Vec::new());
    }
    seeds
}

/// The table of the batch that pins the format, which has a column of each kind of layout.
pub(crate) fn arrow_table() -> Schema {
    let column = |name: &str, data_type: DataType| Field {
        id: FieldId::NONE,
        name: name.into(),
        data_type,
        nullable: true,
        default: None,
        comment: None,
    };
    let required = |name: &str, data_type: DataType| Field { nullable: false, ..column(name, data_type) };
    let pair = DataType::Row(vec![
        column("b", DataType::Boolean),
        required("d", DataType::Decimal { precision: 5, scale: 2 }),
    ]);
    let map = DataType::Map {
        key: Box::new(required("key", DataType::Char { length: 4 })),
        value: Box::new(column("value", DataType::Time { precision: 3 })),
    };
    let columns = vec![
        required("id", DataType::BigInt),
        column("name", DataType::String),
        column("list", DataType::Array(Box::new(column("element", pair)))),
        column("map", map),
        column("number", DataType::Double),
    ];
    let draft = SchemaDraft { columns, ..SchemaDraft::default() };
    Schema::create(draft).unwrap_or_else(|error| unreachable!("a table of ours: {error}"))
}

/// That batch.
fn pinned_batch() -> Vec<u8> {
    fs::read(repository().join("core/mink-record/testdata/arrow-none.batch")).unwrap_or_default()
}

/// Its rows.
pub(crate) fn arrow_rows() -> RecordBatch {
    let rows = ArrowBatch::parse(&pinned_batch().into()).and_then(|batch| batch.decode(&arrow_table()));
    rows.unwrap_or_else(|error| unreachable!("a batch of ours: {error}"))
}

/// The batch with each compression, whole and some rows of it.
fn arrow_batches() -> Vec<Vec<u8>> {
    let (table, rows) = (arrow_table(), arrow_rows());
    let mut seeds = vec![pinned_batch()];
    for compression in [ArrowCompression::None, ArrowCompression::Lz4, ArrowCompression::Zstd] {
        for rows in [rows.clone(), rows.slice(2, 1)] {
            let stored = encode(&rows, &table, EncodeOptions { compression }, None);
            seeds.extend(stored.into_iter().map(|stored| stored.to_vec()));
        }
    }
    seeds
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder)
}

/// Files below a folder, in order.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn read_all(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    files(folder, &mut found);
    found
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .filter(|bytes| bytes.len() <= SEED_BYTES_MAX)
        .collect()
}

/// Frames without their length: recorded from clients, and made here for every API and version.
fn requests() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for recorded in read_all(&corpus("requests")) {
        let mut rest = recorded.as_slice();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            let Some((frame, next)) = behind.split_at_checked(length) else { break };
            seeds.push(frame.to_vec());
            rest = next;
        }
    }
    for offer in OFFERED {
        for version in offer.decoded.iter() {
            // Zeros are a sound message of many an API: empty arrays, empty names.
            let mut frame = Vec::new();
            frame.extend_from_slice(&offer.key.code().to_be_bytes());
            frame.extend_from_slice(&version.to_be_bytes());
            frame.extend_from_slice(&[0; 6]);
            frame.resize(frame.len() + 48, 0);
            seeds.push(frame);
        }
    }
    add(&mut seeds, &produce());
    add(&mut seeds, &fetch());
    add(
        &mut seeds,
        &MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some("t".into()),
                ..MetadataRequestTopic::default()
            }]),
            ..MetadataRequest::default()
        },
    );
    add(
        &mut seeds,
        &JoinGroupRequest {
            group_id: "g".into(),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol::default(); 3],
            ..JoinGroupRequest::default()
        },
    );
    seeds
}

fn add<R: Request>(seeds: &mut Vec<Vec<u8>>, request: &R) {
    let Some(offer) = offer(R::API_KEY) else { return };
    for version in offer.decoded.iter() {
        if let Ok(frame) = encode_request(version, 5, Some(&"fuzz".into()), request) {
            seeds.push(frame.to_bytes().split_off(4).to_vec());
        }
    }
}

fn produce() -> ProduceRequest {
    let records = batch(Codec::None).map(|batch| Records::from(bytes::Bytes::from(batch)));
    ProduceRequest {
        topic_data: vec![TopicProduceData {
            name: "t".into(),
            partition_data: vec![PartitionProduceData { index: 0, records }; 2],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

fn fetch() -> FetchRequest {
    FetchRequest {
        topics: vec![FetchTopic {
            topic: "t".into(),
            partitions: vec![FetchPartition::default(); 3],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

fn batch(codec: Codec) -> Option<Vec<u8>> {
    let mut builder = BatchBuilder::new();
    for n in 0..20_u8 {
        let value = vec![n; usize::from(n) * 40];
        let headers =
            [("h", Some(value.as_slice())), ("none", None)].map(|(key, value)| HeaderRef { key, value });
        let headers = if n % 3 == 0 { headers.as_slice() } else { &[] };
        let record =
            RecordRef { timestamp: i64::from(n) * 10, key: Some(b"key"), value: Some(&value), headers };
        builder.push(record).ok()?;
    }
    builder.build(codec, None).ok().map(|batch| batch.to_vec())
}

fn batches(name: &str) -> Vec<Vec<u8>> {
    let wanted = |codec: &&Codec| name == "batch" || name.ends_with(codec.name());
    Codec::ALL.iter().filter(wanted).filter_map(|codec| batch(*codec)).collect()
}

fn objects() -> Vec<Vec<u8>> {
    read_all(&repository().join("tests/data/golden/v1/data/objects/mink"))
}

/// The footers of the objects, each behind its place.
fn footers() -> Vec<Vec<u8>> {
    let cut = |object: Vec<u8>| {
        let tail = object.len().checked_sub(s3stream::format::TAIL_BYTES)?;
        let place = *object.get(tail..)?.first_chunk::<8>()?;
        let start = usize::try_from(u64::from_le_bytes(place)).ok()?;
        Some([place.as_slice(), object.get(start..tail)?].concat())
    };
    objects().into_iter().filter_map(cut).collect()
}

fn rows() -> Vec<Vec<u8>> {
    let mut group = Group::new();
    let commands = [
        DatabaseName::new("kafka").ok().map(|name| Command::CreateDatabase { name }),
        Some(Command::DropTable { id: TableId(7) }),
        Some(Command::Fence { incarnation: Incarnation(3), by: Incarnation(4) }),
        Some(Command::Leave { incarnation: Incarnation(4), trim: WalNumber(5), seal: Some(WalNumber(9)) }),
        Some(Command::Probed { store: "s3://b/p".into(), sound: true, detail: "said".into() }),
        Some(Command::Commit {
            by: Incarnation(4),
            source: Incarnation(3),
            objects: Vec::new(),
            trim: Some(WalNumber(2)),
        }),
    ];
    for (counter, command) in (1_u64..).zip(commands.iter().flatten()) {
        // One that does not fit is left out.
        drop(group.push(RequestId { session: SessionId([1; 16]), counter }, command));
    }
    vec![group.row(Witness::default()).payload, columns().row(Witness::default()).payload]
}

/// A log that comes to a table with columns and a partition.
fn columns() -> Group {
    let mut group = Group::new();
    let database = DatabaseName::new("kafka").ok();
    let create = database.clone().map(|name| Command::CreateDatabase { name });
    let levels = (2..=FEATURE_LEVEL_MAX).map(|level| Command::RaiseFeatureLevel { level });
    let mut commands: Vec<Command> = create.into_iter().chain(levels).collect();
    // The id of what the first row's next command makes.
    let table = TableId((1 << 16) + commands.len() as u64);
    let path = TablePath::parse("kafka.t").ok();
    if let (Some(path), Some(kafka_database), Ok(schema)) = (path, database, Schema::create(draft())) {
        let options = TableOptions { format: LogFormat::Arrow, ..TableOptions::default() };
        let (schema, uuid) = (Some(Arc::new(schema)), TableUuid([5; 16]));
        let new = NewTable { path, uuid, options, schema, kafka_database, buckets_max: 100 };
        commands.push(Command::CreateTable(new));
        let values = vec![Literal::Integer(20_000)];
        commands.push(Command::CreatePartition(NewPartition { table, values, buckets_max: 100 }));
        commands.push(Command::DropPartition { table, partition: PartitionId(7) });
    }
    for (counter, command) in (1_u64..).zip(&commands) {
        // One that does not fit is left out.
        drop(group.push(RequestId { session: SessionId([1; 16]), counter }, command));
    }
    group
}

fn draft() -> SchemaDraft {
    let field = |name: &str, data_type| Field {
        id: FieldId::NONE,
        name: name.into(),
        data_type,
        nullable: true,
        default: None,
        comment: None,
    };
    let price = field("price", DataType::Decimal { precision: 12, scale: 2 });
    let tags = DataType::Array(Box::new(field("element", DataType::Char { length: 9 })));
    let columns = vec![
        field("day", DataType::Date),
        Field { default: Some(Literal::Decimal(-5)), comment: Some("said".into()), ..price },
        field("tags", DataType::Row(vec![field("of", tags), field("at", DataType::Time { precision: 6 })])),
    ];
    let partitioned_by = vec!["day".into()];
    SchemaDraft { columns, partitioned_by, ..SchemaDraft::default() }
}

/// Of an empty log, and of one with a table.
fn snapshots() -> Vec<Vec<u8>> {
    let mut state = State::new(ClusterUuid([7; 16]));
    let empty = state.snapshot();
    // A row that is refused leaves the state as it was.
    drop(state.apply(&columns().row(Witness::default())));
    vec![empty, state.snapshot()]
}

fn producers() -> Vec<u8> {
    let logged = (0..12_i64).map(|n| LoggedBatch {
        base_offset: Offset(n.unsigned_abs() * 3),
        count: 3,
        commit_time: CommitTime(n),
        stamp: Some(Stamp {
            producer: ProducerId(n % 4),
            epoch: ProducerEpoch(1),
            base_sequence: Sequence(i32::try_from(n / 4 * 3).unwrap_or(0)),
        }),
    });
    let limits = ProducerLimits { producers_max: 10, expiry_ms: 1_000 };
    fold_producers(&[], logged, limits).unwrap_or_default()
}

fn group_records() -> Vec<Vec<u8>> {
    let Ok(group) = GroupId::new("a group") else { return Vec::new() };
    let offset = CommittedOffset {
        offset: 5,
        leader_epoch: 2,
        commit_time: CommitTime(77),
        expires: Some(CommitTime(99)),
        metadata: "said".into(),
    };
    let topic = TopicKey { table: TableId(3), bucket: BucketIndex(1) };
    let member = |id: &str| MemberValue {
        member: MemberId::new(id),
        instance: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        metadata: vec![1; 30].into(),
        assignment: vec![2; 20].into(),
    };
    let value = GroupValue {
        generation: 3,
        protocol_type: Some("consumer".into()),
        protocol: Some("range".into()),
        leader: Some(MemberId::new("a")),
        emptied: None,
        members: vec![member("a"), member("b")],
    };
    let seed = |key: bytes::Bytes, value: bytes::Bytes| {
        let length = u8::try_from(key.len()).unwrap_or(u8::MAX);
        [&[length], key.as_ref(), value.as_ref()].concat()
    };
    vec![
        seed(RecordKey::Offset(group.clone(), topic).encode(), offset.encode()),
        seed(RecordKey::Group(group).encode(), value.encode()),
    ]
}

fn configs() -> Vec<Vec<u8>> {
    [
        "retention.ms=604800000",
        "retention.bytes=-1",
        "cleanup.policy=delete",
        "max.message.bytes=1048588",
        "name.of_a-topic=t",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
