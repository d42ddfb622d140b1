//! Consumer groups with real clients: members share partitions, go, die and come back, and the node is killed meanwhile; no record is passed
//! over (I18), and `mink group` tells how it stands.

mod chaos;
mod crowd;
mod raw;
mod team;

use std::time::Duration;

use bytes::Bytes;
use mink_testkit::node::{Node, NodeConfig};
use mink_testkit::{client, skip};
use serde_json::Value;

use crate::setup::{self, Folder};
use crate::wire::Wire;
use raw::RawMember;
use team::{Team, mink, until_described};

const PARTITIONS: i32 = 4;
const RECORDS: usize = 500;
/// From a node's ready line to a stable group (issue: "settles within 10 s of the node being ready").
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// The first join, with the start of the client's process.
const JOINS_WITHIN: Duration = Duration::from_mins(1);
const READ_WITHIN: Duration = Duration::from_mins(1);
const SESSION: Duration = Duration::from_secs(6);
const STOP_WITHIN: Duration = Duration::from_secs(30);
const ROUNDS: u32 = 3;

fn node(folder: &Folder) -> NodeConfig {
    setup::node(folder).flag("--kafka-rebalance-delay", "0s")
}

async fn available(name: &str) -> bool {
    let installed =
        if name == "kcat" { client::install("kcat").await } else { client::install("group_member").await };
    skip::available(name, installed).is_some()
}

/// A group of two that has joined and has read the first records.
async fn begun(folder: &Folder, node: &Node, name: &'static str) -> Team {
    let mut team = Team::new(folder, node.kafka(), name, PARTITIONS).await;
    team.produce(RECORDS).await;
    team.join();
    team.join();
    until_described(node.kafka(), &team.group, JOINS_WITHIN, |group| {
        let members = group["members"].as_array()?;
        let shares: Vec<_> = members.iter().map(|member| member["partitions"].as_u64()).collect();
        (group["state"] == "Stable" && shares == [Some(2), Some(2)]).then_some(())
    })
    .await;
    team.all_read(READ_WITHIN).await;
    team
}

/// Two members share four partitions; offsets outlive them, and whoever comes later goes on where they ended.
async fn shares_and_goes_on(name: &'static str) {
    if !available(name).await {
        return;
    }
    let folder = Folder::new();
    let mut node = node(&folder).start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let mut team = begun(&folder, &node, name).await;
    team.produce(RECORDS).await;
    team.all_read(READ_WITHIN).await;
    until_described(&kafka, &team.group, READ_WITHIN, Team::lag_0(PARTITIONS)).await;
    // What has members is neither moved nor deleted.
    for words in [
        &["reset-offsets", &team.group, "--topic", &team.topic, "--to", "earliest"][..],
        &["delete", &team.group],
    ] {
        let (code, _, complaint) = mink(&kafka, words).await;
        assert!(code == Some(1) && complaint.contains("stop its consumers"), "{complaint}");
    }

    team.leave(STOP_WITHIN).await;
    until_described(&kafka, &team.group, STOP_WITHIN, |group| (group["state"] == "Empty").then_some(()))
        .await;
    let read_before = team.reads();
    team.produce(RECORDS).await;
    team.join();
    team.all_read(READ_WITHIN).await;
    let read = team.reads() - read_before;
    let produced = RECORDS * usize::try_from(PARTITIONS).unwrap();
    assert_eq!(read, produced, "a group that ended in order reads nothing again");
    team.leave(STOP_WITHIN).await;

    // By its table, as `mink read` names it.
    let table = format!("kafka.{}", team.topic);
    let reset = ["reset-offsets", &team.group, "--topic", &table, "--to", "0", "--output", "json"];
    let (code, rows, complaint) = mink(&kafka, &[&reset[..], &["--dry-run"]].concat()).await;
    assert_eq!((code, rows.lines().count()), (Some(0), 4), "{complaint}");
    until_described(&kafka, &team.group, STOP_WITHIN, Team::lag_0(PARTITIONS)).await;
    let (code, _, complaint) = mink(&kafka, &reset).await;
    assert_eq!(code, Some(0), "{complaint}");
    until_described(&kafka, &team.group, STOP_WITHIN, |group| {
        group["partitions"].as_array()?.iter().all(|one| one["committed"] == 0).then_some(())
    })
    .await;
    let (code, list, _) = mink(&kafka, &["list", "--output", "csv"]).await;
    assert!(code == Some(0) && list.contains(&team.group), "{list}");
    let (code, _, complaint) = mink(&kafka, &["delete", &team.group]).await;
    assert_eq!(code, Some(0), "{complaint}");
    let (code, _, complaint) = mink(&kafka, &["describe", &team.group]).await;
    assert!(code == Some(1) && complaint.contains("there is no group"), "{complaint}");
    node.stop(STOP_WITHIN).await.unwrap();
}

#[tokio::test]
async fn confluent_kafka_members_share_partitions_and_go_on_where_they_ended() {
    shares_and_goes_on("confluent").await;
}

