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
use mink_types::{BucketId, Offset, TablePath, Timestamp};
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
            from,
            until: scan.until.map(Offset),
            limit: scan.limit,
            follow: false,
            columns: columns(table, &newest, scan)?,
        })
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
