//! Rows of one message that belong to several partitions and buckets are told apart.
//!
//! Lives on: the service runtime; looking at rows costs by their number, so large messages are looked at off its threads.
//! Invariants: every row goes to the partition that its values name and to the bucket that its key hashes to, or the whole message is
//! refused before any of it is stored; rows keep their order within a bucket. A partition is made on its first row.
use crate::address;
use crate::node::Node;
use arrow_array::RecordBatch;
use mink_metadata::Table;
use mink_record::RecordError;
use mink_record::arrow::{Buckets, partition_values, rows_at};
use mink_types::schema::{Literal, Schema};
use mink_types::{BucketId, BucketIndex, PartitionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a new partition's buckets may take to open; the append says what is wrong if they did not.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// Partitions that the rows of one message may name.
const PARTITIONS_PER_MESSAGE_MAX: usize = 1_000;

/// How the rows of a call are told apart.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    schema: Arc<Schema>,
    /// None: the call names the bucket, or rows go to any.
    buckets: Option<Buckets>,
    /// Whether the table is partitioned: rows say theirs.
    by_partition: bool,
    /// The values of the partition that the call names: no row may say another.
    pub(crate) named: Option<Vec<Literal>>,
}

/// Partition and bucket of a row, as far as it says them.
type Place = (Option<Vec<Literal>>, Option<u32>);

/// Rows of one partition and bucket; none where they may go to any bucket.
pub(crate) struct Part {
    pub(crate) partition: Option<Vec<Literal>>,
    pub(crate) bucket: Option<u32>,
    pub(crate) rows: RecordBatch,
}

impl Route {
    /// None if no row needs to be looked at.
    pub(crate) fn new(table: &Table, schema: &Arc<Schema>, partition: Option<PartitionId>) -> Option<Route> {
        let buckets = Buckets::new(schema, table.buckets);
        let by_partition = table.is_partitioned();
        let named = partition.and_then(|partition| table.partition(partition)).map(<[Literal]>::to_vec);
        (buckets.is_some() || by_partition).then(|| Route {
            schema: Arc::clone(schema),
            buckets,
            by_partition,
            named,
        })
    }

    /// Tells rows apart.
    pub(crate) fn parts(&self, rows: &RecordBatch) -> Result<Vec<Part>, RecordError> {
        let buckets = self.buckets.as_ref().map(|buckets| buckets.of(rows)).transpose()?;
        let mut found: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
        for row in 0..rows.num_rows() {
            let partition =
                self.by_partition.then(|| partition_values(&self.schema, rows, row)).transpose()?;
            let bucket = buckets.as_ref().and_then(|buckets| buckets.get(row).copied());
            found.entry((partition, bucket)).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
        }
        let parts = found.into_iter().map(|((partition, bucket), places)| {
            let rows = if places.len() == rows.num_rows() { rows.clone() } else { rows_at(rows, places)? };
            Ok(Part { partition, bucket, rows })
        });
        parts.collect()
    }
}

/// The partitions that parts name, in their order: those that are not there yet are made.
pub(crate) async fn partitions(
    node: &Node,
    table: &Table,
    parts: &[Part],
) -> Result<Vec<Option<PartitionId>>, Status> {
    let mut known: BTreeMap<&[Literal], PartitionId> = BTreeMap::new();
    let mut found = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(values) = &part.partition else {
            found.push(None);
            continue;
        };
        if let Some(partition) = known.get(values.as_slice()) {
            found.push(Some(*partition));
            continue;
        }
        if known.len() == PARTITIONS_PER_MESSAGE_MAX {
            return Err(Status::invalid_argument(format!(
                "the rows of one message name more than {PARTITIONS_PER_MESSAGE_MAX} partitions of table {}; send fewer rows, or sort them by partition",
                table.path
            )));
        }
        let there = node.admin.state().table(table.id).and_then(|table| table.partition_of(values));
        let partition = if let Some(partition) = there {
            partition
        } else {
            let (partition, _) = address::make_partition(node, table, values.clone()).await?;
            node.admin.wait_open(table.id, OPEN_PATIENCE).await;
            partition
        };
        known.insert(values, partition);
        found.push(Some(partition));
    }
    Ok(found)
}

/// The bucket of a part.
pub(crate) fn bucket_id(table: &Table, partition: PartitionId, bucket: u32) -> BucketId {
    BucketId { table: table.id, partition, bucket: BucketIndex(bucket) }
}
