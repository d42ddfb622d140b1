//! AlterConfigs and IncrementalAlterConfigs: configurations of topics and brokers that can change while the node runs.
//!
//! Lives on: the service runtime.
//! Invariants: a resource is changed as a whole or not at all (I19); what cannot be done is refused by name.
use super::alter_broker::alter_broker;
use super::{Call, TOPICS_PER_REQUEST_MAX, alter};
use crate::topic::{self, Refusal};
use mink_kafka_wire::messages::{alter_configs as whole, incremental_alter_configs as incremental};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::Table;
use mink_types::{KafkaValueFormat, Kept, Limits, TableName, TableOptions, TimestampType};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// The list among the topic configurations that rules something.
const POLICY: &str = "cleanup.policy";

/// These requests have no time of their own.
const TIME: Duration = Duration::from_secs(30);

/// What becomes of one configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    fn from_code(code: i8) -> Option<Operation> {
        [Operation::Set, Operation::Delete, Operation::Append, Operation::Subtract]
            .get(usize::try_from(code).ok()?)
            .copied()
    }
}

pub(super) struct Change {
    pub(super) name: KafkaString,
    pub(super) operation: Option<Operation>,
    pub(super) value: Option<KafkaString>,
}

pub(super) struct Resource {
    kind: i8,
    pub(super) name: KafkaString,
    /// Whether what is not named keeps its value, or goes back to its default.
    pub(super) keeps: bool,
    pub(super) changes: Vec<Change>,
}

pub(super) async fn incremental_alter_configs(
    call: &Call<'_>,
    request: incremental::IncrementalAlterConfigsRequest,
) -> incremental::IncrementalAlterConfigsResponse {
    let resources = request.resources.into_iter().map(|resource| Resource {
        kind: resource.resource_type,
        name: resource.resource_name,
        keeps: true,
        changes: resource
            .configs
            .into_iter()
            .map(|config| Change {
                name: config.name,
                operation: Operation::from_code(config.config_operation),
                value: config.value,
            })
            .collect(),
    });
    let answers = all(call, resources.collect(), request.validate_only).await;
    let responses = answers.into_iter().map(|(kind, name, refusal)| {
        let (error_code, error_message) = parts(refusal);
        incremental::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name,
        }
    });
    incremental::IncrementalAlterConfigsResponse {
        responses: responses.collect(),
        ..incremental::IncrementalAlterConfigsResponse::default()
    }
}

pub(super) async fn alter_configs(
    call: &Call<'_>,
    request: whole::AlterConfigsRequest,
) -> whole::AlterConfigsResponse {
    let resources = request.resources.into_iter().map(|resource| Resource {
        kind: resource.resource_type,
        name: resource.resource_name,
        keeps: false,
        changes: resource
            .configs
            .into_iter()
            .map(|config| Change { name: config.name, operation: Some(Operation::Set), value: config.value })
            .collect(),
    });
    let answers = all(call, resources.collect(), request.validate_only).await;
    let responses = answers.into_iter().map(|(kind, name, refusal)| {
        let (error_code, error_message) = parts(refusal);
        whole::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name,
        }
    });
    whole::AlterConfigsResponse { responses: responses.collect(), ..whole::AlterConfigsResponse::default() }
}

fn parts(refusal: Option<Refusal>) -> (i16, Option<KafkaString>) {
    match refusal {
        None => (ErrorCode::None.code(), None),
        Some(Refusal { code, why }) => (code.code(), Some(why.into())),
    }
}

async fn all(
    call: &Call<'_>,
    resources: Vec<Resource>,
    validate_only: bool,
) -> Vec<(i8, KafkaString, Option<Refusal>)> {
    let deadline = Instant::now() + TIME;
    let mut named: BTreeMap<(i8, KafkaString), usize> = BTreeMap::new();
    for resource in &resources {
        *named.entry((resource.kind, resource.name.clone())).or_default() += 1;
    }
    let mut answers = Vec::with_capacity(resources.len());
    for (at, resource) in resources.into_iter().enumerate() {
        let twice = named.get(&(resource.kind, resource.name.clone())).is_some_and(|times| *times > 1);
        let done = if twice {
            Err(Refusal::new(ErrorCode::InvalidRequest, "the request names this resource twice"))
        } else if at >= TOPICS_PER_REQUEST_MAX {
            let why = format!("one request changes at most {TOPICS_PER_REQUEST_MAX} resources; send several");
            Err(Refusal::new(ErrorCode::PolicyViolation, why))
        } else {
            one(call, &resource, validate_only, deadline).await
        };
        answers.push((resource.kind, resource.name, done.err()));
    }
    answers
}

