//! The demo's node: `mink serve` as a child process that can be killed and started again at the same addresses.
//!
//! Lives on: the command's task, and one task that reads what the node logs.
//! Owns: the child.
//! Invariants: a dropped node is killed, though only `kill` and `drain` wait until it is gone; no setting of the caller's environment reaches it.
use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;

/// Longest time for a node to become ready, or to drain.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of the node's log that are kept to be told when it fails.
const LINES_MAX: usize = 20;

/// Where the node serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    pub(crate) kafka: String,
    pub(crate) flight: String,
    pub(crate) http: String,
}

type Lines = Arc<Mutex<VecDeque<String>>>;

#[derive(Debug)]
pub(super) struct DemoNode {
    child: Child,
    begun: Instant,
    told: oneshot::Receiver<Ready>,
    lines: Lines,
}

impl DemoNode {
    /// Starts a node over this directory, at free ports or where one was before.
    pub(super) fn spawn(directory: &Path, at: Option<&Ready>) -> Result<DemoNode, Failure> {
        let program = std::env::current_exe();
        let program =
            program.map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
        let address =
            |listener: fn(&Ready) -> &String| at.map_or("127.0.0.1:0", |ready| listener(ready).as_str());
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MINK_") {
                command.env_remove(name);
            }
        }
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(directory.join("data"))
            .args(["--kafka-listen", address(|ready| &ready.kafka)])
            .args(["--flight-listen", address(|ready| &ready.flight)])
            .args(["--http-listen", address(|ready| &ready.http)])
            .args(["--log-level", "warn"])
            .env_remove("RUST_LOG")
            .current_dir(directory)
            // Ctrl-C is for the demo, which then drains the node: a terminal would signal both, and a second signal ends a drain.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(|error| Failure::failed(format!("cannot start a node: {error}")))?;
        let lines = Lines::default();
        let (tell, told) = oneshot::channel();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(listen(stderr, Arc::clone(&lines), tell));
        }
        Ok(DemoNode { child, begun, told, lines })
    }

    /// Waits until the node serves: where, and how long that took from its start.
    pub(super) async fn ready(&mut self) -> Result<(Ready, Duration), Failure> {
        match tokio::time::timeout(PATIENCE, &mut self.told).await {
            Ok(Ok(ready)) => Ok((ready, self.begun.elapsed())),
            Ok(Err(_)) => Err(fault("the node ended before it was ready", &self.lines)),
            Err(_) => Err(fault(&format!("the node is not ready after {PATIENCE:?}"), &self.lines)),
        }
    }

    /// As `kill -9`, and waits until it is gone.
    pub(super) async fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill().await.map_err(|error| Failure::failed(format!("cannot kill the node: {error}")))
    }

    /// As `kill`, kindly: the node hands over and exits with 0.
    pub(super) async fn drain(&mut self) -> Result<(), Failure> {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let sent = kill_process(pid, Signal::TERM);
            sent.map_err(|error| Failure::failed(format!("cannot signal the node: {error}")))?;
        }
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(fault(&format!("the node ended with {status}"), &self.lines)),
            Ok(Err(error)) => Err(Failure::failed(format!("cannot wait for the node: {error}"))),
            Err(_) => {
                self.kill().await?;
                Err(fault(&format!("the node did not end within {PATIENCE:?} and was killed"), &self.lines))
            }
        }
    }
}

/// What went wrong, with the end of the node's log.
fn fault(what: &str, lines: &Lines) -> Failure {
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let log = lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n  ");
    let log =
        if log.is_empty() { "it logged nothing".into() } else { format!("the end of its log:\n  {log}") };
    Failure::failed(format!("{what}; {log}\n`mink doctor` looks for what is amiss with this machine"))
}

async fn listen(stderr: ChildStderr, lines: Lines, tell: oneshot::Sender<Ready>) {
    let mut tell = Some(tell);
    let mut read = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = read.next_line().await {
        if let (Some(ready), true) = (parse(&line), tell.is_some()) {
            // The demo may have given up meanwhile.
            drop(tell.take().map(|tell| tell.send(ready)));
            continue;
        }
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The addresses of a line `mink ready kafka=HOST:PORT flight=... http=HOST:PORT ...`.
fn parse(line: &str) -> Option<Ready> {
    let words = line.strip_prefix("mink ready ")?;
    let value = |name: &str| {
        words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    Some(Ready { kafka: value("kafka")?, flight: value("flight")?, http: value("http")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_tells_the_addresses() {
        let line =
            "mink ready kafka=127.0.0.1:1234 flight=127.0.0.1:90 http=127.0.0.1:80 runtime=epoll shards=2";
        let expected = Ready {
            kafka: "127.0.0.1:1234".into(),
            flight: "127.0.0.1:90".into(),
            http: "127.0.0.1:80".into(),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("mink ready kafka=none"), None);
        assert_eq!(parse("2026-01-01 INFO mink ready"), None);
    }
}
