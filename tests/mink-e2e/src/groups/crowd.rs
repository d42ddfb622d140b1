//! 200 groups whose members send heartbeats and commit, beside 1,000 connections that do nothing: what the node needs for them.
//!
//! A few seconds in CI, a minute with `MINK_E2E_LONG=1`; the figures are printed.

use std::time::Duration;

use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_testkit::http;
use mink_testkit::node::Node;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::raw::RawMember;
use super::{STOP_WITHIN, node};
use crate::setup::{self, Folder};
use crate::wire::Wire;

const GROUPS: usize = 200;
const IDLE: usize = 1_000;
const POLL: Duration = Duration::from_millis(100);
const BEATS_EACH: Duration = Duration::from_secs(3);
/// What the metadata of an ordinary member takes, and its assignment.
const METADATA_BYTES: usize = 400;
const TOPIC: &str = "crowded";
const MIB: u64 = 1 << 20;
/// What a process takes beside `--memory` at most.
const FIXED_BYTES: u64 = 64 * MIB;
const MEMORY_BYTES: u64 = 128 * MIB;

/// CPU time of a process in clock ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name may hold anything but a closing bracket behind the last one.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

/// A group of two that have their assignments.
async fn group(kafka: String, number: usize) -> Vec<RawMember> {
    let (metadata, name) = (Bytes::from(vec![0; METADATA_BYTES]), format!("crowd-{number}"));
    let mut first = RawMember::new(&kafka, &name).await;
    let mut second = RawMember::new(&kafka, &name).await;
    first.join(&metadata).await;
    assert!(first.sync(&metadata).await);
    let rejoins = async {
        while first.heartbeat().await != ErrorCode::RebalanceInProgress.code() {
            tokio::time::sleep(POLL).await;
        }
        first.join(&metadata).await;
    };
    tokio::join!(second.join(&metadata), rejoins);
    assert_eq!(first.generation, second.generation);
    assert_eq!(tokio::join!(first.sync(&metadata), second.sync(&metadata)), (true, true));
    vec![first, second]
}

/// Heartbeats of one group, and commits if asked for.
async fn beat(members: &mut [RawMember], rounds: u32, commits: bool) {
    for round in 0..rounds {
        let next = tokio::time::Instant::now() + BEATS_EACH;
        for member in &mut *members {
            assert_eq!(member.heartbeat().await, 0, "{}", member.group.as_str());
            if commits {
                let generation = member.generation;
                assert_eq!(member.commit(generation, TOPIC, i64::from(round)).await, 0);
            }
        }
        tokio::time::sleep_until(next).await;
    }
}

/// One phase: CPU seconds and requests per second of it.
async fn phase(
    node: &mut Node,
    groups: Vec<Vec<RawMember>>,
    rounds: u32,
    commits: bool,
) -> Vec<Vec<RawMember>> {
    let process = node.process().id();
    let (before, began) = (ticks(process), std::time::Instant::now());
    let mut tasks = JoinSet::new();
    for mut members in groups {
        tasks.spawn(async move {
            beat(&mut members, rounds, commits).await;
            members
        });
    }
    let groups = tasks.join_all().await;
    #[expect(clippy::cast_precision_loss, reason = "small numbers for people")]
    let cpu = (ticks(process) - before) as f64 / 100.0;
    println!(
        "{} groups of two, a heartbeat {}each {BEATS_EACH:?}, {IDLE} idle connections: {cpu:.2} CPU s in {:.0} s, RSS {} MiB",
        groups.len(),
        if commits { "and a commit " } else { "" },
        began.elapsed().as_secs_f64(),
        resident(process) / MIB
    );
    groups
}

#[tokio::test]
async fn i20_two_hundred_groups_fit_the_smallest_memory_beside_a_thousand_idle_connections() {
    let folder = Folder::new();
    let config = node(&folder).flag("--memory", "128MiB");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    Wire::connect(&kafka).await.create_topic(TOPIC, 1).await;
    let process = node.process().id();
    println!("RSS before: {} MiB", resident(process) / MIB);
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(&kafka).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for number in 0..GROUPS {
        tasks.spawn(group(kafka.clone(), number));
    }
    let groups = tasks.join_all().await;
    println!("RSS with all: {} MiB", resident(process) / MIB);
    let rounds = if setup::is_long() { 20 } else { 2 };
    let groups = phase(&mut node, groups, rounds, false).await;
    let groups = phase(&mut node, groups, rounds, true).await;
    assert!(resident(process) <= MEMORY_BYTES + FIXED_BYTES, "RSS {} MiB", resident(process) / MIB);
    let answer = http::get(node.http(), "/metrics").await.unwrap();
    for (metric, wanted) in [("mink_groups", "200"), ("mink_group_members", "400")] {
        assert_eq!(answer.metric_sum(metric).to_string(), wanted, "{metric}");
    }
    drop((groups, idle));
    node.stop(STOP_WITHIN).await.unwrap();
}
