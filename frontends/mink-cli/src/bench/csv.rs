//! A run as one line of CSV: plain numbers under names that carry their units, the same for all runs, so that lines can be put below each other.
//!
//! Lives on: anywhere (pure).
use serde_json::Value;

/// Names of the columns, and where their values stand in a run's JSON.
const COLUMNS: [(&str, &str); 53] = [
    ("bench", "/bench"),
    ("version", "/version"),
    ("ended_at", "/ended_at"),
    ("table", "/settings/table"),
    ("partitions", "/settings/partitions"),
    ("buckets", "/settings/buckets"),
    ("connections", "/connections"),
    ("loop", "/settings/loop"),
    ("rate_per_second", "/settings/rate_per_second"),
    ("seed", "/settings/seed"),
    ("batch_bytes", "/settings/batch_bytes"),
    ("value_bytes_mean", "/settings/value_bytes_mean"),
    ("row_bytes", "/settings/row_bytes"),
    ("rows_per_batch", "/settings/rows_per_batch"),
    ("in_flight", "/settings/in_flight"),
    ("linger_ms", "/settings/linger_ms"),
    ("compression", "/settings/compression"),
    ("idempotent", "/settings/idempotent"),
    ("read_bytes", "/settings/read_bytes"),
    ("records", "/records"),
    ("records_in_time", "/records_in_time"),
    ("errors", "/errors"),
    ("unacked_records", "/unacked"),
    ("unsent_records", "/unsent"),
    ("bytes", "/bytes"),
    ("batches", "/batches"),
    ("seconds", "/seconds"),
    ("drain_seconds", "/drain_seconds"),
    ("records_per_second", "/records_per_second"),
    ("mib_per_second", "/mib_per_second"),
    ("latency_from", "/latency_from"),
    ("latency_p50_ms", "/latency_ms/p50"),
    ("latency_p90_ms", "/latency_ms/p90"),
    ("latency_p99_ms", "/latency_ms/p99"),
    ("latency_p99.9_ms", "/latency_ms/p99.9"),
    ("latency_p99.99_ms", "/latency_ms/p99.99"),
    ("latency_max_ms", "/latency_ms/max"),
    ("latency_mean_ms", "/latency_ms/mean"),
    ("late_p99_ms", "/late_ms/p99"),
    ("end_to_end_p50_ms", "/end_to_end_ms/p50"),
    ("end_to_end_p99_ms", "/end_to_end_ms/p99"),
    ("node_cpu_seconds", "/node_cpu_seconds/total"),
    ("node_cpu_seconds_per_gib", "/node_cpu_seconds_per_gib"),
    ("client_cpu_seconds", "/client_cpu_seconds/total"),
    ("client_cpu_seconds_per_gib", "/client_cpu_seconds_per_gib"),
    ("put_requests", "/store_requests/put"),
    ("get_requests", "/store_requests/get"),
    ("list_requests", "/store_requests/list"),
    ("delete_requests", "/store_requests/delete"),
    ("put_requests_per_gib", "/store_requests_per_gib/put"),
    ("get_requests_per_gib", "/store_requests_per_gib/get"),
    ("put_bytes", "/store_bytes/put"),
    ("get_bytes", "/store_bytes/get"),
];

/// The names.
pub(super) const NAMES: [&str; COLUMNS.len()] = {
    let mut names = [""; COLUMNS.len()];
    let mut at = 0;
    while at < COLUMNS.len() {
        #[expect(clippy::indexing_slicing, reason = "both have this length, and the compiler runs it")]
        {
            names[at] = COLUMNS[at].0;
        }
        at += 1;
    }
    names
};

/// The values of a run, nothing for what it does not have.
pub(super) fn row(run: &Value) -> Vec<Value> {
    COLUMNS.iter().map(|(_, place)| run.pointer(place).cloned().unwrap_or(Value::Null)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_has_a_value_for_each_name_and_names_are_words() {
        let run = json!({ "bench": "consume", "latency_ms": { "p99.9": 1.5 }, "store_requests": null });
        let row = row(&run);
        assert_eq!(row.len(), NAMES.len());
        let value = |name: &str| row.get(NAMES.iter().position(|other| *other == name).unwrap()).unwrap();
        assert_eq!((value("bench"), value("latency_p99.9_ms")), (&json!("consume"), &json!(1.5)));
        assert_eq!(value("put_requests"), &Value::Null);
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len(), "each name is there once");
    }
}
