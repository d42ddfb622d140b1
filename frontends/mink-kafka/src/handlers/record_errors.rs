//! A batch that is refused for single records of it, each named with what is wrong, as Kafka does (KIP-467).
//!
//! Lives on: the service runtime, one per Produce request.
//! Invariants: I20: a request lists a bounded number of records, however many it is refused for.
use super::produce::Refused;
use crate::topic::Refusal;
use mink_kafka_wire::messages::produce::BatchIndexAndErrorMessage;
use mink_kafka_wire::{ErrorCode, KafkaString};

/// Records that one request's answer names. Kafka names them all.
const RECORD_ERRORS_MAX: usize = 1_000;

/// Records that the message names, as in Kafka.
const SHOWN_MAX: usize = 3;

/// What the request has been told of records so far.
#[derive(Debug, Default)]
pub(super) struct RecordErrors {
    listed: usize,
}

impl RecordErrors {
    /// How many of a batch's records to look for.
    pub(super) fn most(&self) -> usize {
        (RECORD_ERRORS_MAX - self.listed).max(SHOWN_MAX)
    }

    /// The refusal of a batch for `count` of its records, the first of which are given by their places.
    pub(super) fn refuse(&mut self, count: u32, first: Vec<(u32, KafkaString)>) -> Refused {
        let shown = first.iter().take(SHOWN_MAX);
        let shown: Vec<String> = shown
            .map(|(place, text)| format!("RecordError(batchIndex={place}, message='{}')", text.as_str()))
            .collect();
        // Kafka's own words, to the letter: clients show them.
        let why = format!(
            "One or more records have been rejected due to {count} record errors in total, and only showing the first three errors at most: [{}]",
            shown.join(", ")
        );
        let records = first.into_iter().take(RECORD_ERRORS_MAX - self.listed);
        let records: Vec<BatchIndexAndErrorMessage> = records
            .map(|(place, text)| BatchIndexAndErrorMessage {
                batch_index: i32::try_from(place).unwrap_or(i32::MAX),
                batch_index_error_message: Some(text),
            })
            .collect();
        self.listed += records.len();
        Refused::for_records(Refusal::new(ErrorCode::InvalidRecord, why), records)
    }
}
