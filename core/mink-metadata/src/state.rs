//! The state that the command log makes, and what can be asked of it.
//!
//! Lives on: anywhere (pure). A clone is cheap (maps share their nodes), so views are plain clones.
//! Owns: every map below; only `apply` and `snapshot` change them.
//! Invariants: I2 (a bucket's ranges are dense from its start, or before it, to its end), I13 (epochs grow), I14 (`doomed` and `objects` are
//! disjoint). Fields after `indexes` follow from the others and are not part of the digest.
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use mink_types::{
    BucketEpoch, BucketId, ClusterUuid, CommitTime, DatabaseId, DatabaseName, Incarnation, LogIndex, NodeId,
    ObjectId, Offset, OffsetRange, RequestId, SessionId, TableId, TableName, TablePath, TableUuid, Timestamp,
    WalChain, WalNumber, Witness,
};

use crate::rising::Rising;
use crate::{CommandResult, ConfigScope, FEATURE_LEVEL_MAX, Listener, Ranges, Table};

/// Most sessions whose last results are kept. When a new one comes, the session whose last command is oldest goes (the
/// smaller id first when two are equally old): every node forgets the same.
pub const SESSIONS_MAX: usize = 10_000;

/// What things take, with their keys and their share of a tree's nodes and indexes, in bytes; names of 24 letters.
const TABLE_BYTES: usize = 300;
const BUCKET_BYTES: usize = 130;
const RANGE_BYTES: usize = 112;
const OBJECT_BYTES: usize = 128;
const SESSION_BYTES: usize = 512;

/// Metadata of a cluster as of one index of its command log.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) cluster: ClusterUuid,
    pub(crate) witness: Witness,
    pub(crate) feature_level: u32,
    pub(crate) databases: OrdMap<DatabaseName, Database>,
    /// Shared: a tree's nodes have free places, and are copied when a neighbour changes.
    pub(crate) tables: Rising<TableId, Arc<Table>>,
    pub(crate) buckets: Rising<BucketId, Bucket>,
    pub(crate) objects: OrdMap<ObjectId, Object>,
    pub(crate) doomed: OrdMap<ObjectId, LogIndex>,
    pub(crate) incarnations: OrdMap<Incarnation, IncarnationState>,
    pub(crate) sessions: OrdMap<SessionId, Session>,
    pub(crate) probes: OrdMap<String, Probe>,
    /// No scope without a value.
    pub(crate) broker_configs: OrdMap<ConfigScope, BTreeMap<String, String>>,
    pub(crate) indexes: Indexes,
}

/// What follows from the rest of the state, kept for speed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indexes {
    /// No database without a table.
    paths: OrdMap<DatabaseName, Rising<TableName, TableId>>,
    pub(crate) uuids: OrdMap<TableUuid, TableId>,
    /// (database, collision key, table): topics that Kafka would take for one lie side by side. Only of names that another can
    /// collide with.
    pub(crate) topics: OrdSet<(DatabaseName, Arc<str>, TableId)>,
    /// The buckets on each chain; no chain without one.
    hanging: OrdMap<Incarnation, Rising<BucketId, ()>>,
    pub(crate) session_ages: OrdSet<(LogIndex, SessionId)>,
}

impl Indexes {
    /// Notes where a table is found.
    pub(crate) fn name(&mut self, path: &TablePath, id: TableId) {
        self.paths.entry(path.database.clone()).or_default().insert(path.table.clone(), id);
    }

    pub(crate) fn unname(&mut self, path: &TablePath) {
        if let Some(tables) = self.paths.get_mut(&path.database) {
            tables.remove(&path.table);
            if tables.is_empty() {
                self.paths.remove(&path.database);
            }
        }
    }

    /// Notes that a bucket hangs on a chain.
    pub(crate) fn hang(&mut self, owner: Incarnation, bucket: BucketId) {
        self.hanging.entry(owner).or_default().insert(bucket, ());
    }

