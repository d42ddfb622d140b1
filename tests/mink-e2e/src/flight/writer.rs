//! A process that writes numbered rows over any number of crashes, and the check of all that it was told.
//! Lives on: the test's tokio runtime.
//! Owns: the writer's process and its log of acks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mink_testkit::node::Node;
use mink_testkit::process::Process;
use mink_testkit::{ErrorKind, client};

use crate::setup::until;

/// A first ack of a writer, or one after a restart, comes within this.
const PROGRESS_WITHIN: Duration = Duration::from_mins(1);

/// Where its table is.
const DATABASE: &str = "killed";

/// An idempotent writer that may be killed: it remembers nothing but its id.
#[derive(Debug)]
pub(crate) struct Writer {
    args: Vec<String>,
    acks: PathBuf,
    stop_file: PathBuf,
    process: Process,
}

impl Writer {
    pub(crate) fn start(folder: &Path, flight: &str) -> Self {
        let [acks, stop_file, id] = ["writer.acks", "writer.stop", "writer.id"].map(|name| folder.join(name));
        // Made here, so that a writer that is still starting has a file to be looked at.
        std::fs::write(&acks, "").unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let files = [("--file", text(&id)), ("--acks", text(&acks)), ("--stop-file", text(&stop_file))];
        let mut args: Vec<String> =
            ["writer", "--flight", flight, "--database", DATABASE].map(str::to_owned).into();
        args.extend(files.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
        let process = launch(&args);
        Self { args, acks, stop_file, process }
    }

    pub(crate) async fn kill_and_restart(&mut self) {
        self.process.kill9().await.unwrap();
        self.process = launch(&self.args);
    }

    /// Waits until it has been told of an ack that it had not been told of before the call.
    pub(crate) async fn progress(&self) {
        let bytes = || std::fs::metadata(&self.acks).unwrap().len();
        let before = bytes();
        until("the writer gets an ack", PROGRESS_WITHIN, || async { (bytes() > before).then_some(()) }).await;
    }

    /// Lets it come to its end: all that it sent is acked.
    pub(crate) async fn stop(&mut self) {
        std::fs::write(&self.stop_file, "").unwrap();
        let status = self.process.wait(PROGRESS_WITHIN).await.unwrap();
        let report = self.process.report(ErrorKind::Failed, "did not get all its rows acked");
        assert!(status.success(), "{report}");
    }

    /// Every acked row is at its acked offset, offsets are dense, and none is there twice. The writer has been stopped: nothing else is there.
    pub(crate) async fn verify(&self, node: &Node) {
        let acks = self.acks.to_str().unwrap();
        let summary = super::case("verify", node, &["--database", DATABASE, "--acks", acks]).await;
        assert_eq!(summary["rows"], summary["acked"], "{summary}");
        assert_ne!(summary["rows"], 0, "{summary}");
    }
}

fn launch(args: &[String]) -> Process {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    client::start("flight", &args).unwrap()
}
