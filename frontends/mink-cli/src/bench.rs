//! `mink bench`: the load generator, with what the load cost the node: processor time, requests and bytes to the store.
//!
//! Lives on: the load's tasks, and one that draws progress.
mod consume;
mod contents;
mod cost;
mod percentiles;
mod plot;
mod produce;
mod report;

use crate::address::{AdminAddress, KafkaAddress};
use crate::failure::Failure;
use crate::output::OutputArgs;
use clap::{Args, Subcommand};
use cost::{Cost, Probe};
use indicatif::{ProgressBar, ProgressStyle};
use mink_client::load::{LoadResult, Progress};
use mink_client::{ClientError, ErrorKind};
use report::Run;
use std::path::PathBuf;
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

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write records as fast as it goes, or at a rate
    #[command(after_help = produce::EXAMPLES)]
    Produce(produce::ProduceArgs),
    /// Read everything that a table holds, or what comes
    #[command(after_help = consume::EXAMPLES)]
    Consume(consume::ConsumeArgs),
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// End after this time, whatever is left; the warm-up is not part of it
    #[arg(long, value_name = "TIME", value_parser = mink_server::duration)]
    duration: Option<Duration>,
    /// Run for this time first, which is in no figure
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = mink_server::duration)]
    warmup: Duration,
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
    kafka: KafkaAddress,
    #[command(flatten)]
    node: AdminAddress,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::Produce(args) => produce::run(&args).await,
        Verb::Consume(args) => consume::run(&args).await,
    }
}

impl CommonArgs {
    /// Runs a load between two looks at the node's counters.
    async fn measured<F>(
        &self,
        records: Option<u64>,
        load: impl FnOnce(Arc<Progress>) -> F,
    ) -> Result<(LoadResult, Cost), Failure>
    where
        F: Future<Output = Result<LoadResult, ClientError>>,
    {
        let probe = Probe::new(&self.node, self.node_pid)?;
        let bar = bar(records);
        let progress = Arc::new(Progress::default());
        let mut before = probe.look(&progress).await;
        let mut ticks = tokio::time::interval(DRAWN_EVERY);
        let mut running = std::pin::pin!(load(Arc::clone(&progress)));
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                () = progress.warm() => if !self.warmup.is_zero() { before = probe.look(&progress).await },
                _ = ticks.tick() => bar.set_position(progress.records.load(Ordering::Relaxed)),
            }
        };
        bar.finish_and_clear();
        let result = ended.map_err(|error| match error.kind() {
            ErrorKind::Misuse => Failure::usage(error.to_string()),
            _ => Failure::kafka(&self.kafka.kafka)(error),
        })?;
        let cost = probe.look(&progress).await.since(before);
        for why in &cost.uncounted {
            eprintln!("mink: {why}");
        }
        Ok((result, cost))
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
            write(path, plot::svg(&run.title(), run.result))?;
        }
        Ok(())
    }
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
