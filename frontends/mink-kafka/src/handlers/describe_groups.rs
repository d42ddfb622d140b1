//! DescribeGroups: members and what they were assigned.
//!
//! Lives on: the service runtime.
//! Invariants: I20: a group is described once per answer, however often a request names it.
use super::Call;
use super::group_names::{GROUP_OPERATIONS, GROUPS_PER_REQUEST_MAX, code_of, group};
use mink_group::{Description, GroupError, GroupState, MemberDescription};
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};
use std::collections::BTreeSet;

/// From this version on a group that does not exist is an error and no state alone.
const NOT_FOUND_FROM: i16 = 6;

pub(super) async fn describe_groups(
    call: &Call<'_>,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let operations = if request.include_authorized_operations { GROUP_OPERATIONS } else { i32::MIN };
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for id in request.groups.into_iter().take(GROUPS_PER_REQUEST_MAX) {
        if seen.insert(id.clone()) {
            groups.push(describe(call, id, operations).await);
        }
    }
    DescribeGroupsResponse { groups, ..DescribeGroupsResponse::default() }
}

async fn describe(call: &Call<'_>, group_id: KafkaString, authorized_operations: i32) -> DescribedGroup {
    let found = match group(&group_id) {
        Ok(id) => call.node.groups.describe(&id).await,
        // What cannot be an id is nobody's.
        Err(_) => return dead(call.version, group_id, authorized_operations),
    };
    match found {
        Ok(found) if found.state == GroupState::Dead => dead(call.version, group_id, authorized_operations),
        Ok(found) => described(found, group_id, authorized_operations),
        Err(error) => {
            DescribedGroup { error_code: code_of::<()>(&Err(error)), group_id, ..DescribedGroup::default() }
        }
    }
}

fn dead(version: i16, group_id: KafkaString, authorized_operations: i32) -> DescribedGroup {
    let unknown = version >= NOT_FOUND_FROM;
    let why = unknown.then(|| format!("Group {} not found.", group_id.as_str()).into());
    DescribedGroup {
        error_code: if unknown { code_of::<()>(&Err(GroupError::GroupIdNotFound)) } else { 0 },
        error_message: why,
        group_id,
        group_state: GroupState::Dead.name().into(),
        authorized_operations: if unknown { i32::MIN } else { authorized_operations },
        ..DescribedGroup::default()
    }
}

fn described(found: Description, group_id: KafkaString, authorized_operations: i32) -> DescribedGroup {
    DescribedGroup {
        group_id,
        group_state: found.state.name().into(),
        protocol_type: found.protocol_type.as_deref().unwrap_or_default().into(),
        protocol_data: found.protocol.as_deref().unwrap_or_default().into(),
        members: found.members.into_iter().map(member).collect(),
        authorized_operations,
        ..DescribedGroup::default()
    }
}

fn member(member: MemberDescription) -> DescribedGroupMember {
    DescribedGroupMember {
        member_id: member.member.as_str().into(),
        group_instance_id: member.instance.map(|instance| instance.as_str().into()),
        client_id: (&*member.client_id).into(),
        client_host: (&*member.client_host).into(),
        member_metadata: member.metadata,
        member_assignment: member.assignment,
    }
}
