//! What becomes of groups, members and offsets.
//!
//! Lives on: tests only.
use super::super::fake::start;
use super::super::raw_client::{self, Client, batch};
use super::{commit, commit_alone, delete_offset, fetch, heartbeat, join, joined, offsets, sync, with_topic};
use mink_api::Admin as _;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_groups::DeleteGroupsRequest;
use mink_kafka_wire::messages::delete_topics::DeleteTopicsRequest;
use mink_kafka_wire::messages::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use mink_kafka_wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::messages::sync_group::SyncGroupRequest;
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};

async fn describe(client: &mut Client, version: i16, group: &str) -> DescribedGroup {
    let groups = vec![group.into(), group.into()];
    let request = DescribeGroupsRequest { groups, include_authorized_operations: version >= 3 };
    let mut answer = client.call(version, &request).await;
    assert_eq!(answer.groups.len(), 1, "a group that is named twice is described once");
    answer.groups.remove(0)
}

async fn list(client: &mut Client, states: &[&str], types: &[&str]) -> ListGroupsResponse {
    let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    client.call(5, &ListGroupsRequest { states_filter: names(states), types_filter: names(types) }).await
}

fn leave(version: i16, group: &str, member: &KafkaString) -> LeaveGroupRequest {
    if version < 3 {
        return LeaveGroupRequest { group_id: group.into(), member_id: member.clone(), members: Vec::new() };
    }
    LeaveGroupRequest {
        group_id: group.into(),
        members: vec![
            MemberIdentity { member_id: member.clone(), ..MemberIdentity::default() },
            MemberIdentity { member_id: "stranger".into(), ..MemberIdentity::default() },
        ],
        ..LeaveGroupRequest::default()
    }
}

/// Each API at each of its versions: version `of` of the one with the most, and what the others have of it.
#[tokio::test]
async fn a_group_lives_its_whole_life_in_every_version() {
    let (_running, mut client, id) = with_topic(2).await;
    for of in 0..=10_i16 {
        let group = &format!("g{of}");
        let (joins, syncs, beats) = (of.min(9), of.min(5), of.min(4));
        let (commits, fetches) = (of.max(2), of.max(1));
        let (lists, describes, deletes) = (of.min(5), of.min(6), of.min(3));
        let member = joined(&mut client, joins, group).await;
        assert_eq!((member.error_code, member.generation_id), (0, 1), "version {of}");
        assert_eq!((&member.leader, member.members.len()), (&member.member_id, 1));
        assert_eq!(member.protocol_name.clone().expect("chosen").as_str(), "range");
        assert_eq!(member.protocol_type.is_some(), joins >= 7);
        let synced = client.call(syncs, &sync(syncs, group, &member)).await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"all"[..]));
        assert_eq!(client.call(beats, &heartbeat(group, &member)).await.error_code, 0);

        let (name, topic_id) = if commits >= 10 { ("", id) } else { ("t", Uuid::ZERO) };
        let request = commit(group, (&member.member_id, 1), (name, topic_id), (1, 7));
        let committed = client.call(commits, &request).await;
        assert_eq!(committed.topics[0].partitions[0].error_code, 0);
        let named = Some((name, topic_id, &[1, 0, 1, 9][..]));
        let found = fetch(&mut client, fetches, group, named).await;
        assert_eq!(found[0].0.as_str(), name);
        assert_eq!(offsets(&found[0].1), [(1, 7, 0), (0, -1, 0), (9, -1, 0)], "named twice, answered once");
        assert_eq!(found[0].1[0].metadata.clone().expect("kept").as_str(), "m");
        if fetches >= 2 {
            let all = fetch(&mut client, fetches, group, None).await;
            assert_eq!((all.len(), offsets(&all[0].1)), (1, vec![(1, 7, 0)]));
        }

        let seen = describe(&mut client, describes, group).await;
        assert_eq!((seen.error_code, seen.group_state.as_str()), (0, "Stable"));
        assert_eq!((seen.protocol_type.as_str(), seen.protocol_data.as_str()), ("consumer", "range"));
        let one = &seen.members[0];
        assert_eq!((one.client_id.as_str(), one.client_host.as_str()), ("test", "/127.0.0.1"));
        assert_eq!((&one.member_id, &one.member_assignment[..]), (&member.member_id, &b"all"[..]));
        assert_eq!(one.member_metadata, join(group, &member.member_id).protocols[0].metadata);
        assert_eq!(seen.authorized_operations != i32::MIN, describes >= 3);
        let listed = client.call(lists, &ListGroupsRequest::default()).await;
        let listed = listed.groups.iter().find(|one| one.group_id.as_str() == group).expect("listed");
        assert_eq!(listed.protocol_type.as_str(), "consumer");
        assert_eq!(listed.group_state.as_str(), if lists >= 4 { "Stable" } else { "" });

        let left = client.call(syncs, &leave(syncs, group, &member.member_id)).await;
        let stranger = ErrorCode::UnknownMemberId.code();
        let codes: Vec<i16> = left.members.iter().map(|one| one.error_code).collect();
        let expected = if syncs >= 3 { vec![0, stranger] } else { Vec::new() };
        assert_eq!((left.error_code, codes), (0, expected));
        assert_eq!(describe(&mut client, describes, group).await.group_state.as_str(), "Empty");
        let delete = DeleteGroupsRequest { groups_names: vec![group.as_str().into()] };
        assert_eq!(client.call(deletes, &delete).await.results[0].error_code, 0);
        let again = client.call(deletes, &delete).await;
        assert_eq!(again.results[0].error_code, ErrorCode::GroupIdNotFound.code());
        let gone = describe(&mut client, describes, group).await;
        let code = if describes >= 6 { ErrorCode::GroupIdNotFound.code() } else { 0 };
        assert_eq!((gone.error_code, gone.group_state.as_str()), (code, "Dead"));
    }
}