#[tokio::test]
async fn kafka_python_members_share_partitions_and_go_on_where_they_ended() {
    shares_and_goes_on("kafka_python").await;
}

#[tokio::test]
async fn kcat_members_share_partitions_and_go_on_where_they_ended() {
    shares_and_goes_on("kcat").await;
}

/// I18: the node is killed again and again under a group that reads: it settles soon, passes over nothing, and what was committed stays.
async fn survives_kill_9(name: &'static str) {
    if !available(name).await {
        return;
    }
    let folder = Folder::new();
    let mut node = node(&folder).start_on_fixed_ports().await.unwrap();
    let mut team = begun(&folder, &node, name).await;
    for round in 1..=setup::rounds(ROUNDS) {
        team.produce(RECORDS).await;
        // Sometimes before anything is read, sometimes behind it.
        if round % 2 == 0 {
            team.all_read(READ_WITHIN).await;
        }
        let before = team.committed().await;
        node.crash_and_restart().await.unwrap();
        let kafka = node.kafka().to_owned();
        let settled = until_described(&kafka, &team.group, SETTLES_WITHIN, |group| {
            let members = group["members"].as_array()?.len();
            (group["state"] == "Stable" && members == 2).then(|| group.clone())
        });
        println!("round {round}: {}", settled.await["partitions"]);
        for (partition, offset) in team.committed().await {
            assert!(
                offset >= before[&partition],
                "partition {partition}: {offset} after {}",
                before[&partition]
            );
        }
        team.produce(RECORDS).await;
        team.all_read(READ_WITHIN).await;
    }
    until_described(node.kafka(), &team.group, READ_WITHIN, Team::lag_0(PARTITIONS)).await;
    team.leave(STOP_WITHIN).await;
    node.stop(STOP_WITHIN).await.unwrap();
}

#[tokio::test]
async fn i18_a_group_of_confluent_kafka_survives_kill_9_of_the_node() {
    survives_kill_9("confluent").await;
}

#[tokio::test]
async fn i18_a_group_of_kafka_python_survives_kill_9_of_the_node() {
    survives_kill_9("kafka_python").await;
}

/// A member that dies without a word is thrown out when its session ends, and the other goes on with its partitions.
#[tokio::test]
async fn a_member_that_dies_is_replaced_after_its_session() {
    if !available("confluent").await {
        return;
    }
    let folder = Folder::new();
    let mut node = node(&folder).start_on_fixed_ports().await.unwrap();
    let mut team = begun(&folder, &node, "confluent").await;
    assert_eq!(team.kill_first().await, None);
    team.produce(RECORDS).await;
    let within = SESSION + SETTLES_WITHIN;
    until_described(node.kafka(), &team.group, within, |group| {
        let members = group["members"].as_array()?;
        let alone = members.len() == 1 && members[0]["partitions"] == 4;
        (group["state"] == "Stable" && alone).then_some(())
    })
    .await;
    team.all_read(READ_WITHIN).await;
    until_described(node.kafka(), &team.group, READ_WITHIN, Team::lag_0(PARTITIONS)).await;
    team.leave(STOP_WITHIN).await;
    node.stop(STOP_WITHIN).await.unwrap();
}

/// What a leader assigns is bytes between it and its members: those that are no consumer's are members all the same.
#[tokio::test]
async fn members_with_an_assignment_of_their_own_kind_keep_their_offsets_and_are_described() {
    let folder = Folder::new();
    let mut node = node(&folder).start().await.unwrap();
    let kafka = node.kafka().to_owned();
    Wire::connect(&kafka).await.create_topic("t", 1).await;
    let mut member = RawMember::new(&kafka, "g").await;
    member.join(&Bytes::new()).await;
    assert!(member.sync(&Bytes::from_static(b"x")).await);
    assert_eq!(member.commit(member.generation, "t", 500).await, 0);
    let reset = ["reset-offsets", "g", "--topic", "t", "--to", "earliest"];
    for words in [&reset[..], &[&reset[..], &["--dry-run"]].concat(), &["delete", "g"]] {
        let (code, _, complaint) = mink(&kafka, words).await;
        let is_told = complaint.contains("has members") && complaint.contains("stop its consumers");
        assert!(code == Some(1) && is_told && !complaint.contains("Assignment"), "{complaint}");
    }
    assert_eq!(member.committed("t").await, 500);
    let (code, shown, complaint) = mink(&kafka, &["describe", "g"]).await;
    assert!(code == Some(0) && shown.contains("Stable, - members"), "{shown}{complaint}");
    assert!(complaint.contains("an assignment cannot be read"), "{complaint}");
    let (code, shown, _) = mink(&kafka, &["describe", "g", "--output", "json"]).await;
    let found: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &found["members"], &found["partitions"][0]["committed"]),
        (Some(0), &Value::Null, &500.into())
    );
    drop(member);
    node.stop(STOP_WITHIN).await.unwrap();
}
