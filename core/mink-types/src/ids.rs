//! Identifiers and positions: one newtype for each integer that could be swapped for another.
//!
//! Lives on: anywhere (pure).
use std::fmt;

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

integer! {
    /// A database: (index of the log's row that created it) x 2^16 + (place of the command in that row, from 0). Never reused.
    DatabaseId(u64)
}
integer! {
    /// A table: (index of the log's row that created it) x 2^16 + (place of the command in that row, from 0). Never reused: a
    /// table dropped and created again has another id.
    TableId(u64)
}
integer! {
    /// A partition of a table; 0 is the one partition of a table that is not partitioned.
    PartitionId(u64)
}
integer! {
    /// The number of a bucket within its partition, from 0. Kafka's partition index.
    BucketIndex(u32)
}
integer! {
    /// A node as its operator numbers it: small, stable over restarts. Kafka's broker id.
    NodeId(u32)
}
integer! {
    /// One life of a node process: the index of its registration in the command log. Unique in the cluster, never reused.
    Incarnation(u64)
}
integer! {
    /// How often a bucket has been opened. Grows by one with each `Open`, never falls. Kafka's leader epoch.
    BucketEpoch(u32)
}
integer! {
    /// Number of an object in a WAL chain: dense from 0.
    WalNumber(u64)
}
integer! {
    /// Index of a row in the command log: dense from 1; 0 is the empty log.
    LogIndex(u64)
}
integer! {
    /// Position of a record in a bucket's log: dense from 0, never moved (I2).
    Offset(u64)
}
integer! {
    /// Kafka's producer id: incarnation x 2^24 + counter, so that no two nodes give the same.
    ProducerId(i64)
}
integer! {
    /// Epoch of a producer id.
    ProducerEpoch(i16)
}
integer! {
    /// Sequence number of a producer's record in a bucket; wraps from 2^31 - 1 to 0.
    Sequence(i32)
}

impl BucketEpoch {
    /// Kafka carries leader epochs as `i32`; the command log refuses an `Open` that would pass its maximum.
    pub const MAX: BucketEpoch = BucketEpoch(i32::MAX as u32);

    /// The epoch as Kafka's signed leader epoch.
    pub fn leader_epoch(self) -> i32 {
        i32::try_from(self.0).unwrap_or(i32::MAX)
    }
}

impl Offset {
    /// The offset `count` records further on; saturates, since offsets are bounded by `i64::MAX` long before.
    #[must_use]
    pub fn plus(self, count: u64) -> Offset {
        Offset(self.0.saturating_add(count))
    }

    /// The offset as Kafka's signed integer.
    pub fn kafka(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// The offset of Kafka's signed integer; none for a negative one.
    pub fn from_kafka(offset: i64) -> Option<Offset> {
        u64::try_from(offset).ok().map(Offset)
    }
}

impl WalNumber {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> WalNumber {
        WalNumber(self.0.saturating_add(1))
    }
}

impl LogIndex {
    /// The index after this one.
    #[must_use]
    pub fn next(self) -> LogIndex {
        LogIndex(self.0.saturating_add(1))
    }
}

impl Sequence {
    /// The sequence `count` records later, with Kafka's wrap from 2^31 - 1 to 0 (K-7).
    #[must_use]
    pub fn plus(self, count: u32) -> Sequence {
        let sum = (i64::from(self.0) + i64::from(count)) & i64::from(i32::MAX);
        Sequence(i32::try_from(sum).unwrap_or(0))
    }
}

/// One bucket: an independent, ordered log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BucketId {
    pub table: TableId,
    pub partition: PartitionId,
    pub bucket: BucketIndex,
}

impl BucketId {
    /// The bucket of a table that is not partitioned.
    pub fn unpartitioned(table: TableId, bucket: BucketIndex) -> BucketId {
        BucketId { table, partition: PartitionId(0), bucket }
    }
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} partition {} bucket {}", self.table, self.partition, self.bucket)
    }
}

/// Offsets `start..end` of one bucket; `end` is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OffsetRange {
    pub start: Offset,
    pub end: Offset,
}

impl OffsetRange {
    /// Number of offsets in the range.
    pub fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether the range holds no offset.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether `offset` lies in the range.
    pub fn contains(&self, offset: Offset) -> bool {
        self.start <= offset && offset < self.end
    }
}

/// Identity of a cluster: drawn once, kept in the store and in the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterUuid(pub [u8; 16]);

/// A table's id as Kafka clients know it (topic id): drawn when the table is created, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableUuid(pub [u8; 16]);

/// One session of a process with the command log, drawn at its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

/// SHA-256 over (previous hash, index, payload) of a command-log row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RowHash(pub [u8; 32]);

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

macro_rules! hex_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )*};
}
hex_text!(ClusterUuid, TableUuid, SessionId, RowHash);

/// Names one command of one session, so that a command whose commit result was lost is applied once (I12).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId {
    pub session: SessionId,
    pub counter: u64,
}

/// How far the command log had got when something was written: proof against a database that lost rows (I13).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Witness {
    pub index: LogIndex,
    pub hash: RowHash,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_7_sequence_wraps_from_the_maximum_to_zero() {
        assert_eq!(Sequence(i32::MAX).plus(1), Sequence(0));
        assert_eq!(Sequence(i32::MAX - 2).plus(5), Sequence(2));
        assert_eq!(Sequence(3).plus(4), Sequence(7));
    }

    #[test]
    fn a_range_ends_before_its_end() {
        let range = OffsetRange { start: Offset(3), end: Offset(5) };
        assert_eq!(range.len(), 2);
        assert!(range.contains(Offset(4)) && !range.contains(Offset(5)));
        assert!(OffsetRange { start: Offset(5), end: Offset(5) }.is_empty());
    }
}
