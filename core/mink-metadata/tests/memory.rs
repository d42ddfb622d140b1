//! I20: what a topic takes of a node's memory as metadata, counted by the allocator.
//!
//! Lives on: tests only; a binary of its own because it replaces the allocator.
//! Owns: the counting allocator.

#![expect(clippy::panic, reason = "a test binary: a panic is its way to fail")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use std::sync::Arc;

use mink_metadata::{
    Answer, BucketOpening, Command, CommandResult, CommittedObject, CommittedRange, FEATURE_LEVEL_MAX, Group,
    NewPartition, NewTable, Registration, State, TableChange,
};
use mink_types::schema::{ColumnPlace, DataType, Field, FieldId, Literal, Schema, SchemaChange, SchemaDraft};
use mink_types::{
    BucketEpoch, ClusterUuid, CommitTime, DatabaseName, LogFormat, NodeId, ObjectId, Offset, RequestId,
    SessionId, TableId, TableName, TableOptions, TablePath, TableUuid, Timestamp, WalNumber,
};

/// Topics of the measurement, and ranges of each.
const TOPICS: u64 = 5_000;
/// Most bytes of one topic of one partition whose data lies in one range.
const TOPIC_BYTES_MAX: usize = 600;
/// Topics that one commit flushes.
const FLUSHED_AT_ONCE: u64 = 500;

