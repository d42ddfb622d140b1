//! Records without a key on a compacted topic: refused one by one, and their batch with them.
//!
//! Lives on: the service runtime.
//! Invariants: I19: a batch that is refused changes nothing, and what cannot be opened is refused; I20: a request lists a bounded number
//! of records, however many it is refused for.
use super::produce::{Checked, Refused, for_good};
use crate::error_code;
use crate::node::Node;
use crate::topic::Refusal;
use mink_kafka_wire::messages::produce::BatchIndexAndErrorMessage;
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::Table;
use mink_router::Lost;

/// Records that one request's answer names. Kafka names them all.
const RECORD_ERRORS_MAX: usize = 1_000;

/// Records that the message names, as in Kafka.
const SHOWN_MAX: usize = 3;

/// What the request has been told of records so far.
#[derive(Debug, Default)]
pub(super) struct KeylessErrors {
    listed: usize,
}

impl KeylessErrors {
    /// The batch for a partition of a compacted topic, if each of its records has a key.
    pub(super) async fn judge(
        &mut self,
        node: &Node,
        table: &Table,
        index: i32,
        checked: Checked,
    ) -> Result<Checked, Refused> {
        let most = (RECORD_ERRORS_MAX - self.listed).max(SHOWN_MAX);
        let found = match node.source.keyless(checked.header, checked.batch.clone(), most).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(for_good(error_code::of_record(error.kind()), error.message())),
            Err(Lost) => {
                let why = "the records could not be looked at; nothing of them was written";
                return Err(Refused::curable(Refusal::new(ErrorCode::NotLeaderOrFollower, why)));
            }
        };
        if found.count == 0 {
            return Ok(checked);
        }
        let topic = table.topic_name(&node.config.kafka_database);
        let text =
            format!("Compacted topic cannot accept message without key in topic partition {topic}-{index}");
        let shown = found.first.iter().take(SHOWN_MAX);
        let shown: Vec<String> =
            shown.map(|place| format!("RecordError(batchIndex={place}, message='{text}')")).collect();
        // Kafka's own words, to the letter: clients show them.
        let why = format!(
            "One or more records have been rejected due to {} record errors in total, and only showing the first three errors at most: [{}]",
            found.count,
            shown.join(", ")
        );
        let text = KafkaString::from(text);
        let records = found.first.iter().take(RECORD_ERRORS_MAX - self.listed);
        let records: Vec<BatchIndexAndErrorMessage> = records
            .map(|place| BatchIndexAndErrorMessage {
                batch_index: i32::try_from(*place).unwrap_or(i32::MAX),
                batch_index_error_message: Some(text.clone()),
            })
            .collect();
        self.listed += records.len();
        Err(Refused::for_records(Refusal::new(ErrorCode::InvalidRecord, why), records))
    }
}
