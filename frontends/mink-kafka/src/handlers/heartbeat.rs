//! Heartbeat: a member lives.
//!
//! Lives on: the service runtime.
use super::Call;
use super::group_names::{code_of, group, instance, member};
use mink_group::GroupError;
use mink_kafka_wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};

pub(super) async fn heartbeat(call: &Call<'_>, request: HeartbeatRequest) -> HeartbeatResponse {
    HeartbeatResponse { error_code: code_of(&beat(call, &request).await), ..HeartbeatResponse::default() }
}

async fn beat(call: &Call<'_>, request: &HeartbeatRequest) -> Result<(), GroupError> {
    let request = mink_group::HeartbeatRequest {
        group: group(&request.group_id)?,
        member: member(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        generation: request.generation_id,
    };
    call.node.groups.heartbeat(request).await
}
