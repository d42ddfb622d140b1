//! Tables of the SQLite database, and the settings that make a commit durable.
//!
//! Lives on: blocking threads.
//! Invariants: making them twice, or from two processes at once, is making them once. See: docs/format.md
use rusqlite::{Connection, TransactionBehavior};

/// Version of the tables, kept in `user_version`.
pub(super) const VERSION: i64 = 1;

/// The database's version against this program's.
pub(super) enum Version {
    Known,
    Newer(i64),
}

/// Several clusters may share a database, so the cluster's name is part of every key.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS mink_log (
    cluster TEXT NOT NULL, idx INTEGER NOT NULL, hash BLOB NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (cluster, idx)
);
CREATE TABLE IF NOT EXISTS mink_beat (
    cluster TEXT NOT NULL, incarnation INTEGER NOT NULL, counter INTEGER NOT NULL, ttl_ms INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    PRIMARY KEY (cluster, incarnation)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mink_identity (
    cluster TEXT NOT NULL PRIMARY KEY, uuid BLOB NOT NULL, ready INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mink_snapshot (
    cluster TEXT NOT NULL PRIMARY KEY, idx INTEGER NOT NULL, hash BLOB NOT NULL, key TEXT NOT NULL
) WITHOUT ROWID;
";

/// Of pages, in KiB: rows go in at one end and are read once, so more would only stay resident.
const CACHE_KIB: i64 = 256;

/// Makes each commit wait for the disk.
pub(super) fn durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Makes the tables that are not there.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<Version> {
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Ok(Version::Newer(found));
    }
    if found < VERSION {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(Version::Known)
}
