//! Real Kafka clients, driven by the scripts of `tests/clients`.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.
//! Invariants: a client that can't be had is skipped by name; every run is bounded.

use std::time::Duration;

use serde_json::Value;

use crate::process::{Launch, Process};
use crate::{Error, ErrorKind, Result, script};

/// A first run installs the client; that time is not counted against the run itself.
const INSTALL_WITHIN: Duration = Duration::from_mins(5);

/// Runs `tests/clients/run NAME ARGS` to its end and gives the JSON summary that it prints.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if the client can't be had here, [`ErrorKind::Failed`] with the first difference that the client
/// found, [`ErrorKind::TimedOut`] after `within`.
pub async fn run(name: &str, args: &[&str], within: Duration) -> Result<Value> {
    install(name).await?;
    let output = script::finish(start(name, args)?, within).await?;
    let summary = output.lines().last().unwrap_or_default();
    serde_json::from_str(summary).map_err(|error| {
        Error::new(ErrorKind::Failed, format!("{name} printed no JSON summary ({error}): {summary:?}"))
    })
}

/// Starts a client that runs beside the test, such as `acked_producer`.
///
/// # Errors
/// [`ErrorKind::Io`] if it can't be started.
pub fn start(name: &str, args: &[&str]) -> Result<Process> {
    launch(name).args(args.iter().copied()).start()
}

fn launch(name: &str) -> Launch {
    script::launch("clients", "run").arg(name)
}

/// Installs what the client `name` needs, once per machine.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if it can't be had here.
pub async fn install(name: &str) -> Result<()> {
    let sets: &[&str] = match name {
        "kafkajs" => &["python", "kafkajs"],
        "kcat" => &["python", "kcat"],
        "java_3_9" | "java_4_4" => &["python", "java"],
        "franz_go" => &["python", "franz_go"],
        _ => &["python"],
    };
    let installing = script::launch("parts", "clients-up").args(sets.iter().copied()).start()?;
    script::finish(installing, INSTALL_WITHIN).await.map(drop)
}
