//! `mink bench scan`: how fast rows come out as Arrow batches, and what that costs.
//!
//! Lives on: the command's task.
use super::flight_address::FlightAddress;
use super::report::{Run, rounded};
use super::{CommonArgs, Measured};
use crate::address::table_path;
use crate::failure::Failure;
use clap::Args;
use mink_client::flight::Operator;
use mink_client::load::{ScanLoad, comparison, scan};
use mink_types::TablePath;
use serde_json::{Value, json};

pub(super) const EXAMPLES: &str = "\
Examples:
  mink bench scan bench.rows
  mink bench scan bench.rows --connections 4 --columns id,amount --output json
  mink bench scan bench.rows --where 'amount>=9000'
  mink bench scan bench.rows --flight 127.0.0.1:9200 --addr none --node-pid 4711  the bare server of benches/flight

Reads what the table holds, buckets side by side, and decodes every batch. Latency is that of a batch: from when it was asked for to when it had
been decoded; those that came ahead wait for nobody.
Bytes are those of the rows as they lie in memory. A scan that fails ends the run: what was read until then is told, and the command fails.";

#[derive(Debug, Args)]
pub(super) struct ScanArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// End after about so many rows, those of the warm-up among them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Only these columns
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Only rows that meet this; may be given several times
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = wanted)]
    filter: Vec<Wanted>,
    /// Connections to which the buckets are dealt out, at most one for each
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    #[command(flatten)]
    flight: FlightAddress,
    #[command(flatten)]
    common: CommonArgs,
}

/// A comparison, and how it was written.
#[derive(Clone, Debug)]
struct Wanted {
    text: String,
    means: (String, Operator, String),
}

fn wanted(text: &str) -> Result<Wanted, String> {
    let means = comparison(text).map_err(|error| error.to_string())?;
    Ok(Wanted { text: text.to_owned(), means })
}

pub(super) async fn run(args: &ScanArgs) -> Result<(), Failure> {
    args.common.check_outputs()?;
    let flight = args.flight.reach(&args.common.admin).await?;
    let load = ScanLoad {
        table: args.table.to_string(),
        columns: args.columns.clone(),
        filter: args.filter.iter().map(|wanted| wanted.means.clone()).collect(),
        rows: args.rows,
        warmup: args.common.warmup,
        duration: args.common.duration,
        connections: args.connections,
    };
    let (address, sent) = (flight.address.as_str(), &load);
    let listener = format!("Flight listener at {address}");
    let ended = args
        .common
        .measured(&listener, args.rows, |progress| async move { scan(address, sent, &progress).await });
    let measured = ended.await?;
    let Measured { result, cost, .. } = &measured;
    // After an error too: what was read until then is told.
    args.common.tell(&Run { verb: "scan", settings: settings(args, address), result, cost })?;
    measured.end()
}

fn settings(args: &ScanArgs, flight: &str) -> Value {
    json!({
        "table": args.table.to_string(),
        "flight": flight,
        "records": args.rows,
        "columns": args.columns,
        "where": args.filter.iter().map(|wanted| wanted.text.as_str()).collect::<Vec<_>>(),
        "duration_seconds": args.common.duration.map(|duration| rounded(duration.as_secs_f64())),
        "warmup_seconds": rounded(args.common.warmup.as_secs_f64()),
        "connections": args.connections,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_keeps_how_it_was_written() {
        let wanted = wanted("amount>=10").unwrap();
        assert_eq!((wanted.text.as_str(), wanted.means.1), ("amount>=10", Operator::GreaterOrEqual));
        assert!(super::wanted("amount").is_err_and(|words| words.contains("COLUMN=VALUE")));
    }
}
