//! Whose store and whose database this is: one UUID in both, made in two steps that heal when cut short (decision 0003).
//!
//! Lives on: service runtime, at start.
//! Invariants: I13 (a store and a database that do not belong together are never used together). The database notes "being
//! created" first, then the store gets the object, then the database notes "ready"; whoever finds a half goes on with it.
//!
//! The object is text: `mink-identity 1`, `cluster NAME`, `uuid HEX`, `checksum CRC32C-OF-THE-LINES-BEFORE`.
use mink_object::{CreateError, Created, GetError, ObjectKey, Payload, Span, create_exactly};
use mink_types::{ClusterName, ClusterUuid, Outcome};

use crate::log::{IdentityRow, LogError};
use crate::metadata::Home;
use crate::steady::steady;

/// Largest identity object, in bytes.
const IDENTITY_BYTES_MAX: u64 = 4_096;
/// Attempts to write an identity whose outcome stays unknown.
const ATTEMPTS_MAX: u32 = 10;

/// Why a store and a database are not used together; each with its remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(
        "the store {store} holds cluster {uuid}, but the database knows no cluster of this name: check --metadata and \
         --cluster; if the database is lost, run `mink metadata recover`"
    )]
    DatabaseEmpty { store: String, uuid: ClusterUuid },
    #[error(
        "the database knows cluster {uuid}, but the store {store} holds none of this name: check --storage and --cluster"
    )]
    StoreEmpty { store: String, uuid: ClusterUuid },
    #[error(
        "the store {store} belongs to cluster {in_store}, the database to cluster {in_database}: check --storage and \
         --metadata, one of them is another cluster's"
    )]
    Differ { store: String, in_store: ClusterUuid, in_database: ClusterUuid },
    #[error(
        "the identity object of the store {store} is damaged: {what}; restore it from a backup of the store"
    )]
    Damaged { store: String, what: &'static str },
    #[error(
        "the identity object of the store {store} has format {found}, which is newer than this mink; upgrade"
    )]
    Newer { store: String, found: String },
    #[error("could not read the identity of the store {store}: {reason}")]
    Store { store: String, reason: String },
    #[error("could not create the identity in the store {store}: {source}")]
    Create { store: String, source: CreateError },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("could not write the identity into the database: {reason}")]
    Database { reason: String },
}

/// The cluster's UUID, after making sure that store and database agree on it. On an empty pair it makes `fresh` theirs.
pub async fn ensure_identity(home: &Home, fresh: ClusterUuid) -> Result<ClusterUuid, IdentityError> {
    let mut in_store = read_identity(home).await?;
    let mut in_database = home.log.identity().await?;
    // Another node may have made the one half between these two reads. Neither half ever goes away, so the one that seemed
    // absent is looked at again once the other was seen.
    if in_store.is_none() && in_database.as_ref().is_some_and(|row| row.ready) {
        in_store = read_identity(home).await?;
    } else if in_store.is_some() && in_database.is_none() {
        in_database = home.log.identity().await?;
    }
    let store = home.store.address();
    match (in_store, in_database) {
        (Some(a), Some(IdentityRow { cluster: b, .. })) if a != b => {
            Err(IdentityError::Differ { store, in_store: a, in_database: b })
        }
        (Some(uuid), Some(IdentityRow { ready: true, .. })) => Ok(uuid),
        (Some(uuid), Some(IdentityRow { ready: false, .. })) => confirm(home, uuid).await,
        (None, Some(IdentityRow { cluster, ready: true })) => {
            Err(IdentityError::StoreEmpty { store, uuid: cluster })
        }
        (Some(uuid), None) => Err(IdentityError::DatabaseEmpty { store, uuid }),
        (None, Some(IdentityRow { cluster, ready: false })) => create(home, cluster).await,
        (None, None) => {
            let uuid = note(home, fresh).await?;
            create(home, uuid).await
        }
    }
}

/// The UUID that the database notes as being created: `fresh`, or that of somebody who came first.
pub(crate) async fn note(home: &Home, fresh: ClusterUuid) -> Result<ClusterUuid, IdentityError> {
    let mut reason = String::new();
    for _ in 0..ATTEMPTS_MAX {
        match home.log.create_identity(fresh).await {
            Outcome::Done(()) => {}
            Outcome::Refused(refusal) => reason = refusal.to_string(),
            Outcome::Unknown(unknown) => reason = unknown.to_string(),
        }
        if let Some(row) = home.log.identity().await? {
            return Ok(row.cluster);
        }
    }
    Err(IdentityError::Database { reason })
}

