//! ApiVersions, and ACLs on servers without an authorizer.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use mink_kafka_wire::messages::create_acls::{AclCreation, CreateAclsRequest};
use mink_kafka_wire::messages::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use mink_kafka_wire::messages::describe_acls::DescribeAclsRequest;
use mink_kafka_wire::{OFFERED, decode_response};

use super::Asker;

pub(super) async fn api_versions(run: &mut Asker) {
    let named = |name: &str, version: &str| ApiVersionsRequest {
        client_software_name: name.into(),
        client_software_version: version.into(),
        ..ApiVersionsRequest::default()
    };
    for (case, request) in [
        ("named client", named("e2e", "1.0")),
        ("client without a name", named("", "")),
        ("client with a bad name", named("-a b-", "1.0")),
    ] {
        let answer = run.try_ask(run.version, &request).await;
        note_offered(run, case, answer);
    }
    run.damaged(named("e2e", "1.0")).await;
    for version in [99, -1] {
        let answer = run.ask_header(version).await;
        let answer = answer.map(|frame| decode_response::<ApiVersionsRequest>(0, frame).unwrap().1);
        note_offered(run, &format!("version {version}"), answer);
    }
}

/// Of the APIs only those that Mink offers: the others are named in the compatibility page.
fn note_offered(run: &mut Asker, case: &str, mut answer: Option<ApiVersionsResponse>) {
    if let Some(answer) = &mut answer {
        answer.api_keys.retain(|api| OFFERED.iter().any(|offer| offer.key.code() == api.api_key));
    }
    run.note(case, answer.as_ref(), false);
}

pub(super) async fn describe_acls(run: &mut Asker) {
    let any = |resource_type_filter, pattern_type_filter| DescribeAclsRequest {
        resource_type_filter,
        resource_name_filter: None,
        pattern_type_filter,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    run.ask("all", any(1, 1)).await;
    run.ask("unknown type", any(0, 0)).await;
    run.damaged(any(1, 1)).await;
}

pub(super) async fn create_acls(run: &mut Asker) {
    let acl = AclCreation {
        resource_type: 2,
        resource_name: "x".into(),
        resource_pattern_type: 3,
        principal: "User:a".into(),
        host: "*".into(),
        operation: 3,
        permission_type: 3,
    };
    run.ask("one", CreateAclsRequest { creations: vec![acl.clone()] }).await;
    run.ask("two", CreateAclsRequest { creations: vec![acl.clone(), acl] }).await;
    run.ask("none", CreateAclsRequest { creations: vec![] }).await;
    run.damaged(CreateAclsRequest { creations: vec![] }).await;
}

pub(super) async fn delete_acls(run: &mut Asker) {
    let any = DeleteAclsFilter {
        resource_type_filter: 1,
        resource_name_filter: None,
        pattern_type_filter: 1,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    run.ask("all", DeleteAclsRequest { filters: vec![any] }).await;
    run.ask("none", DeleteAclsRequest { filters: vec![] }).await;
    run.damaged(DeleteAclsRequest { filters: vec![] }).await;
}
