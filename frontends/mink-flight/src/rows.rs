//! A stored batch becomes a message: as it lies there, cut by column, or decoded, mapped and written anew.
//!
//! Lives on: the service runtime; what inflates is done off its threads.
//! Invariants: I2: a message holds exactly the rows that are asked for, and says where they lie; a batch that cannot be read ends the
//! scan, it is never passed over.
use crate::address;
use crate::filter::Filter;
use crate::node::Node;
use crate::status::{IntoStatus, OrStatus};
use arrow_array::RecordBatch;
use arrow_flight::{FlightData, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use bytes::{Bytes, BytesMut};
use mink_metadata::Table;
use mink_proto::BatchInfo;
use mink_record::arrow::{
    ArrowBatch, ColumnStatistics, Mapping, Pruned, StatedSchema, ipc_message, kafka_rows, kafka_table_schema,
    read_schema,
};
use mink_record::kafka::{BatchFormat, BatchHeader};
use mink_record::{RecordError, RecordErrorKind};
use mink_types::schema::{FieldId, Schema, SchemaId};
use mink_types::{ArrowCompression, BucketId, Offset, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::{Code, Status};

/// Batches from this size on are decoded off the runtime's own threads.
const LARGE_BYTES: usize = 128 << 10;

/// The Arrow schema that a stream's first message states.
pub(crate) fn schema_of(first: &FlightData) -> Result<StatedSchema, Status> {
    read_schema(&first.data_header).or_status()
}

/// The first message of a stream.
pub(crate) fn schema_message(schema: &SchemaRef) -> FlightData {
    SchemaAsIpc::new(schema, &IpcWriteOptions::default()).into()
}

/// Which rows of a batch are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The first offset; the batch may begin before it.
    pub(crate) from: Offset,
    /// Exclusive.
    pub(crate) until: Option<Offset>,
    /// At most so many rows.
    pub(crate) rows: u64,
}

/// A message, if the batch has a row that is wanted.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) data: Option<FlightData>,
    pub(crate) rows: u64,
    /// Offset behind the last row that was looked at.
    pub(crate) next: Offset,
    /// Whether the batch has more rows that are wanted, from there on: those that were added to its columns since make it too large at once.
    pub(crate) more: bool,
}

/// What of a batch is sent.
struct Made {
    /// Metadata and body; none if no row is.
    message: Option<(Bytes, Bytes)>,
    rows: u64,
    /// Rows before the first one that is sent.
    passed: u64,
    /// Rows that were looked at: fewer than wanted if the scan's limit was reached before, or if not all fit.
    looked_at: u64,
    as_stored: bool,
}

/// The columns that a scan reads, and how they come out of batches of any schema of the table.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    table: TableId,
    /// All schemas of the table that are known.
    schemas: BTreeMap<SchemaId, Arc<Schema>>,
    wanted: Arc<Schema>,
    /// What is sent, then what only the filter looks at.
    read: Vec<FieldId>,
    sent: usize,
    schema: SchemaRef,
    filter: Filter,
    mappings: BTreeMap<SchemaId, Arc<Mapping>>,
}

/// What decoding one batch takes; it may happen on another thread.
struct Decoding {
    batch: Bytes,
    header: BatchHeader,
    stored: Arc<Schema>,
    /// Whether the rows were written with a schema that is newer than the scan's.
    is_newer: bool,
    mapping: Arc<Mapping>,
    filter: Filter,
    read: Vec<FieldId>,
    sent: usize,
    skip: usize,
    rows: usize,
    most: usize,
    inflated_bytes_max: usize,
}

impl Columns {
    /// Checks that the newest rows can be read as `wanted`.
    pub(crate) fn new(
        table: &Table,
        wanted: Arc<Schema>,
        projection: Vec<FieldId>,
        filter: Filter,
    ) -> Result<Columns, RecordError> {
        let mut schemas: BTreeMap<_, _> =
            table.schemas().map(|schema| (schema.id(), Arc::clone(schema))).collect();
        if schemas.is_empty() {
            schemas.insert(wanted.id(), Arc::clone(&wanted));
        }
        let schema = Arc::clone(Mapping::new(&wanted, &wanted, Some(&projection))?.schema());
        let (sent, mut read) = (projection.len(), projection);
        for field in filter.fields() {
            if !read.contains(&field) {
                read.push(field);
            }
        }
        Ok(Columns {
            table: table.id,
            schemas,
            wanted,
            read,
            sent,
            schema,
            filter,
            mappings: BTreeMap::new(),
        })
    }

    /// The Arrow schema of its messages.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The message of one batch. Where the table was altered since in a way that the columns of the scan cannot follow, the error says so.
    pub(crate) async fn message(
        &mut self,
        node: &Node,
        bucket: &BucketId,
        header: BatchHeader,
        batch: Bytes,
        cut: Cut,
    ) -> Result<Sent, Status> {
        let made = self.made(node, bucket, header, batch, cut).await;
        made.map_err(|status| match status.code() {
            Code::FailedPrecondition => self.altered(node, bucket, cut.from, status.message()),
            _ => status,
        })
    }

