//! `mink bench`: the load generator, with what the load cost at the store.
//!
//! Lives on: the load's tasks, and one that draws progress.
use crate::address::{AdminAddress, KafkaAddress, table_path, topic};
use crate::api::Api;
use crate::failure::Failure;
use crate::metrics::StoreWork;
use crate::output::{Form, OutputArgs, printer};
use crate::write::codec;
use crate::{histogram, numbers};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use mink_client::load::{ConsumeLoad, LoadResult, ProduceLoad, Progress, consume, produce};
use mink_client::{Client, Codec, ErrorKind, ProducerConfig};
use mink_server::Bytes;
use mink_types::TablePath;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often progress is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

const PRODUCE_EXAMPLES: &str = "\
Examples:
  mink bench produce kafka.bench --partitions 8 --records 5000000
  mink bench produce kafka.bench --rate 10000 --duration 60s --record-bytes 1KiB
  mink bench produce kafka.bench --connections 4 --compression lz4 --output json

Values are random bytes, which do not compress. With --rate, latency counts from when a record was due; without, from when it had room
in the producer: then it mostly tells how much is in flight.";

const CONSUME_EXAMPLES: &str = "\
Examples:
  mink bench consume kafka.bench
  mink bench consume kafka.bench --connections 8 --read-bytes 1MiB --output json

Reads what the table holds, partitions in parallel. Latency is that of a read.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write records as fast as it goes, or at a rate
    #[command(after_help = PRODUCE_EXAMPLES)]
    Produce(ProduceArgs),
    /// Read everything that a table holds
    #[command(after_help = CONSUME_EXAMPLES)]
    Consume(ConsumeArgs),
}

#[derive(Debug, Args)]
struct ProduceArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// Make the table with so many partitions if there is none
    #[arg(long, value_name = "N", default_value_t = 4)]
    partitions: i32,
    /// Records in all [default: 1000000, or as many as go in --duration]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Bytes of each record's value
    #[arg(long, value_name = "SIZE", default_value = "100")]
    record_bytes: Bytes,
    /// Records per second over all connections [default: as fast as it goes]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// End after this time, whatever is left
    #[arg(long, value_name = "TIME", value_parser = mink_server::duration)]
    duration: Option<Duration>,
    /// Producers, with a connection each
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Batches in flight per producer and partition, 1 to 5
    #[arg(long, value_name = "N", default_value_t = 5)]
    in_flight: usize,
    /// A batch is sent at this size
    #[arg(long, value_name = "SIZE", default_value = "512KiB")]
    batch_bytes: Bytes,
    /// A batch is sent at this age
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = mink_server::duration)]
    linger: Duration,
    /// none, gzip, snappy, lz4, zstd
    #[arg(long, value_name = "NAME", default_value = "none", value_parser = codec)]
    compression: Codec,
    /// At least once instead of once
    #[arg(long)]
    no_idempotence: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct ConsumeArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = mink_server::duration)]
    duration: Option<Duration>,
    /// Connections to which the partitions are dealt out
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: usize,
    /// Bytes of one read
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    read_bytes: Bytes,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct CommonArgs {
    #[command(flatten)]
    kafka: KafkaAddress,
    #[command(flatten)]
    node: AdminAddress,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::Produce(args) => run_produce(&args).await,
        Verb::Consume(args) => run_consume(&args).await,
    }
}

/// Records of a load that says neither how many nor how long.
const RECORDS: u64 = 1_000_000;

async fn run_produce(args: &ProduceArgs) -> Result<(), Failure> {
    let client = args.common.kafka.connect().await?;
    let load = produce_load(args)?;
    make_topic(&client, &load.topic, args).await?;
    let bar = bar(args.records.or(args.duration.is_none().then_some(RECORDS)));
    let ended = measured(&args.common, &bar, |progress| {
        let (client, load) = (client.clone(), load.clone());
        async move { produce(&client, &load, &progress).await }
    });
    let (result, cost) = ended.await?;
    report(&result, cost.as_ref(), args.common.output.output)?;
    match &result.first_error {
        Some(error) => {
            Err(Failure::failed(format!("{} not acked; the first: {error}", numbers::records(result.errors))))
        }
        None => Ok(()),
    }
}

fn produce_load(args: &ProduceArgs) -> Result<ProduceLoad, Failure> {
    if args.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(Failure::usage("--rate takes a number above 0"));
    }
    let size = |flag: &str, bytes: Bytes| {
        let found = usize::try_from(bytes.0).ok().filter(|bytes| *bytes <= 64 << 20);
        found.ok_or_else(|| Failure::usage(format!("--{flag} takes at most 64MiB")))
    };
    let record_bytes = size("record-bytes", args.record_bytes)?;
    let defaults = ProducerConfig::default();
    Ok(ProduceLoad {
        topic: topic(&args.table),
        record_bytes,
        records: args.records.unwrap_or(if args.duration.is_some() { u64::MAX } else { RECORDS }),
        duration: args.duration,
        rate: args.rate,
        connections: args.connections,
        producer: ProducerConfig {
            codec: args.compression,
            idempotent: !args.no_idempotence,
            batch_bytes: size("batch-bytes", args.batch_bytes)?,
            linger: args.linger,
            in_flight_max: args.in_flight,
            buffer_bytes: defaults.buffer_bytes.max(record_bytes * 2),
            ..defaults
        },
    })
}

