//! Rows into a stored batch.
//!
//! Lives on: anywhere (pure). Costs CPU by the bytes of the rows, the more with compression.
//! Invariants: what is written here, [`ArrowBatch::decode`](super::ArrowBatch::decode) reads: the same caps hold on both sides.

use arrow_array::RecordBatch;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{CompressionType, MetadataVersion};
use bytes::Bytes;
use mink_types::ArrowCompression;
use mink_types::schema::Schema;

use super::frame::Parts;
use super::inflate::inflated_bytes;
use super::message::{ALIGNMENT, Message};
use super::statistics::{statistics_of, write_statistics};
use super::{ARROW_INFLATED_BYTES_MAX, ARROW_ROWS_MAX, Intake, layout};
use crate::kafka::ProducerStamp;
use crate::{RecordError, RecordErrorKind};

/// How a batch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The table's `table.log.arrow.compression`.
    pub compression: ArrowCompression,
}

/// A batch of the rows of `batch`, whose columns are those of `schema` by name (see [`Intake::new`] for what is taken), with base offset 0
/// and without a time.
///
/// # Errors
/// `SchemaMismatch`; `InvalidRecord` for no rows or for a value that its column does not accept; `TooLarge`.
pub fn encode(
    batch: &RecordBatch,
    schema: &Schema,
    options: EncodeOptions,
    stamp: Option<ProducerStamp>,
) -> Result<Bytes, RecordError> {
    Intake::new(schema, &batch.schema())?.encode(batch, options, stamp)
}

/// Writes rows that have the table's Arrow schema and keep its rules.
pub(super) fn pack(
    batch: &RecordBatch,
    schema: &Schema,
    options: EncodeOptions,
    stamp: Option<ProducerStamp>,
) -> Result<Bytes, RecordError> {
    let rows = batch.num_rows();
    if rows == 0 {
        return Err(RecordError::invalid("a batch needs at least one row"));
    }
    if rows > ARROW_ROWS_MAX {
        return Err(too_large(&format!("{rows} rows; a batch has at most {ARROW_ROWS_MAX}")));
    }
    let (metadata, body) = ipc(batch, options.compression)?;
    let expected = layout::counts_of(batch.schema().fields());
    let message = Message::read(&metadata, expected, body.len())?;
    let inflated = inflated_bytes(&message, &body);
    if inflated > ARROW_INFLATED_BYTES_MAX {
        return Err(too_large(&format!(
            "{inflated} bytes of rows; a batch has at most {ARROW_INFLATED_BYTES_MAX}"
        )));
    }
    Parts {
        schema: schema.id(),
        rows,
        statistics: &write_statistics(&statistics_of(batch, schema)),
        metadata: &message.write(),
        body: &body,
        stamp,
    }
    .put_together()
}

/// Metadata and body of an IPC message with these rows, for whoever reads them.
///
/// # Errors
/// `InvalidRecord` for rows that no message holds.
pub fn ipc_message(
    batch: &RecordBatch,
    compression: ArrowCompression,
) -> Result<(Bytes, Bytes), RecordError> {
    let (metadata, body) = ipc(batch, compression)?;
    Ok((metadata.into(), body.into()))
}

fn too_large(what: &str) -> RecordError {
    RecordError::new(RecordErrorKind::TooLarge, format!("{what}; send fewer rows in each"))
}

/// Metadata and body of an IPC message.
fn ipc(batch: &RecordBatch, compression: ArrowCompression) -> Result<(Vec<u8>, Vec<u8>), RecordError> {
    let codec = match compression {
        ArrowCompression::None => None,
        ArrowCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
        ArrowCompression::Zstd => Some(CompressionType::ZSTD),
    };
    let written = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)
        .and_then(|options| options.try_with_compression(codec))
        .and_then(|options| {
            let mut dictionaries = DictionaryTracker::new(false);
            let mut context = CompressionContext::default();
            IpcDataGenerator::default().encode(batch, &mut dictionaries, &options, &mut context)
        });
    match written {
        Ok((_, data)) => Ok((data.ipc_message, data.arrow_data)),
        Err(_) => Err(RecordError::invalid("the rows can't be written as an Arrow IPC message")),
    }
}
