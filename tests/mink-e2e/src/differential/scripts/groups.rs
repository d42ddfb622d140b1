//! The life of a group with one member: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use bytes::Bytes;
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use mink_kafka_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use mink_kafka_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};

use super::Asker;

const SESSION_MS: i32 = 30_000;
const REBALANCE_MS: i32 = 5_000;
/// From here on the second join brings the id that the first one was told.
const ID_REQUIRED_FROM: i16 = 4;
const STATIC_FROM: i16 = 5;
const MEMBERS_FROM: i16 = 3;

/// A member of a group, as it knows itself.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) group: KafkaString,
    pub(super) id: KafkaString,
    pub(super) instance: Option<KafkaString>,
    pub(super) generation: i32,
}

fn protocol(name: &str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol { name: name.into(), metadata: Bytes::from_static(b"metadata") }
}

pub(super) fn join(group: &KafkaString, member: &KafkaString) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.clone(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: member.clone(),
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        ..JoinGroupRequest::default()
    }
}

/// Joins a new group as its one member and leader, and takes its assignment; nothing is written down.
pub(super) async fn member(run: &mut Asker, name: &str, instance: Option<&str>) -> Member {
    let group = run.name(name);
    let instance = instance.map(KafkaString::from);
    let mut request = JoinGroupRequest { group_instance_id: instance.clone(), ..join(&group, &"".into()) };
    let mut answer = run.quiet(5, &request).await;
    if instance.is_none() {
        request.member_id = answer.member_id.clone();
        answer = run.quiet(5, &request).await;
    }
    assert_eq!(answer.error_code, 0, "{answer:?}");
    let member = Member { group, id: answer.member_id, instance, generation: answer.generation_id };
    let answer = run.quiet(3, &sync(&member, b"mine")).await;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    member
}

pub(super) fn sync(member: &Member, assignment: &'static [u8]) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: member.group.clone(),
        generation_id: member.generation,
        member_id: member.id.clone(),
        group_instance_id: member.instance.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: member.id.clone(),
            assignment: Bytes::from_static(assignment),
        }],
        ..SyncGroupRequest::default()
    }
}

/// The member that a join has made.
fn joined(group: &KafkaString, answer: Option<JoinGroupResponse>) -> Member {
    let answer = answer.unwrap_or_default();
    Member { group: group.clone(), id: answer.member_id, instance: None, generation: answer.generation_id }
}

async fn join_to_the_end(run: &mut Asker, case: &str, request: JoinGroupRequest) -> Member {
    let group = request.group_id.clone();
    let mut answer = run.ask(case, request.clone()).await;
    if run.version >= ID_REQUIRED_FROM && request.member_id.is_empty() {
        let member_id = answer.map(|answer| answer.member_id).unwrap_or_default();
        answer = run.ask(&format!("{case}, with the id"), JoinGroupRequest { member_id, ..request }).await;
    }
    joined(&group, answer)
}

pub(super) async fn join_group(run: &mut Asker) {
    let group = run.name("g");
    let none = KafkaString::default();
    let member = join_to_the_end(run, "first member", join(&group, &none)).await;
    run.ask("the member again", join(&group, &member.id)).await;
    let other = JoinGroupRequest {
        protocols: vec![protocol("sticky"), protocol("range")],
        ..join(&group, &member.id)
    };
    run.ask("the member with other protocols", other).await;
    run.ask("unknown member", join(&group, &"nobody".into())).await;
    run.ask(
        "another protocol type",
        JoinGroupRequest { protocol_type: "connect".into(), ..join(&group, &member.id) },
    )
    .await;
    let fresh = |name: &str| join(&run.name(name), &none);
    let cases = [
        ("unknown member of a new group", join(&run.name("h"), &"nobody".into())),
        ("no group id", join(&none, &none)),
        ("session of 1 ms", JoinGroupRequest { session_timeout_ms: 1, ..fresh("i") }),
        ("session of two hours", JoinGroupRequest { session_timeout_ms: 7_200_000, ..fresh("j") }),
        ("session of -1 ms", JoinGroupRequest { session_timeout_ms: -1, ..fresh("k") }),
        ("no protocols", JoinGroupRequest { protocols: vec![], ..fresh("l") }),
        ("no protocol type", JoinGroupRequest { protocol_type: none.clone(), ..fresh("m") }),
    ];
    for (case, request) in cases {
        run.ask(case, request).await;
    }
    if run.version >= STATIC_FROM {
        let group = run.name("s");
        let request = JoinGroupRequest { group_instance_id: Some("one".into()), ..join(&group, &none) };
        let first = joined(&group, run.ask("static member", request.clone()).await);
        run.quiet(5, &sync(&Member { instance: Some("one".into()), ..first.clone() }, b"mine")).await;
        let second = joined(&group, run.ask("static member comes back", request.clone()).await);
        run.ask("static member by its old id", JoinGroupRequest { member_id: first.id, ..request.clone() })
            .await;
        run.ask("static member by its id", JoinGroupRequest { member_id: second.id, ..request }).await;
        let bad = JoinGroupRequest { group_instance_id: Some("a/b".into()), ..join(&run.name("t"), &none) };
        run.ask("static member with a bad name", bad).await;
        let unknown =
            JoinGroupRequest { group_instance_id: Some("two".into()), ..join(&group, &"nobody".into()) };
        run.ask("unknown static member with an id", unknown).await;
    }
    run.damaged(join(&none, &none)).await;
}

