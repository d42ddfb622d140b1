//! The bytes of rows and snapshots are those of the released formats (docs/format.md).
//!
//! `MINK_BLESS=1 cargo test -p mink-metadata golden` writes them anew; only ever for a format that no release has.
use super::*;
use crate::{BrokerConfigChange, ConfigScope};
use mink_types::schema::{Literal, SchemaChange, SchemaDraft};
use mink_types::{ArrowCompression, CleanupPolicy, KafkaValueFormat, TimestampType};
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    let mut hex = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let end = if at % 32 == 31 || at + 1 == bytes.len() { "\n" } else { "" };
        write!(hex, "{byte:02x}{end}").expect("a string takes all");
    }
    if std::env::var_os("MINK_BLESS").is_some() {
        std::fs::write(&file, hex).expect("testdata is writable");
    }
    let text = std::fs::read_to_string(&file).expect("the golden file is there");
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

/// One of everything.
fn history() -> Log {
    let (mut log, one, two) = Log::with_nodes();
    log.done(Command::Probed { store: "memory://".into(), sound: true, detail: "16 of 16".into() });
    let table = log.create("kafka.orders", 2);
    let (b0, b1) = (bucket(table, 0), bucket(table, 1));
    log.open(one, &[(b0, 0), (b1, 0)], None);
    let (chain, own) = (log.chain(one), log.chain(two));
    log.done(commit(one, one, &[stream(chain, 1, &[range(b0, 1, 0, 10), range(b1, 1, 0, 3)])], Some(2)));
    log.done(commit(one, one, &[stream(chain, 2, &[range(b0, 1, 10, 12)])], None));
    log.done(Command::RaiseStart { by: one, bucket: b0, epoch: BucketEpoch(1), start: Offset(10) });
    log.done(Command::Release { by: one, bucket: b1, epoch: BucketEpoch(1), end: Offset(3) });
    log.done(Command::Fence { incarnation: one, by: two });
    log.done(commit(two, one, &[wal(chain, 4, &[range(b0, 1, 12, 15)])], None));
    log.open(two, &[(b0, 1), (b1, 1)], Some(TakenOver { incarnation: one, seal: WalNumber(5) }));
    log.done(Command::Swept { incarnation: one });
    let gone = log.create("a.gone", 1);
    log.open(two, &[(bucket(gone, 0), 0)], None);
    log.done(commit(two, two, &[stream(own, 1, &[range(bucket(gone, 0), 1, 0, 1)])], None));
    log.done(Command::DropTable { id: gone });
    log.done(Command::Deleted { objects: vec![] });
    let refused = log.run(Command::DropDatabase { name: database("kafka") });
    assert!(refused.into_result().is_err());
    // The row that is kept as golden: a client's request and a refused one, together.
    let commands = [
        (request(2, 1), Command::CreateTable(new_table("a.t", 1))),
        (request(2, 2), open(one, &[(b0, 2)], None)),
        (request(3, 7), commit(two, two, &[stream(own, 2, &[range(b1, 2, 3, 9)])], Some(1))),
        (request(3, 8), open(two, &[(b0, 9)], None)),
        (request(3, 9), Command::Leave { incarnation: two, trim: WalNumber(1), seal: None }),
    ];
    let _ = log.append(&commands);
    log
}

