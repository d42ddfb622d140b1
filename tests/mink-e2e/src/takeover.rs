//! A paused process is replaced by a second one under the same node id and another data directory (I3, I5, I13).
//!
//! The old one stops itself at a fail point. Its chain is sealed at once; the new one acks and reads only when the old one's lease
//! and a margin have passed; the old one, woken, gets no ack and no stale read out, and ends.

use std::time::{Duration, Instant};

use mink_testkit::node::{Node, NodeConfig};
use mink_testkit::process::Output;

use crate::setup::{self, Folder, until, wal_objects};
use crate::wire::{SOON, Wire, batch, is_closed, values};

const TTL: Duration = Duration::from_secs(3);
const SEALED_WITHIN: Duration = Duration::from_secs(2);
const TOPIC: &str = "t";

struct Pair {
    folder: Folder,
    config: NodeConfig,
}

impl Pair {
    /// Two data directories, one store, one database.
    fn new() -> Self {
        let folder = Folder::new();
        let config = setup::node_in(folder.join("unused"))
            .storage(&format!("file://{}", folder.join("store").display()))
            .metadata(&format!("sqlite://{}", folder.join("meta.db").display()))
            .flag("--lease-ttl", "3s");
        Self { folder, config }
    }

    fn with(mut self, flag: &str, value: &str) -> Self {
        self.config = self.config.flag(flag, value);
        self
    }

    /// The config of one of the two.
    fn member(&self, name: &str) -> NodeConfig {
        self.config.clone().data_dir_at(self.folder.join(name))
    }

    /// The first one, with a topic, which will stop itself at the fail point; its loss of the lease is what the test is about.
    async fn first(&self, fail_point: &str) -> Node {
        let config = self.member("first").fail_points(fail_point);
        let allowed = [
            "fail point",
            "fenced",
            "seal",
            "the node ends",
            "heartbeat",
            "lease",
            "does not answer",
            "blocks its core",
            "does not wake",
            "kafka connection closed",
        ];
        let config = allowed.iter().fold(config, |config, text| config.allow_line(text));
        let node = config.start().await.unwrap();
        Wire::connect(node.kafka()).await.create_topic(TOPIC, 1).await;
        node
    }

    /// Starts the second one, and gives how long after its start the first one's chain had its seal.
    async fn second(&self) -> (Node, Duration) {
        let store = self.folder.join("store");
        let before = wal_objects(&store);
        let begun = Instant::now();
        let sealed = until("the chain is sealed", SOON, || async {
            (wal_objects(&store).len() > before.len()).then(|| begun.elapsed())
        });
        let (node, sealed) = tokio::join!(self.member("second").start(), sealed);
        let node = node.unwrap();
        println!("sealed after {sealed:?}, ready after {:?}", node.ready_after());
        (node, sealed)
    }
}

/// Wakes the old process and waits for its end, which must not be a success and must say why.
async fn wake_and_end(node: &mut Node) {
    node.process().resume().unwrap();
    let status = node.process().wait(SOON).await.unwrap();
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    let log = node.process().text(Output::Stderr).unwrap();
    assert!(log.contains("fenced"), "the end is said in words:\n{log}");
}

