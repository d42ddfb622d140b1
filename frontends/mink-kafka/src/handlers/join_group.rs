//! JoinGroup: a member asks to be part of the next generation, and waits for it.
//!
//! Lives on: the service runtime.
//! Invariants: I20: a member that waits holds a place among the requests of its connection, and no request's bytes.
use super::group_names::{code_of, group, instance, member, text, waiting};
use super::{Call, encode};
use crate::connection::Answering;
use bytes::Bytes;
use futures::FutureExt;
use mink_group::{GroupError, JoinRefused, JoinRequest, Joined, Protocol};
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};
use std::sync::Arc;

/// First versions that have them, or an answer without a protocol's name.
const REBALANCE_TIMEOUT_FROM: i16 = 1;
const MEMBER_ID_REQUIRED_FROM: i16 = 4;
const NO_PROTOCOL_FROM: i16 = 7;
const SKIP_ASSIGNMENT_FROM: i16 = 9;

pub(super) async fn join_group(call: &mut Call<'_>, request: JoinGroupRequest) -> Answering {
    let (version, correlation) = (call.version, call.correlation);
    let asked = request.member_id.detached();
    let encoded =
        move |answer: Result<Joined, JoinRefused>| encode(version, correlation, &response(version, answer));
    let request = match typed(call, &request) {
        Ok(request) => request,
        Err(error) => return crate::connection::ready(encoded(Err(refused(error, &asked)))),
    };
    let node = Arc::clone(call.node);
    let joining = async move {
        let answer = node.groups.join(request).await;
        if let Err(refused) = &answer {
            node.counters.limits().note_group(refused.error);
        }
        answer
    };
    let joining = joining.boxed();
    waiting(call, joining, Err(refused(GroupError::NotCoordinator, &asked)), encoded).await
}

fn refused(error: GroupError, asked: &KafkaString) -> JoinRefused {
    JoinRefused { error, member: member(asked) }
}

fn typed(call: &Call<'_>, request: &JoinGroupRequest) -> Result<JoinRequest, GroupError> {
    let protocols = request.protocols.iter().map(|protocol| Protocol {
        name: text(&protocol.name),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    });
    let mut unique = [0; 16];
    for half in unique.chunks_exact_mut(8) {
        half.copy_from_slice(&call.node.service.random_u64().to_be_bytes());
    }
    Ok(JoinRequest {
        group: group(&request.group_id)?,
        member: member(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        client_id: call.client_id.map_or("", KafkaString::as_str).into(),
        // As Kafka writes the address of a client whose name it does not look up.
        client_host: format!("/{}", call.peer.ip().to_canonical()).into(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: (call.version >= REBALANCE_TIMEOUT_FROM)
            .then_some(request.rebalance_timeout_ms),
        protocol_type: text(&request.protocol_type),
        protocols: protocols.collect(),
        member_id_required: call.version >= MEMBER_ID_REQUIRED_FROM,
        can_skip_assignment: call.version >= SKIP_ASSIGNMENT_FROM,
        unique,
    })
}

fn response(version: i16, answer: Result<Joined, JoinRefused>) -> JoinGroupResponse {
    let joined = match answer {
        Ok(joined) => joined,
        Err(JoinRefused { error, member }) => {
            return JoinGroupResponse {
                error_code: code_of::<()>(&Err(error)),
                protocol_name: (version < NO_PROTOCOL_FROM).then(KafkaString::default),
                member_id: member.as_str().into(),
                ..JoinGroupResponse::default()
            };
        }
    };
    let members = joined.members.into_iter().map(|member| JoinGroupResponseMember {
        member_id: member.member.as_str().into(),
        group_instance_id: member.instance.map(|instance| instance.as_str().into()),
        metadata: member.metadata,
    });
    JoinGroupResponse {
        generation_id: joined.generation,
        protocol_type: joined.protocol_type.map(|name| (&*name).into()),
        protocol_name: Some(joined.protocol.as_deref().unwrap_or_default().into()),
        leader: joined.leader.map(|leader| leader.as_str().into()).unwrap_or_default(),
        skip_assignment: joined.skip_assignment,
        member_id: joined.member.as_str().into(),
        members: members.collect(),
        ..JoinGroupResponse::default()
    }
}
