//! Why a step is refused, in the terms of Kafka's protocol, and why bytes are no record of a group.
//!
//! Lives on: anywhere (pure).

/// Why a request is refused. Each kind is the error of Kafka's protocol of the same name; frontends give its code. Nothing has
/// changed when one is answered, unless the request's own documentation says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum GroupError {
    #[error("the group's new state could not be stored")]
    UnknownServerError,
    #[error("the metadata of a committed offset is longer than is accepted")]
    OffsetMetadataTooLarge,
    /// Ask the same node again.
    #[error("the coordinator is reading its log, or has no room for more appends; try again")]
    CoordinatorLoadInProgress,
    /// Find the coordinator and ask again.
    #[error("the coordinator cannot store the group's state now; try again")]
    CoordinatorNotAvailable,
    #[error("this node does not coordinate the group; find its coordinator")]
    NotCoordinator,
    #[error("the generation is not the group's")]
    IllegalGeneration,
    #[error("no protocol of the member is supported by all members, or its protocol type is another")]
    InconsistentGroupProtocol,
    #[error("a group id has 1 to {} bytes", crate::GROUP_ID_BYTES_MAX)]
    InvalidGroupId,
    #[error("the group has no such member; join again without a member id")]
    UnknownMemberId,
    #[error("the session time-out lies outside what the node accepts")]
    InvalidSessionTimeout,
    #[error("the group is rebalancing; join again")]
    RebalanceInProgress,
    #[error("the commit is larger than the coordinator takes")]
    InvalidCommitOffsetSize,
    #[error("the request breaks the protocol, or a member's metadata is larger than is accepted")]
    InvalidRequest,
    #[error("the group has members")]
    NonEmptyGroup,
    #[error("there is no such group")]
    GroupIdNotFound,
    /// Join again with the id that comes with the answer.
    #[error("join again with the member id of this answer")]
    MemberIdRequired,
    #[error("the group, or the coordinator, has no room for more")]
    GroupMaxSizeReached,
    #[error("another member has taken the instance id over")]
    FencedInstanceId,
    #[error("the group subscribes to the topic")]
    GroupSubscribedToTopic,
}

/// Why bytes are no record of a group. The coordinator must not open on such a log: it would forget what was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    #[error("group record: the {part} ends before its content, or goes on behind it")]
    Length { part: &'static str },
    #[error("group record: version {version} of the {part} is not known to this release; start a newer one")]
    Version { part: &'static str, version: u8 },
    #[error("group record: {what}")]
    Content { what: &'static str },
}
