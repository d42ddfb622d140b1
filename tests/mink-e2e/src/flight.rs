//! Arrow Flight as users have it: pyarrow against a node, one test for each case of `tests/clients/flight.py`.

mod writer;

pub(crate) use writer::Writer;

use std::time::{Duration, Instant};

use mink_testkit::node::{Node, NodeConfig};
use mink_testkit::parts::SeaweedFs;
use mink_testkit::process::Output;
use mink_testkit::{ErrorKind, client, http, skip};
use rand::Rng as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::setup::{self, Folder, until};

const RUN_WITHIN: Duration = Duration::from_mins(5);
/// A drain without work left takes a moment; the bound of all drains is 30 s.
const DRAINS_WITHIN: Duration = Duration::from_secs(10);
/// A connection that the node does not want any more.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);
const ROUNDS: u32 = 3;
/// From the first acks after a restart to the kill: anywhere in here.
const ALIVE_MS_MAX: u64 = 1_000;
/// A message of 256 MiB is accepted from this memory on. It is a bound: no node here takes so much.
const LARGE_MEMORY: &str = "12GiB";
/// What a node with the memory of [`setup::node`] accepts as one message.
const MESSAGE_BYTES_MAX: &str = "12582912";
/// What the node of the hostile case may hold in all: its `--memory`, and what a process has beside that.
const RESIDENT_KIB_MAX: u64 = (512 + 64) << 10;

pub(crate) async fn available() -> bool {
    skip::available("clients-python", client::install("flight").await).is_some()
}

/// Runs a case against a node.
async fn case(name: &str, node: &Node, more: &[&str]) -> Value {
    let (flight, kafka, http) = (node.flight(), node.kafka(), node.http());
    let mut args = vec![name, "--flight", flight, "--kafka", kafka, "--http", http];
    args.extend(more);
    let begun = Instant::now();
    let summary = client::run("flight", &args, RUN_WITHIN).await.unwrap();
    println!("{:.1} s: {summary}", begun.elapsed().as_secs_f64());
    assert_eq!(summary["case"], name, "{summary}");
    summary
}

/// A case on a node of its own, which then drains without a loud line.
async fn alone(name: &str, config: NodeConfig) {
    let mut node = config.start().await.unwrap();
    case(name, &node, &[]).await;
    node.stop(RUN_WITHIN).await.unwrap();
}

async fn on_a_file_store(name: &str) {
    if available().await {
        let folder = Folder::new();
        alone(name, setup::node(&folder)).await;
    }
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_sent() {
    on_a_file_store("types").await;
}

#[tokio::test]
async fn every_type_comes_back_from_s3_as_it_was_sent() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    if available().await {
        let folder = Folder::new();
        alone("types", setup::node_on_s3(&folder, store, "flight").await).await;
    }
}

/// I2, I6: it is split into batches of the table, whose offsets and sequences follow each other.
#[tokio::test]
async fn a_message_of_256_mib_comes_back_whole_and_in_order() {
    if available().await {
        let folder = Folder::new();
        // Node and client move gigabytes on two cores: a turn may be cut short by the system for longer than the watchdog bears.
        let config = setup::node(&folder).flag("--memory", LARGE_MEMORY).allow_line("task blocks its core");
        alone("large", config).await;
    }
}

/// I2: a scan that is cut by filter, place or limit loses no row, and two columns cost two columns' bytes.
#[tokio::test]
async fn a_scan_gives_and_costs_what_it_asks_for() {
    on_a_file_store("projection").await;
}

/// I6: what a writer sends again is stored once, and a gap is refused.
#[tokio::test]
async fn pipelined_batches_are_acked_in_order_and_stored_once() {
    on_a_file_store("pipelined").await;
}

/// I2, I3
#[tokio::test]
async fn a_tail_sees_every_row_once_and_in_order() {
    on_a_file_store("follow").await;
}

/// Open calls end with UNAVAILABLE, which clients try again, and do not keep the node from leaving.
#[tokio::test]
async fn a_node_with_open_calls_drains_at_once() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let mut open = client::start("flight", &["drained", "--flight", node.flight()]).unwrap();
    open.wait_for_text(Output::Stdout, RUN_WITHIN, "open").await.unwrap();
    node.stop(DRAINS_WITHIN).await.unwrap();
    let status = open.wait(RUN_WITHIN).await.unwrap();
    assert!(status.success(), "{}", open.report(ErrorKind::Failed, "was not told that the node leaves"));
}

#[tokio::test]
async fn alter_beside_writers_loses_no_row_and_one_of_two_wins() {
    on_a_file_store("alter").await;
}

#[tokio::test]
async fn records_of_kafka_clients_are_rows_of_arrow() {
    on_a_file_store("kafka").await;
}

