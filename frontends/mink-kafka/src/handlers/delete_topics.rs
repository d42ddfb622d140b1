//! DeleteTopics: by name, or by id from version 6 on.
//!
//! Lives on: the service runtime.
//! Invariants: K-26: what is dropped is the table that the name meant when the request was read, by its id.
use super::{Call, TOPICS_PER_REQUEST_MAX};
use crate::error_code;
use crate::topic::{self, Refusal};
use mink_kafka_wire::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use mink_types::TableId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Shortest time given to the metadata.
const TIME_MIN: Duration = Duration::from_secs(1);

/// First version that names topics by id.
const BY_ID_FROM: i16 = 6;

/// What one entry means.
struct Meant {
    name: Option<KafkaString>,
    id: Uuid,
    by_id: bool,
    table: Result<TableId, Refusal>,
}

impl Meant {
    /// The same for entries that mean the same.
    fn key(&self) -> (Option<KafkaString>, Uuid) {
        (self.name.clone(), self.id)
    }
}

pub(super) async fn delete_topics(call: &Call<'_>, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let time = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0)).max(TIME_MIN);
    let deadline = Instant::now() + time;
    let asked = if call.version >= BY_ID_FROM {
        request.topics
    } else {
        let names = request.topic_names.into_iter();
        names.map(|name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO }).collect()
    };
    let meant: Vec<Meant> =
        asked.into_iter().enumerate().map(|(at, asked)| resolve(call, at, asked)).collect();
    let meant = once(meant);
    let mut responses = Vec::with_capacity(meant.len());
    for Meant { name, id, table, .. } in meant {
        let deleted = match table {
            Ok(table) => delete(call, table, deadline).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = deleted.err();
        responses.push(DeletableTopicResult {
            name,
            topic_id: id,
            error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).code(),
            error_message: refusal.map(|refusal| refusal.why.into()),
        });
    }
    DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() }
}

fn resolve(call: &Call<'_>, at: usize, asked: DeleteTopicState) -> Meant {
    let state = call.node.admin.state();
    let database = &call.node.config.kafka_database;
    let by_id = asked.name.is_none();
    let refuse = |name, id, code, why: &str| Meant { name, id, by_id, table: Err(Refusal::new(code, why)) };
    if at >= TOPICS_PER_REQUEST_MAX {
        let why = format!("one request deletes at most {TOPICS_PER_REQUEST_MAX} topics; send several");
        return refuse(asked.name, asked.topic_id, ErrorCode::PolicyViolation, &why);
    }
    let table = match (&asked.name, asked.topic_id.is_zero()) {
        (Some(name), true) => topic::named(&state, database, name.as_str()),
        (None, false) => topic::by_id(&state, asked.topic_id),
        (Some(_), false) | (None, true) => {
            let why = "name the topic by name or by id, not both";
            return refuse(asked.name, asked.topic_id, ErrorCode::InvalidRequest, why);
        }
    };
    match (table, asked.name) {
        (Some(table), name) => Meant {
            name: name.or_else(|| Some(table.topic_name(database).into())),
            id: Uuid(table.uuid.0),
            by_id,
            table: Ok(table.id),
        },
        (None, None) => refuse(None, asked.topic_id, ErrorCode::UnknownTopicId, "no topic has this id"),
        (None, name) => {
            refuse(name, Uuid::ZERO, ErrorCode::UnknownTopicOrPartition, "there is no such topic")
        }
    }
}

/// What is named twice, be it once by name and once by id, is answered once, and refused: nothing of the request's two wishes is done.
fn once(meant: Vec<Meant>) -> Vec<Meant> {
    // How often, and whether by id at least once.
    let mut named: BTreeMap<(Option<KafkaString>, Uuid), (usize, bool)> = BTreeMap::new();
    for meant in &meant {
        let (times, by_id) = named.entry(meant.key()).or_default();
        *times += 1;
        *by_id |= meant.by_id;
    }
    let answered = meant.into_iter().filter_map(|mut meant| {
        let (times, by_id) = named.remove(&meant.key())?;
        if times > 1 {
            if !by_id {
                // Who asked by name alone learns no id with a refusal.
                meant.id = Uuid::ZERO;
            }
            let why = "the request names this topic twice";
            meant.table = Err(Refusal::new(ErrorCode::InvalidRequest, why));
        }
        Some(meant)
    });
    answered.collect()
}

async fn delete(call: &Call<'_>, table: TableId, deadline: Instant) -> Result<(), Refusal> {
    match timeout_at(deadline, call.node.admin.drop_table(table)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Refusal::new(error_code::of_admin(&error), error.to_string())),
        Err(_elapsed) => Err(Refusal::new(
            ErrorCode::RequestTimedOut,
            "the topic was not deleted within the request's time; it may still be",
        )),
    }
}
