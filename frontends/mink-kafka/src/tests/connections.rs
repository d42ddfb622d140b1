//! Connections: frames, deadlines, limits, ends.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, config, start, start_with};
use super::raw_client::{Client, batch, fetch, frame, produce};
use crate::FramePermits;
use crate::counters::Closed;
use bytes::{BufMut, BytesMut};
use mink_api::MetricValue;
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::fetch::FetchRequest;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::produce::ProduceRequest;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn k_30_a_length_below_0_or_above_the_limit_closes_at_once() {
    let running = start().await;
    for length in [-1, i32::MAX, (100 << 20) + 1, i32::MIN] {
        let mut client = Client::connect(running.address).await;
        client.send_bytes(&length.to_be_bytes()).await;
        client.assert_closed().await;
    }
    assert_eq!(running.counters.closed_count(Closed::FrameLength), 4);
}

#[tokio::test]
async fn who_speaks_tls_or_http_is_counted_as_such() {
    let running = start().await;
    for begin in [&b"\x16\x03\x01\x02\x00\x01"[..], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut client = Client::connect(running.address).await;
        client.send_bytes(begin).await;
        client.assert_closed().await;
    }
    assert_eq!(running.counters.closed_count(Closed::OtherProtocol), 2);
}

#[tokio::test(start_paused = true)]
async fn k_30_a_large_frame_of_which_ten_bytes_come_holds_nothing_and_ends_by_its_deadline() {
    let config = config();
    let permits = config.large_request_permits.clone();
    let running = start_with(config).await;
    let mut client = Client::connect(running.address).await;
    let begun = Instant::now();
    client.send_bytes(&begin_of_large_frame(6)).await;
    let mut other = Client::connect(running.address).await;
    other.call(3, &ApiVersionsRequest::default()).await;
    running.fake.until_within(1_000, |_| begun.elapsed() > Duration::from_millis(500)).await;
    assert_eq!(permits.free_bytes(), permits.total_bytes());
    client.assert_closed().await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(31), "{took:?}");
    assert_eq!(running.counters.closed_count(Closed::FrameDeadline), 1);
}

/// A Produce of 100 MiB: its length, its key and version, and so many bytes more.
fn begin_of_large_frame(bytes: usize) -> BytesMut {
    let mut part = BytesMut::new();
    part.put_i32(100 << 20);
    part.put_slice(&[0, 0, 0, 9]);
    part.put_bytes(0, bytes);
    part
}

#[tokio::test(start_paused = true)]
async fn i20_a_stalled_frame_goes_soon_when_others_wait_for_its_memory() {
    let mut config = config();
    config.large_request_permits = FramePermits::large(100 << 20, 100 << 20);
    let permits = config.large_request_permits.clone();
    let running = start_with(config).await;
    let mut first = Client::connect(running.address).await;
    first.send_bytes(&begin_of_large_frame(10_000)).await;
    running.fake.until(|_| permits.free_bytes() < 1 << 20).await;
    let mut second = Client::connect(running.address).await;
    let begun = Instant::now();
    second.send_bytes(&begin_of_large_frame(10_000)).await;
    first.assert_closed().await;
    let took = begun.elapsed();
    assert!(took <= Duration::from_millis(1_100), "{took:?}");
    assert_eq!(running.counters.closed_count(Closed::FrameDeadline), 1);
}