/// The page's examples run as they stand.
#[tokio::test]
async fn the_examples_of_the_page_run() {
    on_a_file_store("docs").await;
}

/// I19, I20: typed errors, no panic (the node fails the test by a loud line), and memory stays below the bound.
#[tokio::test]
async fn hostile_messages_are_refused_and_harm_nobody() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    case("hostile", &node, &["--message-bytes-max", MESSAGE_BYTES_MAX]).await;
    let (_, most) = setup::resident_kib(node.process().id());
    println!("at most {} MiB were resident", most >> 10);
    assert!(most < RESIDENT_KIB_MAX, "{} MiB were resident", most >> 10);
    node.crash_and_restart().await.unwrap();
    // What it has stored of all that can be read after a takeover, too.
    case("unharmed", &node, &[]).await;
    node.stop(RUN_WITHIN).await.unwrap();
}

/// I20: connections beyond a limit are turned away, those that do not begin HTTP/2 are closed, and both are counted.
#[tokio::test]
async fn i20_connections_are_bounded_and_silent_ones_are_closed() {
    let folder = Folder::new();
    let config = setup::node(&folder)
        .flag("--connections-per-address-max", "3")
        .flag("--frame-deadline", "2s")
        .allow_line("too many connections of Flight");
    let mut node = config.start().await.unwrap();
    let flight = node.flight().to_owned();
    let connect = || async { TcpStream::connect(&flight).await.unwrap() };
    let silent = [connect().await, connect().await, connect().await];
    closes(connect().await).await;
    let metrics = || async { http::get(node.http(), "/metrics").await.unwrap() };
    let closed = |reason: &str| format!("mink_flight_connections_closed_total{{reason=\"{reason}\"}}");
    assert!(metrics().await.metric(&closed("connection_limit")) >= Some(1.0));
    for each in silent {
        closes(each).await;
    }
    until("their places are free", CLOSED_WITHIN, || async {
        (metrics().await.metric("mink_flight_connections") == Some(0.0)).then_some(())
    })
    .await;
    assert_eq!(metrics().await.metric(&closed("frame_deadline")), Some(3.0));
    // One that speaks HTTP/2 is served: its ping is answered.
    let mut speaks = connect().await;
    speaks.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    speaks.write_all(b"\0\0\x08\x06\0\0\0\0\0mink-e2e").await.unwrap();
    let mut answered = Vec::new();
    while !answered.windows(8).any(|part| part == b"mink-e2e") {
        let read = timeout(CLOSED_WITHIN, speaks.read_buf(&mut answered)).await.expect("it is answered");
        assert_ne!(read.unwrap(), 0, "closed after {answered:?}");
    }
    drop(speaks);
    node.stop(RUN_WITHIN).await.unwrap();
}

/// Waits until the node closes a connection, whatever it says before.
async fn closes(mut stream: TcpStream) {
    let mut said = Vec::new();
    // It ends well or with an error: either way it is closed.
    drop(timeout(CLOSED_WITHIN, stream.read_to_end(&mut said)).await.expect("it is closed in its time"));
}

async fn kills_lose_nothing(config: NodeConfig, folder: &Folder) {
    // Flushes, trims and takeovers of adopted objects all happen within the rounds.
    let config = config.flag("--wal-flush-age", "700ms").flag("--deletion-grace", "1s");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let mut writer = Writer::start(folder.path(), node.flight());
    for round in 1..=setup::rounds(ROUNDS) {
        for kills_node in [true, false] {
            writer.progress().await;
            let alive = Duration::from_millis(rand::rng().random_range(0..ALIVE_MS_MAX));
            // Not a wait for anything: the kill comes at a random moment.
            tokio::time::sleep(alive).await;
            let victim = if kills_node { "node" } else { "writer" };
            println!("round {round}: kill of the {victim} {alive:?} after the first acks");
            if kills_node {
                node.crash_and_restart().await.unwrap();
            } else {
                writer.kill_and_restart().await;
            }
        }
    }
    writer.progress().await;
    writer.stop().await;
    writer.verify(&node).await;
    node.stop(RUN_WITHIN).await.unwrap();
}

/// I1, I2, I6
#[tokio::test]
async fn kill_9_of_node_and_writer_by_turns_loses_nothing_acked_and_stores_nothing_twice() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    kills_lose_nothing(setup::node(&folder), &folder).await;
}

/// I1, I2, I6
#[tokio::test]
async fn kill_9_on_s3_loses_nothing_acked_and_stores_nothing_twice() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    if !available().await {
        return;
    }
    let folder = Folder::new();
    kills_lose_nothing(setup::node_on_s3(&folder, store, "flight-kill9").await, &folder).await;
}
