//! What this machine allows a process: files, memory, cores, io_uring, and whether its clock can be right.
//!
//! Lives on: the command's task.
use super::Finding;
use crate::numbers;
use mink_server::Settings;
use rustix::process::{Resource, getrlimit};
use std::time::{SystemTime, UNIX_EPOCH};

/// Connections, WAL objects and tables of one node fit well below this.
const OPEN_FILES_MIN: u64 = 4096;
/// What `mink serve` takes at least, twice, since a node takes half.
const MEMORY_MIN: u64 = 512 << 20;
/// 2024-01-01: a clock before it was never set.
const CLOCK_MIN_S: u64 = 1_704_067_200;

pub(super) fn check() -> Vec<Finding> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // The remedy is in the words: those of the node's own log.
    let uring = Settings::probe_uring().map_err(|error| (error.message().to_owned(), error.remedy()));
    vec![
        open_files(getrlimit(Resource::Nofile).maximum),
        memory(memory_limit()),
        cores(),
        io_uring(uring),
        clock(now),
    ]
}

/// The hard limit: `mink serve` raises the soft one to it.
fn open_files(limit: Option<u64>) -> Finding {
    match limit {
        Some(limit) if limit < OPEN_FILES_MIN => Finding::warning(
            "open files",
            format!("limit {}", numbers::count(limit)),
            format!(
                "each connection takes one: raise it before `mink serve` (ulimit -Hn {OPEN_FILES_MIN}, or LimitNOFILE of systemd)"
            ),
        ),
        Some(limit) => Finding::good("open files", format!("limit {}", numbers::count(limit))),
        None => Finding::good("open files", "no limit"),
    }
}

/// The cgroup's limit, else what the machine has.
fn memory_limit() -> Option<u64> {
    let cgroup =
        std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    match (cgroup, machine) {
        (Some(cgroup), Some(machine)) => Some(std::cmp::min::<u64>(cgroup, machine)),
        (one, other) => one.or(other),
    }
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn memory(limit: Option<u64>) -> Finding {
    match limit {
        Some(bytes) if bytes < MEMORY_MIN => Finding::bad(
            "memory",
            numbers::bytes(bytes),
            format!("a node needs {}: give the container or machine more", numbers::bytes(MEMORY_MIN)),
        ),
        Some(bytes) => Finding::good(
            "memory",
            format!("{}; a node takes half unless --memory says otherwise", numbers::bytes(bytes)),
        ),
        None => Finding::warning("memory", "unknown", "say what a node may use with --memory"),
    }
}

fn cores() -> Finding {
    match std::thread::available_parallelism() {
        Ok(cores) => Finding::good(
            "cores",
            format!("{cores}; a node runs a shard on each unless --shards says otherwise"),
        ),
        Err(error) => {
            Finding::warning("cores", error.to_string(), "say how many shards to run with --shards")
        }
    }
}

/// What keeps this process from it keeps a node that is started in the same place from it.
fn io_uring(probed: Result<(), (String, &'static str)>) -> Finding {
    match probed {
        Ok(()) => {
            Finding::good("io_uring", "to be had; a node's cores run on it unless --runtime says otherwise")
        }
        Err((why, remedy)) => {
            let why = why.trim_start_matches("--runtime uring: ");
            Finding::warning("io_uring", format!("{why}: a node's cores run on epoll"), remedy)
        }
    }
}

fn clock(now_s: u64) -> Finding {
    if now_s < CLOCK_MIN_S {
        return Finding::bad(
            "clock",
            "it was never set",
            "set it, or start an NTP client: retention goes by this clock",
        );
    }
    Finding::good("clock", "plausible")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn whatever_is_not_good_says_what_to_do() {
        let refused = io_uring(Err(("--runtime uring: not permitted".into(), "permit it, or use epoll")));
        assert!(refused.found.starts_with("not permitted: "), "{refused:?}");
        for finding in [open_files(Some(1024)), memory(Some(1 << 20)), memory(None), refused, clock(0)] {
            assert_ne!(finding.severity, Severity::Good, "{finding:?}");
            assert!(finding.remedy.len() > 10, "{finding:?}");
        }
        let well = [
            open_files(None),
            open_files(Some(65_536)),
            memory(Some(1 << 34)),
            io_uring(Ok(())),
            clock(u64::MAX),
        ];
        for finding in well {
            assert_eq!((finding.severity, finding.remedy.as_str()), (Severity::Good, ""));
        }
    }

    #[test]
    fn the_machine_tells_its_memory() {
        assert_eq!(total_memory("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), Some(24_576_000 * 1024));
        assert_eq!(total_memory("nothing"), None);
    }
}
