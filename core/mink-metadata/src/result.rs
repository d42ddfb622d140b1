//! How a command ended: its answer, or why it was refused.
//!
//! Lives on: anywhere (pure).
//! Invariants: a result is a function of the log alone, and is kept with its request id (I12).
use mink_types::schema::SchemaId;
use mink_types::{
    BucketEpoch, BucketId, DatabaseId, DatabaseName, Incarnation, ObjectId, Offset, PartitionId, TableId,
    TablePath,
};

/// The end of a command that is in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum CommandResult {
    /// It changed the state.
    Done(Answer),
    /// It changed nothing and never will.
    Refused(Refusal),
}

impl CommandResult {
    /// The answer, or the refusal as an error.
    pub fn into_result(self) -> Result<Answer, Refusal> {
        match self {
            CommandResult::Done(answer) => Ok(answer),
            CommandResult::Refused(refusal) => Err(refusal),
        }
    }

    /// Whether the incarnation of a `Fence` is fenced now, by this command or by an earlier one.
    pub fn is_fenced(&self) -> bool {
        matches!(self, CommandResult::Done(_) | CommandResult::Refused(Refusal::AlreadyFenced { .. }))
    }

    /// The partition with the values of a `CreatePartition`, made by this command or by an earlier one.
    pub fn partition(&self) -> Option<PartitionId> {
        match self {
            CommandResult::Done(Answer::PartitionCreated(id))
            | CommandResult::Refused(Refusal::PartitionExists { id }) => Some(*id),
            _ => None,
        }
    }
}

/// What an accepted command says beside "done".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Done,
    Registered(Incarnation),
    DatabaseCreated(DatabaseId),
    TableCreated(TableId),
    PartitionCreated(PartitionId),
    /// The buckets of an `Open` that were *not* opened, and why; all others now have the epoch relied on plus one.
    Opened {
        refused: Vec<(BucketId, Stale)>,
    },
}

/// Why a command changed nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    #[error("this request was applied before, and its answer is no longer kept")]
    Forgotten,
    #[error("incarnation {incarnation} is fenced already")]
    AlreadyFenced { incarnation: Incarnation },
    #[error("incarnation {incarnation} is fenced: stop, and register anew")]
    Fenced { incarnation: Incarnation },
    #[error("incarnation {incarnation} is not registered")]
    NotRegistered { incarnation: Incarnation },
    #[error("incarnation {incarnation} is not fenced; fence it first")]
    NotFenced { incarnation: Incarnation },
    #[error("a bucket still hangs on the chain of incarnation {incarnation}")]
    StillNeeded { incarnation: Incarnation },
    #[error("database {name} does not exist; create it first")]
    DatabaseNotFound { name: DatabaseName },
    #[error("the database exists already")]
    DatabaseExists { id: DatabaseId },
    #[error(
        "database {name} still has tables; `mink table list` or SHOW TABLES FROM {name} shows them: drop them first"
    )]
    DatabaseNotEmpty { name: DatabaseName },
    #[error("table {id} does not exist")]
    TableNotFound { id: TableId },
    #[error("the table exists already")]
    TableExists { id: TableId },
    #[error("table {id} was changed meanwhile; look at it again")]
    TableChanged { id: TableId },
    #[error(
        "the schema of table {id} was changed meanwhile and is {newest} by now; make the change from that"
    )]
    SchemaChanged { id: TableId, newest: SchemaId },
    #[error("partition {id} with these values exists already")]
    PartitionExists { id: PartitionId },
    #[error("partition {id} does not exist")]
    PartitionNotFound { id: PartitionId },
    #[error("the configurations of this broker, or of all, were changed meanwhile; look at them again")]
    BrokerConfigsChanged,
    #[error("as a topic the table would collide with table {other}; choose another name")]
    TopicCollision { other: TablePath },
    #[error("{bucket}: {why}")]
    Stale { bucket: BucketId, why: Stale },
    #[error("{id}: {why}")]
    Object { id: ObjectId, why: ObjectFault },
    #[error("{limit}: at most {max}")]
    Limit { limit: LimitKind, max: u64 },
    #[error("{0}")]
    Invalid(Invalid),
}

/// What a caller must do about a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// It is so already: go on.
    Already,
    /// The author is fenced: it must stop as this incarnation.
    Fenced,
    /// The view was old: apply the log, and plan again.
    Stale,
    /// What it names is not there.
    NotFound,
    /// What it would make is there already, under this name or one that Kafka takes for the same.
    Exists,
    /// It would pass a limit.
    Limit,
    /// It contradicts itself or the log: a mistake of the author.
    Invalid,
}

