//! Databases and tables: create, change and drop, with the rules of names.
//!
//! Lives on: anywhere (pure).
//! Invariants: K-26 (a dropped id stays dropped), I14 (a dropped table's objects are doomed unless another range needs them).
use std::sync::Arc;

use mink_types::{
    BucketEpoch, BucketId, CleanupPolicy, DatabaseId, DatabaseName, Incarnation, LogIndex, ObjectId, Offset,
    TableId, TableName, TableOptions, TablePath, TimestampType,
};

use super::brokers::{at_most, check_config};
use super::{Judged, Position};
use crate::state::{Bucket, Database, State, Table};
use crate::{
    Answer, FEATURE_LEVEL_ALTER_TABLE, FEATURE_LEVEL_CONFIGS, Invalid, KEPT_CONFIGS_MAX, LimitKind, NewTable,
    Ranges, Refusal, TableChange,
};

/// Most databases.
const DATABASES_MAX: usize = 10_000;
/// Most buckets of one table, whatever a node's own limits say.
const TABLE_BUCKETS_MAX: u32 = 1 << 20;

impl State {
    pub(super) fn create_database(&mut self, at: Position, name: &DatabaseName) -> Judged {
        if let Some(database) = self.databases.get(name) {
            return Err(Refusal::DatabaseExists { id: database.id });
        }
        if self.databases.len() >= DATABASES_MAX {
            return Err(Refusal::Limit { limit: LimitKind::Databases, max: DATABASES_MAX as u64 });
        }
        let id = DatabaseId(at.id());
        self.databases.insert(name.clone(), Database { id, name: name.clone(), created: at.index });
        Ok(Answer::DatabaseCreated(id))
    }

    pub(super) fn drop_database(&mut self, name: &DatabaseName) -> Judged {
        if !self.databases.contains_key(name) {
            return Err(Refusal::DatabaseNotFound { name: name.clone() });
        }
        if self.tables_of(name).next().is_some() {
            return Err(Refusal::DatabaseNotEmpty { name: name.clone() });
        }
        self.databases.remove(name);
        Ok(Answer::Done)
    }

    pub(super) fn create_table(&mut self, at: Position, new: &NewTable) -> Judged {
        if !self.databases.contains_key(&new.path.database) {
            return Err(Refusal::DatabaseNotFound { name: new.path.database.clone() });
        }
        if let Some(table) = self.table_at(&new.path) {
            return Err(Refusal::TableExists { id: table.id });
        }
        if let Some(other) = self.topic_collision(&new.path, &new.kafka_database) {
            return Err(Refusal::TopicCollision { other });
        }
        if new.uuid.0 == [0; 16] {
            return Err(Refusal::Invalid(Invalid::ZeroUuid));
        }
        if self.indexes.uuids.contains_key(&new.uuid) {
            return Err(Refusal::Invalid(Invalid::UuidTaken));
        }
        self.check_options(&new.options)?;
        let buckets = new.options.buckets;
        if buckets == 0 {
            return Err(Refusal::Invalid(Invalid::NoBuckets));
        }
        if buckets > TABLE_BUCKETS_MAX {
            return Err(Refusal::Limit { limit: LimitKind::BucketsPerTable, max: TABLE_BUCKETS_MAX.into() });
        }
        if self.buckets.len() as u64 + u64::from(buckets) > u64::from(new.buckets_max) {
            return Err(Refusal::Limit { limit: LimitKind::Buckets, max: new.buckets_max.into() });
        }
        let table = Table {
            id: TableId(at.id()),
            path: new.path.clone(),
            uuid: new.uuid,
            options: new.options.clone(),
            buckets,
        };
        self.index_table(&table);
        table.bucket_ids().for_each(|id| self.new_bucket(id));
        Ok(Answer::TableCreated(table.id))
    }

