//! Messages of Arrow Flight: tickets, descriptors with their commands, and the messages of a call that puts rows.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: whatever the bytes, they are answered. A filter never lets a batch be passed over that has rows for it.
use crate::seeds::{arrow_rows, arrow_table};
use crate::targets::INFLATED_MAX;
use arrow_flight::{FlightData, FlightDescriptor, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use mink_flight::fuzzing::Tried;
use mink_metadata::{Command, FEATURE_LEVEL_MAX, Group, NewTable, State};
use mink_proto::{Append, Comparison, Operator, Position, PutBatch, Scan, Writer, command, position, ticket};
use mink_record::arrow::{arrow_schema, ipc_message};
use mink_record::kafka::ProducedLimits;
use mink_types::schema::{Schema, SchemaDraft};
use mink_types::{
    ArrowCompression, ClusterUuid, DatabaseName, LogFormat, RequestId, SessionId, TableOptions, TablePath,
    TableUuid, Witness,
};
use prost::Message as _;
use std::cell::OnceCell;
use std::sync::Arc;

thread_local! {
    /// Rows that may go to any bucket, and rows that are told apart by their key.
    static TABLES: OnceCell<[Tried; 2]> = const { OnceCell::new() };
}

fn on_both(work: impl Fn(&Tried)) {
    TABLES.with(|tables| tables.get_or_init(|| [tried(false), tried(true)]).iter().for_each(work));
}

/// A ticket, as DoGet takes it.
#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
pub(crate) fn flight_ticket(input: Vec<u8>) {
    on_both(|tried| {
        std::hint::black_box(tried.ticket(&input));
    });
}

/// A descriptor with a path or a command.
#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
pub(crate) fn flight_descriptor(input: Vec<u8>) {
    on_both(|tried| {
        std::hint::black_box(tried.descriptor(&input));
    });
}

/// The messages of a DoPut call.
#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
pub(crate) fn flight_put(input: Vec<u8>) {
    let limits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: INFLATED_MAX };
    on_both(|tried| {
        std::hint::black_box(tried.put(&input, limits));
    });
}

fn path() -> Option<TablePath> {
    TablePath::parse("d.t").ok()
}

/// A table of the columns that all fuzzing of Arrow has.
fn tried(has_key: bool) -> Tried {
    let mut group = Group::new();
    let database = DatabaseName::new("d").ok();
    let levels = (2..=FEATURE_LEVEL_MAX).map(|level| Command::RaiseFeatureLevel { level });
    let create = database.clone().map(|name| Command::CreateDatabase { name });
    let mut commands: Vec<Command> = create.into_iter().chain(levels).collect();
    let bucket_key = if has_key { vec!["id".to_owned()] } else { Vec::new() };
    let columns = arrow_table().columns().to_vec();
    let schema = Schema::create(SchemaDraft { columns, bucket_key, ..SchemaDraft::default() });
    let (Some(path), Some(kafka_database), Ok(schema)) = (path(), DatabaseName::new("kafka").ok(), schema)
    else {
        unreachable!("names and columns of ours")
    };
    let options = TableOptions { format: LogFormat::Arrow, buckets: 4, ..TableOptions::default() };
    let table = NewTable {
        path: path.clone(),
        uuid: TableUuid([5; 16]),
        options,
        schema: Some(Arc::new(schema)),
        kafka_database,
        buckets_max: 100,
    };
    commands.push(Command::CreateTable(table));
    for (counter, command) in (1_u64..).zip(&commands) {
        // One that does not fit would be left out: the table is looked for below.
        drop(group.push(RequestId { session: SessionId([1; 16]), counter }, command));
    }
    let mut state = State::new(ClusterUuid([7; 16]));
    drop(state.apply(&group.row(Witness::default())));
    assert!(state.table_at(&path).is_some_and(|table| table.schema().is_some()), "the table is not there");
    Tried::new(state, path, arrow_rows())
}

fn comparison(column: &str, operator: Operator, value: &str) -> Comparison {
    Comparison { column: column.into(), operator: operator.into(), value: value.into() }
}

