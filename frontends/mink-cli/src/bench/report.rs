//! What a load came to, for people and for programs.
//!
//! Lives on: the command's task.
use super::cost::Cost;
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
    /// In one line, for a picture.
    pub(super) fn title(&self) -> String {
        let result = self.result;
        format!(
            "mink bench {}: {:.1} MiB/s, {:.0} records/s, p99 {}",
            self.verb,
            result.mib_per_second(),
            result.records_per_second(),
            numbers::time(Duration::from_micros(result.latency.value_at_quantile(0.99)))
        )
    }

    pub(super) fn print(&self, form: Form) -> Result<(), Failure> {
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
        let (result, cost) = (self.result, self.cost);
        let uncounted = |text: Option<String>| text.unwrap_or_else(|| "not counted".into());
        let mut rows: Vec<(String, String)> = Vec::new();
        let mut row = |name: &str, value: String| rows.push((name.into(), value));
        row("records", numbers::count(result.records));
        row("errors", numbers::count(result.errors));
        if result.unsent > 0 {
            row("due, not offered", numbers::count(result.unsent));
        }
        row("bytes", numbers::bytes(result.bytes));
        if let Some(mean) = result.bytes.checked_div(result.batches) {
            let mean = numbers::bytes(mean);
            row("batches", format!("{} of {mean} of keys and values", numbers::count(result.batches)));
        }
        row("time", numbers::time(result.elapsed));
        row("records per second", format!("{:.0}", result.records_per_second()));
        row("MiB per second", format!("{:.1}", result.mib_per_second()));
        row(&format!("latency from when {}", self.latency_from()), latency(&result.latency));
        if !result.late.is_empty() {
            row("offered after it was due", latency(&result.late));
        }
        if !result.end_to_end.is_empty() {
            row("end to end", latency(&result.end_to_end));
        }
        row("node CPU", uncounted(cost.node.map(|cpu| self.cpu_text(cpu))));
        row("client CPU", uncounted(cost.client.map(|cpu| self.cpu_text(cpu))));
        for op in OPERATIONS {
            let told = cost.store.as_ref().map(|work| {
                let (requests, bytes) = (work.requests_of(op), work.bytes_of(op));
                let requests = self.with_rate(to_f64(requests), numbers::count(requests), "per GiB");
                if bytes == 0 { requests } else { format!("{requests}; {}", self.with_byte_rate(bytes)) }
            });
            row(&format!("{} requests", op.to_uppercase()), uncounted(told));
        }
        rows
    }

    fn latency_from(&self) -> &'static str {
        match (self.verb, self.settings.get("loop").and_then(Value::as_str)) {
            ("consume", _) => "asked",
            (_, Some("open")) => "due",
            _ => "offered",
        }
    }

    fn cpu_text(&self, cpu: CpuTime) -> String {
        let total = cpu.total_s();
        let told = format!("{total:.2} s ({:.2} user, {:.2} system)", cpu.user_s, cpu.system_s);
        self.with_rate(total, told, "s per GiB")
    }

    fn with_rate(&self, amount: f64, told: String, unit: &str) -> String {
        match self.cost.per_gib(amount) {
            Some(rate) => format!("{told}, {rate:.2} {unit}"),
            None => told,
        }
    }

    fn with_byte_rate(&self, bytes: u64) -> String {
        let told = numbers::bytes(bytes);
        match self.cost.per_byte(to_f64(bytes)) {
            Some(rate) => format!("{told}, {rate:.2} bytes per byte"),
            None => told,
        }
    }

    /// One object; units stand in the names.
    fn json(&self) -> Value {
        let result = self.result;
        let per_second = result.series.iter().map(|second| {
            let p99_ms = second.p99.as_secs_f64() * 1e3;
            json!({ "records": second.records, "bytes": second.bytes, "p99_ms": p99_ms })
        });
        let mut all = json!({
            "bench": self.verb,
            "version": env!("CARGO_PKG_VERSION"),
            "ended_at": jiff::Timestamp::now().to_string(),
            "machine": machine(),
            "settings": self.settings,
            "records": result.records,
            "errors": result.errors,
            "first_error": result.first_error.as_ref().map(ToString::to_string),
            "unsent": result.unsent,
            "bytes": result.bytes,
            "batches": (result.batches > 0).then_some(result.batches),
            "seconds": result.elapsed.as_secs_f64(),
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
        let cpu = |cpu: Option<CpuTime>| {
            cpu.map(
                |cpu| json!({ "user": rounded(cpu.user_s), "system": rounded(cpu.system_s), "total": rounded(cpu.total_s()) }),
            )
        };
        let cpu_rate = |cpu: Option<CpuTime>| cpu.and_then(|cpu| cost.per_gib(cpu.total_s())).map(rounded);
        let per_op = |rate: &dyn Fn(&StoreWork, &str) -> Option<f64>| {
            cost.store.as_ref().map(|work| {
                let rates =
                    OPERATIONS.iter().map(|op| ((*op).to_owned(), json!(rate(work, op).map(rounded))));
                rates.collect::<Map<_, _>>()
            })
        };
        json!({
            "counted_bytes": cost.bytes,
            "node_cpu_seconds": cpu(cost.node),
            "node_cpu_seconds_per_gib": cpu_rate(cost.node),
            "client_cpu_seconds": cpu(cost.client),
            "client_cpu_seconds_per_gib": cpu_rate(cost.client),
            "store_requests": cost.store.as_ref().map(|work| &work.requests),
            "store_requests_per_gib": per_op(&|work, op| cost.per_gib(to_f64(work.requests_of(op)))),
            "store_bytes": cost.store.as_ref().map(|work| &work.bytes),
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
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
