//! Real clients, each with every codec it has: what they produce is what they and others consume, byte for byte.

use std::time::{Duration, Instant};

use mink_testkit::dataset::ROWS;
use mink_testkit::{client, skip};

use crate::setup::{self, Folder};

const RUN_WITHIN: Duration = Duration::from_mins(5);
/// Records with the codecs that a short run does not try with all of them.
const SAMPLE: usize = 10_000;

/// Each codec's round trip: `full` with all records, the others with a sample in the short form. Every second producer is idempotent.
async fn round_trips(name: &str, codecs: &[&str], full: &str) {
    if skip::available(name, client::install(name).await).is_none() {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let kafka = node.kafka().to_owned();
    for (number, codec) in codecs.iter().enumerate() {
        let count = if setup::is_long() || *codec == full { ROWS } else { SAMPLE };
        let (topic, count) = (format!("{name}-{codec}"), count.to_string());
        let mut args = vec!["roundtrip", "--bootstrap", &kafka, "--topic", &topic, "--partitions", "4"];
        args.extend(["--codec", codec, "--count", &count, "--timeout", "280"]);
        if number % 2 == 1 {
            args.push("--idempotent");
        }
        let begun = Instant::now();
        let summary = client::run(name, &args, RUN_WITHIN).await.unwrap();
        println!("{:.1} s: {summary}", begun.elapsed().as_secs_f64());
        assert_eq!(summary["records"].to_string(), count);
        assert_eq!(summary["partitions"], 4);
    }
    cold_start(name, &kafka).await;
    node.stop(RUN_WITHIN).await.unwrap();
}

/// The client's first word about a topic is a record: the topic is made by its use, and nothing is lost or reordered.
async fn cold_start(name: &str, kafka: &str) {
    for idempotent in [false, true] {
        let topic = format!("{name}-cold-{idempotent}");
        let mut args =
            vec!["roundtrip", "--bootstrap", kafka, "--topic", &topic, "--cold", "--count", "2000"];
        if idempotent {
            args.push("--idempotent");
        }
        let summary = client::run(name, &args, RUN_WITHIN).await.unwrap();
        assert_eq!(summary["partitions"], 1, "{summary}");
    }
}

const ALL: &[&str] = &["none", "gzip", "snappy", "lz4", "zstd"];

#[tokio::test]
async fn confluent_kafka_brings_every_record_through() {
    round_trips("confluent", ALL, "lz4").await;
}

#[tokio::test]
async fn kafka_python_brings_every_record_through() {
    round_trips("kafka_python", ALL, "gzip").await;
}

#[tokio::test]
async fn aiokafka_brings_every_record_through() {
    round_trips("aiokafka", ALL, "snappy").await;
}

#[tokio::test]
async fn kcat_brings_every_record_through() {
    round_trips("kcat", ALL, "zstd").await;
}

#[tokio::test]
async fn kafkajs_produces_and_confluent_kafka_reads_back() {
    round_trips("kafkajs", &["none", "gzip", "snappy"], "none").await;
}

/// Records that a short run brings through a group.
const GROUP_SAMPLE: usize = 2_000;
const GROUP_RECORDS: usize = 20_000;

/// Round trips of clients that read through a group: each record once, where its ack said, and the group's commits are where it read to. The
/// producer is idempotent. The short form tries `codec` alone.
async fn through_a_group(name: &str, codec: &str) {
    if skip::available(name, client::install(name).await).is_none() {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let kafka = node.kafka().to_owned();
    let count = if setup::is_long() { GROUP_RECORDS } else { GROUP_SAMPLE }.to_string();
    for codec in ALL.iter().filter(|each| setup::is_long() || **each == codec) {
        let topic = format!("{name}-{codec}");
        let mut args = vec!["roundtrip", "--bootstrap", &kafka, "--topic", &topic, "--partitions", "4"];
        args.extend(["--codec", codec, "--count", &count, "--timeout", "120", "--idempotent"]);
        let summary = client::run(name, &args, RUN_WITHIN).await.unwrap();
        println!("{summary}");
        assert_eq!((summary["records"].to_string(), &summary["partitions"]), (count.clone(), &4.into()));
    }
    if setup::is_long() {
        cold_start(name, &kafka).await;
    }
    node.stop(RUN_WITHIN).await.unwrap();
}

#[tokio::test]
#[ignore = "its client comes by Maven or as a Go module: by hand, with --ignored"]
async fn java_clients_of_3_9_read_through_a_group_what_they_wrote() {
    through_a_group("java_3_9", "lz4").await;
}

#[tokio::test]
#[ignore = "its client comes by Maven or as a Go module: by hand, with --ignored"]
async fn java_clients_of_4_4_read_through_a_group_what_they_wrote() {
    through_a_group("java_4_4", "zstd").await;
}

#[tokio::test]
#[ignore = "its client comes by Maven or as a Go module: by hand, with --ignored"]
async fn franz_go_reads_through_a_group_what_it_wrote() {
    through_a_group("franz_go", "snappy").await;
}

/// I2: one record per offset, whoever reads it.
#[tokio::test]
async fn each_client_reads_what_another_wrote() {
    let names = ["confluent", "kafka_python", "aiokafka", "kcat"];
    for name in names {
        if skip::available(name, client::install(name).await).is_none() {
            return;
        }
    }
    let folder = Folder::new();
    let node = setup::node(&folder).start().await.unwrap();
    let kafka = node.kafka().to_owned();
    let common = ["--bootstrap", &kafka, "--topic", "shared", "--count", "5000"];
    let produce = [&["produce"][..], &common, &["--partitions", "3", "--codec", "zstd"]].concat();
    client::run("confluent", &produce, RUN_WITHIN).await.unwrap();
    for name in names {
        let consume = [&["consume"][..], &common].concat();
        let summary = client::run(name, &consume, RUN_WITHIN).await.unwrap();
        assert_eq!(summary["partitions"], 3, "{summary}");
    }
}
