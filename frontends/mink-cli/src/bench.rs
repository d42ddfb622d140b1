//! `mink bench`: the load generator, with what the load cost the node: processor time, requests and bytes to the store.
//!
//! Lives on: the load's tasks, one that draws progress, one that waits for signals.
mod consume;
mod contents;
mod cost;
mod csv;
mod flight_address;
mod percentiles;
mod plot;
mod produce;
mod put;
mod report;
#[cfg(test)]
mod sample;
mod scan;
mod watch;

use crate::address::{AdminAddress, Kafka, NodeAddress};
use crate::failure::Failure;
use crate::numbers;
use crate::output::{OutputArgs, printer};
use clap::{Args, Subcommand};
use cost::{Cost, Probe};
use mink_client::load::{LoadResult, Progress};
use mink_client::{ClientError, ErrorKind};
use report::Run;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use watch::{Drawing, Signals};

/// How often progress is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// What all verbs have to say of their ends and costs.
const ENDS_AND_COSTS: &str = "\
When --duration is over, nothing more is offered or asked for. What is outstanding then is waited for, at most 5 s, which is told as the drain and is in
no throughput. Ctrl-C and SIGTERM end a run in the same way, with what was measured; a second one ends at once.
Processor time and requests are all that the node did meanwhile: flushes and compaction of what was written before are in them. For figures of one run
alone use a fresh node, or --settle.";

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write records as fast as it goes, or at a rate
    #[command(after_help = format!("{}\n\n{ENDS_AND_COSTS}", produce::EXAMPLES))]
    Produce(produce::ProduceArgs),
    /// Read everything that a table holds, or what comes
    #[command(after_help = format!("{}\n\n{ENDS_AND_COSTS}", consume::EXAMPLES))]
    Consume(consume::ConsumeArgs),
    /// Write rows as Arrow batches, as fast as it goes, or at a rate
    #[command(after_help = format!("{}\n\n{ENDS_AND_COSTS}", put::EXAMPLES))]
    Put(put::PutArgs),
    /// Read the rows that a table holds as Arrow batches
    #[command(after_help = format!("{}\n\n{ENDS_AND_COSTS}", scan::EXAMPLES))]
    Scan(scan::ScanArgs),
}

/// Where loads of records go.
#[derive(Clone, Debug, Args)]
struct KafkaArg {
    /// Kafka listener, in the place of the one that the node tells; several by commas
    #[arg(long, env = "MINK_KAFKA", value_name = "HOST:PORT")]
    kafka: Option<String>,
}

impl KafkaArg {
    async fn reach(&self, node: &AdminAddress) -> Result<Kafka, Failure> {
        NodeAddress { admin: node.clone(), kafka: self.kafka.clone() }.kafka().await
    }
}

/// How a Kafka listener is named in an error.
fn kafka_listener(address: &str) -> String {
    format!("Kafka listener at {address}")
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// End after this time, whatever is left; the warm-up is not part of it. Acks are waited for, at most 5 s
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Run for this time first, which is in no figure
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = mink_server::duration)]
    warmup: Duration,
    /// Wait before the start until the node has flushed what was written before, at most so long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = mink_server::duration)]
    settle: Duration,
    /// Draw latency by percentile and throughput by second
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write all percentiles of latency, in the form that HdrHistogram's plotter reads
    #[arg(long, value_name = "FILE.hgrm")]
    histogram: Option<PathBuf>,
    /// Count processor time of this process instead of asking the node: any broker's, on this machine
    #[arg(long, value_name = "PID")]
    node_pid: Option<u32>,
    #[command(flatten)]
    admin: AdminAddress,
    #[command(flatten)]
    output: OutputArgs,
}

/// A load that has ended, whatever ended it.
struct Measured {
    result: LoadResult,
    cost: Cost,
    /// The number of the signal that ended it.
    signal: Option<u8>,
}

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::Produce(args) => produce::run(&args).await,
        Verb::Consume(args) => consume::run(&args).await,
        Verb::Put(args) => put::run(&args).await,
        Verb::Scan(args) => scan::run(&args).await,
    }
}

/// A time above 0.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = mink_server::duration(text)?;
    if time.is_zero() { Err("write a time above 0".into()) } else { Ok(time) }
}