pub(super) async fn sync_group(run: &mut Asker) {
    let group = run.name("g");
    let first = run.quiet(5, &join(&group, &"".into())).await;
    let answer = run.quiet(5, &join(&group, &first.member_id)).await;
    let member = joined(&group, Some(answer));
    let nobody = Member { id: "nobody".into(), ..member.clone() };
    run.ask("the leader", sync(&member, b"mine")).await;
    run.ask("the leader again", sync(&member, b"other")).await;
    run.ask("unknown member", sync(&nobody, b"mine")).await;
    run.ask("generation 9", sync(&Member { generation: 9, ..member.clone() }, b"mine")).await;
    run.ask("generation -1", sync(&Member { generation: -1, ..member.clone() }, b"mine")).await;
    run.ask("unknown group", sync(&Member { group: run.name("unknown"), ..member.clone() }, b"mine")).await;
    run.ask("no group id", sync(&Member { group: "".into(), ..member.clone() }, b"mine")).await;
    run.ask("no member id", sync(&Member { id: "".into(), ..member.clone() }, b"mine")).await;
    if run.version >= STATIC_FROM {
        let named = |protocol_type: &str, protocol_name: &str| SyncGroupRequest {
            protocol_type: Some(protocol_type.into()),
            protocol_name: Some(protocol_name.into()),
            ..sync(&member, b"mine")
        };
        run.ask("with its protocol", named("consumer", "range")).await;
        run.ask("another protocol type", named("connect", "range")).await;
        run.ask("another protocol", named("consumer", "sticky")).await;
    }
    if run.version >= MEMBERS_FROM {
        let instance = Some("nobody".into());
        run.ask("unknown instance", sync(&Member { instance, ..member.clone() }, b"mine")).await;
    }
    let group = run.name("h");
    let first = run.quiet(5, &join(&group, &"".into())).await;
    let answer = run.quiet(5, &join(&group, &first.member_id)).await;
    let alone = joined(&group, Some(answer));
    let nothing = SyncGroupRequest { assignments: vec![], ..sync(&alone, b"") };
    run.ask("a leader without assignments", nothing).await;
    run.damaged(sync(&nobody, b"mine")).await;
}

fn beat(member: &Member) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: member.group.clone(),
        generation_id: member.generation,
        member_id: member.id.clone(),
        group_instance_id: member.instance.clone(),
    }
}

pub(super) async fn heartbeat(run: &mut Asker) {
    let one = member(run, "g", None).await;
    run.ask("a member", beat(&one)).await;
    run.ask("generation 9", beat(&Member { generation: 9, ..one.clone() })).await;
    run.ask("generation -1", beat(&Member { generation: -1, ..one.clone() })).await;
    run.ask("unknown member", beat(&Member { id: "nobody".into(), ..one.clone() })).await;
    run.ask("no member id", beat(&Member { id: "".into(), ..one.clone() })).await;
    run.ask("unknown group", beat(&Member { group: run.name("unknown"), ..one.clone() })).await;
    run.ask("no group id", beat(&Member { group: "".into(), ..one.clone() })).await;
    if run.version >= MEMBERS_FROM {
        let fixed = member(run, "s", Some("one")).await;
        run.ask("a static member", beat(&fixed)).await;
        run.ask("a static member by another id", beat(&Member { id: "nobody".into(), ..fixed.clone() }))
            .await;
        run.ask("unknown instance", beat(&Member { instance: Some("two".into()), ..fixed })).await;
    }
    let joining = run.name("h");
    let first = run.quiet(5, &join(&joining, &"".into())).await;
    let answer = run.quiet(5, &join(&joining, &first.member_id)).await;
    run.ask("before the assignment", beat(&joined(&joining, Some(answer)))).await;
    run.damaged(beat(&Member { id: "nobody".into(), ..one })).await;
}

fn leave(version: i16, group: &KafkaString, members: &[(&KafkaString, Option<&str>)]) -> LeaveGroupRequest {
    let member = |(id, instance): &(&KafkaString, Option<&str>)| MemberIdentity {
        member_id: (*id).clone(),
        group_instance_id: instance.map(KafkaString::from),
        reason: None,
    };
    if version < MEMBERS_FROM {
        let member_id = members.first().map(|(id, _)| (*id).clone()).unwrap_or_default();
        return LeaveGroupRequest { group_id: group.clone(), member_id, ..LeaveGroupRequest::default() };
    }
    let members = members.iter().map(member).collect();
    LeaveGroupRequest { group_id: group.clone(), members, ..LeaveGroupRequest::default() }
}

pub(super) async fn leave_group(run: &mut Asker) {
    let version = run.version;
    let one = member(run, "g", None).await;
    let nobody = KafkaString::from("nobody");
    let none = KafkaString::default();
    run.ask("unknown member", leave(version, &one.group, &[(&nobody, None)])).await;
    run.ask("unknown group", leave(version, &run.name("unknown"), &[(&one.id, None)])).await;
    run.ask("no group id", leave(version, &none, &[(&one.id, None)])).await;
    run.ask("no member id", leave(version, &one.group, &[(&none, None)])).await;
    run.ask("a member", leave(version, &one.group, &[(&one.id, None)])).await;
    run.ask("a member again", leave(version, &one.group, &[(&one.id, None)])).await;
    if version >= MEMBERS_FROM {
        let fixed = member(run, "s", Some("one")).await;
        run.ask("nobody", leave(version, &fixed.group, &[])).await;
        run.ask("unknown instance", leave(version, &fixed.group, &[(&none, Some("two"))])).await;
        run.ask("an instance by another id", leave(version, &fixed.group, &[(&nobody, Some("one"))])).await;
        let both = [(&none, Some("one")), (&nobody, None)];
        run.ask("one good, one unknown", leave(version, &fixed.group, &both)).await;
    }
    run.damaged(leave(version, &none, &[(&none, None)])).await;
}
