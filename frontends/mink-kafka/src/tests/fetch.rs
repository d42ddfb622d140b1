//! Fetch: what is found, in which order, and how it waits.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, config, start, start_with};
use super::raw_client::{Client, batch, batch_of, fetch, visible};
use crate::AnswerPermits;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, ForgottenTopic};
use mink_record::kafka::Codec;
use mink_router::ReadError;
use mink_types::{BucketId, BucketIndex, ObjectId, Offset};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

fn values(response: &mink_kafka_wire::messages::fetch::FetchResponse, from: i64) -> Vec<String> {
    let records = response.responses[0].partitions[0].records.clone();
    let seen = visible(records.expect("never null").into_bytes(), from);
    seen.into_iter().map(|(_, value)| value).collect()
}

#[tokio::test]
async fn p_18_k_14_a_fetch_inside_a_batch_gets_the_whole_batch() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["a0", "a1"])).await;
    client.produce("t", 0, batch(&["b2", "b3"])).await;
    let at_1 = client.call(12, &fetch("t", &[(0, 1)])).await;
    assert_eq!(values(&at_1, 1), ["a1", "b2", "b3"]);
    let at_3 = client.call(12, &fetch("t", &[(0, 3)])).await;
    assert_eq!(values(&at_3, 3), ["b3"]);
    let at_4 = client.call(12, &fetch("t", &[(0, 4)])).await;
    assert_eq!(at_4.responses[0].partitions[0].error_code, 0);
    assert!(values(&at_4, 4).is_empty());
}

#[tokio::test]
async fn outside_of_the_log_is_out_of_range_without_positions() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for offset in [1, -1, i64::MAX] {
        let response = client.call(12, &fetch("t", &[(0, offset)])).await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, ErrorCode::OffsetOutOfRange.code());
        let positions = (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset);
        assert_eq!(positions, (-1, -1, -1));
    }
}

#[tokio::test(start_paused = true)]
async fn i20_a_fetch_that_waits_lets_go_of_a_frame_of_which_it_needs_little() {
    let config = config();
    let permits = config.request_permits.clone();
    let running = start_with(config).await;
    running.fake.topic("quiet", 1);
    let mut client = Client::connect(running.address).await;
    let forgotten = ForgottenTopic {
        topic: "other".into(),
        partitions: (0..100_000).collect(),
        ..ForgottenTopic::default()
    };
    let slow = FetchRequest {
        max_wait_ms: 60_000,
        forgotten_topics_data: vec![forgotten],
        ..fetch("quiet", &[(0, 0)])
    };
    client.send(12, 1, &slow).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    assert!(permits.held_bytes() < 8 << 10, "{} bytes", permits.held_bytes());
    let (correlation, answer) = client.receive::<FetchRequest>(12).await;
    assert_eq!((correlation, answer.responses[0].topic.as_str()), (1, "quiet"));
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_is_woken_by_the_append_and_does_not_poll() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut reader = Client::connect(running.address).await;
    let mut writer = Client::connect(running.address).await;
    let begun = Instant::now();
    let waiting = FetchRequest { max_wait_ms: 30_000, ..fetch("t", &[(0, 0)]) };
    reader.send(12, 1, &waiting).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(running.fake.reads.load(Ordering::SeqCst), 1);
    writer.produce("t", 0, batch(&["x"])).await;
    let (_, response) = reader.receive::<FetchRequest>(12).await;
    assert_eq!(values(&response, 0), ["x"]);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(running.fake.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_without_more_ends_empty_at_its_time() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["x"])).await;
    let begun = Instant::now();
    let enough = FetchRequest { max_wait_ms: 700, min_bytes: 1 << 20, ..fetch("t", &[(0, 0)]) };
    let response = client.call(12, &enough).await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_millis(900), "{took:?}");
    assert_eq!(values(&response, 0), ["x"], "what is there is sent all the same");
}

