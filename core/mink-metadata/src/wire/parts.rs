//! Messages that commands, results and snapshots share.
//!
//! Lives on: anywhere (pure).
use std::collections::BTreeMap;

use mink_types::{
    ArrowCompression, BucketEpoch, BucketId, BucketIndex, CleanupPolicy, CommitTime, DatabaseName,
    Incarnation, KafkaValueFormat, LogFormat, NodeId, ObjectId, Offset, PartitionId, TableId, TableName,
    TableOptions, TablePath, Timestamp, TimestampType, WalChain, WalNumber,
};

use super::WireError;
use crate::ConfigScope;

/// A part that must be there.
pub(super) fn needed<T>(part: Option<T>, what: &'static str) -> Result<T, WireError> {
    part.ok_or(WireError::Malformed(what))
}

/// Sixteen bytes, exactly.
pub(super) fn sixteen(bytes: &[u8]) -> Result<[u8; 16], WireError> {
    bytes.try_into().map_err(|_| WireError::Malformed("an id does not have 16 bytes"))
}

pub(super) fn database_name(text: &str) -> Result<DatabaseName, WireError> {
    DatabaseName::new(text).map_err(|_| WireError::Malformed("a database name breaks the rules"))
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Bucket {
    #[prost(uint64, tag = "1")]
    table: u64,
    #[prost(uint64, tag = "2")]
    partition: u64,
    #[prost(uint32, tag = "3")]
    index: u32,
}

impl From<BucketId> for Bucket {
    fn from(id: BucketId) -> Bucket {
        Bucket { table: id.table.0, partition: id.partition.0, index: id.bucket.0 }
    }
}

impl From<Bucket> for BucketId {
    fn from(wire: Bucket) -> BucketId {
        BucketId {
            table: TableId(wire.table),
            partition: PartitionId(wire.partition),
            bucket: BucketIndex(wire.index),
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Path {
    #[prost(string, tag = "1")]
    database: String,
    #[prost(string, tag = "2")]
    table: String,
}

impl From<&TablePath> for Path {
    fn from(path: &TablePath) -> Path {
        Path { database: path.database.as_str().into(), table: path.table.as_str().into() }
    }
}

impl TryFrom<Path> for TablePath {
    type Error = WireError;
    fn try_from(wire: Path) -> Result<TablePath, WireError> {
        let table =
            TableName::new(&wire.table).map_err(|_| WireError::Malformed("a table name breaks the rules"))?;
        Ok(TablePath { database: database_name(&wire.database)?, table })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Chain {
    #[prost(uint32, tag = "1")]
    node: u32,
    #[prost(uint64, tag = "2")]
    incarnation: u64,
    #[prost(fixed64, tag = "3")]
    tag: u64,
}

impl From<WalChain> for Chain {
    fn from(chain: WalChain) -> Chain {
        Chain { node: chain.node.0, incarnation: chain.incarnation.0, tag: chain.tag }
    }
}

impl From<Chain> for WalChain {
    fn from(wire: Chain) -> WalChain {
        WalChain { node: NodeId(wire.node), incarnation: Incarnation(wire.incarnation), tag: wire.tag }
    }
}

/// Kinds of objects.
const WAL: u32 = 1;
const STREAM: u32 = 2;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObjectName {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(message, optional, tag = "2")]
    chain: Option<Chain>,
    #[prost(uint64, tag = "3")]
    number: u64,
}

impl From<ObjectId> for ObjectName {
    fn from(id: ObjectId) -> ObjectName {
        let (kind, chain, number) = match id {
            ObjectId::Wal { chain, number } => (WAL, chain, number.0),
            ObjectId::Stream { chain, counter } => (STREAM, chain, counter),
        };
        ObjectName { kind, chain: Some(chain.into()), number }
    }
}

impl TryFrom<ObjectName> for ObjectId {
    type Error = WireError;
    fn try_from(wire: ObjectName) -> Result<ObjectId, WireError> {
        let chain = needed(wire.chain, "an object without a chain")?.into();
        match wire.kind {
            WAL => Ok(ObjectId::Wal { chain, number: WalNumber(wire.number) }),
            STREAM => Ok(ObjectId::Stream { chain, counter: wire.number }),
            kind => Err(WireError::Unsupported(format!("object kind {kind}"))),
        }
    }
}

pub(super) fn object_id(wire: Option<ObjectName>) -> Result<ObjectId, WireError> {
    needed(wire, "an object without a name")?.try_into()
}

pub(super) fn bucket_id(wire: Option<Bucket>) -> Result<BucketId, WireError> {
    Ok(needed(wire, "a bucket is missing")?.into())
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Listener {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    host: String,
    #[prost(uint32, tag = "3")]
    port: u32,
}

impl From<&crate::Listener> for Listener {
    fn from(listener: &crate::Listener) -> Listener {
        Listener { name: listener.name.clone(), host: listener.host.clone(), port: listener.port.into() }
    }
}

impl TryFrom<Listener> for crate::Listener {
    type Error = WireError;
    fn try_from(wire: Listener) -> Result<crate::Listener, WireError> {
        let port = u16::try_from(wire.port).map_err(|_| WireError::Malformed("a port is above 65535"))?;
        Ok(crate::Listener { name: wire.name, host: wire.host, port })
    }
}

/// Log formats.
const KAFKA: u32 = 1;
const ARROW: u32 = 2;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Options {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(uint32, tag = "2")]
    buckets: u32,
    #[prost(uint64, optional, tag = "3")]
    log_ttl_ms: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    retention_bytes: Option<u64>,
    #[prost(uint32, tag = "5")]
    batch_bytes_max: u32,
    /// Feature level 5, as the next: 0 is left out, so what is older stays as it was.
    #[prost(uint32, tag = "6")]
    timestamps: u32,
    #[prost(uint32, tag = "7")]
    cleanup: u32,
    #[prost(message, repeated, tag = "8")]
    kept: Vec<Config>,
    /// Feature level 6, as the next.
    #[prost(uint32, tag = "9")]
    arrow_compression: u32,
    #[prost(uint32, tag = "10")]
    kafka_value: u32,
}

/// Codes of closed enums; 0 is what there was before there was a choice.
fn timestamps_code(timestamps: TimestampType) -> u32 {
    match timestamps {
        TimestampType::CreateTime => 0,
        TimestampType::LogAppendTime => 1,
    }
}

fn cleanup_code(cleanup: CleanupPolicy) -> u32 {
    match cleanup {
        CleanupPolicy::Delete => 0,
        CleanupPolicy::Compact => 1,
        CleanupPolicy::CompactDelete => 2,
        CleanupPolicy::DeleteCompact => 3,
        CleanupPolicy::None => 4,
    }
}

fn arrow_compression_code(compression: ArrowCompression) -> u32 {
    match compression {
        ArrowCompression::Zstd => 0,
        ArrowCompression::Lz4 => 1,
        ArrowCompression::None => 2,
    }
}

fn kafka_value_code(format: KafkaValueFormat) -> u32 {
    match format {
        KafkaValueFormat::Json => 0,
        KafkaValueFormat::Raw => 1,
    }
}

impl From<&TableOptions> for Options {
    fn from(options: &TableOptions) -> Options {
        let TableOptions {
            format,
            buckets,
            log_ttl_ms,
            retention_bytes,
            batch_bytes_max,
            timestamps,
            cleanup,
            arrow_compression,
            kafka_value,
            kept,
        } = options;
        let (buckets, log_ttl_ms, retention_bytes) = (*buckets, *log_ttl_ms, *retention_bytes);
        let format = match format {
            LogFormat::Kafka => KAFKA,
            LogFormat::Arrow => ARROW,
        };
        let (timestamps, cleanup) = (timestamps_code(*timestamps), cleanup_code(*cleanup));
        let (batch_bytes_max, kept) = (*batch_bytes_max, config_list(kept.iter()));
        let arrow_compression = arrow_compression_code(*arrow_compression);
        let kafka_value = kafka_value_code(*kafka_value);
        Options {
            format,
            buckets,
            log_ttl_ms,
            retention_bytes,
            batch_bytes_max,
            timestamps,
            cleanup,
            kept,
            arrow_compression,
            kafka_value,
        }
    }
}

impl TryFrom<Options> for TableOptions {
    type Error = WireError;
    fn try_from(wire: Options) -> Result<TableOptions, WireError> {
        let Options {
            format,
            buckets,
            log_ttl_ms,
            retention_bytes,
            batch_bytes_max,
            timestamps,
            cleanup,
            arrow_compression,
            kafka_value,
            kept,
        } = wire;
        let format = match format {
            KAFKA => LogFormat::Kafka,
            ARROW => LogFormat::Arrow,
            other => return Err(WireError::Unsupported(format!("log format {other}"))),
        };
        let timestamps = match timestamps {
            0 => TimestampType::CreateTime,
            1 => TimestampType::LogAppendTime,
            other => return Err(WireError::Unsupported(format!("timestamp type {other}"))),
        };
        let cleanup = match cleanup {
            0 => CleanupPolicy::Delete,
            1 => CleanupPolicy::Compact,
            2 => CleanupPolicy::CompactDelete,
            3 => CleanupPolicy::DeleteCompact,
            4 => CleanupPolicy::None,
            other => return Err(WireError::Unsupported(format!("cleanup policy {other}"))),
        };
        let arrow_compression = match arrow_compression {
            0 => ArrowCompression::Zstd,
            1 => ArrowCompression::Lz4,
            2 => ArrowCompression::None,
            other => return Err(WireError::Unsupported(format!("compression {other} of Arrow batches"))),
        };
        let kafka_value = match kafka_value {
            0 => KafkaValueFormat::Json,
            1 => KafkaValueFormat::Raw,
            other => return Err(WireError::Unsupported(format!("value format {other}"))),
        };
        Ok(TableOptions {
            format,
            buckets,
            log_ttl_ms,
            retention_bytes,
            batch_bytes_max,
            timestamps,
            cleanup,
            arrow_compression,
            kafka_value,
            kept: config_map(kept)?.into(),
        })
    }
}

/// A configuration of a broker or of a table.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Config {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// In order of names.
pub(super) fn config_list<'a>(configs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Config> {
    configs.map(|(name, value)| Config { name: name.to_owned(), value: value.to_owned() }).collect()
}

pub(super) fn of_map(configs: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    configs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

pub(super) fn config_map(wire: Vec<Config>) -> Result<BTreeMap<String, String>, WireError> {
    let mut configs = BTreeMap::new();
    for Config { name, value } in wire {
        if configs.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(WireError::Malformed("configurations out of order"));
        }
        configs.insert(name, value);
    }
    Ok(configs)
}

pub(super) fn scope(node: Option<u32>) -> ConfigScope {
    node.map_or(ConfigScope::Cluster, |node| ConfigScope::Node(NodeId(node)))
}

pub(super) fn scope_node(scope: ConfigScope) -> Option<u32> {
    match scope {
        ConfigScope::Cluster => None,
        ConfigScope::Node(node) => Some(node.0),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Range {
    /// The bucket, and its epoch: in commands only.
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
    #[prost(uint32, tag = "2")]
    epoch: u32,
    #[prost(uint64, tag = "3")]
    start: u64,
    #[prost(uint64, tag = "4")]
    end: u64,
    #[prost(sint64, tag = "5")]
    max_timestamp: i64,
    #[prost(sint64, tag = "6")]
    last_commit_time: i64,
    #[prost(uint64, tag = "7")]
    bytes: u64,
}

impl From<&crate::CommittedRange> for Range {
    fn from(range: &crate::CommittedRange) -> Range {
        Range {
            bucket: Some(range.bucket.into()),
            epoch: range.epoch.0,
            start: range.start.0,
            end: range.end.0,
            max_timestamp: range.max_timestamp.0,
            last_commit_time: range.last_commit_time.0,
            bytes: range.bytes,
        }
    }
}

impl TryFrom<Range> for crate::CommittedRange {
    type Error = WireError;
    fn try_from(wire: Range) -> Result<crate::CommittedRange, WireError> {
        Ok(crate::CommittedRange {
            bucket: bucket_id(wire.bucket)?,
            epoch: BucketEpoch(wire.epoch),
            start: Offset(wire.start),
            end: Offset(wire.end),
            max_timestamp: Timestamp(wire.max_timestamp),
            last_commit_time: CommitTime(wire.last_commit_time),
            bytes: wire.bytes,
        })
    }
}
