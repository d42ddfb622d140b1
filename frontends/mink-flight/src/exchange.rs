//! DoExchange: rows to follow, from a place on, for as long as the client wants.
//!
//! Lives on: the service runtime.
use crate::address::{self, Meant};
use crate::line::Line;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::reader::{Messages, start};
use crate::scan::Plan;
use arrow_flight::FlightData;
use futures::stream::{Stream, StreamExt};
use mink_proto::command;
use std::sync::Arc;
use tonic::{Status, Streaming};

/// Begins to follow what the first message's descriptor names. The client ends it by cancelling the call or by ending its own side.
pub(crate) async fn exchange(
    node: &Arc<Node>,
    mut messages: Streaming<FlightData>,
    line: Line,
) -> Result<(impl Stream<Item = Result<FlightData, Status>> + Send + use<>, Outbox), Status> {
    let first = messages.message().await?;
    let descriptor = first.and_then(|first| first.flight_descriptor).ok_or_else(|| {
        Status::invalid_argument(
            "the first message has no descriptor; give the path [database, table], or mink.v1.Scan",
        )
    })?;
    let state = node.admin.state();
    let mut plan = match address::meant(&descriptor)? {
        Meant::Table(path) => Plan::of_table(&state, &path)?,
        Meant::Command(command::Command::Scan(scan)) => Plan::of(&state, &scan)?,
        Meant::Command(command::Command::Append(_)) => {
            return Err(Status::invalid_argument(
                "rows are appended by DoPut; DoExchange follows a mink.v1.Scan",
            ));
        }
    };
    if plan.until.is_some() {
        return Err(Status::invalid_argument(
            "a scan that follows has no end; leave `until` out, or use DoGet",
        ));
    }
    plan.follow = true;
    let rows: Messages = start(node, plan, line);
    let outbox = rows.outbox();
    // What the client says after its first message has no meaning yet; the end of it ends the call.
    let gone = async move { while let Ok(Some(_)) = messages.message().await {} };
    Ok((rows.take_until(Box::pin(gone)), outbox))
}