    async fn made(
        &mut self,
        node: &Node,
        bucket: &BucketId,
        header: BatchHeader,
        batch: Bytes,
        cut: Cut,
    ) -> Result<Sent, Status> {
        let base = Offset(u64::try_from(header.base_offset).unwrap_or(0));
        let count = u64::try_from(header.last_offset_delta).unwrap_or(0) + 1;
        let skip = cut.from.0.saturating_sub(base.0).min(count);
        let end = cut.until.map_or(base.plus(count), |until| until.min(base.plus(count)));
        let wanted = end.0.saturating_sub(base.0 + skip);
        let rows = if self.filter.is_empty() { wanted.min(cut.rows) } else { wanted };
        let next = Offset(base.0 + skip + rows);
        if rows == 0 {
            return Ok(Sent { data: None, rows: 0, next, more: false });
        }
        let made = match header.format {
            BatchFormat::Arrow => {
                let parsed = ArrowBatch::parse(&batch).or_status()?;
                let (stored, mapping) = self.mapping(node, parsed.schema())?;
                if !self.filter.is_empty() && !self.may_match(&parsed, &stored)? {
                    return Ok(Sent { data: None, rows: 0, next, more: false });
                }
                let whole = rows == count && self.filter.is_empty();
                match whole.then(|| as_stored(&parsed, &stored, &mapping)).transpose()?.flatten() {
                    Some((metadata, body)) => Made {
                        message: Some((metadata, body)),
                        rows,
                        passed: 0,
                        looked_at: rows,
                        as_stored: true,
                    },
                    None => {
                        self.decode(node, (header, batch), (stored, mapping), (skip, rows, cut.rows)).await?
                    }
                }
            }
            BatchFormat::Kafka => {
                let stored = Arc::clone(&self.wanted);
                let mapping = self.mapping(node, stored.id())?.1;
                self.decode(node, (header, batch), (stored, mapping), (skip, rows, cut.rows)).await?
            }
        };
        let Made { message, rows: sent, passed, looked_at, as_stored } = made;
        let (next, more) = (Offset(base.0 + skip + looked_at), looked_at < rows);
        let Some((metadata, body)) = message else {
            return Ok(Sent { data: None, rows: 0, next, more });
        };
        let rows = sent;
        node.counters.batch_out(rows, (metadata.len() + body.len()) as u64, as_stored);
        let info = BatchInfo {
            partition: bucket.partition.0,
            bucket: bucket.bucket.0,
            base_offset: base.0 + skip + passed,
            next_offset: next.0,
            commit_time_ms: header.max_timestamp,
        };
        let data = FlightData {
            flight_descriptor: None,
            data_header: metadata,
            app_metadata: mink_proto::encode(&info).into(),
            data_body: body,
        };
        Ok(Sent { data: Some(data), rows, next, more })
    }

    /// The schema of this id, and the way from it. A batch may have been written with one that is newer than the scan.
    fn mapping(&mut self, node: &Node, id: SchemaId) -> Result<(Arc<Schema>, Arc<Mapping>), Status> {
        if !self.schemas.contains_key(&id) {
            let state = node.admin.state();
            let schemas = state.table(self.table).into_iter().flat_map(Table::schemas);
            self.schemas = schemas.map(|schema| (schema.id(), Arc::clone(schema))).collect();
        }
        let stored = self.schemas.get(&id).cloned().ok_or_else(|| {
            Status::aborted(format!("rows were written with schema {id}, which is not known here yet, or whose table is gone; scan again"))
        })?;
        if let Some(mapping) = self.mappings.get(&id) {
            return Ok((stored, Arc::clone(mapping)));
        }
        let mapping = Arc::new(Mapping::new(&stored, &self.wanted, Some(&self.read)).or_status()?);
        self.mappings.insert(id, Arc::clone(&mapping));
        Ok((stored, mapping))
    }

    /// Rows that the columns of the scan cannot hold: they were written after a change of the table that those do not know.
    fn altered(&self, node: &Node, bucket: &BucketId, from: Offset, why: &str) -> Status {
        let state = node.admin.state();
        let (place, path) = match state.table(self.table) {
            Some(table) => (address::bucket_name(table, bucket), format!("table {}", table.path)),
            None => (format!("bucket {}", bucket.bucket), "the table".to_owned()),
        };
        Status::failed_precondition(format!(
            "{path} was altered: {place} has rows from offset {from} on that the columns of this scan (schema {}) cannot hold: {why}; scan \
             from there on with the newest schema",
            self.wanted.id()
        ))
    }

