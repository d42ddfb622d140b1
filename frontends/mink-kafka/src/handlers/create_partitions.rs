//! CreatePartitions: a topic gets more partitions. Those it has keep their records.
//!
//! Lives on: the service runtime.
//! Invariants: I19 (a refused topic changes nothing), K-26 (what grows is the table that the name meant when it was judged).
use super::{Call, TOPICS_PER_REQUEST_MAX, alter, create_topics};
use crate::topic::Refusal;
use mink_kafka_wire::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::Table;
use mink_types::{Limits, TableId, TableOptions};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Shortest time given to the metadata.
const TIME_MIN: Duration = Duration::from_secs(1);

/// How long an answer waits for the leaders of new partitions at most, whatever the client's time.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(5);

pub(super) async fn create_partitions(
    call: &Call<'_>,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let time = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0)).max(TIME_MIN);
    let deadline = Instant::now() + time;
    let mut named: BTreeMap<KafkaString, usize> = BTreeMap::new();
    for topic in &request.topics {
        *named.entry(topic.name.clone()).or_default() += 1;
    }
    let mut results = Vec::with_capacity(named.len());
    let mut grown = Vec::new();
    for (at, topic) in request.topics.into_iter().enumerate() {
        let made = match named.remove(&topic.name) {
            // Answered already.
            None => continue,
            Some(2..) => Err(Refusal::new(ErrorCode::InvalidRequest, "the request names this topic twice")),
            Some(_) if at >= TOPICS_PER_REQUEST_MAX => Err(Refusal::new(
                ErrorCode::PolicyViolation,
                format!("one request grows at most {TOPICS_PER_REQUEST_MAX} topics; send several"),
            )),
            Some(_) => grow(call, &topic, request.validate_only, deadline).await,
        };
        let refusal = match made {
            Ok(table) => {
                grown.extend(table);
                None
            }
            Err(refusal) => Some(refusal),
        };
        results.push(CreatePartitionsTopicResult {
            name: topic.name,
            error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).code(),
            error_message: refusal.map(|refusal| refusal.why.into()),
        });
    }
    let open_until = deadline.min(Instant::now() + OPEN_WAIT_MAX);
    for table in grown {
        let left = open_until.saturating_duration_since(Instant::now());
        if !call.node.admin.wait_open(table, left).await {
            tracing::debug!(%table, "the new partitions of a topic have no leaders yet");
        }
    }
    CreatePartitionsResponse { results, ..CreatePartitionsResponse::default() }
}

/// The table that has grown; none if the request was only to be checked.
async fn grow(
    call: &Call<'_>,
    topic: &CreatePartitionsTopic,
    validate_only: bool,
    deadline: Instant,
) -> Result<Option<TableId>, Refusal> {
    let change = |table: &Table| {
        let buckets = judge(topic, table.buckets, &call.node.config.limits)?;
        let mut assignments = topic.assignments.iter().flatten();
        if assignments.any(|assignment| !create_topics::names_a_broker(call, &assignment.broker_ids)) {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                "an assigned partition names no broker of this cluster",
            ));
        }
        Ok(TableOptions { buckets, ..table.options.clone() })
    };
    alter::alter(call, topic.name.as_str(), change, validate_only, deadline).await
}

fn judge(topic: &CreatePartitionsTopic, buckets: u32, limits: &Limits) -> Result<u32, Refusal> {
    let invalid = |why: String| Refusal::new(ErrorCode::InvalidPartitions, why);
    let max = limits.buckets_per_table_max;
    let count = u32::try_from(topic.count).ok().filter(|count| *count > buckets).ok_or_else(|| {
        invalid(format!(
            "the topic has {buckets} partitions; {} would not be more, and fewer are not possible",
            topic.count
        ))
    })?;
    if count > max {
        return Err(invalid(format!("{count} partitions are not accepted; use at most {max}")));
    }
    let Some(assignments) = &topic.assignments else {
        return Ok(count);
    };
    // Which of the cluster's brokers it names does not matter: the store replicates.
    let refuse = |why: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, why);
    let added = count - buckets;
    if u32::try_from(assignments.len()).ok() != Some(added) {
        return Err(refuse(format!("{added} partitions are added, but {} are assigned", assignments.len())));
    }
    if assignments.iter().any(|assignment| assignment.broker_ids.is_empty()) {
        return Err(refuse("an assigned partition names no broker".into()));
    }
    if assignments.iter().any(|assignment| create_topics::has_twice(&assignment.broker_ids)) {
        return Err(refuse("an assigned partition names a broker twice".into()));
    }
    Ok(count)
}
