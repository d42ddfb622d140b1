//! Consumer groups, as an administrator sees and changes them.
//!
//! Lives on: any tokio runtime.
//! Invariants: offsets are set for groups without members alone, and by the server's word: a member that comes in between refuses them.
use crate::client::{Client, check};
use crate::connection::{ANSWER_TIMEOUT, Connection};
use crate::error::{ClientError, ErrorKind};
use bytes::Bytes;
use mink_kafka_wire::messages::delete_groups::DeleteGroupsRequest;
use mink_kafka_wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribedGroup, DescribedGroupMember,
};
use mink_kafka_wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use mink_kafka_wire::messages::list_groups::ListGroupsRequest;
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use mink_kafka_wire::{DecodeError, ErrorCode, KafkaString, Reader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of groups whose members' assignments are partitions of topics.
const CONSUMER: &str = "consumer";

/// First versions that name several groups.
const COORDINATORS_FROM: i16 = 4;
const OFFSETS_FROM: i16 = 8;

/// A group in a list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupSummary {
    pub group: String,
    /// As the server writes it; empty from servers that do not say.
    pub state: String,
    /// Empty when nobody was ever a member.
    pub protocol_type: String,
}

/// A group as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupDescription {
    pub state: String,
    pub protocol_type: String,
    /// How the leader assigns.
    pub protocol: String,
    pub members: Vec<GroupMember>,
}

/// One member of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMember {
    pub member: String,
    /// The `group.instance.id` of a static member.
    pub instance: Option<String>,
    pub client: String,
    pub host: String,
    /// Topics and partitions that it consumes; empty while the group rebalances, and for groups that are no consumers.
    pub assigned: Vec<(String, i32)>,
}

/// How far a group has read a partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupOffset {
    pub topic: String,
    pub partition: i32,
    /// The offset that it reads next.
    pub offset: i64,
}

impl Client {
    /// All groups of the cluster, in the order of their ids.
    pub async fn groups(&self) -> Result<Vec<GroupSummary>, ClientError> {
        self.retrying(|| async {
            let mut groups = BTreeMap::new();
            for address in self.servers().await? {
                let asked = ListGroupsRequest::default();
                let answer = self.server(&address).await?.call(&asked, ANSWER_TIMEOUT).await?;
                check(answer.error_code, &address, None)?;
                for found in answer.groups {
                    let group = GroupSummary {
                        group: found.group_id.as_str().into(),
                        state: found.group_state.as_str().into(),
                        protocol_type: found.protocol_type.as_str().into(),
                    };
                    groups.insert(group.group.clone(), group);
                }
            }
            Ok(groups.into_values().collect())
        })
        .await
    }

    /// How a group stands; none if there is no such group.
    pub async fn describe_group(&self, group: &str) -> Result<Option<GroupDescription>, ClientError> {
        self.retrying(|| async {
            let request = DescribeGroupsRequest { groups: vec![group.into()], ..Default::default() };
            let answer = self.coordinator(group).await?.call(&request, ANSWER_TIMEOUT).await?;
            let found = answer.groups.into_iter().next().ok_or_else(|| missing(group))?;
            if found.error_code == ErrorCode::GroupIdNotFound.code() || found.group_state.as_str() == "Dead" {
                return Ok(None);
            }
            check(found.error_code, &of(group), found.error_message.as_ref().map(KafkaString::as_str))?;
            describe(found).map(Some)
        })
        .await
    }

    /// What a group has committed, in the order of topics and partitions.
    pub async fn group_offsets(&self, group: &str) -> Result<Vec<GroupOffset>, ClientError> {
        self.retrying(|| async {
            let coordinator = self.coordinator(group).await?;
            let mut request = OffsetFetchRequest { topics: None, ..OffsetFetchRequest::default() };
            if coordinator.version::<OffsetFetchRequest>()? >= OFFSETS_FROM {
                request.topics = OffsetFetchRequest::default().topics;
                request.groups = vec![OffsetFetchRequestGroup {
                    group_id: group.into(),
                    topics: None,
                    ..OffsetFetchRequestGroup::default()
                }];
            } else {
                request.group_id = group.into();
            }
            let answer = coordinator.call(&request, ANSWER_TIMEOUT).await?;
            let mut offsets = committed(group, &answer)?;
            offsets.sort();
            Ok(offsets)
        })
        .await
    }

