//! The Arrow schema that a client states before its batches.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: the flatbuffer is verified before any field is read, and what it says is believed only as far as a table could have
//! such columns: nothing here panics, whatever lies in the bytes. Metadata of the client's own is left out.

use arrow_ipc::{Endianness, Field as IpcField, MessageHeader, Precision, TimeUnit as IpcUnit, Type};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Fields, SchemaRef, TimeUnit as Unit};
use flatbuffers::VerifierOptions;
use mink_types::schema::{SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX};
use std::sync::Arc;

use crate::RecordError;

/// Names, types and metadata of a whole schema.
const SCHEMA_BYTES_MAX: usize = 4 << 20;
/// A field is a table, with a type, a dictionary and pairs of metadata.
const TABLES_MAX: usize = 16 * SCHEMA_FIELDS_MAX;
/// A field lies in a field; so do entries of maps, which no schema of ours counts.
const DEPTH_MAX: usize = 4 * SCHEMA_DEPTH_MAX;

/// An Arrow schema, and which dictionaries its columns refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedSchema {
    pub schema: SchemaRef,
    /// The id of the dictionary of each dictionary-encoded field, in the order in which they lie: a field before those within it.
    pub dictionaries: Vec<i64>,
}

fn refused(what: impl std::fmt::Display) -> RecordError {
    RecordError::invalid(format!("not a sound Arrow schema: {what}"))
}

/// Reads the metadata of an IPC message that states a schema, as in `FlightData.data_header`.
///
/// # Errors
/// `InvalidRecord` for bytes that are no such message; `SchemaMismatch` for a type that no table has.
pub fn read_schema(metadata: &[u8]) -> Result<StatedSchema, RecordError> {
    if metadata.len() > SCHEMA_BYTES_MAX {
        return Err(refused(format_args!(
            "it has {} bytes; at most {SCHEMA_BYTES_MAX} are accepted",
            metadata.len()
        )));
    }
    let options = VerifierOptions {
        max_depth: DEPTH_MAX,
        max_tables: TABLES_MAX,
        max_apparent_size: 2 * SCHEMA_BYTES_MAX,
        ignore_missing_null_terminator: false,
    };
    let message = arrow_ipc::root_as_message_with_opts(&options, metadata)
        .map_err(|_| refused("its bytes are no flatbuffer of a message"))?;
    if message.header_type() != MessageHeader::Schema {
        return Err(refused("the first message must state the schema of the batches"));
    }
    let schema = message.header_as_schema().ok_or_else(|| refused("it is missing"))?;
    if schema.endianness() != Endianness::Little {
        return Err(RecordError::mismatch("values are big-endian; send them little-endian"));
    }
    let mut reader = Reader { fields_left: 2 * SCHEMA_FIELDS_MAX, dictionaries: Vec::new() };
    let fields = schema.fields().ok_or_else(|| refused("it has no columns"))?;
    let fields: Fields = fields.iter().map(|field| reader.field(&field, 1)).collect::<Result<_, _>>()?;
    Ok(StatedSchema {
        schema: Arc::new(arrow_schema::Schema::new(fields)),
        dictionaries: reader.dictionaries,
    })
}

struct Reader {
    fields_left: usize,
    dictionaries: Vec<i64>,
}

impl Reader {
    fn field(&mut self, field: &IpcField<'_>, depth: usize) -> Result<ArrowField, RecordError> {
        let name = field.name().unwrap_or_default();
        self.fields_left = self
            .fields_left
            .checked_sub(1)
            .ok_or_else(|| refused(format_args!("it has more than {} fields", 2 * SCHEMA_FIELDS_MAX)))?;
        // The entries of a map are a level of their own.
        if depth > 2 * SCHEMA_DEPTH_MAX {
            return Err(refused(format_args!("its fields lie more than {} deep", 2 * SCHEMA_DEPTH_MAX)));
        }
        let data_type = match field.dictionary() {
            None => self.data_type(field, name, depth)?,
            Some(dictionary) => {
                let key = match dictionary.indexType() {
                    None => ArrowType::Int32,
                    Some(int) => integer(int.bitWidth(), int.is_signed()).ok_or_else(|| unknown(name))?,
                };
                self.dictionaries.push(dictionary.id());
                let value = self.data_type(field, name, depth)?;
                ArrowType::Dictionary(Box::new(key), Box::new(value))
            }
        };
        Ok(ArrowField::new(name, data_type, field.nullable()))
    }

    fn children(&mut self, field: &IpcField<'_>, depth: usize) -> Result<Vec<ArrowField>, RecordError> {
        let children = field.children().into_iter().flatten();
        children.map(|child| self.field(&child, depth + 1)).collect()
    }