    pub(crate) fn unhang(&mut self, owner: Incarnation, bucket: &BucketId) {
        if let Some(on_chain) = self.hanging.get_mut(&owner) {
            on_chain.remove(bucket);
            if on_chain.is_empty() {
                self.hanging.remove(&owner);
            }
        }
    }
}

/// A database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    pub id: DatabaseId,
    pub name: DatabaseName,
    /// Index of the row that created it.
    pub created: LogIndex,
}

/// What the log knows of one bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// How often it was opened.
    pub epoch: BucketEpoch,
    /// On whose chain it hangs; none when it is free. It is served by that incarnation unless that one is fenced.
    pub owner: Option<Incarnation>,
    /// First offset that is kept.
    pub start: Offset,
    /// Committed end: offsets below it lie in `ranges`, those from it on in the owner's chain.
    pub end: Offset,
    /// Where the committed offsets lie, by first offset: dense up to `end`. Some at the front may end at or before `start`: see
    /// [`Bucket::unread`].
    pub ranges: Ranges,
}

impl Bucket {
    /// The ranges at the front that no reader can reach: they stay for what their objects tell of the log's producers.
    pub fn unread(&self) -> impl Iterator<Item = (OffsetRange, &ObjectRange)> {
        let start = self.start;
        let ranges = self.ranges.iter().take_while(move |(_, range)| range.end <= start);
        ranges.map(|(first, range)| (OffsetRange { start: *first, end: range.end }, range))
    }

    /// The range that holds `offset`, and all after it, in order. Empty at and beyond the committed end.
    pub fn ranges_from(&self, offset: Offset) -> impl Iterator<Item = (OffsetRange, &ObjectRange)> {
        let first = self.ranges.range(..=offset).next_back().map_or(offset, |(start, _)| *start);
        self.ranges
            .range(first..)
            .map(|(start, range)| (OffsetRange { start: *start, end: range.end }, range))
            .filter(move |(range, _)| range.end > offset)
    }
}

/// Where a run of a bucket's offsets lies. It begins at its key in [`Bucket::ranges`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRange {
    pub object: ObjectId,
    /// Exclusive.
    pub end: Offset,
    pub max_timestamp: Timestamp,
    pub last_commit_time: CommitTime,
    /// Stored bytes.
    pub bytes: u64,
}

/// An object that ranges refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Length in bytes.
    pub length: u64,
    /// Length of the footer in bytes.
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub checksum: u32,
    /// Ranges that refer to it; it is doomed when the last one goes.
    pub ranges: u32,
}

/// What the log knows of one life of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncarnationState {
    pub chain: WalChain,
    pub storage: String,
    pub wal_storage: String,
    pub listeners: Vec<Listener>,
    pub version: String,
    pub feature_level_max: u32,
    /// Its commands are refused, and its trim is frozen.
    pub fenced: bool,
    /// It left by itself and serves nothing: nobody need wait for its lease.
    pub drained: bool,
    /// Lowest number of its chain that may hold uncommitted bytes.
    pub trim: WalNumber,
    /// The seal that must be kept for ever.
    pub seal: Option<WalNumber>,
    /// Its prefixes have been cleaned.
    pub swept: bool,
}

impl IncarnationState {
    /// The node that lived it.
    pub fn node(&self) -> NodeId {
        self.chain.node
    }

    /// The advertised address of this name (`kafka`, `http`, ...), if there is one.
    pub fn listener(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.name == name)
    }
}

/// A verdict on a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    pub sound: bool,
    pub detail: String,
    /// Index of the row that brought it.
    pub at: LogIndex,
}

/// The memory of one session: the results of its commands in the last row that had new ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Session {
    /// Highest counter applied.
    pub(crate) high: u64,
    /// The row of `results`.
    pub(crate) row: LogIndex,
    pub(crate) results: OrdMap<u64, CommandResult>,
}

impl State {
    /// The state of an empty log.
    pub fn new(cluster: ClusterUuid) -> State {
        State {
            cluster,
            witness: Witness::default(),
            feature_level: 1,
            databases: OrdMap::new(),
            tables: Rising::default(),
            buckets: Rising::default(),
            objects: OrdMap::new(),
            doomed: OrdMap::new(),
            incarnations: OrdMap::new(),
            sessions: OrdMap::new(),
            probes: OrdMap::new(),
            broker_configs: OrdMap::new(),
            indexes: Indexes::default(),
        }
    }

