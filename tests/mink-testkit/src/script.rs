//! Runs the scripts of `tests/parts` and `tests/clients`, whose exit code 77 means that a part can't be had here.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.
//! Invariants: no script runs without a bound.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Launch, Output, Process};
use crate::{Error, ErrorKind, Result};

const SKIPPED: i32 = 77;

/// The repository's `tests` folder.
pub(crate) fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A script of `tests/<folder>`.
pub(crate) fn launch(folder: &str, script: &str) -> Launch {
    Launch::new(script, tests_folder().join(folder).join(script))
}

/// Waits for the end of a script and gives its stdout.
pub(crate) async fn finish(mut script: Process, within: Duration) -> Result<String> {
    let status = script.wait(within).await?;
    match status.code() {
        Some(0) => script.text(Output::Stdout),
        Some(SKIPPED) => Err(Error::new(ErrorKind::Unavailable, script.text(Output::Stderr)?.trim_end())),
        _ => Err(script.report(ErrorKind::Failed, &format!("ended with {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    async fn run(script: &str) -> Result<String> {
        finish(Launch::new("script", "/bin/sh").arg("-c").arg(script).start()?, SOON).await
    }

    #[tokio::test]
    async fn a_good_end_gives_the_output() {
        assert_eq!(run("echo 42; echo log >&2").await.unwrap(), "42\n");
    }

    #[tokio::test]
    async fn exit_77_means_unavailable_and_says_why() {
        let error = run("echo 'skip kcat: no apt' >&2; exit 77").await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unavailable, "skip kcat: no apt"));
    }

    #[tokio::test]
    async fn any_other_end_is_a_failure_with_its_logs() {
        let error = run("echo 'record 7 is missing' >&2; exit 1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.to_string().contains("record 7 is missing"), "{error}");
    }
}
