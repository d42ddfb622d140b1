//! ListGroups: the groups that this node coordinates.
//!
//! Lives on: the service runtime.
use super::Call;
use super::group_names::code_of;
use mink_group::{GroupState, Summary};
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

/// The one type of groups that there is.
const CLASSIC: &str = "classic";

const STATES: [GroupState; 5] = [
    GroupState::Empty,
    GroupState::PreparingRebalance,
    GroupState::CompletingRebalance,
    GroupState::Stable,
    GroupState::Dead,
];

pub(super) async fn list_groups(call: &Call<'_>, request: ListGroupsRequest) -> ListGroupsResponse {
    let named = |filter: &[KafkaString], name: &str| {
        filter.is_empty() || filter.iter().any(|one| one.as_str().eq_ignore_ascii_case(name))
    };
    let mut states = Vec::new();
    if !request.states_filter.is_empty() {
        states = STATES.into_iter().filter(|state| named(&request.states_filter, state.name())).collect();
        if states.is_empty() {
            // None that anything is in.
            return ListGroupsResponse::default();
        }
    }
    if !named(&request.types_filter, CLASSIC) {
        return ListGroupsResponse::default();
    }
    let listed = call.node.groups.list(states).await;
    ListGroupsResponse {
        error_code: code_of(&listed),
        groups: listed.unwrap_or_default().iter().map(line).collect(),
        ..ListGroupsResponse::default()
    }
}

fn line(summary: &Summary) -> ListedGroup {
    ListedGroup {
        group_id: summary.group.as_str().into(),
        protocol_type: summary.protocol_type.as_deref().unwrap_or_default().into(),
        group_state: summary.state.name().into(),
        group_type: CLASSIC.into(),
    }
}
