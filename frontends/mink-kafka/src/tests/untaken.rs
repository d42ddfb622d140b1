//! Hundreds of clients that ask again and again and take nothing: whom they keep waiting, and when they go.
//!
//! Lives on: tests only.
use super::fake::{Running, config, start_on};
use super::raw_client::{Client, batch, batch_of, fetch, frame, visible};
use crate::counters::Closed;
use crate::{AnswerPermits, FramePermits, KafkaConfig};
use futures::FutureExt;
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::fetch::FetchRequest;
use mink_record::kafka::Codec;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, timeout};

const CLIENTS: usize = 200;

/// What must not take longer is waited for by nobody.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Patience with a new client that stalls, and the pauses in which it is looked at.
const SOON: Duration = Duration::from_millis(1_200);

struct Flooded {
    running: Running,
    config: KafkaConfig,
    /// Connected before the flood: asked for versions, and for records.
    idle: Client,
    reader: Client,
}

/// A server of whose answers the system holds so much for each socket, twice as it counts, with a log of a megabyte.
async fn start(socket_bytes: usize) -> Flooded {
    let mut config = config();
    config.answer_permits = AnswerPermits::new(8 << 20);
    config.request_permits = FramePermits::ordinary(8 << 20);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    rustix::net::sockopt::set_socket_send_buffer_size(&listener, socket_bytes).expect("a socket");
    let running = start_on(listener, config.clone());
    running.fake.topic("t", 1);
    let mut reader = Client::connect(running.address).await;
    let value = vec![b'x'; 250_000];
    for _ in 0..4 {
        let batch = batch_of([&value[..]].into_iter(), Codec::None);
        assert_eq!(reader.produce("t", 0, batch).await.error_code, 0);
    }
    read(&mut reader).await;
    let mut idle = Client::connect(running.address).await;
    idle.call(3, &ApiVersionsRequest::default()).await;
    Flooded { running, config, idle, reader }
}

/// A fetch of all that the node may send.
fn greedy() -> FetchRequest {
    let mut request = fetch("t", &[(0, 0)]);
    request.topics[0].partitions[0].partition_max_bytes = 16 << 20;
    request
}

async fn read(client: &mut Client) {
    let answer = client.call(12, &greedy()).await;
    let records = answer.responses[0].partitions[0].records.clone().expect("never null");
    assert!(!visible(records.into_bytes(), 0).is_empty());
}

/// Clients that send these bytes and read nothing, nor their system for them.
async fn flood(flooded: &Flooded, bytes: &[u8]) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a socket");
        let stream = socket.connect(flooded.running.address).await.expect("accepted");
        assert_eq!(stream.try_write(bytes).expect("the system takes it"), bytes.len());
        clients.push(Client { stream });
    }
    clients
}

impl Flooded {
    fn gone(&self) -> u64 {
        self.running.counters.closed_count(Closed::WriteDeadline)
    }

    /// Whatever needs little memory of answers is answered at once, on connections old and new, and a fetch of a new one soon.
    async fn serves_others(&mut self) {
        let begun = Instant::now();
        for _ in 0..5 {
            self.idle.call(3, &ApiVersionsRequest::default()).await;
            let mut new = Client::connect(self.running.address).await;
            new.call(3, &ApiVersionsRequest::default()).await;
            assert_eq!(new.produce("t", 0, batch(&["y"])).await.error_code, 0);
        }
        let took = begun.elapsed();
        assert!(took < AT_ONCE, "{took:?}");
        let mut new = Client::connect(self.running.address).await;
        timeout(SOON, read(&mut new)).await.expect("a new reader is served soon");
        timeout(SOON, read(&mut self.reader)).await.expect("and one that has read before");
    }
}

/// Each answer but the last is with the system, which looks like a client that takes it.
#[tokio::test(start_paused = true)]
async fn i20_fetches_in_a_row_that_nobody_takes_keep_nobody_waiting_and_their_clients_go_together() {
    let mut flooded = start(256 << 10).await;
    let four: Vec<u8> = (0..4).flat_map(|n| frame(12, n, &greedy())).collect();
    let begun = Instant::now();
    let clients = flood(&flooded, &four).await;
    let held = flooded.config.request_permits.held_bytes();
    flooded.serves_others().await;
    assert!(held <= (CLIENTS as u64) << 10, "{held} bytes of requests for {} sent", CLIENTS * four.len());
    // Those that remain are as few as keep nobody waiting.
    tokio::time::sleep(SOON).await;
    let (gone, took) = (flooded.gone(), begun.elapsed());
    assert!(gone >= CLIENTS as u64 * 9 / 10, "{gone} are gone after {took:?}");
    let answers = &flooded.config.answer_permits;
    assert!(answers.free_bytes() > answers.total_bytes() / 2);
    drop(clients);
}

/// Sockets that hold little: each client's first answer stays in memory.
#[tokio::test(start_paused = true)]
async fn i20_first_answers_that_nobody_takes_keep_others_waiting_for_a_moment_only() {
    let mut flooded = start(64 << 10).await;
    let clients = flood(&flooded, &frame(12, 1, &greedy())).await;
    flooded.serves_others().await;
    assert!(flooded.gone() < CLIENTS as u64, "although others wait that came before");
    // With nobody to wait for them, the last ones may stay; the others go in the time that each holds an answer.
    flooded.running.fake.until(|_| flooded.gone() >= CLIENTS as u64 * 8 / 10).await;
    drop(clients);
}

/// Answers of some hundred bytes, of which there are more than the system takes.
#[tokio::test(start_paused = true)]
async fn i20_small_answers_that_nobody_takes_keep_nobody_waiting() {
    let mut flooded = start(64 << 10).await;
    let one = frame(2, 1, &ApiVersionsRequest::default());
    let clients = flood(&flooded, &one.repeat(2_000)).await;
    flooded.serves_others().await;
    tokio::time::sleep(SOON).await;
    flooded.serves_others().await;
    let gone = flooded.gone();
    assert!(gone >= CLIENTS as u64 * 9 / 10, "{gone} are gone");
    drop(clients);
}

/// While memory is scarce, not to read for a while is no offence when nobody else waits, and who then takes what it was sent is answered on.
#[tokio::test]
async fn a_client_that_asks_in_a_row_and_reads_later_gets_it_all_although_memory_is_scarce() {
    const ASKED: i32 = 8;
    const SHARE: u64 = 256 << 10;
    let flooded = start(256 << 10).await;
    let answers = flooded.config.answer_permits.clone();
    let take = |_| answers.share(false).take(SHARE).now_or_never().expect("room");
    let held: Vec<_> = (0..12).map(take).collect();
    let reads = flooded.running.fake.reads.load(Ordering::SeqCst);
    let mut client = Client::connect(flooded.running.address).await;
    for n in 0..ASKED {
        client.send(12, n, &greedy()).await;
    }
    // Longer than a client may take nothing for whom others wait.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let begun = flooded.running.fake.reads.load(Ordering::SeqCst) - reads;
    assert!(begun < 4, "{begun} reads: two for an answer of one batch, and the second fetch has not begun");
    for n in 0..ASKED {
        assert_eq!(client.receive::<FetchRequest>(12).await.0, n);
    }
    assert_eq!(flooded.gone(), 0);
    drop(held);
}