#[test]
fn golden_rows_are_written_and_read_as_ever() {
    let log = history();
    let mut bytes = Vec::new();
    for row in &log.rows {
        bytes.extend(row.index.0.to_le_bytes());
        bytes.extend(row.hash.0);
        bytes.extend(u32::try_from(row.payload.len()).expect("bounded").to_le_bytes());
        bytes.extend(&row.payload);
    }
    let kept = golden("rows-v1.hex", &bytes);
    assert_eq!(bytes, kept);
    let mut state = State::new(CLUSTER);
    let mut rest = kept.as_slice();
    while !rest.is_empty() {
        let (index, after) = rest.split_first_chunk::<8>().expect("index");
        let (hash, after) = after.split_first_chunk::<32>().expect("hash");
        let (length, after) = after.split_first_chunk::<4>().expect("length");
        let (payload, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        let index = mink_types::LogIndex(u64::from_le_bytes(*index));
        state
            .apply(&Row { index, hash: mink_types::RowHash(*hash), payload: payload.into() })
            .expect("applies");
        rest = after;
    }
    assert_eq!(state.digest(), log.state.digest());
}

#[test]
fn golden_snapshot_is_written_and_read_as_ever() {
    let log = history();
    let bytes = log.state.snapshot();
    let kept = golden("snapshot-v1.hex", &bytes);
    assert_eq!(bytes, kept);
    let restored = State::restore(&kept).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    assert_eq!((restored.doomed().count(), restored.objects().count()), (1, 4));
}

/// What level 2 has brought.
fn history_of_level_2() -> Log {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    log.done(Command::RaiseFeatureLevel { level: 2 });
    log.done(Command::Register(Registration { feature_level_max: 2, ..registration(1) }));
    let one = Incarnation(log.state.witness().index.0);
    let table = log.create("kafka.orders", 2);
    let (b0, b1, chain) = (bucket(table, 0), bucket(table, 1), log.chain(one));
    log.open(one, &[(b0, 0), (b1, 0)], None);
    for (counter, start) in [(1, 0), (2, 10)] {
        let ranges = [range(b0, 1, start, start + 10), range(b1, 1, start, start + 10)];
        log.done(commit(one, one, &[stream(chain, counter, &ranges)], None));
    }
    let at = |counter| ObjectId::Stream { chain, counter };
    log.done(rewrite(one, &[at(1), at(2)], chain, &[(3, &[(b0, 1, 0, 20)]), (4, &[(b1, 1, 0, 10)])]));
    let late = log.run(rewrite(one, &[at(1), at(2)], chain, &[(5, &[(b0, 1, 0, 20)])]));
    assert!(late.into_result().is_err());
    log
}

#[test]
fn golden_rows_and_snapshot_of_level_2_are_written_and_read_as_ever() {
    let log = history_of_level_2();
    let restored = golden_log(&log, "level2");
    assert_eq!((restored.doomed().count(), restored.objects().count()), (1, 3));
}

/// What level 3 has brought: a log without records keeps what tells of its producers, until that is dropped, too.
fn history_of_level_3() -> Log {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in [2, 3] {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: 3, ..registration(1) }));
    let one = Incarnation(log.state.witness().index.0);
    let table = log.create("kafka.orders", 2);
    let (b0, b1, chain) = (bucket(table, 0), bucket(table, 1), log.chain(one));
    log.open(one, &[(b0, 0), (b1, 0)], None);
    for (counter, start) in [(1, 0), (2, 10)] {
        let ranges = [range(b0, 1, start, start + 10), range(b1, 1, start, start + 10)];
        log.done(commit(one, one, &[stream(chain, counter, &ranges)], None));
    }
    let (epoch, end) = (BucketEpoch(1), Offset(20));
    for bucket in [b0, b1] {
        log.done(Command::RaiseStart { by: one, bucket, epoch, start: end });
    }
    log.done(Command::ForgetProducers { by: one, bucket: b1, epoch, end });
    log
}

#[test]
fn golden_rows_and_snapshot_of_level_3_are_written_and_read_as_ever() {
    let log = history_of_level_3();
    let restored = golden_log(&log, "level3");
    assert_eq!((restored.doomed().count(), restored.objects().count()), (1, 1));
}

/// What level 4 has brought: tables that change, and a change that came too late.
fn history_of_level_4() -> Log {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in [2, 3, 4] {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: 4, ..registration(1) }));
    let one = Incarnation(log.state.witness().index.0);
    let table = log.create("kafka.orders", 1);
    let seen = new_table("kafka.orders", 1).options;
    let options = TableOptions { buckets: 3, log_ttl_ms: Some(5), ..seen.clone() };
    let change = crate::TableChange { id: table, seen, options, schema: None, buckets_max: 10 };
    log.done(Command::AlterTable(change.clone()));
    let late = log.run(Command::AlterTable(change));
    assert!(late.into_result().is_err());
    log.open(one, &[(bucket(table, 0), 0), (bucket(table, 2), 0)], None);
    log
}

#[test]
fn golden_rows_and_snapshot_of_level_4_are_written_and_read_as_ever() {
    let log = history_of_level_4();
    let restored = golden_log(&log, "level4");
    assert_eq!(restored.bucket_count(), 3);
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// What level 5 has brought: times of appending, compacted tables, configurations of brokers and those that tables keep.
fn history_of_level_5() -> Log {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in 2..=5 {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: 5, ..registration(1) }));
    let mut policies = Vec::new();
    for (name, timestamps, cleanup) in [
        ("kafka.plain", TimestampType::CreateTime, CleanupPolicy::Delete),
        ("kafka.appended", TimestampType::LogAppendTime, CleanupPolicy::Compact),
        ("kafka.both", TimestampType::LogAppendTime, CleanupPolicy::CompactDelete),
        ("kafka.reversed", TimestampType::CreateTime, CleanupPolicy::DeleteCompact),
        ("kafka.neither", TimestampType::CreateTime, CleanupPolicy::None),
    ] {
        let new = new_table(name, 1);
        let options = TableOptions { timestamps, cleanup, ..new.options.clone() };
        log.done(Command::CreateTable(NewTable { options: options.clone(), ..new }));
        policies.push(options);
    }
    let kept = BTreeMap::from([("segment.ms", "5"), ("compression.type", "zstd")].map(owned));
    let new = new_table("kafka.z-kept", 1);
    let options = TableOptions { kept: kept.into(), ..new.options.clone() };
    log.done(Command::CreateTable(NewTable { options, ..new }));
    let id = log.state.table_at(&path("kafka.plain")).expect("there").id;
    let (seen, options) = (policies[0].clone(), policies[1].clone());
    log.done(Command::AlterTable(crate::TableChange { id, seen, options, schema: None, buckets_max: 10 }));
    let of = |pairs: &[(&str, &str)]| pairs.iter().copied().map(owned).collect();
    let alter = |scope, seen: &[(&str, &str)], configs: &[(&str, &str)]| {
        let change = BrokerConfigChange { scope, seen: of(seen), configs: of(configs) };
        Command::AlterBrokerConfigs(change)
    };
    let (all, one) = (ConfigScope::Cluster, ConfigScope::Node(NodeId(1)));
    log.done(alter(all, &[], &[("log.cleaner.threads", "2"), ("b", "")]));
    log.done(alter(one, &[], &[("b", "7")]));
    log.done(alter(all, &[("log.cleaner.threads", "2"), ("b", "")], &[("b", "3")]));
    let late = log.run(alter(all, &[], &[]));
    assert!(late.into_result().is_err());
    log
}