#[tokio::test]
async fn i18_a_commit_of_an_old_generation_or_a_stranger_is_refused() {
    let (_running, mut client, _) = with_topic(1).await;
    let first = joined(&mut client, 9, "g").await;
    client.call(5, &sync(5, "g", &first)).await;
    let again = client.call(9, &join("g", &first.member_id)).await;
    assert_eq!((again.error_code, again.generation_id), (0, 2));
    client.call(5, &sync(5, "g", &again)).await;
    let mut code = async |member: &KafkaString, generation| {
        let request = commit("g", (member, generation), ("t", Uuid::ZERO), (0, 5));
        client.call(9, &request).await.topics[0].partitions[0].error_code
    };
    assert_eq!(code(&first.member_id, 1).await, ErrorCode::IllegalGeneration.code());
    assert_eq!(code(&"stranger".into(), 2).await, ErrorCode::UnknownMemberId.code());
    assert_eq!(code(&KafkaString::default(), -1).await, ErrorCode::UnknownMemberId.code());
    assert_eq!(code(&first.member_id, 2).await, 0);
    let old = client.call(4, &heartbeat("g", &first)).await;
    assert_eq!(old.error_code, ErrorCode::IllegalGeneration.code());
}

#[tokio::test]
async fn a_partition_that_does_not_exist_is_refused_alone_and_has_no_offset() {
    let (_running, mut client, id) = with_topic(1).await;
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let nobody = KafkaString::default();
    let mut request = commit("g", (&nobody, -1), ("t", Uuid::ZERO), (3, 1));
    let mut there = request.topics[0].partitions[0].clone();
    there.partition_index = 0;
    request.topics[0].partitions.push(there);
    let mut elsewhere = request.topics[0].clone();
    elsewhere.name = "nowhere".into();
    request.topics.insert(0, elsewhere);
    let answer = client.call(9, &request).await;
    let codes =
        |at: usize| -> Vec<i16> { answer.topics[at].partitions.iter().map(|one| one.error_code).collect() };
    assert_eq!((codes(0), codes(1)), (vec![unknown, unknown], vec![unknown, 0]));
    let found = fetch(&mut client, 9, "g", Some(("nowhere", Uuid::ZERO, &[0]))).await;
    assert_eq!(offsets(&found[0].1), [(0, -1, 0)]);
    // By an id that means nothing it is an error.
    let by_id = commit("g", (&nobody, -1), ("", Uuid([9; 16])), (0, 1));
    let refused = client.call(10, &by_id).await;
    assert_eq!(refused.topics[0].partitions[0].error_code, ErrorCode::UnknownTopicId.code());
    let found = fetch(&mut client, 10, "g", Some(("", Uuid([9; 16]), &[0]))).await;
    assert_eq!(offsets(&found[0].1), [(0, -1, ErrorCode::UnknownTopicId.code())]);
    let found = fetch(&mut client, 10, "g", Some(("", id, &[0]))).await;
    assert_eq!(offsets(&found[0].1), [(0, 1, 0)]);
}

