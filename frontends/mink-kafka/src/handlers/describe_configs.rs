//! DescribeConfigs: the values that hold, under the names that Kafka's clients look for.
//!
//! Lives on: anywhere (pure).
//! Invariants: a resource is described once per answer, however often a request names it (I20); nothing secret is among them.
use super::describe_topic::{self, Topic};
use super::{Call, broker_configs, config_documentation, describe_broker};
use crate::node::Node;
use crate::topic::{self, Refusal};
use mink_kafka_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::ConfigScope;
use mink_types::TableName;
use std::collections::BTreeSet;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Where a value comes from, by Kafka's numbers.
pub(super) const SET_AT_START: i8 = 4;
pub(super) const DEFAULT: i8 = 5;

/// Kinds of values, by Kafka's numbers.
pub(super) const BOOLEAN: i8 = 1;
pub(super) const STRING: i8 = 2;
pub(super) const INT: i8 = 3;
pub(super) const LONG: i8 = 5;
pub(super) const DOUBLE: i8 = 6;
pub(super) const LIST: i8 = 7;

/// A bound as Kafka writes it: -1 for none.
pub(super) fn bound(bound: Option<u64>) -> String {
    bound.map_or_else(|| "-1".to_owned(), |bound| bound.to_string())
}

pub(super) fn describe_configs(call: &Call<'_>, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let included =
        Included { synonyms: request.include_synonyms, documentation: request.include_documentation };
    let mut described = BTreeSet::new();
    let mut results = Vec::new();
    for resource in request.resources {
        if !described.insert((resource.resource_type, resource.resource_name.clone())) {
            continue;
        }
        results.push(match configs(call.node, &resource) {
            Ok(configs) => describe(resource, configs, included),
            Err(refusal) => DescribeConfigsResult {
                error_code: refusal.code.code(),
                error_message: Some(refusal.why.into()),
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                configs: Vec::new(),
            },
        });
    }
    DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }
}

fn configs(
    node: &Node,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let name = resource.resource_name.as_str();
    match resource.resource_type {
        TOPIC => {
            let state = node.admin.state();
            let Some(table) = topic::named(&state, &node.config.kafka_database, name) else {
                return Err(match TableName::new(name) {
                    Ok(_) => Refusal::new(ErrorCode::UnknownTopicOrPartition, "there is no such topic"),
                    Err(error) => Refusal::new(ErrorCode::InvalidTopicException, error.to_string()),
                });
            };
            let brokers = describe_broker::set(&state, node);
            let topic = Topic { options: &table.options, limits: &node.config.limits, brokers };
            Ok(describe_topic::topic_configs(&topic))
        }
        BROKER => Ok(match broker_configs::scope(node, name)? {
            ConfigScope::Cluster => describe_broker::of_all(node),
            ConfigScope::Node(_) => describe_broker::of_node(node),
        }),
        other => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("resource type {other} has no configuration here; use 2 (topic) or 4 (broker)"),
        )),
    }
}

/// What a client wants to know beside values.
#[derive(Clone, Copy)]
struct Included {
    synonyms: bool,
    documentation: bool,
}

fn describe(
    resource: DescribeConfigsResource,
    configs: Vec<DescribeConfigsResourceResult>,
    included: Included,
) -> DescribeConfigsResult {
    // An empty list means all, too.
    let keys = resource.configuration_keys.filter(|keys| !keys.is_empty());
    let wanted: Option<BTreeSet<KafkaString>> = keys.map(|keys| keys.into_iter().collect());
    let configs = configs
        .into_iter()
        .filter(|config| wanted.as_ref().is_none_or(|wanted| wanted.contains(&config.name)))
        .map(|mut config| {
            if !included.synonyms {
                config.synonyms.clear();
            }
            if included.documentation {
                let line = documentation(resource.resource_type, config.name.as_str());
                config.documentation = line.map(KafkaString::from_static);
            }
            config
        });
    DescribeConfigsResult {
        error_code: ErrorCode::None.code(),
        error_message: None,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        configs: configs.collect(),
    }
}

fn documentation(resource_type: i8, name: &str) -> Option<&'static str> {
    if resource_type == TOPIC {
        config_documentation::of_topic(name)
    } else {
        config_documentation::of_broker(name)
    }
}
