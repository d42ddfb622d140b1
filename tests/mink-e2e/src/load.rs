//! Producers that write numbered records over any number of crashes, and the check of all that they were told.
//! Lives on: the test's tokio runtime.
//! Owns: its producers' processes and their logs of acks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mink_testkit::process::Process;
use mink_testkit::{client, skip};
use serde_json::Value;

use crate::setup::until;
use crate::wire::Wire;

/// A first ack, or one after a restart, comes within this.
const PROGRESS_WITHIN: Duration = Duration::from_mins(1);
const STOP_WITHIN: Duration = Duration::from_mins(2);
const VERIFY_WITHIN: Duration = Duration::from_mins(5);

/// How a load's producers work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partitions: i32,
    pub(crate) producers: usize,
    pub(crate) idempotent: bool,
    /// Records per second of each producer.
    pub(crate) rate: u32,
    /// Records of each producer, or until it is stopped.
    pub(crate) count: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Load {
    kafka: String,
    topic: String,
    idempotent: bool,
    producers: Vec<Process>,
    names: Vec<String>,
    logs: Vec<PathBuf>,
}

/// Whether the clients that a load needs are there; says so by name if not.
pub(crate) async fn available() -> bool {
    skip::available("clients-python", client::install("acked_producer").await).is_some()
}

impl Load {
    /// Makes the topic and starts the producers.
    pub(crate) async fn start(folder: &Path, kafka: &str, plan: Plan<'_>) -> Self {
        Wire::connect(kafka).await.create_topic(plan.topic, plan.partitions).await;
        let mut load = Self {
            kafka: kafka.to_owned(),
            topic: plan.topic.to_owned(),
            idempotent: plan.idempotent,
            producers: Vec::new(),
            names: Vec::new(),
            logs: Vec::new(),
        };
        for number in 0..plan.producers {
            let (name, rate) = (format!("p{number}"), plan.rate.to_string());
            let log = folder.join(format!("{}-{name}.acks", plan.topic));
            // Made here, so that a producer that is still starting has a log to be looked at.
            std::fs::write(&log, "").unwrap();
            let log_name = log.to_str().unwrap();
            let mut args = vec!["--bootstrap", kafka, "--topic", plan.topic, "--name", &name];
            args.extend(["--log", log_name, "--rate", &rate]);
            let count = plan.count.map(|count| count.to_string());
            if let Some(count) = &count {
                args.extend(["--count", count]);
            }
            if plan.idempotent {
                args.push("--idempotent");
            }
            load.producers.push(client::start("acked_producer", &args).unwrap());
            load.names.push(name);
            load.logs.push(log);
        }
        load
    }

    fn ack_bytes(&self) -> Vec<u64> {
        self.logs.iter().map(|log| std::fs::metadata(log).unwrap().len()).collect()
    }

    /// Waits until every producer has been told of an ack that it had not been told of before the call.
    pub(crate) async fn progress(&self) {
        let before = self.ack_bytes();
        until("every producer gets an ack", PROGRESS_WITHIN, || async {
            let now = self.ack_bytes();
            now.iter().zip(&before).all(|(now, before)| now > before).then_some(())
        })
        .await;
    }

    /// Waits until producers with a count have come to their end: all they sent is acked, nothing was refused.
    pub(crate) async fn finish(&mut self, within: Duration) {
        for producer in &mut self.producers {
            let status = producer.wait(within).await.unwrap();
            let report =
                producer.report(mink_testkit::ErrorKind::Failed, "did not get all its records acked");
            assert!(status.success(), "{report}");
        }
    }

    /// Stops the producers; each must get the last of its acks.
    pub(crate) async fn stop(&mut self) {
        for producer in &mut self.producers {
            producer.terminate().unwrap();
        }
        self.finish(STOP_WITHIN).await;
    }

    /// Every acked record is at its acked offset, offsets are dense, no byte differs, nothing of an idempotent producer is twice.
    /// While the producers run, what they were told so far is checked.
    pub(crate) async fn verify(&self, running: bool) -> Value {
        let mut args = vec!["--bootstrap", &self.kafka, "--topic", &self.topic];
        for (log, name) in self.logs.iter().zip(&self.names) {
            args.extend(["--log", log.to_str().unwrap(), "--name", name]);
        }
        if self.idempotent {
            args.push("--idempotent");
        }
        if running {
            args.push("--running");
        }
        let summary = client::run("verify_acked", &args, VERIFY_WITHIN).await.unwrap();
        println!("{summary}");
        summary
    }
}
