//! What is done to a cluster's store and database without a node: refilling the database, probing the store.
//!
//! Lives on: the thread that calls; a service runtime of its own.
//! Invariants: I13 (recovery holds the data directory's lock, so no node of this directory runs meanwhile, and overwrites no database
//! that is ahead or went another way).
use crate::parse::parse;
use crate::serve::{FAILED, PATIENCE, fail, refuse};
use crate::server::{ServeError, open_log, open_stores};
use crate::settings::{Settings, SettingsError};
use mink_node::DataDir;
use mink_object::{ObjectStore, ProbeVerdict, probe};
use mink_rt::{EpollRuntime, Runtime, Service, ServiceConfig};
use mink_sql::{Home, RecoverError, Recovered, recover};
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{0}")]
    Runtime(String),
    #[error(transparent)]
    Open(#[from] ServeError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

/// `mink metadata recover`, with the flags of `mink serve` (without the words before them): refills a database that is behind the
/// store, or empty, from the store's newest snapshot; says on stdout what it did. Call it outside of any async runtime.
pub fn recover_metadata(arguments: &[OsString]) -> ExitCode {
    let recovered =
        settings(arguments).and_then(|settings| on_service(|service| run_recovery(settings, service)));
    match recovered {
        Ok(Recovered::NothingToDo { database }) => {
            println!(
                "nothing to do: the database ends at row {}, no snapshot of the store is ahead of it",
                database.index
            );
            ExitCode::SUCCESS
        }
        Ok(Recovered::Refilled { before, snapshot }) => {
            println!(
                "the database ended at row {} and now begins at the snapshot of row {}; if commands were \
                 acked after that row, the next start refuses: then only the database that has them helps",
                before.index, snapshot.index
            );
            ExitCode::SUCCESS
        }
        Err(OfflineError::Settings(error)) => refuse(&error),
        Err(error) => fail(FAILED, &error),
    }
}

async fn run_recovery(settings: Settings, service: Service) -> Result<Recovered, OfflineError> {
    let _lock = DataDir::open(&settings.args.data_dir).map_err(ServeError::from)?;
    let store = open_stores(&settings, &service)?.stream;
    let log = open_log(&settings, &service).await?;
    Ok(recover(&Home { service, log, store, cluster: settings.cluster }).await?)
}

/// What a probe found of one store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreVerdict {
    /// Its address, without credentials.
    pub store: String,
    pub verdict: ProbeVerdict,
}

impl StoreVerdict {
    /// Whether the store may carry a cluster.
    pub fn is_sound(&self) -> bool {
        self.verdict == ProbeVerdict::Sound
    }
}

impl fmt::Display for StoreVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = &self.store;
        match &self.verdict {
            ProbeVerdict::Sound => {
                write!(f, "{store}: of several that create one name at once, one succeeds")
            }
            ProbeVerdict::Lies { detail } => write!(
                f,
                "{store}: of several that create one name at once, not exactly one succeeds ({detail}); use a store whose \
                 conditional PUT works"
            ),
            ProbeVerdict::Undecided { detail } => write!(
                f,
                "{store} could not be probed: {detail}; check that it is reachable and the credentials are good"
            ),
        }
    }
}

/// `mink doctor --storage`, with the flags of `mink serve`: races creators in the store, and in the WAL's if that is another one. Its
/// objects are deleted again. Call it outside of any async runtime (`spawn_blocking` is outside).
pub fn check_store(arguments: &[OsString]) -> Result<Vec<StoreVerdict>, OfflineError> {
    let settings = settings(arguments)?;
    on_service(|service| async move {
        let stores = open_stores(&settings, &service)?;
        let mut probed: Vec<Arc<dyn ObjectStore>> = vec![Arc::clone(&stores.stream)];
        if !Arc::ptr_eq(&stores.stream, &stores.wal) {
            probed.push(stores.wal);
        }
        let mut verdicts = Vec::new();
        for store in probed {
            let (address, tag) = (store.address(), service.random_u64());
            let verdict = probe(&[store], &service, &settings.cluster, tag).await;
            verdicts.push(StoreVerdict { store: address, verdict });
        }
        Ok(verdicts)
    })
}

