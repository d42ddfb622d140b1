//! What a load costs: processor time of the node and of this command, requests and bytes to the store.
//!
//! Lives on: the command's task; reads of a node's `/metrics` and `/api/v1/status`, and of `/proc`.
//! Invariants: what cannot be counted is absent, never 0, also where the node restarted meanwhile; counters and bytes are of the same span of time.
use crate::address::AdminAddress;
use crate::api::Api;
use crate::failure::Failure;
use crate::metrics::{StoreWork, cpu_time};
use crate::numbers;
use mink_client::load::Progress;
use mink_server::CpuTime;
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What stands for no node that could be asked.
const NOBODY: &str = "none";
/// Why nothing can be said of the work of two lives of a node: counters begin at 0 with each.
const RESTARTED: &str = "the node restarted";
/// How long one look may take.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// How often a node that settles is asked.
const SETTLED_EVERY: Duration = Duration::from_millis(500);

/// Where counters are.
pub(super) struct Probe {
    /// Or why nobody can be asked.
    api: Result<Api, String>,
    pid: Option<u32>,
}

/// Counters at one moment.
pub(super) struct Look {
    /// Which life of the node was asked; none if it does not say.
    life: Option<u64>,
    store: Result<StoreWork, String>,
    node: Result<CpuTime, String>,
    client: Option<CpuTime>,
    /// Of keys and values that have passed.
    bytes: u64,
}

/// What was counted between two moments, or why it was not.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) store: Result<StoreWork, String>,
    pub(super) node: Result<CpuTime, String>,
    pub(super) client: Option<CpuTime>,
    pub(super) bytes: u64,
}

impl Probe {
    /// The node's HTTP listener; a load that cannot be counted runs all the same.
    pub(super) async fn find(node: &AdminAddress, pid: Option<u32>) -> Result<Probe, Failure> {
        if let Some(pid) = pid
            && CpuTime::of(pid).is_none()
        {
            return Err(Failure::usage(format!(
                "--node-pid {pid}: no such process on this machine; name the broker's"
            )));
        }
        let api = if node.addr == NOBODY {
            Err(format!("--addr {NOBODY}"))
        } else {
            match node.http().await {
                Ok(api) => Ok(api),
                Err(Failure::Usage(words)) => return Err(Failure::Usage(words)),
                Err(failure) => Err(cause(&failure)),
            }
        };
        Ok(Probe { api, pid })
    }