async fn one(
    call: &Call<'_>,
    resource: &Resource,
    validate_only: bool,
    deadline: Instant,
) -> Result<(), Refusal> {
    let invalid = |why: String| Err(Refusal::new(ErrorCode::InvalidRequest, why));
    match resource.kind {
        TOPIC if resource.name.is_empty() => invalid("a topic has a name".into()),
        TOPIC => {
            if let Err(error) = TableName::new(resource.name.as_str()) {
                return Err(Refusal::new(ErrorCode::InvalidTopicException, error.to_string()));
            }
            let limits = &call.node.config.limits;
            let change = |table: &Table| changed(table, resource, limits);
            alter::alter(call, resource.name.as_str(), change, validate_only, deadline).await.map(drop)
        }
        BROKER => alter_broker(call, resource, validate_only, deadline).await,
        other => invalid(format!(
            "resource type {other} has no configuration to change here; use 2 (topic) or 4 (broker)"
        )),
    }
}

/// The options of a table after the changes of a request.
fn changed(table: &Table, resource: &Resource, limits: &Limits) -> Result<TableOptions, Refusal> {
    let TableOptions { format, buckets, arrow_compression, kafka_value, .. } = table.options;
    let mut options = if resource.keeps {
        table.options.clone()
    } else {
        // What DescribeConfigs does not tell, no client can send back.
        TableOptions { format, buckets, arrow_compression, kafka_value, ..TableOptions::default() }
    };
    let mut seen = BTreeSet::new();
    for change in &resource.changes {
        if !seen.insert(&change.name) {
            let why = format!("the request names {:?} twice", change.name);
            return Err(Refusal::new(ErrorCode::InvalidRequest, why));
        }
        apply(&mut options, change, limits)?;
    }
    check_rows(&options, &resource.changes)?;
    options.check().map_err(|error| Refusal::new(ErrorCode::InvalidConfig, error.to_string()))?;
    Ok(options)
}

/// Refuses what a topic that is a table with columns cannot have.
fn check_rows(options: &TableOptions, changes: &[Change]) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(ErrorCode::InvalidConfig, why));
    if !topic::has_rows(options) {
        return Ok(());
    }
    if options.kafka_value != KafkaValueFormat::Json {
        return refuse("kafka.value.format: only json is there yet for topics of tables with columns");
    }
    let sets_time =
        |change: &Change| change.name == "message.timestamp.type" && change.operation == Some(Operation::Set);
    if changes.iter().any(sets_time) && options.timestamps == TimestampType::CreateTime {
        return refuse("message.timestamp.type: rows have the time of their append; use LogAppendTime");
    }
    Ok(())
}

fn apply(options: &mut TableOptions, change: &Change, limits: &Limits) -> Result<(), Refusal> {
    let name = change.name.as_str();
    let config = |why: String| Refusal::new(ErrorCode::InvalidConfig, why);
    let Some(operation) = change.operation else {
        let why = format!("{name:?}: the operation is not known; use set, delete, append or subtract");
        return Err(Refusal::new(ErrorCode::InvalidRequest, why));
    };
    if operation == Operation::Delete {
        reset(options, name);
        return Ok(());
    }
    let Some(value) = &change.value else {
        let why = format!("{name:?} has no value; delete it for the default");
        return Err(Refusal::new(ErrorCode::InvalidRequest, why));
    };
    if name == "bucket.num" {
        return Err(config("bucket.num is the number of partitions; add partitions instead".into()));
    }
    if operation == Operation::Set {
        return options.set(name, value.as_str(), limits).map_err(|error| config(error.to_string()));
    }
    let list = match name {
        POLICY => options.cleanup.as_str(),
        _ if Kept::named(name).is_some_and(Kept::is_list) => options.kept.get(name).unwrap_or_default(),
        _ => return Err(config(format!("{name:?} is not a list: set it instead"))),
    };
    // As Kafka: what is taken out is compared to the letter.
    let mut list: Vec<&str> = list.split(',').filter(|part| !part.is_empty()).collect();
    match operation {
        Operation::Append => list.extend(value.as_str().split(',')),
        _ => list.retain(|part| !value.as_str().split(',').any(|taken| taken == *part)),
    }
    let list = list.join(",");
    options.set(name, &list, limits).map_err(|error| config(error.to_string()))
}

/// Puts an option back to its default. What is not known is at its default already.
fn reset(options: &mut TableOptions, name: &str) {
    let default = TableOptions::default();
    match name {
        "retention.ms" | "table.log.ttl" => options.log_ttl_ms = default.log_ttl_ms,
        "retention.bytes" | "table.log.retention-bytes" => options.retention_bytes = default.retention_bytes,
        "max.message.bytes" => options.batch_bytes_max = default.batch_bytes_max,
        POLICY => options.cleanup = default.cleanup,
        "message.timestamp.type" => options.timestamps = default.timestamps,
        _ => options.kept.remove(name),
    }
}
