//! `mink metadata recover`: refills a database that is behind or empty from the store's newest snapshot.
//!
//! Lives on: service runtime; no node of the cluster may run meanwhile.
//! Invariants: I13 (a database that is ahead, or that went another way, is never overwritten).
use mink_types::{ClusterUuid, LogIndex, Outcome, RowHash, Witness};

use crate::identity::{IdentityError, confirm, note, read_identity};
use crate::log::LogError;
use crate::metadata::{Home, LoadError};
use crate::snapshots::{fetch, witness_of_store};

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// The database holds all that the snapshots know: nothing was changed.
    NothingToDo { database: Witness },
    /// The database now begins at `snapshot`. Commands after it, if there were any, are lost: if a WAL object was written under
    /// one of them, the next start refuses, and only the right database helps.
    Refilled { before: Witness, snapshot: Witness },
}

/// Why nothing was recovered; the database is as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("the store {store} holds no cluster of this name: check --storage and --cluster")]
    NoCluster { store: String },
    #[error(
        "the store holds no snapshot to recover from: start the node, the log begins anew only with an empty store"
    )]
    NoSnapshot,
    #[error("the newest snapshot cannot be used: {reason}")]
    Unusable { reason: String },
    #[error(
        "the database has another row {index} (hash {found}) than the store's snapshot ({expected}): it belongs to another \
         history; move it away by hand, then run this again with an empty one"
    )]
    Forked { index: LogIndex, found: RowHash, expected: RowHash },
    #[error("could not read the store: {reason}")]
    Store { reason: String },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the database did not take the snapshot's place: {reason}")]
    Database { reason: String },
}

/// Refills the database if the store's newest snapshot is ahead of it.
pub async fn recover(home: &Home) -> Result<Recovered, RecoverError> {
    let store = home.store.address();
    let cluster = read_identity(home).await?.ok_or(RecoverError::NoCluster { store: store.clone() })?;
    if let Some(row) = home.log.identity().await?
        && row.cluster != cluster
    {
        return Err(IdentityError::Differ { store, in_store: cluster, in_database: row.cluster }.into());
    }
    let before = home.log.last().await?;
    let newest =
        witness_of_store(home).await.map_err(|error| RecoverError::Store { reason: error.to_string() })?;
    let Some(place) = newest else {
        return if before.index > LogIndex(0) {
            settle_identity(home, cluster).await?;
            Ok(Recovered::NothingToDo { database: before })
        } else {
            Err(RecoverError::NoSnapshot)
        };
    };
    let snapshot = place.witness;
    if before.index >= snapshot.index {
        let at = LogIndex(snapshot.index.0.saturating_sub(1));
        let row = home.log.read_after(at, 1).await?.pop().filter(|row| row.index == snapshot.index);
        let found = row.map(|row| row.hash).or((before.index == snapshot.index).then_some(before.hash));
        if let Some(found) = found.filter(|found| *found != snapshot.hash) {
            return Err(RecoverError::Forked { index: snapshot.index, found, expected: snapshot.hash });
        }
        settle_identity(home, cluster).await?;
        return Ok(Recovered::NothingToDo { database: before });
    }
    match fetch(home, cluster, &place).await {
        Ok(Ok(_)) => {}
        Ok(Err(reason)) => return Err(RecoverError::Unusable { reason }),
        Err(LoadError::Store { reason }) => return Err(RecoverError::Store { reason }),
        Err(error) => {
            return Err(RecoverError::Unusable { reason: error.to_string() });
        }
    }
    match home.log.begin_at(&place).await {
        Outcome::Done(()) => {}
        Outcome::Refused(refusal) => {
            return Err(RecoverError::Database { reason: refusal.to_string() });
        }
        // Repeating the command finds out: it does nothing if this was done.
        Outcome::Unknown(unknown) => {
            return Err(RecoverError::Database { reason: unknown.to_string() });
        }
    }
    settle_identity(home, cluster).await?;
    Ok(Recovered::Refilled { before, snapshot })
}

/// Gives the database the identity of the store.
async fn settle_identity(home: &Home, cluster: ClusterUuid) -> Result<(), IdentityError> {
    let noted = note(home, cluster).await?;
    if noted != cluster {
        let store = home.store.address();
        return Err(IdentityError::Differ { store, in_store: cluster, in_database: noted });
    }
    confirm(home, cluster).await.map(|_| ())
}
