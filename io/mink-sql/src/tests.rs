//! Tests of the log's home, in the simulator: no clock but a virtual one, every schedule from a seed.
mod driver;
mod sqlite;
mod start;

use std::sync::Arc;

use mink_metadata::{Answer, Command, CommandResult, Registration};
use mink_object::MemoryStore;
use mink_rt::{Service, SimConfig, simulate};
use mink_types::{ClusterName, DatabaseName, Incarnation, NodeId};

use crate::{CommandLog, Database, Home, Metadata, MetadataConfig, SqliteLog};

/// Runs a test body in the simulator.
pub(super) fn sim<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    body: impl FnOnce(Service) -> F,
) -> T {
    simulate(SimConfig::seeded(seed), |runtime| body(runtime.service())).expect("completes").value
}

pub(super) fn cluster(name: &str) -> ClusterName {
    ClusterName::new(name).expect("valid")
}

pub(super) async fn memory_log(service: &Service) -> SqliteLog {
    SqliteLog::open(service, Database::Memory, &cluster("mink")).await.expect("opens")
}

/// An empty store and an empty database.
pub(super) async fn home(service: &Service) -> Home {
    Home {
        service: service.clone(),
        log: Arc::new(memory_log(service).await),
        store: Arc::new(MemoryStore::new()),
        cluster: cluster("mink"),
    }
}

pub(super) fn with_log(home: &Home, log: impl CommandLog + 'static) -> Home {
    Home { log: Arc::new(log), ..home.clone() }
}

pub(super) async fn open(home: &Home) -> Metadata {
    Metadata::open(home.clone(), MetadataConfig::default()).await.expect("opens")
}

pub(super) fn create(name: &str) -> Command {
    Command::CreateDatabase { name: DatabaseName::new(name).expect("valid") }
}

/// Creates databases `name0`, `name1`, ..., a row each.
pub(super) async fn grow(metadata: &Metadata, name: &str, count: usize) {
    for at in 0..count {
        let result = metadata.submit(create(&format!("{name}{at}"))).await.expect("a result");
        assert!(matches!(result, CommandResult::Done(Answer::DatabaseCreated(_))), "{result:?}");
    }
}

pub(super) async fn register(metadata: &Metadata, node: u32) -> Incarnation {
    let registration = Registration {
        node: NodeId(node),
        tag: node.into(),
        storage: "memory://".into(),
        wal_storage: "memory://".into(),
        listeners: vec![],
        version: "0.1.0".into(),
        feature_level_max: 1,
    };
    match metadata.submit(Command::Register(registration)).await {
        Ok(CommandResult::Done(Answer::Registered(incarnation))) => incarnation,
        other => panic!("{other:?}"),
    }
}
