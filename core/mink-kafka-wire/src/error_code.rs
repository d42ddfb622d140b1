//! The error codes of the Kafka protocol that Mink sends or understands.
//!
//! Lives on: anywhere (pure).
//! Owns: the table of code, name and what a Java client does with it. Which code answers which situation is decided in
//! one function of the frontend, not here.

macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $effect:ident;)*) => {
        /// A code that can stand in a response.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every code of the table, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code of a response, if it is one we know.
            pub const fn from_code(code: i16) -> Option<Self> {
                Some(match code {
                    $($code => Self::$variant,)*
                    _ => return None,
                })
            }

            /// As Kafka writes it, for logs and messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const fn effect(self) -> Effect {
                match self {
                    $(Self::$variant => Effect::$effect,)*
                }
            }
        }
    };
}

/// What a client does on a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Refresh what it knows and try again, until its own deadline.
    Retriable,
    /// Tell the application.
    Final,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }

    pub const fn is_error(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether Kafka's own clients try again by themselves: then an answer with this code must not hide a write that
    /// still lands (I7).
    pub const fn retriable(self) -> bool {
        matches!(self.effect(), Effect::Retriable)
    }
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", Final;
    None = 0, "NONE", Final;
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", Final;
    CorruptMessage = 2, "CORRUPT_MESSAGE", Retriable;
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", Retriable;
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", Final;
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", Retriable;
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", Retriable;
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", Retriable;
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE", Final;
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", Retriable;
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", Final;
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", Final;
    NetworkException = 13, "NETWORK_EXCEPTION", Retriable;
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", Retriable;
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", Retriable;
    NotCoordinator = 16, "NOT_COORDINATOR", Retriable;
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", Final;
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", Final;
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", Retriable;
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Retriable;
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", Final;
    IllegalGeneration = 22, "ILLEGAL_GENERATION", Final;
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", Final;
    InvalidGroupId = 24, "INVALID_GROUP_ID", Final;
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", Final;
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", Final;
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", Final;
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", Final;
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", Final;
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", Final;
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", Final;
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", Final;
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", Final;
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", Final;
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", Final;
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", Final;
    InvalidPartitions = 37, "INVALID_PARTITIONS", Final;
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", Final;
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", Final;
    InvalidConfig = 40, "INVALID_CONFIG", Final;
    NotController = 41, "NOT_CONTROLLER", Retriable;
    InvalidRequest = 42, "INVALID_REQUEST", Final;
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", Final;
    PolicyViolation = 44, "POLICY_VIOLATION", Final;
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", Final;
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", Final;
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", Final;
    InvalidTxnState = 48, "INVALID_TXN_STATE", Final;
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", Final;
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Final;
    SecurityDisabled = 54, "SECURITY_DISABLED", Final;
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", Retriable;
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", Final;
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", Final;
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", Final;
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", Final;
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", Final;
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", Retriable;
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", Retriable;
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", Retriable;
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", Retriable;
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", Final;
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", Retriable;
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", Final;
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", Retriable;
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", Final;
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", Final;
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", Retriable;
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", Final;
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", Final;
    InvalidRecord = 87, "INVALID_RECORD", Final;
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", Retriable;
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", Retriable;
    ProducerFenced = 90, "PRODUCER_FENCED", Final;
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION", Final;
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE", Final;
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND", Final;
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE", Final;
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", Retriable;
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", Retriable;
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID", Final;
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", Retriable;
    IneligibleReplica = 107, "INELIGIBLE_REPLICA", Final;
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", Final;
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", Final;
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", Final;
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", Final;
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", Final;
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", Final;
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID", Final;
    InvalidRegularExpression = 128, "INVALID_REGULAR_EXPRESSION", Final;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
        }
        assert!(ErrorCode::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
        assert_eq!(ErrorCode::from_code(i16::MAX), None);
    }

    #[test]
    fn corrupt_message_is_retriable_and_invalid_record_is_not() {
        assert!(ErrorCode::CorruptMessage.retriable());
        assert!(!ErrorCode::InvalidRecord.retriable());
        assert!(!ErrorCode::OutOfOrderSequenceNumber.retriable());
        assert!(!ErrorCode::None.retriable() && !ErrorCode::None.is_error());
    }
}
