//! What the API shows, as JSON: names that users may rely on.
//!
//! Lives on: the service runtime.
use mink_api::{NodeIdentity, NodeStatus};
use mink_metadata::{IncarnationState, State, Table};
use mink_types::{BucketId, Offset};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Who the node is, and where clients find it. An address is empty if the listener is off.
#[derive(Debug, Serialize)]
pub(crate) struct NodeView {
    cluster: String,
    node: u32,
    version: String,
    kafka: String,
    flight: String,
    http: String,
}

impl NodeView {
    pub(crate) fn new(identity: &NodeIdentity, life: &IncarnationState) -> NodeView {
        let address =
            |name| life.listener(name).map_or_else(String::new, |at| address_text(&at.host, at.port));
        NodeView {
            cluster: identity.cluster.as_str().to_owned(),
            node: identity.node.0,
            version: life.version.clone(),
            kafka: address("kafka"),
            flight: address("flight"),
            http: address("http"),
        }
    }
}

/// HOST:PORT, with the brackets that an IPv6 address needs.
fn address_text(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct StatusView {
    node: u32,
    incarnation: u64,
    ready: bool,
    not_ready: Vec<String>,
    draining: bool,
    lease: bool,
    metadata_index: u64,
    metadata_hash: String,
    wal_untrimmed_bytes: u64,
    wal_untrimmed_objects: u64,
    pending_deletions: u64,
    lost: Vec<String>,
    storage: String,
    database: String,
    shards: usize,
    runtime: String,
    buckets: Vec<BucketView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct BucketView {
    table: u64,
    partition: u64,
    bucket: u32,
    epoch: u32,
    log_start: u64,
    committed_end: u64,
    /// None while the bucket's shard does not answer.
    high_watermark: Option<u64>,
}

impl From<NodeStatus> for StatusView {
    fn from(status: NodeStatus) -> StatusView {
        StatusView {
            node: status.node.0,
            incarnation: status.incarnation.0,
            ready: status.is_ready(),
            draining: status.draining,
            lease: status.lease,
            metadata_index: status.metadata_index.0,
            metadata_hash: status.metadata_hash.to_string(),
            wal_untrimmed_bytes: status.untrimmed_bytes,
            wal_untrimmed_objects: status.untrimmed_objects,
            pending_deletions: status.pending_deletions,
            lost: status.lost,
            storage: status.storage,
            database: status.database,
            shards: status.shards,
            runtime: status.runtime,
            not_ready: status.not_ready,
            buckets: status
                .buckets
                .iter()
                .map(|bucket| BucketView {
                    table: bucket.bucket.table.0,
                    partition: bucket.bucket.partition.0,
                    bucket: bucket.bucket.bucket.0,
                    epoch: bucket.epoch.0,
                    log_start: bucket.log_start.0,
                    committed_end: bucket.committed_end.0,
                    high_watermark: bucket.high_watermark.map(|offset| offset.0),
                })
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct TableView {
    table: String,
    id: u64,
    uuid: String,
    kind: &'static str,
    log_format: &'static str,
    buckets: Vec<TableBucketView>,
    options: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TableBucketView {
    /// 0 in a table that is not partitioned.
    partition: u64,
    bucket: u32,
    /// Node that serves it, if any does.
    node: Option<u32>,
    epoch: u32,
    log_start: u64,
    /// Where the next record goes, as far as the node that answers knows: it serves the bucket, or knows what is committed.
    end: u64,
    /// Offsets below it lie in objects; those from it on in the WAL.
    committed_end: u64,
    objects: usize,
}

/// The ends of the buckets that a node serves.
pub(crate) type Ends = BTreeMap<BucketId, Offset>;

/// What a node's status says of them.
pub(crate) fn ends(status: &NodeStatus) -> Ends {
    status.buckets.iter().filter_map(|bucket| Some((bucket.bucket, bucket.high_watermark?))).collect()
}

impl TableView {
    pub(crate) fn new(state: &State, table: &Table, ends: &Ends) -> TableView {
        let buckets = table.bucket_ids().filter_map(|id| {
            let bucket = state.bucket(&id)?;
            let owner = bucket.owner.and_then(|owner| state.incarnation(owner)).filter(|owner| !owner.fenced);
            Some(TableBucketView {
                partition: id.partition.0,
                bucket: id.bucket.0,
                node: owner.map(|owner| owner.node().0),
                epoch: bucket.epoch.0,
                log_start: bucket.start.0,
                end: ends.get(&id).map_or(bucket.end, |end| *end.max(&bucket.end)).0,
                committed_end: bucket.end.0,
                objects: bucket.ranges.len(),
            })
        });
        TableView {
            table: table.path.to_string(),
            id: table.id.0,
            uuid: table.uuid.to_string(),
            kind: "log",
            log_format: table.options.format.as_str(),
            buckets: buckets.collect(),
            options: table.options.list(),
        }
    }
}
