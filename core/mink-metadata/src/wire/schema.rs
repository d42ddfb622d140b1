//! Messages of schemas: columns, types and constants.
//!
//! Lives on: anywhere (pure).
//! Invariants: what a type has no use for is left out, so a schema has one encoding (I11); no message nests deeper than prost goes down
//! (100 levels): a column at the greatest depth takes two for each of its own, and six are above it.
use mink_types::schema::{
    DataType, Field, FieldId, Literal, SCHEMA_DEPTH_MAX, Schema, SchemaId, SchemaParts,
};
use prost::Message as _;

use super::WireError;
use super::parts::needed;

const _: () = assert!(2 * SCHEMA_DEPTH_MAX + 6 < 100);

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SchemaMessage {
    #[prost(uint32, tag = "1")]
    id: u32,
    #[prost(message, repeated, tag = "2")]
    columns: Vec<FieldMessage>,
    #[prost(uint32, tag = "3")]
    last_field: u32,
    #[prost(uint32, repeated, tag = "4")]
    primary_key: Vec<u32>,
    #[prost(uint32, repeated, tag = "5")]
    partitioned_by: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    bucket_key: Vec<u32>,
}

/// A column or a nested field. Its parts lie behind pointers: an empty message takes two bytes of a row.
#[derive(Clone, PartialEq, prost::Message)]
struct FieldMessage {
    #[prost(uint32, tag = "1")]
    id: u32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, optional, boxed, tag = "3")]
    data_type: Option<Box<TypeMessage>>,
    #[prost(bool, tag = "4")]
    nullable: bool,
    #[prost(message, optional, boxed, tag = "5")]
    default: Option<Box<LiteralMessage>>,
    #[prost(string, optional, tag = "6")]
    comment: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TypeMessage {
    #[prost(uint32, tag = "1")]
    kind: u32,
    /// Precision or length.
    #[prost(uint32, tag = "2")]
    size: u32,
    #[prost(uint32, tag = "3")]
    scale: u32,
    /// The element of an array; key and value of a map; the fields of a row.
    #[prost(message, repeated, tag = "4")]
    fields: Vec<FieldMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LiteralMessage {
    #[prost(oneof = "LiteralKind", tags = "1, 2, 3, 4, 5, 6")]
    value: Option<LiteralKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum LiteralKind {
    #[prost(bool, tag = "1")]
    Boolean(bool),
    #[prost(sint64, tag = "2")]
    Integer(i64),
    /// The bits of a double.
    #[prost(fixed64, tag = "3")]
    Double(u64),
    /// Sixteen bytes, little-endian, two's complement.
    #[prost(bytes = "vec", tag = "4")]
    Decimal(Vec<u8>),
    #[prost(string, tag = "5")]
    Text(String),
    #[prost(bytes = "vec", tag = "6")]
    Bytes(Vec<u8>),
}

/// Kinds of types.
const BOOLEAN: u32 = 1;
const TINYINT: u32 = 2;
const SMALLINT: u32 = 3;
const INT: u32 = 4;
const BIGINT: u32 = 5;
const FLOAT: u32 = 6;
const DOUBLE: u32 = 7;
const DECIMAL: u32 = 8;
const CHAR: u32 = 9;
const STRING: u32 = 10;
const BINARY: u32 = 11;
const BYTES: u32 = 12;
const DATE: u32 = 13;
const TIME: u32 = 14;
const TIMESTAMP: u32 = 15;
const TIMESTAMP_LTZ: u32 = 16;
const ARRAY: u32 = 17;
const MAP: u32 = 18;
const ROW: u32 = 19;

/// How many bytes a schema's encoding has.
pub(crate) fn schema_bytes(schema: &Schema) -> usize {
    SchemaMessage::from(schema).encoded_len()
}

impl SchemaMessage {
    pub(super) fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

fn numbers(ids: &[FieldId]) -> Vec<u32> {
    ids.iter().map(|id| id.0).collect()
}

fn ids(numbers: Vec<u32>) -> Vec<FieldId> {
    numbers.into_iter().map(FieldId).collect()
}

impl From<&Schema> for SchemaMessage {
    fn from(schema: &Schema) -> SchemaMessage {
        SchemaMessage {
            id: schema.id().0,
            columns: schema.columns().iter().map(Into::into).collect(),
            last_field: schema.last_field().0,
            primary_key: numbers(schema.primary_key()),
            partitioned_by: numbers(schema.partitioned_by()),
            bucket_key: numbers(schema.bucket_key()),
        }
    }
}

/// The schema of a message, if it keeps what schemas promise.
pub(super) fn schema(wire: SchemaMessage) -> Result<Schema, WireError> {
    let parts = SchemaParts {
        id: SchemaId(wire.id),
        columns: fields(wire.columns)?,
        last_field: FieldId(wire.last_field),
        primary_key: ids(wire.primary_key),
        partitioned_by: ids(wire.partitioned_by),
        bucket_key: ids(wire.bucket_key),
    };
    Schema::from_parts(parts).map_err(|_| WireError::Malformed("a schema breaks the rules"))
}

impl From<&Field> for FieldMessage {
    fn from(field: &Field) -> FieldMessage {
        FieldMessage {
            id: field.id.0,
            name: field.name.clone(),
            data_type: Some(Box::new((&field.data_type).into())),
            nullable: field.nullable,
            default: field.default.as_ref().map(|default| Box::new(default.into())),
            comment: field.comment.clone(),
        }
    }
}

fn fields(wire: Vec<FieldMessage>) -> Result<Vec<Field>, WireError> {
    wire.into_iter().map(field).collect()
}

fn field(wire: FieldMessage) -> Result<Field, WireError> {
    Ok(Field {
        id: FieldId(wire.id),
        name: wire.name,
        data_type: data_type(*needed(wire.data_type, "a column without a type")?)?,
        nullable: wire.nullable,
        default: wire.default.map(|default| literal(*default)).transpose()?,
        comment: wire.comment,
    })
}

impl From<&DataType> for TypeMessage {
    fn from(data_type: &DataType) -> TypeMessage {
        let fields = data_type.children().into_iter().map(Into::into).collect();
        let (kind, size, scale) = match data_type {
            DataType::Boolean => (BOOLEAN, 0, 0),
            DataType::TinyInt => (TINYINT, 0, 0),
            DataType::SmallInt => (SMALLINT, 0, 0),
            DataType::Int => (INT, 0, 0),
            DataType::BigInt => (BIGINT, 0, 0),
            DataType::Float => (FLOAT, 0, 0),
            DataType::Double => (DOUBLE, 0, 0),
            DataType::Decimal { precision, scale } => (DECIMAL, u32::from(*precision), u32::from(*scale)),
            DataType::Char { length } => (CHAR, *length, 0),
            DataType::String => (STRING, 0, 0),
            DataType::Binary { length } => (BINARY, *length, 0),
            DataType::Bytes => (BYTES, 0, 0),
            DataType::Date => (DATE, 0, 0),
            DataType::Time { precision } => (TIME, u32::from(*precision), 0),
            DataType::Timestamp { precision } => (TIMESTAMP, u32::from(*precision), 0),
            DataType::TimestampLtz { precision } => (TIMESTAMP_LTZ, u32::from(*precision), 0),
            DataType::Array(_) => (ARRAY, 0, 0),
            DataType::Map { .. } => (MAP, 0, 0),
            DataType::Row(_) => (ROW, 0, 0),
        };
        TypeMessage { kind, size, scale, fields }
    }
}

/// A number that is at most 38 wherever it is sound.
fn small(number: u32) -> Result<u8, WireError> {
    u8::try_from(number).map_err(|_| WireError::Malformed("a precision or scale is above 255"))
}

fn data_type(wire: TypeMessage) -> Result<DataType, WireError> {
    let TypeMessage { kind, size, scale, fields: nested } = wire;
    let shape = (kind, size, scale, nested.len());
    let mut nested = fields(nested)?;
    let found = match shape {
        (BOOLEAN, 0, 0, 0) => DataType::Boolean,
        (TINYINT, 0, 0, 0) => DataType::TinyInt,
        (SMALLINT, 0, 0, 0) => DataType::SmallInt,
        (INT, 0, 0, 0) => DataType::Int,
        (BIGINT, 0, 0, 0) => DataType::BigInt,
        (FLOAT, 0, 0, 0) => DataType::Float,
        (DOUBLE, 0, 0, 0) => DataType::Double,
        (DECIMAL, _, _, 0) => DataType::Decimal { precision: small(size)?, scale: small(scale)? },
        (CHAR, length, 0, 0) => DataType::Char { length },
        (STRING, 0, 0, 0) => DataType::String,
        (BINARY, length, 0, 0) => DataType::Binary { length },
        (BYTES, 0, 0, 0) => DataType::Bytes,
        (DATE, 0, 0, 0) => DataType::Date,
        (TIME, _, 0, 0) => DataType::Time { precision: small(size)? },
        (TIMESTAMP, _, 0, 0) => DataType::Timestamp { precision: small(size)? },
        (TIMESTAMP_LTZ, _, 0, 0) => DataType::TimestampLtz { precision: small(size)? },
        (ARRAY, 0, 0, 1) => DataType::Array(Box::new(last(&mut nested)?)),
        (MAP, 0, 0, 2) => {
            let value = Box::new(last(&mut nested)?);
            DataType::Map { key: Box::new(last(&mut nested)?), value }
        }
        (ROW, 0, 0, _) => DataType::Row(nested),
        // What a type has beside its parts a newer program may know.
        _ => return Err(WireError::Unsupported(format!("column type {kind}"))),
    };
    Ok(found)
}

fn last(fields: &mut Vec<Field>) -> Result<Field, WireError> {
    needed(fields.pop(), "a nested type without its fields")
}

impl From<&Literal> for LiteralMessage {
    fn from(literal: &Literal) -> LiteralMessage {
        let value = match literal {
            Literal::Boolean(value) => LiteralKind::Boolean(*value),
            Literal::Integer(value) => LiteralKind::Integer(*value),
            Literal::Double(bits) => LiteralKind::Double(*bits),
            Literal::Decimal(unscaled) => LiteralKind::Decimal(unscaled.to_le_bytes().to_vec()),
            Literal::Text(text) => LiteralKind::Text(text.clone()),
            Literal::Bytes(bytes) => LiteralKind::Bytes(bytes.clone()),
        };
        LiteralMessage { value: Some(value) }
    }
}

fn literal(wire: LiteralMessage) -> Result<Literal, WireError> {
    let kind = wire.value.ok_or_else(|| WireError::Unsupported("a constant of an unknown kind".into()))?;
    Ok(match kind {
        LiteralKind::Boolean(value) => Literal::Boolean(value),
        LiteralKind::Integer(value) => Literal::Integer(value),
        LiteralKind::Double(bits) => Literal::Double(bits),
        LiteralKind::Decimal(bytes) => {
            let bytes = bytes.try_into().map_err(|_| WireError::Malformed("a decimal without 16 bytes"))?;
            Literal::Decimal(i128::from_le_bytes(bytes))
        }
        LiteralKind::Text(text) => Literal::Text(text),
        LiteralKind::Bytes(bytes) => Literal::Bytes(bytes),
    })
}

pub(super) fn literals(wire: Vec<LiteralMessage>) -> Result<Vec<Literal>, WireError> {
    wire.into_iter().map(literal).collect()
}