    /// Sets the offsets of a group that has no members.
    ///
    /// # Errors
    /// `UNKNOWN_MEMBER_ID` when the group has members.
    pub async fn set_group_offsets(&self, group: &str, offsets: &[GroupOffset]) -> Result<(), ClientError> {
        let mut topics: BTreeMap<&str, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
        for wanted in offsets {
            topics.entry(&wanted.topic).or_default().push(OffsetCommitRequestPartition {
                partition_index: wanted.partition,
                committed_offset: wanted.offset,
                ..OffsetCommitRequestPartition::default()
            });
        }
        let topics = topics.into_iter().map(|(name, partitions)| OffsetCommitRequestTopic {
            name: name.into(),
            partitions,
            ..OffsetCommitRequestTopic::default()
        });
        let request = OffsetCommitRequest {
            group_id: group.into(),
            topics: topics.collect(),
            ..OffsetCommitRequest::default()
        };
        let request = &request;
        self.retrying(|| async move {
            let answer = self.coordinator(group).await?.call(request, ANSWER_TIMEOUT).await?;
            for topic in &answer.topics {
                for partition in &topic.partitions {
                    let what = format!("partition {} of {}", partition.partition_index, topic.name.as_str());
                    check(partition.error_code, &what, None)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Deletes a group that has no members, and its offsets.
    pub async fn delete_group(&self, group: &str) -> Result<(), ClientError> {
        self.retrying(|| async {
            let request = DeleteGroupsRequest { groups_names: vec![group.into()] };
            let answer = self.coordinator(group).await?.call(&request, ANSWER_TIMEOUT).await?;
            let result = answer.results.first().ok_or_else(|| missing(group))?;
            check(result.error_code, &of(group), result.error_message.as_ref().map(KafkaString::as_str))
        })
        .await
    }

    /// A connection to the node that coordinates a group.
    async fn coordinator(&self, group: &str) -> Result<Arc<Connection>, ClientError> {
        let any = self.any_server().await?;
        let batched = any.version::<FindCoordinatorRequest>()? >= COORDINATORS_FROM;
        let mut request = FindCoordinatorRequest::default();
        if batched {
            request.coordinator_keys = vec![group.into()];
        } else {
            request.key = group.into();
        }
        let answer = any.call(&request, ANSWER_TIMEOUT).await?;
        self.server(&address(group, answer)?).await
    }
}

fn of(group: &str) -> String {
    format!("group {group}")
}

fn missing(group: &str) -> ClientError {
    ClientError::new(ErrorKind::Protocol, format!("{}: not in the answer", of(group)))
}

fn address(group: &str, answer: FindCoordinatorResponse) -> Result<String, ClientError> {
    let (code, words, host, port) = match answer.coordinators.into_iter().next() {
        Some(found) => (found.error_code, found.error_message, found.host, found.port),
        None => (answer.error_code, answer.error_message, answer.host, answer.port),
    };
    check(code, &of(group), words.as_ref().map(KafkaString::as_str))?;
    Ok(format!("{}:{port}", host.as_str()))
}

fn committed(group: &str, answer: &OffsetFetchResponse) -> Result<Vec<GroupOffset>, ClientError> {
    let mut offsets = Vec::new();
    let mut add = |topic: &KafkaString, partition, offset, code| {
        let topic = topic.as_str().to_owned();
        check(code, &format!("partition {partition} of {topic}"), None)?;
        // Below 0: nothing is committed.
        if offset >= 0 {
            offsets.push(GroupOffset { topic, partition, offset });
        }
        Ok::<_, ClientError>(())
    };
    check(answer.error_code, &of(group), None)?;
    for topic in &answer.topics {
        for one in &topic.partitions {
            add(&topic.name, one.partition_index, one.committed_offset, one.error_code)?;
        }
    }
    for found in &answer.groups {
        check(found.error_code, &of(group), None)?;
        for topic in &found.topics {
            for one in &topic.partitions {
                add(&topic.name, one.partition_index, one.committed_offset, one.error_code)?;
            }
        }
    }
    Ok(offsets)
}

fn describe(found: DescribedGroup) -> Result<GroupDescription, ClientError> {
    let is_consumer = found.protocol_type.as_str() == CONSUMER;
    let member = |member: DescribedGroupMember| {
        let assigned = if is_consumer { assigned(member.member_assignment) } else { Ok(Vec::new()) };
        Ok(GroupMember {
            member: member.member_id.as_str().into(),
            instance: member.group_instance_id.map(|instance| instance.as_str().into()),
            client: member.client_id.as_str().into(),
            host: member.client_host.as_str().trim_start_matches('/').into(),
            assigned: assigned.map_err(|error| ClientError::new(ErrorKind::Protocol, error.to_string()))?,
        })
    };
    Ok(GroupDescription {
        state: found.group_state.as_str().into(),
        protocol_type: found.protocol_type.as_str().into(),
        protocol: found.protocol_data.as_str().into(),
        members: found.members.into_iter().map(member).collect::<Result<_, ClientError>>()?,
    })
}

/// The partitions of a consumer's assignment: a version, topics with their partitions, and what the assignor adds.
fn assigned(assignment: Bytes) -> Result<Vec<(String, i32)>, DecodeError> {
    let mut partitions = Vec::new();
    if assignment.is_empty() {
        return Ok(partitions);
    }
    let mut reader = Reader::new(assignment, "ConsumerProtocolAssignment", false);
    reader.int16("version")?;
    let topics = reader.array("topics", 6, |reader| {
        let name = reader.string("topic")?;
        Ok((name, reader.array("partitions", 4, |reader| reader.int32("partition"))?))
    })?;
    for (name, numbers) in topics {
        partitions.extend(numbers.into_iter().map(|number| (name.as_str().to_owned(), number)));
    }
    partitions.sort();
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[tokio::test]
    async fn groups_are_listed_described_and_deleted_at_their_coordinator() {
        let (address, broker) = fake::start().await;
        let client = Client::connect(&address).await.unwrap();
        let listed = client.groups().await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].group.as_str(), listed[0].state.as_str()), ("app", "Stable"));
        let found = client.describe_group("app").await.unwrap().expect("there");
        assert_eq!((found.state.as_str(), found.protocol.as_str()), ("Stable", "range"));
        let member = &found.members[0];
        assert_eq!((member.client.as_str(), member.host.as_str()), ("c", "127.0.0.1"));
        assert_eq!(member.assigned, [("t".to_owned(), 0), ("t".to_owned(), 2)]);
        assert_eq!(client.describe_group("missing").await.unwrap(), None);
        let refused = client.delete_group("app").await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::NonEmptyGroup));
        client.delete_group("empty").await.unwrap();
        assert_eq!(broker.lock().unwrap().coordinator_lookups, 4);
    }

