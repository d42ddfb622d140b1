//! `mink demo`: real events through the whole path, with the node killed twice on the way.
//!
//! Lives on: the command's task; the node is a process of its own.
//! Owns: a temporary directory and the node in it.
//! Invariants: whatever happens (success, failure, Ctrl-C), the node is ended and the directory removed before the command ends; only
//! `--keep` leaves them, until Ctrl-C.
mod check;
mod feed;
pub(crate) mod flights;
mod node;
mod report;
mod typed;

use crate::address::Origin;
use crate::api::Api;
use crate::failure::Failure;
use crate::metrics::StoreWork;
use crate::numbers;
use check::Checked;
use clap::Args;
use feed::Feed;
use flights::Flight;
use mink_client::{Client, Codec, Producer, ProducerConfig};
use node::{DemoNode, Ready};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

const TOPIC: &str = "flights";
const PARTITIONS: i32 = 4;
/// Small batches, so that the demo is about many acks rather than a few large ones.
const BATCH_BYTES: usize = 32 << 10;
/// Little is gathered ahead, so that the kill comes in the middle.
const BUFFER_BYTES: usize = 2 << 20;
/// How long a call is tried again while the node is away.
const PATIENCE: Duration = Duration::from_secs(20);

const EXAMPLES: &str = "\
Examples:
  mink demo
  mink demo --keep            leave the node running, to look around with kcat and mink read; Ctrl-C ends it

First 100,000 flights go in as records over Kafka's protocol. The node is killed (kill -9) in the middle and once more at \
the end; all records are read back by offset and by time. Then the same flights become rows: SQL makes the table \
demo.flights with seven columns, Arrow Flight takes the rows, and a scan of two columns with a filter is compared.

Everything happens in a temporary directory and on 127.0.0.1, and is removed at the end.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Leave the node running until Ctrl-C
    #[arg(long)]
    keep: bool,
}

/// What must be gone when the demo ends.
struct Demo {
    directory: TempDir,
    node: Option<DemoNode>,
    ready: Option<Ready>,
    /// Requests to the store of the node's lives that have ended.
    earlier: StoreWork,
}

/// What the demo came to.
struct Outcome {
    records: u64,
    value_bytes: u64,
    feed: feed::Fed,
    restarts: Vec<Duration>,
    checked: Checked,
    work: StoreWork,
}

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let signals = |kind| signal(kind).map_err(|error| Failure::failed(format!("signals: {error}")));
    let (mut interrupt, mut terminate) =
        (signals(SignalKind::interrupt())?, signals(SignalKind::terminate())?);
    let directory = tempfile::Builder::new().prefix("mink-demo-").tempdir();
    let directory = directory.map_err(|error| {
        Failure::failed(format!("cannot make a temporary directory: {error}; TMPDIR names another place"))
    })?;
    let mut demo = Demo { directory, node: None, ready: None, earlier: StoreWork::default() };
    let mut stopped = std::pin::pin!(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    let shown = tokio::select! {
        shown = show(&mut demo, args.keep) => shown,
        () = &mut stopped => Err(Failure::failed("interrupted")),
    };
    if args.keep && shown.is_ok() {
        stopped.await;
    }
    let cleaned = demo.clean_up(shown.is_ok()).await;
    shown.and(cleaned)
}

impl Demo {
    /// Starts the node and waits until it serves. It is ours to end from the moment it exists.
    async fn start(&mut self) -> Result<Duration, Failure> {
        let node = DemoNode::spawn(self.directory.path(), self.ready.as_ref())?;
        let (ready, took) = self.node.insert(node).ready().await?;
        self.ready = Some(ready);
        Ok(took)
    }

    /// Where the node serves, in all its lives.
    fn ready(&self) -> Result<&Ready, Failure> {
        self.ready.as_ref().ok_or_else(|| Failure::failed("the node is not running"))
    }

    /// What this life of the node has asked of the store.
    async fn work(&self) -> Result<StoreWork, Failure> {
        StoreWork::read(&Api::at(self.ready()?.http.clone(), Origin::Addr)?).await
    }

