//! What a load came to, for people and for programs.
//!
//! Lives on: the command's task.
use super::cost::Cost;
use super::csv;
use crate::failure::Failure;
use crate::histogram::PERCENTILES;
use crate::metrics::StoreWork;
use crate::output::{Form, printer};
use crate::{histogram, numbers};
use hdrhistogram::Histogram;
use mink_client::load::LoadResult;
use mink_server::CpuTime;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Duration;

/// Keys and values below which nothing is told per GiB in a table: what a node does now and then would weigh too much.
const RATED_BYTES_MIN: u64 = 64 << 20;
/// Requests that a store bills, in the order in which they are told.
const OPERATIONS: [&str; 4] = ["put", "get", "list", "delete"];

/// A load that has ended.
pub(super) struct Run<'a> {
    pub(super) verb: &'static str,
    pub(super) settings: Value,
    pub(super) result: &'a LoadResult,
    pub(super) cost: &'a Cost,
}

impl Run<'_> {
    /// In two lines, for a picture.
    pub(super) fn titles(&self) -> [String; 2] {
        let result = self.result;
        let p99 = |us: &Histogram<u64>| numbers::time(Duration::from_micros(us.value_at_quantile(0.99)));
        let title = format!(
            "mink bench {} {}: {} MiB/s, {} records/s, p99 {}",
            self.verb,
            self.setting("table").as_str().unwrap_or_default(),
            numbers::decimal(result.mib_per_second(), 1),
            numbers::decimal(result.records_per_second(), 0),
            p99(&result.latency)
        );
        let late = if result.late.is_empty() {
            String::new()
        } else {
            format!("; offered late, p99 {}", p99(&result.late))
        };
        let below = format!(
            "{}; {}, {} in {}{late}",
            jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC"),
            numbers::records(result.records),
            numbers::bytes(result.bytes),
            numbers::time(result.elapsed)
        );
        [title, below]
    }

    fn setting(&self, name: &str) -> &Value {
        self.settings.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn print(&self, form: Form) -> Result<(), Failure> {
        if form == Form::Csv {
            let mut printer = printer(form, &csv::NAMES)?;
            printer.row(csv::row(&self.json()))?;
            return printer.finish();
        }
        // A form that is refused is refused here too.
        let mut printer = printer(form, &["measure", "value"])?;
        if form == Form::Json {
            drop(printer);
            return Ok(writeln!(std::io::stdout(), "{}", self.json())?);
        }
        for (name, value) in self.rows() {
            printer.row(vec![name.into(), value.into()])?;
        }
        printer.finish()
    }

    fn rows(&self) -> Vec<(String, String)> {
        let result = self.result;
        let mut rows = self.setting_rows();
        let mut row = |name: &str, value: String| rows.push((name.into(), value));
        row("records", numbers::count(result.records));
        row("errors", numbers::count(result.errors));
        if result.unacked > 0 {
            let all = numbers::records(result.unacked);
            row("no ack", format!("{all}; they are counted with the time until the run ended"));
        }
        if result.unsent > 0 {
            row("due, not offered", format!("{} of them", numbers::count(result.unsent)));
        }
        row("bytes", numbers::bytes(result.bytes));
        if let Some(mean) = result.bytes.checked_div(result.batches) {
            let mean = numbers::bytes(mean);
            let of = if self.is_of_rows() { "rows" } else { "keys and values" };
            row("batches", format!("{} of {mean} of {of}", numbers::count(result.batches)));
        }
        row("time", numbers::time(result.elapsed));
        if !result.drain.is_zero() {
            let later = numbers::records(result.records - result.records_in_time.min(result.records));
            row("drain", format!("{}, in which {later} came; in no throughput", numbers::time(result.drain)));
        }
        row("records per second", numbers::decimal(result.records_per_second(), 0));
        row("MiB per second", numbers::decimal(result.mib_per_second(), 1));
        row(&format!("latency from when {}", self.latency_from()), latency(&result.latency));
        if !result.late.is_empty() {
            row("offered after it was due", latency(&result.late));
        }
        if !result.end_to_end.is_empty() {
            row("end to end", latency(&result.end_to_end));
        }
        self.add_costs(&mut rows);
        rows
    }

    /// What is not plain from the command line.
    fn setting_rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let count = |name| self.setting(name).as_u64();
        for name in ["partitions", "buckets"] {
            if let Some(parts) = count(name) {
                let is_old = self.setting("table_was_there").as_bool() == Some(true);
                let why = if is_old { " (the table was there)" } else { "" };
                rows.push((name.into(), format!("{}{why}", numbers::count(parts))));
            }
        }
        let used = self.result.connections as u64;
        if let Some(asked) = count("connections").filter(|asked| *asked > used) {
            let (used, asked) = (numbers::count(used), numbers::count(asked));
            rows.push((
                "connections".into(),
                format!("{used} of {asked}: one for each {} is the most", self.part()),
            ));
        }
        if let Some(seed) = count("seed") {
            let is_poisson = self.setting("arrivals") == "poisson";
            let (name, how) = if is_poisson { ("arrivals", "poisson, ") } else { ("rows", "") };
            rows.push((name.into(), format!("{how}--seed {seed}")));
        }
        rows
    }

    fn add_costs(&self, rows: &mut Vec<(String, String)>) {
        let cost = self.cost;
        let mut row = |name: &str, value: String| rows.push((name.into(), value));
        let uncounted = |why: &str| format!("not counted: {why}");
        row("node CPU", cost.node.as_ref().map_or_else(|why| uncounted(why), |cpu| self.cpu_text(*cpu)));
        row("client CPU", cost.client.map_or_else(|| "not counted".into(), |cpu| self.cpu_text(cpu)));
        let work = match &cost.store {
            Ok(work) => work,
            Err(why) => return row("requests", uncounted(why)),
        };
        for op in OPERATIONS {
            let (requests, bytes) = (work.requests_of(op), work.bytes_of(op));
            let requests = self.with_rate(to_f64(requests), &numbers::count(requests), "per GiB");
            let told =
                if bytes == 0 { requests } else { format!("{requests}; {}", self.with_byte_rate(bytes)) };
            row(&format!("{} requests", op.to_uppercase()), told);
        }
    }

    /// Whether it is of Arrow batches.
    fn is_of_rows(&self) -> bool {
        matches!(self.verb, "put" | "scan")
    }

    /// What a table has several of.
    fn part(&self) -> &'static str {
        if self.is_of_rows() { "bucket" } else { "partition" }
    }

    pub(super) fn latency_from(&self) -> &'static str {
        match (self.verb, self.settings.get("loop").and_then(Value::as_str)) {
            ("consume" | "scan", _) => "asked",
            (_, Some("open")) => "due",
            _ => "offered",
        }
    }

    fn cpu_text(&self, cpu: CpuTime) -> String {
        let total = cpu.total_s();
        let told = format!("{total:.2} s ({:.2} user, {:.2} system)", cpu.user_s, cpu.system_s);
        self.with_rate(total, &told, "s per GiB")
    }

    fn with_rate(&self, amount: f64, told: &str, unit: &str) -> String {
        match self.cost.per_gib(amount).filter(|_| self.cost.bytes >= RATED_BYTES_MIN) {
            Some(rate) => format!("{told}, {} {unit}", numbers::decimal(rate, 2)),
            None => format!("{told}, - {unit}"),
        }
    }

    fn with_byte_rate(&self, bytes: u64) -> String {
        let told = numbers::bytes(bytes);
        match self.cost.per_byte(to_f64(bytes)).filter(|_| self.cost.bytes >= RATED_BYTES_MIN) {
            Some(rate) => format!("{told}, {} bytes per byte", numbers::decimal(rate, 2)),
            None => format!("{told}, - bytes per byte"),
        }
    }

    /// One object; units stand in the names.
    fn json(&self) -> Value {
        let result = self.result;
        let per_second = result.series.iter().map(|second| {
            let p99_ms = rounded(second.p99.as_secs_f64() * 1e3);
            json!({ "records": second.records, "bytes": second.bytes, "p99_ms": p99_ms })
        });
        let mut all = json!({
            "bench": self.verb,
            "version": env!("CARGO_PKG_VERSION"),
            "ended_at": jiff::Timestamp::now().to_string(),
            "machine": machine(),
            "settings": self.settings,
            "records": result.records,
            "records_in_time": result.records_in_time,
            "errors": result.errors,
            "unacked": result.unacked,
            "unacked_counted_as": (result.unacked > 0).then_some("the time until the run ended"),
            "first_error": result.first_error.as_ref().map(ToString::to_string),
            "unsent": result.unsent,
            "bytes": result.bytes,
            "batches": (result.batches > 0).then_some(result.batches),
            "seconds": rounded(result.elapsed.as_secs_f64()),
            "drain_seconds": rounded(result.drain.as_secs_f64()),
            "connections": result.connections,
            "records_per_second": rounded(result.records_per_second()),
            "mib_per_second": rounded(result.mib_per_second()),
            "latency_from": self.latency_from(),
            "latency_ms": latency_ms(&result.latency),
            "late_ms": latency_ms(&result.late),
            "end_to_end_ms": latency_ms(&result.end_to_end),
            "per_second": per_second.collect::<Vec<_>>(),
        });
        if let (Value::Object(all), Value::Object(costs)) = (&mut all, self.cost_json()) {
            all.extend(costs);
        }
        all
    }

    fn cost_json(&self) -> Value {
        let cost = self.cost;
        let node = cost.node.as_ref().ok().copied();
        let store = cost.store.as_ref().ok();
        let cpu = |cpu: Option<CpuTime>| {
            cpu.map(
                |cpu| json!({ "user": rounded(cpu.user_s), "system": rounded(cpu.system_s), "total": rounded(cpu.total_s()) }),
            )
        };
        let cpu_rate = |cpu: Option<CpuTime>| cpu.and_then(|cpu| cost.per_gib(cpu.total_s())).map(rounded);
        let per_op = |rate: &dyn Fn(&StoreWork, &str) -> Option<f64>| {
            store.map(|work| {
                let rates =
                    OPERATIONS.iter().map(|op| ((*op).to_owned(), json!(rate(work, op).map(rounded))));
                rates.collect::<Map<_, _>>()
            })
        };
        json!({
            "counted_bytes": cost.bytes,
            "node_cpu_seconds": cpu(node),
            "node_cpu_seconds_per_gib": cpu_rate(node),
            "node_cpu_not_counted": cost.node.as_ref().err(),
            "client_cpu_seconds": cpu(cost.client),
            "client_cpu_seconds_per_gib": cpu_rate(cost.client),
            "store_not_counted": cost.store.as_ref().err(),
            "store_requests": store.map(|work| &work.requests),
            "store_requests_per_gib": per_op(&|work, op| cost.per_gib(to_f64(work.requests_of(op)))),
            "store_bytes": store.map(|work| &work.bytes),
            "store_bytes_per_byte": per_op(&|work, op| cost.per_byte(to_f64(work.bytes_of(op)))),
        })
    }
}