/// T-2: the paused owner's batch X never becomes visible, its successor's Y has those offsets for ever.
#[tokio::test]
async fn t_2_a_write_paused_before_its_put_never_appears() {
    let pair = Pair::new();
    let mut first = pair.first("wal.put.before=stop@3").await;
    let mut old = Wire::connect(first.kafka()).await;
    for number in 0..2 {
        let records = batch(values("acked", number * 5..number * 5 + 5), None);
        assert_eq!(old.produce(TOPIC, 0, &records).await, i64::try_from(number * 5).unwrap());
    }
    let x = old.send_produce(TOPIC, &[(0, batch(values("x", 0..5), None))]).await.unwrap();
    first.process().wait_until_paused(SOON).await.unwrap();

    let (mut second, sealed) = pair.second().await;
    assert!(sealed < SEALED_WITHIN, "sealed after {sealed:?}");
    assert!(
        second.ready_after() > TTL,
        "served before the old lease had run out: {:?}",
        second.ready_after()
    );
    let mut new = Wire::connect(second.kafka()).await;
    assert_eq!(new.produce(TOPIC, 0, &batch(values("y", 0..5), None)).await, 10);
    let expected = [values("acked", 0..10), values("y", 0..5)].concat();
    assert_eq!(new.read_all(TOPIC, 0).await, expected);

    assert!(!old.stirs_within(Duration::from_millis(50)).await, "a paused process answered");
    wake_and_end(&mut first).await;
    let answer = old.receive_produce(x, SOON).await;
    assert!(answer.as_ref().is_err_and(is_closed), "the write was answered: {answer:?}");
    assert_eq!(new.read_all(TOPIC, 0).await, expected);
    second.crash_and_restart().await.unwrap();
    assert_eq!(Wire::connect(second.kafka()).await.read_all(TOPIC, 0).await, expected);
}

/// The write was in the store when its process was paused: its successor recovers it, so the late ack may go out, and is true.
#[tokio::test]
async fn a_write_paused_after_its_put_is_recovered() {
    let pair = Pair::new();
    let mut first = pair.first("wal.put.after=stop@2").await;
    let mut old = Wire::connect(first.kafka()).await;
    assert_eq!(old.produce(TOPIC, 0, &batch(values("acked", 0..5), None)).await, 0);
    let x = old.send_produce(TOPIC, &[(0, batch(values("x", 0..5), None))]).await.unwrap();
    first.process().wait_until_paused(SOON).await.unwrap();

    let (second, sealed) = pair.second().await;
    assert!(sealed < SEALED_WITHIN, "sealed after {sealed:?}");
    assert!(second.ready_after() > TTL, "{:?}", second.ready_after());
    let mut new = Wire::connect(second.kafka()).await;
    assert_eq!(new.produce(TOPIC, 0, &batch(values("y", 0..5), None)).await, 10);
    let expected = [values("acked", 0..5), values("x", 0..5), values("y", 0..5)].concat();
    assert_eq!(new.read_all(TOPIC, 0).await, expected);

    wake_and_end(&mut first).await;
    match old.receive_produce(x, SOON).await {
        Ok(answers) => assert_eq!((answers[0].code, answers[0].offset), (0, 5), "{answers:?}"),
        Err(error) => assert!(is_closed(&error), "{error}"),
    }
    assert_eq!(new.read_all(TOPIC, 0).await, expected);
}

/// K-1: between the pause and the awakening the garbage collector cleans the old chain; the seal outlives that.
#[tokio::test]
async fn k_1_the_seal_outlives_the_garbage_of_its_chain() {
    let pair = Pair::new().with("--wal-flush-age", "300ms").with("--deletion-grace", "1s");
    let mut first = pair.first("wal.put.before=stop@2").await;
    let mut old = Wire::connect(first.kafka()).await;
    assert_eq!(old.produce(TOPIC, 0, &batch(values("acked", 0..5), None)).await, 0);
    setup::flushed(first.http(), SOON).await;
    let store = pair.folder.join("store");
    let chain = wal_objects(&store).first().and_then(|path| path.parent()).unwrap().to_owned();
    let x = old.send_produce(TOPIC, &[(0, batch(values("x", 0..5), None))]).await.unwrap();
    first.process().wait_until_paused(SOON).await.unwrap();

    let (second, _) = pair.second().await;
    let mut new = Wire::connect(second.kafka()).await;
    for number in 0..4 {
        // Each is flushed and trimmed, so that the new chain's trim goes past the old number.
        new.produce(TOPIC, 0, &batch(values("y", number * 5..number * 5 + 5), None)).await;
        setup::flushed(second.http(), SOON).await;
    }
    let left = until("the old chain is cleaned up to its seal", SOON, || async {
        let left = setup::objects(&chain);
        (left.len() == 1).then_some(left)
    })
    .await;
    // Object 0 held the acked write: 1 is the number that the old process is about to take.
    assert!(left[0].ends_with("00000000000000000001"), "{left:?}");
    wake_and_end(&mut first).await;
    let answer = old.receive_produce(x, SOON).await;
    assert!(answer.as_ref().is_err_and(is_closed), "the write was answered: {answer:?}");
    assert_eq!(setup::objects(&chain), left, "the old process wrote into its sealed chain");
    assert_eq!(new.read_all(TOPIC, 0).await, [values("acked", 0..5), values("y", 0..20)].concat());
}