    /// The cluster whose log this is.
    pub fn cluster(&self) -> ClusterUuid {
        self.cluster
    }

    /// The last row applied.
    pub fn witness(&self) -> Witness {
        self.witness
    }

    /// The log's feature level.
    pub fn feature_level(&self) -> u32 {
        debug_assert!(self.feature_level <= FEATURE_LEVEL_MAX, "apply and restore refuse newer levels");
        self.feature_level
    }

    /// The result of a request, if its session still keeps it. A request that was applied and forgotten gives none.
    pub fn result_of(&self, request: &RequestId) -> Option<&CommandResult> {
        self.sessions.get(&request.session)?.results.get(&request.counter)
    }

    /// All databases, by name.
    pub fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.values()
    }

    /// A database by name.
    pub fn database(&self, name: &DatabaseName) -> Option<&Database> {
        self.databases.get(name)
    }

    /// All tables, by id.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values().map(Arc::as_ref)
    }

    /// The tables of a database, by name.
    pub fn tables_of(&self, database: &DatabaseName) -> impl Iterator<Item = &Table> {
        let ids = self.indexes.paths.get(database).into_iter().flat_map(|tables| tables.values());
        ids.filter_map(|id| self.table(*id))
    }

    /// A table by id.
    pub fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.get(&id).map(Arc::as_ref)
    }

    /// A table by address.
    pub fn table_at(&self, path: &TablePath) -> Option<&Table> {
        self.table(*self.indexes.paths.get(&path.database)?.get(&path.table)?)
    }

    /// A table by Kafka's topic id.
    pub fn table_by_uuid(&self, uuid: &TableUuid) -> Option<&Table> {
        self.table(*self.indexes.uuids.get(uuid)?)
    }

    /// The table that a Kafka topic name means: a table of the Kafka database first, then `database.table`. Partitioned tables are
    /// no topics.
    pub fn topic(&self, kafka_database: &DatabaseName, name: &str) -> Option<&Table> {
        let table = TableName::new(name).ok()?;
        self.table_at(&TablePath { database: kafka_database.clone(), table })
            .or_else(|| self.table_at(&TablePath::parse(name).ok()?))
            .filter(|table| !table.is_partitioned())
    }

    /// All buckets, by id.
    pub fn buckets(&self) -> impl Iterator<Item = (&BucketId, &Bucket)> {
        self.buckets.iter()
    }

    /// What the state takes in memory, in bytes, by what each kind of thing takes on average.
    pub fn memory_bytes(&self) -> u64 {
        let ranges: usize =
            self.objects.iter().map(|(_, object)| usize::try_from(object.ranges).unwrap_or(0)).sum();
        let bytes = self.tables.len() * TABLE_BYTES
            + self.tables.values().map(|table| table.extra_bytes()).sum::<usize>()
            + self.buckets.len() * BUCKET_BYTES
            + ranges * RANGE_BYTES
            + (self.objects.len() + self.doomed.len()) * OBJECT_BYTES
            + self.sessions.len() * SESSION_BYTES
            + self
                .broker_configs
                .values()
                .flatten()
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
        bytes as u64
    }

    /// Number of buckets of all tables.
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// A bucket by id.
    pub fn bucket(&self, id: &BucketId) -> Option<&Bucket> {
        self.buckets.get(id)
    }

    /// All incarnations, oldest first.
    pub fn incarnations(&self) -> impl Iterator<Item = (Incarnation, &IncarnationState)> {
        self.incarnations.iter().map(|(id, state)| (*id, state))
    }

    /// The incarnations from `first` on, oldest first.
    pub fn incarnations_from(
        &self,
        first: Incarnation,
    ) -> impl Iterator<Item = (Incarnation, &IncarnationState)> {
        self.incarnations.range(first..).map(|(id, state)| (*id, state))
    }

    /// An incarnation.
    pub fn incarnation(&self, id: Incarnation) -> Option<&IncarnationState> {
        self.incarnations.get(&id)
    }

    /// The incarnations of one node, oldest first.
    pub fn incarnations_of(&self, node: NodeId) -> impl Iterator<Item = (Incarnation, &IncarnationState)> {
        self.incarnations().filter(move |(_, state)| state.node() == node)
    }

    /// The incarnations that are not fenced, oldest first.
    pub fn live(&self) -> impl Iterator<Item = (Incarnation, &IncarnationState)> {
        self.incarnations().filter(|(_, state)| !state.fenced)
    }

    /// An object that ranges refer to.
    pub fn object(&self, id: &ObjectId) -> Option<&Object> {
        self.objects.get(id)
    }

    /// All objects that ranges refer to.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectId, &Object)> {
        self.objects.iter()
    }

    /// A bucket's ranges in offset order, with their objects.
    pub fn objects_of(
        &self,
        bucket: &BucketId,
    ) -> impl Iterator<Item = (OffsetRange, &ObjectRange, &Object)> {
        self.buckets.get(bucket).into_iter().flat_map(move |bucket| {
            bucket.ranges.iter().filter_map(move |(start, range)| {
                let object = self.objects.get(&range.object)?;
                Some((OffsetRange { start: *start, end: range.end }, range, object))
            })
        })
    }

    /// Objects that nothing refers to any more, with the index of the row that took their last range.
    pub fn doomed(&self) -> impl Iterator<Item = (&ObjectId, LogIndex)> {
        self.doomed.iter().map(|(id, index)| (id, *index))
    }

    /// Whether a bucket hangs on the incarnation's chain.
    pub fn hangs(&self, id: Incarnation) -> bool {
        self.hanging(id).next().is_some()
    }

    /// The buckets that hang on the incarnation's chain, by id.
    pub fn hanging(&self, id: Incarnation) -> impl Iterator<Item = BucketId> + '_ {
        self.indexes.hanging.get(&id).into_iter().flat_map(|buckets| buckets.keys().copied())
    }

    /// Whether the incarnation is fenced and no bucket needs its chain: it stays so for ever.
    pub fn dead(&self, id: Incarnation) -> bool {
        self.incarnation(id).is_some_and(|state| state.fenced) && !self.hangs(id)
    }

    /// Numbers of the chain's WAL objects that ranges refer to (adopted ones), ascending.
    pub fn adopted(&self, chain: WalChain) -> impl Iterator<Item = WalNumber> + '_ {
        let wal = move |number| ObjectId::Wal { chain, number: WalNumber(number) };
        self.objects.range(wal(0)..=wal(u64::MAX)).filter_map(|(id, _)| match id {
            ObjectId::Wal { number, .. } => Some(*number),
            ObjectId::Stream { .. } => None,
        })
    }

    /// The broker configurations that were set for exactly this scope, by name.
    pub fn broker_configs(&self, scope: ConfigScope) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.broker_configs.get(&scope).unwrap_or(&NONE)
    }

    /// The value that was set for a node: its own, else that of all.
    pub fn broker_config(&self, node: NodeId, name: &str) -> Option<&str> {
        let of = |scope| self.broker_configs.get(&scope)?.get(name).map(String::as_str);
        of(ConfigScope::Node(node)).or_else(|| of(ConfigScope::Cluster))
    }

    /// The verdict on a store, if it was probed.
    pub fn probe(&self, store: &str) -> Option<&Probe> {
        self.probes.get(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_what_very_many_topics_take_is_what_was_counted() {
        // Sixteen of these lie in a leaf of the tree, which is copied when one of them changes.
        assert!(size_of::<(BucketId, Bucket)>() <= 88, "{} bytes", size_of::<(BucketId, Bucket)>());
        // A block each. Text and lists that few tables have belong behind a pointer.
        assert!(size_of::<Table>() <= 128, "{} bytes", size_of::<Table>());
        assert!(size_of::<(Offset, ObjectRange)>() <= 88, "{} bytes", size_of::<(Offset, ObjectRange)>());
    }
}
