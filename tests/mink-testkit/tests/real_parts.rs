//! The parts themselves: real servers come up, real clients run against them. What can't be had here is skipped by name.

use std::time::Duration;

use mink_testkit::parts::{Kafka, SeaweedFs};
use mink_testkit::{ErrorKind, client, skip};

const RUN_WITHIN: Duration = Duration::from_mins(2);

#[tokio::test]
async fn seaweedfs_serves_a_bucket() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    let (first, second) = (store.bucket("parts").await.unwrap(), store.bucket("parts").await.unwrap());
    assert_ne!(first, second);
    store.tool(&["put", &first, "a/key"]).await.unwrap();
    assert_eq!(store.tool(&["list", &first]).await.unwrap(), "a/key\n");
    assert_eq!(store.tool(&["list", &second]).await.unwrap(), "");
    store.tool(&["delete", &first, "a/key"]).await.unwrap();
    let error = store.tool(&["get", &first, "a/key"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("NoSuchKey"), "{error}");
}

#[tokio::test]
#[ignore = "downloads Apache Kafka and the clients; run it after a change of tests/clients"]
async fn every_client_brings_its_records_through_apache_kafka() {
    let Some(kafka) = skip::available("kafka", Kafka::shared().await) else {
        return;
    };
    let address = kafka.bootstrap();
    for name in ["confluent", "kafka_python", "aiokafka", "kafkajs", "kcat"] {
        if skip::available(name, client::install(name).await).is_none() {
            continue;
        }
        let topic = format!("roundtrip-{name}");
        let args =
            ["roundtrip", "--bootstrap", &address, "--topic", &topic, "--codec", "gzip", "--count", "2000"];
        let summary = client::run(name, &args, RUN_WITHIN).await.unwrap();
        assert_eq!(summary["records"], 2000, "{summary}");
        assert_eq!(summary["partitions"], 4, "{summary}");
    }
    // A comparison with more records than there are must fail, or it compares nothing.
    let args = ["consume", "--bootstrap", &address, "--topic", "roundtrip-confluent", "--count", "2001"];
    let error = client::run("confluent", &args, RUN_WITHIN).await.unwrap_err();
    assert!(error.to_string().contains("record 2000 is missing"), "{error}");
}
