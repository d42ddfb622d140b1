//! `mink bench produce`: how fast records go in, how long acks take, and what that costs.
//!
//! Lives on: the command's task.
use super::contents::{self, Sizes};
use super::report::{Run, rounded};
use super::{CommonArgs, KafkaArg, Measured, kafka_listener};
use crate::address::{Kafka, table_path, topic};
use crate::failure::Failure;
use crate::numbers;
use crate::write::codec;
use clap::{Args, ValueEnum};
use mink_client::load::{Arrivals, Pace, ProduceLoad, Values, produce};
use mink_client::{Codec, IN_FLIGHT_MAX, ProducerConfig};
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
Records without an ack at the end count with the time until then: percentiles are not those of the lucky.
Random values do not compress; those of a FILE (one a line) and the flights of `mink demo` are sent as they are, again and again.
Costs are of one node, per GiB of keys and values, until the last ack: what it flushes later is not in them. What was written stays:
`mink table drop kafka.bench` takes it away.";

/// Records of a load that says neither how many nor how long.
const RECORDS: u64 = 1_000_000;
/// Of a random key, unless it is said.
const KEY_BYTES: u64 = 16;
/// Seeds that are drawn are below it.
pub(super) const SEED_END: u32 = 1_000_000;
/// Longest record or batch.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct ProduceArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// Make the table with so many partitions if there is none
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..))]
    partitions: i32,
    /// Records in all, after the warm-up [default: 1000000, or as many as go in --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Bytes of each random key [default: 16]
    #[arg(long, value_name = "SIZE")]
    key_bytes: Option<Bytes>,
    /// Records per second over all connections [default: as fast as it goes]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How the records of a rate are spread [default: poisson]
    #[arg(long, value_enum, value_name = "HOW", requires = "rate")]
    arrivals: Option<Spread>,
    /// Decides the times of Poisson arrivals; the same number gives the same times [default: drawn, and told]
    #[arg(long, value_name = "N", requires = "rate")]
    seed: Option<u32>,
    /// Producers, with a connection each
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Batches in flight per connection and partition, 1 to 5
    #[arg(long, value_name = "N", default_value_t = IN_FLIGHT_MAX, value_parser = in_flight)]
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
    kafka: KafkaArg,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Spread {
    /// As from many clients that know nothing of each other
    Poisson,
    /// At equal distances
    Even,
}

impl Spread {
    pub(super) fn arrivals(self) -> Arrivals {
        match self {
            Spread::Poisson => Arrivals::Poisson,
            Spread::Even => Arrivals::Even,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Spread::Poisson => "poisson",
            Spread::Even => "even",
        }
    }
}

fn in_flight(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=IN_FLIGHT_MAX).contains(number));
    number.ok_or_else(|| format!("--in-flight takes 1 to {IN_FLIGHT_MAX}"))
}

/// The table's topic as it was found or made.
struct Topic {
    partitions: usize,
    was_there: bool,
}

pub(super) async fn run(args: &ProduceArgs) -> Result<(), Failure> {
    let load = load(args)?;
    args.common.check_outputs()?;
    let kafka = args.kafka.reach(&args.common.admin).await?;
    let found = make_topic(&kafka, &load.topic, args).await?;
    let expected = args.records.or(args.common.duration.is_none().then_some(RECORDS));
    let (client, sent) = (&kafka.client, &load);
    let listener = kafka_listener(&kafka.address);
    let ended = args
        .common
        .measured(&listener, expected, |progress| async move { produce(client, sent, &progress).await });
    let measured = ended.await?;
    let Measured { result, cost, .. } = &measured;
    let settings = settings(args, &kafka.address, &load, &found);
    args.common.tell(&Run { verb: "produce", settings, result, cost })?;
    if result.unsent > 0 {
        eprintln!(
            "mink: the rate was not kept: about {} were due and never offered; try a lower --rate, more --connections or larger batches",
            numbers::records(result.unsent)
        );
    }
    measured.end()
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
    if args.key_bytes.is_some() && args.keys != contents::RANDOM {
        return Err(Failure::usage(format!("--key-bytes goes with --keys {}", contents::RANDOM)));
    }
    let arrivals = args.spread().arrivals();
    let batch_bytes = size("batch-bytes", args.batch_bytes)?;
    if batch_bytes == 0 {
        return Err(Failure::usage("--batch-bytes takes a size above 0"));
    }
    let defaults = ProducerConfig::default();
    Ok(ProduceLoad {
        topic: topic(&args.table),
        values,
        keys: contents::keys(&args.keys, size("key-bytes", args.key_bytes())?)?,
        records: args.records.unwrap_or(if args.common.duration.is_some() { u64::MAX } else { RECORDS }),
        warmup: args.common.warmup,
        duration: args.common.duration,
        pace: args.rate.map_or(Pace::AsFastAsItGoes, |per_second| Pace::Rate { per_second, arrivals }),
        // A seed that is drawn is small enough to be typed again.
        seed: args.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_fields().0 % SEED_END).into(),
        connections: args.connections,
        producer: ProducerConfig {
            codec: args.compression,
            idempotent: !args.no_idempotence,
            batch_bytes,
            linger: args.linger,
            in_flight_max: args.in_flight,
            ..defaults
        },
    })
}

