//! What the process may use of the machine: CPUs, CPU time, memory. Affinity masks and cgroups (v2 and v1) both bound it.
//! Lives on: anywhere; reads a few small files of the kernel at start.
//! Owns: nothing.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Where the kernel's files are, outside tests.
pub const FS_ROOT: &str = "/";

/// Smallest v1 memory limit that means "none": the kernel writes the largest page-aligned `i64`.
const V1_MEMORY_UNLIMITED: u64 = 1 << 60;

/// CPUs that the process may run on (its affinity mask), ascending; never empty.
pub fn allowed_cores() -> Vec<usize> {
    let allowed = affinity();
    if !allowed.is_empty() {
        return allowed;
    }
    (0..std::thread::available_parallelism().map_or(1, NonZeroUsize::get)).collect()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn affinity() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    // Refused in some sandboxes: the caller falls back to the count of CPUs.
    sched_getaffinity(None)
        .map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
        .unwrap_or_default()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn affinity() -> Vec<usize> {
    Vec::new()
}

/// One shard per CPU that the process may run on and has the quota for; a fraction of a CPU makes no shard.
pub fn shards_by_default() -> NonZeroUsize {
    shards_for(allowed_cores().len(), cpu_quota(Path::new(FS_ROOT)))
}

fn shards_for(allowed: usize, quota: Option<f64>) -> NonZeroUsize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a quota is positive and the cast of a float saturates"
    )]
    let by_quota = quota.map_or(usize::MAX, |cpus| cpus.floor() as usize);
    NonZeroUsize::new(allowed.min(by_quota)).unwrap_or(NonZeroUsize::MIN)
}

/// CPU time the process may use, in CPUs: the tightest quota of its cgroup and that group's parents. `None`
/// without a quota. `fs_root` is [`FS_ROOT`] outside tests.
pub fn cpu_quota(fs_root: &Path) -> Option<f64> {
    let v2 = groups(fs_root, "").into_iter().filter_map(|group| quota_v2(&read(&group.join("cpu.max"))?));
    let v1 = groups(fs_root, "cpu").into_iter().filter_map(|group| {
        quota_v1(&read(&group.join("cpu.cfs_quota_us"))?, &read(&group.join("cpu.cfs_period_us"))?)
    });
    v2.chain(v1).min_by(f64::total_cmp)
}

/// Bytes of memory the process may use: the tightest limit of its cgroup, that group's parents, and the machine.
/// `None` when not even the machine's memory can be read. `fs_root` is [`FS_ROOT`] outside tests.
pub fn memory_limit(fs_root: &Path) -> Option<u64> {
    let v2 = groups(fs_root, "").into_iter().filter_map(|group| limit_v2(&read(&group.join("memory.max"))?));
    let v1 = groups(fs_root, "memory")
        .into_iter()
        .filter_map(|group| limit_v1(&read(&group.join("memory.limit_in_bytes"))?));
    let machine = read(&fs_root.join("proc/meminfo")).and_then(|text| meminfo_total(&text));
    v2.chain(v1).chain(machine).min()
}

/// The folders of the process's group and of its parents under `controller`'s hierarchy ("" for v2). In a container the
/// listed path is often the host's and absent here: its parents, up to the mount's root, are tried all the same.
fn groups(fs_root: &Path, controller: &str) -> Vec<PathBuf> {
    let listed = read(&fs_root.join("proc/self/cgroup")).unwrap_or_default();
    let Some((controllers, path)) = group_of(&listed, controller) else {
        return Vec::new();
    };
    let base = fs_root.join("sys/fs/cgroup");
    // v1 mounts a hierarchy under the names of its controllers; a hybrid machine mounts v2 as `unified`.
    let mounts: Vec<PathBuf> = if controller.is_empty() {
        vec![base.clone(), base.join("unified")]
    } else {
        vec![base.join(controllers), base.join(controller)]
    };
    let relative = Path::new(path.trim_start_matches('/'));
    mounts.iter().flat_map(|mount| relative.ancestors().map(move |part| mount.join(part))).collect()
}

/// The line of `/proc/self/cgroup` (`id:controllers:path`) for a controller; v2's has no controllers.
fn group_of<'text>(listed: &'text str, controller: &str) -> Option<(&'text str, &'text str)> {
    listed.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let found = if controller.is_empty() {
            id == "0" && controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == controller)
        };
        // A path with `..` lies outside the namespace; joining it would leave the mount.
        (found && !path.split('/').any(|part| part == "..")).then_some((controllers, path))
    })
}

/// `cpu.max`: `<quota|max> <period>`, both in microseconds.
fn quota_v2(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    ratio(fields.next()?.parse().ok()?, fields.next()?.parse().ok()?)
}

/// `cpu.cfs_quota_us` (-1 for none) over `cpu.cfs_period_us`.
fn quota_v1(quota: &str, period: &str) -> Option<f64> {
    ratio(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn ratio(quota_us: u32, period_us: u32) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| f64::from(quota_us) / f64::from(period_us))
}

/// `memory.max`: bytes or `max`.
fn limit_v2(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `memory.limit_in_bytes`.
fn limit_v1(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < V1_MEMORY_UNLIMITED)
}

/// `MemTotal` of `/proc/meminfo`, which counts in KiB.
fn meminfo_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A file that is absent or unreadable states no limit.
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests;
