//! LeaveGroup: one member goes, or several from version 3 on.
//!
//! Lives on: the service runtime.
use super::Call;
use super::group_names::{code_of, group, instance, member};
use mink_group::{GroupError, LeaveRequest, Leaving, LeftMember};
use mink_kafka_wire::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse};

/// First version that names members in a list, and answers for each.
const BATCHED_FROM: i16 = 3;

pub(super) async fn leave_group(call: &Call<'_>, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let batched = call.version >= BATCHED_FROM;
    let left = match leave(call, &request, batched).await {
        Ok(left) => left,
        Err(error) => {
            return LeaveGroupResponse {
                error_code: code_of::<()>(&Err(error)),
                ..LeaveGroupResponse::default()
            };
        }
    };
    if batched {
        let members = left.into_iter().map(answered).collect();
        return LeaveGroupResponse { members, ..LeaveGroupResponse::default() };
    }
    let error_code = left.first().map_or(0, |one| code_of(&one.result));
    LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() }
}

async fn leave(
    call: &Call<'_>,
    request: &LeaveGroupRequest,
    batched: bool,
) -> Result<Vec<LeftMember>, GroupError> {
    let group = group(&request.group_id)?;
    let members = if batched {
        let named = request.members.iter();
        named
            .map(|one| Leaving {
                member: member(&one.member_id),
                instance: instance(one.group_instance_id.as_ref()),
            })
            .collect()
    } else {
        vec![Leaving { member: member(&request.member_id), instance: None }]
    };
    call.node.groups.leave(LeaveRequest { group, members }).await
}

fn answered(left: LeftMember) -> MemberResponse {
    MemberResponse {
        member_id: left.member.as_str().into(),
        group_instance_id: left.instance.map(|instance| instance.as_str().into()),
        error_code: code_of(&left.result),
    }
}
