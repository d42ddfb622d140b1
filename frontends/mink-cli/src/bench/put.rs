//! `mink bench put`: how fast rows go in as Arrow batches, how long acks take, and what that costs.
//!
//! Lives on: the command's task.
use super::flight_address::{Flight, FlightAddress};
use super::produce::{SEED_END, Spread};
use super::report::{Run, rounded};
use super::{CommonArgs, Measured};
use crate::address::table_path;
use crate::failure::Failure;
use crate::numbers;
use clap::{Args, ValueEnum};
use mink_client::flight::{FlightErrorKind, IN_FLIGHT_IDEMPOTENT_MAX, TableDescription};
use mink_client::load::{Pace, PutLoad, PutRows, put};
use mink_server::Bytes;
use mink_types::TablePath;
use serde_json::{Value, json};

pub(super) const EXAMPLES: &str = "\
Examples:
  mink bench put bench.rows --buckets 4 --rows 5000000
  mink bench put bench.rows --batch-bytes 1MiB --compression zstd --output json
  mink bench put bench.rows --rate 100000 --batch-rows 1000 --warmup 10s --duration 60s --plot acks.svg
  mink bench put bench.rows --flight 127.0.0.1:9200 --addr none --node-pid 4711  the bare server of benches/flight

Rows have the columns id, at, amount and a note of words, --row-bytes long together. Some batches of them are made before the start and sent again
and again, each as a message of its own. A table that is there already must have these columns.
With --rate the loop is open: a batch is due when its rows are, whatever the node does, and latency counts from then.
Without, it is closed: --in-flight batches are outstanding per connection and bucket, and latency counts from when a batch was offered.
A table that is made here has no bucket key, so batches go to its buckets in turn.
Costs are of one node, per GiB of rows as they lie in memory, which is what a message without compression takes. What was written stays:
`mink table drop bench.rows` takes it away.";

/// Rows of a load that says neither how many nor how long.
const ROWS: u64 = 1_000_000;
/// Longest batch.
const BATCH_BYTES_MAX: u64 = 64 << 20;
/// Batches from this size on need a table that takes larger ones than usual.
const USUAL_BATCH_BYTES_MAX: u64 = 768 << 10;

#[derive(Debug, Args)]
pub(super) struct PutArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// Make the table with so many buckets if there is none
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    buckets: u32,
    /// How the batches of a table that is made here are compressed, here and in the store [default: the node's]
    #[arg(long, value_enum, value_name = "NAME")]
    compression: Option<Compression>,
    /// Rows in all, after the warm-up [default: 1000000, or as many as go in --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Bytes of each row
    #[arg(long, value_name = "SIZE", default_value = "128")]
    row_bytes: Bytes,
    /// Bytes of each batch
    #[arg(long, value_name = "SIZE", default_value = "512KiB", conflicts_with = "batch_rows")]
    batch_bytes: Bytes,
    /// Rows of each batch, in the place of --batch-bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch_rows: Option<u32>,
    /// Rows per second over all connections [default: as fast as it goes]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How the batches of a rate are spread [default: poisson]
    #[arg(long, value_enum, value_name = "HOW", requires = "rate")]
    arrivals: Option<Spread>,
    /// Decides what the rows say, and the times of Poisson arrivals [default: drawn, and told]
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Writers, with a connection each
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Batches in flight per connection and bucket, 1 to 5
    #[arg(long, value_name = "N", default_value_t = IN_FLIGHT_IDEMPOTENT_MAX, value_parser = in_flight)]
    in_flight: usize,
    /// At least once instead of once
    #[arg(long)]
    no_idempotence: bool,
    #[command(flatten)]
    flight: FlightAddress,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

fn in_flight(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=IN_FLIGHT_IDEMPOTENT_MAX).contains(number));
    number.ok_or_else(|| format!("--in-flight takes 1 to {IN_FLIGHT_IDEMPOTENT_MAX}"))
}

pub(super) async fn run(args: &PutArgs) -> Result<(), Failure> {
    let load = load(args)?;
    args.common.check_outputs()?;
    let flight = args.flight.reach(&args.common.admin).await?;
    let (table, was_there) = make_table(&flight, args).await?;
    let expected = args.rows.or(args.common.duration.is_none().then_some(ROWS));
    let (address, sent) = (flight.address.as_str(), &load);
    let listener = format!("Flight listener at {address}");
    let ended = args
        .common
        .measured(&listener, expected, |progress| async move { put(address, sent, &progress).await });
    let measured = ended.await?;
    let Measured { result, cost, .. } = &measured;
    let settings = settings(args, &load, (&table, was_there), address);
    args.common.tell(&Run { verb: "put", settings, result, cost })?;
    if result.unsent > 0 {
        eprintln!(
            "mink: the rate was not kept: about {} were due and never offered; try a lower --rate, more --connections or larger batches",
            numbers::records(result.unsent)
        );
    }
    measured.end()
}

impl PutArgs {
    fn put_rows(&self) -> Result<PutRows, Failure> {
        let row_bytes = self.row_bytes.0.max(1);
        let per_batch = match self.batch_rows {
            Some(rows) => u64::from(rows),
            None => (self.batch_bytes.0 / row_bytes).max(1),
        };
        if per_batch.saturating_mul(row_bytes) > BATCH_BYTES_MAX {
            return Err(Failure::usage(format!("a batch takes at most {}", Bytes(BATCH_BYTES_MAX))));
        }
        let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(PutRows { per_batch: narrow(per_batch), row_bytes: narrow(row_bytes) })
    }

