//! Fetch sessions as clients see them: what is named again, what not, and how one goes wrong.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, Running, start};
use super::raw_client::{Client, batch, fetch};
use super::topic_ids::fetch_of;
use mink_kafka_wire::messages::fetch::{FetchRequest, FetchResponse, ForgottenTopic};
use mink_kafka_wire::{ErrorCode, Uuid};
use mink_router::ReadError;
use std::sync::atomic::Ordering;

/// What an answer names: partition, error, high watermark, whether there are records.
fn named(response: &FetchResponse) -> Vec<(i32, i16, i64, bool)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|partition| {
            let records = partition.records.as_ref().is_some_and(|records| !records.is_empty());
            (partition.partition_index, partition.error_code, partition.high_watermark, records)
        })
        .collect()
}

fn next(session_id: i32, session_epoch: i32) -> FetchRequest {
    FetchRequest { session_id, session_epoch, topics: Vec::new(), ..fetch("t", &[]) }
}

/// Begins a session on three empty partitions.
async fn begin(client: &mut Client, version: i16) -> i32 {
    let all = fetch("t", &[(0, 0), (1, 0), (2, 0)]);
    let begun = client.call(version, &FetchRequest { session_epoch: 0, ..all }).await;
    assert_eq!(named(&begun), [(0, 0, 0, false), (1, 0, 0, false), (2, 0, 0, false)]);
    assert!(begun.session_id > 0);
    begun.session_id
}

async fn with_topic() -> (Running, Client) {
    let running = start().await;
    running.fake.topic("t", 3);
    let client = Client::connect(running.address).await;
    (running, client)
}

#[tokio::test]
async fn an_incremental_answer_names_what_has_changed_and_nothing_else() {
    let (running, mut client) = with_topic().await;
    let id = begin(&mut client, 12).await;
    let same = client.call(12, &next(id, 1)).await;
    assert_eq!((named(&same), same.session_id), (vec![], id));
    client.produce("t", 1, batch(&["x"])).await;
    let grown = client.call(12, &next(id, 2)).await;
    assert_eq!(named(&grown), [(1, 0, 1, true)]);
    let again = client.call(12, &next(id, 3)).await;
    assert_eq!(named(&again), [(1, 0, 1, true)], "the client has not moved on");
    let moved = FetchRequest { topics: fetch("t", &[(1, 1)]).topics, ..next(id, 4) };
    assert_eq!(named(&client.call(12, &moved).await), []);
    // A client that connects anew goes on with its session.
    let mut other = Client::connect(running.address).await;
    assert_eq!(named(&other.call(12, &next(id, 5)).await), []);
}

#[tokio::test]
async fn who_got_records_comes_last_the_next_time() {
    let (_running, mut client) = with_topic().await;
    let id = begin(&mut client, 12).await;
    client.produce("t", 0, batch(&["x"])).await;
    client.produce("t", 2, batch(&["x"])).await;
    let first = client.call(12, &next(id, 1)).await;
    assert_eq!(named(&first), [(0, 0, 1, true), (2, 0, 1, true)]);
    client.produce("t", 1, batch(&["x"])).await;
    let second = client.call(12, &next(id, 2)).await;
    assert_eq!(named(&second), [(1, 0, 1, true), (0, 0, 1, true), (2, 0, 1, true)]);
}

#[tokio::test]
async fn an_error_is_told_until_it_is_over_and_its_end_is_told_too() {
    let (running, mut client) = with_topic().await;
    let table = running.fake.topic("u", 1);
    let all = FetchRequest { session_epoch: 0, ..fetch("u", &[(0, 0), (9, 0)]) };
    let begun = client.call(12, &all).await;
    let unknown = (9, ErrorCode::UnknownTopicOrPartition.code(), -1, false);
    assert_eq!(named(&begun), [(0, 0, 0, false), unknown]);
    let refuse = Behaviour { refuse_reads: Some(ReadError::LeaseExpired), ..Behaviour::default() };
    running.fake.behave(table, 0, refuse);
    let moved = (0, ErrorCode::NotLeaderOrFollower.code(), -1, false);
    for epoch in 1..=2 {
        assert_eq!(named(&client.call(12, &next(begun.session_id, epoch)).await), [moved, unknown]);
    }
    running.fake.behave(table, 0, Behaviour::default());
    let over = client.call(12, &next(begun.session_id, 3)).await;
    assert_eq!(named(&over), [(0, 0, 0, false), unknown]);
    assert_eq!(named(&client.call(12, &next(begun.session_id, 4)).await), [unknown]);
}