    pub(super) fn alter_table(&mut self, change: &TableChange) -> Judged {
        if self.feature_level < FEATURE_LEVEL_ALTER_TABLE {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let TableChange { id, seen, options, buckets_max } = change;
        let table = self.tables.get(id).ok_or(Refusal::TableNotFound { id: *id })?;
        if table.options != *seen {
            return Err(Refusal::TableChanged { id: *id });
        }
        if options.format != seen.format || options.buckets < table.buckets {
            return Err(Refusal::Invalid(Invalid::FixedForTable));
        }
        if options.buckets > TABLE_BUCKETS_MAX {
            return Err(Refusal::Limit { limit: LimitKind::BucketsPerTable, max: TABLE_BUCKETS_MAX.into() });
        }
        self.check_options(options)?;
        let added = u64::from(options.buckets - table.buckets);
        // A change of other options is not held up by a bound that was lowered since.
        if added > 0 && self.buckets.len() as u64 + added > u64::from(*buckets_max) {
            return Err(Refusal::Limit { limit: LimitKind::Buckets, max: (*buckets_max).into() });
        }
        let before = table.buckets;
        let changed = Table { options: options.clone(), buckets: options.buckets, ..Table::clone(table) };
        let new = changed.bucket_ids().skip(usize::try_from(before).unwrap_or(usize::MAX));
        new.for_each(|id| self.new_bucket(id));
        self.tables.insert(*id, Arc::new(changed));
        Ok(Answer::Done)
    }

    /// Refuses options that a program of the log's level would not understand, and those that would take too much memory.
    fn check_options(&self, options: &TableOptions) -> Result<(), Refusal> {
        let TableOptions { timestamps, cleanup, kept, .. } = options;
        let is_plain =
            *timestamps == TimestampType::CreateTime && *cleanup == CleanupPolicy::Delete && kept.is_empty();
        if !is_plain && self.feature_level < FEATURE_LEVEL_CONFIGS {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        at_most(kept.iter().count(), LimitKind::KeptConfigs, KEPT_CONFIGS_MAX)?;
        kept.iter().try_for_each(|(name, value)| check_config(name, value))
    }

    /// A bucket without an owner and without records.
    fn new_bucket(&mut self, id: BucketId) {
        let (start, end) = (Offset(0), Offset(0));
        let bucket = Bucket { epoch: BucketEpoch(0), owner: None, start, end, ranges: Ranges::new() };
        self.buckets.insert(id, bucket);
    }

    pub(super) fn drop_table(&mut self, at: Position, id: TableId) -> Judged {
        let table = self.tables.remove(&id).ok_or(Refusal::TableNotFound { id })?;
        self.indexes.unname(&table.path);
        self.indexes.uuids.remove(&table.uuid);
        self.indexes.topics.remove(&(table.path.database.clone(), table.path.table.collision_key(), id));
        let mut lost = Vec::new();
        for bucket in table.bucket_ids() {
            if let Some(state) = self.buckets.remove(&bucket) {
                lost.extend(state.ranges.values().map(|range| range.object));
                if let Some(owner) = state.owner {
                    self.indexes.unhang(owner, &bucket);
                }
            }
        }
        for object in lost {
            self.lose_range(at.index, object);
        }
        Ok(Answer::Done)
    }

    /// Adds a table and what leads to it, without its buckets.
    pub(crate) fn index_table(&mut self, table: &Table) {
        let (id, mut table) = (table.id, table.clone());
        if let Some(database) = self.databases.get(&table.path.database) {
            // All tables of a database share its name's bytes.
            table.path.database = database.name.clone();
        }
        let path = &table.path;
        self.indexes.name(path, id);
        self.indexes.uuids.insert(table.uuid, id);
        let key = path.table.collision_key();
        // Two names differ in `.` and `_` alone: without either there is nothing to collide with.
        if key.contains('_') {
            self.indexes.topics.insert((path.database.clone(), key, id));
        }
        self.tables.insert(id, Arc::new(table));
    }

    /// Puts a bucket in place and notes on whose chain it hangs.
    pub(crate) fn set_bucket(&mut self, id: BucketId, bucket: Bucket) {
        if let Some(owner) = bucket.owner {
            self.indexes.hang(owner, id);
        }
        self.buckets.insert(id, bucket);
    }

    /// Hangs a bucket on a chain, or on none.
    pub(super) fn set_owner(&mut self, id: BucketId, owner: Option<Incarnation>) {
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut bucket.owner, owner);
        if let Some(before) = before {
            self.indexes.unhang(before, &id);
        }
        if let Some(owner) = owner {
            self.indexes.hang(owner, id);
        }
    }

    /// A range of the object went. With its last one a stream object is doomed; a WAL object too once its chain is dead,
    /// for before that a second taker may still walk over it, and the sweep takes it with the chain.
    pub(super) fn lose_range(&mut self, at: LogIndex, id: ObjectId) {
        let Some(object) = self.objects.get_mut(&id) else {
            return;
        };
        object.ranges = object.ranges.saturating_sub(1);
        if object.ranges > 0 {
            return;
        }
        self.objects.remove(&id);
        let doomed = match id {
            ObjectId::Stream { .. } => true,
            ObjectId::Wal { chain, .. } => self.dead(chain.incarnation),
        };
        if doomed {
            self.doomed.insert(id, at);
        }
    }

    /// The table that a new one would collide with as a Kafka topic (FEATURES section 5).
    fn topic_collision(&self, path: &TablePath, kafka_database: &DatabaseName) -> Option<TablePath> {
        if path.database == *kafka_database {
            let key = path.table.collision_key();
            let mut same = self.indexes.topics.range((path.database.clone(), Arc::clone(&key), TableId(0))..);
            if let Some((database, found, id)) = same.next()
                && (database, found) == (&path.database, &key)
            {
                return self.tables.get(id).map(|table| table.path.clone());
            }
            let other = TablePath::parse(path.table.as_str()).ok()?;
            return self.table_at(&other).map(|table| table.path.clone());
        }
        let topic = TableName::new(&path.to_string()).ok()?;
        let other = TablePath { database: kafka_database.clone(), table: topic };
        self.table_at(&other).map(|table| table.path.clone())
    }
}
