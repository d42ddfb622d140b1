//! One file per API; here the way from a decoded request to its handler.
//!
//! Lives on: the service runtime.
//! Invariants: a handler never answers for a request twice, and never panics on what a client sent (I19).
use crate::answer_permits::AnswerShare;
use crate::connection::{Answer, Answering, ready};
use crate::counters::Closed;
use crate::node::Node;
use crate::refusals::Refusals;
use bytes::Bytes;
use mink_kafka_wire::{
    ApiKey, DecodeError, KafkaString, Message, RequestBody, decode_request, encode_response, offer,
};
use mink_router::BytePermit;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

mod acls;
mod alter;
mod alter_broker;
mod alter_configs;
mod alter_partition_reassignments;
mod alter_replica_log_dirs;
mod api_versions;
mod broker_config_names;
mod broker_configs;
mod config_documentation;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_broker;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic;
mod describe_topic_partitions;
mod elect_leaders;
mod fetch;
mod fetch_rows;
mod find_coordinator;
mod group_names;
mod heartbeat;
mod init_producer_id;
mod join_group;
mod keyless;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod metadata;
mod named_once;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod produce_rows;
mod record_errors;
mod sync_group;

/// Topics that one request may create or delete.
const TOPICS_PER_REQUEST_MAX: usize = 1_000;

/// One request on its way.
pub(crate) struct Call<'a> {
    pub(crate) node: &'a Arc<Node>,
    pub(crate) version: i16,
    pub(crate) correlation: i32,
    /// The request's number on its connection, from 1.
    pub(crate) number: u64,
    pub(crate) refusals: &'a Arc<Mutex<Refusals>>,
    /// Stands for the bytes of the request's frame.
    pub(crate) permit: &'a mut BytePermit,
    /// Becomes true when nobody waits for more to come: long polls end.
    pub(crate) ends: &'a watch::Receiver<bool>,
    /// The connection's share of the memory for answers.
    pub(crate) answers: &'a AnswerShare,
    /// Who asks: as it calls itself, and from where.
    pub(crate) client_id: Option<&'a KafkaString>,
    pub(crate) peer: SocketAddr,
}

impl Call<'_> {
    /// What is held back on this connection; never kept over an await.
    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, response: &impl Message) -> Answering {
        ready(encode(self.version, self.correlation, response))
    }
}

/// An answer as it is sent. What cannot be encoded is a fault of ours, and closes the connection.
fn encode<M: Message>(version: i16, correlation: i32, response: &M) -> Answer {
    match encode_response(version, correlation, response) {
        Ok(frame) => Answer::Send { frame, memory: None },
        Err(error) => {
            tracing::error!(%error, version, "a kafka answer cannot be encoded");
            Answer::Close(Closed::Fault)
        }
    }
}