    fn only_child(
        &mut self,
        field: &IpcField<'_>,
        name: &str,
        depth: usize,
    ) -> Result<Arc<ArrowField>, RecordError> {
        match <[ArrowField; 1]>::try_from(self.children(field, depth)?) {
            Ok([only]) => Ok(Arc::new(only)),
            Err(_) => Err(refused(format_args!("column {name:?} must have one field within it"))),
        }
    }

    fn data_type(
        &mut self,
        field: &IpcField<'_>,
        name: &str,
        depth: usize,
    ) -> Result<ArrowType, RecordError> {
        let none = || unknown(name);
        Ok(match field.type_type() {
            Type::Bool => ArrowType::Boolean,
            Type::Int => {
                let int = field.type_as_int().ok_or_else(none)?;
                integer(int.bitWidth(), int.is_signed()).ok_or_else(none)?
            }
            Type::FloatingPoint => match field.type_as_floating_point().ok_or_else(none)?.precision() {
                Precision::HALF => ArrowType::Float16,
                Precision::SINGLE => ArrowType::Float32,
                Precision::DOUBLE => ArrowType::Float64,
                _ => return Err(none()),
            },
            Type::Decimal => {
                let decimal = field.type_as_decimal().ok_or_else(none)?;
                let (precision, scale) = (u8::try_from(decimal.precision()), i8::try_from(decimal.scale()));
                match (precision, scale, decimal.bitWidth()) {
                    (Ok(precision), Ok(scale), 128) => ArrowType::Decimal128(precision, scale),
                    _ => return Err(none()),
                }
            }
            Type::Utf8 => ArrowType::Utf8,
            Type::LargeUtf8 => ArrowType::LargeUtf8,
            Type::Utf8View => ArrowType::Utf8View,
            Type::Binary => ArrowType::Binary,
            Type::LargeBinary => ArrowType::LargeBinary,
            Type::BinaryView => ArrowType::BinaryView,
            Type::FixedSizeBinary => {
                ArrowType::FixedSizeBinary(field.type_as_fixed_size_binary().ok_or_else(none)?.byteWidth())
            }
            Type::Date => match field.type_as_date().ok_or_else(none)?.unit() {
                arrow_ipc::DateUnit::DAY => ArrowType::Date32,
                arrow_ipc::DateUnit::MILLISECOND => ArrowType::Date64,
                _ => return Err(none()),
            },
            Type::Time => {
                let time = field.type_as_time().ok_or_else(none)?;
                match (unit(time.unit()).ok_or_else(none)?, time.bitWidth()) {
                    (narrow @ (Unit::Second | Unit::Millisecond), 32) => ArrowType::Time32(narrow),
                    (wide @ (Unit::Microsecond | Unit::Nanosecond), 64) => ArrowType::Time64(wide),
                    _ => return Err(none()),
                }
            }
            Type::Timestamp => {
                let timestamp = field.type_as_timestamp().ok_or_else(none)?;
                let zone = timestamp.timezone().filter(|zone| !zone.is_empty()).map(Arc::from);
                ArrowType::Timestamp(unit(timestamp.unit()).ok_or_else(none)?, zone)
            }
            Type::List => ArrowType::List(self.only_child(field, name, depth)?),
            Type::LargeList => ArrowType::LargeList(self.only_child(field, name, depth)?),
            Type::Map => {
                let sorted = field.type_as_map().ok_or_else(none)?.keysSorted();
                let entries = self.only_child(field, name, depth)?;
                if !matches!(entries.data_type(), ArrowType::Struct(pair) if pair.len() == 2) {
                    return Err(refused(format_args!("column {name:?} is a map whose entries are no pairs")));
                }
                ArrowType::Map(entries, sorted)
            }
            Type::Struct_ => ArrowType::Struct(self.children(field, depth)?.into()),
            _ => return Err(none()),
        })
    }
}

/// Of a column whose type no table has.
fn unknown(name: &str) -> RecordError {
    RecordError::mismatch(format!(
        "column {name:?} has a type that no table has; see docs/sql.md for those that there are"
    ))
}

fn integer(bits: i32, signed: bool) -> Option<ArrowType> {
    Some(match (bits, signed) {
        (8, true) => ArrowType::Int8,
        (16, true) => ArrowType::Int16,
        (32, true) => ArrowType::Int32,
        (64, true) => ArrowType::Int64,
        (8, false) => ArrowType::UInt8,
        (16, false) => ArrowType::UInt16,
        (32, false) => ArrowType::UInt32,
        (64, false) => ArrowType::UInt64,
        _ => return None,
    })
}

fn unit(unit: IpcUnit) -> Option<Unit> {
    match unit {
        IpcUnit::SECOND => Some(Unit::Second),
        IpcUnit::MILLISECOND => Some(Unit::Millisecond),
        IpcUnit::MICROSECOND => Some(Unit::Microsecond),
        IpcUnit::NANOSECOND => Some(Unit::Nanosecond),
        _ => None,
    }
}
