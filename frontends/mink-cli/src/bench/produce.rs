//! `mink bench produce`: how fast records go in, how long acks take, and what that costs.
//!
//! Lives on: the command's task.
use super::CommonArgs;
use super::contents::{self, Sizes};
use super::report::Run;
use crate::address::{table_path, topic};
use crate::failure::Failure;
use crate::numbers;
use crate::write::codec;
use clap::{Args, ValueEnum};
use mink_client::load::{Arrivals, Pace, ProduceLoad, Values, produce};
use mink_client::{Client, Codec, ProducerConfig};
use mink_server::Bytes;
use mink_types::TablePath;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  mink bench produce kafka.bench --partitions 8 --records 5000000
  mink bench produce kafka.bench --rate 10000 --warmup 10s --duration 60s --record-bytes 100..4KiB --plot acks.svg
  mink bench produce kafka.bench --values flights --keys flights --compression lz4 --output json
  mink bench produce kafka.bench --values events.jsonl --batch-bytes 128KiB --in-flight 1
  mink bench produce kafka.bench --kafka 127.0.0.1:9093 --addr none --node-pid 4711  any other broker

With --rate the loop is open: records are due at their times, whatever the node does, and latency counts from when a record was due. If the
node or this command cannot keep up, that shows as latency; how late records were offered is told apart. Timers of this command have
steps of 1 ms.
Without, it is closed: --in-flight batches and the one being gathered are outstanding per connection and partition, and latency counts
from when a batch was offered, with keys from when a record was: it mostly tells how much is in flight.
Records without keys fill a batch of one partition after the other, those with keys go to the partition of their key.
Random values do not compress; those of a FILE (one a line) and the flights of `mink demo` are sent as they are, again and again.
Costs are of one node, per GiB of keys and values, until the last ack: what it flushes later is not in them.";

/// Records of a load that says neither how many nor how long.
const RECORDS: u64 = 1_000_000;
/// Longest record or batch.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct ProduceArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// Make the table with so many partitions if there is none
    #[arg(long, value_name = "N", default_value_t = 4)]
    partitions: i32,
    /// Records in all, after the warm-up [default: 1000000, or as many as go in --duration]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Bytes of each record's random value, or MIN..MAX for any size between
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = contents::sizes, conflicts_with = "values")]
    record_bytes: Sizes,
    /// Values: the lines of a file, or `flights`: rows of real data that Mink brings along
    #[arg(long, value_name = "FILE")]
    values: Option<String>,
    /// Keys: none, random, flights (the plane of each row), or the lines of a file
    #[arg(long, value_name = "KEYS", default_value = "none")]
    keys: String,
    /// Bytes of each random key
    #[arg(long, value_name = "SIZE", default_value = "16")]
    key_bytes: Bytes,
    /// Records per second over all connections [default: as fast as it goes]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How the records of a rate are spread
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Spread::Poisson)]
    arrivals: Spread,
    /// Producers, with a connection each
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Batches in flight per connection and partition, 1 to 5
    #[arg(long, value_name = "N", default_value_t = 5)]
    in_flight: usize,
    /// A batch is sent at this size
    #[arg(long, value_name = "SIZE", default_value = "512KiB")]
    batch_bytes: Bytes,
    /// A batch is sent at this age; without --rate and keys at once when it is full
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Spread {
    /// As from many clients that know nothing of each other
    Poisson,
    /// At equal distances
    Even,
}

pub(super) async fn run(args: &ProduceArgs) -> Result<(), Failure> {
    let load = load(args)?;
    let client = args.common.kafka.connect().await?;
    let partitions = make_topic(&client, &load.topic, args).await?;
    let expected = args.records.or(args.common.duration.is_none().then_some(RECORDS));
    let (client, sent) = (&client, &load);
    let ended =
        args.common.measured(expected, |progress| async move { produce(client, sent, &progress).await });
    let (result, cost) = ended.await?;
    let settings = settings(args, &load, partitions);
    args.common.tell(&Run { verb: "produce", settings, result: &result, cost: &cost })?;
    if result.unsent > 0 {
        eprintln!(
            "mink: the rate was not kept: about {} were due and never offered; try a lower --rate, more --connections or larger batches",
            numbers::records(result.unsent)
        );
    }
    match &result.first_error {
        Some(error) => {
            Err(Failure::failed(format!("{} not acked; the first: {error}", numbers::records(result.errors))))
        }
        None => Ok(()),
    }
}

