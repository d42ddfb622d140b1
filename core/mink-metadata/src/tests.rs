//! Tests of the state machine. Each module's name is the behaviour it shows.
mod alter;
mod columns;
mod configs;
mod golden;
mod model;
mod names;
mod ownership;
mod partitions;
mod producers;
mod rewrite;
mod rows;
mod sessions;

use mink_types::{
    BucketEpoch, BucketId, BucketIndex, ClusterUuid, CommitTime, DatabaseName, Incarnation, NodeId, ObjectId,
    Offset, RequestId, SessionId, TableId, TableOptions, TablePath, TableUuid, Timestamp, WalChain,
    WalNumber,
};

use crate::{
    Answer, BucketOpening, Command, CommandResult, CommittedObject, CommittedRange, Group, Listener,
    NewTable, Refusal, Registration, RewrittenObject, RewrittenRange, Row, State, TakenOver,
};

const CLUSTER: ClusterUuid = ClusterUuid([7; 16]);

/// A log with its state, and every row kept.
pub(super) struct Log {
    pub(super) state: State,
    pub(super) rows: Vec<Row>,
    counter: u64,
}

impl Log {
    pub(super) fn new() -> Log {
        Log { state: State::new(CLUSTER), rows: Vec::new(), counter: 0 }
    }

    /// A log with the databases `kafka` and `a`, and two incarnations, 3 and 4, of nodes 1 and 2.
    pub(super) fn with_nodes() -> (Log, Incarnation, Incarnation) {
        let mut log = Log::new();
        let _ = log.run(Command::CreateDatabase { name: database("kafka") });
        let _ = log.run(Command::CreateDatabase { name: database("a") });
        let first = log.register(1);
        let second = log.register(2);
        (log, first, second)
    }

    pub(super) fn next_request(&mut self) -> RequestId {
        self.counter += 1;
        request(1, self.counter)
    }

    /// Appends a row of these commands under these ids.
    pub(super) fn append(&mut self, commands: &[(RequestId, Command)]) -> Vec<(RequestId, CommandResult)> {
        let row = row_of(&self.state, commands);
        let results = self.state.apply(&row).expect("the row follows");
        self.rows.push(row);
        results
    }

    pub(super) fn run(&mut self, command: Command) -> CommandResult {
        let id = self.next_request();
        self.append(&[(id, command)]).remove(0).1
    }

    pub(super) fn done(&mut self, command: Command) -> Answer {
        self.run(command).into_result().expect("accepted")
    }

    pub(super) fn refused(&mut self, command: Command) -> Refusal {
        let before = self.state.clone();
        let refusal = self.run(command).into_result().expect_err("refused");
        assert!(same_but_sessions(&before, &self.state), "a refused command changes nothing");
        refusal
    }

