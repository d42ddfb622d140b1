//! FindCoordinator, DescribeGroups, ListGroups and DeleteGroups.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::delete_groups::DeleteGroupsRequest;
use mink_kafka_wire::messages::describe_groups::DescribeGroupsRequest;
use mink_kafka_wire::messages::find_coordinator::FindCoordinatorRequest;
use mink_kafka_wire::messages::leave_group::LeaveGroupRequest;
use mink_kafka_wire::messages::list_groups::ListGroupsRequest;

use super::Asker;
use super::groups::{join, member};

const BATCHED_FROM: i16 = 4;

/// Enough names that each of Kafka's partitions of offsets has some of them.
const PROBES: u32 = 32;

/// Waits until groups can be had: Kafka makes what it keeps them in when it is first asked for.
pub(super) async fn coordinators(run: &mut Asker) {
    let request = FindCoordinatorRequest { key: "probe".into(), ..FindCoordinatorRequest::default() };
    run.until("there is a coordinator", 2, &request, |answer| answer.error_code == 0).await;
    let groups = (0..PROBES).map(|at| format!("probe {at}").into()).collect();
    let request = DescribeGroupsRequest { groups, ..DescribeGroupsRequest::default() };
    run.until("groups are served", 0, &request, |answer| {
        answer.groups.iter().all(|group| group.error_code == 0)
    })
    .await;
}

pub(super) async fn find_coordinator(run: &mut Asker) {
    let version = run.version;
    let of = |keys: &[&str], key_type| {
        let keys: Vec<KafkaString> = keys.iter().map(|key| KafkaString::from(*key)).collect();
        let batched = version >= BATCHED_FROM;
        FindCoordinatorRequest {
            key: if batched { KafkaString::default() } else { keys.first().cloned().unwrap_or_default() },
            key_type,
            coordinator_keys: if batched { keys } else { vec![] },
        }
    };
    run.ask("a group", of(&["g"], 0)).await;
    run.ask("no group id", of(&[""], 0)).await;
    if version >= 1 {
        run.ask("type 7", of(&["g"], 7)).await;
        run.ask("type -1", of(&["g"], -1)).await;
        run.ask("type 2", of(&["g"], 2)).await;
    }
    if version >= BATCHED_FROM {
        run.ask("two groups", of(&["g", "h"], 0)).await;
        run.ask("a group twice", of(&["g", "g"], 0)).await;
        run.ask("no groups", of(&[], 0)).await;
    }
    run.damaged(of(&["g"], 0)).await;
}

/// A group whose one member has left.
async fn empty_group(run: &mut Asker, name: &str) -> KafkaString {
    let one = member(run, name, None).await;
    let request =
        LeaveGroupRequest { group_id: one.group.clone(), member_id: one.id, ..LeaveGroupRequest::default() };
    let answer = run.quiet(1, &request).await;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    one.group
}

pub(super) async fn describe_groups(run: &mut Asker) {
    let live = member(run, "live", None).await.group;
    let fixed = member(run, "fixed", Some("one")).await.group;
    let empty = empty_group(run, "empty").await;
    let waiting = run.name("waiting");
    let first = run.quiet(5, &join(&waiting, &"".into())).await;
    run.quiet(5, &join(&waiting, &first.member_id)).await;
    let of = |groups: &[&KafkaString]| DescribeGroupsRequest {
        groups: groups.iter().map(|group| (*group).clone()).collect(),
        ..DescribeGroupsRequest::default()
    };
    run.ask("with a member", of(&[&live])).await;
    run.ask("with a static member", of(&[&fixed])).await;
    run.ask("without members", of(&[&empty])).await;
    run.ask("before the assignment", of(&[&waiting])).await;
    run.ask("unknown", of(&[&run.name("unknown")])).await;
    run.ask("no group id", of(&[&"".into()])).await;
    run.ask("two", of(&[&live, &empty])).await;
    run.ask("one twice", of(&[&live, &live])).await;
    run.ask("none", of(&[])).await;
    if run.version >= 3 {
        let request = DescribeGroupsRequest {
            include_authorized_operations: true,
            ..of(&[&live, &run.name("unknown")])
        };
        run.ask("operations", request).await;
    }
    run.damaged(of(&[])).await;
}

pub(super) async fn list_groups(run: &mut Asker) {
    member(run, "live", None).await;
    empty_group(run, "empty").await;
    run.ask_own("all", ListGroupsRequest::default()).await;
    if run.version >= 4 {
        for states in [&["Stable"][..], &["Empty", "Dead"], &["stable"], &["NoSuch"], &["Stable", "NoSuch"]] {
            let states_filter = states.iter().map(|state| KafkaString::from(*state)).collect();
            let request = ListGroupsRequest { states_filter, ..ListGroupsRequest::default() };
            run.ask_own(&format!("states {}", states.join(", ")), request).await;
        }
    }
    if run.version >= 5 {
        for kind in ["classic", "Classic", "consumer", "nosuch"] {
            let request =
                ListGroupsRequest { types_filter: vec![kind.into()], ..ListGroupsRequest::default() };
            run.ask_own(&format!("type {kind}"), request).await;
        }
    }
    run.damaged(ListGroupsRequest::default()).await;
}

pub(super) async fn delete_groups(run: &mut Asker) {
    let live = member(run, "live", None).await.group;
    let empty = empty_group(run, "empty").await;
    let other = empty_group(run, "other").await;
    let of = |groups: &[&KafkaString]| DeleteGroupsRequest {
        groups_names: groups.iter().map(|group| (*group).clone()).collect(),
    };
    run.ask("with a member", of(&[&live])).await;
    run.ask("without members", of(&[&empty])).await;
    run.ask("without members again", of(&[&empty])).await;
    run.ask("unknown", of(&[&run.name("unknown")])).await;
    run.ask("no group id", of(&[&"".into()])).await;
    run.ask("one twice", of(&[&other, &other])).await;
    run.ask("none", of(&[])).await;
    run.damaged(of(&[])).await;
}
