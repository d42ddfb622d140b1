//! I18: members are killed, stand still longer than their session, come and go, while the node is killed with -9 and comes back, and
//! writers write. Nothing is passed over, no commit of an old generation is taken, and the group settles soon.
//!
//! Short in CI; `MINK_E2E_LONG=1` for 20 rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_testkit::node::Node;

use super::raw::RawMember;
use super::team::{Team, until_described};
use super::{JOINS_WITHIN, PARTITIONS, READ_WITHIN, SESSION, SETTLES_WITHIN, STOP_WITHIN, available, node};
use crate::setup::{self, Folder};
use crate::wire::{Wire, batch, values};

const MEMBERS: usize = 3;
/// What is written at once, and how often.
const RECORDS: usize = 20;
const WRITES_EACH: Duration = Duration::from_millis(50);

/// Writes to every partition, over crashes of the node, until it is told to stop.
struct Writer {
    stop: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<usize>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    fn start(kafka: &str, topic: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::new(Mutex::new(vec![0; usize::try_from(PARTITIONS).unwrap()]));
        let (kafka, topic, told, all) =
            (kafka.to_owned(), topic.to_owned(), Arc::clone(&stop), Arc::clone(&ends));
        let task = tokio::spawn(async move {
            while !told.load(Ordering::Relaxed) {
                for partition in 0..PARTITIONS {
                    let at = usize::try_from(partition).unwrap();
                    let end = all.lock().unwrap()[at];
                    let end = write(&kafka, &topic, partition, end).await;
                    all.lock().unwrap()[at] = end;
                }
                tokio::time::sleep(WRITES_EACH).await;
            }
        });
        Self { stop, ends, task }
    }

    /// How many records each partition has by now.
    fn ends(&self) -> Vec<usize> {
        self.ends.lock().unwrap().clone()
    }

    /// How many records each partition has got.
    async fn finish(self) -> Vec<usize> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        self.ends.lock().unwrap().clone()
    }
}

/// Writes one batch whose values tell their offsets, whatever becomes of the node meanwhile; gives the partition's end.
async fn write(kafka: &str, topic: &str, partition: i32, end: usize) -> usize {
    let records = batch(values(&format!("p{partition}"), end..end + RECORDS), None);
    let wanted = end + RECORDS;
    let deadline = Instant::now() + READ_WITHIN;
    loop {
        assert!(Instant::now() < deadline, "nothing can be written");
        let there = async {
            let mut wire = Wire::try_connect(kafka).await.ok()?;
            // Only this task writes, and the process that may have taken an earlier try is dead: what is not there never will be.
            let found = wire.fetch(topic, partition, i64::try_from(end).unwrap()).await.ok()?;
            if found.code != 0 {
                return None;
            }
            let at = usize::try_from(found.high_watermark).unwrap();
            if at == wanted {
                return Some(at);
            }
            assert_eq!(at, end, "partition {partition}: an end that nobody wrote");
            let answer = wire.try_produce(topic, partition, &records).await.ok()?;
            (answer.code == 0).then_some(wanted)
        };
        if let Some(end) = there.await {
            return end;
        }
        tokio::time::sleep(WRITES_EACH).await;
    }
}

/// A group of one that tries commits of a generation that is over.
struct Late {
    member: RawMember,
    topic: String,
    offset: i64,
}

impl Late {
    async fn new(kafka: &str, team: &Team) -> Self {
        let member = RawMember::new(kafka, &format!("{}-late", team.group)).await;
        Self { member, topic: team.topic.clone(), offset: 0 }
    }

    /// Goes through two generations and commits in both.
    async fn two_generations(&mut self) {
        let nothing = Bytes::from_static(&[0; 10]);
        for _ in 0..2 {
            self.member.join(&nothing).await;
            assert!(self.member.sync(&nothing).await);
            self.offset += 1;
            let generation = self.member.generation;
            assert_eq!(self.member.commit(generation, &self.topic, self.offset).await, 0);
        }
    }

    /// What is over stays so, whoever coordinates: K-23.
    async fn too_late(&mut self) {
        let (generation, topic, member) = (self.member.generation, &self.topic, &mut self.member);
        let (illegal, unknown) = (ErrorCode::IllegalGeneration.code(), ErrorCode::UnknownMemberId.code());
        assert_eq!(member.committed(topic).await, self.offset);
        assert_eq!(member.commit(generation - 1, topic, 1_000).await, illegal);
        assert_eq!(member.commit(generation + 1, topic, 1_000).await, illegal);
        assert_eq!(member.commit_as(&"nobody".into(), generation, topic, 1_000).await, unknown);
        assert_eq!(member.commit_as(&"".into(), -1, topic, 1_000).await, unknown);
        assert_eq!(member.committed(topic).await, self.offset, "a refused commit changes nothing");
        assert_eq!(member.commit(generation, topic, self.offset).await, 0, "it is still a member");
    }
}

