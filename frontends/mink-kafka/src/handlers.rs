//! One file per API; here the way from a decoded request to its handler.
//!
//! Lives on: the service runtime.
//! Invariants: a handler never answers for a request twice, and never panics on what a client sent (I19).
use crate::connection::{Answer, Answering, ready};
use crate::counters::Closed;
use crate::node::Node;
use crate::refusals::Refusals;
use bytes::Bytes;
use mink_kafka_wire::{ApiKey, DecodeError, Message, RequestBody, decode_request, encode_response, offer};
use mink_router::{BytePermit, BytePermits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

mod api_versions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_configs;
mod fetch;
mod find_coordinator;
mod init_producer_id;
mod join_group;
mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_fetch;
mod produce;

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
    pub(crate) answers: &'a BytePermits,
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
        RequestBody::OffsetCommit(request) => call.answer(&offset_commit::offset_commit(request)),
        RequestBody::OffsetFetch(request) => call.answer(&offset_fetch::offset_fetch(call, request)),
        RequestBody::FindCoordinator(request) => {
            call.answer(&find_coordinator::find_coordinator(call, request))
        }
        RequestBody::JoinGroup(request) => call.answer(&join_group::join_group(request)),
        RequestBody::ApiVersions(_) => call.answer(&api_versions::api_versions()),
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
    })
}
