//! `/metrics`: what the node counted, as OpenMetrics text.
//!
//! Lives on: the service runtime.
use crate::routes::Node;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use mink_api::{Metric, MetricValue};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) async fn metrics(State(node): State<Node>) -> Response {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected::new(node.metrics().await)));
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Values collected from the node, those of one name together.
#[derive(Debug)]
struct Collected(Vec<Metric>);

impl Collected {
    fn new(mut metrics: Vec<Metric>) -> Collected {
        metrics.sort_by_key(|metric| metric.name);
        Collected(metrics)
    }
}

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in self.0.chunk_by(|a, b| a.name == b.name) {
            let Some(first) = family.first() else { continue };
            let kind = match first.value {
                MetricValue::Counter(_) | MetricValue::Seconds(_) => MetricType::Counter,
                MetricValue::Gauge(_) => MetricType::Gauge,
                MetricValue::Histogram { .. } => MetricType::Histogram,
            };
            let mut encoder = encoder.encode_descriptor(first.name, first.help, None, kind)?;
            for metric in family {
                let labels: Vec<(&str, &str)> =
                    metric.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                if labels.is_empty() {
                    encode(&metric.value, &mut encoder)?;
                } else {
                    encode(&metric.value, &mut encoder.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(value: &MetricValue, encoder: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match value {
        MetricValue::Counter(value) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        MetricValue::Seconds(value) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        MetricValue::Gauge(value) => encoder.encode_gauge(value),
        MetricValue::Histogram { buckets, sum, count } => {
            // The library writes its largest number as "+Inf".
            let bounds: Vec<_> = buckets.iter().map(|(bound, count)| (bound.min(f64::MAX), *count)).collect();
            encoder.encode_histogram::<NoLabelSet>(*sum, *count, &bounds, None)
        }
    }
}
