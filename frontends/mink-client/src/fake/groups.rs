//! The fake's consumer groups: `app` has a member, every other is empty; offsets are kept for all.
//!
//! Lives on: the test's runtime.
use super::Broker;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use mink_kafka_wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};
use mink_kafka_wire::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use mink_kafka_wire::messages::list_groups::{ListGroupsResponse, ListedGroup};
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};

const FULL: &str = "app";

impl Broker {
    pub(super) fn find_coordinator(&mut self, asked: &FindCoordinatorRequest) -> FindCoordinatorResponse {
        self.coordinator_lookups += 1;
        let coordinators = asked.coordinator_keys.iter().map(|key| Coordinator {
            key: key.clone(),
            node_id: 1,
            host: "127.0.0.1".into(),
            port: self.port.into(),
            ..Default::default()
        });
        FindCoordinatorResponse { coordinators: coordinators.collect(), ..Default::default() }
    }

    pub(super) fn list_groups() -> ListGroupsResponse {
        let group = ListedGroup {
            group_id: FULL.into(),
            protocol_type: "consumer".into(),
            group_state: "Stable".into(),
            group_type: "classic".into(),
        };
        ListGroupsResponse { groups: vec![group], ..Default::default() }
    }

    pub(super) fn describe_groups(asked: &DescribeGroupsRequest) -> DescribeGroupsResponse {
        let group_id = asked.groups[0].clone();
        let group = if group_id.as_str() == FULL {
            DescribedGroup {
                group_id,
                group_state: "Stable".into(),
                protocol_type: "consumer".into(),
                protocol_data: "range".into(),
                members: vec![DescribedGroupMember {
                    member_id: "c-1".into(),
                    client_id: "c".into(),
                    client_host: "/127.0.0.1".into(),
                    member_assignment: b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x02\xff\xff\xff\xff"
                        .as_slice()
                        .into(),
                    ..Default::default()
                }],
                ..Default::default()
            }
        } else {
            let error_code = ErrorCode::GroupIdNotFound.code();
            DescribedGroup { group_id, error_code, group_state: "Dead".into(), ..Default::default() }
        };
        DescribeGroupsResponse { groups: vec![group], ..Default::default() }
    }

    pub(super) fn delete_groups(asked: &DeleteGroupsRequest) -> DeleteGroupsResponse {
        let group_id = asked.groups_names[0].clone();
        let code = if group_id.as_str() == FULL { ErrorCode::NonEmptyGroup } else { ErrorCode::None };
        let result = DeletableGroupResult { group_id, error_code: code.code(), ..Default::default() };
        DeleteGroupsResponse { results: vec![result], ..Default::default() }
    }

    pub(super) fn commit(&mut self, asked: &OffsetCommitRequest) -> OffsetCommitResponse {
        let group = asked.group_id.as_str();
        let code = if group == FULL { ErrorCode::UnknownMemberId } else { ErrorCode::None };
        let mut topics = Vec::new();
        for topic in &asked.topics {
            let mut partitions = Vec::new();
            for one in &topic.partitions {
                if !code.is_error() {
                    let key = (group.to_owned(), topic.name.as_str().to_owned(), one.partition_index);
                    self.committed.insert(key, one.committed_offset);
                }
                partitions.push(OffsetCommitResponsePartition {
                    partition_index: one.partition_index,
                    error_code: code.code(),
                });
            }
            topics.push(OffsetCommitResponseTopic {
                name: topic.name.clone(),
                partitions,
                ..Default::default()
            });
        }
        OffsetCommitResponse { topics, ..Default::default() }
    }

    pub(super) fn committed(&self, asked: &OffsetFetchRequest) -> OffsetFetchResponse {
        let group_id = asked.groups[0].group_id.clone();
        let found = self.committed.iter().filter(|((group, ..), _)| group == group_id.as_str());
        let topics = found.map(|((_, topic, partition), offset)| OffsetFetchResponseTopics {
            name: topic.as_str().into(),
            partitions: vec![OffsetFetchResponsePartitions {
                partition_index: *partition,
                committed_offset: *offset,
                ..Default::default()
            }],
            ..Default::default()
        });
        let group = OffsetFetchResponseGroup { topics: topics.collect(), group_id, ..Default::default() };
        OffsetFetchResponse { groups: vec![group], ..Default::default() }
    }
}
