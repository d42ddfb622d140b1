//! Snapshots in the object store: writing one, finding the newest, loading the state that the log goes on from.
//!
//! Lives on: service runtime.
//! Invariants: I13 (a snapshot's name is a witness: a database behind it, or with another hash there, has lost rows), I14 (the
//! snapshot that the database records, and the one before it, are never removed).
use mink_metadata::{ApplyError, State};
use mink_object::{
    CreateError, Created, GetError, ObjectKey, Outcome, PUT_BYTES_MAX, Payload, Span, create_exactly,
    list_all,
};
use mink_types::{ClusterUuid, Incarnation, LogIndex, Witness};

use crate::log::SnapshotPlace;
use crate::metadata::{Home, LoadError};
use crate::steady::steady;

/// Rows that stay in the database behind a snapshot, so that nodes a little behind need not load it.
pub const ROWS_KEPT_DEFAULT: u64 = 1_000;
/// Snapshots that stay in the store.
pub const SNAPSHOTS_KEPT: usize = 2;
/// Most snapshots that are looked at; pruning keeps far fewer.
const SNAPSHOTS_LISTED_MAX: usize = 100_000;
/// Rows read at a time.
pub(crate) const ROWS_PER_READ: usize = 256;

/// Why no snapshot was written. The log goes on without; try again later.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotWriteError {
    #[error("the metadata takes {bytes} bytes, more than one object can hold")]
    TooLarge { bytes: u64 },
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error("{key} holds something else; two nodes act as one incarnation")]
    Foreign { key: ObjectKey },
    #[error("the database did not record the snapshot: {reason}")]
    Record { reason: String },
}

/// Writes a snapshot of `state`, records its place, removes rows that are older by more than `rows_kept`, and snapshots
/// that are older than the last [`SNAPSHOTS_KEPT`]. Safe to repeat, and to be cut short anywhere.
pub async fn write_snapshot(
    home: &Home,
    state: &State,
    by: Incarnation,
    rows_kept: u64,
) -> Result<SnapshotPlace, SnapshotWriteError> {
    let witness = state.witness();
    let bytes = state.snapshot();
    if bytes.len() as u64 > PUT_BYTES_MAX {
        return Err(SnapshotWriteError::TooLarge { bytes: bytes.len() as u64 });
    }
    let key = ObjectKey::snapshot(&home.cluster, witness.index, witness.hash, by);
    let payload = Payload::from(bytes::Bytes::from(bytes));
    match create_exactly(&*home.store, &home.service, &key, &payload).await? {
        Created::Ours => {}
        Created::Foreign { .. } => return Err(SnapshotWriteError::Foreign { key }),
    }
    let place = SnapshotPlace { witness, key };
    let record = |reason: String| Err(SnapshotWriteError::Record { reason });
    match home.log.record_snapshot(&place).await {
        Outcome::Done(()) => {}
        Outcome::Refused(refusal) => return record(refusal.to_string()),
        Outcome::Unknown(unknown) => return record(unknown.to_string()),
    }
    let upto = LogIndex(witness.index.0.saturating_sub(rows_kept));
    match home.log.truncate(upto).await {
        Outcome::Done(()) => {}
        // The next snapshot truncates as far and further.
        Outcome::Refused(refusal) => tracing::debug!(%refusal, "old rows stay for now"),
        Outcome::Unknown(unknown) => tracing::debug!(%unknown, "old rows may stay for now"),
    }
    prune(home, &place).await;
    Ok(place)
}

/// Removes all but the newest snapshots up to the recorded one.
async fn prune(home: &Home, recorded: &SnapshotPlace) {
    let found = match snapshots(home).await {
        Ok(found) => found,
        Err(error) => return tracing::debug!(%error, "old snapshots stay for now"),
    };
    let older = found.into_iter().filter(|found| found.witness.index < recorded.witness.index);
    let keys: Vec<ObjectKey> = older.rev().skip(SNAPSHOTS_KEPT - 1).map(|found| found.key).collect();
    if keys.is_empty() {
        return;
    }
    for (key, outcome) in home.store.delete(&keys).await {
        if !outcome.is_done() {
            tracing::debug!(%key, ?outcome, "an old snapshot stays for now");
        }
    }
}

