//! GetFlightInfo, GetSchema and ListFlights: what there is to read, and by which tickets.
//!
//! Lives on: the service runtime.
//! Invariants: I2: a ticket begins and ends where its bucket did when it was made, so that a scan that is tried again neither skips nor
//! repeats a row, nor goes on to rows that have come meanwhile.
use crate::address::{self, Meant};
use crate::node::Node;
use crate::scan::{From, Plan, schema_of};
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, SchemaAsIpc, SchemaResult, Ticket};
use arrow_ipc::writer::IpcWriteOptions;
use futures::stream::{self, StreamExt};
use mink_metadata::{State, Table};
use mink_proto::{Position, Scan, command, position, ticket};
use mink_router::Position as Located;
use mink_types::{BucketId, Offset};
use tonic::Status;

/// Buckets that are asked side by side where they end.
const SIDE_BY_SIDE: usize = 64;

/// The scan that a descriptor asks for, and its table.
fn asked(state: &State, descriptor: &FlightDescriptor) -> Result<(Scan, Plan), Status> {
    let scan = match address::meant(descriptor)? {
        Meant::Table(path) => {
            Scan { database: path.database.to_string(), table: path.table.to_string(), ..Scan::default() }
        }
        Meant::Command(command::Command::Scan(scan)) => scan,
        Meant::Command(command::Command::Append(_)) => {
            return Err(Status::invalid_argument(
                "rows are appended by DoPut; GetFlightInfo takes mink.v1.Scan",
            ));
        }
    };
    let plan = Plan::of(state, &scan)?;
    Ok((scan, plan))
}

/// One endpoint for each bucket, at its owner.
pub(crate) async fn flight_info(node: &Node, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
    let state = node.admin.state();
    let (scan, plan) = asked(&state, &descriptor)?;
    let mut info = describe(&plan.schema())?.with_descriptor(descriptor).with_ordered(false);
    let scans: Vec<_> =
        plan.buckets.iter().map(|bucket| pinned(node, *bucket, plan.from, scan.clone())).collect();
    let mut scans = stream::iter(scans).buffered(SIDE_BY_SIDE);
    for bucket in &plan.buckets {
        let Some(scan) = scans.next().await else { break };
        info = info.with_endpoint(endpoint(&state, &plan.table, &scan, bucket));
    }
    Ok(info)
}

/// The scan, with the places where it begins and ends in a bucket now. What cannot be told here, its owner decides when it is read; a
/// scan from the start of the log has a start that may move.
async fn pinned(node: &Node, bucket: BucketId, from: From, mut scan: Scan) -> Scan {
    let locate = |at| node.source.locate(bucket, at, None);
    let Ok(found) = locate(Located::Latest).await else { return scan };
    let end = found.offset.unwrap_or_default();
    let begin: Option<Offset> = match from {
        From::Earliest | From::Offset(_) => None,
        From::Latest => Some(end),
        // A time without a row behind it is the end.
        From::Time(time) => {
            locate(Located::at_or_after(time)).await.ok().map(|found| found.offset.unwrap_or(end))
        }
    };
    if let Some(begin) = begin {
        scan.from = Some(Position { position: Some(position::Position::Offset(begin.0)) });
    }
    scan.until = Some(scan.until.map_or(end.0, |until| until.min(end.0)));
    scan
}

fn describe(schema: &arrow_schema::Schema) -> Result<FlightInfo, Status> {
    let info =
        FlightInfo::new().try_with_schema(schema).map_err(|error| Status::internal(error.to_string()))?;
    // Neither is known without reading.
    Ok(info.with_total_records(-1).with_total_bytes(-1))
}

fn endpoint(state: &State, table: &Table, scan: &Scan, bucket: &BucketId) -> FlightEndpoint {
    let of_bucket = Scan { bucket: Some(bucket.bucket.0), table_id: table.id.0, ..scan.clone() };
    let partition = address::partition_text(table, bucket.partition);
    let of_bucket = Scan { partition, partition_id: bucket.partition.0, ..of_bucket };
    let ticket = mink_proto::Ticket { ticket: Some(ticket::Ticket::Scan(of_bucket)) };
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(mink_proto::encode(&ticket)));
    let owner =
        state.bucket(bucket).and_then(|bucket| bucket.owner).and_then(|owner| state.incarnation(owner));
    match owner.filter(|owner| !owner.fenced).and_then(|owner| owner.listener("flight")) {
        Some(at) => endpoint.with_location(format!("grpc://{}:{}", at.host, at.port)),
        // Whoever was asked answers or says who does.
        None => endpoint,
    }
}

/// The columns of what a descriptor names.
pub(crate) fn schema(node: &Node, descriptor: &FlightDescriptor) -> Result<SchemaResult, Status> {
    let (_, plan) = asked(&node.admin.state(), descriptor)?;
    SchemaAsIpc::new(&plan.schema(), &IpcWriteOptions::default())
        .try_into()
        .map_err(|error: arrow_schema::ArrowError| Status::internal(error.to_string()))
}

/// All tables, or those of the databases and tables whose names begin as `criteria` does (`sales.`). Without their endpoints: GetFlightInfo
/// gives them.
pub(crate) fn flights(node: &Node, criteria: &str) -> Vec<Result<FlightInfo, Status>> {
    let state = node.admin.state();
    let named = state
        .tables()
        .filter(|table| !table.path.database.is_internal() && table.path.to_string().starts_with(criteria));
    let info = |table: &Table| {
        let path = vec![table.path.database.to_string(), table.path.table.to_string()];
        Ok(describe(&schema_of(table))?.with_descriptor(FlightDescriptor::new_path(path)))
    };
    named.map(info).collect()
}
