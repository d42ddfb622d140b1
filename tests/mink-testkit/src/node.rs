//! A `mink serve` process: how it is configured, started, killed, paused and started again on the same addresses.
//! Lives on: the test's tokio runtime.
//! Owns: the node's process and, for a node with fixed ports, these ports.
//! Invariants: every port is chosen freely; a WARN or ERROR line that the test did not allow fails it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::ports::PortBlock;
use crate::process::{Launch, Output, Process};
use crate::ready::Ready;
use crate::{Error, ErrorKind, Result};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// How a node is started; it can be started any number of times.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    name: String,
    /// Default: the workspace's own `mink`.
    program: Option<PathBuf>,
    data_dir: PathBuf,
    log_dir: PathBuf,
    flags: Vec<(String, String)>,
    env: Vec<(String, String)>,
    allowed: Vec<String>,
    ready_within: Duration,
}

impl NodeConfig {
    /// A node with everything under `data_dir`: embedded store and database, every listener on a free port of 127.0.0.1. Its
    /// logs go to `<data_dir>.logs`, so that tests may remove or copy the data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        let file_name = data_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self {
            log_dir: data_dir.with_file_name(format!("{file_name}.logs")),
            name: format!("mink-{file_name}"),
            program: None,
            data_dir,
            flags: ["--kafka-listen", "--flight-listen", "--http-listen"]
                .map(|flag| (flag.to_owned(), "127.0.0.1:0".to_owned()))
                .to_vec(),
            env: Vec::new(),
            allowed: Vec::new(),
            ready_within: READY_WITHIN,
        }
    }

    /// The same node on another data directory; its logs go beside that one.
    #[must_use]
    pub fn data_dir_at(self, data_dir: impl Into<PathBuf>) -> Self {
        let other = Self::new(data_dir);
        Self { name: other.name, data_dir: other.data_dir, log_dir: other.log_dir, ..self }
    }

    /// `--storage`, e.g. `s3://bucket/prefix`.
    #[must_use]
    pub fn storage(self, url: &str) -> Self {
        self.flag("--storage", url)
    }

    /// `--metadata`, e.g. `sqlite:///path/meta.db`.
    #[must_use]
    pub fn metadata(self, url: &str) -> Self {
        self.flag("--metadata", url)
    }

    /// `--node-id`.
    #[must_use]
    pub fn node_id(self, id: u32) -> Self {
        self.flag("--node-id", &id.to_string())
    }

    /// Any other flag of `mink serve`; a flag that is set already is replaced.
    #[must_use]
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.retain(|(flag, _)| flag != name);
        self.flags.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An environment variable of the node.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(variable, _)| variable != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Several of them, e.g. [`crate::parts::SeaweedFs::env`].
    #[must_use]
    pub fn envs(self, pairs: &[(String, String)]) -> Self {
        pairs.iter().fold(self, |config, (name, value)| config.env(name, value))
    }

    /// `MINK_FAILPOINTS`: where the node stops, dies or fails on purpose; empty switches them off.
    #[must_use]
    pub fn fail_points(self, points: &str) -> Self {
        self.env("MINK_FAILPOINTS", points)
    }

    /// Allows WARN and ERROR lines that contain `text`.
    #[must_use]
    pub fn allow_line(mut self, text: &str) -> Self {
        self.allowed.push(text.to_owned());
        self
    }

    /// Another binary than this workspace's own, e.g. an older release.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// How long the node may take to be ready (default: 30 seconds).
    #[must_use]
    pub fn ready_within(mut self, bound: Duration) -> Self {
        self.ready_within = bound;
        self
    }

    /// The value of a flag that was set.
    pub fn flag_value(&self, name: &str) -> Option<&str> {
        self.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    /// The node's data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Starts the process and does not wait: for nodes that are expected to refuse to start.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if there is no `mink` binary, [`ErrorKind::Io`] if it can't be started.
    pub fn launch(&self) -> Result<Process> {
        let program = self.program.clone().map_or_else(|| binary("mink"), Ok)?;
        let mut launch = Launch::new(&self.name, program)
            .log_dir(&self.log_dir)
            .fail_on_loud_lines(self.allowed.clone())
            .env("NO_COLOR", "1")
            .arg("serve")
            .arg("--data-dir")
            .arg(&self.data_dir);
        for (flag, value) in &self.flags {
            launch = launch.arg(flag).arg(value);
        }
        for (name, value) in &self.env {
            launch = launch.env(name, value);
        }
        launch.start()
    }

    /// Starts the node and waits until it says that it is ready.
    ///
    /// # Errors
    /// As [`NodeConfig::launch`]; [`ErrorKind::Failed`] if it ends before it is ready, [`ErrorKind::TimedOut`] if it takes longer
    /// than it may. Both show its logs.
    pub async fn start(self) -> Result<Node> {
        Node::start(self, None).await
    }

    /// As [`NodeConfig::start`], on ports that stay the same over [`Node::restart`], so that clients find it again.
    ///
    /// # Errors
    /// As [`NodeConfig::start`].
    pub async fn start_on_fixed_ports(self) -> Result<Node> {
        let ports = PortBlock::reserve()?;
        let listen = |at| format!("127.0.0.1:{}", ports.port(at));
        let config = [("--kafka-listen", 0), ("--http-listen", 1), ("--flight-listen", 2)]
            .into_iter()
            .fold(self, |config, (flag, at)| config.flag(flag, &listen(at)));
        Node::start(config, Some(ports)).await
    }
}

