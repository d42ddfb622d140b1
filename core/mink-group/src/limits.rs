//! What a coordinator is bounded by, with defaults that ordinary groups never meet.
//!
//! Lives on: anywhere (pure).

/// The bounds of groups, members and what they may store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLimits {
    /// Members of one group. More are refused with GROUP_MAX_SIZE_REACHED. Ids handed out and not used yet are bounded by it too.
    pub members_max: usize,
    /// Groups of one coordinator bucket.
    pub groups_max: usize,
    /// Names and metadata of one member, in bytes.
    pub member_bytes_max: usize,
    /// Names, metadata and assignments of all members of a group, in bytes. Its record must fit a batch of the internal table.
    pub group_bytes_max: usize,
    /// All groups, offsets and appends in flight of one coordinator bucket, in bytes. A node with several buckets gives each what
    /// the others leave ([`crate::Groups::may_take`]).
    pub coordinator_bytes_max: usize,
    /// Appends that wait for the log. More commits are refused with COORDINATOR_LOAD_IN_PROGRESS.
    pub appends_in_flight_max: usize,
    /// Metadata of one committed offset, in bytes.
    pub commit_metadata_bytes_max: usize,
    /// Session time-outs that are accepted, in ms (`--kafka-session-timeout-min`).
    pub session_timeout_min_ms: u32,
    pub session_timeout_max_ms: u32,
    /// How long a new group waits for more members, each time one arrives, in ms (`--kafka-rebalance-delay`).
    pub rebalance_delay_ms: u32,
    /// How long offsets are kept once nobody needs them, in ms (Kafka's `offsets.retention.minutes`).
    pub offsets_retention_ms: u64,
    /// How often a group is looked at for offsets to expire, in ms (Kafka's `offsets.retention.check.interval.ms`).
    pub expiry_check_ms: u64,
}

impl Default for GroupLimits {
    fn default() -> GroupLimits {
        GroupLimits {
            members_max: 1_000,
            groups_max: 10_000,
            member_bytes_max: 1 << 20,
            group_bytes_max: 8 << 20,
            coordinator_bytes_max: 64 << 20,
            appends_in_flight_max: 10_000,
            commit_metadata_bytes_max: 4_096,
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 30 * 60 * 1_000,
            rebalance_delay_ms: 3_000,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            expiry_check_ms: 10 * 60 * 1_000,
        }
    }
}
