//! Tables and partitions to make and to change, to and from their messages.
//!
//! Lives on: anywhere (pure).
use std::sync::Arc;

use mink_types::schema::SchemaId;
use mink_types::{TableId, TableUuid};

use crate::wire::WireError;
use crate::wire::parts::{Options, Path, database_name, needed, sixteen};
use crate::wire::schema::{LiteralMessage, SchemaMessage, literals, schema};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CreateTable {
    #[prost(message, optional, tag = "1")]
    path: Option<Path>,
    #[prost(bytes = "vec", tag = "2")]
    uuid: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    options: Option<Options>,
    #[prost(string, tag = "4")]
    kafka_database: String,
    #[prost(uint32, tag = "5")]
    buckets_max: u32,
    /// Feature level 6.
    #[prost(message, optional, tag = "6")]
    schema: Option<SchemaMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AlterTable {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, optional, tag = "2")]
    seen: Option<Options>,
    #[prost(message, optional, tag = "3")]
    options: Option<Options>,
    #[prost(uint32, tag = "4")]
    buckets_max: u32,
    /// Feature level 6, as the next: both or none.
    #[prost(uint32, optional, tag = "5")]
    planned: Option<u32>,
    #[prost(message, optional, tag = "6")]
    schema: Option<SchemaMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CreatePartition {
    #[prost(uint64, tag = "1")]
    table: u64,
    #[prost(message, repeated, tag = "2")]
    values: Vec<LiteralMessage>,
    #[prost(uint32, tag = "3")]
    buckets_max: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DropPartition {
    #[prost(uint64, tag = "1")]
    pub(super) table: u64,
    #[prost(uint64, tag = "2")]
    pub(super) partition: u64,
}

impl From<&crate::NewTable> for CreateTable {
    fn from(table: &crate::NewTable) -> CreateTable {
        CreateTable {
            path: Some((&table.path).into()),
            uuid: table.uuid.0.to_vec(),
            options: Some((&table.options).into()),
            kafka_database: table.kafka_database.as_str().into(),
            buckets_max: table.buckets_max,
            schema: table.schema.as_deref().map(Into::into),
        }
    }
}

impl TryFrom<CreateTable> for crate::NewTable {
    type Error = WireError;
    fn try_from(wire: CreateTable) -> Result<crate::NewTable, WireError> {
        Ok(crate::NewTable {
            path: needed(wire.path, "a table without an address")?.try_into()?,
            uuid: TableUuid(sixteen(&wire.uuid)?),
            options: needed(wire.options, "a table without options")?.try_into()?,
            schema: wire.schema.map(schema).transpose()?.map(Arc::new),
            kafka_database: database_name(&wire.kafka_database)?,
            buckets_max: wire.buckets_max,
        })
    }
}

impl From<&crate::TableChange> for AlterTable {
    fn from(change: &crate::TableChange) -> AlterTable {
        AlterTable {
            id: change.id.0,
            seen: Some((&change.seen).into()),
            options: Some((&change.options).into()),
            buckets_max: change.buckets_max,
            planned: change.schema.as_ref().map(|(planned, _)| planned.0),
            schema: change.schema.as_ref().map(|(_, schema)| schema.as_ref().into()),
        }
    }
}

impl TryFrom<AlterTable> for crate::TableChange {
    type Error = WireError;
    fn try_from(wire: AlterTable) -> Result<crate::TableChange, WireError> {
        let schema = match (wire.planned, wire.schema) {
            (None, None) => None,
            (Some(planned), Some(wire)) => Some((SchemaId(planned), Arc::new(schema(wire)?))),
            _ => return Err(WireError::Malformed("a schema without the one that it was made from")),
        };
        Ok(crate::TableChange {
            id: TableId(wire.id),
            seen: needed(wire.seen, "a change without the options seen")?.try_into()?,
            options: needed(wire.options, "a change without options")?.try_into()?,
            schema,
            buckets_max: wire.buckets_max,
        })
    }
}

impl From<&crate::NewPartition> for CreatePartition {
    fn from(new: &crate::NewPartition) -> CreatePartition {
        CreatePartition {
            table: new.table.0,
            values: new.values.iter().map(Into::into).collect(),
            buckets_max: new.buckets_max,
        }
    }
}

impl TryFrom<CreatePartition> for crate::NewPartition {
    type Error = WireError;
    fn try_from(wire: CreatePartition) -> Result<crate::NewPartition, WireError> {
        let (table, values) = (TableId(wire.table), literals(wire.values)?);
        Ok(crate::NewPartition { table, values, buckets_max: wire.buckets_max })
    }
}
