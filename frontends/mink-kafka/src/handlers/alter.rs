//! The way of a change to a table: judged against what the table is now, and again if it was changed meanwhile.
//!
//! Lives on: the service runtime.
//! Invariants: of two changes at once none is lost; a change that was refused changed nothing. Changes through one node take turns, in the
//! order in which they came, so only another node's can come between.
use super::Call;
use crate::error_code;
use crate::topic::{self, Refusal};
use mink_api::AdminError;
use mink_kafka_wire::ErrorCode;
use mink_metadata::Table;
use mink_types::{TableId, TableOptions};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};

/// Times that a change is judged anew because another node's came first.
pub(super) const TRIES_MAX: usize = 5;

/// The turn of a change, held until it is done. Waits for those before it, at most until `deadline`: then nothing was changed.
pub(super) async fn turn<'a>(call: &Call<'a>, deadline: Instant) -> Result<SemaphorePermit<'a>, Refusal> {
    match timeout_at(deadline, call.node.alterations.acquire()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_closed)) => Err(Refusal::new(ErrorCode::NotController, "the node is stopping; ask again")),
        Err(_elapsed) => Err(Refusal::new(
            ErrorCode::RequestTimedOut,
            "other changes took the request's time, nothing was changed; send it again",
        )),
    }
}

/// Changes the options of a topic to what `change` makes of them; none if it was only to be checked.
pub(super) async fn alter(
    call: &Call<'_>,
    name: &str,
    change: impl Fn(&Table) -> Result<TableOptions, Refusal>,
    validate_only: bool,
    deadline: Instant,
) -> Result<Option<TableId>, Refusal> {
    let _turn = turn(call, deadline).await?;
    let mut last = AdminError::Conflict { why: "the topic is changed again and again".into() };
    for _ in 0..TRIES_MAX {
        let state = call.node.admin.state();
        let table = topic::named(&state, &call.node.config.kafka_database, name)
            .ok_or_else(|| Refusal::new(ErrorCode::UnknownTopicOrPartition, "there is no such topic"))?;
        let options = change(table)?;
        if validate_only {
            return Ok(None);
        }
        if options == table.options {
            return Ok(Some(table.id));
        }
        let altered = call.node.admin.alter_table(table.id, table.options.clone(), options, None);
        match timeout_at(deadline, altered).await {
            Ok(Ok(())) => return Ok(Some(table.id)),
            Ok(Err(error @ AdminError::Conflict { .. })) => last = error,
            Ok(Err(error)) => {
                call.node.counters.limits().note_admin(&error);
                return Err(Refusal::new(error_code::of_admin(&error), error.to_string()));
            }
            Err(_elapsed) => {
                return Err(Refusal::new(
                    ErrorCode::RequestTimedOut,
                    "the topic was not changed within the request's time; it may still be",
                ));
            }
        }
    }
    Err(Refusal::new(error_code::of_admin(&last), last.to_string()))
}
