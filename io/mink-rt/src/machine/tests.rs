//! Limits as kernels write them, under a root of the test's own.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A file system with these files; parents are made.
fn root_with(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:       32768000 kB\nMemFree:         1000000 kB\nMemAvailable:   2 kB\n");

#[test]
fn a_v2_group_and_its_parents_bound_cpu_and_memory() {
    let root = root_with(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/system.slice/mink.service\n"),
        ("sys/fs/cgroup/system.slice/mink.service/cpu.max", "400000 100000\n"),
        ("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n"),
        ("sys/fs/cgroup/system.slice/mink.service/memory.max", "max\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
    ]);
    assert_eq!(cpu_quota(root.path()), Some(2.5));
    assert_eq!(memory_limit(root.path()), Some(1 << 30));
}

#[test]
fn a_v2_group_without_limits_leaves_the_machine() {
    let root = root_with(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/memory.max", "max\n"),
    ]);
    assert_eq!(cpu_quota(root.path()), None);
    assert_eq!(memory_limit(root.path()), Some(32_768_000 * 1024));
}

#[test]
fn in_a_container_the_limits_at_the_root_of_the_mount_are_found() {
    let root = root_with(&[
        ("proc/self/cgroup", "0::/docker/0123abcd\n"),
        ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/memory.max", "536870912\n"),
    ]);
    assert_eq!(cpu_quota(root.path()), Some(0.5));
    assert_eq!(memory_limit(root.path()), Some(512 << 20));
}

#[test]
fn v1_hierarchies_are_read_where_they_are_mounted() {
    let root = root_with(&[
        MEMINFO,
        ("proc/self/cgroup", "11:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "268435456\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ]);
    assert_eq!(cpu_quota(root.path()), Some(1.5));
    assert_eq!(memory_limit(root.path()), Some(256 << 20));
}

#[test]
fn on_a_hybrid_machine_the_unified_mount_is_read_beside_v1() {
    let root = root_with(&[
        ("proc/self/cgroup", "4:cpu:/x\n0::/x\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/unified/x/cpu.max", "300000 100000\n"),
    ]);
    assert_eq!(cpu_quota(root.path()), Some(3.0));
}

#[test]
fn nonsense_and_absence_state_no_limit() {
    let empty = root_with(&[]);
    assert_eq!((cpu_quota(empty.path()), memory_limit(empty.path())), (None, None));
    let root = root_with(&[
        ("proc/self/cgroup", "0::/../outside\n:::\n\n0\n"),
        ("sys/fs/cgroup/cpu.max", "0 0\n"),
        ("sys/fs/cgroup/memory.max", "a lot\n"),
        ("proc/meminfo", "MemTotal: many kB\n"),
        ("sys/fs/outside/cpu.max", "100000 100000\n"),
    ]);
    assert_eq!((cpu_quota(root.path()), memory_limit(root.path())), (None, None));
    for text in ["", "max", "100000", "-5 100000", "100000 0", "x y"] {
        assert_eq!(quota_v2(text), None, "{text:?}");
    }
}

#[test]
fn a_fraction_of_a_cpu_makes_no_shard_and_there_is_always_one() {
    for (allowed, quota, shards) in [
        (8, None, 8),
        (8, Some(2.5), 2),
        (8, Some(0.5), 1),
        (2, Some(16.0), 2),
        (0, None, 1),
        (4, Some(f64::NAN), 1),
    ] {
        assert_eq!(shards_for(allowed, quota).get(), shards, "{allowed} {quota:?}");
    }
}

#[test]
fn this_machine_states_something_sane() {
    let cores = allowed_cores();
    assert!(!cores.is_empty() && cores.is_sorted());
    assert!(shards_by_default().get() <= cores.len());
    let memory = memory_limit(Path::new(FS_ROOT));
    assert!(memory.is_none_or(|bytes| bytes > 1 << 20), "{memory:?}");
}