fn load(args: &ProduceArgs) -> Result<ProduceLoad, Failure> {
    if args.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(Failure::usage("--rate takes a number above 0"));
    }
    let size = |flag: &str, bytes: Bytes| {
        let found = usize::try_from(bytes.0).ok().filter(|_| bytes.0 <= BYTES_MAX);
        found.ok_or_else(|| Failure::usage(format!("--{flag} takes at most {}", Bytes(BYTES_MAX))))
    };
    let values = match &args.values {
        Some(source) => Values::Given(contents::items(source, |flight| flight.value.as_bytes())?),
        None => Values::Random {
            min: size("record-bytes", args.record_bytes.min)?,
            max: size("record-bytes", args.record_bytes.max)?,
        },
    };
    let arrivals = match args.arrivals {
        Spread::Poisson => Arrivals::Poisson,
        Spread::Even => Arrivals::Even,
    };
    let defaults = ProducerConfig::default();
    Ok(ProduceLoad {
        topic: topic(&args.table),
        values,
        keys: contents::keys(&args.keys, size("key-bytes", args.key_bytes)?)?,
        records: args.records.unwrap_or(if args.common.duration.is_some() { u64::MAX } else { RECORDS }),
        warmup: args.common.warmup,
        duration: args.common.duration,
        pace: args.rate.map_or(Pace::AsFastAsItGoes, |per_second| Pace::Rate { per_second, arrivals }),
        connections: args.connections,
        producer: ProducerConfig {
            codec: args.compression,
            idempotent: !args.no_idempotence,
            batch_bytes: size("batch-bytes", args.batch_bytes)?,
            linger: args.linger,
            in_flight_max: args.in_flight,
            ..defaults
        },
    })
}

/// Makes the topic unless it is there; how many partitions it has.
async fn make_topic(client: &Client, name: &str, args: &ProduceArgs) -> Result<usize, Failure> {
    let failed = Failure::kafka(&args.common.kafka.kafka);
    if let Some(found) = client.find_topic(name).await.map_err(&failed)? {
        return Ok(found.partitions.len());
    }
    client.create_topic(name, Some(args.partitions), &[]).await.map_err(&failed)?;
    Ok(usize::try_from(args.partitions).unwrap_or(0))
}

fn settings(args: &ProduceArgs, load: &ProduceLoad, partitions: usize) -> Value {
    let (min, max) = match load.values {
        Values::Random { min, max } => (Some(min), Some(max)),
        Values::Given(_) => (None, Some(load.values.bytes_max())),
    };
    json!({
        "table": args.table.to_string(),
        "kafka": args.common.kafka.kafka,
        "partitions": partitions,
        "records": args.records,
        "duration_seconds": load.duration.map(|duration| duration.as_secs_f64()),
        "warmup_seconds": load.warmup.as_secs_f64(),
        "values": args.values.as_deref().unwrap_or("random"),
        "value_bytes_min": min, "value_bytes_max": max, "value_bytes_mean": load.values.bytes_mean(),
        "keys": args.keys,
        "key_bytes": (args.keys == contents::RANDOM).then_some(args.key_bytes.0),
        "loop": if args.rate.is_some() { "open" } else { "closed" },
        "rate_per_second": args.rate,
        "arrivals": args.rate.map(|_| match args.arrivals { Spread::Poisson => "poisson", Spread::Even => "even" }),
        "connections": args.connections,
        "in_flight": args.in_flight,
        "batch_bytes": args.batch_bytes.0,
        "linger_ms": args.linger.as_secs_f64() * 1e3,
        "compression": args.compression.name(),
        "idempotent": !args.no_idempotence,
    })
}