thread_local! {
    /// Bytes that are held, as a common allocator rounds them.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn rounded(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract. The counter is a
// const-initialised thread local without a destructor, so touching it neither allocates nor can it be gone.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(rounded(layout.size())));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(rounded(layout.size())));
        // SAFETY: the memory came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A log of which only the state is kept.
struct Log {
    state: State,
    counter: u64,
}

impl Log {
    fn done(&mut self, command: &Command) -> Answer {
        self.counter += 1;
        let request = RequestId { session: SessionId([1; 16]), counter: self.counter };
        let mut group = Group::new();
        group.push(request, command).unwrap_or_else(|error| panic!("{error}"));
        let row = group.row(self.state.witness());
        let mut results = self.state.apply(&row).unwrap_or_else(|error| panic!("{error}"));
        match results.pop() {
            Some((_, CommandResult::Done(answer))) => answer,
            other => panic!("{other:?}"),
        }
    }
}

/// Partitions, and schemas, of the measurement of tables with columns.
const PARTITIONS: u64 = 5_000;
const SCHEMAS: u64 = 200;

fn column(name: String, data_type: DataType) -> Field {
    Field { id: FieldId::NONE, name, data_type, nullable: true, default: None, comment: None }
}

/// A log at the newest level with a table of thirty columns that is partitioned by a text and a day.
fn table_with_columns() -> (Log, TableId) {
    let mut log = Log { state: State::new(ClusterUuid([7; 16])), counter: 0 };
    let Ok(name) = DatabaseName::new("kafka") else { panic!("a valid name") };
    log.done(&Command::CreateDatabase { name });
    for level in 2..=FEATURE_LEVEL_MAX {
        log.done(&Command::RaiseFeatureLevel { level });
    }
    let Command::CreateTable(new) = topic(0) else { panic!("a table") };
    let fixed = [("region", DataType::String), ("day", DataType::Date)];
    let columns = fixed.map(|(name, data_type)| column(name.into(), data_type));
    let more = (0..28).map(|at| column(format!("measure_{at}"), DataType::Double));
    let schema = Schema::create(SchemaDraft {
        columns: columns.into_iter().chain(more).collect(),
        partitioned_by: vec!["region".into(), "day".into()],
        ..SchemaDraft::default()
    });
    let schema = Some(Arc::new(schema.unwrap_or_else(|error| panic!("{error}"))));
    let options = TableOptions { format: LogFormat::Arrow, ..new.options.clone() };
    match log.done(&Command::CreateTable(NewTable { options, schema, ..new })) {
        Answer::TableCreated(id) => (log, id),
        other => panic!("{other:?}"),
    }
}

/// What is held beside what was, and what the state says that it takes beside what it did, for each of `count` things.
fn counted(log: &Log, before: (usize, u64), count: u64) -> (u64, u64) {
    let held = HELD.get().wrapping_sub(before.0) as u64;
    (held / count, (log.state.memory_bytes() - before.1) / count)
}

#[test]
fn i20_what_a_state_says_of_its_partitions_is_about_what_they_take() {
    let (mut log, table) = table_with_columns();
    let before = (HELD.get(), log.state.memory_bytes());
    for day in 0..PARTITIONS {
        let day = Literal::Integer(i64::try_from(day).unwrap_or(0));
        let values = vec![Literal::Text("north-west".into()), day];
        log.done(&Command::CreatePartition(NewPartition { table, values, buckets_max: 100_000 }));
    }
    let (held, said) = counted(&log, before, PARTITIONS);
    println!("{held} bytes per partition of one bucket, and the state says {said}");
    assert!(held <= said && said <= held * 3 / 2, "{held} bytes, and the state says {said}");
}

#[test]
fn i20_what_a_state_says_of_its_schemas_is_about_what_they_take() {
    let (mut log, id) = table_with_columns();
    let before = (HELD.get(), log.state.memory_bytes());
    for at in 0..SCHEMAS {
        let Some(table) = log.state.table(id) else { panic!("there") };
        let Some(newest) = table.schema() else { panic!("with columns") };
        let column = column(format!("more_{at}"), DataType::BigInt);
        let change = SchemaChange::AddColumn { parent: Vec::new(), column, place: ColumnPlace::Last };
        let next = newest.alter(&[change]).unwrap_or_else(|error| panic!("{error}"));
        let (seen, options) = (table.options.clone(), table.options.clone());
        let schema = Some((newest.id(), Arc::new(next)));
        log.done(&Command::AlterTable(TableChange { id, seen, options, schema, buckets_max: 10 }));
    }
    let (held, said) = counted(&log, before, SCHEMAS);
    println!("{held} bytes per schema, and the state says {said}");
    assert!(held <= said && said <= held * 3 / 2, "{held} bytes, and the state says {said}");
}

fn topic(number: u64) -> Command {
    let (database, table) =
        (DatabaseName::new("kafka"), TableName::new(&format!("orders-of-shop-{number:05}")));
    let (Ok(database), Ok(table)) = (database, table) else { panic!("valid names") };
    let mut uuid = [3; 16];
    uuid[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    Command::CreateTable(NewTable {
        path: TablePath { database: database.clone(), table },
        uuid: TableUuid(uuid),
        options: TableOptions { buckets: 1, ..TableOptions::default() },
        schema: None,
        kafka_database: database,
        buckets_max: 1_000_000,
    })
}

#[test]
fn i20_a_topic_whose_data_is_flushed_takes_less_than_a_kilobyte_of_metadata() {
    let mut log = Log { state: State::new(ClusterUuid([7; 16])), counter: 0 };
    let Ok(name) = DatabaseName::new("kafka") else { panic!("a valid name") };
    log.done(&Command::CreateDatabase { name });
    let registered = log.done(&Command::Register(Registration {
        node: NodeId(1),
        tag: 1,
        storage: "memory://".into(),
        wal_storage: "memory://".into(),
        listeners: Vec::new(),
        version: "0.1.0".into(),
        feature_level_max: 1,
    }));
    let Answer::Registered(by) = registered else { panic!("{registered:?}") };
    let Some(chain) = log.state.incarnation(by).map(|state| state.chain) else { panic!("registered") };

    let before = HELD.get();
    let mut tables: Vec<TableId> = Vec::new();
    for number in 0..TOPICS {
        let answer = log.done(&topic(number));
        let Answer::TableCreated(id) = answer else { panic!("{answer:?}") };
        tables.push(id);
        let Some(table) = log.state.table(id) else { panic!("{id} is there") };
        let buckets =
            table.bucket_ids().map(|bucket| BucketOpening { bucket, epoch: BucketEpoch(0) }).collect();
        log.done(&Command::Open { by, buckets, from: None });
    }
    for (counter, flushed) in (0..).zip(tables.chunks(usize::try_from(FLUSHED_AT_ONCE).unwrap_or(1))) {
        let ranges = flushed.iter().map(|id| CommittedRange {
            bucket: mink_types::BucketId::unpartitioned(*id, mink_types::BucketIndex(0)),
            epoch: BucketEpoch(1),
            start: Offset(0),
            end: Offset(10),
            max_timestamp: Timestamp(1),
            last_commit_time: CommitTime(1),
            bytes: 1_000,
        });
        let object = CommittedObject {
            id: ObjectId::Stream { chain, counter },
            length: 1 << 20,
            footer_length: 1 << 10,
            checksum: 1,
            ranges: ranges.collect(),
        };
        log.done(&Command::Commit {
            by,
            source: by,
            objects: vec![object],
            trim: Some(WalNumber(counter + 1)),
        });
    }
    drop(tables);
    let bytes = HELD.get().wrapping_sub(before) / usize::try_from(TOPICS).unwrap_or(1);
    println!("{bytes} bytes per topic");
    assert!(bytes <= TOPIC_BYTES_MAX, "{bytes} bytes per topic");
}