/// I3: an answer that was computed before the pause is not let out after it.
#[tokio::test]
async fn i_3_a_read_paused_before_its_answer_is_not_answered_stale() {
    let pair = Pair::new();
    let mut first = pair.first("read.answer=stop").await;
    let mut old = Wire::connect(first.kafka()).await;
    assert_eq!(old.produce(TOPIC, 0, &batch(values("acked", 0..5), None)).await, 0);
    let read = old.send_fetch(TOPIC, 0, 0, Duration::ZERO).await.unwrap();
    first.process().wait_until_paused(SOON).await.unwrap();

    let (second, _) = pair.second().await;
    assert!(second.ready_after() > TTL, "{:?}", second.ready_after());
    let mut new = Wire::connect(second.kafka()).await;
    assert_eq!(new.produce(TOPIC, 0, &batch(values("y", 0..5), None)).await, 5);

    assert!(!old.stirs_within(Duration::from_millis(50)).await, "a paused process answered");
    wake_and_end(&mut first).await;
    match old.receive_fetch(read, 0).await {
        Ok(answer) => {
            assert!(answer.code != 0 && answer.records.is_empty(), "a stale read got out: {answer:?}");
        }
        Err(error) => assert!(is_closed(&error), "{error}"),
    }
}

/// T-2: the commit of a flush that was under way comes after the fence, and changes nothing.
#[tokio::test]
async fn t_2_a_commit_paused_on_its_way_is_refused() {
    let pair = Pair::new().with("--wal-flush-age", "300ms").with("--deletion-grace", "1s");
    let mut first = pair.first("commit.before=stop").await;
    let mut old = Wire::connect(first.kafka()).await;
    assert_eq!(old.produce(TOPIC, 0, &batch(values("acked", 0..5), None)).await, 0);
    first.process().wait_until_paused(SOON).await.unwrap();

    let (mut second, _) = pair.second().await;
    let mut new = Wire::connect(second.kafka()).await;
    assert_eq!(new.produce(TOPIC, 0, &batch(values("y", 0..5), None)).await, 5);
    let expected = [values("acked", 0..5), values("y", 0..5)].concat();
    wake_and_end(&mut first).await;
    assert_eq!(new.read_all(TOPIC, 0).await, expected);
    setup::flushed(second.http(), SOON).await;
    second.crash_and_restart().await.unwrap();
    assert_eq!(Wire::connect(second.kafka()).await.read_all(TOPIC, 0).await, expected);
}

/// I13: a second process that shares all but the lock of the first one fences it also when it is not paused: the first one ends.
#[tokio::test]
async fn i_13_a_running_process_that_is_replaced_ends_by_itself() {
    let pair = Pair::new();
    let mut first = pair.first("").await;
    let mut old = Wire::connect(first.kafka()).await;
    assert_eq!(old.produce(TOPIC, 0, &batch(values("acked", 0..5), None)).await, 0);
    let (second, _) = pair.second().await;
    let status = first.process().wait(SOON).await.unwrap();
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    let mut new = Wire::connect(second.kafka()).await;
    assert_eq!(new.read_all(TOPIC, 0).await, values("acked", 0..5));
}
