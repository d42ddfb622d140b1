//! The message of a whole state.
//!
//! Lives on: anywhere (pure).
//! Invariants: I11 (equal states give equal bytes: every list is in key order); what follows from the rest is not written,
//! and is checked when read.
mod tables;

use imbl::OrdMap;
use mink_types::{
    BucketEpoch, ClusterUuid, CommitTime, DatabaseId, Incarnation, LogIndex, ObjectId, Offset, RowHash,
    SessionId, Timestamp, WalNumber, Witness,
};
use prost::Message as _;

use super::WireError;
use super::parts::{
    Bucket, Chain, Config, Listener, ObjectName, bucket_id, config_list, config_map, database_name, needed,
    object_id, of_map, scope, scope_node, sixteen,
};
use super::results::ResultMessage;
use crate::Ranges;
use crate::state::{self, State};
use tables::TableMessage;

#[derive(Clone, PartialEq, prost::Message)]
struct StateMessage {
    #[prost(bytes = "vec", tag = "1")]
    cluster: Vec<u8>,
    #[prost(uint64, tag = "2")]
    index: u64,
    #[prost(bytes = "vec", tag = "3")]
    hash: Vec<u8>,
    #[prost(uint32, tag = "4")]
    feature_level: u32,
    #[prost(message, repeated, tag = "5")]
    databases: Vec<DatabaseMessage>,
    #[prost(message, repeated, tag = "6")]
    tables: Vec<TableMessage>,
    #[prost(message, repeated, tag = "7")]
    buckets: Vec<BucketMessage>,
    #[prost(message, repeated, tag = "8")]
    objects: Vec<ObjectMessage>,
    #[prost(message, repeated, tag = "9")]
    doomed: Vec<DoomedMessage>,
    #[prost(message, repeated, tag = "10")]
    incarnations: Vec<IncarnationMessage>,
    #[prost(message, repeated, tag = "11")]
    sessions: Vec<SessionMessage>,
    #[prost(message, repeated, tag = "12")]
    probes: Vec<ProbeMessage>,
    /// Feature level 5.
    #[prost(message, repeated, tag = "13")]
    broker_configs: Vec<BrokerConfigsMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BrokerConfigsMessage {
    /// None for all brokers.
    #[prost(uint32, optional, tag = "1")]
    node: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    configs: Vec<Config>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DatabaseMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint64, tag = "3")]
    created: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BucketMessage {
    #[prost(message, optional, tag = "1")]
    id: Option<Bucket>,
    #[prost(uint32, tag = "2")]
    epoch: u32,
    #[prost(uint64, optional, tag = "3")]
    owner: Option<u64>,
    #[prost(uint64, tag = "4")]
    start: u64,
    #[prost(uint64, tag = "5")]
    end: u64,
    #[prost(message, repeated, tag = "6")]
    ranges: Vec<RangeMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeMessage {
    #[prost(uint64, tag = "1")]
    start: u64,
    #[prost(uint64, tag = "2")]
    end: u64,
    #[prost(message, optional, tag = "3")]
    object: Option<ObjectName>,
    #[prost(sint64, tag = "4")]
    max_timestamp: i64,
    #[prost(sint64, tag = "5")]
    last_commit_time: i64,
    #[prost(uint64, tag = "6")]
    bytes: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ObjectMessage {
    #[prost(message, optional, tag = "1")]
    id: Option<ObjectName>,
    #[prost(uint64, tag = "2")]
    length: u64,
    #[prost(uint32, tag = "3")]
    footer_length: u32,
    #[prost(fixed32, tag = "4")]
    checksum: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DoomedMessage {
    #[prost(message, optional, tag = "1")]
    id: Option<ObjectName>,
    #[prost(uint64, tag = "2")]
    at: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct IncarnationMessage {
    #[prost(message, optional, tag = "1")]
    chain: Option<Chain>,
    #[prost(string, tag = "2")]
    storage: String,
    #[prost(string, tag = "3")]
    wal_storage: String,
    #[prost(message, repeated, tag = "4")]
    listeners: Vec<Listener>,
    #[prost(string, tag = "5")]
    version: String,
    #[prost(uint32, tag = "6")]
    feature_level_max: u32,
    #[prost(bool, tag = "7")]
    fenced: bool,
    #[prost(bool, tag = "8")]
    drained: bool,
    #[prost(uint64, tag = "9")]
    trim: u64,
    #[prost(uint64, optional, tag = "10")]
    seal: Option<u64>,
    #[prost(bool, tag = "11")]
    swept: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SessionMessage {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    high: u64,
    #[prost(uint64, tag = "3")]
    row: u64,
    #[prost(message, repeated, tag = "4")]
    results: Vec<KeptResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptResult {
    #[prost(uint64, tag = "1")]
    counter: u64,
    #[prost(message, optional, tag = "2")]
    result: Option<ResultMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProbeMessage {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(bool, tag = "2")]
    sound: bool,
    #[prost(string, tag = "3")]
    detail: String,
    #[prost(uint64, tag = "4")]
    at: u64,
}

/// The canonical bytes of a state.
pub(crate) fn encode(state: &State) -> Vec<u8> {
    StateMessage {
        cluster: state.cluster.0.to_vec(),
        index: state.witness.index.0,
        hash: state.witness.hash.0.to_vec(),
        feature_level: state.feature_level,
        databases: state
            .databases
            .values()
            .map(|d| DatabaseMessage { id: d.id.0, name: d.name.as_str().into(), created: d.created.0 })
            .collect(),
        tables: state.tables().map(Into::into).collect(),
        buckets: state.buckets.iter().map(|(id, bucket)| bucket_message((*id).into(), bucket)).collect(),
        objects: state
            .objects
            .iter()
            .map(|(id, object)| ObjectMessage {
                id: Some((*id).into()),
                length: object.length,
                footer_length: object.footer_length,
                checksum: object.checksum,
            })
            .collect(),
        doomed: state
            .doomed
            .iter()
            .map(|(id, at)| DoomedMessage { id: Some((*id).into()), at: at.0 })
            .collect(),
        incarnations: state.incarnations.values().map(incarnation_message).collect(),
        sessions: state.sessions.iter().map(|(id, session)| session_message(*id, session)).collect(),
        probes: state
            .probes
            .iter()
            .map(|(store, probe)| ProbeMessage {
                store: store.clone(),
                sound: probe.sound,
                detail: probe.detail.clone(),
                at: probe.at.0,
            })
            .collect(),
        broker_configs: state
            .broker_configs
            .iter()
            .map(|(scope, configs)| BrokerConfigsMessage {
                node: scope_node(*scope),
                configs: config_list(of_map(configs)),
            })
            .collect(),
    }
    .encode_to_vec()
}

fn bucket_message(id: Bucket, bucket: &state::Bucket) -> BucketMessage {
    let range = |(start, range): (&Offset, &state::ObjectRange)| RangeMessage {
        start: start.0,
        end: range.end.0,
        object: Some(range.object.into()),
        max_timestamp: range.max_timestamp.0,
        last_commit_time: range.last_commit_time.0,
        bytes: range.bytes,
    };
    BucketMessage {
        id: Some(id),
        epoch: bucket.epoch.0,
        owner: bucket.owner.map(|owner| owner.0),
        start: bucket.start.0,
        end: bucket.end.0,
        ranges: bucket.ranges.iter().map(range).collect(),
    }
}

fn incarnation_message(incarnation: &state::IncarnationState) -> IncarnationMessage {
    IncarnationMessage {
        chain: Some(incarnation.chain.into()),
        storage: incarnation.storage.clone(),
        wal_storage: incarnation.wal_storage.clone(),
        listeners: incarnation.listeners.iter().map(Into::into).collect(),
        version: incarnation.version.clone(),
        feature_level_max: incarnation.feature_level_max,
        fenced: incarnation.fenced,
        drained: incarnation.drained,
        trim: incarnation.trim.0,
        seal: incarnation.seal.map(|seal| seal.0),
        swept: incarnation.swept,
    }
}

fn session_message(id: SessionId, session: &state::Session) -> SessionMessage {
    let results = session
        .results
        .iter()
        .map(|(counter, result)| KeptResult { counter: *counter, result: Some(result.into()) });
    SessionMessage { id: id.0.to_vec(), high: session.high, row: session.row.0, results: results.collect() }
}

/// The state of canonical bytes. Everything that follows from the rest is built anew, and the rest is checked against it.
pub(crate) fn decode(bytes: &[u8]) -> Result<State, WireError> {
    let wire = StateMessage::decode(bytes).map_err(|_| WireError::Malformed("no protobuf"))?;
    if wire.feature_level == 0 || wire.feature_level > crate::FEATURE_LEVEL_MAX {
        return Err(WireError::Unsupported(format!("feature level {}", wire.feature_level)));
    }
    let hash =
        wire.hash.as_slice().try_into().map_err(|_| WireError::Malformed("a hash does not have 32 bytes"))?;
    let mut state = State::new(ClusterUuid(sixteen(&wire.cluster)?));
    state.witness = Witness { index: LogIndex(wire.index), hash: RowHash(hash) };
    state.feature_level = wire.feature_level;
    for database in wire.databases {
        let name = database_name(&database.name)?;
        let (id, created) = (DatabaseId(database.id), LogIndex(database.created));
        state.databases.insert(name.clone(), state::Database { id, name, created });
    }
    for incarnation in wire.incarnations {
        let incarnation = incarnation_of(incarnation)?;
        state.incarnations.insert(incarnation.chain.incarnation, incarnation);
    }
    for table in wire.tables {
        state.index_table(&table.try_into()?);
    }
    for object in wire.objects {
        let (length, footer_length, checksum) = (object.length, object.footer_length, object.checksum);
        let id = object_id(object.id)?;
        state.objects.insert(id, state::Object { length, footer_length, checksum, ranges: 0 });
    }
    for doomed in wire.doomed {
        state.doomed.insert(object_id(doomed.id)?, LogIndex(doomed.at));
    }
    for bucket in wire.buckets {
        add_bucket(&mut state, bucket)?;
    }
    for session in wire.sessions {
        add_session(&mut state, session)?;
    }
    for probe in wire.probes {
        let ProbeMessage { store, sound, detail, at } = probe;
        state.probes.insert(store, state::Probe { sound, detail, at: LogIndex(at) });
    }
    for of in wire.broker_configs {
        state.broker_configs.insert(scope(of.node), config_map(of.configs)?);
    }
    check(&state)?;
    Ok(state)
}

fn incarnation_of(wire: IncarnationMessage) -> Result<state::IncarnationState, WireError> {
    Ok(state::IncarnationState {
        chain: needed(wire.chain, "an incarnation without a chain")?.into(),
        storage: wire.storage,
        wal_storage: wire.wal_storage,
        listeners: wire.listeners.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        version: wire.version,
        feature_level_max: wire.feature_level_max,
        fenced: wire.fenced,
        drained: wire.drained,
        trim: WalNumber(wire.trim),
        seal: wire.seal.map(WalNumber),
        swept: wire.swept,
    })
}

fn add_bucket(state: &mut State, wire: BucketMessage) -> Result<(), WireError> {
    let id = bucket_id(wire.id)?;
    let known = state.tables.get(&id.table).is_some_and(|table| table.has_bucket(&id));
    let owner = wire.owner.map(Incarnation);
    if !known || owner.is_some_and(|owner| !state.incarnations.contains_key(&owner)) {
        return Err(WireError::Malformed("a bucket without its table or owner"));
    }
    let mut ranges = Ranges::new();
    let mut next = None;
    for range in wire.ranges {
        let object: ObjectId = object_id(range.object)?;
        let (start, end) = (Offset(range.start), Offset(range.end));
        if end <= start || next.is_some_and(|next| next != start) {
            return Err(WireError::Malformed("the ranges of a bucket overlap or leave a gap"));
        }
        next = Some(end);
        let kept =
            state.objects.get_mut(&object).ok_or(WireError::Malformed("a range without its object"))?;
        kept.ranges = kept.ranges.saturating_add(1);
        ranges.insert(
            start,
            state::ObjectRange {
                object,
                end,
                max_timestamp: Timestamp(range.max_timestamp),
                last_commit_time: CommitTime(range.last_commit_time),
                bytes: range.bytes,
            },
        );
    }
    if next.is_some_and(|next| next != Offset(wire.end)) {
        return Err(WireError::Malformed("the ranges of a bucket do not reach its committed end"));
    }
    let bucket = state::Bucket {
        epoch: BucketEpoch(wire.epoch),
        owner,
        start: Offset(wire.start),
        end: Offset(wire.end),
        ranges,
    };
    state.set_bucket(id, bucket);
    Ok(())
}

fn add_session(state: &mut State, wire: SessionMessage) -> Result<(), WireError> {
    let id = SessionId(sixteen(&wire.id)?);
    let mut results = OrdMap::new();
    for kept in wire.results {
        results.insert(kept.counter, needed(kept.result, "a request without a result")?.try_into()?);
    }
    let row = LogIndex(wire.row);
    state.indexes.session_ages.insert((row, id));
    state.sessions.insert(id, state::Session { high: wire.high, row, results });
    Ok(())
}

/// What the loops above could not see.
fn check(state: &State) -> Result<(), WireError> {
    if state.objects.iter().any(|(id, object)| object.ranges == 0 || state.doomed.contains_key(id)) {
        return Err(WireError::Malformed("an object without a range, or one that is doomed and in use"));
    }
    let buckets: usize = state.tables.values().map(|table| table.bucket_count()).sum();
    if buckets != state.buckets.len() {
        return Err(WireError::Malformed("a table without all of its buckets"));
    }
    Ok(())
}
