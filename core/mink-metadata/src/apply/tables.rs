//! Databases and tables: create, change and drop, with the rules of names. What only tables with columns have: see `columns`.
//!
//! Lives on: anywhere (pure).
//! Invariants: K-26 (a dropped id stays dropped), I14 (a dropped table's objects are doomed unless another range needs them).
use std::sync::Arc;

use mink_types::{
    ArrowCompression, BucketEpoch, BucketId, CleanupPolicy, DatabaseId, DatabaseName, Incarnation,
    KafkaValueFormat, LogFormat, LogIndex, ObjectId, Offset, TableId, TableName, TableOptions, TablePath,
    TimestampType,
};

use super::brokers::{at_most, check_config};
use super::{Judged, Position};
use crate::state::{Bucket, Database, State};
use crate::{
    Answer, FEATURE_LEVEL_ALTER_TABLE, FEATURE_LEVEL_CONFIGS, FEATURE_LEVEL_SCHEMAS, Invalid,
    KEPT_CONFIGS_MAX, LimitKind, NewTable, Ranges, Refusal, Table, TableChange,
};

/// Most databases.
const DATABASES_MAX: usize = 10_000;
/// Most buckets of one table, whatever a node's own limits say.
const TABLE_BUCKETS_MAX: u32 = 1 << 20;

/// Refuses more buckets than a table may have, in all its partitions together.
pub(super) fn at_most_in_table(buckets: u64) -> Result<(), Refusal> {
    if buckets > u64::from(TABLE_BUCKETS_MAX) {
        return Err(Refusal::Limit { limit: LimitKind::BucketsPerTable, max: TABLE_BUCKETS_MAX.into() });
    }
    Ok(())
}

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
        let typed = self.first_schema(new)?.map(Arc::new);
        let buckets = new.options.buckets;
        if buckets == 0 {
            return Err(Refusal::Invalid(Invalid::NoBuckets));
        }
        let (id, path, options) = (TableId(at.id()), new.path.clone(), new.options.clone());
        let table = Table { id, path, uuid: new.uuid, options, buckets, typed };
        at_most_in_table(buckets.into())?;
        if !table.is_partitioned() {
            self.check_room(buckets.into(), new.buckets_max)?;
        }
        self.index_table(&table);
        table.bucket_ids().for_each(|id| self.new_bucket(id));
        Ok(Answer::TableCreated(table.id))
    }

    pub(super) fn alter_table(&mut self, change: &TableChange) -> Judged {
        if self.feature_level < FEATURE_LEVEL_ALTER_TABLE {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let TableChange { id, seen, options, schema, buckets_max } = change;
        let table = self.tables.get(id).ok_or(Refusal::TableNotFound { id: *id })?;
        if table.options != *seen {
            return Err(Refusal::TableChanged { id: *id });
        }
        // Rows of one key must go on to the bucket that has the key.
        let has_key = table.schema().is_some_and(|schema| !schema.primary_key().is_empty());
        let moves_keys = has_key && options.buckets != table.buckets;
        if options.format != seen.format || options.buckets < table.buckets || moves_keys {
            return Err(Refusal::Invalid(Invalid::FixedForTable));
        }
        let parts = if table.is_partitioned() { table.partition_count() as u64 } else { 1 };
        let (each, before) = (u64::from(options.buckets), table.buckets);
        let added = (each - u64::from(before)) * parts;
        at_most_in_table(each * parts.max(1))?;
        self.check_options(options)?;
        // A change of other options is not held up by a bound that was lowered since.
        if added > 0 {
            self.check_room(added, *buckets_max)?;
        }
        let typed = match schema {
            Some((planned, schema)) => Some(Arc::new(self.next_schema(table, *planned, schema)?)),
            None => table.typed.clone(),
        };
        let (options, buckets) = (options.clone(), options.buckets);
        let changed = Table { options, buckets, typed, ..Table::clone(table) };
        let new = changed.bucket_ids().filter(|id| id.bucket.0 >= before);
        new.for_each(|id| self.new_bucket(id));
        self.tables.insert(*id, Arc::new(changed));
        Ok(Answer::Done)
    }

    /// Refuses so many more buckets if all tables then had more than the asking node's bound.
    pub(super) fn check_room(&self, added: u64, buckets_max: u32) -> Result<(), Refusal> {
        if self.buckets.len() as u64 + added > u64::from(buckets_max) {
            return Err(Refusal::Limit { limit: LimitKind::Buckets, max: buckets_max.into() });
        }
        Ok(())
    }

    /// Refuses options that a program of the log's level would not understand, and those that would take too much memory.
    fn check_options(&self, options: &TableOptions) -> Result<(), Refusal> {
        let TableOptions { format, timestamps, cleanup, arrow_compression, kafka_value, kept, .. } = options;
        let is_plain =
            *timestamps == TimestampType::CreateTime && *cleanup == CleanupPolicy::Delete && kept.is_empty();
        let is_of_records = *format == LogFormat::Kafka
            && *arrow_compression == ArrowCompression::default()
            && *kafka_value == KafkaValueFormat::default();
        if (!is_plain && self.feature_level < FEATURE_LEVEL_CONFIGS)
            || (!is_of_records && self.feature_level < FEATURE_LEVEL_SCHEMAS)
        {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        at_most(kept.iter().count(), LimitKind::KeptConfigs, KEPT_CONFIGS_MAX)?;
        kept.iter().try_for_each(|(name, value)| check_config(name, value))
    }

    /// A bucket without an owner and without records.
    pub(super) fn new_bucket(&mut self, id: BucketId) {
        let (start, end) = (Offset(0), Offset(0));
        let bucket = Bucket { epoch: BucketEpoch(0), owner: None, start, end, ranges: Ranges::new() };
        self.buckets.insert(id, bucket);
    }

    pub(super) fn drop_table(&mut self, at: Position, id: TableId) -> Judged {
        let table = self.tables.remove(&id).ok_or(Refusal::TableNotFound { id })?;
        self.indexes.unname(&table.path);
        self.indexes.uuids.remove(&table.uuid);
        self.indexes.topics.remove(&(table.path.database.clone(), table.path.table.collision_key(), id));
        self.drop_buckets(at, table.bucket_ids());
        Ok(Answer::Done)
    }

    /// Takes buckets away; objects that lose their last range are doomed.
    pub(super) fn drop_buckets(&mut self, at: Position, buckets: impl Iterator<Item = BucketId>) {
        let mut lost = Vec::new();
        for bucket in buckets {
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
