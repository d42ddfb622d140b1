//! Rows of a table with columns, by a scan over Flight.
//!
//! Lives on: the command's task.
//! Invariants: I2: the rows of one bucket are printed in the order of their offsets, each once; I20: a batch is printed before the next is taken.
use super::print::RowPrinter;
use super::{From, ReadArgs};
use crate::failure::Failure;
use crate::form::columns::{RowTable, chosen, partition_value};
use crate::output::{Form, check_terminal};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use mink_client::Position;
use mink_client::flight::{FlightError, FlightErrorKind, ScanBuilder, Start};
use mink_record::arrow::arrow_schema;
use std::io::{self, IsTerminal};

/// Reads and prints.
pub(super) async fn read(table: RowTable, args: &ReadArgs) -> Result<(), Failure> {
    check_terminal(args.output, io::stdout().is_terminal())?;
    let schema = chosen(&table.schema, &table.path, &args.columns)?;
    let scan = scan(&table, args)?;
    let arrow = match args.output {
        // As rows come: without the ids that the node's own schemas have.
        Form::Arrow => of_rows(&table, &args.columns).await?,
        Form::Json | Form::Csv | Form::Table => arrow_schema(&schema),
    };
    let out = io::BufWriter::new(io::stdout().lock());
    let mut printer = RowPrinter::new(out, args.output, &schema, arrow)?;
    if args.limit == Some(0) {
        return printer.finish();
    }
    let mut rows = if args.follow { scan.follow() } else { scan.rows() };
    while let Some(read) = rows.next().await {
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                // What has come is good.
                printer.flush()?;
                return Err(failed(&table, &error));
            }
        };
        printer.print(&read.batch)?;
        if args.follow {
            printer.flush()?;
        }
    }
    printer.finish()
}

/// What is asked of the node.
fn scan(table: &RowTable, args: &ReadArgs) -> Result<ScanBuilder, Failure> {
    let mut scan = table.client.scan(&table.path.to_string()).from(start(table, args)?);
    if !args.columns.is_empty() {
        scan = scan.columns(args.columns.iter().cloned());
    }
    for condition in &args.conditions {
        scan = scan.filter(&condition.column, condition.operator, &condition.value);
    }
    for given in &args.partition {
        let (column, value) = partition_value(given).map_err(Failure::Usage)?;
        scan = scan.partition(&column, &value);
    }
    if let Some(bucket) = args.bucket {
        scan = scan.bucket(bucket);
    }
    Ok(match args.limit {
        Some(limit) => scan.limit(limit),
        None => scan,
    })
}

/// Where the scan begins in each bucket.
fn start(table: &RowTable, args: &ReadArgs) -> Result<Start, Failure> {
    let offset = match args.from {
        From::Position(Position::Earliest) => return Ok(Start::Earliest),
        From::Position(Position::Latest) => return Ok(Start::Latest),
        From::Position(Position::AtOrAfter(ms)) => return Ok(Start::TimeMs(ms)),
        From::Offset(offset) => u64::try_from(offset).unwrap_or(0),
    };
    if table.buckets > 1 && args.bucket.is_none() {
        return Err(Failure::usage(format!(
            "--from {offset}: an offset is a place in one bucket, and {} has {}; name one with --bucket 0 to {}, or begin at a time",
            table.path,
            table.buckets,
            table.buckets - 1
        )));
    }
    if !table.partitioned_by.is_empty() && args.partition.is_empty() {
        let columns: Vec<String> =
            table.partitioned_by.iter().map(|column| format!("--partition {column}=VALUE")).collect();
        return Err(Failure::usage(format!(
            "--from {offset}: an offset is a place in one bucket, and {} has buckets in each partition; name it with {}, or begin at a time",
            table.path,
            columns.join(" ")
        )));
    }
    Ok(Start::Offset(offset))
}

/// The Arrow schema that rows of these columns come with.
async fn of_rows(table: &RowTable, columns: &[String]) -> Result<SchemaRef, Failure> {
    let whole = table.client.schema(&table.path.to_string()).await.map_err(|error| failed(table, &error))?;
    if columns.is_empty() {
        return Ok(whole);
    }
    let field = |name: &String| whole.field_with_name(name).cloned();
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    let fields =
        fields.map_err(|_| Failure::failed("the columns were altered while they were read; read again"))?;
    Ok(SchemaRef::new(ArrowSchema::new(fields)))
}

fn failed(table: &RowTable, error: &FlightError) -> Failure {
    match error.kind() {
        FlightErrorKind::OutOfRange => {
            Failure::failed(format!("{}: {error}; or begin at earliest or latest", table.path))
        }
        _ => Failure::flight(error),
    }
}
