//! The project's tasks, run as `cargo xtask <task>`: one module per task, this file only dispatches.
//!
//! Lives on: a developer's machine and CI; no product code depends on it.
//! Owns: nothing.

#[cfg(test)]
mod fault_table;
mod faultproxy;
mod fuzz;
mod kafka_messages;
#[cfg(test)]
mod layering;
mod test;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "The project's tasks", disable_version_flag = true)]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// A proxy before an S3 server that loses, delays, refuses and cuts, by a plan
    Faultproxy(faultproxy::Options),
    /// Runs the fuzz targets under libFuzzer, guided by coverage
    Fuzz(fuzz::Options),
    /// Writes the Kafka messages of core/mink-kafka-wire from the definitions in a kafka-clients jar
    GenerateKafka(kafka_messages::Options),
    /// Runs everything that CI checks, step by step
    Test(test::Options),
}

fn main() -> ExitCode {
    let outcome = match Xtask::parse().task {
        Task::Faultproxy(options) => faultproxy::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::GenerateKafka(options) => kafka_messages::run(&options),
        Task::Test(options) => test::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
