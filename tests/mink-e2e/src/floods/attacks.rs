//! What one connection of a flood does until the flood is over; closed by the server, it comes again.
//! Lives on: the test's tokio runtime.
//! Owns: its socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::encode_request;
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::wire::{Wire, batch};

/// What consumers ask for by default, and what nobody has room for a thousand times.
const ASKED_BYTES: i32 = 50 << 20;

/// A version in which a client does not say what it is.
const API_VERSIONS: i16 = 2;

/// How long one step may take before the flood's end is looked at.
const STEP: Duration = Duration::from_secs(1);

/// What the system of a client may take for it, when it takes as little as it can.
const NARROW_BYTES: u32 = 4 << 10;

/// How often a connection that stalls looks whether it is still there.
const LOOK: Duration = Duration::from_millis(100);

async fn connect(kafka: &str) -> Option<TcpStream> {
    timeout(STEP, TcpStream::connect(kafka)).await.ok()?.ok()
}

/// A connection whose system takes almost nothing for its client.
async fn connect_narrow(kafka: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(NARROW_BYTES).unwrap();
    timeout(STEP, socket.connect(kafka.parse().unwrap())).await.ok()?.ok()
}

fn goes_on(flooding: &AtomicBool) -> bool {
    flooding.load(Ordering::Relaxed)
}

/// Whether the server has closed, or ended its half, within this time. What it sent is not read.
async fn closed_within(stream: &TcpStream, bound: Duration) -> bool {
    matches!(timeout(bound, stream.peek(&mut [0])).await, Ok(Ok(0) | Err(_)))
}

/// Sends these bytes and then nothing, and takes nothing.
pub(super) async fn hold(kafka: String, bytes: Bytes, flooding: Arc<AtomicBool>) {
    while goes_on(&flooding) {
        let Some(stream) = connect(&kafka).await else { continue };
        stall(stream, &bytes, &flooding).await;
    }
}

/// The same, and the system takes nothing for it either.
pub(super) async fn hold_narrow(kafka: String, bytes: Bytes, flooding: Arc<AtomicBool>) {
    while goes_on(&flooding) {
        let Some(stream) = connect_narrow(&kafka).await else { continue };
        stall(stream, &bytes, &flooding).await;
    }
}

/// One connection of them, until the server closes it.
async fn stall(mut stream: TcpStream, bytes: &Bytes, flooding: &AtomicBool) {
    // The server may have had enough before all is sent.
    drop(timeout(STEP, stream.write_all(bytes)).await);
    while goes_on(flooding) && !closed_within(&stream, LOOK).await {
        tokio::time::sleep(LOOK).await;
    }
}

/// Comes as a new client and produces, again and again; gives the longest time that took.
pub(super) async fn come_anew(kafka: String, topic: &str, flooding: Arc<AtomicBool>) -> Duration {
    let mut slowest = Duration::ZERO;
    while goes_on(&flooding) {
        let began = Instant::now();
        let mut wire = Wire::connect(&kafka).await;
        wire.call(API_VERSIONS, &ApiVersionsRequest::default()).await.unwrap();
        wire.init_producer().await;
        wire.produce(topic, 1, &batch(["from a new client"], None)).await;
        slowest = slowest.max(began.elapsed());
        tokio::time::sleep(LOOK).await;
    }
    slowest
}

/// Sends the first bytes at once and the rest a byte at a time.
pub(super) async fn drip(kafka: String, bytes: Bytes, at_once: usize, flooding: Arc<AtomicBool>) {
    while goes_on(&flooding) {
        let Some(mut stream) = connect(&kafka).await else { continue };
        let (first, rest) = bytes.split_at(at_once);
        if !matches!(timeout(STEP, stream.write_all(first)).await, Ok(Ok(()))) {
            continue;
        }
        for byte in rest.iter().cycle() {
            if !goes_on(&flooding) || stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            if closed_within(&stream, LOOK).await {
                break;
            }
        }
    }
}

/// Connects and goes.
pub(super) async fn come_and_go(kafka: String, flooding: Arc<AtomicBool>) {
    while goes_on(&flooding) {
        drop(connect(&kafka).await);
        tokio::task::yield_now().await;
    }
}

/// A fetch of all that there is, up to 50 MiB.
pub(super) fn large_fetch(topic: &str) -> Bytes {
    let request = FetchRequest {
        max_wait_ms: 1_000,
        min_bytes: 1,
        max_bytes: ASKED_BYTES,
        session_epoch: -1,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: vec![FetchPartition {
                current_leader_epoch: -1,
                last_fetched_epoch: -1,
                partition_max_bytes: ASKED_BYTES,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    encode_request(12, 1, None, &request).unwrap().to_bytes()
}

/// Sends one request after the other and reads each answer, as fast as it comes.
pub(super) async fn ask_and_read(kafka: String, request: Bytes, flooding: Arc<AtomicBool>) {
    let mut taken = vec![0; 64 << 10];
    while goes_on(&flooding) {
        let Some(mut stream) = connect(&kafka).await else { continue };
        while goes_on(&flooding) && stream.write_all(&request).await.is_ok() {
            let answer = async {
                let mut left = usize::try_from(stream.read_i32().await?).unwrap();
                while left > 0 {
                    let most = left.min(taken.len());
                    left -= match stream.read(&mut taken[..most]).await? {
                        0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                        read => read,
                    };
                }
                std::io::Result::Ok(())
            };
            // An answer may be long in coming while a thousand others ask: the flood may end before.
            if !matches!(timeout(STEP * 10, answer).await, Ok(Ok(()))) {
                break;
            }
        }
    }
}