#[tokio::test(start_paused = true)]
async fn an_error_is_answered_at_once() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let begun = Instant::now();
    let waiting = |topic| FetchRequest { max_wait_ms: 30_000, ..fetch(topic, &[(0, 0)]) };
    let missing = client.call(12, &waiting("missing")).await;
    assert_eq!(missing.responses[0].partitions[0].error_code, ErrorCode::UnknownTopicOrPartition.code());
    let bucket = BucketId::unpartitioned(table, BucketIndex(0));
    let object = ObjectId::Wal {
        chain: mink_types::WalChain {
            node: mink_types::NodeId(1),
            incarnation: mink_types::Incarnation(1),
            tag: 1,
        },
        number: mink_types::WalNumber(3),
    };
    let errors = [
        (
            ReadError::Damaged { bucket, offset: Offset(0), object, what: "gone".into() },
            ErrorCode::CorruptMessage,
        ),
        (ReadError::StoreUnavailable { bucket, object, what: "503".into() }, ErrorCode::KafkaStorageError),
        (ReadError::LeaseExpired, ErrorCode::NotLeaderOrFollower),
        (ReadError::Opening { bucket }, ErrorCode::NotLeaderOrFollower),
    ];
    for (error, code) in errors {
        let refuse = Behaviour { refuse_reads: Some(error), ..Behaviour::default() };
        running.fake.behave(table, 0, refuse);
        let response = client.call(12, &waiting("t")).await;
        assert_eq!(response.responses[0].partitions[0].error_code, code.code());
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_ends_when_its_client_goes() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let waiting = FetchRequest { max_wait_ms: 200_000, ..fetch("t", &[(0, 0)]) };
    client.send(12, 1, &waiting).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    drop(client);
    running
        .fake
        .until(|fake| fake.watching.load(Ordering::SeqCst) == 0 && running.counters.open_connections() == 0)
        .await;
}

#[tokio::test]
async fn p_25_no_partition_starves_when_the_client_takes_turns() {
    const PARTITIONS: i32 = 64;
    let running = start().await;
    running.fake.topic("t", 64);
    let mut client = Client::connect(running.address).await;
    let value = vec![b'x'; 64 << 10];
    for partition in 0..PARTITIONS {
        for _ in 0..32 {
            let batch = batch_of([&value[..]].into_iter(), Codec::None);
            assert_eq!(client.produce("t", partition, batch).await.error_code, 0);
        }
    }
    let mut at = vec![0_i64; 64];
    let mut turn: VecDeque<i32> = (0..PARTITIONS).collect();
    for _ in 0..100 {
        let asked: Vec<(i32, i64)> =
            turn.iter().map(|p| (*p, at[usize::try_from(*p).expect("small")])).collect();
        let response = client.call(12, &FetchRequest { max_bytes: 1 << 20, ..fetch("t", &asked) }).await;
        let mut bytes = 0;
        for partition in &response.responses[0].partitions {
            let records = partition.records.clone().expect("never null").into_bytes();
            bytes += records.len();
            if let Some((last, _)) = visible(records, 0).last() {
                at[usize::try_from(partition.partition_index).expect("small")] = last + 1;
                // As clients do: who got something goes to the end.
                turn.retain(|p| *p != partition.partition_index);
                turn.push_back(partition.partition_index);
            }
        }
        assert!(bytes <= (1 << 20) + (66 << 10), "one batch for the request, not for each partition");
    }
    let (least, most) = (at.iter().min().expect("some"), at.iter().max().expect("some"));
    assert!(*least > 0 && least * 10 >= most * 8 - 150, "{at:?}");
}

#[tokio::test]
async fn read_committed_is_answered_with_everything_below_the_high_watermark() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["x"])).await;
    let request = FetchRequest { isolation_level: 1, ..fetch("t", &[(0, 0)]) };
    let response = client.call(11, &request).await;
    let partition = &response.responses[0].partitions[0];
    assert_eq!((partition.high_watermark, partition.last_stable_offset), (1, 1));
    assert_eq!(partition.aborted_transactions, Some(Vec::new()));
    assert_eq!(partition.preferred_read_replica, -1);
}