async fn create(home: &Home, uuid: ClusterUuid) -> Result<ClusterUuid, IdentityError> {
    let store = home.store.address();
    let payload = Payload::from(bytes::Bytes::from(encode(&home.cluster, uuid)));
    let key = ObjectKey::identity(&home.cluster);
    match create_exactly(&*home.store, &home.service, &key, &payload).await {
        Ok(Created::Ours) => confirm(home, uuid).await,
        Ok(Created::Foreign { head, .. }) => {
            let in_store = decode(&home.cluster, &head).map_err(|bad| bad.at(store.clone()))?;
            Err(IdentityError::Differ { store, in_store, in_database: uuid })
        }
        Err(source) => Err(IdentityError::Create { store, source }),
    }
}

/// Notes that both halves are there.
pub(crate) async fn confirm(home: &Home, uuid: ClusterUuid) -> Result<ClusterUuid, IdentityError> {
    let mut reason = String::new();
    for _ in 0..ATTEMPTS_MAX {
        match home.log.confirm_identity(uuid).await {
            Outcome::Done(()) => return Ok(uuid),
            Outcome::Refused(refusal) => reason = refusal.to_string(),
            Outcome::Unknown(unknown) => reason = unknown.to_string(),
        }
        if home.log.identity().await?.is_some_and(|row| row.cluster == uuid && row.ready) {
            return Ok(uuid);
        }
    }
    Err(IdentityError::Database { reason })
}

/// The UUID in the store, if there is one.
pub(crate) async fn read_identity(home: &Home) -> Result<Option<ClusterUuid>, IdentityError> {
    let store = home.store.address();
    let key = ObjectKey::identity(&home.cluster);
    let read = || home.store.get(&key, Span::Whole { max: IDENTITY_BYTES_MAX });
    match steady(&home.service, read).await {
        Ok(bytes) => decode(&home.cluster, &bytes).map(Some).map_err(|bad| bad.at(store)),
        Err(GetError::NotFound) => Ok(None),
        Err(error) => Err(IdentityError::Store { store, reason: error.to_string() }),
    }
}

const FIRST_LINE: &str = "mink-identity 1";

fn encode(cluster: &ClusterName, uuid: ClusterUuid) -> String {
    let lines = format!("{FIRST_LINE}\ncluster {cluster}\nuuid {uuid}\n");
    format!("{lines}checksum {:08x}\n", crc32c::crc32c(lines.as_bytes()))
}

/// Bytes that are no identity of this cluster.
#[derive(Debug, PartialEq, Eq)]
enum Bad {
    Damaged(&'static str),
    Newer(String),
}

impl Bad {
    fn at(self, store: String) -> IdentityError {
        match self {
            Bad::Damaged(what) => IdentityError::Damaged { store, what },
            Bad::Newer(found) => IdentityError::Newer { store, found },
        }
    }
}

fn decode(cluster: &ClusterName, bytes: &[u8]) -> Result<ClusterUuid, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| Bad::Damaged("it is not text"))?;
    let version = text.lines().next().and_then(|line| line.strip_prefix("mink-identity "));
    let version = version.ok_or(Bad::Damaged("it does not begin as one"))?;
    if version.parse::<u32>().is_ok_and(|version| version > 1) {
        return Err(Bad::Newer(version.into()));
    }
    let line =
        text.lines().find_map(|line| line.strip_prefix("uuid ")).ok_or(Bad::Damaged("it has no uuid"))?;
    let uuid = parse_uuid(line).ok_or(Bad::Damaged("its uuid is no uuid"))?;
    if encode(cluster, uuid) != text {
        return Err(Bad::Damaged("its cluster name or checksum does not match"));
    }
    Ok(uuid)
}

fn parse_uuid(text: &str) -> Option<ClusterUuid> {
    let mut uuid = [0; 16];
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(ClusterUuid(uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_identity_is_written_and_read_as_ever() {
        let cluster = ClusterName::new("mink").expect("valid");
        let uuid = ClusterUuid([0x5a; 16]);
        let golden =
            "mink-identity 1\ncluster mink\nuuid 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\nchecksum d798b395\n";
        assert_eq!(encode(&cluster, uuid), golden);
        assert_eq!(decode(&cluster, golden.as_bytes()), Ok(uuid));
        for at in 0..golden.len() {
            let mut bytes = golden.as_bytes().to_vec();
            bytes[at] ^= 1;
            assert!(decode(&cluster, &bytes).is_err(), "byte {at} changed");
            assert!(decode(&cluster, &golden.as_bytes()[..at]).is_err(), "cut at {at}");
        }
        let newer = golden.replace("identity 1", "identity 2");
        assert_eq!(decode(&cluster, newer.as_bytes()), Err(Bad::Newer("2".into())));
        assert!(decode(&ClusterName::new("other").expect("valid"), golden.as_bytes()).is_err());
    }
}
