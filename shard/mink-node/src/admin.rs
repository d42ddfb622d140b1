//! Administration through this node: commands of the log, and the node's own state.
//!
//! Lives on: the service runtime.
//! Invariants: I12 (a request is one command id, so a lost answer of the database changes nothing), K-26 (drops go by id); what is in the
//! internal database nobody changes by these.
use crate::context::Context;
use crate::groups::{is_internal_topic, refuse_internal};
use crate::producer_ids::{NoId, ProducerIds};
use async_trait::async_trait;
use mink_api::{Admin, AdminError, Broker, DeleteRecordsError, DeleteUpTo, Metric, NodeIdentity, NodeStatus};
use mink_metadata::{
    Answer, BrokerConfigChange, Command, CommandResult, ConfigScope, FEATURE_LEVEL_ALTER_TABLE,
    FEATURE_LEVEL_CONFIGS, FEATURE_LEVEL_SCHEMAS, NewPartition, NewTable, Refusal, RefusalKind, State,
    TableChange,
};
use mink_sql::MetadataError;
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketId, CleanupPolicy, DatabaseName, KeptConfigs, Offset, PartitionId, ProducerId, TableId,
    TableOptions, TablePath, TimestampType,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// [`Admin`] of a node.
#[derive(Debug)]
pub(crate) struct NodeAdmin {
    pub(crate) context: Arc<Context>,
    pub(crate) producer_ids: Mutex<ProducerIds>,
}

/// What a refusal means to whoever asked; `what` names the thing.
fn refused(refusal: &Refusal, what: &str) -> AdminError {
    let (what, why) = (what.to_owned(), refusal.to_string());
    match refusal.kind() {
        RefusalKind::Already | RefusalKind::Exists => match refusal {
            Refusal::TopicCollision { .. } | Refusal::DatabaseNotEmpty { .. } => AdminError::Invalid { why },
            _ => AdminError::Exists { what },
        },
        RefusalKind::NotFound => match refusal {
            Refusal::DatabaseNotFound { name } => AdminError::NotFound { what: format!("database {name}") },
            _ => AdminError::NotFound { what },
        },
        RefusalKind::Fenced => AdminError::Stopping,
        // The log knows tables by their ids, people by their names.
        RefusalKind::Stale => AdminError::Conflict {
            why: match refusal {
                Refusal::TableChanged { .. } => format!("{what} was changed meanwhile"),
                Refusal::SchemaChanged { newest, .. } => {
                    format!("the schema of {what} was changed meanwhile and is {newest} by now")
                }
                _ => why,
            },
        },
        RefusalKind::Limit => AdminError::Limit { why },
        RefusalKind::Invalid => AdminError::Invalid { why },
    }
}

fn warn_of_compaction(what: &str) {
    tracing::warn!(what, "nothing of a compacted table is superseded yet: all its records are kept");
}

fn failed(error: &MetadataError) -> AdminError {
    AdminError::Unavailable { why: error.to_string() }
}

