//! DescribeGroups and ListGroups: how groups stand.
//!
//! Lives on: within a coordinator.
use crate::{GroupId, GroupState, Groups, InstanceId, MemberId};
use bytes::Bytes;
use std::sync::Arc;

/// A group as an administrator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// [`GroupState::Dead`] for a group that does not exist.
    pub state: GroupState,
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol, of a stable group.
    pub protocol: Option<Arc<str>>,
    pub generation: i32,
    pub members: Vec<MemberDescription>,
}

/// One member of a described group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberDescription {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    /// For the chosen protocol; empty unless the group is stable.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// A group in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    pub group: GroupId,
    pub state: GroupState,
    pub protocol_type: Option<Arc<str>>,
}

impl<T> Groups<T> {
    /// How a group stands; one that does not exist is dead.
    pub fn describe(&self, group: &GroupId) -> Description {
        let Some(group) = self.get(group) else {
            let state = GroupState::Dead;
            return Description {
                state,
                protocol_type: None,
                protocol: None,
                generation: 0,
                members: Vec::new(),
            };
        };
        let stable = group.state == GroupState::Stable;
        let protocol = group.protocol.clone().filter(|_| stable);
        let describe = |member: &crate::members::Member<T>| MemberDescription {
            member: member.id.clone(),
            instance: member.instance.clone(),
            client_id: Arc::clone(&member.client_id),
            client_host: Arc::clone(&member.client_host),
            metadata: member.metadata(protocol.as_deref()),
            assignment: if stable { member.assignment.clone() } else { Bytes::new() },
        };
        Description {
            state: group.state,
            protocol_type: group.protocol_type.clone(),
            generation: group.generation,
            members: group.members.iter().map(describe).collect(),
            protocol,
        }
    }

    /// All groups in the order of their ids, or those in one of these states.
    pub fn list(&self, states: &[GroupState]) -> Vec<Summary> {
        self.iter()
            .filter(|group| states.is_empty() || states.contains(&group.state))
            .map(|group| Summary {
                group: group.id.clone(),
                state: group.state,
                protocol_type: group.protocol_type.clone(),
            })
            .collect()
    }
}
