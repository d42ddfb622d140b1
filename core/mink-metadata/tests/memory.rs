//! I20: what a topic takes of a node's memory as metadata, counted by the allocator.
//!
//! Lives on: tests only; a binary of its own because it replaces the allocator.
//! Owns: the counting allocator.

#![expect(clippy::panic, reason = "a test binary: a panic is its way to fail")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mink_metadata::{
    Answer, BucketOpening, Command, CommandResult, CommittedObject, CommittedRange, Group, NewTable,
    Registration, State,
};
use mink_types::{
    BucketEpoch, ClusterUuid, CommitTime, DatabaseName, NodeId, ObjectId, Offset, RequestId, SessionId,
    TableId, TableName, TableOptions, TablePath, TableUuid, Timestamp, WalNumber,
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