impl NodeAdmin {
    async fn submit(&self, command: Command, what: &str) -> Result<Answer, AdminError> {
        if self.context.is_draining() {
            return Err(AdminError::Stopping);
        }
        match self.context.metadata.submit(command).await {
            Ok(CommandResult::Done(answer)) => Ok(answer),
            Ok(CommandResult::Refused(refusal)) => Err(refused(&refusal, what)),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Options without what an older log cannot keep: nothing goes by it, so that it is taken all the same.
    fn keepable(&self, options: TableOptions) -> TableOptions {
        if self.context.state().feature_level() >= FEATURE_LEVEL_CONFIGS {
            return options;
        }
        TableOptions { kept: KeptConfigs::default(), ..options }
    }

    /// Options that an older program of the cluster would not read are not written.
    fn check_level_of(&self, options: &TableOptions) -> Result<(), AdminError> {
        let plain =
            options.timestamps == TimestampType::CreateTime && options.cleanup == CleanupPolicy::Delete;
        if plain || self.context.state().feature_level() >= FEATURE_LEVEL_CONFIGS {
            return Ok(());
        }
        let why = "a node of the cluster is too old for such a configuration; update it".into();
        Err(AdminError::Conflict { why })
    }

    /// Columns and partitions are not written where an older program of the cluster would not read them.
    fn check_columns(&self) -> Result<(), AdminError> {
        if self.context.state().feature_level() >= FEATURE_LEVEL_SCHEMAS {
            return Ok(());
        }
        let why = "a node of the cluster is too old for tables with columns; update it".into();
        Err(AdminError::Conflict { why })
    }

    /// What a table is called in an error about it.
    fn named(&self, table: TableId) -> String {
        let state = self.context.state();
        let name = state.table(table).map(|table| format!("table {}", table.path));
        name.unwrap_or_else(|| format!("the table with the id {table}"))
    }

    fn refuse_internal(&self, table: TableId) -> Result<(), AdminError> {
        let state = self.context.state();
        let is_internal = state.table(table).is_some_and(|table| table.path.database.is_internal());
        if is_internal { Err(refuse_internal()) } else { Ok(()) }
    }
}

#[async_trait]
impl Admin for NodeAdmin {
    fn state(&self) -> State {
        self.context.state()
    }

    fn identity(&self) -> NodeIdentity {
        let config = &self.context.config;
        NodeIdentity { cluster: config.cluster.clone(), node: config.node, incarnation: self.context.me() }
    }

    fn brokers(&self) -> Vec<Broker> {
        self.context.brokers()
    }

    async fn create_table(
        &self,
        path: TablePath,
        options: TableOptions,
        schema: Option<Arc<Schema>>,
    ) -> Result<TableId, AdminError> {
        let what = format!("table {path}");
        let config = &self.context.config;
        // A topic that goes by an internal table's name would keep that from being made.
        if path.database.is_internal()
            || path.database == config.kafka_database && is_internal_topic(&path.table)
        {
            return Err(refuse_internal());
        }
        let options = self.keepable(options);
        self.check_level_of(&options)?;
        if schema.is_some() {
            self.check_columns()?;
        }
        let table = NewTable {
            path,
            uuid: self.context.draw_uuid(),
            options,
            schema,
            kafka_database: config.kafka_database.clone(),
            buckets_max: config.limits.buckets_max,
        };
        let compacts = table.options.cleanup.compacts();
        match self.submit(Command::CreateTable(table), &what).await? {
            Answer::TableCreated(id) => {
                if compacts {
                    warn_of_compaction(&what);
                }
                Ok(id)
            }
            other => Err(AdminError::Invalid { why: format!("{what}: unexpected answer {other:?}") }),
        }
    }

    async fn alter_table(
        &self,
        table: TableId,
        seen: TableOptions,
        options: TableOptions,
        schema: Option<(SchemaId, Arc<Schema>)>,
    ) -> Result<(), AdminError> {
        self.refuse_internal(table)?;
        let options = self.keepable(options);
        if options == seen && schema.is_none() {
            return Ok(());
        }
        if self.context.state().feature_level() < FEATURE_LEVEL_ALTER_TABLE {
            let why = "a node of the cluster is too old for tables that change; update it".into();
            return Err(AdminError::Conflict { why });
        }
        self.check_level_of(&options)?;
        if schema.is_some() {
            self.check_columns()?;
        }
        let buckets_max = self.context.config.limits.buckets_max;
        let (what, compacts) = (self.named(table), !seen.cleanup.compacts() && options.cleanup.compacts());
        let change = TableChange { id: table, seen, options, schema, buckets_max };
        self.submit(Command::AlterTable(change), &what).await?;
        if compacts {
            warn_of_compaction(&what);
        }
        Ok(())
    }

    async fn create_partition(
        &self,
        table: TableId,
        values: Vec<Literal>,
    ) -> Result<(PartitionId, bool), AdminError> {
        self.refuse_internal(table)?;
        self.check_columns()?;
        if self.context.is_draining() {
            return Err(AdminError::Stopping);
        }
        let partition = NewPartition { table, values, buckets_max: self.context.config.limits.buckets_max };
        let (command, what) = (Command::CreatePartition(partition), self.named(table));
        let made = self.context.metadata.submit(command).await.map_err(|error| failed(&error))?;
        match (made.partition(), &made) {
            (Some(id), _) => Ok((id, matches!(made, CommandResult::Done(_)))),
            (None, CommandResult::Refused(refusal)) => Err(refused(refusal, &what)),
            (None, other) => Err(AdminError::Invalid { why: format!("unexpected answer {other:?}") }),
        }
    }

    async fn drop_partition(&self, table: TableId, partition: PartitionId) -> Result<(), AdminError> {
        self.refuse_internal(table)?;
        let what = format!("the partition of {}", self.named(table));
        self.submit(Command::DropPartition { table, partition }, &what).await.map(drop)
    }

    async fn alter_broker_configs(
        &self,
        scope: ConfigScope,
        seen: BTreeMap<String, String>,
        configs: BTreeMap<String, String>,
    ) -> Result<(), AdminError> {
        if self.context.state().feature_level() < FEATURE_LEVEL_CONFIGS {
            let why = "a node of the cluster is too old for configurations that change; update it".into();
            return Err(AdminError::Conflict { why });
        }
        let change = BrokerConfigChange { scope, seen, configs };
        self.submit(Command::AlterBrokerConfigs(change), "the broker").await.map(drop)
    }

    async fn drop_table(&self, table: TableId) -> Result<(), AdminError> {
        self.refuse_internal(table)?;
        let what = self.named(table);
        self.submit(Command::DropTable { id: table }, &what).await.map(drop)
    }

    async fn create_database(&self, name: DatabaseName) -> Result<(), AdminError> {
        if name.is_internal() {
            return Err(refuse_internal());
        }
        let what = format!("database {name}");
        self.submit(Command::CreateDatabase { name }, &what).await.map(drop)
    }

    async fn drop_database(&self, name: DatabaseName) -> Result<(), AdminError> {
        if name.is_internal() {
            return Err(refuse_internal());
        }
        let what = format!("database {name}");
        self.submit(Command::DropDatabase { name }, &what).await.map(drop)
    }

    async fn delete_records(
        &self,
        asked: Vec<(BucketId, DeleteUpTo)>,
    ) -> Vec<Result<Offset, DeleteRecordsError>> {
        self.context.delete_records(asked).await
    }

    async fn wait_open(&self, table: TableId, limit: Duration) -> bool {
        let state = self.context.state();
        let buckets: Vec<BucketId> =
            state.table(table).map(|table| table.bucket_ids().collect()).unwrap_or_default();
        // What another node serves is open as far as this one can know: its owner stands in the view.
        let ours: Vec<BucketId> = buckets
            .into_iter()
            .filter(|bucket| {
                state.bucket(bucket).is_none_or(|b| b.owner.is_none_or(|owner| owner == self.context.me()))
            })
            .collect();
        self.context.service.timeout(limit, self.context.opened.wait(&ours)).await.is_ok()
    }

    fn producer_id(&self) -> Result<ProducerId, AdminError> {
        let mut ids = self.producer_ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.next(self.context.service.now()).map_err(|none| match none {
            NoId::After(after) => AdminError::Throttled { after },
            NoId::UsedUp => AdminError::Limit {
                why: "this node has given all its producer ids; restart it for more".into(),
            },
        })
    }

    async fn status(&self) -> NodeStatus {
        self.context.status().await
    }

    async fn metrics(&self) -> Vec<Metric> {
        self.context.metrics().await
    }
}
