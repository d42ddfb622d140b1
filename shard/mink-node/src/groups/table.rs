//! The internal table that groups live in: where it is, how it comes to be, who may not touch it.
//!
//! Lives on: the service runtime.
//! Invariants: it is made when the first client looks for a coordinator, never by an idle node; the place of a group follows from the
//! number of buckets that the table has, which nobody changes.
use crate::context::Context;
use mink_api::AdminError;
use mink_metadata::{Command, CommandResult, NewTable, RefusalKind, State};
use mink_types::{DatabaseName, NameError, TableId, TableName, TableOptions, TablePath};

/// Buckets of the internal table: so many coordinators there are in a cluster.
pub const GROUP_BUCKETS: u32 = 16;
/// Largest batch of the internal table, if the node's limits allow it: the record of the largest group fits with room to spare.
const BATCH_BYTES_MAX: u32 = 16 << 20;

/// The table's name in the internal database.
const GROUP_TABLE: &str = "group_offsets";

fn path() -> Result<TablePath, NameError> {
    Ok(TablePath { database: DatabaseName::internal(), table: TableName::new(GROUP_TABLE)? })
}

/// The internal table, if there is one: its id and the number of its buckets.
pub(super) fn find(state: &State) -> Option<(TableId, u32)> {
    state.table_at(&path().ok()?).map(|table| (table.id, table.buckets))
}

/// The largest batch that the internal table takes.
pub(super) fn batch_bytes_max(state: &State, table: TableId) -> usize {
    let max = state.table(table).map_or(BATCH_BYTES_MAX, |table| table.options.batch_bytes_max);
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// Whether a topic of the Kafka database would go by the name of an internal table.
pub(crate) fn is_internal_topic(name: &TableName) -> bool {
    TablePath::parse(name.as_str()).is_ok_and(|path| path.database.is_internal())
}

/// What a client is told that wants to change what is in the internal database.
pub(crate) fn refuse_internal() -> AdminError {
    let database = DatabaseName::internal();
    AdminError::Invalid {
        why: format!("database {database} holds internal tables, which only Mink itself changes"),
    }
}

impl Context {
    /// The internal table, made if there is none yet.
    pub(super) async fn group_table(&self) -> Result<(TableId, u32), AdminError> {
        if let Some(found) = find(&self.state()) {
            return Ok(found);
        }
        if self.is_draining() {
            return Err(AdminError::Stopping);
        }
        self.make(Command::CreateDatabase { name: DatabaseName::internal() }).await?;
        let table = NewTable {
            path: path().map_err(|error| AdminError::Invalid { why: error.to_string() })?,
            uuid: self.draw_uuid(),
            options: TableOptions {
                buckets: GROUP_BUCKETS,
                log_ttl_ms: None,
                retention_bytes: None,
                batch_bytes_max: BATCH_BYTES_MAX.min(self.config.limits.batch_bytes_max),
                ..TableOptions::default()
            },
            schema: None,
            kafka_database: self.config.kafka_database.clone(),
            buckets_max: self.config.limits.buckets_max,
        };
        self.make(Command::CreateTable(table)).await?;
        find(&self.state())
            .ok_or_else(|| AdminError::Conflict { why: "the internal table is not there".into() })
    }

    /// Somebody else may have made it meanwhile.
    async fn make(&self, command: Command) -> Result<(), AdminError> {
        match self.metadata.submit(command).await {
            Ok(CommandResult::Done(_)) => Ok(()),
            Ok(CommandResult::Refused(refusal))
                if matches!(refusal.kind(), RefusalKind::Exists | RefusalKind::Already) =>
            {
                // Two kinds of things exist under a name: this one, or a topic that reads like it, which then shows in the search.
                tracing::debug!(%refusal, "the internal table");
                Ok(())
            }
            Ok(CommandResult::Refused(refusal)) => {
                tracing::warn!(%refusal, "the table that consumer groups live in cannot be made");
                Err(AdminError::Conflict { why: refusal.to_string() })
            }
            Err(error) => {
                tracing::debug!(%error, "the internal table");
                Err(AdminError::Unavailable { why: error.to_string() })
            }
        }
    }
}