impl CommonArgs {
    /// Refuses a form that is not there and files that cannot be written, before anything runs.
    fn check_outputs(&self) -> Result<(), Failure> {
        drop(printer(self.output.output, &["measure"])?);
        for (flag, path) in [("plot", &self.plot), ("histogram", &self.histogram)] {
            if let Some(path) = path {
                check_file(path).map_err(|error| {
                    Failure::usage(format!("--{flag} {}: it cannot be written: {error}", path.display()))
                })?;
            }
        }
        Ok(())
    }

    /// Runs a load on this listener between two looks at the node's counters.
    async fn measured<F>(
        &self,
        listener: &str,
        records: Option<u64>,
        load: impl FnOnce(Arc<Progress>) -> F,
    ) -> Result<Measured, Failure>
    where
        F: Future<Output = Result<LoadResult, ClientError>>,
    {
        let probe = Probe::find(&self.admin, self.node_pid).await?;
        probe.settle(self.settle).await?;
        let progress = Arc::new(Progress::default());
        let signals = Signals::watch(&progress)?;
        let mut before = probe.look_before(&progress).await;
        let mut drawing = Drawing::new(records, self.duration.map(|duration| self.warmup + duration));
        let mut ticks = tokio::time::interval(DRAWN_EVERY);
        let mut running = std::pin::pin!(load(Arc::clone(&progress)));
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                () = progress.warm() => if !self.warmup.is_zero() { before = probe.look_before(&progress).await },
                _ = ticks.tick() => drawing.draw(&progress),
            }
        };
        drawing.end();
        let result = ended.map_err(|error| match error.kind() {
            ErrorKind::Misuse => Failure::usage(error.to_string()),
            // It was reached before: whether a node is there is no question.
            _ => Failure::failed(format!("{listener}: {error}")),
        })?;
        let cost = probe.look_after(&progress).await.since(before);
        for why in cost.uncounted() {
            eprintln!("mink: {why}");
        }
        Ok(Measured { result, cost, signal: signals.came() })
    }

    /// Tells what came of it, in the files that were asked for too.
    fn tell(&self, run: &Run<'_>) -> Result<(), Failure> {
        let write = |path: &PathBuf, text: Result<String, std::fmt::Error>| {
            let written = text.map_err(std::io::Error::other).and_then(|text| std::fs::write(path, text));
            written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
        };
        // The result first: it is still there if a file cannot be written.
        run.print(self.output.output)?;
        if let Some(path) = &self.histogram {
            write(path, percentiles::text(&run.result.latency))?;
        }
        if let Some(path) = &self.plot {
            write(path, plot::svg(&run.titles(), run.latency_from(), run.result))?;
        }
        Ok(())
    }
}

impl Measured {
    /// Says what went wrong, once the result is told.
    fn end(&self) -> Result<(), Failure> {
        let result = &self.result;
        if result.unacked > 0 {
            eprintln!(
                "mink: {} had no ack; they are counted with the time until the run ended",
                numbers::records(result.unacked)
            );
        }
        let ended = match &result.first_error {
            Some(error) if result.errors > 0 => {
                Err(format!("{} not acked; the first: {error}", numbers::records(result.errors)))
            }
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        };
        if let Some(signal) = self.signal {
            if let Err(words) = &ended {
                eprintln!("mink: {words}");
            }
            eprintln!("mink: stopped by a signal; this is what was measured until then");
            std::process::exit(watch::exit_code(signal));
        }
        ended.map_err(Failure::Failed)
    }
}

/// Whether a file can be written; one that was not there is not there after.
fn check_file(path: &Path) -> std::io::Result<()> {
    let was_there = path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    if was_there { Ok(()) } else { std::fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_tells_how_long_a_run_waits_for_acks() {
        assert_eq!(mink_client::load::DRAIN_MAX, Duration::from_secs(5));
        assert!(ENDS_AND_COSTS.contains("at most 5 s"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_found_and_none_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "kept").unwrap();
        check_file(&new).unwrap();
        check_file(&old).unwrap();
        assert!(!new.exists() && std::fs::read(&old).unwrap() == b"kept");
        assert!(check_file(folder.path()).is_err() && check_file(&folder.path().join("no/file")).is_err());
    }

    #[test]
    fn a_run_of_no_time_is_refused() {
        assert!(some_time("0s").is_err() && some_time("soon").is_err());
        assert_eq!(some_time("2s"), Ok(Duration::from_secs(2)));
    }
}
