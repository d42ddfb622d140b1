//! What a scan reads, decided once from the message that asks for it.
//!
//! Lives on: anywhere (pure but for the view of the metadata).
//! Invariants: I19: names, constants and places are checked before anything is read.
use crate::address;
use crate::filter::Filter;
use crate::rows::{self, Columns};
use crate::status::OrStatus;
use arrow_schema::SchemaRef;
use mink_metadata::{State, Table};
use mink_proto::{Scan, position};
use mink_record::arrow::arrow_schema;
use mink_types::schema::{FieldId, Schema, SchemaId};
use mink_types::{BucketId, Offset, PartitionId, TablePath, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::Status;

/// Where a bucket is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Earliest,
    Latest,
    Offset(Offset),
    Time(Timestamp),
}

/// A scan that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) table: Table,
    /// The one partition that is meant; none if all are.
    partition: Option<PartitionId>,
    /// The number of the one bucket that is meant, of each partition; none if all are.
    bucket: Option<u32>,
    /// Those that there were when it was decided.
    pub(crate) buckets: Vec<BucketId>,
    pub(crate) from: From,
    pub(crate) until: Option<Offset>,
    pub(crate) limit: Option<u64>,
    /// Whether it goes on when it is at the end.
    pub(crate) follow: bool,
    pub(crate) columns: Columns,
}

impl Plan {
    /// Of a table as a whole.
    pub(crate) fn of_table(state: &State, path: &TablePath) -> Result<Plan, Status> {
        let scan =
            Scan { database: path.database.to_string(), table: path.table.to_string(), ..Scan::default() };
        Plan::of(state, &scan)
    }

    /// Of what a client asks for.
    pub(crate) fn of(state: &State, scan: &Scan) -> Result<Plan, Status> {
        let path = address::table_path(&scan.database, &scan.table)?;
        let table = address::find(state, &path)?;
        if scan.table_id != 0 && scan.table_id != table.id.0 {
            return Err(Status::not_found(format!(
                "table {path} is not the one that the ticket was made for: it was dropped and created again; ask for its tickets anew"
            )));
        }
        let partition = address::partition_named(table, &scan.partition)?;
        if let Some(found) = partition.filter(|found| scan.partition_id != 0 && scan.partition_id != found.0)
        {
            return Err(Status::not_found(format!(
                "partition {} of table {path} is not the one that the ticket was made for: it was dropped and made again; ask for its tickets anew",
                address::partition_name(table, table.partition(found).unwrap_or_default())
            )));
        }
        let from = match scan.from.as_ref().and_then(|from| from.position.as_ref()) {
            None | Some(position::Position::Earliest(_)) => From::Earliest,
            Some(position::Position::Latest(_)) => From::Latest,
            Some(position::Position::Offset(offset)) => From::Offset(Offset(*offset)),
            Some(position::Position::TimestampMs(time)) => From::Time(Timestamp(*time)),
        };
        let newest = table.schema().map_or_else(rows::kafka_columns, Arc::clone);
        Ok(Plan {
            buckets: address::buckets(table, partition, scan.bucket)?,
            table: table.clone(),
            partition,
            bucket: scan.bucket,
            from,
            until: scan.until.map(Offset),
            limit: scan.limit,
            follow: false,
            columns: columns(table, &newest, scan)?,
        })
    }

    /// The buckets that it means by now; an error if the table is gone, or the one partition.
    pub(crate) fn buckets_of(&self, state: &State) -> Result<Vec<BucketId>, Status> {
        let path = &self.table.path;
        let table = state.table(self.table.id).ok_or_else(|| {
            Status::not_found(format!("table {path} was dropped; what it had is gone, and the scan ends"))
        })?;
        if let Some(partition) = self.partition.filter(|partition| table.partition(*partition).is_none()) {
            let values = self.table.partition(partition).unwrap_or_default();
            return Err(Status::not_found(format!(
                "partition {} of table {path} was dropped; what it had is gone, and the scan ends",
                address::partition_name(&self.table, values)
            )));
        }
        address::buckets(table, self.partition, self.bucket)
    }

    /// The Arrow schema of what it reads.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.columns.schema()
    }
}

fn columns(table: &Table, newest: &Arc<Schema>, scan: &Scan) -> Result<Columns, Status> {
    let wanted = match scan.schema {
        None => newest,
        Some(id) => table.schema_by_id(SchemaId(id)).ok_or_else(|| {
            Status::not_found(format!(
                "table {} has no schema {id}; its newest is {}",
                table.path,
                newest.id()
            ))
        })?,
    };
    let unknown = |name: &str| {
        let names: Vec<_> = wanted.columns().iter().map(|column| column.name.as_str()).collect();
        Status::invalid_argument(format!(
            "table {} has no column {name:?}; it has {}",
            table.path,
            names.join(", ")
        ))
    };
    let field = |name: &String| wanted.column(name).map(|column| column.id).ok_or_else(|| unknown(name));
    let mut projection: Vec<FieldId> = scan.columns.iter().map(field).collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some(again) = scan.columns.iter().find(|name| !seen.insert(*name)) {
        return Err(Status::invalid_argument(format!("column {again:?} is asked for twice; name it once")));
    }
    if projection.is_empty() {
        projection = wanted.columns().iter().map(|column| column.id).collect();
    }
    let filter = Filter::new(&table.path, wanted, &scan.filter)?;
    Columns::new(table, Arc::clone(wanted), projection, filter).or_status()
}

/// The Arrow schema that GetSchema and GetFlightInfo tell of a table.
pub(crate) fn schema_of(table: &Table) -> SchemaRef {
    arrow_schema(&table.schema().map_or_else(rows::kafka_columns, Arc::clone))
}
