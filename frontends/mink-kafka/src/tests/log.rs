//! The lines that the node writes to its log while a test runs.
//!
//! Lives on: tests only, each on its own thread.
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tracing::dispatcher::DefaultGuard;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// What the thread has logged since [`listen`].
pub(super) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    _listens: DefaultGuard,
    /// While a process has one subscriber alone, a thread that has none may settle for all threads that a line goes to nobody.
    _second: Dispatch,
}

/// Listens to lines of level INFO and above until it is dropped.
pub(super) fn listen() -> Log {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let second = Dispatch::new(Listener(Arc::default()));
    let listens = tracing::subscriber::set_default(Listener(Arc::clone(&lines)));
    Log { lines, _listens: listens, _second: second }
}

impl Log {
    /// The lines with this text in them, each with its level first and its fields behind.
    pub(super) fn lines(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("not poisoned");
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

struct Listener(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes all");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().expect("not poisoned").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
