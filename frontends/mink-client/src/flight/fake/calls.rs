//! The fake's calls.
//!
//! Lives on: the test's runtime.
use super::{Entry, Fake, Fault, columns};
use arrow_array::RecordBatch;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::utils::flight_data_to_arrow_batch;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::writer::IpcWriteOptions;
use futures::stream::{self, BoxStream, StreamExt};
use mink_proto::{
    Append, BatchInfo, Command, DescribeTable, FindWriter, Position, PutAck, PutBatch, Scan,
    TableDescription, Writer, WriterState, command, position, ticket,
};
use mink_record::arrow::{ipc_message, read_schema};
use mink_types::{ArrowCompression, Sequence};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

#[derive(Clone, Debug)]
pub(super) struct Calls(pub(super) Arc<Fake>);

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = BoxStream<'static, Result<T, Status>>;

fn malformed(error: impl std::fmt::Display) -> Status {
    Status::invalid_argument(error.to_string())
}

fn not_there<T>() -> Answer<T> {
    Err(Status::unimplemented("the fake has no such call"))
}

fn command_of(descriptor: &FlightDescriptor) -> Result<command::Command, Status> {
    Command::read(&descriptor.cmd).map_err(malformed)
}

fn known(table: &str) -> Result<(), Status> {
    if table == "orders" { Ok(()) } else { Err(Status::not_found(format!("table {table} does not exist"))) }
}

fn schema_message() -> FlightData {
    SchemaAsIpc::new(&columns(), &IpcWriteOptions::default()).into()
}

fn channel<T: Send + 'static>() -> (mpsc::Sender<Result<T, Status>>, Answers<T>) {
    let (sender, mut receiver) = mpsc::channel(64);
    (sender, stream::poll_fn(move |context| receiver.poll_recv(context)).boxed())
}

/// The rows of an entry that a scan wants, and its first offset.
fn wanted(entry: &Entry, next: u64, scan: &Scan) -> Option<(u64, RecordBatch)> {
    let end = entry.base_offset + entry.batch.num_rows() as u64;
    let end = scan.until.map_or(end, |until| end.min(until));
    let base = entry.base_offset.max(next);
    let rows = end.checked_sub(base).filter(|rows| *rows > 0)?;
    let rows = scan.limit.map_or(rows, |limit| limit.min(rows));
    let narrow = |count: u64| usize::try_from(count).expect("tests have few rows");
    Some((base, entry.batch.slice(narrow(base - entry.base_offset), narrow(rows))))
}

impl Calls {
    /// Sends what a scan wants; true while it has more to read.
    async fn scan(&self, mut scan: Scan, follow: bool, rows: mpsc::Sender<Result<FlightData, Status>>) {
        let bucket = scan.bucket.unwrap_or(0);
        let partition = self.0.table().partition_of(&scan.partition);
        let partition = match partition {
            Ok(partition) if scan.partition_id == 0 || scan.partition_id == partition => partition,
            Ok(_) => {
                return drop(rows.send(Err(Status::not_found("another partition of these values"))).await);
            }
            Err(status) => return drop(rows.send(Err(status)).await),
        };
        let place = (partition, bucket);
        let (break_after, mut next) = {
            let mut table = self.0.table();
            table.scans += 1;
            let end = table.end_of(place);
            let next = match scan.from.as_ref().and_then(|from| from.position.as_ref()) {
                Some(position::Position::Offset(offset)) => *offset,
                Some(position::Position::Latest(_)) => end,
                _ => 0,
            };
            (table.break_scans_after.pop_front(), next)
        };
        drop(rows.send(Ok(schema_message())).await);
        let mut sent = 0;
        loop {
            let grown = self.0.grown.notified();
            if self.0.table().partition_of(&scan.partition).ok() != Some(partition) {
                return drop(rows.send(Err(Status::not_found("the partition was dropped"))).await);
            }
            let log = self.0.table().logs.get(&place).cloned().unwrap_or_default();
            for entry in &log {
                let Some((base_offset, batch)) = wanted(entry, next, &scan) else { continue };
                if break_after == Some(sent) {
                    let grown = self.0.table().grows_at_break.pop_front();
                    if let Some(rows) = grown {
                        self.0.append_to(place, rows);
                    }
                    self.0.cut_connections();
                    return;
                }
                let altered_at = self.0.table().altered_at;
                if scan.schema == Some(1) && altered_at.is_some_and(|at| base_offset >= at) {
                    let altered = Status::failed_precondition("the columns of schema 1 do not hold it");
                    return drop(rows.send(Err(altered)).await);
                }
                next = base_offset + batch.num_rows() as u64;
                scan.limit = scan.limit.map(|limit| limit - batch.num_rows() as u64);
                let (header, body) = ipc_message(&batch, ArrowCompression::Lz4).expect("they are rows");
                let info = BatchInfo { partition, bucket, base_offset, next_offset: next, commit_time_ms: 7 };
                let body = self.0.table().damaged_body.clone().map_or(body, Into::into);
                let data = FlightData {
                    flight_descriptor: None,
                    data_header: header,
                    app_metadata: mink_proto::encode(&info).into(),
                    data_body: body,
                };
                if rows.send(Ok(data)).await.is_err() {
                    return;
                }
                sent += 1;
            }
            if !follow {
                return;
            }
            tokio::select! {
                () = grown => {}
                () = rows.closed() => return,
            }
        }
    }

