//! The statements, each with bound parameters only.
//!
//! Lives on: blocking threads, inside the transaction that `sqlite` opened.
//! Invariants: I13 (a row is appended only behind the row or snapshot that it follows), the last row is never removed.
use mink_metadata::Row;
use mink_types::{ClusterUuid, Incarnation, LogIndex, ObjectKey, RowHash, Witness};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::time::Duration;

use crate::log::{
    AppendRefused, Beat, BeatRefused, BeatState, IdentityRow, LogError, SnapshotPlace, WriteRefused,
};

/// Index, hash and payload as the database has them.
type RawRow = (i64, Vec<u8>, Vec<u8>);

/// A write's end, or a reason to roll it back.
type Written<R> = rusqlite::Result<Result<(), R>>;

fn signed(value: u64) -> rusqlite::Result<i64> {
    i64::try_from(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Whole milliseconds, rounded up: a lease must never look shorter than it is.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> Result<u64, LogError> {
    u64::try_from(value).map_err(|_| LogError::Damaged { what: "a negative number" })
}

fn unavailable(error: &rusqlite::Error) -> LogError {
    LogError::Unavailable { reason: error.to_string() }
}

fn hash(bytes: &[u8]) -> Result<RowHash, LogError> {
    bytes.try_into().map(RowHash).map_err(|_| LogError::Damaged { what: "a hash does not have 32 bytes" })
}

/// SQLite's counter of changes by other connections.
pub(super) fn data_version(connection: &Connection) -> Result<i64, LogError> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(|error| unavailable(&error))
}

pub(super) fn append(
    connection: &Connection,
    cluster: &str,
    previous: Witness,
    row: &Row,
) -> Written<AppendRefused> {
    let last = last_raw(connection, cluster)?;
    let (index, stored) = last.unwrap_or((0, vec![0; 32]));
    let follows = signed(previous.index.0)?;
    if index > follows {
        return Ok(Err(AppendRefused::Taken));
    }
    if index < follows || stored != previous.hash.0 {
        let hash = RowHash(stored.try_into().unwrap_or_default());
        let last = Witness { index: LogIndex(index.unsigned_abs()), hash };
        return Ok(Err(AppendRefused::Behind { last }));
    }
    connection
        .prepare_cached("INSERT INTO mink_log (cluster, idx, hash, payload) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![cluster, signed(row.index.0)?, row.hash.0, row.payload])?;
    Ok(Ok(()))
}

/// Index and hash of the last row, or of the recorded snapshot when that is newer.
fn last_raw(connection: &Connection, cluster: &str) -> rusqlite::Result<Option<(i64, Vec<u8>)>> {
    connection
        .prepare_cached(
            "SELECT idx, hash FROM (SELECT * FROM (SELECT idx, hash FROM mink_log WHERE cluster = ?1 ORDER BY idx DESC \
             LIMIT 1) UNION ALL SELECT idx, hash FROM mink_snapshot WHERE cluster = ?1) ORDER BY idx DESC LIMIT 1",
        )?
        .query_row(params![cluster], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

pub(super) fn last(connection: &Connection, cluster: &str) -> Result<Witness, LogError> {
    match last_raw(connection, cluster).map_err(|error| unavailable(&error))? {
        None => Ok(Witness::default()),
        Some((index, bytes)) => Ok(Witness { index: LogIndex(unsigned(index)?), hash: hash(&bytes)? }),
    }
}

pub(super) fn read_after(
    connection: &Connection,
    cluster: &str,
    after: LogIndex,
    rows_max: usize,
) -> Result<Vec<Row>, LogError> {
    let read = || -> rusqlite::Result<Vec<RawRow>> {
        let limit = i64::try_from(rows_max).unwrap_or(i64::MAX);
        connection
            .prepare_cached(
                "SELECT idx, hash, payload FROM mink_log WHERE cluster = ?1 AND idx > ?2 ORDER BY idx LIMIT ?3",
            )?
            .query_map(params![cluster, signed(after.0)?, limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect()
    };
    let rows = read().map_err(|error| unavailable(&error))?;
    let row = |(index, bytes, payload): RawRow| {
        Ok(Row { index: LogIndex(unsigned(index)?), hash: hash(&bytes)?, payload })
    };
    rows.into_iter().map(row).collect()
}

pub(super) fn beat(connection: &Connection, cluster: &str, beat: Beat) -> Written<BeatRefused> {
    let changed = connection
        .prepare_cached(
            "INSERT INTO mink_beat (cluster, incarnation, counter, ttl_ms, closed) SELECT ?1, ?2, ?3, ?4, 0 \
             WHERE NOT EXISTS (SELECT 1 FROM mink_beat WHERE cluster = ?1 AND closed = ?5 AND incarnation >= ?2) \
             ON CONFLICT (cluster, incarnation) DO UPDATE SET counter = excluded.counter, ttl_ms = excluded.ttl_ms \
             WHERE closed = 0",
        )?
        .execute(params![
            cluster,
            signed(beat.incarnation.0)?,
            signed(beat.counter)?,
            millis(beat.ttl),
            CLOSED_ALL_BELOW
        ])?;
    Ok(if changed == 1 { Ok(()) } else { Err(BeatRefused::Closed) })
}

pub(super) fn close_beats(
    connection: &Connection,
    cluster: &str,
    incarnation: Incarnation,
) -> Written<WriteRefused> {
    connection
        .prepare_cached(
            "INSERT INTO mink_beat (cluster, incarnation, counter, ttl_ms, closed) VALUES (?1, ?2, 0, 0, 1) \
             ON CONFLICT (cluster, incarnation) DO UPDATE SET closed = 1 WHERE closed = 0",
        )?
        .execute(params![cluster, signed(incarnation.0)?])?;
    Ok(Ok(()))
}

/// The value of `closed` in the one row that stands for all incarnations up to its own.
const CLOSED_ALL_BELOW: i64 = 2;

pub(super) fn forget_beats(
    connection: &Connection,
    cluster: &str,
    upto: Incarnation,
) -> Written<WriteRefused> {
    let upto = signed(upto.0)?;
    connection
        .prepare_cached(
            "INSERT INTO mink_beat (cluster, incarnation, counter, ttl_ms, closed) VALUES (?1, ?2, 0, 0, ?3) \
             ON CONFLICT (cluster, incarnation) DO UPDATE SET closed = excluded.closed",
        )?
        .execute(params![cluster, upto, CLOSED_ALL_BELOW])?;
    connection
        .prepare_cached("DELETE FROM mink_beat WHERE cluster = ?1 AND incarnation < ?2")?
        .execute(params![cluster, upto])?;
    Ok(Ok(()))
}

pub(super) fn beats(connection: &Connection, cluster: &str) -> Result<Vec<BeatState>, LogError> {
    let read = || -> rusqlite::Result<Vec<(i64, i64, i64, bool)>> {
        connection
            .prepare_cached(
                "SELECT incarnation, counter, ttl_ms, closed FROM mink_beat WHERE cluster = ?1 ORDER BY incarnation",
            )?
            .query_map(params![cluster], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect()
    };
    let beats = read().map_err(|error| unavailable(&error))?;
    let beat = |(incarnation, counter, ttl, closed)| {
        let (incarnation, ttl) = (Incarnation(unsigned(incarnation)?), Duration::from_millis(unsigned(ttl)?));
        Ok(BeatState { incarnation, counter: unsigned(counter)?, ttl, closed })
    };
    beats.into_iter().map(beat).collect()
}

pub(super) fn identity(connection: &Connection, cluster: &str) -> Result<Option<IdentityRow>, LogError> {
    let found: Option<(Vec<u8>, bool)> = connection
        .query_row("SELECT uuid, ready FROM mink_identity WHERE cluster = ?1", params![cluster], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(|error| unavailable(&error))?;
    let Some((uuid, ready)) = found else {
        return Ok(None);
    };
    let uuid =
        uuid.try_into().map_err(|_| LogError::Damaged { what: "a cluster's id does not have 16 bytes" })?;
    Ok(Some(IdentityRow { cluster: ClusterUuid(uuid), ready }))
}

pub(super) fn create_identity(
    connection: &Connection,
    cluster: &str,
    uuid: ClusterUuid,
) -> Written<WriteRefused> {
    connection.execute(
        "INSERT INTO mink_identity (cluster, uuid, ready) VALUES (?1, ?2, 0) ON CONFLICT (cluster) DO NOTHING",
        params![cluster, uuid.0],
    )?;
    Ok(Ok(()))
}

pub(super) fn confirm_identity(
    connection: &Connection,
    cluster: &str,
    uuid: ClusterUuid,
) -> Written<WriteRefused> {
    connection.execute(
        "UPDATE mink_identity SET ready = 1 WHERE cluster = ?1 AND uuid = ?2",
        params![cluster, uuid.0],
    )?;
    Ok(Ok(()))
}

pub(super) fn latest_snapshot(
    connection: &Connection,
    cluster: &str,
) -> Result<Option<SnapshotPlace>, LogError> {
    let found: Option<(i64, Vec<u8>, String)> = connection
        .query_row("SELECT idx, hash, key FROM mink_snapshot WHERE cluster = ?1", params![cluster], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()
        .map_err(|error| unavailable(&error))?;
    let Some((index, bytes, key)) = found else {
        return Ok(None);
    };
    let key = ObjectKey::parse(&key).map_err(|_| LogError::Damaged { what: "a snapshot's key" })?;
    Ok(Some(SnapshotPlace {
        witness: Witness { index: LogIndex(unsigned(index)?), hash: hash(&bytes)? },
        key,
    }))
}

pub(super) fn record_snapshot(
    connection: &Connection,
    cluster: &str,
    place: &SnapshotPlace,
) -> Written<WriteRefused> {
    connection.execute(
        "INSERT INTO mink_snapshot (cluster, idx, hash, key) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (cluster) DO UPDATE \
         SET idx = excluded.idx, hash = excluded.hash, key = excluded.key WHERE excluded.idx > mink_snapshot.idx",
        params![cluster, signed(place.witness.index.0)?, place.witness.hash.0, place.key.as_str()],
    )?;
    Ok(Ok(()))
}

pub(super) fn truncate(connection: &Connection, cluster: &str, upto: LogIndex) -> Written<WriteRefused> {
    connection.execute(
        "DELETE FROM mink_log WHERE cluster = ?1 AND idx <= ?2 \
         AND idx <= COALESCE((SELECT idx FROM mink_snapshot WHERE cluster = ?1), 0) \
         AND idx < (SELECT MAX(idx) FROM mink_log WHERE cluster = ?1)",
        params![cluster, signed(upto.0)?],
    )?;
    Ok(Ok(()))
}

pub(super) fn begin_at(
    connection: &Connection,
    cluster: &str,
    place: &SnapshotPlace,
) -> Written<WriteRefused> {
    connection.execute("DELETE FROM mink_log WHERE cluster = ?1", params![cluster])?;
    connection.execute("DELETE FROM mink_snapshot WHERE cluster = ?1", params![cluster])?;
    record_snapshot(connection, cluster, place)
}
