//! SyncGroup: the leader brings the assignments, everybody waits for its own.
//!
//! Lives on: the service runtime.
//! Invariants: I18 (mink-group): an assignment that is answered is durable.
use super::group_names::{code_of, group, instance, member, text, waiting};
use super::{Call, encode};
use crate::connection::Answering;
use bytes::Bytes;
use futures::FutureExt;
use mink_group::{GroupError, SyncRequest, Synced};
use mink_kafka_wire::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};
use std::sync::Arc;

/// From this version on a member says which protocol it means.
const PROTOCOL_FROM: i16 = 5;

pub(super) async fn sync_group(call: &mut Call<'_>, request: SyncGroupRequest) -> Answering {
    let (version, correlation) = (call.version, call.correlation);
    let encoded = move |answer: Result<Synced, GroupError>| encode(version, correlation, &response(answer));
    let request = match typed(version, &request) {
        Ok(request) => request,
        Err(error) => return crate::connection::ready(encoded(Err(error))),
    };
    let groups = Arc::clone(&call.node.groups);
    let syncing = async move { groups.sync(request).await }.boxed();
    waiting(call, syncing, Err(GroupError::NotCoordinator), encoded).await
}

fn typed(version: i16, request: &SyncGroupRequest) -> Result<SyncRequest, GroupError> {
    let group = group(&request.group_id)?;
    if version >= PROTOCOL_FROM && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return Err(GroupError::InconsistentGroupProtocol);
    }
    let assignments = request.assignments.iter();
    Ok(SyncRequest {
        group,
        member: member(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        generation: request.generation_id,
        protocol_type: request.protocol_type.as_ref().map(text),
        protocol: request.protocol_name.as_ref().map(text),
        assignments: assignments
            .map(|one| (member(&one.member_id), Bytes::copy_from_slice(&one.assignment)))
            .collect(),
    })
}

fn response(answer: Result<Synced, GroupError>) -> SyncGroupResponse {
    match answer {
        Ok(synced) => SyncGroupResponse {
            protocol_type: synced.protocol_type.map(|name| (&*name).into()),
            protocol_name: synced.protocol.map(|name| (&*name).into()),
            assignment: synced.assignment,
            ..SyncGroupResponse::default()
        },
        Err(error) => {
            SyncGroupResponse { error_code: code_of::<()>(&Err(error)), ..SyncGroupResponse::default() }
        }
    }
}
