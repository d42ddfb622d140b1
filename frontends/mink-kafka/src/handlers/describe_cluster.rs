//! DescribeCluster: the brokers without any topic.
//!
//! Lives on: anywhere (pure).
use super::Call;
use super::metadata::CLUSTER_OPERATIONS;
use crate::node::broker_id;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

/// Kinds of endpoint, by Kafka's numbers.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(super) fn describe_cluster(call: &Call<'_>, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    let refuse = |code: ErrorCode, why: String| DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(why.into()),
        ..DescribeClusterResponse::default()
    };
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let why = "this is a broker, and there are no controllers to ask: any broker administers";
            return refuse(ErrorCode::MismatchedEndpointType, why.into());
        }
        other => {
            let why = format!("endpoint type {other} is not supported; use 1 (brokers)");
            return refuse(ErrorCode::UnsupportedEndpointType, why);
        }
    }
    let brokers = call.node.admin.brokers();
    DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: call.node.admin.state().cluster().to_string().into(),
        // As in Metadata.
        controller_id: brokers.first().map_or(-1, |first| broker_id(first.node)),
        brokers: brokers
            .iter()
            .map(|broker| DescribeClusterBroker {
                broker_id: broker_id(broker.node),
                host: broker.host.as_str().into(),
                port: i32::from(broker.port),
                rack: None,
                is_fenced: false,
            })
            .collect(),
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            i32::MIN
        },
        ..DescribeClusterResponse::default()
    }
}