/// Decodes a request and handles it, up to the moment from which the next request of its connection may be looked at.
pub(crate) async fn dispatch(
    call: &mut Call<'_>,
    api_key: i16,
    body: Bytes,
) -> Result<Answering, DecodeError> {
    let versions = ApiKey::ApiVersions;
    if api_key == versions.code()
        && !offer(versions).is_some_and(|offer| offer.decoded.contains(call.version))
    {
        call.node.counters.requested(versions);
        return Ok(ready(api_versions::unsupported(call.correlation)));
    }
    let request = decode_request(api_key, call.version, body)?;
    if let Some(key) = ApiKey::from_code(api_key) {
        call.node.counters.requested(key);
    }
    Ok(match request {
        RequestBody::Produce(request) => produce::produce(call, request).await,
        RequestBody::Fetch(request) => fetch::fetch(call, request),
        RequestBody::ListOffsets(request) => call.answer(&list_offsets::list_offsets(call, request).await),
        RequestBody::Metadata(request) => call.answer(&metadata::metadata(call, request).await),
        RequestBody::OffsetCommit(request) => offset_commit::offset_commit(call, request).await,
        RequestBody::OffsetFetch(request) => call.answer(&offset_fetch::offset_fetch(call, request).await),
        RequestBody::OffsetDelete(request) => call.answer(&offset_delete::offset_delete(call, request).await),
        RequestBody::FindCoordinator(request) => {
            call.answer(&find_coordinator::find_coordinator(call, request).await)
        }
        RequestBody::JoinGroup(request) => join_group::join_group(call, request).await,
        RequestBody::SyncGroup(request) => sync_group::sync_group(call, request).await,
        RequestBody::Heartbeat(request) => call.answer(&heartbeat::heartbeat(call, request).await),
        RequestBody::LeaveGroup(request) => call.answer(&leave_group::leave_group(call, request).await),
        RequestBody::ListGroups(request) => call.answer(&list_groups::list_groups(call, request).await),
        RequestBody::DescribeGroups(request) => {
            call.answer(&describe_groups::describe_groups(call, request).await)
        }
        RequestBody::DeleteGroups(request) => call.answer(&delete_groups::delete_groups(call, request).await),
        RequestBody::ApiVersions(request) => call.answer(&api_versions::api_versions(call.version, &request)),
        RequestBody::CreateTopics(request) => call.answer(&create_topics::create_topics(call, request).await),
        RequestBody::DeleteTopics(request) => call.answer(&delete_topics::delete_topics(call, request).await),
        RequestBody::DeleteRecords(request) => {
            call.answer(&delete_records::delete_records(call, request).await)
        }
        RequestBody::InitProducerId(request) => {
            call.answer(&init_producer_id::init_producer_id(call, request).await)
        }
        RequestBody::DescribeConfigs(request) => {
            call.answer(&describe_configs::describe_configs(call, request))
        }
        RequestBody::OffsetForLeaderEpoch(request) => {
            call.answer(&offset_for_leader_epoch::offset_for_leader_epoch(call, request).await)
        }
        RequestBody::DescribeAcls(_) => call.answer(&acls::describe_acls()),
        RequestBody::CreateAcls(request) => call.answer(&acls::create_acls(&request)),
        RequestBody::DeleteAcls(request) => call.answer(&acls::delete_acls(&request)),
        RequestBody::AlterConfigs(request) => call.answer(&alter_configs::alter_configs(call, request).await),
        RequestBody::IncrementalAlterConfigs(request) => {
            call.answer(&alter_configs::incremental_alter_configs(call, request).await)
        }
        RequestBody::DescribeLogDirs(request) => {
            call.answer(&describe_log_dirs::describe_log_dirs(call, request))
        }
        RequestBody::CreatePartitions(request) => {
            call.answer(&create_partitions::create_partitions(call, request).await)
        }
        RequestBody::ElectLeaders(request) => call.answer(&elect_leaders::elect_leaders(call, request)),
        RequestBody::DescribeCluster(request) => {
            call.answer(&describe_cluster::describe_cluster(call, &request))
        }
        RequestBody::DescribeTopicPartitions(request) => {
            call.answer(&describe_topic_partitions::describe_topic_partitions(call, request))
        }
        RequestBody::AlterReplicaLogDirs(request) => {
            call.answer(&alter_replica_log_dirs::alter_replica_log_dirs(call, request))
        }
        RequestBody::AlterPartitionReassignments(request) => {
            call.answer(&alter_partition_reassignments::alter_partition_reassignments(call, request))
        }
        RequestBody::ListPartitionReassignments(_) => {
            call.answer(&list_partition_reassignments::list_partition_reassignments())
        }
        RequestBody::DescribeQuorum(request) => call.answer(&describe_quorum::describe_quorum(call, request)),
        RequestBody::ListConfigResources(request) => {
            call.answer(&list_config_resources::list_config_resources(call, &request))
        }
        RequestBody::DescribeProducers(request) => {
            describe_producers::describe_producers(call, request).await
        }
    })
}
