//! I20: connections to the HTTP listener that begin a request and do not end it take neither the node's memory nor its files: who asks
//! how it is gets an answer, and Kafka clients are let in.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use mink_testkit::http;
use mink_testkit::node::binary;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch};

const TOPIC: &str = "t";
/// Files that the node may have open: an eighth is the HTTP listener's.
const FILES: usize = 256;
const CONNECTIONS_MAX: f64 = 32.0;
const FLOOD: usize = 600;
const MEMORY_MIB: u64 = 128;
const FIXED_MIB: u64 = 64;
/// The head's time is 10 s.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn i20_halves_of_http_requests_take_neither_memory_nor_files() {
    let folder = Folder::new();
    let script = folder.join("few-files");
    let mink = binary("mink").unwrap();
    let text = format!("#!/bin/sh\nulimit -n {FILES}\nexec '{}' \"$@\"\n", mink.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = setup::node(&folder)
        .program(&script)
        .flag("--memory", &format!("{MEMORY_MIB}MiB"))
        .allow_line("as many http connections as may be");
    let mut node = config.start().await.unwrap();
    let half = format!("GET / HTTP/1.1\r\nHost: x\r\n{}", format!("A: {}\r\n", "b".repeat(4_000)).repeat(90));
    let mut flood = Vec::new();
    for _ in 0..FLOOD {
        let mut stream = TcpStream::connect(node.http()).await.unwrap();
        // What the node does not take any more is not sent.
        drop(timeout(Duration::from_millis(5), stream.write_all(half.as_bytes())).await);
        flood.push(stream);
    }
    for _ in 0..FLOOD {
        let mut stream = TcpStream::connect(node.http()).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
        flood.push(stream);
    }
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    let open = metrics.metric("mink_http_connections").unwrap();
    assert!(open <= CONNECTIONS_MAX, "{open} connections are open");
    let sent_away = metrics.metric("mink_http_connections_closed_total{reason=\"made_room\"}");
    assert!(sent_away.is_some_and(|count| count > 100.0), "{}", metrics.body);
    let (_, peak) = setup::resident_kib(node.process().id());
    assert!(peak / 1024 <= MEMORY_MIB + FIXED_MIB, "{} MiB were resident", peak / 1024);
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch(["a"], None)).await, 0);
    // The last ones wait for their end by the clock.
    let last = flood.last_mut().unwrap();
    let read = timeout(CLOSED_WITHIN, last.read(&mut [0; 16])).await.expect("it is closed in its time");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    until("only who asks is connected", SOON, || async {
        let metrics = http::get(node.http(), "/metrics").await.unwrap();
        (metrics.metric("mink_http_connections") == Some(1.0)).then_some(())
    })
    .await;
    node.stop(SOON).await.unwrap();
}
