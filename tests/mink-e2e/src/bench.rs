//! The client's load generator as a process, and what a node's counters say of its load.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use std::time::Duration;

use mink_testkit::http::{self, Answer};
use mink_testkit::node::binary;
use mink_testkit::process::{Launch, Output};
use serde_json::Value;

use crate::setup::Folder;

const ENDS_WITHIN: Duration = Duration::from_mins(10);

/// What to produce: a topic of its own, as fast as it goes unless there is a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Produce<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partitions: u32,
    pub(crate) connections: u32,
    /// Batches in flight per connection and partition.
    pub(crate) in_flight: u32,
    pub(crate) record_bytes: u64,
    pub(crate) batch_bytes: u64,
    pub(crate) records: u64,
    /// Records per second.
    pub(crate) rate: Option<u64>,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Produced {
    /// Of values.
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Produced {
    pub(crate) fn gib(&self) -> f64 {
        to_f64(self.bytes) / f64::from(1 << 30)
    }

    pub(crate) fn mib_per_second(&self) -> f64 {
        self.gib() * 1024.0 / self.seconds
    }
}

/// Counts here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts of requests and bytes, for ratios")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// Produces with `mink bench`; every record must be acked.
pub(crate) async fn produce(folder: &Folder, kafka: &str, http: &str, load: Produce<'_>) -> Produced {
    let [partitions, connections, in_flight] =
        &[load.partitions, load.connections, load.in_flight].map(|number| number.to_string());
    let [record_bytes, batch_bytes, records] =
        &[load.record_bytes, load.batch_bytes, load.records].map(|number| number.to_string());
    let mut launch = Launch::new("mink-bench", binary("mink").unwrap())
        .log_dir(folder.join("logs"))
        .args(["bench", "produce", &format!("kafka.{}", load.topic), "--output", "json", "--linger", "20ms"])
        .args(["--kafka", kafka, "--addr", &format!("http://{http}")])
        .args(["--partitions", partitions, "--connections", connections, "--in-flight", in_flight])
        .args(["--record-bytes", record_bytes, "--batch-bytes", batch_bytes, "--records", records]);
    if let Some(rate) = load.rate {
        launch = launch.args(["--rate", &rate.to_string()]);
    }
    let mut bench = launch.start().unwrap();
    let status = bench.wait(ENDS_WITHIN).await.unwrap();
    let said = bench.text(Output::Stdout).unwrap();
    let complaints = bench.text(Output::Stderr).unwrap();
    assert!(status.success(), "{said}\n{complaints}");
    let result: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(result["records"], load.records, "{result}");
    Produced { bytes: result["bytes"].as_u64().unwrap(), seconds: result["seconds"].as_f64().unwrap() }
}

/// A node's counters of requests and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    /// Of all kinds.
    pub(crate) requests: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
    pub(crate) gets: u64,
    pub(crate) lists: u64,
    /// Sent by PUTs.
    pub(crate) put_bytes: u64,
    /// WAL objects, repeated and hedged PUTs of them included.
    pub(crate) wal_puts: u64,
    pub(crate) flushes: u64,
}

impl Counters {
    pub(crate) async fn of(http: &str) -> Counters {
        let answer = http::get(http, "/metrics").await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        let requests =
            |op: &str| labelled(&answer, "mink_object_store_requests_total", &format!("op=\"{op}\""));
        let sum = |name: &str| count(answer.metric_sum(name));
        Counters {
            requests: sum("mink_object_store_requests_total"),
            puts: requests("put"),
            deletes: requests("delete"),
            gets: requests("get") + requests("head"),
            lists: requests("list"),
            put_bytes: labelled(&answer, "mink_object_store_bytes_total", "op=\"put\""),
            wal_puts: sum("mink_wal_objects_total")
                + sum("mink_wal_put_repeats_total")
                + sum("mink_wal_put_hedges_total"),
            flushes: sum("mink_wal_flushes_total"),
        }
    }

    /// What was counted since `before`.
    pub(crate) fn since(self, before: Counters) -> Counters {
        Counters {
            requests: self.requests - before.requests,
            puts: self.puts - before.puts,
            deletes: self.deletes - before.deletes,
            gets: self.gets - before.gets,
            lists: self.lists - before.lists,
            put_bytes: self.put_bytes - before.put_bytes,
            wal_puts: self.wal_puts - before.wal_puts,
            flushes: self.flushes - before.flushes,
        }
    }
}

/// The sum of the samples of `name` that have this label.
fn labelled(answer: &Answer, name: &str, label: &str) -> u64 {
    let samples = answer.body.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let values = samples.filter(|rest| rest.contains(label)).filter_map(|rest| rest.rsplit_once(' '));
    values.map(|(_, value)| count(value.parse().unwrap())).sum()
}

fn count(value: f64) -> u64 {
    assert!(value >= 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, not negative")]
    let count = value as u64;
    count
}
