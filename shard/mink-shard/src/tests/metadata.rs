//! The command log of the tests: real commands, applied to a real state.
use mink_metadata::{
    Answer, BucketOpening, Command, CommittedObject, CommittedRange, Group, NewTable, Registration, State,
};
use mink_types::*;
use s3stream::Entry;

/// The command log of one node with one table of four buckets.
pub(super) struct Metadata {
    pub(super) state: State,
    pub(super) me: Incarnation,
    pub(super) table: TableId,
    requests: u64,
    objects: u64,
}

impl Metadata {
    pub(super) fn new() -> Metadata {
        let mut log = Metadata {
            state: State::new(ClusterUuid([7; 16])),
            me: Incarnation(0),
            table: TableId(0),
            requests: 0,
            objects: 0,
        };
        let kafka = DatabaseName::new("kafka").expect("valid");
        log.run(&Command::CreateDatabase { name: kafka.clone() });
        let me = log.run(&Command::Register(Registration {
            node: NodeId(1),
            tag: 9,
            storage: "memory://".into(),
            wal_storage: "memory://".into(),
            listeners: vec![],
            version: "test".into(),
            feature_level_max: mink_metadata::FEATURE_LEVEL_MAX,
        }));
        let Answer::Registered(me) = me else { panic!("{me:?}") };
        let options = TableOptions { buckets: 4, ..TableOptions::default() };
        let table = log.run(&Command::CreateTable(NewTable {
            path: TablePath { database: kafka.clone(), table: TableName::new("t").expect("valid") },
            uuid: TableUuid([1; 16]),
            options,
            schema: None,
            kafka_database: kafka,
            buckets_max: 1000,
        }));
        let Answer::TableCreated(table) = table else { panic!("{table:?}") };
        Metadata { me, table, ..log }
    }

    pub(super) fn run(&mut self, command: &Command) -> Answer {
        self.requests += 1;
        let request = RequestId { session: SessionId([1; 16]), counter: self.requests };
        let mut group = Group::new();
        group.push(request, command).expect("fits");
        let row = group.row(self.state.witness());
        let mut results = self.state.apply(&row).expect("the row follows");
        results.remove(0).1.into_result().expect("accepted")
    }

    pub(super) fn chain(&self) -> WalChain {
        self.state.incarnation(self.me).expect("registered").chain
    }

    /// Opens a bucket, whose epoch grows by one.
    pub(super) fn open(&mut self, bucket: BucketId) -> BucketEpoch {
        let epoch = self.state.bucket(&bucket).expect("exists").epoch;
        let opened =
            Command::Open { by: self.me, buckets: vec![BucketOpening { bucket, epoch }], from: None };
        assert_eq!(self.run(&opened), Answer::Opened { refused: vec![] });
        BucketEpoch(epoch.0 + 1)
    }

    /// Commits these entries, which follow each other in one bucket, as one stream object.
    pub(super) fn commit(&mut self, entries: &[Entry]) -> ObjectId {
        let (first, last) = (&entries[0], &entries[entries.len() - 1]);
        self.objects += 1;
        let id = ObjectId::Stream { chain: self.chain(), counter: self.objects };
        let range = CommittedRange {
            bucket: first.bucket,
            epoch: first.epoch,
            start: first.base_offset,
            end: last.end(),
            max_timestamp: entries.iter().map(|entry| entry.max_timestamp).max().expect("some"),
            last_commit_time: last.commit_time,
            bytes: entries.iter().map(|entry| entry.bytes.len() as u64).sum(),
        };
        let object =
            CommittedObject { id, length: 1000, footer_length: 100, checksum: 1, ranges: vec![range] };
        self.run(&Command::Commit { by: self.me, source: self.me, objects: vec![object], trim: None });
        id
    }
}
