//! How a command fails: in words that say what to do, with an exit code.
//!
//! Lives on: anywhere.
use mink_client::flight::{FlightError, FlightErrorKind};
use mink_client::{ClientError, ErrorKind};
use std::process::ExitCode;

/// Why a command did not do what it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command line cannot mean anything: exit 2.
    Usage(String),
    /// It did not work: exit 1.
    Failed(String),
    /// Whoever read our output has gone; that is no failure, and nobody is left to tell.
    Unheard,
}

impl Failure {
    pub(crate) fn failed(what: impl Into<String>) -> Failure {
        Failure::Failed(what.into())
    }

    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure::Usage(what.into())
    }

    /// What a Kafka client could not do at this address.
    pub(crate) fn kafka(address: &str) -> impl Fn(ClientError) -> Failure + use<> {
        let address = address.to_owned();
        move |error| match error.kind() {
            ErrorKind::Connection => Failure::failed(format!(
                "Kafka listener at {address}: {error}; is a node running there? `mink serve` starts one, --kafka HOST:PORT names another"
            )),
            _ => Failure::failed(error.to_string()),
        }
    }

    /// What a Flight client could not do, once its node had answered.
    pub(crate) fn flight(error: &FlightError) -> Failure {
        let remedy = match error.kind() {
            FlightErrorKind::Retry => "; nothing was done: try again in a moment",
            FlightErrorKind::Unknown => "; it may have been done or not: look before you do it again",
            FlightErrorKind::Conflict => "; look again, then try again",
            FlightErrorKind::Damaged => "; the node's log says more",
            _ => "",
        };
        Failure::failed(format!("{error}{remedy}"))
    }

    /// What went wrong.
    pub(crate) fn words(&self) -> &str {
        match self {
            Failure::Usage(words) | Failure::Failed(words) => words,
            Failure::Unheard => "nobody reads the results",
        }
    }

    /// Tells it, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Usage(words) => {
                eprintln!("mink: {words}");
                ExitCode::from(2)
            }
            Failure::Failed(words) => {
                eprintln!("mink: {words}");
                ExitCode::FAILURE
            }
            Failure::Unheard => ExitCode::SUCCESS,
        }
    }
}

impl From<std::io::Error> for Failure {
    /// Of writing results; other I/O is told with what was being done.
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::Unheard;
        }
        Failure::failed(format!("cannot write results: {error}"))
    }
}
