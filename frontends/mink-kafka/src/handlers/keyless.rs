//! Records without a key on a compacted topic: refused one by one, and their batch with them.
//!
//! Lives on: the service runtime.
//! Invariants: I19: a batch that is refused changes nothing, and what cannot be opened is refused.
use super::produce::{Checked, Refused, for_good};
use super::record_errors::RecordErrors;
use crate::error_code;
use crate::node::Node;
use crate::topic::Refusal;
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::Table;
use mink_router::Lost;

/// The batch for a partition of a compacted topic, if each of its records has a key.
pub(super) async fn with_keys(
    node: &Node,
    table: &Table,
    index: i32,
    checked: Checked,
    errors: &mut RecordErrors,
) -> Result<Checked, Refused> {
    let found =
        match node.source.keyless(checked.header, checked.batch.clone().into_shared(), errors.most()).await {
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
    let text = KafkaString::from(format!(
        "Compacted topic cannot accept message without key in topic partition {topic}-{index}"
    ));
    let first = found.first.into_iter().map(|place| (place, text.clone()));
    Err(errors.refuse(found.count, first.collect()))
}
