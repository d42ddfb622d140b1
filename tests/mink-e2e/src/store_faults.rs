//! The store is away, mute, slow, late, lossy, overloaded, under load and through a restart: nothing acked is lost, nothing of an
//! idempotent producer is stored twice, the node fences nobody and comes back by itself (I1, I6, I7; P-6, K-3, K-4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mink_testkit::faults::proxy::FaultProxy;
use mink_testkit::node::Node;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;

use crate::flight;
use crate::load::{Load, Plan, available};
use crate::setup::{self, Folder, until};
use crate::wire::Wire;

/// From the end of the faults until every producer has an ack again. A client of librdkafka notices a broken connection at once, but one
/// whose request is not answered only after its own 10 s.
const BACK_WITHIN: Duration = Duration::from_secs(20);
/// A takeover while each third read of the store is refused.
const READY_WITHIN: Duration = Duration::from_secs(30);

const MEMORY_MIB: u64 = 256;
/// What a process holds beside what `--memory` counts: code, stacks, the allocator's slack, the database's pages.
const FIXED_MIB: u64 = 64;
/// How long each phase lasts in the long form.
const LONG: Duration = Duration::from_secs(30);

/// What the store does, one after the other: a name, how many seconds in the short form, and the plan.
const PHASES: &[(&str, u64, &str)] = &[
    ("away: nobody listens", 6, "any: away"),
    ("away: no answer", 6, "any: undone silent"),
    ("late answers", 4, "any: delay 100ms..1500ms spike 4s 3%"),
    ("late puts", 4, "put 30%: late 300ms..3s 500\nput 15%: late 300ms..2s lost\ndelete 20%: late 1s 500"),
    ("lost answers", 4, "put 40%: lost\nput 20%: undone lost\nget,head,delete 20%: lost\nget 10%: cut 50%"),
    ("storm", 4, "any 70%: undone 503\nput 20%: undone 409\nput 20%: 412\nput 10%: undone 412"),
];

/// While a successor walks the chain: a third of what it reads is refused or cut, and a fifth of what it writes is not told.
const RESTART: &str = "
    get,head key=*/wal/* 30%: undone 503
    get key=*/wal/* 10%: cut 50%
    get,head key=*/stream/* 30%: undone 503
    put,delete 20%: lost";

/// Lines of a node whose store has these faults.
const ALLOWED: &[&str] = &[
    "not yet created, trying again",
    "not yet deleted, trying again",
    "the store does not answer",
    "the store takes no writes",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_1_i_6_p_6_k_3_k_4_a_node_survives_its_store() {
    if !(available().await && flight::available().await) {
        return;
    }
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "faults").await;
    let config = config.flag("--wal-flush-age", "2s").flag("--deletion-grace", "1s");
    let config = config.flag("--memory", &format!("{MEMORY_MIB}MiB"));
    let config = ALLOWED.iter().fold(config, |config, text| config.allow_line(text));
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let plan =
        Plan { topic: "idempotent", partitions: 4, producers: 2, idempotent: true, rate: 500, count: None };
    let mut idempotent = Load::start(folder.path(), node.kafka(), plan).await;
    let plan = Plan { topic: "plain", idempotent: false, producers: 1, ..plan };
    let mut plain = Load::start(folder.path(), node.kafka(), plan).await;
    let mut rows = flight::Writer::start(folder.path(), node.flight());
    tokio::join!(idempotent.progress(), plain.progress(), rows.progress());
    let reader = Reader::start(node.kafka(), "idempotent");

    let incarnation = setup::status(node.http()).await["incarnation"].clone();
    for (name, seconds, plan) in PHASES {
        proxy.set_text(plan).unwrap();
        // This long the store is as the plan says; nothing is waited for.
        tokio::time::sleep(if setup::is_long() { LONG } else { Duration::from_secs(*seconds) }).await;
        let tally = proxy.tally();
        back(&node, &proxy, name, [&idempotent, &plain], &rows).await;
        println!("  met: {:?}", tally.rules.iter().map(|line| line.taken).collect::<Vec<_>>());
        assert_eq!(
            setup::status(node.http()).await["incarnation"],
            incarnation,
            "{name}: the node stepped down"
        );
    }
    println!("late puts: {:?}; {}", proxy.late(), reader.stop().await);
    let (now, most) = setup::resident_kib(node.process().id());
    println!("--memory {MEMORY_MIB}MiB: resident {} MiB, at most {} MiB", now >> 10, most >> 10);
    assert!(most >> 10 < MEMORY_MIB + FIXED_MIB, "{} MiB", most >> 10);

    // P-6: a takeover from a store that refuses and cuts.
    proxy.set_text(RESTART).unwrap();
    let began = Instant::now();
    node.crash_and_restart().await.unwrap();
    println!(
        "restart through a storm: ready after {:?}, with the crash {:?}",
        node.ready_after(),
        began.elapsed()
    );
    assert!(node.ready_after() < READY_WITHIN, "{:?}", node.ready_after());
    back(&node, &proxy, "restart", [&idempotent, &plain], &rows).await;
    tokio::join!(idempotent.stop(), plain.stop(), rows.stop());
    // All of it back from the store, which goes on to fail.
    proxy.set_text("").unwrap();
    node.crash_and_restart().await.unwrap();
    rows.verify(&node).await;
    proxy.set_text("any: delay 1ms..20ms\nget 10%: undone 503\nget 5%: lost\nget 5%: cut 50%").unwrap();
    tokio::join!(idempotent.verify(false), plain.verify(false));
    node.stop(BACK_WITHIN).await.unwrap();
}

/// Ends the faults; the node and every producer go on by themselves.
async fn back(node: &Node, proxy: &FaultProxy, name: &str, loads: [&Load; 2], rows: &flight::Writer) {
    proxy.set_text("").unwrap();
    let began = Instant::now();
    let [first, second] = loads;
    tokio::join!(first.progress(), second.progress(), rows.progress());
    setup::ready(node.http(), BACK_WITHIN).await;
    println!("{name}: back after {:?}", began.elapsed());
    assert!(began.elapsed() < BACK_WITHIN, "{name}: back only after {:?}", began.elapsed());
}

/// A consumer of one partition that is never told an error and never misses an offset.
#[derive(Debug)]
struct Reader {
    ends: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<String>,
}

impl Reader {
    fn start(kafka: &str, topic: &'static str) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (kafka, told) = (kafka.to_owned(), Arc::clone(&ends));
        let task = tokio::spawn(async move {
            let mut wire = Wire::connect(&kafka).await;
            let (mut next, mut longest) = (0, Duration::ZERO);
            while !told.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let sent = wire.send_fetch(topic, 0, next, Duration::from_millis(500)).await.unwrap();
                let fetched = wire.receive_fetch(sent, next).await.unwrap();
                assert_eq!(fetched.code, 0, "from {next}: {fetched:?}");
                for (offset, _) in &fetched.records {
                    assert_eq!(*offset, next, "offsets are dense");
                    next += 1;
                }
                assert!(next <= fetched.high_watermark, "read beyond what is acked");
                longest = longest.max(asked.elapsed());
            }
            format!("a reader got {next} records, waited {longest:?} at most for an answer")
        });
        Self { ends, task }
    }

    async fn stop(self) -> String {
        self.ends.store(true, Ordering::Relaxed);
        until("the reader ends", BACK_WITHIN, || async { self.task.is_finished().then_some(()) }).await;
        self.task.await.unwrap()
    }
}
