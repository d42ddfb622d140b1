//! `mink doctor`: is this machine fit for a node, and is the node well? Every finding says what to do.
//!
//! Lives on: the command's task.
//! Invariants: it changes nothing but a topic of its own, which it removes.
mod machine;
mod node;

use crate::address::NodeAddress;
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use clap::Args;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  mink doctor
  mink doctor --addr box:9123
  mink doctor --addr http://box:9180 --kafka box:9092
  mink doctor --no-write --output json
  mink doctor --storage s3://bucket/prefix

Exit code 1 if anything is bad; warnings leave it at 0.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Leave out the write and read through a temporary topic
    #[arg(long)]
    no_write: bool,
    /// Check this store in the place of a node: whether of several that create one name exactly one succeeds
    #[arg(long, value_name = "URL")]
    storage: Option<String>,
    #[command(flatten)]
    node: NodeAddress,
    #[command(flatten)]
    output: OutputArgs,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Severity {
    Good,
    Warning,
    Bad,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Good => "ok",
            Severity::Warning => "warn",
            Severity::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Finding {
    check: &'static str,
    severity: Severity,
    found: String,
    /// What to do; nothing if it is good.
    remedy: String,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, severity: Severity::Good, found: found.into(), remedy: String::new() }
    }

    fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, severity: Severity::Warning, found: found.into(), remedy: remedy.into() }
    }

    fn bad(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, severity: Severity::Bad, found: found.into(), remedy: remedy.into() }
    }
}

/// Probes a store without a node.
async fn check_store(url: String) -> Result<Vec<Finding>, Failure> {
    let flags = [OsString::from("--storage"), url.into()];
    let probed = tokio::task::spawn_blocking(move || mink_server::check_store(&flags)).await;
    let verdicts = probed
        .map_err(|error| Failure::failed(error.to_string()))?
        .map_err(|error| Failure::failed(error.to_string()))?;
    let finding = |verdict: &mink_server::StoreVerdict| {
        let (found, remedy) = (verdict.to_string(), "use another store, or reach this one");
        if verdict.is_sound() { Finding::good("store", found) } else { Finding::bad("store", found, remedy) }
    };
    Ok(verdicts.iter().map(finding).collect())
}

pub(crate) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let mut printer = printer(args.output.output, &["check", "state", "found", "remedy"])?;
    let mut findings = machine::check();
    match args.storage {
        Some(url) => findings.extend(check_store(url).await?),
        None => findings.extend(node::check(&args.node, !args.no_write).await?),
    }
    for finding in &findings {
        printer.row(vec![
            finding.check.into(),
            finding.severity.name().into(),
            finding.found.as_str().into(),
            finding.remedy.as_str().into(),
        ])?;
    }
    printer.finish()?;
    let bad = findings.iter().filter(|finding| finding.severity == Severity::Bad).count();
    if bad == 0 {
        Ok(())
    } else {
        Err(Failure::failed(format!("{bad} of {} checks are bad", findings.len())))
    }
}
