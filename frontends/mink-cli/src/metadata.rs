//! `mink metadata`: the command log that nodes agree on.
//!
//! Lives on: the command's task.
use crate::address::AdminAddress;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write;

#[derive(Debug, Args)]
pub(crate) struct MetadataArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Example:
  mink metadata status

`index` and `hash` name the last row of the log that the node has applied; two nodes at one index have the same `digest`.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// How far the log has come, and what it describes
    #[command(after_help = EXAMPLES)]
    Status {
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Refill a database that lost rows, or is gone, from the newest snapshot in the store. Stop the node first
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover {
        /// The flags of `mink serve` that say where things are: --data-dir, --storage, --metadata, --cluster
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        flags: Vec<OsString>,
    },
}

const RECOVER_EXAMPLES: &str = "\
Example:
  mink metadata recover --data-dir /var/lib/mink

A node that finds its database behind what the store proves does not start, and says so. This puts the snapshot's state in its place.
Commands after the snapshot are lost; the next start names what they held.";

impl MetadataArgs {
    /// The flags after `recover`, which works on store and database without a node.
    pub(crate) fn recover_flags(&self) -> Option<&[OsString]> {
        match &self.verb {
            Verb::Recover { flags } => Some(flags),
            Verb::Status { .. } => None,
        }
    }
}

pub(crate) async fn run(args: MetadataArgs) -> Result<(), Failure> {
    let Verb::Status { node, output } = args.verb else {
        return Err(Failure::usage("recover works on store and database, not through a node"));
    };
    let answer = node.http().await?.get("/metadata").await?;
    if output.output == Form::Json {
        return Ok(writeln!(std::io::stdout(), "{answer}")?);
    }
    let mut printer = printer(output.output, &["name", "value"])?;
    for (name, value) in answer.as_object().into_iter().flatten() {
        printer.row(vec![Value::String(name.clone()), value.clone()])?;
    }
    printer.finish()
}
