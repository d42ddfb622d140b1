//! What a node may ask of the log: commands and their parts.
//!
//! Lives on: anywhere (pure).
//! Invariants: a command carries every epoch, id and name that its judgement needs; nothing is looked up by a name that may
//! have come to mean something else (K-26).
use std::collections::BTreeMap;
use std::sync::Arc;

use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketEpoch, BucketId, CommitTime, DatabaseName, Incarnation, NodeId, ObjectId, Offset, PartitionId,
    TableId, TableOptions, TablePath, TableUuid, Timestamp, WalNumber,
};

/// A change of the metadata. [`crate::State::apply`] judges it against everything before it in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A node process begins a life. The incarnation is the row's index, so a row carries at most one of these.
    Register(Registration),
    /// Nothing that `incarnation` sends is accepted any more, and its trim is frozen. `by` must be unfenced itself. An
    /// incarnation that is fenced already gives [`crate::Refusal::AlreadyFenced`], which counts as done.
    Fence { incarnation: Incarnation, by: Incarnation },
    /// A draining node's last command: it fences itself and is marked as drained, so that a successor need not wait for
    /// its lease. `trim` and `seal` are those of its chain; when the seal stands at the trim, the chain holds nothing
    /// uncommitted, and all buckets that hang on it are released by this same command.
    Leave { incarnation: Incarnation, trim: WalNumber, seal: Option<WalNumber> },
    /// Creates a database.
    CreateDatabase { name: DatabaseName },
    /// Drops a database; refused while it has tables.
    DropDatabase { name: DatabaseName },
    /// Creates a table in a database that exists. Its buckets are free, at epoch 0; a partitioned one has none before its partitions.
    CreateTable(NewTable),
    /// Changes the options of a table, its schema, and how many buckets it has (in each partition): never fewer. New buckets are free,
    /// at epoch 0. Feature level 4; schemas from feature level 6 on.
    AlterTable(TableChange),
    /// Gives a partitioned table one more partition with buckets of its own, free and at epoch 0. One that has the values already gives
    /// [`crate::Refusal::PartitionExists`], which counts as done. Feature level 6.
    CreatePartition(NewPartition),
    /// Drops a partition with its buckets and ranges; objects that lose their last range are doomed. Feature level 6.
    DropPartition { table: TableId, partition: PartitionId },
    /// Gives the broker configurations of a scope other values. Feature level 5.
    AlterBrokerConfigs(BrokerConfigChange),
    /// Drops a table with all its buckets and ranges; objects that lose their last range are doomed.
    DropTable { id: TableId },
    /// Makes offsets readable from objects, and trims the chain. Accepted or refused as a whole; ranges of dropped tables
    /// are skipped. `source` is `by`'s own chain, or a fenced one whose recovered entries these are.
    Commit { by: Incarnation, source: Incarnation, objects: Vec<CommittedObject>, trim: Option<WalNumber> },
    /// Compaction: offsets of `by`'s live buckets move into new objects, bytes unchanged. Each new range covers exactly a run
    /// of the bucket's neighbouring ranges that all lie in `replaced`, or the whole command is refused: of two compactions
    /// that read the same objects the second changes nothing (T-18). What retention has dropped since is left out, and so are
    /// dropped tables; a new object of which nothing is left is doomed at once. Replaced objects that lose their last range
    /// are doomed. Feature level 2.
    Rewrite { by: Incarnation, replaced: Vec<ObjectId>, objects: Vec<RewrittenObject> },
    /// Takes buckets that are free, or that hang on the fenced chain `from`, onto `by`'s chain; each epoch grows by one.
    /// Each bucket is judged by itself.
    Open { by: Incarnation, buckets: Vec<BucketOpening>, from: Option<TakenOver> },
    /// Lets go of a live bucket whose every ordered append is committed: `end` must be the committed end.
    Release { by: Incarnation, bucket: BucketId, epoch: BucketEpoch, end: Offset },
    /// Forgets offsets below `start` (retention); objects that lose their last range are doomed. From feature level 3 on the
    /// ranges that tell of the log's producers stay, though nobody can read them: the newest in a stream object, and all behind it.
    /// They go when a newer range tells of them, or by [`Command::ForgetProducers`].
    RaiseStart { by: Incarnation, bucket: BucketId, epoch: BucketEpoch, start: Offset },
    /// Drops the ranges of a log without records: `end`, where it begins and ends, must be its committed end. Its producers have
    /// expired, or are to be forgotten. Feature level 3.
    ForgetProducers { by: Incarnation, bucket: BucketId, epoch: BucketEpoch, end: Offset },
    /// These doomed objects are deleted. What is not doomed is ignored.
    Deleted { objects: Vec<ObjectId> },
    /// The prefixes of a dead incarnation have been cleaned: its recorded seal and referenced objects alone remain.
    Swept { incarnation: Incarnation },
    /// The verdict of the create-only probe on a store.
    Probed { store: String, sound: bool, detail: String },
    /// Commands and formats of `level` may be used from here on. Every unfenced incarnation must know the level.
    RaiseFeatureLevel { level: u32 },
}

