//! Rows of a table with columns, by a scan over Flight.
//!
//! Lives on: the command's task.
//! Invariants: I2: the rows of one bucket are printed in the order of their offsets, each once; I20: a batch is printed before the next is taken.
use super::away::Watch;
use super::print::RowPrinter;
use super::{From, ReadArgs};
use crate::failure::{Failure, interrupted};
use crate::form::columns::{Contents, RowTable, chosen, contents};
use crate::form::named;
use crate::output::{Form, check_terminal};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use mink_client::Position;
use mink_client::flight::{
    FlightClient, FlightError, FlightErrorKind, Operator, RowStream, Rows, ScanBuilder, Start,
};
use mink_ddl::literal_text;
use mink_record::arrow::arrow_schema;
use mink_types::schema::{Field, Literal};
use std::io::{self, IsTerminal, Stderr, Write};
use std::time::Duration;

/// A scan that follows is tried again until the user stops it.
const WITHOUT_END: Duration = Duration::MAX;

/// Reads and prints.
pub(super) async fn read(table: &RowTable, client: &FlightClient, args: &ReadArgs) -> Result<(), Failure> {
    check_terminal(args.output, io::stdout().is_terminal())?;
    let schema = chosen(&table.schema, &table.path, &args.columns)?;
    let scan = scan(table, client, args)?;
    let arrow = match args.output {
        // As rows come: without the ids that the node's own schemas have.
        Form::Arrow => of_rows(table, client, &args.columns).await?,
        Form::Json | Form::Csv | Form::Table => arrow_schema(&schema),
    };
    let out = io::BufWriter::new(io::stdout().lock());
    let printer = RowPrinter::new(out, args.output, &schema, arrow)?;
    if args.limit == Some(0) {
        return printer.finish();
    }
    let mut printed = Printed { printer, args };
    let read = if args.follow {
        let watch = Watch::new(&args.node.admin.addr, io::stderr());
        follow(client, scan.patience(WITHOUT_END).follow(), &mut printed, watch).await
    } else {
        until_end(scan.rows(), &mut printed).await
    };
    let read = read.and_then(|()| Ok(printed.printer.finish()?));
    read.map_err(|ended| match ended {
        Ended::Output(failure) => failure,
        Ended::Scan(error) => failed(table, !args.partition.is_empty(), &error),
    })
}

/// Why reading ends early.
enum Ended {
    /// Of what it prints to.
    Output(Failure),
    Scan(FlightError),
}

impl std::convert::From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Output(failure)
    }
}

/// Where rows are printed to.
struct Printed<'a, W: Write> {
    printer: RowPrinter<W>,
    args: &'a ReadArgs,
}

/// Prints the rows that are there.
async fn until_end<W: Write>(mut rows: RowStream, printed: &mut Printed<'_, W>) -> Result<(), Ended> {
    while let Some(read) = rows.next().await {
        printed.take(read).await?;
    }
    Ok(())
}

/// Prints rows as they come, until there are enough of them or the user stops it.
async fn follow<W: Write>(
    client: &FlightClient,
    mut rows: RowStream,
    printed: &mut Printed<'_, W>,
    mut watch: Watch<Stderr>,
) -> Result<(), Ended> {
    let mut stopped = std::pin::pin!(interrupted());
    loop {
        let answers = async { client.describe_node().await.is_ok() };
        let read = tokio::select! {
            read = rows.next() => read,
            () = watch.ask(answers) => continue,
            () = &mut stopped => None,
        };
        let Some(read) = read else { return Ok(()) };
        if read.is_ok() {
            watch.found(true);
        }
        printed.take(read).await?;
        printed.printer.flush()?;
    }
}

impl<W: Write> Printed<'_, W> {
    async fn take(&mut self, read: Result<Rows, FlightError>) -> Result<(), Ended> {
        let Rows { batch, .. } = match read {
            Ok(rows) => rows,
            Err(error) => {
                // What has come is good.
                self.printer.flush()?;
                return Err(Ended::Scan(error));
            }
        };
        if !self.printer.knows(&batch) {
            let now = contents(&self.args.table, &self.args.node).await?;
            if let Contents::Rows(table, _) = now {
                self.printer.altered(&chosen(&table.schema, &table.path, &self.args.columns)?);
            }
        }
        Ok(self.printer.print(&batch)?)
    }
}

/// What is asked of the node; names are looked at here, for they are the user's.
fn scan(table: &RowTable, client: &FlightClient, args: &ReadArgs) -> Result<ScanBuilder, Failure> {
    let mut scan = client.scan(&table.path.to_string()).from(start(table, args)?).evolving();
    if !args.columns.is_empty() {
        scan = scan.columns(args.columns.iter().cloned());
    }
    for condition in &args.conditions {
        let column = named::column(table, "--where", &condition.column)?;
        if !matches!(condition.operator, Operator::IsNull | Operator::IsNotNull) {
            named::constant(column, &condition.value)
                .map_err(|why| Failure::usage(format!("--where: column {:?}: {why}", column.name)))?;
        }
        scan = scan.filter(&condition.column, condition.operator, &condition.value);
    }
    for (column, value) in partition(table, &args.partition)? {
        scan = scan.partition(&column, &value);
    }
    named::check_bucket(table, args.bucket)?;
    if let Some(bucket) = args.bucket {
        scan = scan.bucket(bucket);
    }
    Ok(match args.limit {
        Some(limit) => scan.limit(limit),
        None => scan,
    })
}

/// The one partition that is named, by all of its columns.
fn partition(table: &RowTable, given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let named = named::partition(table, given)?;
    let is_missing = |name: &&String| !named.iter().any(|(column, _)| column.name == **name);
    if let Some(missing) = table.partitioned_by.iter().find(is_missing).filter(|_| !named.is_empty()) {
        return Err(Failure::usage(format!(
            "--partition: {} is partitioned by {}; name {missing:?} too, or all partitions are read without --partition",
            table.path,
            table.partitioned_by.join(", ")
        )));
    }
    let text =
        |(column, value): (Field, Literal)| (column.name.clone(), literal_text(&column.data_type, &value));
    Ok(named.into_iter().map(text).collect())
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
async fn of_rows(table: &RowTable, client: &FlightClient, columns: &[String]) -> Result<SchemaRef, Failure> {
    let whole = client.schema(&table.path.to_string()).await.map_err(|error| failed(table, false, &error))?;
    if columns.is_empty() {
        return Ok(whole);
    }
    let field = |name: &String| whole.field_with_name(name).cloned();
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    let fields =
        fields.map_err(|_| Failure::failed("the columns were altered while they were read; read again"))?;
    Ok(SchemaRef::new(ArrowSchema::new(fields)))
}

/// `names_partition`: so what is not found is the partition that the user named.
fn failed(table: &RowTable, names_partition: bool, error: &FlightError) -> Failure {
    match error.kind() {
        FlightErrorKind::OutOfRange => {
            Failure::failed(format!("{}: {error}; or begin at earliest or latest", table.path))
        }
        FlightErrorKind::NotFound if names_partition => Failure::usage(format!("--partition: {error}")),
        _ => Failure::flight(error),
    }
}
