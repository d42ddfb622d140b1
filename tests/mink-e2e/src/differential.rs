//! The same requests to Apache Kafka 4.4 and to a node, every offered API and version: the answers agree in every field, or the
//! difference is in the list with its reason.
//! Lives on: the test's tokio runtime.
//! Owns: the node, and Kafka where it is asked.
//! Invariants: ids, addresses and words of errors are mapped, nothing else; a difference that is in the list and does not occur
//! fails too.
//!
//! The node is compared with what Kafka was recorded to say (`golden/kafka-4.4`), which needs no Java. `MINK_E2E_LONG=1` asks a
//! live Kafka too, whether it still says so; `MINK_E2E_RECORD=1` records it anew. `MINK_E2E_APIS=Fetch,Produce` asks for these alone,
//! and `MINK_E2E_ANSWERS=FILE` writes down what the node said.

mod asker;
mod expected;
mod names;
mod recording;
mod scripts;
mod tree;

use std::fmt::Write as _;

use mink_kafka_wire::OFFERED;
use mink_testkit::parts::Kafka;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use asker::{Answers, Asker};
use tree::Tree;

/// What a node does by itself, or can't be told otherwise.
const PROPERTIES: [&str; 4] = [
    "num.partitions=1",
    "log.retention.ms=604800000",
    "log.retention.check.interval.ms=86400000",
    "log.initial.task.delay.ms=86400000",
];
const DIFFERENCES_SHOWN: usize = 400;
const COMPATIBILITY: &str = include_str!("../../../docs/compatibility.md");

fn is_asked(api: &str) -> bool {
    std::env::var("MINK_E2E_APIS").map_or(true, |apis| apis.split(',').any(|asked| asked == api))
}

async fn answers_of(address: &str) -> Answers {
    let mut asker = Asker::connect(address).await;
    for offer in OFFERED.iter().filter(|offer| is_asked(offer.key.name())) {
        for version in offer.decoded.iter() {
            asker.begin(offer.key, version).await;
            scripts::run(&mut asker).await;
        }
    }
    asker.answers
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recording_is_what_kafka_says() {
    let is_recording = std::env::var_os("MINK_E2E_RECORD").is_some_and(|value| value == "1");
    if !is_recording && !setup::is_long() {
        eprintln!("skip kafka: a live one is asked with MINK_E2E_LONG=1");
        return;
    }
    let Some(kafka) = skip::available("kafka", Kafka::start(&PROPERTIES).await) else { return };
    let answers = answers_of(&kafka.bootstrap()).await;
    if is_recording {
        return recording::write(&answers);
    }
    let recorded = recording::files(&recording::read(is_asked));
    for (api, text) in recording::files(&answers) {
        let changed = text.lines().filter(|line| !recorded[&api].lines().any(|other| other == *line));
        assert_eq!(changed.collect::<Vec<_>>(), Vec::<&str>::new(), "Kafka says something else on {api}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_answers_as_kafka_does_but_where_it_says_why() {
    let folder = Folder::new();
    // As the recorded Kafka was started.
    let config = setup::node(&folder)
        .flag("--kafka-rebalance-delay", "0s")
        .flag("--kafka-session-timeout-min", "100ms");
    let config = config.allow_line("kafka connection closed").allow_line("nothing of a compacted table");
    let node = config.start().await.unwrap();
    let kafka = recording::read(is_asked);
    let mink = answers_of(node.kafka()).await;
    if let Some(path) = std::env::var_os("MINK_E2E_ANSWERS") {
        std::fs::write(path, recording::files(&mink).into_values().collect::<String>()).unwrap();
    }
    let (unexpected, unmet) = compare(&kafka, &mink);
    assert!(
        unexpected.is_empty() && unmet.is_empty(),
        "{} differences:\n{}\n{unmet}",
        unexpected.len(),
        shown(&unexpected)
    );
}

fn shown(lines: &[String]) -> String {
    lines.iter().take(DIFFERENCES_SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// The differences that are not in the list, and the entries of the list that no difference meets.
fn compare(kafka: &Answers, mink: &Answers) -> (Vec<String>, String) {
    let mut unexpected = Vec::new();
    let list = expected::list();
    let mut met = vec![false; list.len()];
    for (asked, answer) in mink {
        let (api, case, version) = asked;
        let Some(recorded) = kafka.get(asked) else {
            unexpected.push(format!("{api} {version} {case}: not recorded, Mink says {answer}"));
            continue;
        };
        for difference in Tree::differences(&Tree::of_line(recorded), &Tree::of_line(answer)) {
            let at = list.iter().position(|expected| expected.is_met_by(asked, &difference));
            match at {
                Some(at) => met[at] = true,
                None => unexpected.push(format!(
                    "{api} {version} {case}: {}: Kafka {}, Mink {}",
                    difference.path,
                    difference.kafka.as_deref().unwrap_or("absent"),
                    difference.mink.as_deref().unwrap_or("absent")
                )),
            }
        }
    }
    for asked in kafka.keys().filter(|asked| !mink.contains_key(*asked)) {
        unexpected.push(format!("{asked:?} is recorded and was not asked"));
    }
    let mut unmet = String::new();
    for (expected, _) in list.iter().zip(met).filter(|(expected, met)| !met && is_asked(&expected.api)) {
        let _ = writeln!(unmet, "in the list and not there: {expected:?}");
    }
    (unexpected, unmet)
}

#[test]
fn every_reason_stands_in_the_compatibility_page() {
    for expected in expected::list() {
        let key = format!("[{}]", expected.reason);
        assert!(COMPATIBILITY.contains(&key), "docs/compatibility.md has no reason {key}");
    }
}
