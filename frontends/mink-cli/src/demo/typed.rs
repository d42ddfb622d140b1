//! The demo's table with columns: made by SQL, written as Arrow over Flight, read back by columns and a filter.
//!
//! Lives on: the command's task.
//! Invariants: what a scan gives is compared with what was written, row by row, whatever bucket they lie in.
use super::flights::Flight;
use crate::failure::Failure;
use crate::numbers;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use mink_client::flight::{FlightClient, FlightError, Operator};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const TABLE: &str = "demo.flights";
const STATEMENTS: [&str; 2] = [
    "CREATE DATABASE demo",
    "CREATE TABLE demo.flights (
       hour TIMESTAMP_LTZ(3) NOT NULL, carrier STRING NOT NULL, plane STRING, origin STRING NOT NULL,
       dest STRING NOT NULL, distance INT NOT NULL, arr_delay INT
     ) WITH ('bucket.num' = '4')",
];
/// Rows of one write.
const BATCH_ROWS: usize = 10_000;
/// Minutes from which on a flight is late for the demo's scan.
const LATE_MIN: i32 = 60;

/// What came of it.
#[derive(Debug)]
pub(super) struct Typed {
    columns: usize,
    rows: u64,
    wrote: Duration,
    late: u64,
    read: Duration,
}

/// Rows by carrier and delay: buckets are read side by side, so they come in no order.
type Late = BTreeMap<(String, i32), u64>;

