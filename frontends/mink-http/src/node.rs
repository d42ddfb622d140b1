//! The node behind the listener: there from the moment the listener is, though it may take long to start.
//!
//! Lives on: the service runtime.
//! Owns: what the node does while it starts, in words.     Talks to: the node through `mink_api::Admin`, once it is up.
//! Invariants: I19: nothing is answered for a node that is not up but how its start goes.
use mink_api::{Admin, Metric, NodeStatus};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Counters of another listener of this process.
pub type MetricSource = Arc<dyn Fn() -> Vec<Metric> + Send + Sync>;

/// A node that starts, and then is up.
pub struct HttpNode {
    /// Its status while it starts.
    starting: Mutex<NodeStatus>,
    admin: OnceLock<Arc<dyn Admin>>,
    sources: Mutex<Vec<MetricSource>>,
}

impl fmt::Debug for HttpNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpNode").field("admin", &self.admin).finish_non_exhaustive()
    }
}

/// The node is not up: what it does instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the node is not up yet ({step}); try again in a moment")]
pub struct NotUp {
    pub step: String,
}

impl HttpNode {
    /// A node that begins to start. Of `status` everything but `not_ready` is shown as it is until the node is up.
    pub fn starting(status: NodeStatus) -> HttpNode {
        let node =
            HttpNode { starting: Mutex::new(status), admin: OnceLock::new(), sources: Mutex::default() };
        node.step("starting");
        node
    }

    /// What the node does now.
    pub fn step(&self, step: &str) {
        let mut status = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        status.not_ready = vec![format!("starting: {step}")];
    }

    /// The node is up. Only the first time counts.
    pub fn up(&self, admin: Arc<dyn Admin>) {
        drop(self.admin.set(admin));
    }

    /// Shows the counters of another listener too.
    pub fn count_too(&self, source: MetricSource) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    pub(crate) fn admin(&self) -> Result<&Arc<dyn Admin>, NotUp> {
        self.admin.get().ok_or_else(|| NotUp { step: self.starting_status().not_ready.join(", ") })
    }

    pub(crate) async fn status(&self) -> NodeStatus {
        match self.admin.get() {
            Some(admin) => admin.status().await,
            None => self.starting_status(),
        }
    }

    pub(crate) async fn metrics(&self) -> Vec<Metric> {
        let mut metrics = match self.admin.get() {
            Some(admin) => admin.metrics().await,
            None => Vec::new(),
        };
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        metrics.extend(sources.iter().flat_map(|source| source()));
        metrics
    }

    fn starting_status(&self) -> NodeStatus {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
