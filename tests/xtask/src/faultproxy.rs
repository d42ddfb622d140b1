//! `cargo xtask faultproxy`: the test kit's fault proxy as a process, to try Mink on a bad store by hand.
//!
//! Lives on: a developer's machine.
//! Invariants: what it prints first is one line with both of its addresses; it ends with SIGINT or SIGTERM.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use mink_testkit::faults::Plan;
use mink_testkit::faults::proxy::{FaultProxy, ProxyConfig};
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  # Each tenth answer to a PUT is lost, each tenth PUT is refused as SlowDown; answers take 5 to 30 ms.
  cargo xtask faultproxy --to http://127.0.0.1:8333 \\
    --rule 'any: delay 5ms..30ms' --rule 'put 10%: lost' --rule 'put 10%: undone 503'

  # Away for 30 s, ten seconds from now.
  cargo xtask faultproxy --to http://127.0.0.1:8333 --rule 'any from=10s for=30s: away'

  # Then point Mink at the address that it prints:
  AWS_ENDPOINT_URL=http://127.0.0.1:PORT mink serve --storage s3://bucket/prefix

  # Another plan while it runs, the counts, and no faults any more:
  curl --data-binary 'put 5%: late 2s..5s 500' http://127.0.0.1:CONTROL/__faults
  curl http://127.0.0.1:CONTROL/__faults
  curl -X DELETE http://127.0.0.1:CONTROL/__faults

A rule is WHO: WHAT; the first that takes a request decides, delays add up and go on.
  WHO   any, or some of put,get,head,list,delete,other; then key=PATTERN (* for anything), from=TIME, for=TIME,
        attempt=N (of its key), turn=K/N, skip=N, times=N, a chance such as 10%
  WHAT  delay TIME | delay TIME..TIME [spike TIME CHANCE]
        happens:  (nothing) | undone | late TIME[..TIME] | stored 50% | unconditional
        is told:  (nothing) | 503 or another status | lost | silent | cut 50% | short 50%
        away: nobody listens
docs/faults.md has more.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Where S3 clients come; port 0 for a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where the plan is looked at and changed; port 0 for a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    control: SocketAddr,
    /// The S3 server behind it, in plain HTTP
    #[arg(long, value_name = "http://HOST:PORT")]
    to: String,
    /// File with a plan: one rule a line, `#` begins a comment
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// A rule, behind those of the file; may be given many times
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Where the coins come from
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The clients' secret key, for rules with `unconditional`
    #[arg(long, env = "AWS_SECRET_ACCESS_KEY", value_name = "KEY", hide_env_values = true)]
    secret: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let plan = plan(options)?;
    let mut config = ProxyConfig::new(&options.to);
    (config.listen, config.control) = (options.listen, options.control);
    if let Some(secret) = &options.secret {
        config = config.secret(secret);
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(serve(config, plan))
}

fn plan(options: &Options) -> Result<Plan, String> {
    let mut text = match &options.plan {
        Some(path) => fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => String::new(),
    };
    for rule in &options.rule {
        text.push('\n');
        text.push_str(rule);
    }
    let mut plan: Plan = text.parse().map_err(|error| format!("{error}"))?;
    plan.seed = options.seed.unwrap_or(plan.seed);
    Ok(plan)
}

async fn serve(config: ProxyConfig, plan: Plan) -> Result<(), String> {
    let ends = |kind| signal(kind).map_err(|error| error.to_string());
    let (mut interrupted, mut terminated) = (ends(SignalKind::interrupt())?, ends(SignalKind::terminate())?);
    let proxy = FaultProxy::start(config, plan).await.map_err(|error| error.to_string())?;
    // At once, also into a pipe: scripts wait for it.
    let line = format!("faultproxy ready endpoint={} control={}\n", proxy.endpoint(), proxy.control());
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_rules_of_the_command_line_come_behind_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("mink-faults-{}", std::process::id()));
        fs::write(&path, "seed 3\nput: lost\n").unwrap();
        let file = path.to_str().unwrap();
        let line = ["faultproxy", "--to", "http://127.0.0.1:1", "--plan", file, "--rule", "get 5%: cut 50%"];
        let read = plan(&Command::parse_from(line).options);
        fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap().to_string(), "seed 3\nput: lost\nget 5%: cut 50%\n");
    }

    #[test]
    fn a_wrong_rule_is_named() {
        let line = ["faultproxy", "--to", "http://127.0.0.1:1", "--rule", "put: vanish"];
        let error = plan(&Command::parse_from(line).options).unwrap_err();
        assert!(error.contains("put: vanish"), "{error}");
    }
}
