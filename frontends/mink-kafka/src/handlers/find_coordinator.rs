//! FindCoordinator: which node has a group; transactions are refused here, at the first step that a client takes.
//!
//! Lives on: the service runtime.
//! Invariants: never a retriable code for a transaction, on which clients would ask for ever.
use super::Call;
use super::group_names::{GROUPS_PER_REQUEST_MAX, group};
use crate::error_code;
use crate::node::broker_id;
use crate::topic::Refusal;
use futures::stream::{self, StreamExt};
use mink_api::Broker;
use mink_group::GroupError;
use mink_kafka_wire::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// First version that asks for several keys.
const BATCHED_FROM: i16 = 4;

/// Keys of one request that are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;
/// Longest time that a request's searches take: clients ask again.
const TIME_MAX: Duration = Duration::from_secs(8);

pub(super) async fn find_coordinator(
    call: &Call<'_>,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let (key_type, deadline) = (request.key_type, Instant::now() + TIME_MAX);
    if call.version >= BATCHED_FROM {
        let keys = request.coordinator_keys.into_iter().take(GROUPS_PER_REQUEST_MAX);
        let lookups = keys.map(|key| async move {
            let found = find(call, key_type, &key, deadline).await;
            coordinator(key, found)
        });
        let coordinators = stream::iter(lookups).buffered(LOOKUPS_AT_ONCE).collect().await;
        return FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() };
    }
    let found = find(call, key_type, &request.key, deadline).await;
    let Coordinator { node_id, host, port, error_code, error_message, .. } = coordinator(request.key, found);
    FindCoordinatorResponse {
        error_code,
        error_message,
        node_id,
        host,
        port,
        ..FindCoordinatorResponse::default()
    }
}

async fn find(
    call: &Call<'_>,
    key_type: i8,
    key: &KafkaString,
    deadline: Instant,
) -> Result<Broker, Refusal> {
    match key_type {
        GROUP => {
            let refuse = |error: GroupError| Refusal::new(error_code::of_group(error), error.to_string());
            let id = group(key).map_err(refuse)?;
            let found = timeout_at(deadline, call.node.groups.coordinator(&id)).await;
            found.unwrap_or(Err(GroupError::CoordinatorNotAvailable)).map_err(refuse)
        }
        TRANSACTION => {
            if call.node.counters.may_tell_of_transactions() {
                tracing::info!(
                    transactional_id = ?key,
                    "a client asked for transactions, which are not supported; it may go on asking"
                );
            }
            Err(Refusal::new(
                ErrorCode::InvalidRequest,
                "transactions are not supported; use an idempotent producer without transactional.id",
            ))
        }
        other => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("coordinator type {other} is not supported; use 0 (group)"),
        )),
    }
}

fn coordinator(key: KafkaString, found: Result<Broker, Refusal>) -> Coordinator {
    match found {
        Ok(broker) => Coordinator {
            key,
            node_id: broker_id(broker.node),
            host: broker.host.into(),
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
            error_message: Some(refusal.why.into()),
        },
    }
}