/// What a node says about itself when it registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    pub node: NodeId,
    /// Drawn by the node; part of its objects' keys.
    pub tag: u64,
    /// Where its stream objects lie, without credentials.
    pub storage: String,
    /// Where its WAL objects lie, so that a takeover looks in the right place.
    pub wal_storage: String,
    /// Addresses that clients and other nodes are told.
    pub listeners: Vec<Listener>,
    /// Version of the program, for people.
    pub version: String,
    /// Newest feature level that the program applies.
    pub feature_level_max: u32,
}

/// An advertised address. The name is the protocol (`kafka`, `http`, `flight`), or `protocol.NAME` for a further one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    pub name: String,
    pub host: String,
    pub port: u16,
}

/// A table to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTable {
    pub path: TablePath,
    /// Drawn by whoever asks; Kafka's topic id. Never zero.
    pub uuid: TableUuid,
    pub options: TableOptions,
    /// The first schema, of a table whose format has columns; none for one of Kafka's batches. Feature level 6.
    pub schema: Option<Arc<Schema>>,
    /// The database whose tables are topics by their bare name; two topics must not share a name.
    pub kafka_database: DatabaseName,
    /// The asking node's bound on the buckets of all tables; the command is refused above it.
    pub buckets_max: u32,
}

/// A table to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableChange {
    pub id: TableId,
    /// The options that the author saw: the command is refused if they are others by now, so of two changes none is lost.
    pub seen: TableOptions,
    pub options: TableOptions,
    /// The schema that is to follow, if it changes, and the one that it was made from: the command is refused if there is a newer one by
    /// now. Feature level 6.
    pub schema: Option<(SchemaId, Arc<Schema>)>,
    /// The asking node's bound on the buckets of all tables; the command is refused above it.
    pub buckets_max: u32,
}

/// A partition to create. No schema is named: no change of one touches the columns that a table is partitioned by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPartition {
    pub table: TableId,
    /// One for each column that the table is partitioned by, in their order.
    pub values: Vec<Literal>,
    /// The asking node's bound on the buckets of all tables; the command is refused above it.
    pub buckets_max: u32,
}

/// Whom a broker configuration is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConfigScope {
    /// Every node that has no value of its own.
    Cluster,
    Node(NodeId),
}

/// Configurations of brokers to change while they run. What the names mean, the log does not know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerConfigChange {
    /// A node must have registered once.
    pub scope: ConfigScope,
    /// All values of the scope that the author saw: the command is refused if they are others by now, so of two changes none is lost.
    pub seen: BTreeMap<String, String>,
    /// All values that the scope has then: a name that is missing is removed.
    pub configs: BTreeMap<String, String>,
}

/// An object that a commit makes readable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedObject {
    /// A stream object of the author, or, in an adoption, a WAL object of the source chain.
    pub id: ObjectId,
    /// Length in bytes.
    pub length: u64,
    /// Length of the footer in bytes.
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub checksum: u32,
    pub ranges: Vec<CommittedRange>,
}

/// Offsets `start..end` of one bucket in an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommittedRange {
    pub bucket: BucketId,
    /// The bucket's epoch that the author relies on.
    pub epoch: BucketEpoch,
    pub start: Offset,
    /// Exclusive.
    pub end: Offset,
    pub max_timestamp: Timestamp,
    pub last_commit_time: CommitTime,
    /// Stored bytes of the range.
    pub bytes: u64,
}

/// A stream object of the author into which ranges are moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewrittenObject {
    pub id: ObjectId,
    /// Length in bytes.
    pub length: u64,
    /// Length of the footer in bytes.
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub checksum: u32,
    pub ranges: Vec<RewrittenRange>,
}

/// Offsets that are moved. Times and bytes of the new range follow from those that it replaces, so none are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RewrittenRange {
    pub bucket: BucketId,
    /// The epoch at which the author owns the bucket. The batches may come from any epochs up to it: footers keep them.
    pub epoch: BucketEpoch,
    pub start: Offset,
    /// Exclusive.
    pub end: Offset,
}

/// A bucket to open, and the epoch it was seen at before the takeover's walk began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketOpening {
    pub bucket: BucketId,
    pub epoch: BucketEpoch,
}

/// The chain that was walked, and where it was found sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakenOver {
    pub incarnation: Incarnation,
    pub seal: WalNumber,
}
