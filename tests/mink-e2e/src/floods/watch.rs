//! What is looked at during a flood: the node's memory, and how long a client that behaves waits.
//! Lives on: the test's tokio runtime.
//! Owns: the connection of the client that behaves.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mink_testkit::node::Node;
use tokio::task::JoinSet;

use crate::setup::{self, Folder};
use crate::wire::{Wire, batch};

pub(super) const TOPIC: &str = "flooded";

pub(super) const MEMORY_MIB: u64 = 256;
/// What a process holds beside what `--memory` counts (see `memory`).
pub(super) const FIXED_MIB: u64 = 64;
/// In which a produce and a fetch of the client that behaves are answered, whatever the flood.
const SERVED_WITHIN: Duration = Duration::from_secs(5);
/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_millis(100);

/// How long one flood lasts.
fn lasts() -> Duration {
    Duration::from_secs(if setup::is_long() { 60 } else { 4 })
}

/// A node, and a client that was connected before the flood.
pub(super) struct Flooded {
    pub(super) node: Node,
    pub(super) good: Wire,
}

pub(super) async fn start(folder: &Folder) -> Flooded {
    let config = setup::node(folder)
        .flag("--memory", &format!("{MEMORY_MIB}MiB"))
        .allow_line("kafka connection closed")
        .allow_line("too many kafka connections")
        .allow_line("nothing of a compacted table is superseded yet");
    let node = config.start().await.unwrap();
    let mut good = Wire::connect(node.kafka()).await;
    good.create_topic(TOPIC, 2).await;
    good.produce(TOPIC, 1, &batch(["first"], None)).await;
    // It has shown that it takes what it asks for.
    for _ in 0..2 {
        assert_eq!(good.fetch_open(TOPIC, 1, 0).await.records.len(), 1);
    }
    Flooded { node, good }
}

/// How long the rounds of the client that behaves took, in rising order.
struct Waits(Vec<Duration>);

impl Waits {
    fn slowest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_hundred = |part: usize| self.0.get(self.0.len() * part / 100).copied().unwrap_or_default();
        let (half, most, all) = (of_hundred(50), of_hundred(99), self.slowest());
        write!(to, "{} rounds, p50 {half:.1?}, p99 {most:.1?}, slowest {all:.1?}", self.0.len())
    }
}

impl Flooded {
    /// Produces and fetches until the flood is over.
    async fn behave(&mut self) -> Waits {
        let mut waits = Vec::new();
        let ends = Instant::now() + lasts();
        while Instant::now() < ends || waits.is_empty() {
            let began = Instant::now();
            let value = format!("round {}", waits.len());
            let offset = self.good.produce(TOPIC, 1, &batch([value], None)).await;
            let fetched = self.good.fetch(TOPIC, 1, offset).await.unwrap();
            assert_eq!(fetched.records.first().map(|(at, _)| *at), Some(offset), "{fetched:?}");
            waits.push(began.elapsed());
        }
        waits.sort_unstable();
        Waits(waits)
    }

    /// Runs a flood of so many tasks beside the client that behaves, and looks at both.
    pub(super) async fn flood<F, T>(&mut self, name: &str, tasks: usize, attack: F)
    where
        F: Fn(String, usize, Arc<AtomicBool>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        let flooding = Arc::new(AtomicBool::new(true));
        let mut attackers = JoinSet::new();
        for n in 0..tasks {
            attackers.spawn(attack(self.node.kafka().to_owned(), n, Arc::clone(&flooding)));
        }
        let memory = tokio::spawn(sample(self.node.process().id(), Arc::clone(&flooding)));
        let waits = self.behave().await;
        flooding.store(false, Ordering::Relaxed);
        while let Some(ended) = attackers.join_next().await {
            ended.unwrap();
        }
        let during = memory.await.unwrap();
        let (_, ever) = setup::resident_kib(self.node.process().id());
        println!("{name}: {tasks} tasks; {} MiB resident, {} MiB ever; {waits}", during >> 10, ever >> 10);
        assert!(waits.slowest() <= SERVED_WITHIN, "{name}: {waits}");
        assert!(ever >> 10 <= MEMORY_MIB + FIXED_MIB, "{name}: {} MiB", ever >> 10);
    }
}

/// The most that a process held while the flood went on, in KiB.
async fn sample(process: u32, flooding: Arc<AtomicBool>) -> u64 {
    let mut most = 0;
    let mut ticks = tokio::time::interval(SAMPLE);
    while flooding.load(Ordering::Relaxed) {
        ticks.tick().await;
        most = most.max(setup::resident_kib(process).0);
    }
    most
}