    /// Takes the batches of one stream.
    async fn put(
        self,
        mut messages: Streaming<FlightData>,
        schema: arrow_schema::SchemaRef,
        (append, partition): (Append, u64),
        acks: mpsc::Sender<Result<PutResult, Status>>,
    ) {
        let (mut number, mut turn) = (0, 0);
        while let Ok(Some(data)) = messages.message().await {
            let bucket = append.bucket.unwrap_or(turn);
            turn = (turn + 1) % self.0.table().buckets;
            let told: PutBatch =
                mink_proto::decode("PutBatch", &data.app_metadata).expect("the client's own");
            let batch = flight_data_to_arrow_batch(&data, Arc::clone(&schema), &HashMap::new());
            let batch = batch.expect("the client's own");
            let stamp = append.writer.map(|writer| (writer, Sequence(told.sequence.expect("stated always"))));
            let answer = {
                let mut table = self.0.table();
                table.attempts.push((bucket, told.sequence, batch.num_rows()));
                let fault = table.faults.pop_front().unwrap_or(Fault::Take);
                let placed = match fault {
                    Fault::LoseBatch | Fault::Refuse(_) => Err(Status::unknown("not stored")),
                    Fault::Take | Fault::LoseAck | Fault::StoreAndRefuse(_) => {
                        table.put((partition, bucket), batch, stamp)
                    }
                };
                match (fault, placed) {
                    (Fault::LoseBatch | Fault::LoseAck, _) => None,
                    (Fault::Refuse(code) | Fault::StoreAndRefuse(code), _) => {
                        Some(Err(Status::new(code, "by script")))
                    }
                    (Fault::Take, placed) => Some(placed),
                }
            };
            self.0.grown.notify_waiters();
            let Some(answer) = answer else {
                self.0.cut_connections();
                return;
            };
            let failed = answer.is_err();
            let ack = answer.map(|placed| PutAck { batch: number, placed: vec![placed], repeated_rows: 0 });
            let result = ack.map(|ack| PutResult { app_metadata: mink_proto::encode(&ack).into() });
            if acks.send(result).await.is_err() || failed {
                return;
            }
            number += 1;
        }
    }