/// All snapshots in the store, oldest first.
async fn snapshots(home: &Home) -> Result<Vec<SnapshotPlace>, GetError> {
    let prefix = ObjectKey::snapshot_prefix(&home.cluster);
    let (entries, _) =
        steady(&home.service, || list_all(&*home.store, &prefix, SNAPSHOTS_LISTED_MAX)).await?;
    let place = |key: ObjectKey| Some(SnapshotPlace { witness: key.snapshot_witness()?, key });
    let mut found: Vec<_> = entries.into_iter().filter_map(|entry| place(entry.key)).collect();
    found.sort_by_key(|found| found.witness.index);
    Ok(found)
}

/// The newest snapshot in the store: what the database must have reached.
pub async fn witness_of_store(home: &Home) -> Result<Option<SnapshotPlace>, GetError> {
    Ok(snapshots(home).await?.pop())
}

/// Checks the database against a witness from the store.
async fn check_witness(home: &Home, witness: Witness) -> Result<(), LoadError> {
    let last = home.log.last().await?;
    if last.index < witness.index {
        return Err(LoadError::Behind { database: last, store: witness });
    }
    let at = LogIndex(witness.index.0.saturating_sub(1));
    let row = home.log.read_after(at, 1).await?.pop().filter(|row| row.index == witness.index);
    let found = row.map(|row| row.hash).or((last.index == witness.index).then_some(last.hash));
    match found {
        Some(found) if found != witness.hash => Err(LoadError::Differs { store: witness, found }),
        _ => Ok(()),
    }
}

/// The state at the end of the log: a snapshot, and the rows after it. Tries the snapshot that the database records, then
/// those of the store from the newest on, then the whole log.
pub(crate) async fn load(home: &Home, cluster: ClusterUuid) -> Result<State, LoadError> {
    let in_store = snapshots(home).await.map_err(|error| LoadError::Store { reason: error.to_string() })?;
    if let Some(newest) = in_store.last() {
        check_witness(home, newest.witness).await?;
    }
    let recorded = home.log.latest_snapshot().await?;
    let mut places: Vec<SnapshotPlace> = recorded.into_iter().collect();
    for place in in_store.into_iter().rev() {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in &places {
        let state = match fetch(home, cluster, place).await? {
            Ok(state) => state,
            Err(why) => {
                tracing::warn!(key = %place.key, why, "a metadata snapshot is not usable, an older one is tried");
                continue;
            }
        };
        if let Some(state) = follow(home, state).await? {
            return Ok(state);
        }
    }
    follow(home, State::new(cluster)).await?.ok_or(LoadError::NoSnapshot)
}

/// The state of one snapshot, or why it cannot be used.
pub(crate) async fn fetch(
    home: &Home,
    cluster: ClusterUuid,
    place: &SnapshotPlace,
) -> Result<Result<State, String>, LoadError> {
    let read = || home.store.get(&place.key, Span::Whole { max: PUT_BYTES_MAX });
    let bytes = match steady(&home.service, read).await {
        Ok(bytes) => bytes,
        Err(GetError::NotFound) => return Ok(Err("it is not there".into())),
        Err(error) => {
            return Err(LoadError::Store { reason: error.to_string() });
        }
    };
    let state = match State::restore(&bytes) {
        Ok(state) => state,
        Err(error @ mink_metadata::SnapshotError::Unsupported { .. }) => {
            return Err(LoadError::Snapshot { key: place.key.clone(), error });
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    if state.cluster() != cluster || state.witness() != place.witness {
        return Ok(Err("it is not what its name says".into()));
    }
    Ok(Ok(state))
}

/// Applies all rows that there are; none when rows are missing in between.
async fn follow(home: &Home, mut state: State) -> Result<Option<State>, LoadError> {
    loop {
        let after = state.witness().index;
        let rows = home.log.read_after(after, ROWS_PER_READ).await?;
        if rows.is_empty() {
            // The log may end at a snapshot that is newer than this state.
            return Ok((home.log.last().await?.index <= after).then_some(state));
        }
        for row in &rows {
            match state.apply(row) {
                // Old results are of no use to a process that has just started.
                Ok(_) => {}
                Err(ApplyError::Gap { .. }) => return Ok(None),
                Err(error) => return Err(LoadError::Apply(error)),
            }
        }
    }
}
