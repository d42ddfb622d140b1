//! Tables with columns: their schemas, and their partitions.
//!
//! Lives on: anywhere (pure).
//! Invariants: a schema comes after the one that it was made from, so of two changes from the same one the second is refused; K-26 (a
//! partition's id is never given again); I14 (a dropped partition's objects are doomed unless another range needs them).
//! What [`mink_types::schema::Schema::follows`] says of two schemas is part of the log's rules: it stays as it is for ever, or depends on
//! the feature level, since all versions of the program must judge a row alike (I11).
use std::sync::Arc;

use mink_types::LogFormat;
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{PartitionId, TableId};

use super::brokers::at_most;
use super::tables::at_most_in_table;
use super::{Judged, Position};
use crate::state::State;
use crate::table::{Typed, value_bytes};
use crate::wire::schema_bytes;
use crate::{
    Answer, FEATURE_LEVEL_SCHEMAS, Invalid, LimitKind, NewPartition, NewTable, PARTITION_VALUE_BYTES_MAX,
    PARTITIONS_PER_TABLE_MAX, Refusal, SCHEMAS_MAX, TABLE_SCHEMA_BYTES_MAX, Table,
};

fn invalid(what: Invalid) -> Refusal {
    Refusal::Invalid(what)
}

impl State {
    fn check_level_of_schemas(&self) -> Result<(), Refusal> {
        if self.feature_level < FEATURE_LEVEL_SCHEMAS { Err(invalid(Invalid::FeatureLevel)) } else { Ok(()) }
    }

    /// What a new table has beside others: something if its format has columns.
    pub(super) fn first_schema(&self, new: &NewTable) -> Result<Option<Typed>, Refusal> {
        let Some(schema) = &new.schema else {
            return match new.options.format {
                LogFormat::Kafka => Ok(None),
                LogFormat::Arrow => Err(invalid(Invalid::SchemaAndFormat)),
            };
        };
        self.check_level_of_schemas()?;
        match new.options.format {
            LogFormat::Arrow => {}
            LogFormat::Kafka => return Err(invalid(Invalid::SchemaAndFormat)),
        }
        if schema.id() != SchemaId::FIRST {
            return Err(invalid(Invalid::SchemaNotFirst));
        }
        let bytes = schema_bytes(schema);
        at_most(bytes, LimitKind::SchemaBytes, TABLE_SCHEMA_BYTES_MAX)?;
        Ok(Some(Typed::new(Arc::clone(schema), bytes)))
    }

    /// What a table has with one more schema, which was made from `planned`.
    pub(super) fn next_schema(
        &self,
        table: &Table,
        planned: SchemaId,
        schema: &Arc<Schema>,
    ) -> Result<Typed, Refusal> {
        self.check_level_of_schemas()?;
        let typed = table.typed.as_ref().ok_or(invalid(Invalid::SchemaAndFormat))?;
        let newest = table.schema().ok_or(invalid(Invalid::SchemaAndFormat))?;
        if newest.id() != planned {
            return Err(Refusal::SchemaChanged { id: table.id, newest: newest.id() });
        }
        schema.follows(newest).map_err(|_| invalid(Invalid::SchemaDoesNotFollow))?;
        at_most(typed.schema_count() + 1, LimitKind::Schemas, SCHEMAS_MAX)?;
        let bytes = schema_bytes(schema);
        at_most(typed.schema_bytes.saturating_add(bytes), LimitKind::SchemaBytes, TABLE_SCHEMA_BYTES_MAX)?;
        Ok(typed.followed_by(Arc::clone(schema), bytes))
    }

    pub(super) fn create_partition(&mut self, at: Position, new: &NewPartition) -> Judged {
        self.check_level_of_schemas()?;
        let NewPartition { table: id, values, buckets_max } = new;
        let table = self.tables.get(id).ok_or(Refusal::TableNotFound { id: *id })?;
        let typed = partitioned(table)?;
        check_values(table, values)?;
        if let Some(id) = table.partition_of(values) {
            return Err(Refusal::PartitionExists { id });
        }
        let count = table.partition_count() + 1;
        at_most(count, LimitKind::Partitions, PARTITIONS_PER_TABLE_MAX)?;
        let each = u64::from(table.buckets);
        at_most_in_table(each * count as u64)?;
        self.check_room(each, *buckets_max)?;
        let partition = PartitionId(at.id());
        let mut typed = Typed::clone(typed);
        let is_new = typed.add_partition(partition, values);
        debug_assert!(is_new, "K-26: ids rise, and no partition has the values");
        let buckets = table.bucket_ids_of(partition);
        let changed = Table { typed: Some(Arc::new(typed)), ..Table::clone(table) };
        buckets.for_each(|id| self.new_bucket(id));
        self.tables.insert(*id, Arc::new(changed));
        Ok(Answer::PartitionCreated(partition))
    }

    pub(super) fn drop_partition(&mut self, at: Position, id: TableId, partition: PartitionId) -> Judged {
        self.check_level_of_schemas()?;
        let table = self.tables.get(&id).ok_or(Refusal::TableNotFound { id })?;
        let typed = partitioned(table)?;
        if table.partition(partition).is_none() {
            return Err(Refusal::PartitionNotFound { id: partition });
        }
        let mut typed = Typed::clone(typed);
        typed.drop_partition(partition);
        let buckets = table.bucket_ids_of(partition);
        let changed = Table { typed: Some(Arc::new(typed)), ..Table::clone(table) };
        self.tables.insert(id, Arc::new(changed));
        self.drop_buckets(at, buckets);
        Ok(Answer::Done)
    }
}

fn partitioned(table: &Table) -> Result<&Typed, Refusal> {
    let typed = table.typed.as_deref().filter(|_| table.is_partitioned());
    typed.ok_or(invalid(Invalid::NotPartitioned))
}

/// Refuses values that are not those of a partition: each must fit the type of its column, which never changes.
fn check_values(table: &Table, values: &[Literal]) -> Result<(), Refusal> {
    let schema = table.schema().ok_or(invalid(Invalid::NotPartitioned))?;
    if !are_values(schema, values) {
        return Err(invalid(Invalid::PartitionValues));
    }
    at_most(value_bytes(values), LimitKind::TextBytes, PARTITION_VALUE_BYTES_MAX)
}

/// Whether these are values of the columns that a table is partitioned by.
pub(crate) fn are_values(schema: &Schema, values: &[Literal]) -> bool {
    let columns = schema.partitioned_by();
    let fits = |(id, value): (&_, &Literal)| {
        schema.column_by_id(*id).is_some_and(|column| column.data_type.check_literal(value).is_ok())
    };
    columns.len() == values.len() && columns.iter().zip(values).all(fits)
}