#[tokio::test]
async fn the_leader_epoch_that_a_client_believes_in_is_checked() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for (epoch, code) in [
        (0, ErrorCode::FencedLeaderEpoch),
        (1, ErrorCode::None),
        (2, ErrorCode::UnknownLeaderEpoch),
        (-1, ErrorCode::None),
    ] {
        let mut request = fetch("t", &[(0, 0)]);
        request.topics[0].partitions[0] =
            FetchPartition { current_leader_epoch: epoch, ..request.topics[0].partitions[0].clone() };
        let response = client.call(12, &request).await;
        assert_eq!(response.responses[0].partitions[0].error_code, code.code());
    }
}

#[tokio::test]
async fn i20_the_memory_of_answers_is_bounded_until_clients_take_them() {
    /// More of a client's answers than the system holds for a socket, each of a megabyte.
    const ASKED: i32 = 12;
    const CLIENTS: usize = 12;
    let mut config = config();
    config.answer_permits = AnswerPermits::new(8 << 20);
    let permits = config.answer_permits.clone();
    let running = start_with(config).await;
    let table = running.fake.topic("t", 1);
    let mut writer = Client::connect(running.address).await;
    let value = vec![b'x'; 1_000_000];
    for _ in 0..4 {
        let batch = batch_of([&value[..]].into_iter(), Codec::None);
        assert_eq!(writer.produce("t", 0, batch).await.error_code, 0);
    }
    // Clients that ask for everything and take nothing.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(running.address).await;
        let mut request = fetch("t", &[(0, 0)]);
        request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
        for correlation in 0..ASKED {
            client.send(12, correlation, &request).await;
        }
        clients.push(client);
    }
    let reads = || running.fake.reads.load(Ordering::SeqCst);
    // All of them are new, so one half is theirs, of which whoever does not take what it was sent leaves as much.
    running.fake.until(|_| permits.free_bytes() < 13 << 19).await;
    // Others are served meanwhile.
    assert_eq!(writer.produce("t", 0, batch(&["x"])).await.error_code, 0);
    let before = reads();
    // Two for each: the first finds that the batch is larger than what one answer may take.
    assert!(before < 2 * 12 * CLIENTS, "some wait for memory: {before}");
    let taking = clients.iter_mut().map(|client| async move {
        for _ in 0..ASKED {
            let (_, response) = client.receive::<FetchRequest>(12).await;
            assert!(!values(&response, 0).is_empty());
        }
    });
    futures::future::join_all(taking).await;
    running.fake.until(|_| permits.free_bytes() == permits.total_bytes()).await;
    assert_eq!(running.fake.end(table, 0).0, 5);
}

#[tokio::test]
async fn i20_clients_that_take_nothing_keep_nobody_waiting() {
    const STALLED: usize = 6;
    let mut config = config();
    config.answer_permits = AnswerPermits::new(8 << 20);
    let permits = config.answer_permits.clone();
    let running = start_with(config).await;
    running.fake.topic("t", 1);
    let mut writer = Client::connect(running.address).await;
    let value = vec![b'x'; 1_000_000];
    assert_eq!(writer.produce("t", 0, batch_of([&value[..]].into_iter(), Codec::None)).await.error_code, 0);
    assert!(!values(&writer.call(12, &fetch("t", &[(0, 0)])).await, 0).is_empty());
    let mut clients = Vec::new();
    for _ in 0..STALLED {
        let mut client = Client::connect(running.address).await;
        // More than the system's buffers take.
        for correlation in 0..40 {
            client.send(12, correlation, &fetch("t", &[(0, 0)])).await;
        }
        clients.push(client);
    }
    // All that new ones may take, of whom none takes what it was sent.
    running.fake.until(|_| permits.free_bytes() < 13 << 19).await;
    // Who has shown that he takes what he asks for does not wait at all, and another one not for long.
    assert!(!values(&writer.call(12, &fetch("t", &[(0, 0)])).await, 0).is_empty());
    let mut reader = Client::connect(running.address).await;
    reader.send(12, 1, &fetch("t", &[(0, 0)])).await;
    let (_, response) = reader.receive::<FetchRequest>(12).await;
    assert_eq!(values(&response, 0).len(), 1);
    assert!(!permits.is_short());
}
