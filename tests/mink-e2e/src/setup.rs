//! How tests here are set up: folders, nodes, long forms, and waits with a bound.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mink_testkit::faults::Plan;
use mink_testkit::faults::proxy::{FaultProxy, ProxyConfig};
use mink_testkit::http;
use mink_testkit::node::NodeConfig;
use mink_testkit::parts::SeaweedFs;
use serde_json::Value;
use tempfile::TempDir;

const POLL: Duration = Duration::from_millis(20);

/// A folder of the test's own. It stays when the test fails, for whoever looks into it.
#[derive(Debug)]
pub(crate) struct Folder(Option<TempDir>);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(Some(tempfile::Builder::new().prefix("mink-e2e-").tempdir().unwrap()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().expect("held until dropped").path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.0.take()
        {
            eprintln!("the test's files stay in {}", folder.keep().display());
        }
    }
}

/// A node with everything below `<folder>/data`. Its memory and shards do not depend on the machine.
pub(crate) fn node(folder: &Folder) -> NodeConfig {
    node_in(folder.join("data"))
}

pub(crate) fn node_in(data_dir: PathBuf) -> NodeConfig {
    NodeConfig::new(data_dir)
        .flag("--memory", "512MiB")
        // Tests share two cores with servers and clients: a thread that gets no time is the machine's doing.
        .allow_line("core gets no time from the system")
}

/// For a node that is stopped again and again, by signals or a tracer: a stop in the middle of a task looks to the watchdog like a task
/// that does not end.
pub(crate) fn often_stopped(config: NodeConfig) -> NodeConfig {
    config.allow_line("task blocks its core").allow_line("parked core does not wake")
}

/// A node on a bucket of its own.
pub(crate) async fn node_on_s3(folder: &Folder, store: &SeaweedFs, name: &str) -> NodeConfig {
    let bucket = store.bucket(name).await.unwrap();
    // The first start probes the store: 64 creators in 4 races, whose losers this server lets wait by the second.
    node(folder)
        .storage(&format!("s3://{bucket}/e2e"))
        .envs(&store.env())
        .ready_within(Duration::from_secs(90))
}

/// The bucket of a node that [`node_on_s3`] made.
pub(crate) fn bucket_of(config: &NodeConfig) -> String {
    let url = config.flag_value("--storage").expect("set by node_on_s3");
    url.trim_start_matches("s3://").split('/').next().unwrap_or_default().to_owned()
}

/// A node on a bucket of its own, behind a proxy whose plan has no faults yet.
pub(crate) async fn node_on_bad_s3(
    folder: &Folder,
    store: &SeaweedFs,
    name: &str,
) -> (NodeConfig, FaultProxy) {
    let proxy = ProxyConfig::new(&store.endpoint()).secret(SeaweedFs::SECRET_KEY);
    let proxy = FaultProxy::start(proxy, Plan::default()).await.unwrap();
    let config = node_on_s3(folder, store, name).await.env("AWS_ENDPOINT_URL", &proxy.endpoint());
    (config, proxy)
}

/// Whether the long forms are asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("MINK_E2E_LONG").is_some_and(|value| value == "1")
}

/// How often a test that goes in rounds does so.
pub(crate) fn rounds(short: u32) -> u32 {
    match std::env::var("MINK_E2E_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("MINK_E2E_ROUNDS is a number"),
        Err(_) => short,
    }
}

/// Waits until `condition` gives a value.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// `/api/v1/status` of a node.
pub(crate) async fn status(address: &str) -> Value {
    let answer = http::get(address, "/api/v1/status").await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// Waits until the node has flushed all and trimmed its WAL.
pub(crate) async fn flushed(address: &str, within: Duration) {
    until("all is flushed", within, || async {
        (status(address).await["wal_untrimmed_bytes"] == 0).then_some(())
    })
    .await;
}

/// Waits until `/readyz` says yes.
pub(crate) async fn ready(address: &str, within: Duration) {
    until("the node is ready", within, || async {
        let answer = http::get(address, "/readyz").await;
        answer.is_ok_and(|answer| answer.status == 200).then_some(())
    })
    .await;
}

/// What a process holds in memory now, and the most that it ever held, in KiB.
pub(crate) fn resident_kib(id: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the kernel's");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number of KiB")
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Requests to the object store so far, of every kind.
pub(crate) async fn store_requests(address: &str) -> u64 {
    let answer = http::get(address, "/metrics").await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let sum = answer.metric_sum("mink_object_store_requests_total");
    assert!(sum >= 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, not negative")]
    let count = sum as u64;
    count
}

/// All files below `folder` that are objects of the `file://` store, in order; none if the folder is not there.
pub(crate) fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        // A folder that is not there, or goes while we look, holds nothing.
        let Ok(entries) = std::fs::read_dir(&next) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.file_name().is_some_and(|name| name == ".mink-tmp") {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The WAL objects in a `file://` store of cluster `mink`.
pub(crate) fn wal_objects(store: &Path) -> Vec<PathBuf> {
    objects(&store.join("mink").join("wal"))
}
