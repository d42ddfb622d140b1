//! What a node counts, read from its `/metrics`: requests to the store above all.
//!
//! Lives on: anywhere (the parsing is pure).
use crate::api::Api;
use crate::failure::Failure;
use mink_server::CpuTime;
use std::collections::BTreeMap;
use std::ops::{AddAssign, Sub};

/// Requests and bytes to the object store, by operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreWork {
    /// Operation to requests, retried ones too, whatever their outcome.
    pub(crate) requests: BTreeMap<String, u64>,
    /// Operation to payload bytes.
    pub(crate) bytes: BTreeMap<String, u64>,
}

impl StoreWork {
    pub(crate) async fn read(api: &Api) -> Result<StoreWork, Failure> {
        let page = api.page("/metrics").await?;
        if !page.status.is_success() {
            return Err(Failure::failed(format!("/metrics answers {}", page.status)));
        }
        Ok(StoreWork::parse(&page.text))
    }

    pub(crate) fn parse(page: &str) -> StoreWork {
        let mut work = StoreWork::default();
        for line in page.lines() {
            let Some((sample, value)) = line.rsplit_once(' ') else { continue };
            let Some((name, labels)) = sample.split_once('{') else { continue };
            let totals = match name {
                "mink_object_store_requests_total" => &mut work.requests,
                "mink_object_store_bytes_total" => &mut work.bytes,
                _ => continue,
            };
            let op = labels.split([',', '}']).find_map(|label| label.strip_prefix("op=\""));
            let (Some(op), Ok(value)) = (op, value.parse::<u64>()) else { continue };
            *totals.entry(op.trim_end_matches('"').to_owned()).or_default() += value;
        }
        work
    }

    /// Requests of an operation.
    pub(crate) fn requests_of(&self, op: &str) -> u64 {
        self.requests.get(op).copied().unwrap_or(0)
    }

    /// Payload bytes of an operation.
    pub(crate) fn bytes_of(&self, op: &str) -> u64 {
        self.bytes.get(op).copied().unwrap_or(0)
    }
}

/// Processor time of the node since it started; none if the page does not tell it.
pub(crate) fn cpu_time(page: &str) -> Option<CpuTime> {
    let seconds = |mode: &str| {
        let sample = format!("process_cpu_seconds_total{{mode=\"{mode}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&sample))?.parse().ok()
    };
    Some(CpuTime { user_s: seconds("user")?, system_s: seconds("system")? })
}

impl AddAssign for StoreWork {
    fn add_assign(&mut self, other: StoreWork) {
        for (mine, theirs) in [(&mut self.requests, other.requests), (&mut self.bytes, other.bytes)] {
            for (op, value) in theirs {
                *mine.entry(op).or_default() += value;
            }
        }
    }
}

impl Sub<&StoreWork> for StoreWork {
    type Output = StoreWork;

    /// What was added since `earlier` of the same process.
    fn sub(mut self, earlier: &StoreWork) -> StoreWork {
        for (mine, theirs) in [(&mut self.requests, &earlier.requests), (&mut self.bytes, &earlier.bytes)] {
            for (op, value) in theirs {
                if let Some(mine) = mine.get_mut(op) {
                    *mine = mine.saturating_sub(*value);
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP mink_object_store_requests requests to the object store.
# TYPE mink_object_store_requests counter
mink_object_store_requests_total{op=\"put\",outcome=\"ok\"} 7
mink_object_store_requests_total{op=\"put\",outcome=\"exists\"} 1
mink_object_store_requests_total{op=\"get\",outcome=\"ok\"} 3
mink_object_store_bytes_total{op=\"put\"} 4096
mink_wal_objects_total 5
process_cpu_seconds_total{mode=\"user\"} 1.5
process_cpu_seconds_total{mode=\"system\"} 0.25
# EOF
";

    #[test]
    fn requests_add_up_over_outcomes_stores_and_lives() {
        let mut work = StoreWork::parse(PAGE);
        assert_eq!((work.requests_of("put"), work.requests_of("get"), work.requests_of("list")), (8, 3, 0));
        assert_eq!(work.bytes_of("put"), 4096);
        work += StoreWork::parse(PAGE);
        assert_eq!(work.requests_of("put"), 16);
        assert_eq!(work - &StoreWork::parse(PAGE), StoreWork::parse(PAGE));
    }

    #[test]
    fn processor_time_is_told_by_where_it_went() {
        assert_eq!(cpu_time(PAGE), Some(CpuTime { user_s: 1.5, system_s: 0.25 }));
        assert_eq!(cpu_time("process_cpu_seconds_total 1.5"), None);
    }

    #[test]
    fn a_page_of_something_else_counts_nothing() {
        assert_eq!(StoreWork::parse("<html>\n{} x\na{b 1\n"), StoreWork::default());
    }
}
