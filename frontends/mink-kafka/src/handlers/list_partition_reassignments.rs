//! ListPartitionReassignments: none is ever under way; the store replicates, and a partition changes its leader at once.
//!
//! Lives on: anywhere (pure).
use mink_kafka_wire::messages::list_partition_reassignments::ListPartitionReassignmentsResponse;

pub(super) fn list_partition_reassignments() -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse {
        error_message: None,
        ..ListPartitionReassignmentsResponse::default()
    }
}