#[test]
fn golden_rows_and_snapshot_of_level_5_are_written_and_read_as_ever() {
    let log = history_of_level_5();
    let restored = golden_log(&log, "level5");
    assert_eq!(restored.broker_config(NodeId(1), "b"), Some("7"));
    assert_eq!(restored.broker_config(NodeId(2), "b"), Some("3"));
    let cleanups = restored.tables().map(|table| table.options.cleanup.as_str());
    assert_eq!(
        cleanups.collect::<Vec<_>>(),
        ["compact", "compact", "compact,delete", "delete,compact", "", "delete"]
    );
    let kept = restored.table_at(&path("kafka.z-kept")).expect("there");
    let kept = kept.options.kept.iter();
    assert_eq!(kept.collect::<Vec<_>>(), [("compression.type", "zstd"), ("segment.ms", "5")]);
}

/// What level 6 has brought: tables with columns, schemas that change, partitions.
fn history_of_level_6() -> Log {
    let (mut log, one) = columns::at_level(6);
    let all = columns::with_columns("a.all", columns::all_types(), 1);
    let options = TableOptions {
        arrow_compression: ArrowCompression::Lz4,
        kafka_value: KafkaValueFormat::Raw,
        ..all.options.clone()
    };
    let all = columns::created(&mut log, NewTable { options, ..all });
    let draft = SchemaDraft { primary_key: columns::names(&["id", "day"]), ..columns::orders(&["day"]) };
    let parts = columns::created(&mut log, columns::with_columns("a.parts", draft, 2));
    let (first, late) = (
        columns::altered(&log, all, columns::add_column("x")),
        columns::altered(&log, all, columns::add_column("y")),
    );
    log.done(Command::AlterTable(first));
    let rename = SchemaChange::RenameColumn { path: columns::names(&["day"]), name: "date".into() };
    let change = columns::altered(&log, parts, rename);
    log.done(Command::AlterTable(change));
    let made = [1, 2].map(|day| {
        let result = log.run(partitions::create(parts, &[Literal::Integer(day)]));
        result.partition().expect("made")
    });
    let bucket = BucketId { table: parts, partition: made[1], bucket: BucketIndex(1) };
    log.open(one, &[(bucket, 0)], None);
    log.done(commit(one, one, &[stream(log.chain(one), 1, &[range(bucket, 1, 0, 9)])], None));
    log.done(Command::DropPartition { table: parts, partition: made[0] });
    // The results of the last row of a session are kept, so each of these is in the snapshot.
    let gone = Command::DropPartition { table: parts, partition: made[0] };
    let commands = [
        (request(2, 1), Command::AlterTable(late)),
        (request(2, 2), partitions::create(parts, &[Literal::Integer(2)])),
        (request(2, 3), gone),
        (request(2, 4), partitions::create(parts, &[Literal::Integer(3)])),
        (request(2, 5), partitions::create(parts, &[])),
        (request(2, 6), partitions::create(all, &[])),
    ];
    let _ = log.append(&commands);
    log
}

#[test]
fn golden_rows_and_snapshot_of_level_6_are_written_and_read_as_ever() {
    let log = history_of_level_6();
    let restored = golden_log(&log, "level6");
    let all = restored.table_at(&path("a.all")).expect("there");
    assert_eq!((all.schemas().count(), all.options.arrow_compression), (2, ArrowCompression::Lz4));
    let parts = restored.table_at(&path("a.parts")).expect("there");
    let days: Vec<_> = parts.partitions().map(|(_, values)| values.to_vec()).collect();
    assert_eq!(days, [[Literal::Integer(2)], [Literal::Integer(3)]]);
    assert_eq!(restored.bucket_count(), 5);
}

/// The log's rows and its snapshot against those kept, and the state restored from the latter.
fn golden_log(log: &Log, name: &str) -> State {
    let mut bytes = Vec::new();
    for row in &log.rows {
        bytes.extend(u32::try_from(row.payload.len()).expect("bounded").to_le_bytes());
        bytes.extend(&row.payload);
    }
    assert_eq!(bytes, golden(&format!("rows-{name}.hex"), &bytes));
    let mut state = State::new(CLUSTER);
    for row in &log.rows {
        state.apply(row).expect("applies");
    }
    let snapshot = golden(&format!("snapshot-{name}.hex"), &log.state.snapshot());
    assert_eq!(log.state.snapshot(), snapshot);
    let restored = State::restore(&snapshot).expect("opens");
    assert_eq!((restored.digest(), state.digest()), (log.state.digest(), log.state.digest()));
    restored
}
