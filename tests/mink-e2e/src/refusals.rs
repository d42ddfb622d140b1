//! What can't work is refused at the start, with the remedy, and with 2 for wrong usage, 1 for the rest.

use std::time::{Duration, Instant};

use mink_testkit::node::{self, Node, NodeConfig};
use mink_testkit::process::{Launch, Output};

use crate::setup::{self, Folder};
use crate::wire::SOON;

/// From the start of a command to its complaint, on a machine that others use too. A client is patient for ten seconds.
const AT_ONCE: Duration = Duration::from_secs(4);

/// Starts a node that must end with this code and say these words.
async fn refused(config: NodeConfig, code: i32, words: &[&str]) {
    // Its words are looked at here; an error in its log is part of them.
    let mut process = config.allow_line("").launch().unwrap();
    let status = process.wait(SOON).await.unwrap();
    let said = process.text(Output::Stderr).unwrap();
    println!("{status}: {said}");
    assert_eq!(status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn a_listener_that_no_client_can_be_sent_to() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--kafka-listen", "0.0.0.0:0");
    refused(config, 2, &["--kafka-advertise"]).await;
}

#[tokio::test]
async fn a_data_directory_in_use() {
    let folder = Folder::new();
    let _node = setup::node(&folder).start().await.unwrap();
    // A dead process may still hold it, so it is waited for, and said.
    refused(setup::node(&folder), 1, &["waiting for the data directory", "in use", "--data-dir"]).await;
}

#[tokio::test]
async fn a_data_directory_is_waited_for_while_its_process_is_taken_down() {
    let folder = Folder::new();
    let mut first = setup::node(&folder).start().await.unwrap();
    let mut second = setup::node(&folder).launch().unwrap();
    second.wait_for_text(Output::Stderr, SOON, "waiting for the data directory").await.unwrap();
    first.process().kill9().await.unwrap();
    second.wait_for_text(Output::Stderr, SOON, "mink ready").await.unwrap();
    second.terminate().unwrap();
    assert_eq!(second.wait(SOON).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_data_directory_of_another_cluster() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    node.stop(SOON).await.unwrap();
    let other = |data: &str| setup::node_in(folder.join(data)).flag("--cluster", "other");
    let words = ["cluster mink, not of cluster other", "--cluster mink", "--data-dir"];
    refused(other("data"), 1, &words).await;
    // One of before its cluster was noted.
    std::fs::remove_file(folder.join("data").join("cluster")).unwrap();
    refused(other("data"), 1, &words).await;
    // The store and the database may be shared.
    let store = format!("file://{}", folder.join("data").join("objects").display());
    let database = format!("sqlite://{}", folder.join("data").join("meta.db").display());
    let mut second = other("two").storage(&store).metadata(&database).start().await.unwrap();
    second.stop(SOON).await.unwrap();
    node.restart().await.unwrap();
    node.stop(SOON).await.unwrap();
}

/// Runs `mink WORDS`: exit code and complaints.
async fn mink(words: &[&str]) -> (Option<i32>, String) {
    let launch = Launch::new("mink-command", node::binary("mink").unwrap()).args(words.iter().copied());
    let mut process = launch.start().unwrap();
    let status = process.wait(SOON).await.unwrap();
    (status.code(), process.text(Output::Stderr).unwrap())
}

#[tokio::test]
async fn a_record_for_a_table_that_is_not_there() {
    let folder = Folder::new();
    let lines = folder.join("lines");
    std::fs::write(&lines, "{\"value\":\"a\"}\n").unwrap();
    let start = setup::node(&folder).flag("--kafka-auto-create", "false").start();
    let mut node: Node = start.await.unwrap();
    let write = ["write", "kafka.absent", lines.to_str().unwrap(), "--kafka", node.kafka()];
    let begun = Instant::now();
    let (code, said) = mink(&write).await;
    let took = begun.elapsed();
    println!("{took:?}: {said}");
    assert_eq!(code, Some(1), "{said}");
    for word in ["no table kafka.absent", "mink table create kafka.absent", "--kafka-auto-create"] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(took < AT_ONCE, "told after {took:?}");
    let (code, said) = mink(&["table", "create", "kafka.absent", "--addr", node.flight()]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = mink(&write).await;
    assert_eq!(code, Some(0), "{said}");
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn a_store_of_another_cluster() {
    let folder = Folder::new();
    let node = setup::node_in(folder.join("one")).start().await.unwrap();
    let store = format!("file://{}", node.config().data_dir().join("objects").display());
    refused(setup::node_in(folder.join("two")).storage(&store), 1, &["cluster", "--metadata"]).await;
    // And the other way around: a database whose store is another one.
    let database = format!("sqlite://{}", node.config().data_dir().join("meta.db").display());
    refused(setup::node_in(folder.join("three")).metadata(&database), 1, &["cluster", "--storage"]).await;
}

#[tokio::test]
async fn metadata_that_would_outlive_its_data() {
    let folder = Folder::new();
    let database = format!("sqlite://{}", folder.join("meta.db").display());
    let config = setup::node(&folder).storage("memory://").metadata(&database);
    refused(config, 2, &["memory://", "--metadata"]).await;
}

#[tokio::test]
async fn an_unknown_key_in_the_file() {
    let folder = Folder::new();
    let path = folder.join("mink.toml");
    std::fs::write(&path, "wal-linger = \"5ms\"\nwal-lingerr = \"5ms\"\n").unwrap();
    let config = setup::node(&folder).flag("--config", path.to_str().unwrap());
    refused(config, 2, &["wal-lingerr"]).await;
}

#[tokio::test]
async fn an_unknown_flag_and_a_value_out_of_range() {
    let folder = Folder::new();
    refused(setup::node(&folder).flag("--no-such-flag", "1"), 2, &["--no-such-flag"]).await;
    refused(setup::node(&folder).flag("--lease-ttl", "1ms"), 2, &["lease-ttl"]).await;
}

#[tokio::test]
async fn a_port_in_use() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = setup::node(&folder).flag("--kafka-listen", &address);
    refused(config, 1, &[&address, "--kafka-listen"]).await;
}

#[tokio::test]
async fn memory_storage_serves_with_memory_metadata() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).storage("memory://").start().await.unwrap();
    let mut wire = crate::wire::Wire::connect(node.kafka()).await;
    wire.create_topic("t", 1).await;
    wire.produce("t", 0, &crate::wire::batch(["a"], None)).await;
    assert_eq!(wire.read_all("t", 0).await, ["a"]);
    node.stop(SOON).await.unwrap();
}
