//! The dependency line of each folder, as a test: reads `cargo metadata` and fails on an edge that the list lacks.
//!
//! Lives on: a developer's machine and CI.
//! Invariants: arrows point down only: core < io < shard < frontends. A new edge is a decision: it is added here, in
//! docs/architecture.md, and with a note in docs/decisions.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

/// Crate, its folder, and the crates of ours that it may use.
const ALLOWED: &[(&str, &str, &[&str])] = &[
    ("mink-types", "core", &[]),
    ("mink-record", "core", &["mink-types"]),
    ("mink-log", "core", &["mink-types", "mink-record"]),
    ("mink-metadata", "core", &["mink-types"]),
    ("mink-coordinator", "core", &["mink-types", "mink-metadata"]),
    ("mink-kafka-wire", "core", &["mink-types", "mink-record"]),
    ("mink-group", "core", &["mink-types"]),
    ("mink-ddl", "core", &["mink-types"]),
    ("mink-proto", "core", &[]),
    ("mink-rt", "io", &[]),
    ("mink-object", "io", &["mink-types", "mink-rt"]),
    ("s3stream", "io", &["mink-types", "mink-record", "mink-rt", "mink-object"]),
    ("mink-sql", "io", &["mink-types", "mink-metadata", "mink-rt", "mink-object"]),
    ("mink-router", "shard", &["mink-types", "mink-record", "mink-metadata"]),
    ("mink-api", "shard", &["mink-types", "mink-record", "mink-metadata", "mink-group", "mink-router"]),
    (
        "mink-shard",
        "shard",
        &[
            "mink-types",
            "mink-record",
            "mink-log",
            "mink-metadata",
            "mink-rt",
            "mink-object",
            "mink-router",
            "s3stream",
        ],
    ),
    (
        "mink-node",
        "shard",
        &[
            "mink-types",
            "mink-record",
            "mink-log",
            "mink-metadata",
            "mink-coordinator",
            "mink-group",
            "mink-rt",
            "mink-object",
            "s3stream",
            "mink-sql",
            "mink-router",
            "mink-api",
            "mink-shard",
        ],
    ),
    (
        "mink-kafka",
        "frontends",
        &[
            "mink-types",
            "mink-record",
            "mink-metadata",
            "mink-group",
            "mink-kafka-wire",
            "mink-rt",
            "mink-router",
            "mink-api",
        ],
    ),
    (
        "mink-flight",
        "frontends",
        &[
            "mink-types",
            "mink-record",
            "mink-metadata",
            "mink-ddl",
            "mink-proto",
            "mink-rt",
            "mink-router",
            "mink-api",
        ],
    ),
    ("mink-http", "frontends", &["mink-types", "mink-metadata", "mink-rt", "mink-router", "mink-api"]),
    // The client makes partitions and reads schemas by the statements that it sends.
    ("mink-client", "frontends", &["mink-types", "mink-record", "mink-kafka-wire", "mink-ddl", "mink-proto"]),
    (
        "mink-server",
        "frontends",
        &[
            "mink-types",
            "mink-record",
            "mink-metadata",
            "mink-rt",
            "mink-object",
            "mink-sql",
            "s3stream",
            "mink-router",
            "mink-api",
            "mink-shard",
            "mink-node",
            "mink-kafka",
            "mink-flight",
            "mink-http",
        ],
    ),
    ("mink-cli", "frontends", &["mink-types", "mink-record", "mink-ddl", "mink-server", "mink-client"]),
    // It measures the pieces themselves, and a node without its frontends.
    (
        "mink-bench",
        "benches",
        &[
            "mink-types",
            "mink-record",
            "mink-log",
            "mink-kafka-wire",
            "mink-proto",
            "mink-rt",
            "mink-object",
            "mink-sql",
            "s3stream",
            "mink-router",
            "mink-api",
            "mink-shard",
            "mink-node",
        ],
    ),
    // It runs nodes without their frontends.
    (
        "mink-sim",
        "tests",
        &[
            "mink-types",
            "mink-record",
            "mink-metadata",
            "mink-group",
            "mink-rt",
            "mink-object",
            "s3stream",
            "mink-sql",
            "mink-router",
            "mink-api",
            "mink-node",
        ],
    ),
    ("mink-testkit", "tests", &["mink-types", "mink-rt", "mink-object"]),
    // The model is pure, as what it drives. The walk of s3stream it compiles from its source, for its rules know of no I/O.
    ("mink-model", "tests", &["mink-types", "mink-metadata", "mink-coordinator"]),
    // The bare connection of the end-to-end tests speaks in the messages and batches of core; the Rust client is tried as its users have it.
    ("mink-e2e", "tests", &["mink-testkit", "mink-kafka-wire", "mink-record", "mink-client"]),
    // What it fuzzes.
    (
        "mink-fuzz",
        "tests",
        &[
            "mink-types",
            "mink-record",
            "mink-log",
            "mink-metadata",
            "mink-kafka-wire",
            "mink-group",
            "mink-ddl",
            "mink-proto",
            "mink-rt",
            "mink-object",
            "s3stream",
            "mink-flight",
            "mink-server",
        ],
    ),
    ("xtask", "tests", &["mink-rt", "mink-testkit"]),
];

