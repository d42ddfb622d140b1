//! Messages of the command log's rows.
//!
//! Lives on: anywhere (pure).
mod objects;
mod tables;

use mink_types::{
    BucketEpoch, Incarnation, NodeId, ObjectId, Offset, PartitionId, RequestId, SessionId, TableId, WalNumber,
};

use super::WireError;
use super::parts::{
    Bucket, Config, Listener, ObjectName, Range, bucket_id, config_list, config_map, database_name, of_map,
    scope, scope_node, sixteen,
};
use crate::Command;
use tables::{AlterTable, CreatePartition, CreateTable, DropPartition};

/// Version of [`Group`]; a row with another one is refused as unsupported.
pub(crate) const GROUP_VERSION: u32 = 1;

/// A row's payload.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Group {
    #[prost(uint32, tag = "1")]
    pub(crate) version: u32,
    #[prost(message, repeated, tag = "2")]
    pub(crate) commands: Vec<Envelope>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Envelope {
    #[prost(bytes = "vec", tag = "1")]
    session: Vec<u8>,
    #[prost(uint64, tag = "2")]
    counter: u64,
    #[prost(
        oneof = "Kind",
        tags = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23"
    )]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "3")]
    Register(Register),
    #[prost(message, tag = "4")]
    Fence(Fence),
    #[prost(message, tag = "5")]
    Leave(Leave),
    #[prost(string, tag = "6")]
    CreateDatabase(String),
    #[prost(string, tag = "7")]
    DropDatabase(String),
    #[prost(message, tag = "8")]
    CreateTable(CreateTable),
    #[prost(uint64, tag = "9")]
    DropTable(u64),
    #[prost(message, tag = "10")]
    Commit(Commit),
    #[prost(message, tag = "11")]
    Open(Open),
    #[prost(message, tag = "12")]
    Release(At),
    #[prost(message, tag = "13")]
    RaiseStart(At),
    #[prost(message, tag = "14")]
    Deleted(Deleted),
    #[prost(uint64, tag = "15")]
    Swept(u64),
    #[prost(message, tag = "16")]
    Probed(Probed),
    #[prost(uint32, tag = "17")]
    RaiseFeatureLevel(u32),
    /// Feature level 2.
    #[prost(message, tag = "18")]
    Rewrite(Rewrite),
    /// Feature level 3.
    #[prost(message, tag = "19")]
    ForgetProducers(At),
    /// Feature level 4.
    #[prost(message, tag = "20")]
    AlterTable(AlterTable),
    /// Feature level 5.
    #[prost(message, tag = "21")]
    AlterBrokerConfigs(AlterBrokerConfigs),
    /// Feature level 6.
    #[prost(message, tag = "22")]
    CreatePartition(CreatePartition),
    /// Feature level 6.
    #[prost(message, tag = "23")]
    DropPartition(DropPartition),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Register {
    #[prost(uint32, tag = "1")]
    node: u32,
    #[prost(fixed64, tag = "2")]
    tag: u64,
    #[prost(string, tag = "3")]
    storage: String,
    #[prost(string, tag = "4")]
    wal_storage: String,
    #[prost(message, repeated, tag = "5")]
    listeners: Vec<Listener>,
    #[prost(string, tag = "6")]
    version: String,
    #[prost(uint32, tag = "7")]
    feature_level_max: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Fence {
    #[prost(uint64, tag = "1")]
    incarnation: u64,
    #[prost(uint64, tag = "2")]
    by: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Leave {
    #[prost(uint64, tag = "1")]
    incarnation: u64,
    #[prost(uint64, tag = "2")]
    trim: u64,
    #[prost(uint64, optional, tag = "3")]
    seal: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AlterBrokerConfigs {
    /// None for all brokers.
    #[prost(uint32, optional, tag = "1")]
    node: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    seen: Vec<Config>,
    #[prost(message, repeated, tag = "3")]
    configs: Vec<Config>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Commit {
    #[prost(uint64, tag = "1")]
    by: u64,
    #[prost(uint64, tag = "2")]
    source: u64,
    #[prost(message, repeated, tag = "3")]
    objects: Vec<Committed>,
    #[prost(uint64, optional, tag = "4")]
    trim: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Committed {
    #[prost(message, optional, tag = "1")]
    id: Option<ObjectName>,
    #[prost(uint64, tag = "2")]
    length: u64,
    #[prost(uint32, tag = "3")]
    footer_length: u32,
    #[prost(fixed32, tag = "4")]
    checksum: u32,
    #[prost(message, repeated, tag = "5")]
    ranges: Vec<Range>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Rewrite {
    #[prost(uint64, tag = "1")]
    by: u64,
    #[prost(message, repeated, tag = "2")]
    replaced: Vec<ObjectName>,
    #[prost(message, repeated, tag = "3")]
    objects: Vec<Rewritten>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Rewritten {
    #[prost(message, optional, tag = "1")]
    id: Option<ObjectName>,
    #[prost(uint64, tag = "2")]
    length: u64,
    #[prost(uint32, tag = "3")]
    footer_length: u32,
    #[prost(fixed32, tag = "4")]
    checksum: u32,
    #[prost(message, repeated, tag = "5")]
    ranges: Vec<Moved>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Moved {
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
    #[prost(uint32, tag = "2")]
    epoch: u32,
    #[prost(uint64, tag = "3")]
    start: u64,
    #[prost(uint64, tag = "4")]
    end: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Open {
    #[prost(uint64, tag = "1")]
    by: u64,
    #[prost(message, repeated, tag = "2")]
    buckets: Vec<Opening>,
    #[prost(message, optional, tag = "3")]
    from: Option<From>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Opening {
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
    #[prost(uint32, tag = "2")]
    epoch: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct From {
    #[prost(uint64, tag = "1")]
    incarnation: u64,
    #[prost(uint64, tag = "2")]
    seal: u64,
}

/// A live bucket, and an offset of it.
#[derive(Clone, PartialEq, prost::Message)]
struct At {
    #[prost(uint64, tag = "1")]
    by: u64,
    #[prost(message, optional, tag = "2")]
    bucket: Option<Bucket>,
    #[prost(uint32, tag = "3")]
    epoch: u32,
    #[prost(uint64, tag = "4")]
    offset: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Deleted {
    #[prost(message, repeated, tag = "1")]
    objects: Vec<ObjectName>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Probed {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(bool, tag = "2")]
    sound: bool,
    #[prost(string, tag = "3")]
    detail: String,
}

/// The message of a command.
pub(crate) fn envelope(request: RequestId, command: &Command) -> Envelope {
    Envelope { session: request.session.0.to_vec(), counter: request.counter, kind: Some(kind(command)) }
}

fn kind(command: &Command) -> Kind {
    match command {
        Command::Register(registration) => Kind::Register(registration.into()),
        Command::Fence { incarnation, by } => Kind::Fence(Fence { incarnation: incarnation.0, by: by.0 }),
        Command::Leave { incarnation, trim, seal } => {
            Kind::Leave(Leave { incarnation: incarnation.0, trim: trim.0, seal: seal.map(|seal| seal.0) })
        }
        Command::CreateDatabase { name } => Kind::CreateDatabase(name.as_str().into()),
        Command::DropDatabase { name } => Kind::DropDatabase(name.as_str().into()),
        Command::CreateTable(table) => Kind::CreateTable(table.into()),
        Command::AlterTable(change) => Kind::AlterTable(change.into()),
        Command::CreatePartition(partition) => Kind::CreatePartition(partition.into()),
        Command::DropPartition { table, partition } => {
            Kind::DropPartition(DropPartition { table: table.0, partition: partition.0 })
        }
        Command::AlterBrokerConfigs(change) => Kind::AlterBrokerConfigs(AlterBrokerConfigs {
            node: scope_node(change.scope),
            seen: config_list(of_map(&change.seen)),
            configs: config_list(of_map(&change.configs)),
        }),
        Command::DropTable { id } => Kind::DropTable(id.0),
        Command::Commit { by, source, objects, trim } => Kind::Commit(Commit {
            by: by.0,
            source: source.0,
            objects: objects.iter().map(Committed::from).collect(),
            trim: trim.map(|trim| trim.0),
        }),
        Command::Rewrite { by, replaced, objects } => Kind::Rewrite(Rewrite {
            by: by.0,
            replaced: replaced.iter().map(|id| (*id).into()).collect(),
            objects: objects.iter().map(Rewritten::from).collect(),
        }),
        Command::Open { by, buckets, from } => Kind::Open(Open {
            by: by.0,
            buckets: buckets
                .iter()
                .map(|b| Opening { bucket: Some(b.bucket.into()), epoch: b.epoch.0 })
                .collect(),
            from: from.map(|from| From { incarnation: from.incarnation.0, seal: from.seal.0 }),
        }),
        Command::Release { by, bucket, epoch, end } => {
            Kind::Release(At { by: by.0, bucket: Some((*bucket).into()), epoch: epoch.0, offset: end.0 })
        }
        Command::RaiseStart { by, bucket, epoch, start } => {
            Kind::RaiseStart(At { by: by.0, bucket: Some((*bucket).into()), epoch: epoch.0, offset: start.0 })
        }
        Command::ForgetProducers { by, bucket, epoch, end } => Kind::ForgetProducers(At {
            by: by.0,
            bucket: Some((*bucket).into()),
            epoch: epoch.0,
            offset: end.0,
        }),
        Command::Deleted { objects } => {
            Kind::Deleted(Deleted { objects: objects.iter().map(|id| (*id).into()).collect() })
        }
        Command::Swept { incarnation } => Kind::Swept(incarnation.0),
        Command::Probed { store, sound, detail } => {
            Kind::Probed(Probed { store: store.clone(), sound: *sound, detail: detail.clone() })
        }
        Command::RaiseFeatureLevel { level } => Kind::RaiseFeatureLevel(*level),
    }
}

/// The command of a message.
pub(crate) fn command(wire: Envelope) -> Result<(RequestId, Command), WireError> {
    let request = RequestId { session: SessionId(sixteen(&wire.session)?), counter: wire.counter };
    let kind = wire.kind.ok_or_else(|| WireError::Unsupported("a command of an unknown kind".into()))?;
    let command = match kind {
        Kind::Register(register) => Command::Register(register.try_into()?),
        Kind::Fence(fence) => {
            Command::Fence { incarnation: Incarnation(fence.incarnation), by: Incarnation(fence.by) }
        }
        Kind::Leave(leave) => Command::Leave {
            incarnation: Incarnation(leave.incarnation),
            trim: WalNumber(leave.trim),
            seal: leave.seal.map(WalNumber),
        },
        Kind::CreateDatabase(name) => Command::CreateDatabase { name: database_name(&name)? },
        Kind::DropDatabase(name) => Command::DropDatabase { name: database_name(&name)? },
        Kind::CreateTable(table) => Command::CreateTable(table.try_into()?),
        Kind::AlterTable(change) => Command::AlterTable(change.try_into()?),
        Kind::CreatePartition(partition) => Command::CreatePartition(partition.try_into()?),
        Kind::DropPartition(at) => {
            Command::DropPartition { table: TableId(at.table), partition: PartitionId(at.partition) }
        }
        Kind::AlterBrokerConfigs(change) => Command::AlterBrokerConfigs(crate::BrokerConfigChange {
            scope: scope(change.node),
            seen: config_map(change.seen)?,
            configs: config_map(change.configs)?,
        }),
        Kind::DropTable(id) => Command::DropTable { id: TableId(id) },
        Kind::Commit(commit) => Command::Commit {
            by: Incarnation(commit.by),
            source: Incarnation(commit.source),
            objects: commit.objects.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            trim: commit.trim.map(WalNumber),
        },
        Kind::Rewrite(rewrite) => Command::Rewrite {
            by: Incarnation(rewrite.by),
            replaced: rewrite.replaced.into_iter().map(ObjectId::try_from).collect::<Result<_, _>>()?,
            objects: rewrite.objects.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        },
        Kind::Open(open) => Command::Open {
            by: Incarnation(open.by),
            buckets: open.buckets.into_iter().map(opening).collect::<Result<_, _>>()?,
            from: open.from.map(|f| crate::TakenOver {
                incarnation: Incarnation(f.incarnation),
                seal: WalNumber(f.seal),
            }),
        },
        Kind::Release(at) => Command::Release {
            by: Incarnation(at.by),
            bucket: bucket_id(at.bucket)?,
            epoch: BucketEpoch(at.epoch),
            end: Offset(at.offset),
        },
        Kind::RaiseStart(at) => Command::RaiseStart {
            by: Incarnation(at.by),
            bucket: bucket_id(at.bucket)?,
            epoch: BucketEpoch(at.epoch),
            start: Offset(at.offset),
        },
        Kind::ForgetProducers(at) => Command::ForgetProducers {
            by: Incarnation(at.by),
            bucket: bucket_id(at.bucket)?,
            epoch: BucketEpoch(at.epoch),
            end: Offset(at.offset),
        },
        Kind::Deleted(deleted) => Command::Deleted {
            objects: deleted.objects.into_iter().map(ObjectId::try_from).collect::<Result<_, _>>()?,
        },
        Kind::Swept(incarnation) => Command::Swept { incarnation: Incarnation(incarnation) },
        Kind::Probed(Probed { store, sound, detail }) => Command::Probed { store, sound, detail },
        Kind::RaiseFeatureLevel(level) => Command::RaiseFeatureLevel { level },
    };
    Ok((request, command))
}

fn opening(wire: Opening) -> Result<crate::BucketOpening, WireError> {
    Ok(crate::BucketOpening { bucket: bucket_id(wire.bucket)?, epoch: BucketEpoch(wire.epoch) })
}

impl std::convert::From<&crate::Registration> for Register {
    fn from(registration: &crate::Registration) -> Register {
        Register {
            node: registration.node.0,
            tag: registration.tag,
            storage: registration.storage.clone(),
            wal_storage: registration.wal_storage.clone(),
            listeners: registration.listeners.iter().map(Into::into).collect(),
            version: registration.version.clone(),
            feature_level_max: registration.feature_level_max,
        }
    }
}

impl TryFrom<Register> for crate::Registration {
    type Error = WireError;
    fn try_from(wire: Register) -> Result<crate::Registration, WireError> {
        Ok(crate::Registration {
            node: NodeId(wire.node),
            tag: wire.tag,
            storage: wire.storage,
            wal_storage: wire.wal_storage,
            listeners: wire.listeners.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            version: wire.version,
            feature_level_max: wire.feature_level_max,
        })
    }
}