/// A node that was ready once.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    process: Process,
    ready: Ready,
    ready_after: Duration,
    /// Held while the node may come back on them.
    ports: Option<PortBlock>,
}

impl Node {
    async fn start(config: NodeConfig, ports: Option<PortBlock>) -> Result<Self> {
        let (process, ready, ready_after) = await_ready(&config).await?;
        Ok(Self { config, process, ready, ready_after, ports })
    }

    /// What its ready line said.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// From the start of the process to its ready line.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// `host:port` for Kafka clients.
    ///
    /// # Panics
    /// If the test switched this listener off.
    pub fn kafka(&self) -> &str {
        self.ready.kafka.as_deref().expect("the test switched the Kafka listener off")
    }

    /// `host:port` for Flight clients.
    ///
    /// # Panics
    /// If the test switched this listener off.
    pub fn flight(&self) -> &str {
        self.ready.flight.as_deref().expect("the test switched the Flight listener off")
    }

    /// `host:port` of the HTTP side.
    ///
    /// # Panics
    /// If the test switched this listener off.
    pub fn http(&self) -> &str {
        self.ready.http.as_deref().expect("the test switched the HTTP listener off")
    }

    /// The node's configuration.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The process: to pause, resume, kill and wait, and to read its logs.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// SIGTERM, and waits for the end of the drain; the node must end with exit code 0.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] after `within`, [`ErrorKind::Failed`] on another end.
    pub async fn stop(&mut self, within: Duration) -> Result<()> {
        self.process.terminate()?;
        let status = self.process.wait(within).await?;
        if status.success() {
            return Ok(());
        }
        Err(self.process.report(ErrorKind::Failed, &format!("drained with {status}")))
    }

    /// Starts an ended node again, with the same configuration and data.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it still runs, else as [`NodeConfig::start`].
    ///
    /// # Panics
    /// If the ended process wrote a line that the test does not allow.
    pub async fn restart(&mut self) -> Result<()> {
        let config = self.config.clone();
        self.restart_as(config).await
    }

    /// Starts an ended node again with another configuration (fail points, flags); its ports stay if they were fixed.
    ///
    /// # Errors
    /// As [`Node::restart`].
    ///
    /// # Panics
    /// As [`Node::restart`].
    pub async fn restart_as(&mut self, config: NodeConfig) -> Result<()> {
        if self.process.exit_status()?.is_none() {
            return Err(Error::new(ErrorKind::Failed, format!("{} still runs", self.process.name())));
        }
        let (process, ready, ready_after) = await_ready(&config).await?;
        *self = Self { config, process, ready, ready_after, ports: self.ports.take() };
        Ok(())
    }

    /// SIGKILL, then a start with the same configuration.
    ///
    /// # Errors
    /// As [`Node::restart`].
    ///
    /// # Panics
    /// As [`Node::restart`].
    pub async fn crash_and_restart(&mut self) -> Result<()> {
        self.process.kill9().await?;
        self.restart().await
    }
}

async fn await_ready(config: &NodeConfig) -> Result<(Process, Ready, Duration)> {
    let begun = Instant::now();
    let mut process = config.launch()?;
    let ready = process.wait_for_line(Output::Stderr, config.ready_within, Ready::parse).await;
    let ready = ready.map_err(|error| error.during("waiting for the ready line"))??;
    Ok((process, ready, begun.elapsed()))
}

/// A binary of this workspace: `MINK_BIN` for `mink`, else beside the test's own executable in cargo's target folder.
///
/// # Errors
/// [`ErrorKind::Failed`] with the command that builds it, if it is not there.
pub fn binary(name: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("MINK_BIN").filter(|_| name == "mink") {
        return Ok(path.into());
    }
    let test =
        std::env::current_exe().map_err(|error| Error::io("finding the test's own executable", &error))?;
    let path = beside(&test, name);
    match path.filter(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => Err(Error::new(
            ErrorKind::Failed,
            format!("there is no {name} binary: run cargo build first, or set MINK_BIN"),
        )),
    }
}

/// Tests lie in `<target>/<profile>/deps`, binaries one above.
fn beside(test: &Path, name: &str) -> Option<PathBuf> {
    Some(test.parent()?.parent()?.join(name))
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
