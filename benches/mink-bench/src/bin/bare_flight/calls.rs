//! The calls that `mink bench put` and `scan` make; all others are refused.
//!
//! Lives on: the server's runtime.
use crate::tables::{Codec, Table, Tables};
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::utils::flight_data_to_arrow_batch;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{ArrowError, Schema};
use futures::stream::{self, BoxStream, StreamExt};
use mink_proto::{
    BatchInfo, Command, DescribeTable, Placed, PutAck, Scan, TableDescription, TableOption, Writer, command,
    ticket,
};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// Largest batch that a client is told of.
const BATCH_BYTES_MAX: &str = "268435456";

#[derive(Debug)]
pub(crate) struct Calls(pub(crate) Arc<Tables>);

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = BoxStream<'static, Result<T, Status>>;

fn malformed(error: impl std::fmt::Display) -> Status {
    Status::invalid_argument(error.to_string())
}

fn internal(error: &ArrowError) -> Status {
    Status::internal(error.to_string())
}

fn not_there<T>() -> Answer<T> {
    Err(Status::unimplemented("a bare server: DoPut, DoGet and what comes before them are all there is"))
}

fn command_of(descriptor: Option<&FlightDescriptor>) -> Result<command::Command, Status> {
    let descriptor = descriptor.ok_or_else(|| malformed("the call has no descriptor"))?;
    Command::read(&descriptor.cmd).map_err(malformed)
}

fn name(database: &str, table: &str) -> String {
    format!("{database}.{table}")
}

/// A call of DoPut: where its rows go, and how many batches it has had.
struct Putting {
    tables: Arc<Tables>,
    table: String,
    bucket: u32,
    schema: Arc<Schema>,
    messages: Streaming<FlightData>,
    batch: u64,
}

impl Putting {
    /// Decodes the next batch and drops it.
    async fn next(&mut self) -> Option<Result<PutResult, Status>> {
        let data = match self.messages.message().await {
            Ok(data) => data?,
            Err(status) => return Some(Err(status)),
        };
        let batch = match flight_data_to_arrow_batch(&data, Arc::clone(&self.schema), &HashMap::new()) {
            Ok(batch) => batch,
            Err(error) => return Some(Err(internal(&error))),
        };
        let rows = batch.num_rows() as u64;
        let base_offset = self.tables.put(&self.table, batch);
        let placed = vec![Placed { partition: 0, bucket: self.bucket, base_offset, rows }];
        let ack = PutAck { batch: self.batch, placed, repeated_rows: 0 };
        self.batch += 1;
        Some(Ok(PutResult { app_metadata: mink_proto::encode(&ack).into() }))
    }
}

/// A call of DoGet: batches that were kept, in turn, until as many were sent as were put.
struct Getting {
    table: Table,
    options: IpcWriteOptions,
    sent: u64,
    next_offset: u64,
}

impl Getting {
    fn next(&mut self) -> Option<Result<FlightData, Status>> {
        if self.sent >= self.table.batches {
            return None;
        }
        let kept = self.table.kept.len().max(1) as u64;
        let batch = self.table.kept.get(usize::try_from(self.sent % kept).unwrap_or(0))?;
        let mut dictionaries = DictionaryTracker::new(false);
        let mut context = CompressionContext::default();
        let encoded =
            IpcDataGenerator::default().encode(batch, &mut dictionaries, &self.options, &mut context);
        let encoded = match encoded {
            Ok((_, encoded)) => encoded,
            Err(error) => return Some(Err(internal(&error))),
        };
        let base_offset = self.next_offset;
        self.next_offset += batch.num_rows() as u64;
        self.sent += 1;
        let next_offset = self.next_offset;
        let info = BatchInfo { base_offset, next_offset, ..BatchInfo::default() };
        let data = FlightData::from(encoded);
        Some(Ok(FlightData { app_metadata: mink_proto::encode(&info).into(), ..data }))
    }
}

impl Calls {
    fn options(&self) -> Result<IpcWriteOptions, Status> {
        let codec = match self.0.codec {
            Codec::None => None,
            Codec::Lz4 => Some(CompressionType::LZ4_FRAME),
            Codec::Zstd => Some(CompressionType::ZSTD),
        };
        IpcWriteOptions::default().try_with_compression(codec).map_err(|error| internal(&error))
    }

    /// Every table is there, with one bucket.
    fn describe(&self, asked: DescribeTable) -> TableDescription {
        let option = |name: &str, value: &str| TableOption { name: name.into(), value: value.into() };
        TableDescription {
            table_id: 1,
            database: asked.database,
            table: asked.table,
            schema: 1,
            buckets: 1,
            options: vec![
                option("table.log.arrow.compression", self.0.codec.name()),
                option("max.message.bytes", BATCH_BYTES_MAX),
            ],
            ..TableDescription::default()
        }
    }
}

#[tonic::async_trait]
impl FlightService for Calls {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        not_there()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        not_there()
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let command::Command::Scan(scan) = command_of(Some(&request.into_inner()))? else {
            return not_there();
        };
        let scan = Scan { bucket: Some(0), ..scan };
        let ticket = mink_proto::Ticket { ticket: Some(ticket::Ticket::Scan(scan)) };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(mink_proto::encode(&ticket)));
        Ok(Response::new(FlightInfo::new().with_endpoint(endpoint)))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        not_there()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        not_there()
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let ticket::Ticket::Scan(scan) =
            mink_proto::Ticket::read(&request.into_inner().ticket).map_err(malformed)?;
        let table = self.0.table(&name(&scan.database, &scan.table));
        let (options, empty) = (self.options()?, Schema::empty());
        let first = FlightData::from(SchemaAsIpc::new(table.schema.as_deref().unwrap_or(&empty), &options));
        let getting = Getting { table, options, sent: 0, next_offset: 0 };
        let rest = stream::unfold(getting, |mut getting| async move {
            let next = getting.next()?;
            Some((next, getting))
        });
        Ok(Response::new(stream::iter([Ok(first)]).chain(rest).boxed()))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| malformed("the call has no message"))?;
        let command::Command::Append(append) = command_of(first.flight_descriptor.as_ref())? else {
            return not_there();
        };
        let schema = Arc::new(Schema::try_from(&first).map_err(|error| internal(&error))?);
        let table = name(&append.database, &append.table);
        let bucket = append.bucket.unwrap_or(0);
        let putting = Putting { tables: Arc::clone(&self.0), table, bucket, schema, messages, batch: 0 };
        let acks = stream::unfold(putting, |mut putting| async move {
            let next = putting.next().await?;
            Some((next, putting))
        });
        Ok(Response::new(acks.boxed()))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        not_there()
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let Action { r#type, body } = request.into_inner();
        let answer = match r#type.as_str() {
            "table.describe" => {
                let asked = mink_proto::decode("DescribeTable", &body).map_err(malformed)?;
                mink_proto::encode(&self.describe(asked))
            }
            "writer.open" => mink_proto::encode(&Writer { id: 1, epoch: 0 }),
            _ => return not_there(),
        };
        let answer = Ok(arrow_flight::Result { body: answer.into() });
        Ok(Response::new(stream::iter([answer]).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        not_there()
    }
}
