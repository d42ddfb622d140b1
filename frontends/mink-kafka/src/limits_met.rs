//! How often a limit was met that closes no connection: what the client is told of it is an error code.
//!
//! Lives on: the service runtime.
//! Owns: the counts. They are statistics: nothing is decided by them.
use mink_api::{AdminError, Metric};
use mink_group::GroupError;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit, by the name of its key where it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    RequestsInFlight,
    /// Of topics and partitions, in all or of one.
    Buckets,
    Names,
    ProducerIds,
    GroupSize,
    GroupBytes,
    OffsetMetadata,
}

const LIMITS: [(Limit, &str); 7] = [
    (Limit::RequestsInFlight, "requests-in-flight-max"),
    (Limit::Buckets, "buckets-max"),
    (Limit::Names, "names"),
    (Limit::ProducerIds, "producer-ids-per-second"),
    (Limit::GroupSize, "group-max-size"),
    (Limit::GroupBytes, "group-bytes-max"),
    (Limit::OffsetMetadata, "offset-metadata-bytes-max"),
];

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct LimitsMet([AtomicU64; LIMITS.len()]);

impl LimitsMet {
    pub(crate) fn note(&self, met: Limit) {
        let at = LIMITS.iter().position(|(limit, _)| *limit == met);
        if let Some(count) = at.and_then(|at| self.0.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn note_admin(&self, error: &AdminError) {
        match error {
            AdminError::Limit { .. } => self.note(Limit::Buckets),
            AdminError::Throttled { .. } => self.note(Limit::ProducerIds),
            AdminError::Exists { .. }
            | AdminError::NotFound { .. }
            | AdminError::Invalid { .. }
            | AdminError::Unavailable { .. }
            | AdminError::Conflict { .. }
            | AdminError::Stopping => {}
        }
    }

    pub(crate) fn note_group(&self, error: GroupError) {
        match error {
            GroupError::GroupMaxSizeReached => self.note(Limit::GroupSize),
            GroupError::InvalidCommitOffsetSize => self.note(Limit::GroupBytes),
            GroupError::OffsetMetadataTooLarge => self.note(Limit::OffsetMetadata),
            _ => {}
        }
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> {
        LIMITS.iter().zip(&self.0).map(|((_, name), count)| {
            let help = "requests that met a limit, by its name";
            Metric::counter("mink_kafka_limits_met", help, count.load(Ordering::Relaxed))
                .label("limit", *name)
        })
    }

    #[cfg(test)]
    pub(crate) fn count(&self, met: Limit) -> u64 {
        let at = LIMITS.iter().position(|(limit, _)| *limit == met);
        at.map_or(0, |at| self.0[at].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_one_name_and_is_counted_under_it() {
        let met = LimitsMet::default();
        met.note_admin(&AdminError::Limit { why: "full".into() });
        met.note_group(GroupError::OffsetMetadataTooLarge);
        met.note_group(GroupError::RebalanceInProgress);
        for (limit, _) in LIMITS {
            let times = u64::from(limit == Limit::Buckets || limit == Limit::OffsetMetadata);
            assert_eq!(met.count(limit), times, "{limit:?}");
        }
        let mut labels: Vec<_> = met.metrics().map(|metric| metric.labels).collect();
        labels.dedup();
        assert_eq!(labels.len(), LIMITS.len());
    }
}
