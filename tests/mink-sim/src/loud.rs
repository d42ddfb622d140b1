//! Log lines of a simulation: printed when asked for, and errors of the nodes heard.
//!
//! Lives on: the simulation's thread, as its default subscriber.
//! Owns: the error lines.
//! Invariants: an ERROR line means that a person must look; in a world where nothing is lost there is none.
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The level that `MINK_SIM_LOG` asks for: `error`, `warn`, `info`, `debug` or `trace`; none if it is not set.
pub(crate) fn log_level() -> Option<Level> {
    std::env::var("MINK_SIM_LOG").ok()?.parse().ok()
}

struct Listener {
    print: Option<Level>,
    errors: Arc<Mutex<Vec<String>>>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        written.expect("a string takes all");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.print.unwrap_or(Level::ERROR)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{:5} {}:", metadata.level(), metadata.target()));
        event.record(&mut line);
        if self.print.is_some_and(|print| *metadata.level() <= print) {
            println!("{}", line.0);
        }
        if *metadata.level() == Level::ERROR {
            self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs `work`, prints what is logged at `print` or above, and gives the error lines.
pub(crate) fn heard<T>(print: Option<Level>, work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = Listener { print, errors: Arc::clone(&errors) };
    let done = tracing::subscriber::with_default(listener, work);
    let errors = std::mem::take(&mut *errors.lock().unwrap_or_else(PoisonError::into_inner));
    (done, errors)
}
