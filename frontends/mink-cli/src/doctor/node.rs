//! A running node: does it answer, is it ready, does a record go in and out?
//!
//! Lives on: the command's task.
use super::Finding;
use crate::address::{Kafka, NodeAddress, Origin, Place};
use crate::api::{Api, Page};
use crate::failure::Failure;
use crate::numbers;
use mink_client::{Client, ClientError, Producer, ProducerConfig, Reader, Record};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a record may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clocks that differ by more confuse people who read by time.
const SKEW_MAX_S: i64 = 5;
/// Bytes without a stream object beyond which a restart takes noticeably longer.
const UNTRIMMED_BYTES_MAX: u64 = 512 << 20;

const START: &str = "start a node with `mink serve`, or say where it is with --addr";

pub(super) async fn check(node: &NodeAddress, write: bool) -> Result<Vec<Finding>, Failure> {
    let place = node.admin.place()?;
    let told = node.admin.describe().await;
    let mut findings = vec![match &told {
        Ok(told) => Finding::good(
            "node",
            format!("node {} of cluster {}, version {}", told.node_id, told.cluster, told.version),
        ),
        Err(failure) => failed("node", failure),
    }];
    let api = match (&place, &told) {
        // A node on its way up says here how far it is, and nothing else yet.
        (Place::Http(authority), _) => Some(Api::at(authority.clone(), Origin::Addr)?),
        (Place::Flight(_), Ok(told)) if !told.http.is_empty() => Some(node.http().await?),
        (Place::Flight(_), _) => None,
    };
    match (&api, &told) {
        (Some(api), _) => findings.extend(http_findings(api).await),
        (None, Ok(_)) => findings.push(Finding::good("http listener", "off")),
        (None, Err(_)) => {}
    }
    match &told {
        Ok(told) if told.flight.is_empty() => findings.push(Finding::good("flight listener", "off")),
        Ok(told) => findings.push(match node.flight().await {
            Ok(_) => Finding::good("flight listener", format!("answers at {}", told.flight)),
            Err(failure) => failed("flight listener", &failure),
        }),
        Err(_) => {}
    }
    match (&node.kafka, &told) {
        (None, Ok(told)) if told.kafka.is_empty() => findings.push(Finding::good("kafka listener", "off")),
        (None, Err(_)) => {}
        _ => findings.extend(kafka_findings(node, write).await),
    }
    Ok(findings)
}

/// What could not be had: the cause, and what to do behind it.
fn failed(check: &'static str, failure: &Failure) -> Finding {
    let (found, remedy) = failure.words().split_once("; ").unwrap_or((failure.words(), START));
    Finding::bad(check, found, remedy)
}

async fn http_findings(api: &Api) -> Vec<Finding> {
    let page = match api.page("/readyz").await {
        Ok(page) => page,
        Err(failure) => return vec![failed("http listener", &failure)],
    };
    let mut findings = vec![Finding::good("http listener", format!("answers at {}", api.authority()))];
    findings.extend(skew(page.date.as_deref(), jiff::Timestamp::now()));
    findings.push(ready(&page));
    match api.get("/status").await {
        Ok(status) => findings.extend(status_findings(&status)),
        // A node on its way up has said so above.
        Err(_) if !page.status.is_success() => {}
        Err(error) => {
            findings.push(Finding::bad("status", error.words(), "is this a Mink node of this version?"));
        }
    }
    findings
}

fn ready(page: &Page) -> Finding {
    if page.status.is_success() {
        return Finding::good("ready", "the node serves");
    }
    let why: Vec<&str> = page.text.lines().collect();
    Finding::bad(
        "ready",
        why.join("; "),
        "the node's log says more; it becomes ready by itself once that is mended",
    )
}

/// The node's clock against ours, to the second that HTTP tells.
fn skew(date: Option<&str>, now: jiff::Timestamp) -> Option<Finding> {
    let theirs = jiff::fmt::rfc2822::parse(date?).ok()?.timestamp();
    let seconds = now.as_second() - theirs.as_second();
    Some(if seconds.abs() > SKEW_MAX_S {
        let remedy = "run an NTP client on both machines: times of records and retention go by these clocks";
        Finding::warning("node's clock", format!("{seconds} s apart from this machine's"), remedy)
    } else {
        Finding::good("node's clock", "agrees with this machine's")
    })
}