    fn spread(&self) -> Spread {
        self.arrivals.unwrap_or(Spread::Poisson)
    }
}

fn load(args: &PutArgs) -> Result<PutLoad, Failure> {
    if args.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(Failure::usage("--rate takes a number above 0"));
    }
    // A seed that is drawn is small enough to be typed again.
    let seed = args.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_fields().0 % SEED_END).into();
    let batches = args.put_rows()?.batches(seed);
    let batches = batches.map_err(|error| Failure::usage(format!("--row-bytes, --batch-rows: {error}")))?;
    let arrivals = args.spread().arrivals();
    Ok(PutLoad {
        table: args.table.to_string(),
        batches,
        rows: args.rows.unwrap_or(if args.common.duration.is_some() { u64::MAX } else { ROWS }),
        warmup: args.common.warmup,
        duration: args.common.duration,
        pace: args.rate.map_or(Pace::AsFastAsItGoes, |per_second| Pace::Rate { per_second, arrivals }),
        seed,
        connections: args.connections,
        in_flight: args.in_flight,
        idempotent: !args.no_idempotence,
    })
}

/// The table, and whether it was there; it is made if it was not.
async fn make_table(flight: &Flight, args: &PutArgs) -> Result<(TableDescription, bool), Failure> {
    let (client, name) = (&flight.client, args.table.to_string());
    match client.describe(&name).await {
        Ok(table) => return Ok((table, true)),
        Err(error) if error.kind() == FlightErrorKind::NotFound => {}
        Err(error) => return Err(Failure::flight(&error)),
    }
    let rows = args.put_rows()?;
    let batch_bytes = (rows.per_batch.saturating_mul(rows.row_bytes)) as u64;
    let mut options = Vec::new();
    let wide = (2 * batch_bytes).to_string();
    if batch_bytes > USUAL_BATCH_BYTES_MAX {
        options.push(("max.message.bytes", wide.as_str()));
    }
    options.extend(args.compression.map(|compression| ("table.log.arrow.compression", compression.name())));
    let database = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(args.table.database.as_str()));
    let table = PutRows::create_statement(&quoted_path(&args.table), args.buckets, &options);
    for statement in [database, table] {
        client.sql(&statement).await.map_err(|error| Failure::flight(&error))?;
    }
    let table = client.describe(&name).await.map_err(|error| Failure::flight(&error))?;
    Ok((table, false))
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn quoted_path(table: &TablePath) -> String {
    format!("{}.{}", quoted(table.database.as_str()), quoted(table.table.as_str()))
}

fn settings(
    args: &PutArgs,
    load: &PutLoad,
    (table, was_there): (&TableDescription, bool),
    flight: &str,
) -> Value {
    let option = |name: &str| table.options.iter().find(|option| option.name == name);
    let compression = option("table.log.arrow.compression").map(|option| option.value.as_str());
    json!({
        "table": args.table.to_string(),
        "flight": flight,
        "buckets": table.buckets,
        "table_was_there": was_there,
        "records": args.rows,
        "duration_seconds": load.duration.map(|duration| rounded(duration.as_secs_f64())),
        "warmup_seconds": rounded(load.warmup.as_secs_f64()),
        "row_bytes": args.row_bytes.0,
        "rows_per_batch": load.batches.first().map(arrow_array::RecordBatch::num_rows),
        "batch_bytes": args.batch_rows.is_none().then_some(args.batch_bytes.0),
        "loop": if args.rate.is_some() { "open" } else { "closed" },
        "rate_per_second": args.rate.map(rounded),
        "arrivals": args.rate.map(|_| args.spread().name()),
        "seed": load.seed,
        "connections": args.connections,
        "in_flight": args.in_flight,
        "compression": compression,
        "idempotent": !args.no_idempotence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: PutArgs,
    }

    fn parsed(flags: &[&str]) -> Result<PutLoad, String> {
        let line = ["put", "bench.t"].iter().chain(flags);
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        load(&line.args).map_err(|failure| failure.words().to_owned())
    }

    #[test]
    fn what_could_measure_nothing_is_refused_by_its_flag() {
        for flags in [
            ["--rows", "0"],
            ["--duration", "0s"],
            ["--batch-rows", "0"],
            ["--row-bytes", "8"],
            ["--buckets", "0"],
            ["--in-flight", "6"],
            ["--rate", "0"],
            ["--arrivals", "even"],
        ] {
            let words = parsed(&flags).expect_err("it is refused");
            assert!(words.contains(flags[0]), "{words}");
        }
        assert!(parsed(&["--batch-bytes", "65MiB"]).is_err());
    }

    #[test]
    fn a_batch_has_the_rows_or_about_the_bytes_that_were_asked_for() {
        let rows = |flags: &[&str]| parsed(flags).unwrap().batches[0].num_rows();
        assert_eq!(rows(&["--batch-bytes", "64KiB", "--row-bytes", "128"]), 512);
        assert_eq!(rows(&["--batch-rows", "77"]), 77);
        assert_eq!(rows(&["--batch-bytes", "1", "--row-bytes", "4KiB"]), 1, "at least one");
    }
}
