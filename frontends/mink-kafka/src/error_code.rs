//! Which Kafka error answers which situation (docs: KAFKA protocol page, error codes by situation). One exhaustive function
//! per family of errors; no handler chooses a code for a typed error by itself.
//!
//! Lives on: anywhere (pure).
//! Invariants: I7: a retriable code stands only for what was not ordered.
use mink_api::{AdminError, DeleteRecordsError};
use mink_group::GroupError;
use mink_kafka_wire::ErrorCode;
use mink_record::RecordErrorKind;
use mink_router::{AppendError, ReadError};

/// A batch that the log refused. Nothing of it was ordered.
pub(crate) fn of_append(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::NotOwner { .. } | AppendError::Opening { .. } | AppendError::Draining => {
            ErrorCode::NotLeaderOrFollower
        }
        AppendError::TooLarge { .. } => ErrorCode::MessageTooLarge,
        AppendError::OutOfOrder { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::ProducerFenced { .. } => ErrorCode::InvalidProducerEpoch,
        // Nothing else is both retriable and without side effects for producers of all kinds.
        AppendError::TooManyProducers { .. } => ErrorCode::NotEnoughReplicas,
    }
}

/// Whether a refused batch may be accepted when it is sent again: then what was sent behind it must fail too (I6, I7).
/// A batch that can never be accepted fails alone; one out of sequence is guarded by its sequence.
pub(crate) fn append_is_curable(error: &AppendError) -> bool {
    match error {
        AppendError::NotOwner { .. }
        | AppendError::Opening { .. }
        | AppendError::Draining
        | AppendError::TooManyProducers { .. } => true,
        AppendError::TooLarge { .. }
        | AppendError::OutOfOrder { .. }
        | AppendError::ProducerFenced { .. } => false,
    }
}

/// A read by Fetch.
pub(crate) fn of_read(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::NotOwner { .. } | ReadError::Opening { .. } | ReadError::LeaseExpired => {
            ErrorCode::NotLeaderOrFollower
        }
        ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::EpochDiffers { current, found, .. } => {
            if *found < current.leader_epoch() {
                ErrorCode::FencedLeaderEpoch
            } else {
                ErrorCode::UnknownLeaderEpoch
            }
        }
        ReadError::StoreUnavailable { .. } => ErrorCode::KafkaStorageError,
        // Not out of range: a client that resets its position would pass over lost records without a word.
        // Nor "no such record": a client that seeks by time would go to the end, past records that it looks for.
        ReadError::Damaged { .. } | ReadError::SearchGaveUp { .. } => ErrorCode::CorruptMessage,
    }
}

/// A search by ListOffsets: as a read, but clients know a better code for a bucket that is being opened (version 5 on).
pub(crate) fn of_locate(error: &ReadError, version: i16) -> ErrorCode {
    match error {
        ReadError::Opening { .. } if version >= 5 => ErrorCode::OffsetNotAvailable,
        other => of_read(other),
    }
}

/// Bytes that are not a batch that may be stored.
pub(crate) fn of_record(kind: RecordErrorKind) -> ErrorCode {
    match kind {
        RecordErrorKind::Corrupt => ErrorCode::CorruptMessage,
        RecordErrorKind::TooLarge | RecordErrorKind::InflatedTooLarge => ErrorCode::MessageTooLarge,
        RecordErrorKind::OldFormat => ErrorCode::UnsupportedForMessageFormat,
        RecordErrorKind::Transactional => ErrorCode::InvalidTxnState,
        RecordErrorKind::UnsupportedCodec => ErrorCode::UnsupportedCompressionType,
        RecordErrorKind::InvalidTimestamp => ErrorCode::InvalidTimestamp,
        // The list is open to the crate that owns it; what it adds is a record we do not take.
        RecordErrorKind::Incomplete | RecordErrorKind::InvalidRecord | RecordErrorKind::Control | _ => {
            ErrorCode::InvalidRecord
        }
    }
}

/// Stored rows of which no records can be made. Not out of range: a client that resets its position would pass over them.
pub(crate) fn of_stored(kind: RecordErrorKind) -> ErrorCode {
    match kind {
        // The node may not hold so much at once; another may.
        RecordErrorKind::InflatedTooLarge => ErrorCode::KafkaStorageError,
        _ => ErrorCode::CorruptMessage,
    }
}

/// Administration of topics.
pub(crate) fn of_admin(error: &AdminError) -> ErrorCode {
    match error {
        AdminError::Exists { .. } => ErrorCode::TopicAlreadyExists,
        AdminError::NotFound { .. } => ErrorCode::UnknownTopicOrPartition,
        AdminError::Invalid { .. } => ErrorCode::InvalidRequest,
        AdminError::Limit { .. } => ErrorCode::PolicyViolation,
        AdminError::Throttled { .. } => ErrorCode::ThrottlingQuotaExceeded,
        // May have been carried out; a client that asks again learns it.
        AdminError::Unavailable { .. } => ErrorCode::RequestTimedOut,
        AdminError::Conflict { .. } | AdminError::Stopping => ErrorCode::NotController,
    }
}

/// Records that were not deleted.
pub(crate) fn of_delete_records(error: &DeleteRecordsError) -> ErrorCode {
    match error {
        DeleteRecordsError::NotFound { .. } => ErrorCode::UnknownTopicOrPartition,
        DeleteRecordsError::NotOwner { .. } => ErrorCode::NotLeaderOrFollower,
        DeleteRecordsError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        DeleteRecordsError::Admin(error) => match error {
            // Nobody but the partition's owner can do it: who asks again looks for that one first.
            AdminError::Conflict { .. } | AdminError::Stopping => ErrorCode::NotLeaderOrFollower,
            other => of_admin(other),
        },
    }
}

