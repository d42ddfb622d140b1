//! ListConfigResources: what has configurations that DescribeConfigs tells.
//!
//! Lives on: anywhere (pure).
use super::Call;
use crate::node::broker_id;
use crate::topic;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

/// Kinds of resources, by Kafka's numbers.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;
const KINDS: [i8; 5] = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];

/// First version that asks for kinds; before it client metrics are meant, of which there are none.
const KINDS_FROM: i16 = 1;

pub(super) fn list_config_resources(
    call: &Call<'_>,
    request: &ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let asked = &request.resource_types;
    if asked.iter().any(|kind| !KINDS.contains(kind)) {
        let error_code = ErrorCode::UnsupportedVersion.code();
        return ListConfigResourcesResponse { error_code, ..ListConfigResourcesResponse::default() };
    }
    let wants = |kind: i8| call.version >= KINDS_FROM && (asked.is_empty() || asked.contains(&kind));
    let mut config_resources = Vec::new();
    if wants(TOPIC) {
        let state = call.node.admin.state();
        config_resources.extend(topic::all(&state).map(|table| ConfigResource {
            resource_name: table.topic_name(&call.node.config.kafka_database).into(),
            resource_type: TOPIC,
        }));
    }
    if wants(BROKER) {
        config_resources.extend(call.node.admin.brokers().iter().map(|broker| ConfigResource {
            resource_name: broker_id(broker.node).to_string().into(),
            resource_type: BROKER,
        }));
    }
    ListConfigResourcesResponse { config_resources, ..ListConfigResourcesResponse::default() }
}