/// Makes the topic unless it is there.
async fn make_topic(client: &Client, name: &str, args: &ProduceArgs) -> Result<(), Failure> {
    let failed = Failure::kafka(&args.common.kafka.kafka);
    if client.find_topic(name).await.map_err(&failed)?.is_none() {
        client.create_topic(name, Some(args.partitions), &[]).await.map_err(&failed)?;
    }
    Ok(())
}

async fn run_consume(args: &ConsumeArgs) -> Result<(), Failure> {
    let client = args.common.kafka.connect().await?;
    let read_bytes =
        i32::try_from(args.read_bytes.0).map_err(|_| Failure::usage("--read-bytes takes less than 2GiB"))?;
    let load = ConsumeLoad {
        topic: topic(&args.table),
        duration: args.duration,
        connections: args.connections,
        read_bytes,
    };
    let bar = bar(None);
    let ended = measured(&args.common, &bar, |progress| {
        let (client, load) = (client.clone(), load.clone());
        async move { consume(&client, &load, &progress).await }
    });
    let (result, cost) = ended.await?;
    report(&result, cost.as_ref(), args.common.output.output)
}

fn bar(records: Option<u64>) -> ProgressBar {
    let (bar, template) = match records {
        Some(records) => {
            (ProgressBar::new(records), "{bar:40} {human_pos}/{human_len} records  {per_sec}  {elapsed}")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {human_pos} records  {per_sec}  {elapsed}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Runs a load between two looks at the node's counters.
async fn measured<F>(
    common: &CommonArgs,
    bar: &ProgressBar,
    load: impl FnOnce(Arc<Progress>) -> F,
) -> Result<(LoadResult, Option<StoreWork>), Failure>
where
    F: Future<Output = Result<LoadResult, mink_client::ClientError>>,
{
    let api = Api::new(&common.node)?;
    let before = StoreWork::read(&api).await;
    let progress = Arc::new(Progress::default());
    let mut ticks = tokio::time::interval(DRAWN_EVERY);
    let mut running = std::pin::pin!(load(Arc::clone(&progress)));
    let ended = loop {
        tokio::select! {
            ended = &mut running => break ended,
            _ = ticks.tick() => bar.set_position(progress.records.load(Ordering::Relaxed)),
        }
    };
    bar.finish_and_clear();
    let result = ended.map_err(|error| match error.kind() {
        ErrorKind::Misuse => Failure::usage(error.to_string()),
        _ => Failure::kafka(&common.kafka.kafka)(error),
    })?;
    let cost = match before {
        Ok(before) => StoreWork::read(&api).await.map(|after| after - &before),
        Err(error) => Err(error),
    };
    if let Err(why) = &cost {
        eprintln!("mink: requests to the store are not counted: {}", why.words());
    }
    Ok((result, cost.ok()))
}

/// Requests for a GiB of records.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_gib(requests: u64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| requests as f64 * f64::from(1 << 30) / bytes as f64)
}

fn report(result: &LoadResult, cost: Option<&StoreWork>, form: Form) -> Result<(), Failure> {
    let ms = |percent| result.percentile(percent).as_secs_f64() * 1e3;
    let requests = |op| cost.map(|cost| cost.requests_of(op));
    let rate = |op| requests(op).and_then(|count| per_gib(count, result.bytes)).map(rounded);
    let mut printer = printer(form, &["measure", "value"])?;
    if form == Form::Json {
        let line = json!({
            "records": result.records, "errors": result.errors, "bytes": result.bytes,
            "seconds": result.elapsed.as_secs_f64(),
            "records_per_second": rounded(result.records_per_second()),
            "mib_per_second": rounded(result.mib_per_second()),
            "latency_ms": { "p50": ms(50.0), "p90": ms(90.0), "p99": ms(99.0), "p99.9": ms(99.9), "max": ms(100.0) },
            "store_requests": cost.map(|cost| &cost.requests),
            "store_requests_per_gib": { "put": rate("put"), "get": rate("get") },
        });
        println_json(&line)?;
        return Ok(());
    }
    let text = |value: Option<String>| Value::String(value.unwrap_or_else(|| "not counted".into()));
    let rows = [
        ("records", text(Some(numbers::count(result.records)))),
        ("errors", text(Some(numbers::count(result.errors)))),
        ("bytes", text(Some(numbers::bytes(result.bytes)))),
        ("time", text(Some(numbers::time(result.elapsed)))),
        ("records per second", text(Some(format!("{:.0}", result.records_per_second())))),
        ("MiB per second", text(Some(format!("{:.1}", result.mib_per_second())))),
        ("latency", text(Some(histogram::percentiles(&result.latency)))),
        ("PUT requests", text(requests("put").map(numbers::count))),
        ("GET requests", text(requests("get").map(numbers::count))),
        ("PUT requests per GiB", text(rate("put").map(|rate| format!("{rate}")))),
        ("GET requests per GiB", text(rate("get").map(|rate| format!("{rate}")))),
    ];
    for (name, value) in rows {
        printer.row(vec![name.into(), value])?;
    }
    printer.finish()
}

fn println_json(value: &Value) -> Result<(), Failure> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout(), "{value}")?)
}

/// To one digit behind the point.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_scaled_to_a_gib() {
        assert_eq!(per_gib(20, 1 << 29), Some(40.0));
        assert_eq!(per_gib(20, 0), None);
    }
}
