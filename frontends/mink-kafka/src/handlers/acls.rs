//! Access control lists: nobody is authenticated, so there are none to look at or to change.
//!
//! Lives on: anywhere (pure).
use mink_kafka_wire::messages::create_acls::{AclCreationResult, CreateAclsRequest, CreateAclsResponse};
use mink_kafka_wire::messages::delete_acls::{DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse};
use mink_kafka_wire::messages::describe_acls::DescribeAclsResponse;
use mink_kafka_wire::{ErrorCode, KafkaString};

const WHY: KafkaString = KafkaString::from_static("there is no authorisation on this node");

pub(super) fn describe_acls() -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(WHY),
        ..DescribeAclsResponse::default()
    }
}

pub(super) fn create_acls(request: &CreateAclsRequest) -> CreateAclsResponse {
    let refused =
        AclCreationResult { error_code: ErrorCode::SecurityDisabled.code(), error_message: Some(WHY) };
    CreateAclsResponse { results: vec![refused; request.creations.len()], ..CreateAclsResponse::default() }
}

pub(super) fn delete_acls(request: &DeleteAclsRequest) -> DeleteAclsResponse {
    let refused = DeleteAclsFilterResult {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(WHY),
        ..DeleteAclsFilterResult::default()
    };
    DeleteAclsResponse {
        filter_results: vec![refused; request.filters.len()],
        ..DeleteAclsResponse::default()
    }
}