impl ProduceArgs {
    fn spread(&self) -> Spread {
        self.arrivals.unwrap_or(Spread::Poisson)
    }

    fn key_bytes(&self) -> Bytes {
        self.key_bytes.unwrap_or(Bytes(KEY_BYTES))
    }
}

/// Makes the topic unless it is there.
async fn make_topic(kafka: &Kafka, name: &str, args: &ProduceArgs) -> Result<Topic, Failure> {
    let (client, failed) = (&kafka.client, Failure::kafka(&kafka.address));
    if let Some(found) = client.find_topic(name).await.map_err(&failed)? {
        return Ok(Topic { partitions: found.partitions.len(), was_there: true });
    }
    let (table, partitions) = (&args.table, args.partitions);
    if is_of_another_database(table) {
        // Made as a topic it would be a table of the topics' own database.
        return Err(Failure::failed(format!(
            "there is no table {table}; make it with `mink table create {table} --partitions {partitions}`, or name one of the database kafka, which is made here"
        )));
    }
    client.create_topic(name, Some(partitions), &[]).await.map_err(&failed)?;
    Ok(Topic { partitions: usize::try_from(partitions).unwrap_or(0), was_there: false })
}

/// Whether it is not one of those that are topics by their bare name.
fn is_of_another_database(table: &TablePath) -> bool {
    topic(table) == table.to_string()
}

fn settings(args: &ProduceArgs, kafka: &str, load: &ProduceLoad, found: &Topic) -> Value {
    let (min, max) = match load.values {
        Values::Random { min, max } => (Some(min), Some(max)),
        Values::Given(_) => (None, Some(load.values.bytes_max())),
    };
    json!({
        "table": args.table.to_string(),
        "kafka": kafka,
        "partitions": found.partitions,
        "table_was_there": found.was_there,
        "records": args.records,
        "duration_seconds": load.duration.map(|duration| rounded(duration.as_secs_f64())),
        "warmup_seconds": rounded(load.warmup.as_secs_f64()),
        "values": args.values.as_deref().unwrap_or("random"),
        "value_bytes_min": min, "value_bytes_max": max, "value_bytes_mean": load.values.bytes_mean(),
        "keys": args.keys,
        "key_bytes": (args.keys == contents::RANDOM).then_some(args.key_bytes().0),
        "loop": if args.rate.is_some() { "open" } else { "closed" },
        "rate_per_second": args.rate.map(rounded),
        "arrivals": args.rate.map(|_| args.spread().name()),
        "seed": args.rate.filter(|_| args.spread() == Spread::Poisson).map(|_| load.seed),
        "connections": args.connections,
        "in_flight": args.in_flight,
        "batch_bytes": args.batch_bytes.0,
        "linger_ms": rounded(args.linger.as_secs_f64() * 1e3),
        "compression": args.compression.name(),
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
        args: ProduceArgs,
    }

    fn refused(flags: &[&str]) -> String {
        let line = ["produce", "kafka.t"].iter().chain(flags);
        match Line::try_parse_from(line) {
            Err(error) => error.to_string(),
            Ok(line) => match load(&line.args) {
                Err(Failure::Usage(words)) => words,
                other => panic!("{flags:?}: {other:?}"),
            },
        }
    }

    #[test]
    fn what_could_measure_nothing_is_refused_by_its_flag() {
        for flags in [
            ["--records", "0"],
            ["--duration", "0s"],
            ["--batch-bytes", "0"],
            ["--partitions", "0"],
            ["--key-bytes", "8"],
            ["--arrivals", "even"],
            ["--seed", "1"],
            ["--in-flight", "6"],
            ["--rate", "0"],
        ] {
            let words = refused(&flags);
            assert!(words.contains(flags[0]), "{words}");
        }
    }

    #[test]
    fn a_seed_is_drawn_unless_it_is_given() {
        let seed = |flags: &[&str]| {
            let line =
                Line::try_parse_from(["produce", "kafka.t", "--rate", "5"].iter().chain(flags)).unwrap();
            load(&line.args).unwrap().seed
        };
        assert_eq!(seed(&["--seed", "4711"]), 4711);
        let drawn: std::collections::BTreeSet<u64> = (0..10).map(|_| seed(&[])).collect();
        assert!(drawn.len() > 1 && drawn.iter().all(|seed| *seed < SEED_END.into()), "{drawn:?}");
    }

    #[test]
    fn only_tables_that_are_topics_by_their_bare_name_are_made() {
        let of_another = |name| is_of_another_database(&table_path(name).unwrap());
        assert!(of_another("other.sz") && !of_another("kafka.sz") && !of_another("kafka.a.b"));
    }
}
