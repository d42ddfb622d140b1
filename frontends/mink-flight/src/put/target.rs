//! Where the rows of a put go, and the sequences of its writer.
//!
//! Lives on: the service runtime; one per call.
//! Owns: the number of the next row, whose turn it is.
//! Invariants: T-7: the table is the one that the call began with, not another of its name; I6: a writer's sequences are those of one bucket.
use crate::address;
use crate::node::Node;
use crate::route::Route;
use crate::status::{IntoStatus, of_bucket};
use mink_metadata::Table;
use mink_proto::{Append, PutBatch, Writer};
use mink_record::kafka::ProducerStamp;
use mink_router::AppendError;
use mink_types::schema::Schema;
use mink_types::{BucketId, PartitionId, Sequence};
use std::sync::Arc;
use tonic::Status;

/// Where the rows of a call go.
pub(super) struct Target {
    pub(super) table: Table,
    pub(super) schema: Arc<Schema>,
    /// How rows are told apart; none if all go where the call says, or anywhere.
    pub(super) route: Option<Route>,
    /// What the call names.
    pub(super) partition: Option<PartitionId>,
    pub(super) bucket: Option<u32>,
    /// Those that the call is about, as far as they are there.
    buckets: Vec<BucketId>,
    /// The next batch's bucket, of a table whose rows may go to any.
    turn: usize,
    writer: Option<(Writer, Sequence)>,
}

impl Target {
    pub(super) fn of(node: &Node, append: &Append) -> Result<Target, Status> {
        let path = address::table_path(&append.database, &append.table)?;
        let state = node.admin.state();
        let table = address::find(&state, &path)?;
        let schema = Arc::clone(address::columns_of(table)?);
        if append.table_id != 0 && append.table_id != table.id.0 {
            return Err(Status::not_found(format!(
                "table {path} is not the one that was written to: it was dropped and created again; begin anew"
            )));
        }
        let partition = address::partition_named(table, &append.partition)?;
        if let Some(found) = partition.filter(|found| ![0, found.0].contains(&append.partition_id)) {
            return Err(Status::not_found(format!(
                "partition {} of table {path} is not the one that was written to: it was dropped and made again; a writer counts from 0 in it",
                address::partition_name(table, table.partition(found).unwrap_or_default())
            )));
        }
        let route = Route::new(table, &schema, partition);
        let buckets = address::buckets(table, partition, append.bucket)?;
        let one_bucket = table.buckets == 1 || append.bucket.is_some();
        if append.writer.is_some() && !(one_bucket && (partition.is_some() || !table.is_partitioned())) {
            return Err(Status::invalid_argument(format!(
                "table {path} has several buckets: an idempotent writer names partition and bucket in mink.v1.Append, for its sequences count rows of a bucket"
            )));
        }
        let turn = usize::try_from(node.service.random_u64() % (buckets.len() as u64).max(1)).unwrap_or(0);
        let writer = append.writer.map(|writer| (writer, Sequence(0)));
        Ok(Target {
            table: table.clone(),
            schema,
            route,
            partition,
            bucket: append.bucket,
            buckets,
            turn,
            writer,
        })
    }

    /// The number of the bucket of the next batch, of any partition.
    pub(super) fn next_turn(&mut self) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        u32::try_from(self.turn % usize::try_from(self.table.buckets.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// The bucket of the next batch.
    pub(super) fn next_bucket(&mut self) -> Result<BucketId, Status> {
        let at = self.turn % self.buckets.len().max(1);
        self.turn = self.turn.wrapping_add(1);
        self.buckets.get(at).copied().ok_or_else(|| {
            Status::failed_precondition(format!("table {} has no bucket to write to", self.table.path))
        })
    }

    /// What marks the next batch as its writer's.
    pub(super) fn stamp(&self, told: &PutBatch) -> Result<Option<ProducerStamp>, Status> {
        let Some((writer, next)) = self.writer else {
            return match told.sequence {
                None => Ok(None),
                Some(_) => Err(Status::invalid_argument(
                    "the batch has a sequence but the call no writer; name it in mink.v1.Append",
                )),
            };
        };
        let sequence = told.sequence.map_or(next, Sequence);
        let epoch = i16::try_from(writer.epoch).ok().filter(|epoch| *epoch >= 0);
        match (writer.id >= 0, epoch, sequence.0 >= 0) {
            (true, Some(epoch), true) => {
                Ok(Some(ProducerStamp { id: writer.id, epoch, base_sequence: sequence.0 }))
            }
            _ => Err(Status::invalid_argument(
                "writer id, epoch and sequence are from 0 on; the action writer.open gives id and epoch",
            )),
        }
    }

    /// Notes the rows that were handed over.
    pub(super) fn passed(&mut self, stamp: Option<ProducerStamp>, rows: u32) {
        if let (Some((_, next)), Some(stamp)) = (&mut self.writer, stamp) {
            *next = Sequence(stamp.base_sequence).plus(rows);
        }
    }

    /// Why a batch was not taken.
    pub(super) fn refused(&self, node: &Node, bucket: BucketId, error: AppendError) -> Status {
        let named = || match node.admin.state().table(bucket.table) {
            Some(table) => of_bucket(table, &bucket, error.into_status()),
            None => error.into_status(),
        };
        self.dropped(node, bucket).unwrap_or_else(named)
    }

    /// That the table, or the partition, is not there any more: no try at another node helps then (T-7).
    fn dropped(&self, node: &Node, bucket: BucketId) -> Option<Status> {
        let path = &self.table.path;
        let state = node.admin.state();
        let Some(table) = state.table(bucket.table) else {
            return Some(Status::not_found(format!(
                "table {path} was dropped while it was written; begin anew if there is another of that name"
            )));
        };
        let is_there = bucket.partition == PartitionId(0) || table.partition(bucket.partition).is_some();
        (!is_there).then(|| {
            Status::not_found(format!(
                "the partition of table {path} was dropped while it was written; a writer counts from 0 in another of the same values"
            ))
        })
    }

    /// That a writer goes on in a bucket that knows nothing of it.
    pub(super) fn unknown_writer(&self, node: &Node, bucket: BucketId, found: Sequence) -> Status {
        let state = node.admin.state();
        Status::failed_precondition(format!(
            "{} of table {} does not know the writer, or has forgotten it, and the first row has the sequence {}; a writer begins with 0, a new one is opened by the action writer.open",
            address::bucket_name(state.table(bucket.table).unwrap_or(&self.table), &bucket),
            self.table.path,
            found.0
        ))
    }
}