#[tokio::test]
async fn k_18_a_topic_that_was_created_anew_inherits_no_offset() {
    let (running, mut client, _) = with_topic(1).await;
    assert_eq!(commit_alone(&mut client, "g", "t", 0, 5).await, 0);
    let table = running.fake.state().tables().next().expect("one").id;
    running.fake.drop_table(table).await.expect("dropped");
    assert!(fetch(&mut client, 9, "g", None).await.is_empty());
    running.fake.topic("t", 1);
    let found = fetch(&mut client, 9, "g", Some(("t", Uuid::ZERO, &[0]))).await;
    assert_eq!(offsets(&found[0].1), [(0, -1, 0)]);
    assert!(fetch(&mut client, 9, "g", None).await.is_empty());
}

#[tokio::test]
async fn offsets_are_deleted_unless_the_group_subscribes_to_their_topic() {
    let (_running, mut client, _) = with_topic(2).await;
    assert_eq!(commit_alone(&mut client, "g", "t", 0, 5).await, 0);
    assert_eq!(commit_alone(&mut client, "g", "t", 1, 6).await, 0);
    let codes = |answer: mink_kafka_wire::messages::offset_delete::OffsetDeleteResponse| -> Vec<i16> {
        assert_eq!(answer.error_code, 0);
        answer.topics[0].partitions.iter().map(|one| one.error_code).collect()
    };
    let deleted = client.call(0, &delete_offset("g", "t", &[0, 8])).await;
    assert_eq!(codes(deleted), [0, ErrorCode::UnknownTopicOrPartition.code()]);
    let found = fetch(&mut client, 9, "g", None).await;
    assert_eq!(offsets(&found[0].1), [(1, 6, 0)]);
    let member = joined(&mut client, 9, "g").await;
    client.call(5, &sync(5, "g", &member)).await;
    let refused = client.call(0, &delete_offset("g", "t", &[1])).await;
    assert_eq!(codes(refused), [ErrorCode::GroupSubscribedToTopic.code()]);
    let unknown = client.call(0, &delete_offset("other", "t", &[1])).await;
    assert_eq!(unknown.error_code, ErrorCode::GroupIdNotFound.code());
    let full = DeleteGroupsRequest { groups_names: vec!["g".into()] };
    let refused = client.call(2, &full).await;
    assert_eq!(refused.results[0].error_code, ErrorCode::NonEmptyGroup.code());
}

#[tokio::test]
async fn a_list_is_filtered_by_states_and_types_however_they_are_written() {
    let (_running, mut client, _) = with_topic(1).await;
    joined(&mut client, 9, "joined").await;
    assert_eq!(commit_alone(&mut client, "alone", "t", 0, 1).await, 0);
    let ids = |answer: ListGroupsResponse| -> Vec<String> {
        assert_eq!(answer.error_code, 0);
        answer.groups.iter().map(|one| one.group_id.as_str().to_owned()).collect()
    };
    assert_eq!(ids(list(&mut client, &[], &[]).await), ["alone", "joined"]);
    assert_eq!(ids(list(&mut client, &["empty"], &["Classic"]).await), ["alone"]);
    assert_eq!(ids(list(&mut client, &["CompletingRebalance"], &[]).await), ["joined"]);
    assert!(ids(list(&mut client, &["NoSuch"], &[]).await).is_empty());
    assert!(ids(list(&mut client, &[], &["consumer"]).await).is_empty());
    let listed = list(&mut client, &["Empty"], &[]).await;
    assert_eq!(listed.groups[0].group_type.as_str(), "classic");
    assert_eq!(listed.groups[0].protocol_type.as_str(), "");
}