fn settings(arguments: &[OsString]) -> Result<Settings, OfflineError> {
    Ok(parse(arguments).and_then(Settings::resolve)?)
}

/// Runs `work` on a service runtime that ends with it.
fn on_service<T, F: Future<Output = Result<T, OfflineError>>>(
    work: impl FnOnce(Service) -> F,
) -> Result<T, OfflineError> {
    let runtime = EpollRuntime::start(ServiceConfig::default())
        .map_err(|error| OfflineError::Runtime(error.to_string()))?;
    let done = runtime.block_on(work(runtime.service()));
    runtime.shutdown(PATIENCE);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_sql::{Metadata, MetadataConfig, write_snapshot};
    use mink_types::{Incarnation, LogIndex};
    use std::path::Path;

    fn flags(dir: &Path) -> Vec<OsString> {
        vec!["--data-dir".into(), dir.into()]
    }

    /// What a node's start leaves behind: an identity, a row, and a snapshot in the store.
    fn fill(dir: &Path) -> LogIndex {
        let settings = settings(&flags(dir)).expect("valid");
        let filled = on_service(|service| async move {
            let _lock = DataDir::open(&settings.args.data_dir).map_err(ServeError::from)?;
            let store = open_stores(&settings, &service)?.stream;
            let log = open_log(&settings, &service).await?;
            let home = Home { service, log, store, cluster: settings.cluster };
            let metadata =
                Metadata::open(home.clone(), MetadataConfig::default()).await.map_err(ServeError::from)?;
            let name = settings.kafka_database;
            let created = metadata.submit(mink_metadata::Command::CreateDatabase { name }).await;
            assert!(matches!(created, Ok(mink_metadata::CommandResult::Done(_))), "{created:?}");
            write_snapshot(&home, &metadata.view(), Incarnation(1), 0).await.expect("written");
            let last = metadata.witness().index;
            metadata.stop().await;
            Ok(last)
        });
        filled.expect("filled")
    }

    fn recovered(dir: &Path) -> Result<Recovered, OfflineError> {
        let settings = settings(&flags(dir))?;
        on_service(|service| run_recovery(settings, service))
    }

    #[test]
    fn i13_a_lost_database_is_refilled_from_the_store_and_a_sound_one_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let last = fill(dir.path());
        let same = recovered(dir.path()).expect("recovered");
        assert!(matches!(same, Recovered::NothingToDo { database } if database.index == last), "{same:?}");
        for name in ["meta.db", "meta.db-wal", "meta.db-shm"] {
            // The last connection takes the two side files away with it.
            drop(std::fs::remove_file(dir.path().join(name)));
        }
        assert!(!dir.path().join("meta.db").exists());
        let refilled = recovered(dir.path()).expect("recovered");
        assert!(
            matches!(refilled, Recovered::Refilled { before, snapshot } if before.index == LogIndex(0) && snapshot.index == last),
            "{refilled:?}"
        );
        assert!(matches!(recovered(dir.path()), Ok(Recovered::NothingToDo { .. })));
    }

    #[test]
    fn i13_recovery_keeps_away_from_a_directory_that_a_node_uses() {
        let dir = tempfile::tempdir().expect("a directory");
        let held = DataDir::open(dir.path()).expect("free");
        let error = recovered(dir.path()).expect_err("locked");
        assert!(error.to_string().contains("in use by another mink process"), "{error}");
        drop(held);
        assert!(matches!(recovered(dir.path()), Err(OfflineError::Recover(RecoverError::NoCluster { .. }))));
    }

    #[test]
    fn k_2_the_embedded_store_is_sound() {
        let dir = tempfile::tempdir().expect("a directory");
        let verdicts = check_store(&flags(dir.path())).expect("probed");
        assert!(verdicts.len() == 1 && verdicts.iter().all(StoreVerdict::is_sound), "{verdicts:?}");
        let probe = dir.path().join("objects").join("mink").join("probe");
        let left = std::fs::read_dir(&probe).map(Iterator::count);
        assert!(left.is_ok_and(|left| left == 0), "the probe's objects were there, and are gone");
    }
}