    /// Whether the statistics of a batch leave room for a row that meets the filter, as they read in the wanted schema.
    fn may_match(&self, batch: &ArrowBatch, stored: &Schema) -> Result<bool, Status> {
        let statistics = batch.statistics().or_status()?.into_iter().filter_map(|column| {
            let (from, to) = (stored.column_by_id(column.field)?, self.wanted.column_by_id(column.field)?);
            let widened = |bound: Option<_>| {
                bound.and_then(|bound| {
                    if from.data_type == to.data_type {
                        Some(bound)
                    } else {
                        from.data_type.widen_literal(&to.data_type, &bound)
                    }
                })
            };
            Some(ColumnStatistics { min: widened(column.min), max: widened(column.max), ..column })
        });
        let statistics: Vec<_> = statistics.collect();
        Ok(self.filter.may_match(batch.rows() as u64, &statistics))
    }

    /// Decodes, maps, filters and writes anew; none if no row is left.
    async fn decode(
        &self,
        node: &Node,
        (header, batch): (BatchHeader, Bytes),
        (stored, mapping): (Arc<Schema>, Arc<Mapping>),
        (skip, rows, most): (u64, u64, u64),
    ) -> Result<Made, Status> {
        let narrow = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let large = batch.len() >= LARGE_BYTES || header.format == BatchFormat::Kafka;
        let decoding = Decoding {
            batch,
            header,
            is_newer: stored.id() > self.wanted.id(),
            stored,
            mapping,
            filter: self.filter.clone(),
            read: self.read.clone(),
            sent: self.sent,
            skip: narrow(skip),
            rows: narrow(rows),
            most: narrow(most),
            inflated_bytes_max: narrow(node.config.limits.inflated_bytes_max.into()),
        };
        if large {
            node.service.blocking("flight-decode", move || decoding.run()).await.map_err(|error| {
                tracing::error!(table = %self.table, %error, "a batch was not decoded");
                Status::internal("a batch was not decoded; see the node's log")
            })?
        } else {
            decoding.run()
        }
    }
}

/// The message without decoding anything, if the mapping allows it.
fn as_stored(
    batch: &ArrowBatch,
    stored: &Schema,
    mapping: &Mapping,
) -> Result<Option<(Bytes, Bytes)>, Status> {
    if mapping.is_whole() {
        return Ok(Some((batch.metadata().clone(), batch.body().clone())));
    }
    if !mapping.is_identity() {
        return Ok(None);
    }
    let Pruned { metadata, body, body_length } = batch.prune(stored, mapping.stored_columns()).or_status()?;
    let body = match <[Bytes; 1]>::try_from(body) {
        Ok([only]) => only,
        Err(parts) => {
            let mut whole = BytesMut::with_capacity(body_length);
            for part in &parts {
                whole.extend_from_slice(part);
            }
            whole.freeze()
        }
    };
    Ok(Some((metadata, body)))
}

impl Decoding {
    fn run(self) -> Result<Made, Status> {
        let decoded = match self.header.format {
            BatchFormat::Arrow => ArrowBatch::parse(&self.batch)
                .or_status()?
                .decode_columns(&self.stored, self.mapping.stored_columns())
                .or_status()?,
            BatchFormat::Kafka => {
                kafka_rows(&self.header, self.batch, self.inflated_bytes_max).or_status()?
            }
        };
        if self.skip.saturating_add(self.rows) > decoded.num_rows() {
            return Err(Status::data_loss(format!(
                "a batch that should have {} rows has {}",
                self.skip.saturating_add(self.rows),
                decoded.num_rows()
            )));
        }
        let mapped = self.mapping.map_first(&decoded.slice(self.skip, self.rows));
        let mut rows = mapped.map_err(|error| match error.kind() {
            RecordErrorKind::InvalidRecord if self.is_newer => Status::failed_precondition(error.to_string()),
            _ => error.into_status(),
        })?;
        let (mut passed, mut looked_at) = (0, rows.num_rows());
        if !self.filter.is_empty() {
            let met = self.filter.rows(&rows, |field| self.read.iter().position(|read| *read == field))?;
            rows = filter_record_batch(&rows, &met).map_err(|error| Status::internal(error.to_string()))?;
            passed = met.values().set_indices().next().unwrap_or(0);
            if rows.num_rows() > self.most {
                rows = rows.slice(0, self.most);
                // A reader goes on behind the last row that it was given, not behind those that the limit left out.
                let last = met.values().set_indices().nth(self.most.saturating_sub(1));
                looked_at = last.map_or(looked_at, |last| last + 1);
            }
        }
        let message = if rows.num_rows() == 0 {
            None
        } else {
            let sent: Vec<usize> = (0..self.sent).collect();
            let sent: RecordBatch =
                rows.project(&sent).map_err(|error| Status::internal(error.to_string()))?;
            Some(ipc_message(&sent, ArrowCompression::None).or_status()?)
        };
        let (rows, passed, looked_at) = (rows.num_rows() as u64, passed as u64, looked_at as u64);
        Ok(Made { message, rows, passed, looked_at, as_stored: false })
    }
}

/// The columns of a table whose records came over the Kafka protocol.
pub(crate) fn kafka_columns() -> Arc<Schema> {
    kafka_table_schema()
}
