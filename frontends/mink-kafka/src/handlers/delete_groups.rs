//! DeleteGroups: groups without members go, with their offsets.
//!
//! Lives on: the service runtime.
//! Invariants: a group that is reported deleted is durably so.
use super::Call;
use super::group_names::{GROUPS_PER_REQUEST_MAX, code_of, group};
use mink_group::GroupError;
use mink_kafka_wire::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use std::collections::BTreeSet;

/// First version that gives words with an error.
const WORDS_FROM: i16 = 3;

pub(super) async fn delete_groups(call: &Call<'_>, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut seen = BTreeSet::new();
    let mut results = Vec::new();
    for group_id in request.groups_names.into_iter().take(GROUPS_PER_REQUEST_MAX) {
        if !seen.insert(group_id.clone()) {
            continue;
        }
        let deleted = match group(&group_id) {
            Ok(id) => call.node.groups.delete(&id).await,
            // What cannot be an id is nobody's.
            Err(_) => Err(GroupError::GroupIdNotFound),
        };
        let words = deleted.err().filter(|_| call.version >= WORDS_FROM);
        results.push(DeletableGroupResult {
            group_id,
            error_code: code_of(&deleted),
            error_message: words.map(|error| error.to_string().into()),
        });
    }
    DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() }
}