    fn describe(&self) -> TableDescription {
        let table = self.0.table();
        TableDescription {
            table_id: 1,
            database: "sales".into(),
            table: "orders".into(),
            schema: if table.altered_at.is_some() { 2 } else { 1 },
            buckets: table.buckets,
            bucket_key: table.bucket_key.clone(),
            partitioned_by: table.partitioned_by.clone(),
            create_statement: table.statement(),
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

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let path = vec!["sales".into(), "orders".into()];
        let info = FlightInfo::new().with_descriptor(FlightDescriptor::new_path(path));
        let met = "sales.orders".as_bytes().starts_with(&request.into_inner().expression);
        Ok(Response::new(stream::iter(met.then_some(Ok(info))).boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let command::Command::Scan(scan) = command_of(&request.into_inner())? else { return not_there() };
        known(&scan.table)?;
        let mut info = FlightInfo::new();
        let mut table = self.0.table();
        table.infos += 1;
        for (partition_id, partition) in table.partitions_of(&scan)? {
            for bucket in (0..table.buckets).filter(|bucket| scan.bucket.is_none_or(|only| only == *bucket)) {
                let end = table.end_of((partition_id, bucket));
                // As a node does: a ticket has the places of its begin and end.
                let from = match scan.from.as_ref().and_then(|from| from.position.as_ref()) {
                    Some(position::Position::Latest(_)) => {
                        Some(Position { position: Some(position::Position::Offset(end)) })
                    }
                    _ => scan.from.clone(),
                };
                let until = Some(scan.until.map_or(end, |until| until.min(end)));
                let partition = partition.clone();
                let of_bucket =
                    Scan { bucket: Some(bucket), from, until, partition, partition_id, ..scan.clone() };
                let ticket = mink_proto::Ticket { ticket: Some(ticket::Ticket::Scan(of_bucket)) };
                let ticket = Ticket::new(mink_proto::encode(&ticket));
                info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket));
            }
        }
        drop(table);
        Ok(Response::new(info))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        not_there()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let result = SchemaAsIpc::new(&columns(), &IpcWriteOptions::default()).try_into();
        result.map(Response::new).map_err(|error: arrow_schema::ArrowError| malformed(error))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let ticket::Ticket::Scan(scan) =
            mink_proto::Ticket::read(&request.into_inner().ticket).map_err(malformed)?;
        let (rows, answers) = channel();
        let calls = self.clone();
        tokio::spawn(async move { calls.scan(scan, false, rows).await });
        Ok(Response::new(answers))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| malformed("no message"))?;
        let descriptor = first.flight_descriptor.clone().unwrap_or_default();
        let command::Command::Append(append) = command_of(&descriptor)? else { return not_there() };
        known(&append.table)?;
        if !self.0.table().bucket_key.is_empty() && append.bucket.is_none() {
            return Err(Status::unimplemented("name the bucket"));
        }
        let schema = read_schema(&first.data_header).map_err(malformed)?.schema;
        if schema.fields().iter().any(|field| field.name() != "id") {
            return Err(Status::failed_precondition("the table has no such column"));
        }
        let partition = self.0.table().partition_of(&append.partition)?;
        if append.partition_id != 0 && append.partition_id != partition {
            return Err(Status::not_found("another partition of these values"));
        }
        self.0.table().streams += 1;
        let (sender, acks) = channel();
        tokio::spawn(self.clone().put(messages, schema, (append, partition), sender));
        let gate = self.0.acks.subscribe();
        let held = acks.then(move |ack| {
            let mut gate = gate.clone();
            async move {
                drop(gate.wait_for(|open| *open).await);
                ack
            }
        });
        Ok(Response::new(held.boxed()))
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        let mut messages = request.into_inner();
        let first = messages.message().await?.and_then(|first| first.flight_descriptor).unwrap_or_default();
        let command::Command::Scan(scan) = command_of(&first)? else { return not_there() };
        let (rows, answers) = channel();
        let calls = self.clone();
        tokio::spawn(async move { calls.scan(scan, true, rows).await });
        let gone = async move { while let Ok(Some(_)) = messages.message().await {} };
        Ok(Response::new(answers.take_until(Box::pin(gone)).boxed()))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let Action { r#type, body } = request.into_inner();
        let bodies = match r#type.as_str() {
            "sql" if body.starts_with(b"SHOW PARTITIONS") => {
                let table = self.0.table();
                let row = |(value, id): (&String, &u64)| serde_json::json!({ "partition": id, "id": value });
                table.partitions.iter().map(|partition| row(partition).to_string().into_bytes()).collect()
            }
            "sql" if body.starts_with(b"ALTER") => {
                let text = std::str::from_utf8(&body).map_err(malformed)?;
                // The text of the one value stands in quotes.
                let value = text.split('\'').nth(1).ok_or_else(|| malformed("no value"))?;
                self.0.table().make_partition(value);
                Vec::new()
            }
            "sql" if body.starts_with(b"SHOW") => vec![br#"{"database":"sales","table":"orders"}"#.to_vec()],
            "sql" => return Err(Status::invalid_argument("expected SHOW")),
            "table.describe" => {
                let asked: DescribeTable = mink_proto::decode("DescribeTable", &body).map_err(malformed)?;
                known(&asked.table)?;
                vec![mink_proto::encode(&self.describe())]
            }
            "writer.open" => {
                let mut table = self.0.table();
                table.writer_ids += 1;
                vec![mink_proto::encode(&Writer { id: table.writer_ids, epoch: 0 })]
            }
            "writer.state" => {
                let asked: FindWriter = mink_proto::decode("FindWriter", &body).map_err(malformed)?;
                let table = self.0.table();
                let of_writer = table.writers.iter().filter(|((_, _, id), _)| *id == asked.id);
                let state = of_writer.filter_map(|((partition, bucket, _), (epoch, seen))| {
                    let last = seen.last()?;
                    let last_sequence = last.sequence.plus(last.rows - 1).0;
                    let (partition, bucket) = (*partition, *bucket);
                    let state = WriterState { partition, bucket, epoch: *epoch, last_sequence };
                    Some(mink_proto::encode(&state))
                });
                state.collect()
            }
            _ => return not_there(),
        };
        let results = bodies.into_iter().map(|body| Ok(arrow_flight::Result { body: body.into() }));
        Ok(Response::new(stream::iter(results.collect::<Vec<_>>()).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        not_there()
    }
}