pub(super) async fn show(address: &str, flights: &[Flight]) -> Result<Typed, Failure> {
    let client = FlightClient::connect(address).await.map_err(failed)?;
    for statement in STATEMENTS {
        client.sql(statement).await.map_err(failed)?;
    }
    let schema = client.schema(TABLE).await.map_err(failed)?;
    let begun = Instant::now();
    let rows = write(&client, &schema, flights).await?;
    let wrote = begun.elapsed();
    let begun = Instant::now();
    let found = read(&client).await?;
    let read = begun.elapsed();
    if rows != flights.len() as u64 || found != expected(flights) {
        return Err(Failure::failed(format!(
            "{TABLE}: {} rows were acked of {}, and what a scan gives is not what was written. This is a fault of Mink: please report it with this output",
            numbers::count(rows),
            numbers::count(flights.len() as u64)
        )));
    }
    Ok(Typed { columns: schema.fields().len(), rows, wrote, late: found.values().sum(), read })
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn failed(error: FlightError) -> Failure {
    Failure::failed(format!("{TABLE}: {error}"))
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn misfit(error: ArrowError) -> Failure {
    Failure::failed(format!("{TABLE}: its columns are not those of its statement: {error}"))
}

/// Writes all flights; how many were acked.
async fn write(client: &FlightClient, schema: &SchemaRef, flights: &[Flight]) -> Result<u64, Failure> {
    let writer = client.writer(TABLE).idempotent().open().await.map_err(failed)?;
    let mut receipts = Vec::new();
    for some in flights.chunks(BATCH_ROWS) {
        let batch = batch(schema, some).map_err(misfit)?;
        receipts.push(writer.write(batch).await.map_err(failed)?);
    }
    writer.close().await.map_err(failed)?;
    let mut acked = 0;
    for receipt in receipts {
        let placed = receipt.await.map_err(failed)?;
        acked += placed.iter().map(|placed| placed.rows).sum::<u64>();
    }
    Ok(acked)
}

fn batch(schema: &SchemaRef, flights: &[Flight]) -> Result<RecordBatch, ArrowError> {
    let zone = match schema.fields().first().map(|field| field.data_type()) {
        Some(DataType::Timestamp(_, zone)) => zone.clone(),
        _ => None,
    };
    let hours = TimestampMillisecondArray::from_iter_values(flights.iter().map(|flight| flight.timestamp));
    let texts = |text: fn(&Flight) -> Option<&str>| -> ArrayRef {
        Arc::new(flights.iter().map(text).collect::<StringArray>())
    };
    let numbers = |number: fn(&Flight) -> Option<i32>| -> ArrayRef {
        Arc::new(flights.iter().map(number).collect::<Int32Array>())
    };
    let columns = vec![
        Arc::new(hours.with_timezone_opt(zone)) as ArrayRef,
        texts(|flight| Some(&flight.carrier)),
        texts(|flight| flight.key.as_deref()),
        texts(|flight| Some(&flight.origin)),
        texts(|flight| Some(&flight.dest)),
        numbers(|flight| Some(flight.distance)),
        numbers(|flight| flight.arr_delay),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Two columns of the flights that were late.
async fn read(client: &FlightClient) -> Result<Late, Failure> {
    let scan = client.scan(TABLE).columns(["carrier", "arr_delay"]);
    let mut rows = scan.filter("arr_delay", Operator::Greater, &LATE_MIN.to_string()).rows();
    let mut found = Late::new();
    while let Some(some) = rows.next().await {
        let batch = some.map_err(failed)?.batch;
        let columns = match batch.columns() {
            [carriers, delays] => carriers.as_string_opt::<i32>().zip(delays.as_primitive_opt::<Int32Type>()),
            _ => None,
        };
        let (carriers, delays) = columns.ok_or_else(|| {
            Failure::failed(format!("{TABLE}: a scan gives other columns than those it was asked for"))
        })?;
        for (carrier, delay) in carriers.iter().zip(delays) {
            let (carrier, delay) = (carrier.unwrap_or_default(), delay.unwrap_or_default());
            *found.entry((carrier.to_owned(), delay)).or_default() += 1;
        }
    }
    Ok(found)
}

fn expected(flights: &[Flight]) -> Late {
    let mut late = Late::new();
    for flight in flights {
        if let Some(delay) = flight.arr_delay.filter(|delay| *delay > LATE_MIN) {
            *late.entry((flight.carrier.clone(), delay)).or_default() += 1;
        }
    }
    late
}

impl Typed {
    /// In words, a line each.
    pub(super) fn lines(&self) -> [String; 2] {
        let rows = numbers::count(self.rows);
        [
            format!(
                "table     {TABLE}, {} columns, made by SQL; {rows} rows as Arrow over Flight, all acked in {}",
                self.columns,
                numbers::time(self.wrote)
            ),
            format!(
                "scan      carrier, arr_delay WHERE arr_delay > {LATE_MIN}: {} of {rows} rows in {}, each as it was written",
                numbers::count(self.late),
                numbers::time(self.read)
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, Schema, TimeUnit};

    fn schema() -> SchemaRef {
        let zoned = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        Arc::new(Schema::new(vec![
            Field::new("hour", zoned, false),
            text("carrier", false),
            text("plane", true),
            text("origin", false),
            text("dest", false),
            Field::new("distance", DataType::Int32, false),
            Field::new("arr_delay", DataType::Int32, true),
        ]))
    }

    #[test]
    fn a_flight_is_a_row_and_what_it_lacks_is_null() {
        let mut flights = super::super::flights::all().unwrap();
        flights.truncate(100);
        let batch = batch(&schema(), &flights).expect("it fits");
        let planes = flights.iter().filter(|flight| flight.key.is_none()).count();
        assert_eq!((batch.num_rows(), batch.column(2).null_count()), (100, planes));
        let delays = batch.column(6).as_primitive::<Int32Type>();
        assert!(delays.iter().eq(flights.iter().map(|flight| flight.arr_delay)));
    }

    #[test]
    fn a_table_with_other_columns_is_refused() {
        let other = Arc::new(Schema::new(vec![Field::new("hour", DataType::Utf8, false)]));
        assert!(batch(&other, &[]).is_err());
    }

    #[test]
    fn late_is_more_than_an_hour() {
        let mut flight = super::super::flights::all().unwrap().swap_remove(0);
        let mut late = |delay| {
            flight.arr_delay = delay;
            expected(std::slice::from_ref(&flight)).len()
        };
        assert_eq!((late(Some(60)), late(Some(61)), late(None)), (0, 1, 0));
    }
}
