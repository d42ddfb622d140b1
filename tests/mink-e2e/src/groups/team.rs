//! The members of a group as processes, what they read by their logs, and `mink group` as a process.
//! Lives on: the test's tokio runtime.
//! Owns: its members' processes and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use mink_testkit::process::{Launch, Output, Process};
use mink_testkit::{ErrorKind, client, node};
use serde_json::Value;

use super::SESSION;
use crate::setup::{Folder, until};
use crate::wire::{Wire, batch, values};

const COMMAND_WITHIN: Duration = Duration::from_secs(30);

/// A topic, a group, and who is in it.
#[derive(Debug)]
pub(super) struct Team {
    kafka: String,
    client: &'static str,
    pub(super) topic: String,
    pub(super) group: String,
    folder: PathBuf,
    members: Vec<Process>,
    logs: Vec<PathBuf>,
    /// Records of each partition: all alike.
    ends: Vec<usize>,
}

impl Team {
    /// Makes the topic; the group is made by its first member.
    pub(super) async fn new(folder: &Folder, kafka: &str, client: &'static str, partitions: i32) -> Self {
        let topic = format!("{client}-shared");
        Wire::connect(kafka).await.create_topic(&topic, partitions).await;
        Self {
            kafka: kafka.to_owned(),
            client,
            topic,
            group: format!("{client}-team"),
            folder: folder.path().to_owned(),
            members: Vec::new(),
            logs: Vec::new(),
            ends: vec![0; usize::try_from(partitions).unwrap()],
        }
    }

    /// Writes `count` records to every partition; a record's value tells its partition and offset.
    pub(super) async fn produce(&mut self, count: usize) {
        let mut wire = Wire::connect(&self.kafka).await;
        for (number, end) in self.ends.iter_mut().enumerate() {
            let records = batch(values(&format!("p{number}"), *end..*end + count), None);
            let partition = i32::try_from(number).unwrap();
            let base = wire.produce(&self.topic, partition, &records).await;
            assert_eq!(usize::try_from(base).unwrap(), *end);
            *end += count;
        }
    }

    /// Starts one more member.
    pub(super) fn join(&mut self) {
        let log = self.folder.join(format!("{}-{}.read", self.group, self.logs.len()));
        std::fs::write(&log, "").unwrap();
        let session = SESSION.as_millis().to_string();
        let mut args = vec!["--client", self.client, "--bootstrap", &self.kafka, "--topic", &self.topic];
        args.extend(["--group", &self.group, "--log", log.to_str().unwrap(), "--session-ms", &session]);
        self.members.push(client::start("group_member", &args).unwrap());
        self.logs.push(log);
    }

    /// Every member leaves in order.
    pub(super) async fn leave(&mut self, within: Duration) {
        for member in &mut self.members {
            member.terminate().unwrap();
        }
        for mut member in self.members.drain(..) {
            let status = member.wait(within).await.unwrap();
            assert!(status.success(), "{}", member.report(ErrorKind::Failed, "did not leave in order"));
        }
    }

    /// The first member dies without a word.
    pub(super) async fn kill_first(&mut self) {
        self.members.remove(0).kill9().await.unwrap();
    }

    /// Lines of all logs: a record that was read twice counts twice.
    pub(super) fn reads(&self) -> usize {
        self.lines().len()
    }

    /// Partition, offset and value of each record that was read. The last line of a killed member may be cut.
    fn lines(&self) -> Vec<(usize, usize, String)> {
        let mut lines = Vec::new();
        for log in &self.logs {
            let text = std::fs::read_to_string(log).unwrap();
            for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
                let mut parts = line.splitn(3, ' ');
                let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
                let (Some(partition), Some(offset)) = (number(), number()) else {
                    panic!("{}: {line}", log.display())
                };
                lines.push((partition, offset, parts.next().unwrap_or_default().to_owned()));
            }
        }
        lines
    }

    /// Waits until every record was read by somebody; each must be the one that was written there.
    pub(super) async fn all_read(&mut self, within: Duration) {
        let wanted: usize = self.ends.iter().sum();
        until("every record is read", within, || async {
            let mut seen = BTreeSet::new();
            for (partition, offset, value) in self.lines() {
                assert_eq!(value, format!("p{partition} {offset}"), "at offset {offset} of {partition}");
                seen.insert((partition, offset));
            }
            (seen.len() == wanted).then_some(())
        })
        .await;
        for member in &mut self.members {
            let status = member.exit_status().unwrap();
            assert!(status.is_none(), "{}", member.report(ErrorKind::Failed, "has ended"));
        }
    }

    /// What the group has committed, by partition.
    pub(super) async fn committed(&self) -> BTreeMap<u64, u64> {
        let group = describe(&self.kafka, &self.group).await.expect("the group is described");
        let partitions = group["partitions"].as_array().unwrap();
        let committed = partitions
            .iter()
            .map(|one| (one["partition"].as_u64().unwrap(), one["committed"].as_u64().unwrap_or_default()));
        committed.collect()
    }

    /// Whether everything of so many partitions is committed.
    pub(super) fn lag_0(partitions: i32) -> impl Fn(&Value) -> Option<()> {
        move |group| {
            let lines = group["partitions"].as_array()?;
            let all = lines.len() == usize::try_from(partitions).unwrap();
            (all && lines.iter().all(|one| one["lag"] == 0)).then_some(())
        }
    }
}

/// Runs `mink group WORDS`: exit code, results and complaints.
pub(super) async fn mink(kafka: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Launch::new("mink-group", node::binary("mink").unwrap())
        .arg("group")
        .args(words.iter().copied())
        .args(["--kafka", kafka])
        .start()
        .unwrap();
    let status = command.wait(COMMAND_WITHIN).await.unwrap();
    (status.code(), command.text(Output::Stdout).unwrap(), command.text(Output::Stderr).unwrap())
}

/// How a group stands; none while the node or the group is not there.
async fn describe(kafka: &str, group: &str) -> Option<Value> {
    let (code, said, _) = mink(kafka, &["describe", group, "--output", "json"]).await;
    (code == Some(0)).then(|| serde_json::from_str(&said).unwrap())
}

/// Waits until a group stands so that `judge` gives a value.
pub(super) async fn until_described<T>(
    kafka: &str,
    group: &str,
    within: Duration,
    judge: impl Fn(&Value) -> Option<T>,
) -> T {
    let last = std::sync::Mutex::new(Value::Null);
    let judged = until("the group stands as expected", within, || async {
        let found = describe(kafka, group).await?;
        let judged = judge(&found);
        *last.lock().unwrap() = found;
        judged
    });
    let _shown = ShowsLast(&last);
    judged.await
}

/// Shows how a group stood at last when a wait for it fails.
struct ShowsLast<'a>(&'a std::sync::Mutex<Value>);

impl Drop for ShowsLast<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at last: {}", self.0.lock().unwrap());
        }
    }
}
