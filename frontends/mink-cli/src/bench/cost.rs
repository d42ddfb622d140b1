//! What a load costs: processor time of the node and of this command, requests and bytes to the store.
//!
//! Lives on: the command's task; reads of a node's `/metrics` and of `/proc`.
//! Invariants: what cannot be counted is absent, never 0; counters and bytes are of the same span of time.
use crate::address::AdminAddress;
use crate::api::Api;
use crate::failure::Failure;
use crate::metrics::{StoreWork, cpu_time};
use mink_client::load::Progress;
use mink_server::CpuTime;
use std::sync::atomic::Ordering;

/// What stands for no node that could be asked.
const NOBODY: &str = "none";

/// Where counters are.
pub(super) struct Probe {
    api: Option<Api>,
    pid: Option<u32>,
}

/// Counters at one moment.
pub(super) struct Look {
    store: Result<StoreWork, String>,
    node: Result<CpuTime, String>,
    client: Option<CpuTime>,
    /// Of keys and values that have passed.
    bytes: u64,
}

/// What was counted between two moments.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) store: Option<StoreWork>,
    pub(super) node: Option<CpuTime>,
    pub(super) client: Option<CpuTime>,
    pub(super) bytes: u64,
    /// Why something is absent.
    pub(super) uncounted: Vec<String>,
}

impl Probe {
    pub(super) fn new(node: &AdminAddress, pid: Option<u32>) -> Result<Probe, Failure> {
        if let Some(pid) = pid
            && CpuTime::of(pid).is_none()
        {
            return Err(Failure::usage(format!(
                "--node-pid {pid}: no such process on this machine; name the broker's"
            )));
        }
        let api = if node.addr == NOBODY { None } else { Some(Api::new(node)?) };
        Ok(Probe { api, pid })
    }

    pub(super) async fn look(&self, progress: &Progress) -> Look {
        let bytes = progress.bytes.load(Ordering::Relaxed);
        let page = match &self.api {
            None => Err("--addr none".to_owned()),
            Some(api) => api.page("/metrics").await.map_err(|why| why.words().to_owned()).and_then(|page| {
                if page.status.is_success() {
                    Ok(page.text)
                } else {
                    Err(format!("/metrics answers {}", page.status))
                }
            }),
        };
        let node = match (self.pid, &page) {
            (Some(pid), _) => CpuTime::of(pid).ok_or_else(|| format!("process {pid} is gone")),
            (None, Ok(page)) => cpu_time(page).ok_or_else(|| "the node does not tell it".into()),
            (None, Err(why)) => Err(why.clone()),
        };
        let store = page.map(|page| StoreWork::parse(&page));
        Look { store, node, client: CpuTime::of_this_process(), bytes }
    }
}

impl Look {
    pub(super) fn since(self, before: Look) -> Cost {
        let mut uncounted = Vec::new();
        let store = self.store.and_then(|after| Ok(after - &before.store?));
        let store =
            store.map_err(|why| uncounted.push(format!("requests to the store are not counted: {why}"))).ok();
        let node = self.node.and_then(|after| Ok(after.since(&before.node?)));
        let node = node
            .map_err(|why| uncounted.push(format!("the node's processor time is not counted: {why}")))
            .ok();
        let client = self.client.zip(before.client).map(|(after, before)| after.since(&before));
        Cost { store, node, client, bytes: self.bytes.saturating_sub(before.bytes), uncounted }
    }
}

impl Cost {
    /// Something for each GiB of keys and values; none if there were none.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(super) fn per_gib(&self, amount: f64) -> Option<f64> {
        (self.bytes > 0).then(|| amount * f64::from(1 << 30) / self.bytes as f64)
    }

    /// Something for each byte of keys and values.
    pub(super) fn per_byte(&self, amount: f64) -> Option<f64> {
        self.per_gib(amount).map(|amount| amount / f64::from(1 << 30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(puts: Option<u64>, cpu_s: Option<f64>, bytes: u64) -> Look {
        let page = |puts| format!("mink_object_store_requests_total{{op=\"put\",outcome=\"ok\"}} {puts}");
        Look {
            store: puts.map(|puts| StoreWork::parse(&page(puts))).ok_or_else(|| "nobody answers".into()),
            node: cpu_s.map(|user_s| CpuTime { user_s, system_s: 0.0 }).ok_or_else(|| "it is gone".into()),
            client: Some(CpuTime { user_s: 0.5, system_s: 0.5 }),
            bytes,
        }
    }

    #[test]
    fn what_passed_between_two_looks_is_scaled_to_a_gib() {
        let cost = look(Some(30), Some(4.0), 3 << 29).since(look(Some(10), Some(3.0), 1 << 30));
        assert_eq!(cost.store.as_ref().map(|work| work.requests_of("put")), Some(20));
        assert_eq!(
            (cost.bytes, cost.per_gib(20.0), cost.per_byte(f64::from(1 << 30))),
            (1 << 29, Some(40.0), Some(2.0))
        );
        assert_eq!(cost.node.map(|cpu| cpu.total_s()), Some(1.0));
        assert_eq!(cost.client.map(|cpu| cpu.total_s()), Some(0.0));
        assert_eq!(
            (cost.uncounted.len(), look(None, None, 0).since(look(None, None, 0)).per_gib(1.0)),
            (0, None)
        );
    }

    #[test]
    fn what_was_not_counted_at_either_end_is_absent_with_the_reason() {
        for (before, after) in [
            (look(None, None, 0), look(Some(1), Some(1.0), 1)),
            (look(Some(1), Some(1.0), 0), look(None, None, 1)),
        ] {
            let cost = after.since(before);
            assert!(cost.store.is_none() && cost.node.is_none());
            assert_eq!(cost.uncounted.len(), 2, "{:?}", cost.uncounted);
            assert!(cost.uncounted[1].contains("processor time is not counted: it is gone"));
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_wrong_usage() {
        let node = AdminAddress { addr: NOBODY.into() };
        assert!(
            matches!(Probe::new(&node, Some(u32::MAX)), Err(Failure::Usage(words)) if words.contains("broker's"))
        );
        assert!(Probe::new(&node, Some(std::process::id())).is_ok_and(|probe| probe.api.is_none()));
    }
}
