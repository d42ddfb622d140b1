//! A measured value on its way to `/metrics`, independent of the library that prints it.
//!
//! Lives on: made where the counter lives, printed by mink-http.

/// One value of one metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// Prometheus name without the `_total` of counters.
    pub name: &'static str,
    pub help: &'static str,
    pub labels: Vec<(&'static str, String)>,
    pub value: MetricValue,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug)]
pub enum MetricValue {
    Counter(u64),
    /// A counter of seconds.
    Seconds(f64),
    Gauge(f64),
    /// Counts per bucket with upper bounds (not cumulative; the last bound is infinity), the sum and the number of values.
    Histogram {
        buckets: Vec<(f64, u64)>,
        sum: f64,
        count: u64,
    },
}

impl Metric {
    /// A counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: u64) -> Metric {
        Metric { name, help, labels: Vec::new(), value: MetricValue::Counter(value) }
    }

    /// A counter of seconds, without labels.
    pub fn seconds(name: &'static str, help: &'static str, value: f64) -> Metric {
        Metric { name, help, labels: Vec::new(), value: MetricValue::Seconds(value) }
    }

    /// A gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Metric {
        Metric { name, help, labels: Vec::new(), value: MetricValue::Gauge(value) }
    }

    /// A gauge that counts something, without labels.
    pub fn level(name: &'static str, help: &'static str, value: u64) -> Metric {
        #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 a level need not be exact")]
        Metric::gauge(name, help, value as f64)
    }

    /// The same value with a label more.
    #[must_use]
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Metric {
        self.labels.push((name, value.into()));
        self
    }
}