fn status_findings(status: &Value) -> Vec<Finding> {
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    let number = |name: &str| status.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut findings = vec![
        Finding::good("runtime", format!("{}, {} shards", text("runtime"), numbers::count(number("shards")))),
        Finding::good("storage", text("storage")),
        Finding::good("database", format!("{}, at row {}", text("database"), number("metadata_index"))),
    ];
    findings.push(if status.get("lease").and_then(Value::as_bool) == Some(true) {
        Finding::good("lease", "held")
    } else {
        Finding::bad("lease", "not held: reads wait", "the database does not answer the node; see its log")
    });
    let lost: Vec<&str> = status
        .get("lost")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    findings.push(if lost.is_empty() {
        Finding::good("stored data", "nothing is missing")
    } else {
        let remedy = "someone removed objects from the store: restore them from a backup or version, then restart the node";
        Finding::bad("stored data", format!("lost: {}", lost.join(", ")), remedy)
    });
    let untrimmed = number("wal_untrimmed_bytes");
    findings.push(if untrimmed > UNTRIMMED_BYTES_MAX {
        let remedy =
            "flushes do not keep up: look for refusals by the store or the database in the node's log";
        Finding::warning("WAL", format!("{} not flushed", numbers::bytes(untrimmed)), remedy)
    } else {
        Finding::good("WAL", format!("{} not flushed", numbers::bytes(untrimmed)))
    });
    findings
}

async fn kafka_findings(node: &NodeAddress, write: bool) -> Vec<Finding> {
    let Kafka { client, address } = match node.kafka().await {
        Ok(kafka) => kafka,
        Err(failure) => return vec![failed("kafka listener", &failure)],
    };
    let mut findings = vec![Finding::good("kafka listener", format!("answers at {address}"))];
    if !write {
        return findings;
    }
    let topic = format!("mink-doctor-{}", uuid::Uuid::new_v4().simple());
    let begun = Instant::now();
    let ended = round_trip(&client, &topic).await;
    let took = numbers::time(begun.elapsed());
    findings.push(match ended {
        Ok(()) => Finding::good("write and read", format!("a record went in and came out in {took}")),
        Err(error) => {
            let remedy = "if the Kafka listener answers but a write fails, its advertised address may be wrong (--kafka-advertise), or the store refuses";
            Finding::bad("write and read", error.to_string(), remedy)
        }
    });
    match client.delete_topic(&topic).await {
        Err(error) if client.find_topic(&topic).await.is_ok_and(|found| found.is_some()) => {
            findings.push(Finding::warning(
                "clean-up",
                error.to_string(),
                format!("mink table drop kafka.{topic}"),
            ));
        }
        _ => {}
    }
    findings
}

async fn round_trip(client: &Client, topic: &str) -> Result<(), ClientError> {
    client.create_topic(topic, Some(1), &[]).await?;
    let config = ProducerConfig { delivery_timeout: PATIENCE, ..ProducerConfig::default() };
    let producer = Producer::start(client, topic, config).await?;
    let offset = producer.send(0, Record::new(Some(b"mink"), Some(b"doctor"))).await?.await?;
    producer.close().await?;
    let read = Reader::new(client, topic, 0).read(offset, PATIENCE).await?;
    match read.records.first() {
        Some(record) if record.value.as_deref() == Some(b"doctor") => Ok(()),
        _ => Err(ClientError::misread("the record that was acked does not come back")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use serde_json::json;

    #[test]
    fn a_sick_node_is_told_what_to_do() {
        let status = json!({ "lease": false, "lost": ["wal/7"], "wal_untrimmed_bytes": 1_u64 << 31 });
        let findings = status_findings(&status);
        let sick: Vec<&Finding> =
            findings.iter().filter(|finding| finding.severity != Severity::Good).collect();
        assert_eq!(
            sick.iter().map(|finding| finding.check).collect::<Vec<_>>(),
            ["lease", "stored data", "WAL"]
        );
        assert!(sick.iter().all(|finding| !finding.remedy.is_empty()));
        let well = json!({ "lease": true, "runtime": "uring", "shards": 8, "lost": [], "wal_untrimmed_bytes": 0, "storage": "file:///x", "database": "sqlite" });
        let findings = status_findings(&well);
        assert!(findings.iter().all(|finding| finding.severity == Severity::Good));
        assert!(findings.iter().any(|finding| finding.found == "uring, 8 shards"), "{findings:?}");
    }

    #[test]
    fn what_could_not_be_had_is_told_apart_from_what_to_do() {
        let finding = failed("node", &Failure::failed("nobody answers; start it; or not"));
        assert_eq!((finding.found.as_str(), finding.remedy.as_str()), ("nobody answers", "start it; or not"));
        assert_eq!(failed("node", &Failure::failed("nobody answers")).remedy, START);
    }

    #[test]
    fn clocks_are_compared_to_the_second() {
        let now: jiff::Timestamp = "2026-01-31T10:00:00Z".parse().unwrap();
        let severity = |date| skew(Some(date), now).map(|finding| finding.severity);
        assert_eq!(severity("Sat, 31 Jan 2026 09:59:58 GMT"), Some(Severity::Good));
        assert_eq!(severity("Sat, 31 Jan 2026 10:01:00 GMT"), Some(Severity::Warning));
        assert_eq!(severity("nonsense"), None);
    }
}