    #[tokio::test]
    async fn offsets_that_were_set_are_what_is_committed() {
        let (address, _) = fake::start().await;
        let client = Client::connect(&address).await.unwrap();
        assert_eq!(client.group_offsets("g").await.unwrap(), []);
        let offset = |partition, offset| GroupOffset { topic: "t".into(), partition, offset };
        client.set_group_offsets("g", &[offset(1, 7), offset(0, 5)]).await.unwrap();
        assert_eq!(client.group_offsets("g").await.unwrap(), [offset(0, 5), offset(1, 7)]);
        let refused = client.set_group_offsets("app", &[offset(0, 1)]).await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::UnknownMemberId));
    }

    #[tokio::test]
    async fn the_name_of_a_table_finds_its_topic_only_where_it_may() {
        let (address, _) = fake::start().await;
        let client = Client::connect(&address).await.unwrap();
        let meant = client.find_topic_or_table("kafka.t").await.unwrap().expect("a topic's table");
        assert_eq!(meant.name, "t");
        assert_eq!(client.find_topic_or_table("t").await.unwrap(), Some(meant));
        assert_eq!(client.find_topic_or_table("missing").await.unwrap(), None);
        assert_eq!(client.find_topic("kafka.t").await.unwrap(), None);
        let refused = client.topic("kafka.t").await.unwrap_err();
        assert!(refused.to_string().contains("is the topic t"), "{refused}");
        assert!(client.offset("kafka.t", 0, crate::Position::Latest).await.is_err());
    }

    #[test]
    fn i19_an_assignment_that_is_cut_is_an_error_and_none_is_no_partitions() {
        assert_eq!(assigned(Bytes::new()).unwrap(), []);
        let whole = b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x03\0\0\0\x01\xff\xff\xff\xff";
        assert_eq!(assigned(Bytes::from_static(whole)).unwrap(), [("t".to_owned(), 1), ("t".to_owned(), 3)]);
        for cut in 1..whole.len() - 4 {
            assert!(assigned(Bytes::copy_from_slice(&whole[..cut])).is_err(), "{cut}");
        }
        let many = b"\0\x01\x7f\xff\xff\xff\0\x01t";
        assert!(assigned(Bytes::from_static(many)).is_err(), "a count sizes nothing");
    }
}
