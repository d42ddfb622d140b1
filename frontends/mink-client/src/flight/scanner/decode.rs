//! A server's messages into rows, checked.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: whatever lies in the bytes becomes rows or an error.
use crate::flight::FlightError;
use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_ipc::MessageHeader;
use arrow_schema::SchemaRef;
use mink_record::arrow::{ARROW_INFLATED_BYTES_MAX, IpcMessage, decode_message, read_schema};

/// What the rows of one message may inflate to; a node stores no more in a batch.
const INFLATED_BYTES_MAX: usize = ARROW_INFLATED_BYTES_MAX;

/// What a message is.
#[derive(Debug)]
pub(super) enum Decoded {
    /// The columns of the rows that follow.
    Schema(SchemaRef),
    Rows(RecordBatch),
    /// It only tells how far the server has come.
    Nothing,
}

/// Reads one message, with the columns that were told before.
pub(super) fn decode(data: &FlightData, schema: Option<&SchemaRef>) -> Result<Decoded, FlightError> {
    if data.data_header.is_empty() {
        return Ok(Decoded::Nothing);
    }
    let message = arrow_ipc::root_as_message(&data.data_header).map_err(FlightError::protocol)?;
    match message.header_type() {
        MessageHeader::Schema => {
            Ok(Decoded::Schema(read_schema(&data.data_header).map_err(FlightError::protocol)?.schema))
        }
        MessageHeader::RecordBatch => {
            let schema = schema.ok_or_else(|| FlightError::protocol("rows before their columns"))?;
            let message = IpcMessage { metadata: &data.data_header, body: &data.data_body };
            let inflated_bytes_max = INFLATED_BYTES_MAX.max(data.data_body.len());
            decode_message(message, schema, inflated_bytes_max)
                .map(Decoded::Rows)
                .map_err(FlightError::protocol)
        }
        MessageHeader::NONE => Ok(Decoded::Nothing),
        other => Err(FlightError::protocol(format_args!("a message of the kind {other:?}"))),
    }
}
