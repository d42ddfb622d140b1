//! InitProducerId: a new id for an idempotent producer.
//!
//! Lives on: the service runtime.
//! Invariants: no two producers get the same id; a client that comes too often waits, its socket unread, and is not refused.
use super::Call;
use crate::error_code;
use mink_api::AdminError;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use mink_types::ProducerId;
use std::time::Duration;

/// Longest time that a request waits for its turn before the client is asked to come again.
const WAIT_MAX: Duration = Duration::from_secs(2);

const NO_EPOCH: i16 = -1;
const NO_ID: i64 = -1;

pub(super) async fn init_producer_id(
    call: &Call<'_>,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    // Refused for good: a retriable code would make `initTransactions()` spin until its timeout.
    if request.transactional_id.is_some() {
        return refuse(ErrorCode::InvalidRequest);
    }
    // Both or neither. A producer that names its old id still gets a new one, as from Kafka: without a transactional id
    // nobody vouches that it is the one it says.
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH) {
        return refuse(ErrorCode::InvalidRequest);
    }
    match take(call).await {
        Ok(ProducerId(producer_id)) => {
            InitProducerIdResponse { producer_id, producer_epoch: 0, ..InitProducerIdResponse::default() }
        }
        Err(error) => {
            tracing::debug!(%error, "no producer id");
            call.node.counters.limits().note_admin(&error);
            refuse(error_code::of_producer_id(&error))
        }
    }
}

async fn take(call: &Call<'_>) -> Result<ProducerId, AdminError> {
    let deadline = tokio::time::Instant::now() + WAIT_MAX;
    loop {
        match call.node.admin.producer_id() {
            Err(AdminError::Throttled { after }) if tokio::time::Instant::now() + after <= deadline => {
                // At least a moment, so that the loop ends whatever the node says.
                tokio::time::sleep(after.max(Duration::from_millis(1))).await;
            }
            taken => return taken,
        }
    }
}

fn refuse(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.code(),
        producer_id: NO_ID,
        producer_epoch: NO_EPOCH,
        ..InitProducerIdResponse::default()
    }
}
