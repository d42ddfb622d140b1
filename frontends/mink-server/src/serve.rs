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
use tokio::signal::unix::{SignalKind, signal};

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

/// A write beyond the limit of a file's size (`ulimit -f`) is an error then, and told as any other of the store: left alone, the signal
/// ends the process without a word. The handler stays for the life of the process, whether or not anybody listens.
fn outlive_file_sizes() {
    if let Err(error) = signal(SignalKind::from_raw(libc::SIGXFSZ)) {
        tracing::warn!(%error, "a write beyond the limit of file sizes ends the process");
    }
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
        outlive_file_sizes();
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::process::Command;

    /// Set for the child process, whose files may not grow.
    const CHILD: &str = "MINK_SERVER_TEST_FILE_SIZES_CHILD";

    #[test]
    fn a_write_beyond_the_limit_of_file_sizes_is_an_error_and_not_the_end() {
        if std::env::var_os(CHILD).is_some() {
            let file = tempfile::NamedTempFile::new().expect("a file");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async { outlive_file_sizes() });
            let limit = Rlimit { current: Some(4096), maximum: Some(4096) };
            setrlimit(Resource::Fsize, limit).expect("lowered");
            let error = std::fs::write(file.path(), vec![0; 8192]).expect_err("beyond the limit");
            assert_eq!(error.raw_os_error(), Some(libc::EFBIG), "{error}");
            return;
        }
        let child = Command::new(std::env::current_exe().expect("this one"))
            .args([
                "--exact",
                "serve::tests::a_write_beyond_the_limit_of_file_sizes_is_an_error_and_not_the_end",
            ])
            .env(CHILD, "1")
            .output()
            .expect("runs");
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && told.contains("1 passed"), "{:?}: {told}", child.status);
    }
}
