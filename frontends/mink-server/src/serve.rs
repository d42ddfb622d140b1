//! `mink serve` as a whole: arguments in, exit code out.
//!
//! Lives on: the main thread.
use crate::allocator;
use crate::logging;
use crate::open_files;
use crate::parse::parse;
use crate::server::Server;
use crate::settings::{Settings, SettingsError};
use mink_node::NodeEnd;
use mink_rt::{EpollRuntime, ServiceConfig};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Exit codes: 0 done, 1 failed, 2 wrong usage.
pub(crate) const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// How long blocking work may take after the node has ended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a node with these flags (without the words `mink serve`) until it ends.
pub fn serve_blocking(arguments: &[OsString]) -> ExitCode {
    match parse(arguments).and_then(Settings::resolve) {
        Ok(settings) => run(settings),
        Err(error) => refuse(&error),
    }
}

/// Says what is wrong with the flags, or the help that they ask for.
pub(crate) fn refuse(error: &SettingsError) -> ExitCode {
    let SettingsError::Flags(error) = error else {
        return fail(USAGE, error);
    };
    let code = if error.use_stderr() { USAGE } else { 0 };
    // Nothing is left to tell when stderr itself is gone.
    drop(error.print());
    ExitCode::from(code)
}

pub(crate) fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("mink: {error}");
    ExitCode::from(code)
}

fn run(settings: Settings) -> ExitCode {
    let place = |flag| settings.args.origins.tell(&[flag]);
    if let Err(error) = logging::start(&settings.args.log_level, settings.args.log_format) {
        return fail(USAGE, &format!("{error}{}", place("log-level")));
    }
    allocator::tune(settings.shards);
    open_files::raise_limit();
    let backend = match settings.args.runtime.resolve() {
        Ok(backend) => backend,
        Err(error) => return fail(USAGE, &format!("{error}{}", place("runtime"))),
    };
    let started = EpollRuntime::start(ServiceConfig { workers: settings.args.service_threads })
        .and_then(|services| backend.beside(&services).map(|served| (services, served)));
    let (runtime, served) = match started {
        Ok(started) => started,
        Err(error) => return fail(FAILED, &error),
    };
    let ended = runtime.block_on(async {
        let server = Server::start(settings, served).await?;
        eprintln!("{}", server.ready());
        server.run().await
    });
    runtime.shutdown(PATIENCE);
    match ended {
        Ok(NodeEnd::Drained) => ExitCode::SUCCESS,
        Ok(end) => fail(FAILED, &end),
        Err(error) => fail(FAILED, &error),
    }
}
