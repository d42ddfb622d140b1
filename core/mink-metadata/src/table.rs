//! A table, and what one with columns has beside: all its schemas, and its partitions.
//!
//! Lives on: anywhere (pure). A clone is cheap: what a table of columns has is shared.
//! Owns: the lists below; only `apply` and the decoding of snapshots change them.
//! Invariants: a table has schemas if and only if its format has columns, with ids from 1 on without a gap; partitions if and only if its
//! schema names columns for them, no two with the same values; ids of partitions are never given twice (K-26). I20: a topic's table pays one
//! word for all of it.
use std::sync::Arc;

use imbl::OrdMap;
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketId, BucketIndex, DatabaseName, LogIndex, PartitionId, TableId, TableOptions, TablePath, TableUuid,
};

use crate::apply::PLACE_BITS;

/// The partition that holds all buckets of a table that is not partitioned.
const ONLY: PartitionId = PartitionId(0);

/// What schemas take in memory for each byte of their encoding.
const SCHEMA_BYTES_FACTOR: usize = 10;
/// What a partition takes in memory beside its texts, without its buckets, in bytes.
const PARTITION_BYTES: usize = 250;

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    pub id: TableId,
    pub path: TablePath,
    /// Kafka's topic id.
    pub uuid: TableUuid,
    pub options: TableOptions,
    /// Number of buckets; of each partition, if there are such.
    pub buckets: u32,
    /// None for a table of Kafka's batches.
    pub(crate) typed: Option<Arc<Typed>>,
}

impl Table {
    /// Index of the row that created it: its id begins with that.
    pub fn created(&self) -> LogIndex {
        LogIndex(self.id.0 >> PLACE_BITS)
    }

    /// The ids of the table's buckets, in order: those of all partitions, one after the other.
    pub fn bucket_ids(&self) -> impl Iterator<Item = BucketId> + use<> {
        let (table, buckets) = (self.id, self.buckets);
        let partitions: Vec<PartitionId> = self.partitions().map(|(id, _)| id).collect();
        let only = (!self.is_partitioned()).then_some(ONLY);
        let all = only.into_iter().chain(partitions);
        all.flat_map(move |partition| buckets_of(table, partition, buckets))
    }

    /// The ids of the buckets that each of its partitions has, in order; whether there is such a partition is not looked at.
    pub fn bucket_ids_of(&self, partition: PartitionId) -> impl Iterator<Item = BucketId> + use<> {
        buckets_of(self.id, partition, self.buckets)
    }

    /// The table's name as a Kafka topic: the bare name in the Kafka database, `database.table` elsewhere.
    pub fn topic_name(&self, kafka_database: &DatabaseName) -> String {
        if self.path.database == *kafka_database {
            self.path.table.as_str().to_owned()
        } else {
            self.path.to_string()
        }
    }

    /// The newest schema; none for a table of Kafka's batches.
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.typed.as_ref()?.schemas.last()
    }

    /// The schema of this id, which batches may have been written with.
    pub fn schema_by_id(&self, id: SchemaId) -> Option<&Arc<Schema>> {
        let place = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.typed.as_ref()?.schemas.get(place)
    }

    /// All its schemas, oldest first.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.typed.iter().flat_map(|typed| typed.schemas.iter())
    }

    /// Whether its buckets belong to partitions, of which there may be none yet. Such a table is no topic.
    pub fn is_partitioned(&self) -> bool {
        self.schema().is_some_and(|schema| !schema.partitioned_by().is_empty())
    }

    /// Its partitions with their values, in the order of the columns that it is partitioned by; oldest first.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionId, &[Literal])> {
        self.typed.iter().flat_map(|typed| typed.partitions.iter()).map(|(id, values)| (*id, values.as_ref()))
    }

    /// The values of a partition, if it is there.
    pub fn partition(&self, id: PartitionId) -> Option<&[Literal]> {
        self.typed.as_ref()?.partitions.get(&id).map(AsRef::as_ref)
    }

    /// The partition of these values, in the order of the columns that the table is partitioned by.
    pub fn partition_of(&self, values: &[Literal]) -> Option<PartitionId> {
        self.typed.as_ref()?.by_values.get(values).copied()
    }

    /// Number of partitions.
    pub fn partition_count(&self) -> usize {
        self.typed.as_ref().map_or(0, |typed| typed.partitions.len())
    }

    /// Number of buckets in all partitions.
    pub fn bucket_count(&self) -> usize {
        let each = usize::try_from(self.buckets).unwrap_or(usize::MAX);
        if self.is_partitioned() { self.partition_count().saturating_mul(each) } else { each }
    }

    /// Whether the bucket is one of its own.
    pub(crate) fn has_bucket(&self, id: &BucketId) -> bool {
        let partition =
            if self.is_partitioned() { self.partition(id.partition).is_some() } else { id.partition == ONLY };
        id.table == self.id && partition && id.bucket.0 < self.buckets
    }

    /// What it takes in memory beside what every table takes, in bytes.
    pub(crate) fn extra_bytes(&self) -> usize {
        self.options.kept.bytes() + self.typed.as_ref().map_or(0, |typed| typed.memory_bytes())
    }
}