    pub(super) fn register(&mut self, node: u32) -> Incarnation {
        match self.done(Command::Register(registration(node))) {
            Answer::Registered(incarnation) => incarnation,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn create(&mut self, address: &str, buckets: u32) -> TableId {
        match self.done(Command::CreateTable(new_table(address, buckets))) {
            Answer::TableCreated(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Opens buckets and expects each to be opened.
    pub(super) fn open(&mut self, by: Incarnation, buckets: &[(BucketId, u32)], from: Option<TakenOver>) {
        let answer = self.done(open(by, buckets, from));
        assert_eq!(answer, Answer::Opened { refused: vec![] });
    }

    pub(super) fn chain(&self, incarnation: Incarnation) -> WalChain {
        self.state.incarnation(incarnation).expect("registered").chain
    }
}

/// Whether two states differ in no more than the last row and the sessions.
pub(super) fn same_but_sessions(a: &State, b: &State) -> bool {
    let bare = |state: &State| {
        let mut state = state.clone();
        state.witness = mink_types::Witness::default();
        state.sessions.clear();
        state.digest()
    };
    bare(a) == bare(b)
}

pub(super) fn row_of(state: &State, commands: &[(RequestId, Command)]) -> Row {
    let mut group = Group::new();
    for (id, command) in commands {
        group.push(*id, command).expect("fits");
    }
    group.row(state.witness())
}

pub(super) fn request(session: u8, counter: u64) -> RequestId {
    RequestId { session: SessionId([session; 16]), counter }
}

pub(super) fn database(name: &str) -> DatabaseName {
    DatabaseName::new(name).expect("valid")
}

pub(super) fn path(address: &str) -> TablePath {
    TablePath::parse(address).expect("valid")
}

pub(super) fn registration(node: u32) -> Registration {
    let listener = |name: &str, port| Listener { name: name.into(), host: "127.0.0.1".into(), port };
    Registration {
        node: NodeId(node),
        tag: 0xfeed_0000 + u64::from(node),
        storage: "memory://".into(),
        wal_storage: "memory://".into(),
        listeners: vec![listener("kafka", 9092), listener("http", 9180)],
        version: "0.1.0".into(),
        feature_level_max: 1,
    }
}

pub(super) fn new_table(address: &str, buckets: u32) -> NewTable {
    let path = path(address);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(address.as_bytes());
    let uuid = <[u8; 16]>::try_from(&digest[..16]).expect("16 bytes");
    NewTable {
        path,
        uuid: TableUuid(uuid),
        options: TableOptions { buckets, ..TableOptions::default() },
        schema: None,
        kafka_database: database("kafka"),
        buckets_max: 1_000,
    }
}

pub(super) fn bucket(table: TableId, index: u32) -> BucketId {
    BucketId::unpartitioned(table, BucketIndex(index))
}

pub(super) fn open(by: Incarnation, buckets: &[(BucketId, u32)], from: Option<TakenOver>) -> Command {
    let opening = |&(bucket, epoch): &(BucketId, u32)| BucketOpening { bucket, epoch: BucketEpoch(epoch) };
    Command::Open { by, buckets: buckets.iter().map(opening).collect(), from }
}

pub(super) fn range(bucket: BucketId, epoch: u32, start: u64, end: u64) -> CommittedRange {
    CommittedRange {
        bucket,
        epoch: BucketEpoch(epoch),
        start: Offset(start),
        end: Offset(end),
        max_timestamp: Timestamp(-5),
        last_commit_time: CommitTime(1_000),
        bytes: (end - start).saturating_mul(10),
    }
}

pub(super) fn object(id: ObjectId, ranges: &[CommittedRange]) -> CommittedObject {
    CommittedObject { id, length: 4_096, footer_length: 128, checksum: 0xdead_beef, ranges: ranges.to_vec() }
}

pub(super) fn stream(chain: WalChain, counter: u64, ranges: &[CommittedRange]) -> CommittedObject {
    object(ObjectId::Stream { chain, counter }, ranges)
}

pub(super) fn wal(chain: WalChain, number: u64, ranges: &[CommittedRange]) -> CommittedObject {
    object(ObjectId::Wal { chain, number: WalNumber(number) }, ranges)
}

pub(super) fn commit(
    by: Incarnation,
    source: Incarnation,
    objects: &[CommittedObject],
    trim: Option<u64>,
) -> Command {
    Command::Commit { by, source, objects: objects.to_vec(), trim: trim.map(WalNumber) }
}

/// Ranges as (bucket, epoch, start, end).
pub(super) type Moved = (BucketId, u32, u64, u64);

/// A rewrite of `replaced` into the objects with these counters.
pub(super) fn rewrite(
    by: Incarnation,
    replaced: &[ObjectId],
    chain: WalChain,
    objects: &[(u64, &[Moved])],
) -> Command {
    let objects = objects.iter().map(|(counter, ranges)| RewrittenObject {
        id: ObjectId::Stream { chain, counter: *counter },
        length: 9_000,
        footer_length: 300,
        checksum: 0xc0de,
        ranges: ranges.iter().map(|moved| moved_range(*moved)).collect(),
    });
    Command::Rewrite { by, replaced: replaced.to_vec(), objects: objects.collect() }
}

fn moved_range((bucket, epoch, start, end): Moved) -> RewrittenRange {
    RewrittenRange { bucket, epoch: BucketEpoch(epoch), start: Offset(start), end: Offset(end) }
}
