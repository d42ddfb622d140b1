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
    /// The user stopped it before its end: exit 130, as shells tell of an interrupt.
    Interrupted(String),
    /// Whoever read our output has gone; that is no failure, and nobody is left to tell.
    Unheard,
}

/// The exit code of what an interrupt has ended.
const INTERRUPTED: u8 = 130;

/// Resolves when the user interrupts the command; from the first call on an interrupt does nothing else.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler an interrupt ends the process by itself.
        std::future::pending::<()>().await;
    }
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
            Failure::Usage(words) | Failure::Failed(words) | Failure::Interrupted(words) => words,
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
            Failure::Interrupted(words) => {
                eprintln!("mink: {words}");
                ExitCode::from(INTERRUPTED)
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