/// Creation of a topic as a side effect of Metadata: what may pass is retried by clients as a leader to come (K-19).
pub(crate) fn of_auto_create(error: &AdminError) -> ErrorCode {
    match error {
        AdminError::Exists { .. }
        | AdminError::Throttled { .. }
        | AdminError::Unavailable { .. }
        | AdminError::Conflict { .. }
        | AdminError::Stopping => ErrorCode::LeaderNotAvailable,
        AdminError::NotFound { .. } => ErrorCode::UnknownTopicOrPartition,
        AdminError::Invalid { .. } => ErrorCode::InvalidTopicException,
        AdminError::Limit { .. } => ErrorCode::PolicyViolation,
    }
}

/// A producer id that could not be given. Clients ask again on the retriable ones.
pub(crate) fn of_producer_id(error: &AdminError) -> ErrorCode {
    match error {
        AdminError::Throttled { .. } | AdminError::Conflict { .. } | AdminError::Unavailable { .. } => {
            ErrorCode::CoordinatorLoadInProgress
        }
        AdminError::Stopping => ErrorCode::CoordinatorNotAvailable,
        AdminError::Exists { .. } | AdminError::NotFound { .. } | AdminError::Invalid { .. } => {
            ErrorCode::InvalidRequest
        }
        AdminError::Limit { .. } => ErrorCode::PolicyViolation,
    }
}

/// What a group's coordinator refuses: each kind is Kafka's error of the same name.
pub(crate) fn of_group(error: GroupError) -> ErrorCode {
    match error {
        GroupError::UnknownServerError => ErrorCode::UnknownServerError,
        GroupError::OffsetMetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        GroupError::CoordinatorLoadInProgress => ErrorCode::CoordinatorLoadInProgress,
        GroupError::CoordinatorNotAvailable => ErrorCode::CoordinatorNotAvailable,
        GroupError::NotCoordinator => ErrorCode::NotCoordinator,
        GroupError::IllegalGeneration => ErrorCode::IllegalGeneration,
        GroupError::InconsistentGroupProtocol => ErrorCode::InconsistentGroupProtocol,
        GroupError::InvalidGroupId => ErrorCode::InvalidGroupId,
        GroupError::UnknownMemberId => ErrorCode::UnknownMemberId,
        GroupError::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
        GroupError::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        GroupError::InvalidCommitOffsetSize => ErrorCode::InvalidCommitOffsetSize,
        GroupError::InvalidRequest => ErrorCode::InvalidRequest,
        GroupError::NonEmptyGroup => ErrorCode::NonEmptyGroup,
        GroupError::GroupIdNotFound => ErrorCode::GroupIdNotFound,
        GroupError::MemberIdRequired => ErrorCode::MemberIdRequired,
        GroupError::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
        GroupError::FencedInstanceId => ErrorCode::FencedInstanceId,
        GroupError::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{BucketEpoch, BucketId, BucketIndex, Offset, TableId};

    fn bucket() -> BucketId {
        BucketId::unpartitioned(TableId(1), BucketIndex(0))
    }

    #[test]
    fn i7_every_curable_refusal_has_a_retriable_code() {
        let errors = [
            AppendError::NotOwner { bucket: bucket() },
            AppendError::Opening { bucket: bucket() },
            AppendError::Draining,
            AppendError::TooManyProducers { bucket: bucket(), producers: 1 },
            AppendError::TooLarge { bucket: bucket(), bytes: 2, bytes_max: 1 },
        ];
        for error in errors {
            assert_eq!(append_is_curable(&error), of_append(&error).retriable(), "{error}");
        }
    }

    #[test]
    fn every_refusal_of_a_group_has_the_code_of_its_name() {
        let all = [
            GroupError::UnknownServerError,
            GroupError::OffsetMetadataTooLarge,
            GroupError::CoordinatorLoadInProgress,
            GroupError::CoordinatorNotAvailable,
            GroupError::NotCoordinator,
            GroupError::IllegalGeneration,
            GroupError::InconsistentGroupProtocol,
            GroupError::InvalidGroupId,
            GroupError::UnknownMemberId,
            GroupError::InvalidSessionTimeout,
            GroupError::RebalanceInProgress,
            GroupError::InvalidCommitOffsetSize,
            GroupError::InvalidRequest,
            GroupError::NonEmptyGroup,
            GroupError::GroupIdNotFound,
            GroupError::MemberIdRequired,
            GroupError::GroupMaxSizeReached,
            GroupError::FencedInstanceId,
            GroupError::GroupSubscribedToTopic,
        ];
        for error in all {
            assert_eq!(format!("{error:?}"), format!("{:?}", of_group(error)));
        }
    }

    #[test]
    fn k_15_a_search_by_time_that_gave_up_is_an_error_in_every_version() {
        let error = ReadError::SearchGaveUp { bucket: bucket(), batches: 64, from: Offset(9) };
        for version in 1..=7 {
            assert_eq!(of_locate(&error, version), ErrorCode::CorruptMessage, "not \"no such record\"");
        }
    }

    #[test]
    fn an_older_epoch_is_fenced_and_a_newer_one_unknown() {
        let differs = |found| ReadError::EpochDiffers { bucket: bucket(), current: BucketEpoch(3), found };
        assert_eq!(of_read(&differs(2)), ErrorCode::FencedLeaderEpoch);
        assert_eq!(of_read(&differs(4)), ErrorCode::UnknownLeaderEpoch);
    }
}