fn latency(us: &Histogram<u64>) -> String {
    if us.is_empty() {
        return "none".into();
    }
    format!(
        "{}   mean {}",
        histogram::percentiles(us),
        numbers::time(Duration::from_secs_f64(us.mean() / 1e6))
    )
}

/// Null if there is none.
fn latency_ms(us: &Histogram<u64>) -> Value {
    if us.is_empty() {
        return Value::Null;
    }
    let ms = |us: u64| to_f64(us) / 1e3;
    let mut all: Map<String, Value> = PERCENTILES
        .iter()
        .map(|percent| (format!("p{percent}"), json!(ms(us.value_at_quantile(percent / 100.0)))))
        .collect();
    all.insert("max".into(), json!(ms(us.max())));
    all.insert("mean".into(), json!(rounded(us.mean() / 1e3)));
    Value::Object(all)
}

/// Where this was measured.
fn machine() -> Value {
    let line = |path: &str| std::fs::read_to_string(path).ok();
    let model = line("/proc/cpuinfo").and_then(|text| {
        let model = text.lines().find_map(|line| line.strip_prefix("model name"))?;
        Some(model.trim_start_matches(['\t', ' ', ':']).to_owned())
    });
    json!({
        "cores": std::thread::available_parallelism().ok().map(std::num::NonZeroUsize::get),
        "cpu": model,
        "arch": std::env::consts::ARCH,
        "kernel": line("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// To three digits behind the point.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::sample::empty;
    use super::*;

    /// A second and a half of a producer whose node restarted.
    fn result() -> LoadResult {
        let mut result = LoadResult {
            records: 1_234_567,
            bytes: 1_234_567_000,
            records_in_time: 1_234_000,
            bytes_in_time: 1_234_000_000,
            unacked: 4321,
            unsent: 4000,
            elapsed: Duration::from_secs(1),
            drain: Duration::from_millis(500),
            connections: 4,
            ..empty()
        };
        result.latency.record_n(2000, 1000).unwrap();
        result
    }

    fn cost(bytes: u64) -> Cost {
        let page = "mink_object_store_requests_total{op=\"put\",outcome=\"ok\"} 12345";
        let (store, node) = (Ok(StoreWork::parse(page)), Err("the node restarted".into()));
        Cost { store, node, client: None, bytes }
    }

    fn rows(settings: Value, cost: &Cost) -> String {
        let result = result();
        let run = Run { verb: "produce", settings, result: &result, cost };
        let rows = run.rows().into_iter().map(|(name, value)| format!("{name}: {value}"));
        rows.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_table_tells_what_had_no_ack_what_came_late_and_what_was_not_counted() {
        let settings = json!({ "partitions": 8, "table_was_there": true, "connections": 100, "arrivals": "poisson", "seed": 7 });
        let rows = rows(settings, &cost(1 << 30));
        for line in [
            "partitions: 8 (the table was there)",
            "connections: 4 of 100: one for each partition is the most",
            "arrivals: poisson, --seed 7",
            "records: 1,234,567",
            "no ack: 4,321 records; they are counted with the time until the run ended",
            "due, not offered: 4,000 of them",
            "drain: 500.0 ms, in which 567 records came; in no throughput",
            "records per second: 1,234,000",
            "MiB per second: 1,176.8",
            "node CPU: not counted: the node restarted",
            "PUT requests: 12,345, 12,345.00 per GiB",
        ] {
            assert!(rows.lines().any(|row| row == line), "{line}, in\n{rows}");
        }
    }

    #[test]
    fn too_little_data_has_no_figures_per_gib() {
        let rows = rows(json!({}), &cost(RATED_BYTES_MIN - 1));
        assert!(rows.contains("PUT requests: 12,345, - per GiB"), "{rows}");
    }

    #[test]
    fn programs_get_null_with_the_reason_and_few_digits() {
        let (result, cost) =
            (LoadResult { elapsed: Duration::from_nanos(1_333_333_333), ..result() }, cost(1 << 30));
        let run =
            Run { verb: "produce", settings: json!({ "table": "kafka.t" }), result: &result, cost: &cost };
        let all = run.json();
        assert_eq!((&all["node_cpu_seconds"], &all["store_not_counted"]), (&Value::Null, &Value::Null));
        assert_eq!(all["node_cpu_not_counted"], "the node restarted");
        assert_eq!((&all["seconds"], &all["drain_seconds"]), (&json!(1.333), &json!(0.5)));
        assert_eq!(
            (&all["unacked"], &all["unacked_counted_as"]),
            (&json!(4321), &json!("the time until the run ended"))
        );
        let row = csv::row(&all);
        let value = |name| row.get(csv::NAMES.iter().position(|other| *other == name).unwrap()).unwrap();
        assert_eq!((value("table"), value("put_requests")), (&json!("kafka.t"), &json!(12_345)));
        assert_eq!((value("node_cpu_seconds"), value("records")), (&Value::Null, &json!(1_234_567)));
        let [title, below] = run.titles();
        assert!(title.contains("kafka.t") && title.contains("p99 2.0 ms"), "{title}");
        assert!(below.contains("UTC; 1,234,567 records, 1.1 GiB in 1.33 s"), "{below}");
    }
}