#[tokio::test]
async fn forgotten_partitions_are_not_read_and_a_session_without_any_ends() {
    let (running, mut client) = with_topic().await;
    let id = begin(&mut client, 12).await;
    client.produce("t", 1, batch(&["x"])).await;
    let forget = |partitions: &[i32], epoch| FetchRequest {
        forgotten_topics_data: vec![ForgottenTopic {
            topic: "t".into(),
            partitions: partitions.to_vec(),
            ..ForgottenTopic::default()
        }],
        ..next(id, epoch)
    };
    assert_eq!(named(&client.call(12, &forget(&[1, 7], 1)).await), []);
    let ended = client.call(12, &forget(&[0, 2], 2)).await;
    assert_eq!((named(&ended), ended.error_code, ended.session_id), (vec![], 0, 0));
    let gone = client.call(12, &next(id, 3)).await;
    assert_eq!(gone.error_code, ErrorCode::FetchSessionIdNotFound.code());
    let sessions =
        running.counters.metrics().into_iter().find(|metric| metric.name == "mink_kafka_fetch_sessions");
    assert_eq!(sessions.expect("shown").value, mink_api::MetricValue::Gauge(0.0));
}

#[tokio::test]
async fn a_session_that_is_not_there_and_an_epoch_that_is_not_due_are_refused_as_a_whole() {
    let (_running, mut client) = with_topic().await;
    for version in 7..=12 {
        let id = begin(&mut client, version).await;
        for (session, epoch, code) in [
            (id, 2, ErrorCode::InvalidFetchSessionEpoch),
            (id, -5, ErrorCode::InvalidFetchSessionEpoch),
            (id.wrapping_add(1), 1, ErrorCode::FetchSessionIdNotFound),
            (0, 1, ErrorCode::FetchSessionIdNotFound),
            (0, i32::MIN, ErrorCode::FetchSessionIdNotFound),
        ] {
            let refused = client.call(version, &next(session, epoch)).await;
            assert_eq!((refused.error_code, refused.session_id), (code.code(), 0), "{session} {epoch}");
            assert!(refused.responses.is_empty());
        }
        // The session is as it was.
        assert_eq!(client.call(version, &next(id, 1)).await.error_code, 0);
        // A request for all that ends the session is answered without one.
        let last = FetchRequest { session_id: id, session_epoch: -1, ..fetch("t", &[(2, 0)]) };
        let ended = client.call(version, &last).await;
        assert_eq!((named(&ended), ended.session_id), (vec![(2, 0, 0, false)], 0));
        let gone = client.call(version, &next(id, 2)).await;
        assert_eq!(gone.error_code, ErrorCode::FetchSessionIdNotFound.code());
    }
}

#[tokio::test]
async fn a_new_session_takes_the_place_of_the_one_it_names() {
    let (_running, mut client) = with_topic().await;
    let id = begin(&mut client, 12).await;
    let anew = FetchRequest { session_id: id, session_epoch: 0, ..fetch("t", &[(1, 0)]) };
    let begun = client.call(12, &anew).await;
    assert!(begun.session_id > 0 && begun.session_id != id);
    assert_eq!(client.call(12, &next(id, 1)).await.error_code, ErrorCode::FetchSessionIdNotFound.code());
    assert_eq!(client.call(12, &next(begun.session_id, 1)).await.error_code, 0);
}

#[tokio::test]
async fn a_session_keeps_to_names_or_to_ids() {
    let (_running, mut client) = with_topic().await;
    let by_name = begin(&mut client, 12).await;
    let mixed = client.call(13, &next(by_name, 1)).await;
    assert_eq!(mixed.error_code, ErrorCode::FetchSessionTopicIdError.code());
    assert_eq!(client.call(12, &next(by_name, 1)).await.error_code, 0, "it goes on");
    let unknown = Uuid([3; 16]);
    let begun = client.call(13, &FetchRequest { session_epoch: 0, ..fetch_of(unknown, &[(0, 0)]) }).await;
    let named = &begun.responses[0];
    assert_eq!((named.topic_id, named.partitions[0].error_code), (unknown, ErrorCode::UnknownTopicId.code()));
    let mixed = client.call(12, &next(begun.session_id, 1)).await;
    assert_eq!(mixed.error_code, ErrorCode::FetchSessionTopicIdError.code());
    let again = client.call(13, &next(begun.session_id, 1)).await;
    assert_eq!(again.responses[0].partitions[0].error_code, ErrorCode::UnknownTopicId.code());
}

#[tokio::test(start_paused = true)]
async fn an_incremental_long_poll_waits_for_records_of_any_of_its_partitions() {
    let (running, mut client) = with_topic().await;
    let id = begin(&mut client, 12).await;
    client.send(12, 5, &FetchRequest { max_wait_ms: 30_000, ..next(id, 1) }).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    let mut writer = Client::connect(running.address).await;
    writer.produce("t", 2, batch(&["x"])).await;
    let (_, answer) = client.receive::<FetchRequest>(12).await;
    assert_eq!(named(&answer), [(2, 0, 1, true)]);
}

#[tokio::test]
async fn a_broker_that_fetches_is_refused_whichever_way_it_says_so() {
    let (_running, mut client) = with_topic().await;
    let old = FetchRequest { replica_id: 3, ..fetch("t", &[(0, 0)]) };
    for version in 7..=14 {
        assert_eq!(client.call(version, &old).await.error_code, ErrorCode::InvalidRequest.code());
    }
    let mut new = fetch("t", &[(0, 0)]);
    new.replica_state.replica_id = 3;
    for version in 15..=18 {
        assert_eq!(client.call(version, &new).await.error_code, ErrorCode::InvalidRequest.code());
    }
}