#[tokio::test(start_paused = true)]
async fn t_8_i20_frames_that_came_in_part_keep_none_waiting_that_is_there() {
    const PARTS: usize = 40;
    let mut config = config();
    config.request_permits = FramePermits::ordinary(4 << 20);
    let permits = config.request_permits.clone();
    let running = start_with(config).await;
    running.fake.topic("t", 1);
    // A third of a frame, whose client sends no more.
    let mut part = BytesMut::new();
    part.put_i32(1 << 20);
    part.put_slice(&[0, 0, 0, 9]);
    part.put_bytes(0, 340_000);
    let mut stalled = Vec::new();
    for _ in 0..PARTS {
        let client = Client::connect(running.address).await;
        client.stream.try_write(&part).expect("the system takes some of it");
        stalled.push(client);
    }
    running.fake.until(|_| permits.is_short()).await;
    let begun = Instant::now();
    let mut good = Client::connect(running.address).await;
    let value = "v".repeat(20_000);
    for _ in 0..10 {
        assert_eq!(good.produce("t", 0, batch(&[&value])).await.error_code, 0);
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    // They go one after the other, as each gets its memory and does not use it.
    let gone = |_: &_| running.counters.closed_count(Closed::FrameDeadline) == PARTS as u64;
    running.fake.until_within(60_000, gone).await;
    running.fake.until(|_| permits.held_bytes() < 64 << 10).await;
}

#[tokio::test(start_paused = true)]
async fn k_30_a_large_frame_that_stops_coming_is_closed_and_keeps_nobody_out() {
    let mut config = config();
    config.large_request_permits = FramePermits::large(100 << 20, 100 << 20);
    let permits = config.large_request_permits.clone();
    let running = start_with(config).await;
    let mut client = Client::connect(running.address).await;
    let begun = Instant::now();
    client.send_bytes(&begin_of_large_frame(10_000)).await;
    running.fake.until(|_| permits.free_bytes() < 1 << 20).await;
    let mut other = Client::connect(running.address).await;
    other.call(3, &ApiVersionsRequest::default()).await;
    client.assert_closed().await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(running.counters.closed_count(Closed::FrameDeadline), 1);
    running.fake.until(|_| permits.free_bytes() == permits.total_bytes()).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_take_its_answer_is_closed() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let value = "x".repeat(1_000_000);
    assert_eq!(client.produce("t", 0, batch(&[&value])).await.error_code, 0);
    // More than sockets buffer.
    for correlation in 0..30 {
        client.send(12, correlation, &fetch("t", &[(0, 0)])).await;
    }
    running.fake.until_within(60_000, |_| running.counters.open_connections() == 0).await;
    assert_eq!(running.counters.closed_count(Closed::WriteDeadline), 1);
}

#[tokio::test]
async fn only_a_produce_may_be_large() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let mut part = BytesMut::new();
    part.put_i32(5 << 20);
    part.put_slice(&[0, 3, 0, 9]);
    client.send_bytes(&part).await;
    client.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::FrameLength), 1, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_comes_a_byte_at_a_time_is_closed_by_its_deadline() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let whole = frame(3, 1, &ApiVersionsRequest::default());
    let mut closed = false;
    for byte in whole.chunks(1).cycle().take(100) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        if running.counters.closed_count(Closed::FrameDeadline) == 1 {
            closed = true;
            break;
        }
        client.send_bytes(byte).await;
    }
    assert!(whole.len() > 16, "a whole frame takes longer than its deadline");
    assert!(closed, "still open");
}

#[tokio::test(start_paused = true)]
async fn a_frame_in_pieces_is_put_together() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let two: Vec<u8> =
        [frame(9, 1, &produce("t", 0, batch(&["x"]), -1)), frame(9, 2, &produce("t", 0, batch(&["y"]), -1))]
            .concat();
    for piece in two.chunks(7) {
        client.send_bytes(piece).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(client.receive::<ProduceRequest>(9).await.0, 1);
    assert_eq!(client.receive::<ProduceRequest>(9).await.0, 2);
    assert_eq!(running.fake.end(table, 0), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_and_a_waiting_one_is_not() {
    let mut config = config();
    config.limits.idle_deadline_ms = 10_000;
    let running = start_with(config).await;
    running.fake.topic("quiet", 1);
    let mut silent = Client::connect(running.address).await;
    let mut waiting = Client::connect(running.address).await;
    let slow = FetchRequest { max_wait_ms: 60_000, ..fetch("quiet", &[(0, 0)]) };
    waiting.send(12, 1, &slow).await;
    silent.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::Idle), 1);
    assert_eq!(waiting.receive::<FetchRequest>(12).await.0, 1);
}

#[tokio::test]
async fn i20_connections_are_bounded_and_places_come_back() {
    let mut config = config();
    config.limits.connections_per_address_max = 2;
    let running = start_with(config).await;
    let mut first = Client::connect(running.address).await;
    let mut second = Client::connect(running.address).await;
    first.call(3, &ApiVersionsRequest::default()).await;
    second.call(3, &ApiVersionsRequest::default()).await;
    let mut third = Client::connect(running.address).await;
    third.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::ConnectionLimit), 1);
    drop(first);
    running.fake.until(|_| running.counters.open_connections() == 1).await;
    let mut fourth = Client::connect(running.address).await;
    fourth.call(3, &ApiVersionsRequest::default()).await;
}

#[tokio::test]
async fn i20_connections_that_come_too_fast_are_turned_away() {
    let mut config = config();
    config.limits.connections_per_address_per_second = 1;
    let running = start_with(config).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(running.address).await;
        client.call(3, &ApiVersionsRequest::default()).await;
        clients.push(client);
    }
    Client::connect(running.address).await.assert_closed().await;
    assert!(running.counters.closed_count(Closed::ConnectionRate) >= 1);
    clients[0].call(3, &ApiVersionsRequest::default()).await;
}

