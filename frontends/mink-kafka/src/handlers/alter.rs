//! The way of a change to a table: judged against what the table is now, and again if it was changed meanwhile.
//!
//! Lives on: the service runtime.
//! Invariants: of two changes at once none is lost; a change that was refused changed nothing.
use super::Call;
use crate::error_code;
use crate::topic::{self, Refusal};
use mink_api::AdminError;
use mink_kafka_wire::ErrorCode;
use mink_metadata::Table;
use mink_types::{TableId, TableOptions};
use tokio::time::{Instant, timeout_at};

/// Times that a change is judged anew because another came first.
pub(super) const TRIES_MAX: usize = 5;

/// Changes the options of a topic to what `change` makes of them; none if it was only to be checked.
pub(super) async fn alter(
    call: &Call<'_>,
    name: &str,
    change: impl Fn(&Table) -> Result<TableOptions, Refusal>,
    validate_only: bool,
    deadline: Instant,
) -> Result<Option<TableId>, Refusal> {
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
        let altered = call.node.admin.alter_table(table.id, table.options.clone(), options);
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
