//! `mink bench` tells what it did: its counts are those of the table, its costs those of the node, its picture is one.

use std::time::Duration;

use mink_testkit::node::{Node, binary};
use mink_testkit::process::{Launch, Output};
use serde_json::Value;

use crate::bench::{Counters, to_f64};
use crate::setup::{self, Folder};

const ENDS_WITHIN: Duration = Duration::from_mins(2);
const RECORDS: u64 = 20_000;

/// Runs `mink bench`, which must succeed; its result, and what it said beside.
async fn bench(folder: &Folder, node: &Node, args: &[&str]) -> (Value, String) {
    let mut bench = Launch::new("mink-bench", binary("mink").unwrap())
        .log_dir(folder.join("logs"))
        .arg("bench")
        .args(args.iter().copied())
        .args(["--kafka", node.kafka(), "--output", "json"])
        .start()
        .unwrap();
    let status = bench.wait(ENDS_WITHIN).await.unwrap();
    let said = bench.text(Output::Stdout).unwrap();
    let beside = bench.text(Output::Stderr).unwrap();
    assert!(status.success(), "{said}\n{beside}");
    (serde_json::from_str(&said).unwrap(), beside)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[tokio::test]
async fn what_went_in_comes_out_and_costs_are_counted() {
    let folder = Folder::new();
    let node = setup::node(&folder).storage("memory://").start().await.unwrap();
    let (plot, histogram) = (folder.join("acks.svg"), folder.join("acks.hgrm"));
    let records = RECORDS.to_string();
    let address = format!("http://{}", node.http());
    let mut args = vec!["produce", "kafka.flights", "--records", &records, "--values", "flights"];
    args.extend(["--keys", "flights", "--batch-bytes", "128KiB", "--connections", "2", "--addr", &address]);
    args.extend(["--plot", plot.to_str().unwrap(), "--histogram", histogram.to_str().unwrap()]);
    let before = Counters::of(node.http()).await;
    let (produced, beside) = bench(&folder, &node, &args).await;
    let cost = Counters::of(node.http()).await.since(before);
    assert_eq!(
        (&produced["records"], &produced["errors"], beside.as_str()),
        (&RECORDS.into(), &0.into(), "")
    );
    assert_eq!(
        (&produced["settings"]["loop"], &produced["latency_from"]),
        (&"closed".into(), &"offered".into())
    );
    assert_eq!(produced["counted_bytes"], produced["bytes"], "no warm-up: all of it is counted");
    let slowest = produced["per_second"].as_array().unwrap().iter().map(|second| number(&second["p99_ms"]));
    let slowest = slowest.fold(0.0, f64::max);
    assert!(
        slowest >= 0.9 * number(&produced["latency_ms"]["p50"]),
        "the seconds' latencies are those: {produced}"
    );
    assert!(
        number(&produced["latency_ms"]["p50"]) <= number(&produced["latency_ms"]["p99.99"]),
        "{produced}"
    );
    let puts = produced["store_requests"]["put"].as_u64().unwrap();
    assert!(puts > 0 && puts <= cost.puts, "{puts} of {cost:?}");
    let rate = to_f64(puts) * f64::from(1 << 30) / number(&produced["bytes"]);
    let told = number(&produced["store_requests_per_gib"]["put"]);
    assert!((rate - told).abs() < 0.001 * rate, "{told}, not {rate}");
    assert!(number(&produced["store_bytes_per_byte"]["put"]) > 0.9, "{produced}");
    assert!(number(&produced["node_cpu_seconds"]["total"]) >= 0.0, "{produced}");
    let seconds: u64 = produced["per_second"]
        .as_array()
        .unwrap()
        .iter()
        .map(|second| second["records"].as_u64().unwrap())
        .sum();
    assert_eq!(seconds, RECORDS);
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"), "{drawn}");
    assert_eq!(drawn.matches("class=\"line\"").count(), 2, "latency and throughput");
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    assert!(std::fs::read_to_string(histogram).unwrap().contains(&records));

    let (read, _) = bench(&folder, &node, &["consume", "kafka.flights", "--addr", &address]).await;
    assert_eq!((&read["records"], &read["bytes"]), (&produced["records"], &produced["bytes"]));
    assert_eq!(read["latency_from"], "asked");
}

#[tokio::test]
async fn a_rate_is_kept_and_its_warm_up_left_out() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).storage("memory://").start().await.unwrap();
    let pid = node.process().id().to_string();
    let mut args = vec!["produce", "kafka.rate", "--rate", "2000", "--arrivals", "even", "--warmup", "1s"];
    args.extend(["--duration", "2s", "--record-bytes", "10..100", "--addr", "none", "--node-pid", &pid]);
    let (result, beside) = bench(&folder, &node, &args).await;
    assert_eq!(
        (&result["records"], &result["errors"], &result["unsent"]),
        (&4000.into(), &0.into(), &0.into())
    );
    assert_eq!((&result["settings"]["loop"], &result["latency_from"]), (&"open".into(), &"due".into()));
    assert!(number(&result["late_ms"]["p50"]) <= number(&result["latency_ms"]["max"]), "{result}");
    assert!(number(&result["bytes"]) >= 40_000.0 && number(&result["bytes"]) <= 400_000.0, "{result}");
    // Nobody was asked, so nothing is said of the store; the process was.
    assert_eq!(result["store_requests"], Value::Null);
    assert!(beside.contains("requests to the store are not counted: --addr none"), "{beside}");
    assert!(number(&result["node_cpu_seconds"]["total"]) >= 0.0, "{result}");
}
