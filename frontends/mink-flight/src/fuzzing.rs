//! The decoders of clients' messages by themselves: what a call looks at before anything of it is appended or read.
//!
//! Lives on: the fuzzer's process; the feature `fuzzing` alone has it.
//! Invariants: I19: whatever the bytes, each of these returns. What filters say of rows and of bounds fits together.
use crate::address::{self, Meant};
use crate::filter::Filter;
use crate::route::Route;
use crate::scan::Plan;
use arrow_array::RecordBatch;
use arrow_flight::{FlightData, FlightDescriptor};
use mink_metadata::State;
use mink_proto::{PutBatch, Scan, command, ticket};
use mink_record::arrow::{ArrowBatch, EncodeOptions, Intake, IpcMessage, encode};
use mink_record::kafka::ProducedLimits;
use mink_types::{ArrowCompression, TablePath};
use prost::Message;

/// A table and some rows of it, which scans are tried on.
#[derive(Debug)]
pub struct Tried {
    state: State,
    path: TablePath,
    rows: RecordBatch,
}

impl Tried {
    /// `rows` are of the table at `path`, which `state` has.
    pub fn new(state: State, path: TablePath, rows: RecordBatch) -> Tried {
        Tried { state, path, rows }
    }

    /// A ticket, as DoGet takes it; whether it is taken.
    pub fn ticket(&self, bytes: &[u8]) -> bool {
        match mink_proto::Ticket::read(bytes) {
            Ok(ticket::Ticket::Scan(scan)) => self.scan(&scan),
            Err(_) => false,
        }
    }

    /// A descriptor, as GetFlightInfo, DoPut and DoExchange take it; whether it is taken.
    pub fn descriptor(&self, bytes: &[u8]) -> bool {
        let Ok(descriptor) = FlightDescriptor::decode(bytes) else { return false };
        match address::meant(&descriptor) {
            Ok(Meant::Table(path)) => Plan::of_table(&self.state, &path).is_ok(),
            Ok(Meant::Command(command::Command::Scan(scan))) => self.scan(&scan),
            Ok(Meant::Command(command::Command::Append(append))) => {
                let Ok(path) = address::table_path(&append.database, &append.table) else { return false };
                let Ok(table) = address::find(&self.state, &path) else { return false };
                address::partition_named(table, &append.partition)
                    .is_ok_and(|partition| address::buckets(table, partition, append.bucket).is_ok())
            }
            Err(_) => false,
        }
    }

    /// A scan that is taken: its filter on the rows, and on what their batch says of them.
    fn scan(&self, scan: &Scan) -> bool {
        if Plan::of(&self.state, scan).is_err() {
            return false;
        }
        let Some(schema) = self.state.table_at(&self.path).and_then(|table| table.schema()) else {
            return false;
        };
        let Ok(filter) = Filter::new(&self.path, schema, &scan.filter) else { return false };
        let place = |field| schema.columns().iter().position(|column| column.id == field);
        let met = filter.rows(&self.rows, place).unwrap_or_else(|error| panic!("taken, but {error}"));
        let options = EncodeOptions { compression: ArrowCompression::None };
        let statistics = encode(&self.rows, schema, options, None)
            .and_then(|stored| ArrowBatch::parse(&stored))
            .and_then(|stored| stored.statistics())
            .unwrap_or_else(|error| panic!("rows of ours: {error}"));
        let may_match = filter.may_match(self.rows.num_rows() as u64, &statistics);
        assert!(may_match || met.true_count() == 0, "rows that meet it would be passed over: {scan:?}");
        true
    }

    /// The messages of a DoPut call, each behind its length in two bytes: the first states columns, the others are batches and
    /// dictionaries. How many of those are taken.
    pub fn put(&self, bytes: &[u8], limits: ProducedLimits) -> usize {
        let mut messages = messages(bytes).map_while(|message| FlightData::decode(message).ok());
        let Some(first) = messages.next() else { return 0 };
        let Some(table) = self.state.table_at(&self.path) else { return 0 };
        let Some(schema) = table.schema() else { return 0 };
        let Ok(writer) = crate::rows::schema_of(&first) else { return 0 };
        let Ok(mut intake) = Intake::stated(schema, &writer) else { return 0 };
        let route = Route::new(table, schema, None);
        let mut count = 0;
        for data in messages {
            if mink_proto::decode::<PutBatch>("PutBatch", &data.app_metadata).is_err() {
                return count;
            }
            let message = IpcMessage { metadata: &data.data_header, body: &data.data_body };
            let options = EncodeOptions { compression: table.options.arrow_compression };
            let taken = match &route {
                None => intake.receive(message, limits, options, None).map(drop),
                Some(route) => intake.receive_rows(message, limits).and_then(|rows| {
                    let parts = rows.map(|rows| route.parts(&rows)).transpose()?.unwrap_or_default();
                    for part in parts {
                        for stored in intake.batches_of(&part.rows, limits, options, None)? {
                            // What is acked must be read by everyone.
                            let stored = ArrowBatch::parse(&stored).and_then(|stored| stored.decode(schema));
                            stored.unwrap_or_else(|error| panic!("taken, but {error}"));
                        }
                    }
                    Ok(())
                }),
            };
            if taken.is_err() {
                return count;
            }
            count += 1;
        }
        count
    }
}

/// Pieces that each stand behind their length.
fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let (message, next) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        rest = next;
        Some(message)
    })
}
