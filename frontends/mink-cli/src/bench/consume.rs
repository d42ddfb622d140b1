//! `mink bench consume`: how fast records come out, and what that costs.
//!
//! Lives on: the command's task.
use super::report::{Run, rounded};
use super::{CommonArgs, KafkaArg, Measured, kafka_listener};
use crate::address::{Kafka, table_path, topic};
use crate::failure::Failure;
use clap::Args;
use mink_client::load::{ConsumeLoad, consume};
use mink_server::Bytes;
use mink_types::TablePath;
use serde_json::{Value, json};

pub(super) const EXAMPLES: &str = "\
Examples:
  mink bench consume kafka.bench
  mink bench consume kafka.bench --connections 8 --read-bytes 1MiB --output json
  mink bench consume kafka.bench --follow --duration 30s  while `mink bench produce --rate` runs: how old are records when they come?

Reads what the table holds, partitions in parallel, checks every batch and decodes every record. Latency is that of a read.
A read that fails ends the run: what was read until then is told, and the command fails.
With --follow it begins at the end, and a read waits for records, so its latency tells little: look at end to end, which is the time from a
record's timestamp to its arrival, in steps of 1 ms. The producer's clock must be this machine's or as right.";

#[derive(Debug, Args)]
pub(super) struct ConsumeArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// End after about so many records, those of the warm-up among them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Connections to which the partitions are dealt out, at most one for each
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: usize,
    /// Bytes of one read
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    read_bytes: Bytes,
    /// Begin at the end, read what comes, and tell how old it is; a connection per partition, until --duration or --records
    #[arg(long, conflicts_with = "connections")]
    follow: bool,
    #[command(flatten)]
    kafka: KafkaArg,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) async fn run(args: &ConsumeArgs) -> Result<(), Failure> {
    if args.follow && args.records.is_none() && args.common.duration.is_none() {
        return Err(Failure::usage("--follow needs an end: give --duration TIME or --records N"));
    }
    let read_bytes =
        i32::try_from(args.read_bytes.0).map_err(|_| Failure::usage("--read-bytes takes less than 2GiB"))?;
    if read_bytes == 0 {
        return Err(Failure::usage("--read-bytes takes a size above 0"));
    }
    args.common.check_outputs()?;
    let load = ConsumeLoad {
        topic: topic(&args.table),
        records: args.records,
        warmup: args.common.warmup,
        duration: args.common.duration,
        connections: args.connections,
        read_bytes,
        follow: args.follow,
    };
    let Kafka { client, address } = args.kafka.reach(&args.common.admin).await?;
    let (client, sent) = (&client, &load);
    let listener = kafka_listener(&address);
    let ended = args
        .common
        .measured(&listener, args.records, |progress| async move { consume(client, sent, &progress).await });
    let measured = ended.await?;
    let Measured { result, cost, .. } = &measured;
    // After an error too: what was read until then is told.
    args.common.tell(&Run { verb: "consume", settings: settings(args, &address), result, cost })?;
    measured.end()
}

fn settings(args: &ConsumeArgs, kafka: &str) -> Value {
    json!({
        "table": args.table.to_string(),
        "kafka": kafka,
        "records": args.records,
        "duration_seconds": args.common.duration.map(|duration| rounded(duration.as_secs_f64())),
        "warmup_seconds": rounded(args.common.warmup.as_secs_f64()),
        // One for each partition then.
        "connections": (!args.follow).then_some(args.connections),
        "read_bytes": args.read_bytes.0,
        "follow": args.follow,
    })
}