impl Refusal {
    /// What the caller must do.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Refusal::Forgotten | Refusal::AlreadyFenced { .. } | Refusal::PartitionExists { .. } => {
                RefusalKind::Already
            }
            Refusal::Fenced { .. } => RefusalKind::Fenced,
            Refusal::NotFenced { .. }
            | Refusal::StillNeeded { .. }
            | Refusal::Stale { .. }
            | Refusal::TableChanged { .. }
            | Refusal::SchemaChanged { .. }
            | Refusal::BrokerConfigsChanged => RefusalKind::Stale,
            Refusal::DatabaseNotFound { .. }
            | Refusal::TableNotFound { .. }
            | Refusal::PartitionNotFound { .. } => RefusalKind::NotFound,
            Refusal::DatabaseExists { .. }
            | Refusal::TableExists { .. }
            | Refusal::TopicCollision { .. }
            | Refusal::DatabaseNotEmpty { .. } => RefusalKind::Exists,
            Refusal::Limit { .. } => RefusalKind::Limit,
            Refusal::NotRegistered { .. } | Refusal::Object { .. } | Refusal::Invalid(_) => {
                RefusalKind::Invalid
            }
        }
    }
}

/// How a bucket differs from what a command relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stale {
    #[error("the table was dropped, or never had this bucket")]
    Gone,
    #[error("the epoch is {current}")]
    Epoch { current: BucketEpoch },
    /// On whose chain it hangs; `None` when it is free.
    #[error("the bucket hangs on {}", .on.map_or("no chain".to_owned(), |i| format!("the chain of incarnation {i}")))]
    Hangs { on: Option<Incarnation> },
    #[error("the committed end is {committed}")]
    End { committed: Offset },
    #[error("the bucket's epochs are used up")]
    EpochsUsedUp,
    /// From this offset on, the ranges are not those that a rewrite read.
    #[error("the ranges from {at} on are others by now")]
    Ranges { at: Offset },
}

/// What is wrong with an object of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectFault {
    #[error("the object is known already, and ids are never used again")]
    Known,
    #[error("the object belongs to a chain that this commit may not take it from")]
    Foreign,
    #[error("the object was committed before with another length or checksum")]
    Differs,
    #[error("the object's lengths contradict each other")]
    Lengths,
    #[error("the object is lost, and what it held cannot be moved")]
    Lost,
}

/// A bound of the log itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitKind {
    /// Buckets of all tables.
    Buckets,
    /// Buckets of one table.
    BucketsPerTable,
    /// Databases.
    Databases,
    /// Bytes of an address, version or detail.
    TextBytes,
    /// Listeners of a registration.
    Listeners,
    /// Stores with a verdict.
    Stores,
    /// Configurations of a broker, or of all.
    BrokerConfigs,
    /// Configurations that a table keeps.
    KeptConfigs,
    /// Schemas of one table.
    Schemas,
    /// Bytes of all schemas of one table.
    SchemaBytes,
    /// Partitions of one table.
    Partitions,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitKind::Buckets => "buckets of all tables",
            LimitKind::BucketsPerTable => "buckets of one table",
            LimitKind::Databases => "databases",
            LimitKind::TextBytes => "bytes of a text in a command",
            LimitKind::Listeners => "listeners of a node",
            LimitKind::Stores => "probed stores",
            LimitKind::BrokerConfigs => "configurations of a broker",
            LimitKind::KeptConfigs => "configurations that a table keeps",
            LimitKind::Schemas => "schemas of one table (for further changes, make a new table and move the rows)",
            LimitKind::SchemaBytes => {
                "bytes of all schemas of one table (use fewer columns or shorter comments, or make a new table)"
            }
            LimitKind::Partitions => "partitions of one table (drop some, or partition by something coarser)",
        })
    }
}

/// A command that no state could accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    #[error("a row registers at most one node")]
    SecondRegistration,
    #[error("the topic id must not be zero")]
    ZeroUuid,
    #[error("the topic id belongs to another table; draw another")]
    UuidTaken,
    #[error("a table has at least one bucket")]
    NoBuckets,
    #[error("a committed range must hold at least one offset, and end below 2^63")]
    EmptyRange,
    #[error("a commit trims its author's own chain only")]
    ForeignTrim,
    #[error("the seal lies below the trim")]
    SealBelowTrim,
    #[error("the start of the log may only rise, up to the committed end")]
    StartOutOfRange,
    #[error("a table keeps its format, never has fewer buckets than before, and with a primary key as many")]
    FixedForTable,
    #[error("no node of this id has ever registered")]
    UnknownNode,
    #[error("a configuration has a name")]
    EmptyName,
    #[error("a table of format arrow has a schema, and one of format kafka has none")]
    SchemaAndFormat,
    #[error("the first schema of a table has the id 1")]
    SchemaNotFirst,
    #[error("the new schema is none that a change of the newest one gives")]
    SchemaDoesNotFollow,
    #[error("the table is not partitioned")]
    NotPartitioned,
    #[error(
        "a partition has one value for each column that the table is partitioned by, of the column's type"
    )]
    PartitionValues,
    #[error("feature levels rise one by one, once every live node knows the next")]
    FeatureLevel,
}