/// Waits until the group is stable, every member is in it, every partition has an owner, and all that is written by then is committed: a
/// group that looks whole since nobody has been missed yet does not do.
async fn settled(node: &Node, team: &mut Team, writer: &Writer, within: Duration) {
    team.all_live();
    let (members, began) = (team.len(), Instant::now());
    until_described(node.kafka(), &team.group, within, |group| {
        let shares = group["members"].as_array()?;
        let all: u64 = shares.iter().filter_map(|member| member["partitions"].as_u64()).sum();
        let whole = all == u64::try_from(PARTITIONS).unwrap();
        (group["state"] == "Stable" && shares.len() == members && whole).then_some(())
    })
    .await;
    let ends = writer.ends();
    let left = within.saturating_sub(began.elapsed());
    until_described(node.kafka(), &team.group, left, |group| {
        let lines = group["partitions"].as_array()?;
        let goes_on = |(line, end): (&serde_json::Value, &usize)| {
            line["committed"].as_u64().is_some_and(|committed| committed >= *end as u64)
        };
        (lines.len() == ends.len() && lines.iter().zip(&ends).all(goes_on)).then_some(())
    })
    .await;
}

/// What befalls the members while the node dies: how much longer than the node's start the group may need for it.
async fn disturb(team: &mut Team, node: &mut Node, round: u32) -> (Instant, Duration) {
    let mut longer = Duration::ZERO;
    match round % 5 {
        1 => {
            let instance = team.kill_first().await;
            // Under the same instance id it takes its place over; without one its session must end.
            longer = if instance.is_some() { Duration::ZERO } else { SESSION };
            node.crash_and_restart().await.unwrap();
            team.join_as(instance);
        }
        2 => {
            team.pause_first();
            // Longer than its session, which the other members notice before the node dies.
            tokio::time::sleep(SESSION + Duration::from_secs(2)).await;
            node.crash_and_restart().await.unwrap();
            team.resume_first();
        }
        3 => {
            node.crash_and_restart().await.unwrap();
            team.join();
        }
        4 => {
            // It stands still when the node comes back, and goes on when its session there has ended.
            team.pause_first();
            node.crash_and_restart().await.unwrap();
            let ready = Instant::now();
            tokio::time::sleep(SESSION + Duration::from_secs(2)).await;
            team.resume_first();
            return (ready, SESSION + Duration::from_secs(2));
        }
        _ => {
            if team.dismiss_first(STOP_WITHIN).await.is_some() {
                // Who goes by an instance id does not say that it leaves.
                longer = SESSION;
            }
            node.crash_and_restart().await.unwrap();
        }
    }
    (Instant::now(), longer)
}

async fn chaos(name: &'static str, cooperative: bool) {
    if !available(name).await {
        return;
    }
    let folder = Folder::new();
    let mut node = node(&folder).start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let mut team = Team::new(&folder, &kafka, name, PARTITIONS).await;
    if cooperative {
        team = team.cooperative();
    }
    let mut late = Late::new(&kafka, &team).await;
    let writer = Writer::start(&kafka, &team.topic);
    team.join_as(Some("keeps-its-place".into()));
    (1..MEMBERS).for_each(|_| team.join());
    settled(&node, &mut team, &writer, JOINS_WITHIN).await;
    let rounds = setup::rounds(if setup::is_long() { 20 } else { 3 });
    for round in 1..=rounds {
        late.two_generations().await;
        let (ready, longer) = disturb(&mut team, &mut node, round).await;
        settled(&node, &mut team, &writer, SETTLES_WITHIN + longer).await;
        println!("{name}: round {round} settled {:?} after the node was ready", ready.elapsed());
        late.member.reconnect(&kafka).await;
        late.too_late().await;
        team.nothing_passed_over().await;
        team.rotate();
    }
    let ends = writer.finish().await;
    println!("{name}: {} records", ends.iter().sum::<usize>());
    team.wrote(ends);
    team.all_read(READ_WITHIN).await;
    until_described(&kafka, &team.group, READ_WITHIN, Team::lag_0(PARTITIONS)).await;
    team.leave(STOP_WITHIN).await;
    node.stop(STOP_WITHIN).await.unwrap();
}

#[tokio::test]
async fn i18_k_22_k_23_chaos_under_a_group_of_confluent_kafka_that_cooperates() {
    chaos("confluent", true).await;
}

#[tokio::test]
async fn i18_k_22_k_23_chaos_under_an_eager_group_of_confluent_kafka() {
    chaos("confluent", false).await;
}

#[tokio::test]
async fn i18_k_22_k_23_chaos_under_an_eager_group_of_kafka_python() {
    chaos("kafka_python", false).await;
}
