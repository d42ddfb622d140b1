//! FindCoordinator: this node for any group; transactions are refused here, at the first step that a client takes.
//!
//! Lives on: anywhere (pure).
//! Invariants: never a retriable code for a transaction, on which clients would ask for ever.
use super::Call;
use crate::node::broker_id;
use crate::topic::Refusal;
use mink_api::Broker;
use mink_kafka_wire::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// Keys answered in one request; the rest must ask again.
const KEYS_MAX: usize = 10_000;

pub(super) fn find_coordinator(call: &Call<'_>, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let found = find(call.node.broker(), request.key_type);
    if call.version >= 4 {
        let keys = request.coordinator_keys.into_iter().take(KEYS_MAX);
        return FindCoordinatorResponse {
            coordinators: keys.map(|key| coordinator(key, &found)).collect(),
            ..FindCoordinatorResponse::default()
        };
    }
    let Coordinator { node_id, host, port, error_code, error_message, .. } = coordinator(request.key, &found);
    FindCoordinatorResponse {
        error_code,
        error_message,
        node_id,
        host,
        port,
        ..FindCoordinatorResponse::default()
    }
}

fn find(own: Option<Broker>, key_type: i8) -> Result<Broker, Refusal> {
    match key_type {
        GROUP => own.ok_or_else(|| {
            Refusal::new(
                ErrorCode::CoordinatorNotAvailable,
                "this node does not take clients now; ask another",
            )
        }),
        TRANSACTION => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "transactions are not supported; use an idempotent producer without transactional.id",
        )),
        other => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("coordinator type {other} is not supported; use 0 (group)"),
        )),
    }
}

fn coordinator(key: KafkaString, found: &Result<Broker, Refusal>) -> Coordinator {
    match found {
        Ok(broker) => Coordinator {
            key,
            node_id: broker_id(broker.node),
            host: broker.host.as_str().into(),
            port: i32::from(broker.port),
            error_code: ErrorCode::None.code(),
            error_message: None,
        },
        Err(refusal) => Coordinator {
            key,
            node_id: -1,
            host: KafkaString::default(),
            port: -1,
            error_code: refusal.code.code(),
            error_message: Some(refusal.why.as_str().into()),
        },
    }
}