#[tokio::test(start_paused = true)]
async fn i20_the_connection_that_was_idle_for_the_longest_makes_room() {
    let mut config = config();
    config.limits.connections_max = 3;
    let running = start_with(config).await;
    running.fake.topic("quiet", 1);
    let mut waiting = Client::connect(running.address).await;
    waiting.send(12, 1, &FetchRequest { max_wait_ms: 60_000, ..fetch("quiet", &[(0, 0)]) }).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    let mut idle = Client::connect(running.address).await;
    idle.call(3, &ApiVersionsRequest::default()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut third = Client::connect(running.address).await;
    third.call(3, &ApiVersionsRequest::default()).await;
    idle.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::MadeRoom), 1);
    let mut fourth = Client::connect(running.address).await;
    fourth.call(3, &ApiVersionsRequest::default()).await;
    third.call(3, &ApiVersionsRequest::default()).await;
    assert_eq!(waiting.receive::<FetchRequest>(12).await.0, 1, "one that waits for us stays");
}

#[tokio::test]
async fn a_panic_closes_its_connection_and_no_other() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut other = Client::connect(running.address).await;
    other.call(3, &ApiVersionsRequest::default()).await;
    running.fake.panic_on_locate.store(1, Ordering::SeqCst);
    let mut client = Client::connect(running.address).await;
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic {
            name: "t".into(),
            partitions: vec![ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() }],
        }],
        ..ListOffsetsRequest::default()
    };
    client.send(7, 1, &request).await;
    client.assert_closed().await;
    other.call(3, &ApiVersionsRequest::default()).await;
    running.fake.until(|_| running.counters.closed_count(Closed::Fault) == 1).await;
}

#[tokio::test]
async fn i20_frames_wait_for_byte_permits_and_are_not_refused() {
    let mut config = config();
    config.request_permits = FramePermits::ordinary(64 << 10);
    let running = start_with(config).await;
    let table = running.fake.topic("t", 1);
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    let value = "x".repeat(40 << 10);
    let mut first = Client::connect(running.address).await;
    let mut second = Client::connect(running.address).await;
    first.send(9, 1, &produce("t", 0, batch(&[&value]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1).await;
    second.send(9, 2, &produce("t", 0, batch(&[&value]), -1)).await;
    tokio::task::yield_now().await;
    assert_eq!(running.fake.end(table, 0).0, 1, "no room for the second");
    running.fake.behave(table, 0, Behaviour::default());
    assert_eq!(first.receive::<ProduceRequest>(9).await.0, 1);
    assert_eq!(second.receive::<ProduceRequest>(9).await.0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_what_was_ordered_be_acked_and_ends_long_polls() {
    let mut running = start().await;
    let table = running.fake.topic("t", 1);
    running.fake.topic("quiet", 1);
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    let mut writer = Client::connect(running.address).await;
    let mut reader = Client::connect(running.address).await;
    let mut idle = Client::connect(running.address).await;
    idle.call(3, &ApiVersionsRequest::default()).await;
    writer.send(9, 1, &produce("t", 0, batch(&["x"]), -1)).await;
    let slow = FetchRequest { max_wait_ms: 200_000, ..fetch("quiet", &[(0, 0)]) };
    reader.send(12, 2, &slow).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1 && fake.watching.load(Ordering::SeqCst) == 1).await;
    running.stop();
    idle.assert_closed().await;
    let (_, ended) = reader.receive::<FetchRequest>(12).await;
    assert_eq!(ended.responses[0].partitions[0].error_code, 0);
    reader.assert_closed().await;
    assert!(!running.server.is_finished(), "an ordered batch waits for its ack");
    running.fake.behave(table, 0, Behaviour::default());
    let (_, acked) = writer.receive::<ProduceRequest>(9).await;
    assert_eq!(acked.responses[0].partition_responses[0].error_code, 0);
    writer.assert_closed().await;
    (&mut running.server).await.expect("ends");
    assert!(tokio::net::TcpStream::connect(running.address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_ever() {
    let mut running = start().await;
    let table = running.fake.topic("t", 1);
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    let mut writer = Client::connect(running.address).await;
    writer.send(9, 1, &produce("t", 0, batch(&["x"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1).await;
    running.stop();
    (&mut running.server).await.expect("ends");
    writer.assert_closed().await;
}

#[tokio::test]
async fn requests_and_connections_are_counted() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.call(3, &ApiVersionsRequest::default()).await;
    client.call(0, &ApiVersionsRequest::default()).await;
    let metrics = running.counters.metrics();
    let requests = metrics.iter().find(|metric| {
        metric.name == "mink_kafka_requests" && metric.labels == [("api", "ApiVersions".to_owned())]
    });
    assert_eq!(requests.map(|metric| &metric.value), Some(&MetricValue::Counter(2)));
    let open = metrics.iter().find(|metric| metric.name == "mink_kafka_connections");
    assert_eq!(open.map(|metric| &metric.value), Some(&MetricValue::Gauge(1.0)));
}