    /// Notes what the node has done, and kills it.
    async fn kill(&mut self) -> Result<(), Failure> {
        let work = self.work().await?;
        self.earlier += work;
        match &mut self.node {
            Some(node) => node.kill().await,
            None => Ok(()),
        }
    }

    /// Ends the node, kindly if all went well, and removes everything.
    async fn clean_up(mut self, kindly: bool) -> Result<(), Failure> {
        let ended = match self.node.take() {
            Some(mut node) if kindly => node.drain().await,
            Some(mut node) => node.kill().await,
            None => Ok(()),
        };
        let path = self.directory.path().display().to_string();
        let removed = self.directory.close();
        ended?;
        removed.map_err(|error| Failure::failed(format!("cannot remove {path}: {error}; remove it by hand")))
    }
}

/// A line of what is being done, on stdout at once.
fn say(line: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", line.as_ref())?;
    Ok(out.flush()?)
}

async fn show(demo: &mut Demo, keep: bool) -> Result<(), Failure> {
    let flights = Arc::new(flights::all().map_err(Failure::failed)?);
    let took = demo.start().await?;
    let ready = demo.ready()?.clone();
    say(format!(
        "node      started in {}, its store and database in {}",
        numbers::time(took),
        demo.directory.path().display()
    ))?;
    let failed = Failure::kafka(&ready.kafka);
    let client = Client::with_patience(&ready.kafka, PATIENCE).await.map_err(&failed)?;
    client.create_topic(TOPIC, Some(PARTITIONS), &[]).await.map_err(&failed)?;
    say(format!("topic     {TOPIC}, {PARTITIONS} partitions"))?;

    let (fed, first) = produce(demo, &client, &flights).await?;
    let total = numbers::count(flights.len() as u64);
    say(format!("acked     all {total} flights in {}", numbers::time(fed.took)))?;
    demo.kill().await?;
    let second = demo.start().await?;
    say(format!("kill -9   once more; restarted, ready in {}", numbers::time(second)))?;

    let checked = check::all(&client, TOPIC, PARTITIONS, &flights).await?;
    say(format!(
        "read back {} records by offset, {} places by time: all equal, byte for byte",
        numbers::count(checked.records),
        checked.times
    ))?;
    for line in typed::show(&ready.flight, &flights).await?.lines() {
        say(line)?;
    }
    let mut work = demo.work().await?;
    work += demo.earlier.clone();
    let value_bytes = flights.iter().map(Flight::bytes).sum();
    let restarts = vec![first, second];
    let outcome = Outcome { records: checked.records, value_bytes, feed: fed, restarts, checked, work };
    for line in report::lines(&outcome) {
        say(line)?;
    }
    if keep {
        for line in report::how_to_reach(&ready, TOPIC) {
            say(line)?;
        }
    } else {
        say("\nNothing is left behind. `mink demo --keep` leaves the node running; `mink serve` is yours.")?;
    }
    Ok(())
}

/// Produces everything; in the middle the node is killed and started again.
async fn produce(
    demo: &mut Demo,
    client: &Client,
    flights: &Arc<Vec<Flight>>,
) -> Result<(feed::Fed, Duration), Failure> {
    let config = ProducerConfig {
        codec: Codec::Lz4,
        batch_bytes: BATCH_BYTES,
        buffer_bytes: BUFFER_BYTES,
        ..ProducerConfig::default()
    };
    let failed = Failure::kafka(&demo.ready()?.kafka);
    let producer = Producer::start(client, TOPIC, config).await.map_err(&failed)?;
    let mut feed = Feed::start(producer, Arc::clone(flights), PARTITIONS);
    feed.acked(flights.len() as u64 / 2).await?;
    let acked = feed.count();
    demo.kill().await?;
    let took = demo.start().await?;
    let (acked, took_text) = (numbers::count(acked), numbers::time(took));
    feed.suspend(|| {
        say(format!("kill -9   after {acked} acks; restarted, ready in {took_text}; the producer goes on"))
    })?;
    Ok((feed.finish().await.map_err(&failed)?, took))
}