#[tokio::test]
async fn an_empty_group_id_is_no_group() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let invalid = ErrorCode::InvalidGroupId.code();
    let join_of_nobody = join("", &"m".into());
    let join = client.call(9, &join_of_nobody).await;
    assert_eq!((join.error_code, join.member_id.as_str(), join.generation_id), (invalid, "m", -1));
    assert_eq!(join.protocol_name, None, "null from version 7 on");
    let join = client.call(6, &join_of_nobody).await;
    assert_eq!((join.error_code, join.protocol_name), (invalid, Some(KafkaString::default())));
    assert_eq!(client.call(5, &SyncGroupRequest::default()).await.error_code, invalid);
    assert_eq!(client.call(4, &HeartbeatRequest::default()).await.error_code, invalid);
    assert_eq!(client.call(5, &LeaveGroupRequest::default()).await.error_code, invalid);
    assert_eq!(commit_alone(&mut client, "", "t", 0, 1).await, invalid);
    let unknown = ErrorCode::GroupIdNotFound.code();
    let described = describe(&mut client, 6, "").await;
    assert_eq!((described.error_code, described.authorized_operations), (unknown, i32::MIN));
    assert_eq!(describe(&mut client, 5, "").await.error_code, 0);
    let delete = DeleteGroupsRequest { groups_names: vec!["".into()] };
    assert_eq!(client.call(2, &delete).await.results[0].error_code, unknown);
    assert_eq!(client.call(0, &delete_offset("", "t", &[0])).await.error_code, unknown);
    assert!(fetch(&mut client, 9, "", None).await.is_empty());
    let found = fetch(&mut client, 1, "", Some(("t", Uuid::ZERO, &[0]))).await;
    assert_eq!(offsets(&found[0].1), [(0, -1, 0)]);
}

#[tokio::test]
async fn a_sync_of_version_5_without_its_protocol_is_refused() {
    let (_running, mut client, _) = with_topic(1).await;
    let member = joined(&mut client, 9, "g").await;
    let request = SyncGroupRequest { protocol_name: None, ..sync(5, "g", &member) };
    let code = client.call(5, &request).await.error_code;
    assert_eq!(code, ErrorCode::InconsistentGroupProtocol.code());
}

/// The table that groups live in is a topic to nobody, by whatever it is called.
#[tokio::test]
async fn i18_an_internal_table_is_no_topic() {
    let (running, mut client, id) = with_topic(1).await;
    let (path, uuid) = running.fake.internal_table();
    let all = client.call(12, &MetadataRequest { topics: None, ..MetadataRequest::default() }).await;
    assert_eq!(all.topics.iter().map(|topic| topic.topic_id).collect::<Vec<_>>(), [id]);
    let named = MetadataRequestTopic { name: Some(path.as_str().into()), ..MetadataRequestTopic::default() };
    let asked =
        client.call(9, &MetadataRequest { topics: Some(vec![named]), ..MetadataRequest::default() }).await;
    assert_eq!(asked.topics[0].error_code, ErrorCode::InvalidTopicException.code());
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(client.produce(&path, 0, batch(&["x"])).await.error_code, unknown);
    let read = client.call(12, &raw_client::fetch(&path, &[(0, 0)])).await;
    assert_eq!(read.responses[0].partitions[0].error_code, unknown);
    let mut by_id = raw_client::fetch("", &[(0, 0)]);
    by_id.topics[0].topic_id = Uuid(uuid.0);
    let read = client.call(13, &by_id).await;
    assert_eq!(read.responses[0].partitions[0].error_code, ErrorCode::UnknownTopicId.code());
    let delete =
        DeleteTopicsRequest { topic_names: vec![path.as_str().into()], ..DeleteTopicsRequest::default() };
    assert_eq!(client.call(5, &delete).await.responses[0].error_code, unknown);
    let new = CreatableTopic { name: path.as_str().into(), num_partitions: 1, ..CreatableTopic::default() };
    let create = CreateTopicsRequest { topics: vec![new], ..CreateTopicsRequest::default() };
    let refused = ErrorCode::InvalidTopicException.code();
    assert_eq!(client.call(7, &create).await.topics[0].error_code, refused);
    assert_eq!(commit_alone(&mut client, "g", &path, 0, 1).await, unknown);
}
