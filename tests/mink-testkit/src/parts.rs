//! Real servers: SeaweedFS as the S3 store, Apache Kafka to compare answers with.
//! Lives on: the test's tokio runtime.
//! Owns: the servers; they end with the value, or (shared ones) with the test process, also when that is killed.
//! Invariants: a server that can't be had is skipped by name; every wait is bounded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::sync::OnceCell;

use crate::ports::PortBlock;
use crate::{Error, ErrorKind, Result, script};

/// Includes the download on a fresh machine.
const START_WITHIN: Duration = Duration::from_mins(5);
const BUCKET_WITHIN: Duration = Duration::from_secs(40);
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// A server that a script of `tests/parts` started.
#[derive(Debug)]
struct Server {
    pid: Pid,
    ports: PortBlock,
    /// Made by the script, removed when the server is gone.
    folder: PathBuf,
}

impl Server {
    async fn start(up: &str, properties: &[&str]) -> Result<Self> {
        let ports = PortBlock::reserve()?;
        // The script makes the folder, and removes it if this process dies before the value is dropped.
        let folder = std::env::temp_dir().join(format!("mink-{up}-{}-{}", std::process::id(), ports.port(0)));
        let starting = script::launch("parts", up)
            .env("MINK_PARTS_OWNER", std::process::id().to_string())
            .arg(&folder)
            .arg(ports.port(0).to_string())
            .args(properties.iter().copied());
        let output = script::finish(starting.start()?, START_WITHIN).await?;
        let pid = output.lines().last().and_then(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| {
            Error::new(ErrorKind::Failed, format!("{up} printed no process id: {output:?}"))
        })?;
        Ok(Self { pid, ports, folder })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.port(0))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = kill_process(self.pid, Signal::KILL);
        let deadline = std::time::Instant::now() + GONE_WITHIN;
        while test_kill_process(self.pid).is_ok() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("could not remove {}: {error}", self.folder.display());
        }
    }
}

/// A private SeaweedFS.
#[derive(Debug)]
pub struct SeaweedFs(Server);

impl SeaweedFs {
    /// The secret key of its one user.
    pub const SECRET_KEY: &str = "ci-secret-key";

    /// The one that all tests of this process share.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it can't be had here.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<SeaweedFs> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// One of the caller's own, for tests that kill it.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it can't be had here.
    pub async fn start() -> Result<Self> {
        Server::start("seaweedfs-up", &[]).await.map(Self)
    }

    /// `http://HOST:PORT` of its S3 side.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// The process id, for tests that pause or kill it.
    pub fn id(&self) -> u32 {
        self.0.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The environment by which a client reaches it.
    pub fn env(&self) -> Vec<(String, String)> {
        let pairs = [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", "ci".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", Self::SECRET_KEY.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Makes a bucket that no other test uses, its name beginning with `name` (letters, digits, dashes), and waits until a PUT
    /// and a GET in it succeed.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if the server refuses, or does not serve it within half a minute.
    pub async fn bucket(&self, name: &str) -> Result<String> {
        static BUCKETS: AtomicU32 = AtomicU32::new(0);
        let bucket = format!("{name}-{}-{}", std::process::id(), BUCKETS.fetch_add(1, Ordering::Relaxed));
        self.tool(&["ready", &bucket]).await?;
        Ok(bucket)
    }

    /// Runs `tests/parts/s3-tool` (list, get, put, delete) on this server and gives its stdout.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if the server refuses.
    pub async fn tool(&self, args: &[&str]) -> Result<String> {
        let mut launch = script::launch("parts", "s3-tool").arg(self.endpoint()).args(args.iter().copied());
        for (name, value) in self.env() {
            launch = launch.env(name, value);
        }
        script::finish(launch.start()?, BUCKET_WITHIN).await
    }
}

/// A private Apache Kafka 4.4: the truth to compare answers with.
#[derive(Debug)]
pub struct Kafka(Server);

impl Kafka {
    /// The one that all tests of this process share.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it can't be had here.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Kafka> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(&[])).await
    }

    /// One of the caller's own, with server properties (`name=value`).
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it can't be had here.
    pub async fn start(properties: &[&str]) -> Result<Self> {
        Server::start("kafka-up", properties).await.map(Self)
    }

    /// `HOST:PORT` for clients.
    pub fn bootstrap(&self) -> String {
        self.0.address()
    }
}