/// What only one crate may name: the seams of docs/architecture.md.
const FOREIGN: &[(&str, &[&str])] = &[("object_store", &["mink-object"]), ("rusqlite", &["mink-sql"])];

/// Crates that run on the cores or are pure: no runtime, store or driver in their dependencies. mink-router has the semaphore of
/// byte permits from tokio (its `sync` feature alone), which only the service runtime acquires.
const NO_TOKIO: &[&str] = &["mink-shard", "mink-api"];

/// Libraries that bring I/O, time, threads or randomness, which `core` must not have.
const NOT_IN_CORE: &[&str] =
    &["tokio", "futures", "async-trait", "rand", "rustix", "tracing", "object_store", "rusqlite", "reqwest"];

/// A crate as its manifest has it: its folder, and the names it depends on.
struct Manifest {
    folder: String,
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

fn manifests() -> BTreeMap<String, Manifest> {
    let metadata = MetadataCommand::new().no_deps().exec().expect("cargo metadata works in the workspace");
    let folder_of = |path: &cargo_metadata::camino::Utf8Path| {
        let path = path.strip_prefix(&metadata.workspace_root).expect("below the root");
        path.components().next().expect("a folder").to_string()
    };
    metadata
        .packages
        .iter()
        .map(|package| {
            let names = |tests: bool| {
                package
                    .dependencies
                    .iter()
                    .filter(|d| (d.kind == DependencyKind::Development) == tests)
                    .map(|d| d.name.clone())
                    .collect()
            };
            let folder = folder_of(&package.manifest_path);
            (package.name.to_string(), Manifest { folder, uses: names(false), tests_use: names(true) })
        })
        .collect()
}

#[test]
fn every_edge_between_our_crates_is_on_the_list() {
    let (manifests, mut faults) = (manifests(), Vec::new());
    let allowed: BTreeMap<_, _> =
        ALLOWED.iter().map(|(name, folder, uses)| (*name, (*folder, *uses))).collect();
    for (name, manifest) in &manifests {
        let Some((folder, may)) = allowed.get(name.as_str()) else {
            faults.push(format!("crate {name} is not on the list"));
            continue;
        };
        if manifest.folder != *folder {
            faults.push(format!("crate {name} lies in {}, the list says {folder}", manifest.folder));
        }
        let ours = |used: &&String| manifests.contains_key(used.as_str());
        for used in manifest.uses.iter().filter(ours).filter(|used| !may.contains(&used.as_str())) {
            faults.push(format!("{name} uses {used}, which the list lacks"));
        }
        // Tests may use the test kit, and whatever the crate itself may.
        let known = |used: &&String| used.as_str() == "mink-testkit" || may.contains(&used.as_str());
        for used in manifest.tests_use.iter().filter(ours).filter(|used| !known(used)) {
            faults.push(format!("tests of {name} use {used}, which the list lacks"));
        }
    }
    for name in allowed.keys().filter(|name| !manifests.contains_key(**name)) {
        faults.push(format!("the list names {name}, which does not exist"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_list_itself_points_down_only() {
    let rank = |folder: &str| {
        ["core", "io", "shard", "lake", "frontends", "benches", "tests"].iter().position(|f| *f == folder)
    };
    let folder_of: BTreeMap<_, _> = ALLOWED.iter().map(|(name, folder, _)| (*name, *folder)).collect();
    for (name, folder, uses) in ALLOWED {
        for used in *uses {
            assert!(rank(folder_of[used]) <= rank(folder), "{name} points up to {used}");
        }
    }
}

/// Code that does the wrong thing on purpose is for the simulator: no other crate can switch it on, and none does by default.
#[test]
fn no_build_but_the_simulators_has_mutants() {
    let metadata = MetadataCommand::new().no_deps().exec().expect("cargo metadata works in the workspace");
    let mut faults = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|d| d.features.iter().any(|f| f == "mutants")) {
            faults.push(format!("{} asks for {} with mutants", package.name, dependency.name));
        }
        for (feature, enables) in &package.features {
            let on = feature != "mutants" && enables.iter().any(|enabled| enabled.ends_with("mutants"));
            let forwards = feature == "mutants" && !["mink-rt", "mink-sim"].contains(&package.name.as_str());
            if on || forwards {
                faults.push(format!("the feature {feature} of {} switches mutants on", package.name));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_seam_names_its_library_alone() {
    let mut faults = Vec::new();
    for (name, Manifest { folder, uses, .. }) in &manifests() {
        for (library, owners) in FOREIGN {
            if uses.contains(*library) && !owners.contains(&name.as_str()) {
                faults.push(format!("{name} names {library}; only {owners:?} may"));
            }
        }
        if NO_TOKIO.contains(&name.as_str()) && uses.contains("tokio") {
            faults.push(format!("{name} names tokio; on the cores only mink-rt may"));
        }
        if folder == "core" {
            for library in NOT_IN_CORE.iter().filter(|library| uses.contains(**library)) {
                faults.push(format!("{name} is in core and names {library}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
