//! The `mink` binary: node, client and administration in one.
//!
//! Lives on: a node on its own runtimes; every other command on a tokio runtime of this process.
//! Owns: the command line.     Talks to: nodes, over Kafka's protocol, Arrow Flight and HTTP.
//! Invariants: results go to stdout, everything else to stderr; exit 0 is success, 1 failure, 2 wrong usage.
#![forbid(unsafe_code)]

mod address;
mod api;
mod bench;
mod cli;
mod completions;
mod database;
mod demo;
mod doctor;
mod failure;
mod form;
mod group;
mod hints;
mod histogram;
mod metadata;
mod metrics;
mod numbers;
mod output;
mod partition;
mod read;
mod sql;
mod table;
mod write;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::Failure;
use mink_server::{LogFormat, check_environment, known_variables};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(error),
    };
    // Completions are made when a shell starts; that must not end at a variable.
    if !matches!(cli.command, Command::Completions(_))
        && let Err(unknown) = check_environment(&known_variables(&Cli::command()), std::env::vars_os())
    {
        return Failure::usage(unknown.to_string()).report();
    }
    if let Command::Serve(_) = cli.command {
        // The node reads the words after `serve` itself, because a file of settings stands behind them.
        let arguments: Vec<OsString> = std::env::args_os().skip(2).collect();
        return mink_server::serve_blocking(&arguments);
    }
    if let Command::Metadata(args) = &cli.command
        && let Some(flags) = args.recover_flags()
    {
        return mink_server::recover_metadata(flags);
    }
    match client(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Says what is wrong with the command line, or the help that it asks for.
fn refuse(error: clap::Error) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let error = hints::explain(error, &Cli::command(), &arguments);
    // Nothing is left to tell when stderr itself is gone.
    drop(error.print());
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Runs every command that is a client.
fn client(command: Command) -> Result<(), Failure> {
    mink_server::logging::start("error", LogFormat::Text).map_err(Failure::Usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        match command {
            Command::Serve(_) => Ok(()),
            Command::Demo(args) => demo::run(args).await,
            Command::Db(args) => database::run(args).await,
            Command::Sql(args) => sql::run(args).await,
            Command::Table(args) => table::run(args).await,
            Command::Partition(args) => partition::run(args).await,
            Command::Group(args) => group::run(args).await,
            Command::Write(args) => write::run(args).await,
            Command::Read(args) => read::run(args).await,
            Command::Metadata(args) => metadata::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Bench(args) => bench::run(*args).await,
            Command::Completions(args) => completions::run(&args),
        }
    })
}
