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
    members: Vec<Seat>,
    cooperative: bool,
    logs: Vec<PathBuf>,
    /// Records of each partition.
    ends: Vec<usize>,
}

/// A member's process, and the instance id that it goes by.
#[derive(Debug)]
struct Seat {
    process: Process,
    instance: Option<String>,
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
            cooperative: false,
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

    /// Members that come from now on take over partitions one by one, as `cooperative-sticky` does.
    pub(super) fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Starts one more member.
    pub(super) fn join(&mut self) {
        self.join_as(None);
    }

    /// Starts one more member, which keeps its place over restarts if it goes by an instance id.
    pub(super) fn join_as(&mut self, instance: Option<String>) {
        let log = self.folder.join(format!("{}-{}.read", self.group, self.logs.len()));
        std::fs::write(&log, "").unwrap();
        let session = SESSION.as_millis().to_string();
        let mut args = vec!["--client", self.client, "--bootstrap", &self.kafka, "--topic", &self.topic];
        args.extend(["--group", &self.group, "--log", log.to_str().unwrap(), "--session-ms", &session]);
        if let Some(instance) = &instance {
            args.extend(["--instance", instance]);
        }
        if self.cooperative {
            args.push("--cooperative");
        }
        let process = client::start("group_member", &args).unwrap();
        self.members.push(Seat { process, instance });
        self.logs.push(log);
    }

    /// Every member leaves in order.
    pub(super) async fn leave(&mut self, within: Duration) {
        for member in &mut self.members {
            member.process.terminate().unwrap();
        }
        for Seat { process: mut member, .. } in self.members.drain(..) {
            let status = member.wait(within).await.unwrap();
            assert!(status.success(), "{}", member.report(ErrorKind::Failed, "did not leave in order"));
        }
    }

    /// The first member dies without a word.
    pub(super) async fn kill_first(&mut self) -> Option<String> {
        let mut seat = self.members.remove(0);
        seat.process.kill9().await.unwrap();
        seat.instance
    }

    /// The first member leaves in order.
    pub(super) async fn dismiss_first(&mut self, within: Duration) -> Option<String> {
        let Seat { mut process, instance } = self.members.remove(0);
        process.terminate().unwrap();
        let status = process.wait(within).await.unwrap();
        assert!(status.success(), "{}", process.report(ErrorKind::Failed, "did not leave in order"));
        instance
    }

    /// The first member stands still.
    pub(super) fn pause_first(&mut self) {
        self.members[0].process.pause().unwrap();
    }

    /// It goes on.
    pub(super) fn resume_first(&mut self) {
        self.members[0].process.resume().unwrap();
    }

    /// The member that has been in the group longest comes last.
    pub(super) fn rotate(&mut self) {
        self.members.rotate_left(1);
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Partitions have so many records: somebody else writes them.
    pub(super) fn wrote(&mut self, ends: Vec<usize>) {
        self.ends = ends;
    }

    /// I18: nothing is committed that nobody has read: what was committed before the logs are looked at was read before it.
    pub(super) async fn nothing_passed_over(&self) {
        let committed = self.committed().await;
        let mut seen: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (partition, offset, _) in self.lines() {
            seen.entry(partition as u64).or_default().insert(offset as u64);
        }
        for (partition, end) in committed {
            let read = seen.entry(partition).or_default();
            let missed = (0..end).find(|offset| !read.contains(offset));
            assert_eq!(missed, None, "of partition {partition}, of which {end} are committed");
        }
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
        self.all_live();
    }

    /// No member has given up.
    pub(super) fn all_live(&mut self) {
        for Seat { process: member, .. } in &mut self.members {
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
