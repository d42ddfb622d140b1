//! Named places where a test of whole processes may stop or end this one, as an unlucky machine would.
//! Lives on: anywhere; a place costs one load when no test asks for it.
//! Owns: the plan in `MINK_FAILPOINTS`, read once.
//!
//! The plan is a list by commas of `NAME=ACTION`, or `NAME=ACTION@N` for the N-th time the place is reached (from 1). `stop`
//! sends the process SIGSTOP, so that it stands still until somebody sends SIGCONT; `abort` ends it at once.

use rustix::process::{Signal, getpid, kill_process};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The variable that holds the plan.
pub const FAIL_POINTS_VARIABLE: &str = "MINK_FAILPOINTS";

/// Longest time until a stop has reached every thread, and some more.
const STOP_REACHES_ALL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Stop,
    Abort,
}

#[derive(Debug)]
struct FailPoint {
    name: String,
    action: Action,
    /// Which time counts; every time if none.
    at: Option<u64>,
    reached: AtomicU64,
}

static PLAN: OnceLock<Vec<FailPoint>> = OnceLock::new();

/// Says that the named place is reached.
pub fn fail_point(name: &str) {
    let plan = PLAN.get_or_init(|| match std::env::var(FAIL_POINTS_VARIABLE) {
        Ok(text) => parse(&text).unwrap_or_else(|error| {
            // A test that asked for a fault and gets none would prove nothing.
            eprintln!("mink: {FAIL_POINTS_VARIABLE}: {error}");
            std::process::exit(2);
        }),
        Err(_) => Vec::new(),
    });
    for point in plan.iter().filter(|point| point.name == name) {
        let times = point.reached.fetch_add(1, Ordering::Relaxed) + 1;
        if point.at.is_none_or(|at| at == times) {
            eprintln!("mink: fail point {name} reached, {:?}", point.action);
            act(point.action);
        }
    }
}

fn act(action: Action) {
    match action {
        Action::Stop => {
            if let Err(error) = kill_process(getpid(), Signal::STOP) {
                eprintln!("mink: cannot stop: {error}");
            }
            // The signal is the process's: any thread may take it, and this one would run on until the stop reaches it. Nobody
            // comes out of this pause while the process stands still.
            std::thread::sleep(STOP_REACHES_ALL);
        }
        Action::Abort => std::process::abort(),
    }
}

fn parse(text: &str) -> Result<Vec<FailPoint>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse_one).collect()
}

fn parse_one(text: &str) -> Result<FailPoint, String> {
    let wrong = || format!("{text:?} is not NAME=stop, NAME=abort, or one of these with @N");
    let (name, action) = text.split_once('=').ok_or_else(wrong)?;
    let (action, at) = match action.split_once('@') {
        Some((action, at)) => (action, Some(at.parse().map_err(|_| wrong())?)),
        None => (action, None),
    };
    let action = match action {
        "stop" => Action::Stop,
        "abort" => Action::Abort,
        _ => return Err(wrong()),
    };
    Ok(FailPoint { name: name.into(), action, at, reached: AtomicU64::new(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_places_actions_and_times() {
        let plan = parse("wal.put.before=stop, commit.before=abort@3").unwrap();
        let read: Vec<_> = plan.iter().map(|p| (p.name.as_str(), p.action, p.at)).collect();
        assert_eq!(read, [("wal.put.before", Action::Stop, None), ("commit.before", Action::Abort, Some(3))]);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn a_plan_that_means_nothing_is_refused() {
        for text in ["wal", "wal=sleep", "wal=stop@x", "wal=stop@"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
