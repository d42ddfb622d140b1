//! Processor time that a process has used, as Linux counts it.
//!
//! Lives on: anywhere; a read of `/proc` without a wait.
use mink_api::Metric;
use std::fs;

/// The name under which a node tells its own, as other software does.
const METRIC: &str = "process_cpu_seconds";
/// Ticks of `/proc/PID/stat` in a second: fixed for programs, whatever the kernel counts by itself.
const TICKS_PER_SECOND: f64 = 100.0;
/// Where the two counts stand behind the program's name, which may hold anything but ends with the last parenthesis.
const USER_AT: usize = 11;

/// Processor seconds since a process began, of all its threads.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CpuTime {
    pub user_s: f64,
    /// What the kernel worked for it: sockets and files above all.
    pub system_s: f64,
}

impl CpuTime {
    /// Of this process; none where the system does not say.
    pub fn of_this_process() -> Option<CpuTime> {
        CpuTime::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Of a process by its id; none if there is none.
    pub fn of(pid: u32) -> Option<CpuTime> {
        CpuTime::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<CpuTime> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(USER_AT);
        let mut next = || fields.next()?.parse::<u32>().ok().map(|ticks| f64::from(ticks) / TICKS_PER_SECOND);
        Some(CpuTime { user_s: next()?, system_s: next()? })
    }

    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// What was used since `earlier` of the same process.
    #[must_use]
    pub fn since(&self, earlier: &CpuTime) -> CpuTime {
        CpuTime {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            system_s: (self.system_s - earlier.system_s).max(0.0),
        }
    }
}

/// What this process has used, for `/metrics`.
pub(crate) fn cpu_metrics() -> Vec<Metric> {
    let Some(used) = CpuTime::of_this_process() else { return Vec::new() };
    let help = "processor time of the process, in user space and in the kernel";
    [("user", used.user_s), ("system", used.system_s)]
        .map(|(mode, seconds)| Metric::seconds(METRIC, help, seconds).label("mode", mode))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_does_not_mislead() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1543 0 3 0 250 125 7 8 20 0 9 0 123 456 7";
        assert_eq!(CpuTime::parse(stat), Some(CpuTime { user_s: 2.5, system_s: 1.25 }));
        for short in ["", "42 (a", "42 (a) S 1 2 3", "42 (a) S 1 42 42 0 -1 4194560 1543 0 3 0 x 125"] {
            assert_eq!(CpuTime::parse(short), None, "{short}");
        }
    }

    #[test]
    fn linux_tells_both_and_nothing_of_who_is_not_there() {
        let used = CpuTime::of_this_process().expect("Linux says it");
        assert_eq!(used.since(&used), CpuTime::default());
        assert!(CpuTime::of(std::process::id()).expect("Linux says it").total_s() >= used.total_s());
        assert_eq!(CpuTime::of(u32::MAX), None);
        assert_eq!(cpu_metrics().len(), 2);
    }
}