    /// Waits until the node has flushed everything, at most `limit`.
    pub(super) async fn settle(&self, limit: Duration) -> Result<(), Failure> {
        if limit.is_zero() {
            return Ok(());
        }
        let api = self
            .api
            .as_ref()
            .map_err(|why| Failure::usage(format!("--settle asks a node, and none can be asked: {why}")))?;
        let until = Instant::now() + limit;
        loop {
            let untrimmed = api.get("/status").await?.get("wal_untrimmed_bytes").and_then(Value::as_u64);
            if untrimmed.unwrap_or(0) == 0 {
                return Ok(());
            }
            if Instant::now() >= until {
                let left = numbers::bytes(untrimmed.unwrap_or(0));
                eprintln!(
                    "mink: after {} the node has yet to flush {left}; begun all the same",
                    numbers::time(limit)
                );
                return Ok(());
            }
            tokio::time::sleep(SETTLED_EVERY.min(until.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Counters before a load. The life first: should the node end in between, the counters are of the next one, and that shows.
    pub(super) async fn look_before(&self, progress: &Progress) -> Look {
        let life = self.life().await;
        Look { life, ..self.look(progress).await }
    }

    /// Counters after a load, the life last.
    pub(super) async fn look_after(&self, progress: &Progress) -> Look {
        let look = self.look(progress).await;
        Look { life: self.life().await, ..look }
    }

    async fn life(&self) -> Option<u64> {
        let status = tokio::time::timeout(LOOK_MAX, self.api.as_ref().ok()?.get("/status")).await;
        status.ok()?.ok()?.get("incarnation")?.as_u64()
    }

    async fn page(&self) -> Result<String, String> {
        let api = self.api.as_ref().map_err(String::clone)?;
        let page = tokio::time::timeout(LOOK_MAX, api.page("/metrics")).await;
        let page = page.map_err(|_| format!("/metrics does not answer within {LOOK_MAX:?}"))?;
        let page = page.map_err(|why| cause(&why))?;
        if page.status.is_success() {
            Ok(page.text)
        } else {
            Err(format!("/metrics answers {}", page.status))
        }
    }

    async fn look(&self, progress: &Progress) -> Look {
        let bytes = progress.bytes.load(Ordering::Relaxed);
        let page = self.page().await;
        let node = match (self.pid, &page) {
            (Some(pid), _) => CpuTime::of(pid).ok_or_else(|| format!("process {pid} is gone")),
            (None, Ok(page)) => cpu_time(page).ok_or_else(|| "the node does not tell it".into()),
            (None, Err(why)) => Err(why.clone()),
        };
        let store = page.map(|page| StoreWork::parse(&page));
        Look { life: None, store, node, client: CpuTime::of_this_process(), bytes }
    }
}

impl Look {
    pub(super) fn since(self, before: Look) -> Cost {
        let is_other_life = self.life.zip(before.life).is_some_and(|(after, before)| after != before);
        let store = self.store.and_then(|after| {
            let before = before.store?;
            // Counters of one process never fall.
            if is_other_life || fell(&after, &before) { restarted() } else { Ok(after - &before) }
        });
        let node = self.node.and_then(|after| {
            let before = before.node?;
            let fell = after.user_s < before.user_s || after.system_s < before.system_s;
            if is_other_life || fell { restarted() } else { Ok(after.since(&before)) }
        });
        let client = self.client.zip(before.client).map(|(after, before)| after.since(&before));
        Cost { store, node, client, bytes: self.bytes.saturating_sub(before.bytes) }
    }
}

/// What went wrong, without what to do about it: it did answer, or nothing was asked for.
fn cause(failure: &Failure) -> String {
    failure.words().split(';').next().unwrap_or_default().to_owned()
}

fn restarted<T>() -> Result<T, String> {
    Err(RESTARTED.to_owned())
}

fn fell(after: &StoreWork, before: &StoreWork) -> bool {
    let requests = before.requests.iter().any(|(op, count)| after.requests_of(op) < *count);
    requests || before.bytes.iter().any(|(op, count)| after.bytes_of(op) < *count)
}

impl Cost {
    /// What is absent, and why.
    pub(super) fn uncounted(&self) -> Vec<String> {
        let store =
            self.store.as_ref().err().map(|why| format!("requests to the store are not counted: {why}"));
        let node =
            self.node.as_ref().err().map(|why| format!("the node's processor time is not counted: {why}"));
        store.into_iter().chain(node).collect()
    }

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
            life: Some(1),
            store: puts.map(|puts| StoreWork::parse(&page(puts))).ok_or_else(|| "nobody answers".into()),
            node: cpu_s.map(|user_s| CpuTime { user_s, system_s: 0.0 }).ok_or_else(|| "it is gone".into()),
            client: Some(CpuTime { user_s: 0.5, system_s: 0.5 }),
            bytes,
        }
    }

    #[test]
    fn what_passed_between_two_looks_is_scaled_to_a_gib() {
        let cost = look(Some(30), Some(4.0), 3 << 29).since(look(Some(10), Some(3.0), 1 << 30));
        assert_eq!(cost.store.as_ref().map(|work| work.requests_of("put")), Ok(20));
        assert_eq!(
            (cost.bytes, cost.per_gib(20.0), cost.per_byte(f64::from(1 << 30))),
            (1 << 29, Some(40.0), Some(2.0))
        );
        assert_eq!(cost.node.as_ref().map(CpuTime::total_s), Ok(1.0));
        assert_eq!(cost.client.map(|cpu| cpu.total_s()), Some(0.0));
        assert_eq!(
            (cost.uncounted().len(), look(None, None, 0).since(look(None, None, 0)).per_gib(1.0)),
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
            assert!(cost.store.is_err() && cost.node.is_err());
            assert_eq!(cost.uncounted().len(), 2, "{cost:?}");
            assert!(cost.uncounted()[1].contains("processor time is not counted: it is gone"));
        }
    }

    #[test]
    fn a_node_that_restarted_is_told_as_such_and_not_as_no_work() {
        let restarted = Err(RESTARTED.to_owned());
        let other = |life| Look { life, ..look(Some(50), Some(9.0), 1) };
        let before = || look(Some(10), Some(3.0), 0);
        let cost = other(Some(2)).since(before());
        assert_eq!((cost.store, cost.node), (restarted.clone(), Err(RESTARTED.to_owned())), "another life");
        // A node that does not tell its lives gives itself away by counters that fell.
        let cost = Look { life: None, ..look(Some(4), Some(1.0), 1) }.since(before());
        assert_eq!((&cost.store, &cost.node), (&restarted, &Err(RESTARTED.to_owned())));
        assert_eq!(cost.uncounted().len(), 2);
        assert!(other(Some(1)).since(before()).store.is_ok() && other(None).since(before()).node.is_ok());
    }

    fn node(addr: &str) -> AdminAddress {
        AdminAddress { addr: addr.into() }
    }

    #[tokio::test]
    async fn a_process_that_is_not_there_is_wrong_usage() {
        let found = Probe::find(&node(NOBODY), Some(u32::MAX)).await;
        assert!(matches!(found, Err(Failure::Usage(words)) if words.contains("broker's")));
        let found = Probe::find(&node(NOBODY), Some(std::process::id())).await;
        assert_eq!(found.expect("it runs").api.err().as_deref(), Some("--addr none"));
    }

    #[tokio::test]
    async fn a_node_that_does_not_answer_is_told_and_one_that_cannot_be_is_wrong_usage() {
        let found = Probe::find(&node("127.0.0.1:1"), None).await.expect("a load runs without it");
        assert!(found.api.is_err_and(|why| why.contains("127.0.0.1:1") && !why.contains("mink serve")));
        assert!(matches!(Probe::find(&node("nowhere"), None).await, Err(Failure::Usage(_))));
    }
}
