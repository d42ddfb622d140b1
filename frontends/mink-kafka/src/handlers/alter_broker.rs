//! A broker's configuration, changed while it runs: one node's, or that of all nodes that have none of their own.
//!
//! Lives on: the service runtime.
//! Invariants: a resource is changed as a whole or not at all (I19); of two changes at once none is lost; what is set is in the command
//! log before it is answered, so it survives every restart.
use super::alter::{TRIES_MAX, turn};
use super::alter_configs::{Change, Operation, Resource};
use super::{Call, broker_configs};
use crate::error_code;
use crate::topic::Refusal;
use mink_api::AdminError;
use mink_kafka_wire::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::{Instant, timeout_at};

pub(super) async fn alter_broker(
    call: &Call<'_>,
    resource: &Resource,
    validate_only: bool,
    deadline: Instant,
) -> Result<(), Refusal> {
    let scope = broker_configs::scope(call.node, resource.name.as_str())?;
    let _turn = turn(call, deadline).await?;
    let mut last = AdminError::Conflict { why: "the configuration is changed again and again".into() };
    for _ in 0..TRIES_MAX {
        let seen = call.node.admin.state().broker_configs(scope).clone();
        let configs = changed(&seen, resource)?;
        if validate_only || configs == seen {
            return Ok(());
        }
        let altered = call.node.admin.alter_broker_configs(scope, seen, configs);
        match timeout_at(deadline, altered).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error @ AdminError::Conflict { .. })) => last = error,
            Ok(Err(error)) => return Err(Refusal::new(error_code::of_admin(&error), error.to_string())),
            Err(_elapsed) => {
                return Err(Refusal::new(
                    ErrorCode::RequestTimedOut,
                    "the configuration was not changed within the request's time; it may still be",
                ));
            }
        }
    }
    Err(Refusal::new(error_code::of_admin(&last), last.to_string()))
}

/// All values of a scope after the changes of a request.
fn changed(
    seen: &BTreeMap<String, String>,
    resource: &Resource,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut configs = if resource.keeps { seen.clone() } else { BTreeMap::new() };
    let mut named = BTreeSet::new();
    for change in &resource.changes {
        if !named.insert(&change.name) {
            let why = format!("the request names {:?} twice", change.name);
            return Err(Refusal::new(ErrorCode::InvalidRequest, why));
        }
        apply(&mut configs, change)?;
    }
    Ok(configs)
}

fn apply(configs: &mut BTreeMap<String, String>, change: &Change) -> Result<(), Refusal> {
    let name = change.name.as_str();
    let invalid = |why: String| Err(Refusal::new(ErrorCode::InvalidRequest, why));
    match change.operation {
        None => invalid(format!("{name:?}: the operation is not known; use set, delete, append or subtract")),
        Some(Operation::Delete) => {
            configs.remove(name);
            Ok(())
        }
        Some(Operation::Set) => {
            let Some(value) = &change.value else {
                return invalid(format!("{name:?} has no value; delete it for the default"));
            };
            broker_configs::check(name, value.as_str())?;
            configs.insert(name.to_owned(), value.as_str().to_owned());
            Ok(())
        }
        // Kafka's lists among them are none that is kept here.
        Some(Operation::Append | Operation::Subtract) => {
            Err(Refusal::new(ErrorCode::InvalidConfig, format!("{name:?} is not a list: set it instead")))
        }
    }
}
