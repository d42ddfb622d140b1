//! Members that wait for others, on connections that go on, end or drain.
//!
//! Lives on: tests only.
use super::super::fake::{Running, config, start_with};
use super::super::raw_client::Client;
use super::{commit, fetch, heartbeat, join, joined, offsets, sync, with_topic};
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use mink_kafka_wire::messages::leave_group::LeaveGroupRequest;
use mink_kafka_wire::messages::offset_commit::OffsetCommitRequest;
use mink_kafka_wire::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use std::time::Duration;

/// A stable group of one, and a second client whose join waits for the first to come again.
async fn one_waits(running: &Running, client: &mut Client) -> (JoinGroupResponse, Client) {
    let first = joined(client, 9, "g").await;
    client.call(5, &sync(5, "g", &first)).await;
    let mut second = Client::connect(running.address).await;
    let told = second.call(9, &join("g", &KafkaString::default())).await;
    second.send(9, 5, &join("g", &told.member_id)).await;
    running.fake.until(|fake| fake.groups.waiting() == 1).await;
    (first, second)
}

#[tokio::test]
async fn k_13_a_join_that_waits_holds_no_memory_and_answers_before_what_is_behind_it() {
    let config = config();
    let permits = config.request_permits.clone();
    let running = start_with(config).await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let (first, mut second) = one_waits(&running, &mut client).await;
    // The bytes of the request were given back.
    running.fake.until(|_| permits.free_bytes() == permits.total_bytes()).await;
    second.send(3, 6, &ApiVersionsRequest::default()).await;
    let told = client.call(4, &heartbeat("g", &first)).await;
    assert_eq!(told.error_code, ErrorCode::RebalanceInProgress.code());
    let again = client.call(9, &join("g", &first.member_id)).await;
    assert_eq!((again.generation_id, again.members.len()), (2, 2));
    let (correlation, other) = second.receive::<JoinGroupRequest>(9).await;
    assert_eq!((correlation, other.error_code, other.generation_id, other.members.len()), (5, 0, 2, 0));
    assert_eq!(other.leader, again.member_id);
    assert_eq!(second.receive::<ApiVersionsRequest>(3).await.0, 6);
    // A follower's sync waits for the leader's.
    second.send(5, 7, &sync(5, "g", &other)).await;
    running.fake.until(|fake| fake.groups.waiting() == 1).await;
    assert_eq!(client.call(5, &sync(5, "g", &again)).await.error_code, 0);
    let (_, synced) = second.receive::<mink_kafka_wire::messages::sync_group::SyncGroupRequest>(5).await;
    assert_eq!((synced.error_code, synced.assignment.len()), (0, 0));
}

#[tokio::test]
async fn a_client_that_hangs_up_gives_its_wait_up() {
    let (running, mut client, _) = with_topic(1).await;
    let (_, second) = one_waits(&running, &mut client).await;
    assert_eq!(running.fake.groups.given_up(), 0);
    drop(second);
    running.fake.until(|fake| fake.groups.given_up() == 1).await;
}

#[tokio::test]
async fn a_listener_that_stops_sends_waiting_members_to_another_coordinator() {
    let (mut running, mut client, _) = with_topic(1).await;
    let (_, mut second) = one_waits(&running, &mut client).await;
    running.stop();
    let (_, answer) = second.receive::<JoinGroupRequest>(9).await;
    assert_eq!(answer.error_code, ErrorCode::NotCoordinator.code());
    assert!(!answer.member_id.is_empty(), "it keeps its id");
    second.assert_closed().await;
    tokio::time::timeout(Duration::from_secs(10), &mut running.server).await.expect("in time").expect("ends");
}

/// What a client asks in order happens in order; so a fetch behind a commit sees it.
#[tokio::test(start_paused = true)]
async fn a_fetch_behind_a_commit_on_its_connection_sees_it() {
    let (running, mut client, _) = with_topic(1).await;
    running.fake.groups.hold_appends(true);
    let nobody = KafkaString::default();
    client.send(9, 1, &commit("g", (&nobody, -1), ("t", Uuid::ZERO), (0, 5))).await;
    let group =
        OffsetFetchRequestGroup { group_id: "g".into(), topics: None, ..OffsetFetchRequestGroup::default() };
    client.send(9, 2, &OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() }).await;
    running.fake.until(|fake| fake.groups.waiting() == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.fake.groups.hold_appends(false);
    let (_, committed) = client.receive::<OffsetCommitRequest>(9).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    let (_, fetched) = client.receive::<OffsetFetchRequest>(9).await;
    assert_eq!(offsets(&fetched.groups[0].topics[0].partitions), [(0, 5, 0)]);
}

/// Otherwise a store that is away for as long as a session would throw every member out.
#[tokio::test(start_paused = true)]
async fn signs_of_life_pass_a_commit_that_the_log_keeps_waiting() {
    let (running, mut client, _) = with_topic(1).await;
    let member = joined(&mut client, 9, "g").await;
    client.call(5, &sync(5, "g", &member)).await;
    running.fake.groups.hold_appends(true);
    client.send(9, 1, &commit("g", (&member.member_id, 1), ("t", Uuid::ZERO), (0, 5))).await;
    for correlation in 2..=5 {
        client.send(4, correlation, &heartbeat("g", &member)).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    running.fake.groups.hold_appends(false);
    let (_, committed) = client.receive::<OffsetCommitRequest>(9).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    for correlation in 2..=5 {
        let (answered, beat) = client.receive::<HeartbeatRequest>(4).await;
        assert_eq!((answered, beat.error_code), (correlation, 0), "the session of 10 s has not ended");
    }
    let found = fetch(&mut client, 9, "g", None).await;
    assert_eq!(offsets(&found[0].1), [(0, 5, 0)]);
    let gone = LeaveGroupRequest { group_id: "g".into(), member_id: member.member_id, members: Vec::new() };
    assert_eq!(client.call(2, &gone).await.error_code, 0);
}

#[tokio::test]
async fn i20_nothing_is_read_behind_a_member_that_waits() {
    let mut config = config();
    config.limits.requests_in_flight_max = 2;
    let running = start_with(config).await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let (_, mut second) = one_waits(&running, &mut client).await;
    let third = second.stream.local_addr().expect("open");
    // Version 3: no round for an id.
    for correlation in 10..20 {
        second.send(3, correlation, &join("g", &KafkaString::default())).await;
    }
    // The other connection is served; what it sees was there before, so nothing more was read meanwhile.
    client.call(3, &ApiVersionsRequest::default()).await;
    assert_eq!(running.fake.groups.waiting(), 1, "{third}");
}
