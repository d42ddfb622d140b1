//! Administration of the cluster as seen from one node.
//!
//! Lives on: the service runtime.
use crate::{DeleteRecordsError, DeleteUpTo, Metric, NodeStatus};
use async_trait::async_trait;
use mink_metadata::{ConfigScope, State};
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketId, ClusterName, DatabaseName, Incarnation, NodeId, Offset, PartitionId, ProducerId, TableId,
    TableOptions, TablePath,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Who this node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeIdentity {
    pub cluster: ClusterName,
    pub node: NodeId,
    pub incarnation: Incarnation,
}

/// A node that clients can be sent to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broker {
    pub node: NodeId,
    pub host: String,
    pub port: u16,
}

/// Why an administrative request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{what} exists already")]
    Exists { what: String },
    #[error("{what} does not exist")]
    NotFound { what: String },
    #[error("{why}")]
    Invalid { why: String },
    #[error("{why}")]
    Limit { why: String },
    #[error("{why}; try again in a moment")]
    Conflict { why: String },
    #[error("too many requests of this kind in a second; try again in {} ms", .after.as_millis())]
    Throttled { after: Duration },
    #[error(
        "the database that holds the cluster's metadata does not answer ({why}); the request may still be carried out"
    )]
    Unavailable { why: String },
    #[error("this node is stopping; ask another")]
    Stopping,
}

/// Administration through any node.
#[async_trait]
pub trait Admin: Send + Sync + Debug {
    /// The metadata as this node knows it: immutable, cheap to take.
    fn state(&self) -> State;

    /// Who this node is.
    fn identity(&self) -> NodeIdentity;

    /// The nodes that live, by node id.
    fn brokers(&self) -> Vec<Broker>;

    /// Creates a table; its database must exist. One whose format has columns needs a schema, any other has none.
    async fn create_table(
        &self,
        path: TablePath,
        options: TableOptions,
        schema: Option<Arc<Schema>>,
    ) -> Result<TableId, AdminError>;

    /// Changes the options of a table, the number of its buckets among them, which only grows, and its schema, if one is given, beside
    /// the one that it was made from. `seen` are the options that the change was made from: a table that has other options or another
    /// schema by now is left alone, with [`AdminError::Conflict`].
    async fn alter_table(
        &self,
        table: TableId,
        seen: TableOptions,
        options: TableOptions,
        schema: Option<(SchemaId, Arc<Schema>)>,
    ) -> Result<(), AdminError>;

    /// Gives a partitioned table the partition of these values, one for each column that it is partitioned by, in their order, unless
    /// there is one; tells which it is, and whether it is new.
    async fn create_partition(
        &self,
        table: TableId,
        values: Vec<Literal>,
    ) -> Result<(PartitionId, bool), AdminError>;

    /// Drops a partition and all its rows.
    async fn drop_partition(&self, table: TableId, partition: PartitionId) -> Result<(), AdminError>;

    /// Gives a scope all broker configurations that it has then. `seen` are those that the change was made from: a scope that has
    /// others by now is left alone, with [`AdminError::Conflict`]. Names and values are bounded (`mink_metadata::BROKER_CONFIGS_MAX`
    /// and its neighbours), and a scope is a node that has registered once; what they mean is the caller's to check.
    async fn alter_broker_configs(
        &self,
        scope: ConfigScope,
        seen: BTreeMap<String, String>,
        configs: BTreeMap<String, String>,
    ) -> Result<(), AdminError>;

    /// Drops a table by id, so that a table created anew under the name is never meant (K-26).
    async fn drop_table(&self, table: TableId) -> Result<(), AdminError>;

    /// Creates a database.
    async fn create_database(&self, name: DatabaseName) -> Result<(), AdminError>;

    /// Drops an empty database.
    async fn drop_database(&self, name: DatabaseName) -> Result<(), AdminError>;

    /// Forgets what lies at the front of logs that this node serves: for each where it begins then, in the order asked. It may begin
    /// further on, and begins there for every reader when the answer comes. Data that is not flushed yet is flushed first.
    async fn delete_records(
        &self,
        asked: Vec<(BucketId, DeleteUpTo)>,
    ) -> Vec<Result<Offset, DeleteRecordsError>>;

    /// Waits until every bucket of a table has an owner and is open there, at most `limit`; tells whether it came to that.
    async fn wait_open(&self, table: TableId, limit: Duration) -> bool;

    /// A producer id that no node of the cluster gives again.
    fn producer_id(&self) -> Result<ProducerId, AdminError>;

    /// How the node is.
    async fn status(&self) -> NodeStatus;

    /// Everything that `/metrics` shows of the node, counted by its owners and collected now.
    async fn metrics(&self) -> Vec<Metric>;
}
