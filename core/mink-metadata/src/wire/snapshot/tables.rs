//! Tables of a snapshot, with their schemas and partitions.
//!
//! Lives on: anywhere (pure).
use std::sync::Arc;

use mink_types::schema::SchemaId;
use mink_types::{LogFormat, LogIndex, PartitionId, TableId, TableUuid};

use crate::Table;
use crate::apply::are_values;
use crate::table::Typed;
use crate::wire::WireError;
use crate::wire::parts::{Options, Path, needed, sixteen};
use crate::wire::schema::{LiteralMessage, SchemaMessage, literals, schema};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TableMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, optional, tag = "2")]
    path: Option<Path>,
    #[prost(bytes = "vec", tag = "3")]
    uuid: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    options: Option<Options>,
    #[prost(uint64, tag = "5")]
    created: u64,
    #[prost(uint32, tag = "6")]
    buckets: u32,
    /// Feature level 6, as the next: oldest first.
    #[prost(message, repeated, tag = "7")]
    schemas: Vec<SchemaMessage>,
    #[prost(message, repeated, tag = "8")]
    partitions: Vec<PartitionMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartitionMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "2")]
    values: Vec<LiteralMessage>,
}

impl From<&Table> for TableMessage {
    fn from(table: &Table) -> TableMessage {
        let partitions = table.partitions().map(|(id, values)| PartitionMessage {
            id: id.0,
            values: values.iter().map(Into::into).collect(),
        });
        TableMessage {
            id: table.id.0,
            path: Some((&table.path).into()),
            uuid: table.uuid.0.to_vec(),
            options: Some((&table.options).into()),
            created: table.created().0,
            buckets: table.buckets,
            schemas: table.schemas().map(|schema| schema.as_ref().into()).collect(),
            partitions: partitions.collect(),
        }
    }
}

impl TryFrom<TableMessage> for Table {
    type Error = WireError;
    fn try_from(wire: TableMessage) -> Result<Table, WireError> {
        let mut table = Table {
            id: TableId(wire.id),
            path: needed(wire.path, "a table without an address")?.try_into()?,
            uuid: TableUuid(sixteen(&wire.uuid)?),
            options: needed(wire.options, "a table without options")?.try_into()?,
            buckets: wire.buckets,
            typed: typed(wire.schemas)?.map(Arc::new),
        };
        if table.created() != LogIndex(wire.created) {
            return Err(WireError::Malformed("a table's id does not begin with the row that created it"));
        }
        let has_columns = match table.options.format {
            LogFormat::Kafka => false,
            LogFormat::Arrow => true,
        };
        if table.typed.is_some() != has_columns {
            return Err(WireError::Malformed("a table whose schemas do not go with its format"));
        }
        add_partitions(&mut table, wire.partitions)?;
        Ok(table)
    }
}

/// The schemas, of ids from 1 on. That each follows the one before was judged when it came.
fn typed(wire: Vec<SchemaMessage>) -> Result<Option<Typed>, WireError> {
    let mut typed: Option<Typed> = None;
    let mut last = 0;
    for message in wire {
        let bytes = message.bytes();
        let schema = Arc::new(schema(message)?);
        last += 1;
        if schema.id() != SchemaId(last) {
            return Err(WireError::Malformed("the schemas of a table are out of order"));
        }
        typed = Some(match typed {
            None => Typed::new(schema, bytes),
            Some(typed) => typed.followed_by(schema, bytes),
        });
    }
    Ok(typed)
}

fn add_partitions(table: &mut Table, wire: Vec<PartitionMessage>) -> Result<(), WireError> {
    if wire.is_empty() {
        return Ok(());
    }
    let refused = WireError::Malformed("partitions that do not go with their table");
    let (true, Some(schema)) = (table.is_partitioned(), table.schema().cloned()) else {
        return Err(refused);
    };
    let Some(typed) = &mut table.typed else { return Err(refused) };
    let typed = Arc::make_mut(typed);
    let mut last = 0;
    for PartitionMessage { id, values } in wire {
        let values = literals(values)?;
        // Id 0 is that of the only partition of other tables.
        if id <= last || !are_values(&schema, &values) || !typed.add_partition(PartitionId(id), &values) {
            return Err(refused);
        }
        last = id;
    }
    Ok(())
}
