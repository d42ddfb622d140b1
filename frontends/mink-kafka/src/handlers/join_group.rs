//! JoinGroup: refused until there are groups, with a code on which clients stop.
//!
//! Lives on: anywhere (pure).
use crate::error_code::NO_GROUPS;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupResponse};

pub(super) fn join_group(request: JoinGroupRequest) -> JoinGroupResponse {
    tracing::info!(group = ?request.group_id, "a client asked to join a consumer group, which this version does not have; assign partitions instead");
    JoinGroupResponse {
        error_code: NO_GROUPS.code(),
        member_id: request.member_id,
        ..JoinGroupResponse::default()
    }
}