fn scans() -> Vec<Scan> {
    let whole = Scan { database: "d".into(), table: "t".into(), ..Scan::default() };
    let from = Position { position: Some(position::Position::Offset(7)) };
    let cut = Scan { from: Some(from), until: Some(9), limit: Some(3), bucket: Some(1), ..whole.clone() };
    let columns = Scan { columns: vec!["name".into(), "list".into()], ..whole.clone() };
    let numbers = [
        comparison("id", Operator::GreaterOrEqual, "-5"),
        comparison("id", Operator::NotEqual, "3"),
        comparison("number", Operator::Less, "1.5e3"),
    ];
    let texts = [
        comparison("name", Operator::Equal, "a"),
        comparison("name", Operator::IsNotNull, ""),
        comparison("map", Operator::IsNull, ""),
    ];
    let numbers = Scan { filter: numbers.into(), ..columns.clone() };
    let texts = Scan { filter: texts.into(), schema: Some(1), ..whole.clone() };
    vec![whole, cut, columns, numbers, texts]
}

/// Makes the tables, outside of what an input may hold.
fn prepare() {
    on_both(|_| {});
}

/// Tickets of scans.
pub(crate) fn tickets() -> Vec<Vec<u8>> {
    prepare();
    let ticket = |scan| mink_proto::Ticket { ticket: Some(ticket::Ticket::Scan(scan)) };
    scans().into_iter().map(|scan| mink_proto::encode(&ticket(scan))).collect()
}

/// Paths, scans, appends.
pub(crate) fn descriptors() -> Vec<Vec<u8>> {
    prepare();
    let append = Append {
        database: "d".into(),
        table: "t".into(),
        bucket: Some(2),
        writer: Some(Writer { id: 5, epoch: 0 }),
        ..Append::default()
    };
    let scans = scans().into_iter().map(command::Command::Scan);
    let commands = scans.chain([command::Command::Append(append)]).map(|command| {
        FlightDescriptor::new_cmd(mink_proto::encode(&mink_proto::Command { command: Some(command) }))
    });
    let paths =
        [vec!["d".to_owned(), "t".to_owned()], vec!["d.t".to_owned()]].map(FlightDescriptor::new_path);
    commands.chain(paths).map(|descriptor| descriptor.encode_to_vec()).collect()
}

/// Calls with batches as they come from the table's own columns, of each compression.
pub(crate) fn puts() -> Vec<Vec<u8>> {
    prepare();
    let (table, rows) = (arrow_table(), arrow_rows());
    let first: FlightData = SchemaAsIpc::new(&arrow_schema(&table), &IpcWriteOptions::default()).into();
    let mut puts = Vec::new();
    for compression in [ArrowCompression::None, ArrowCompression::Lz4, ArrowCompression::Zstd] {
        let mut call = Vec::new();
        add(&mut call, &first);
        for (sequence, rows) in [(0, rows.clone()), (3, rows.slice(1, 1))] {
            let Ok((metadata, body)) = ipc_message(&rows, compression) else { continue };
            let told = PutBatch { sequence: Some(sequence) };
            let data = FlightData {
                flight_descriptor: None,
                data_header: metadata,
                app_metadata: mink_proto::encode(&told).into(),
                data_body: body,
            };
            add(&mut call, &data);
        }
        puts.push(call);
    }
    puts
}

/// Behind its length; what is longer than that can say is left out.
fn add(call: &mut Vec<u8>, data: &FlightData) {
    let message = data.encode_to_vec();
    if let Ok(length) = u16::try_from(message.len()) {
        call.extend_from_slice(&length.to_le_bytes());
        call.extend_from_slice(&message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_taken() {
        let limits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: INFLATED_MAX };
        on_both(|tried| {
            let refused = |taken: Vec<bool>| taken.iter().position(|taken| !taken);
            assert_eq!(refused(tickets().iter().map(|ticket| tried.ticket(ticket)).collect()), None);
            assert_eq!(refused(descriptors().iter().map(|cmd| tried.descriptor(cmd)).collect()), None);
            assert_eq!(refused(puts().iter().map(|put| tried.put(put, limits) == 2).collect()), None);
        });
    }
}
