//! Logs on stderr, as text or JSON, filtered by level or by `RUST_LOG`.
//!
//! Lives on: set up once by the binary.
use crate::args::LogFormat;
use tracing_subscriber::EnvFilter;

/// Sets the process's log up. A second call in one process changes nothing.
pub fn start(level: &str, format: LogFormat) -> Result<(), String> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(filter) => EnvFilter::try_new(&filter).map_err(|error| format!("RUST_LOG={filter}: {error}"))?,
        Err(_) => EnvFilter::try_new(level).map_err(|error| {
            format!("--log-level {level}: {error}; use error, warn, info, debug or trace")
        })?,
    };
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = match format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    // Tests start several nodes in one process: the first one's log serves all.
    drop(started);
    Ok(())
}