fn buckets_of(table: TableId, partition: PartitionId, buckets: u32) -> impl Iterator<Item = BucketId> {
    (0..buckets).map(move |bucket| BucketId { table, partition, bucket: BucketIndex(bucket) })
}

/// What a table with columns has beside other tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Typed {
    /// Never none; the one of id `n` stands at place `n - 1`.
    schemas: Arc<[Arc<Schema>]>,
    /// Of all schemas, as they are encoded.
    pub(crate) schema_bytes: usize,
    partitions: OrdMap<PartitionId, Arc<[Literal]>>,
    by_values: OrdMap<Arc<[Literal]>, PartitionId>,
    /// Of the texts and bytes among the partitions' values.
    value_bytes: usize,
}

impl Typed {
    /// What a table is created with: the schema, and its encoded length.
    pub(crate) fn new(schema: Arc<Schema>, bytes: usize) -> Typed {
        Typed {
            schemas: Arc::new([schema]),
            schema_bytes: bytes,
            partitions: OrdMap::new(),
            by_values: OrdMap::new(),
            value_bytes: 0,
        }
    }

    pub(crate) fn schema_count(&self) -> usize {
        self.schemas.len()
    }

    /// The same with a newer schema, of this encoded length.
    pub(crate) fn followed_by(&self, schema: Arc<Schema>, bytes: usize) -> Typed {
        let schemas = self.schemas.iter().cloned().chain([schema]).collect();
        Typed { schemas, schema_bytes: self.schema_bytes.saturating_add(bytes), ..self.clone() }
    }

    /// Adds a partition; false if there is one of this id or of these values.
    pub(crate) fn add_partition(&mut self, id: PartitionId, values: &[Literal]) -> bool {
        if self.partitions.contains_key(&id) || self.by_values.contains_key(values) {
            return false;
        }
        let values: Arc<[Literal]> = values.into();
        self.value_bytes = self.value_bytes.saturating_add(value_bytes(&values));
        self.partitions.insert(id, Arc::clone(&values));
        self.by_values.insert(values, id);
        true
    }

    pub(crate) fn drop_partition(&mut self, id: PartitionId) {
        if let Some(values) = self.partitions.remove(&id) {
            self.by_values.remove(&values);
            self.value_bytes = self.value_bytes.saturating_sub(value_bytes(&values));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.schema_bytes.saturating_mul(SCHEMA_BYTES_FACTOR)
            + self.partitions.len() * PARTITION_BYTES
            + self.value_bytes
    }
}

/// The bytes of texts and of bytes among values.
pub(crate) fn value_bytes(values: &[Literal]) -> usize {
    let bytes = |value: &Literal| match value {
        Literal::Text(text) => text.len(),
        Literal::Bytes(bytes) => bytes.len(),
        Literal::Boolean(_) | Literal::Integer(_) | Literal::Double(_) | Literal::Decimal(_) => 0,
    };
    values.iter().map(bytes).sum()
}
