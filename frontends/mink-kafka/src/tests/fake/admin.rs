//! Administration of the fake.
//!
//! Lives on: tests only.
use super::{Fake, INCARNATION, NODE};
use async_trait::async_trait;
use mink_api::{Admin, AdminError, Broker, DeleteRecordsError, DeleteUpTo, Metric, NodeIdentity, NodeStatus};
use mink_metadata::{
    BrokerConfigChange, Command, CommandResult, ConfigScope, NewPartition, RefusalKind, State, TableChange,
};
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketId, ClusterName, DatabaseName, Offset, PartitionId, ProducerId, TableId, TableOptions, TablePath,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[async_trait]
impl Admin for Fake {
    fn state(&self) -> State {
        self.inner.lock().expect("not poisoned").state.clone()
    }

    fn identity(&self) -> NodeIdentity {
        NodeIdentity {
            cluster: ClusterName::new("test").expect("a name"),
            node: NODE,
            incarnation: INCARNATION,
        }
    }

    fn brokers(&self) -> Vec<Broker> {
        let address = *self.address.lock().expect("not poisoned");
        address
            .into_iter()
            .map(|address| Broker { node: NODE, host: address.ip().to_string(), port: address.port() })
            .collect()
    }

    async fn create_table(
        &self,
        path: TablePath,
        options: TableOptions,
        schema: Option<Arc<Schema>>,
    ) -> Result<TableId, AdminError> {
        if let Some(refused) = self.refuses.lock().expect("not poisoned").clone() {
            return Err(refused);
        }
        self.typed_table(&path.to_string(), options, schema)
    }

    async fn alter_table(
        &self,
        id: TableId,
        seen: TableOptions,
        options: TableOptions,
        schema: Option<(SchemaId, Arc<Schema>)>,
    ) -> Result<(), AdminError> {
        let (before, after) = (seen.buckets, options.buckets);
        self.alterations.fetch_add(1, Ordering::SeqCst);
        others_turn().await;
        let change = TableChange { id, seen, options, schema, buckets_max: 1_000_000 };
        match self.submit(&Command::AlterTable(change)) {
            CommandResult::Done(_) if after > before => {
                self.open(id, before..after);
                Ok(())
            }
            CommandResult::Done(_) => Ok(()),
            CommandResult::Refused(refusal) => Err(AdminError::Conflict { why: refusal.to_string() }),
        }
    }

    async fn create_partition(
        &self,
        table: TableId,
        values: Vec<Literal>,
    ) -> Result<(PartitionId, bool), AdminError> {
        let partition = NewPartition { table, values, buckets_max: 1_000_000 };
        let made = self.submit(&Command::CreatePartition(partition));
        let id = made.partition().ok_or_else(|| AdminError::Invalid { why: format!("{made:?}") })?;
        Ok((id, matches!(made, CommandResult::Done(_))))
    }

    async fn drop_partition(&self, table: TableId, partition: PartitionId) -> Result<(), AdminError> {
        match self.submit(&Command::DropPartition { table, partition }) {
            CommandResult::Done(_) => Ok(()),
            CommandResult::Refused(refusal) => Err(AdminError::NotFound { what: refusal.to_string() }),
        }
    }

    async fn alter_broker_configs(
        &self,
        scope: ConfigScope,
        seen: BTreeMap<String, String>,
        configs: BTreeMap<String, String>,
    ) -> Result<(), AdminError> {
        self.alterations.fetch_add(1, Ordering::SeqCst);
        others_turn().await;
        match self.submit(&Command::AlterBrokerConfigs(BrokerConfigChange { scope, seen, configs })) {
            CommandResult::Done(_) => Ok(()),
            CommandResult::Refused(refusal) => {
                let why = refusal.to_string();
                Err(match refusal.kind() {
                    RefusalKind::Stale => AdminError::Conflict { why },
                    RefusalKind::Limit => AdminError::Limit { why },
                    _ => AdminError::Invalid { why },
                })
            }
        }
    }

    async fn drop_table(&self, id: TableId) -> Result<(), AdminError> {
        match self.submit(&Command::DropTable { id }) {
            CommandResult::Done(_) => {
                let mut inner = self.inner.lock().expect("not poisoned");
                inner.logs.retain(|bucket, _| bucket.table != id);
                Ok(())
            }
            CommandResult::Refused(refusal) => Err(AdminError::NotFound { what: refusal.to_string() }),
        }
    }

    async fn create_database(&self, _: DatabaseName) -> Result<(), AdminError> {
        Err(AdminError::Stopping)
    }

    async fn drop_database(&self, _: DatabaseName) -> Result<(), AdminError> {
        Err(AdminError::Stopping)
    }

    async fn delete_records(
        &self,
        asked: Vec<(BucketId, DeleteUpTo)>,
    ) -> Vec<Result<Offset, DeleteRecordsError>> {
        let mut inner = self.inner.lock().expect("not poisoned");
        let forget = |(bucket, up_to)| {
            let log = inner.logs.get_mut(&bucket).ok_or(DeleteRecordsError::NotOwner { bucket })?;
            let end = Offset(log.high_watermark);
            let offset = match up_to {
                DeleteUpTo::HighWatermark => end,
                DeleteUpTo::Offset(offset) => offset,
            };
            if offset > end {
                return Err(DeleteRecordsError::OutOfRange { bucket, offset, end });
            }
            log.start = log.start.max(offset.0);
            Ok(Offset(log.start))
        };
        asked.into_iter().map(forget).collect()
    }

    async fn wait_open(&self, table: TableId, limit: Duration) -> bool {
        let open = || {
            let inner = self.inner.lock().expect("not poisoned");
            inner.logs.keys().any(|bucket| bucket.table == table)
        };
        if !open() {
            tokio::time::sleep(limit).await;
        }
        open()
    }

    fn producer_id(&self) -> Result<ProducerId, AdminError> {
        if let Some(refused) = self.refuses.lock().expect("not poisoned").clone() {
            return Err(refused);
        }
        let id = self.producer_ids.fetch_add(1, Ordering::SeqCst);
        Ok(ProducerId(i64::try_from(id).expect("small")))
    }

    async fn status(&self) -> NodeStatus {
        unreachable!("the listener does not ask how the node is")
    }

    async fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}

/// The way to the command log and back takes time, in which others come.
async fn others_turn() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
