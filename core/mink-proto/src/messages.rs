//! The messages of `proto/mink/v1/flight.proto`, field by field.
//!
//! Lives on: anywhere (pure).

/// FlightDescriptor.cmd. A descriptor of type PATH with the parts [database, table] means the same as a command without options.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Command {
    #[prost(oneof = "command::Command", tags = "1, 2")]
    pub command: Option<command::Command>,
}

/// Ticket.ticket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ticket {
    #[prost(oneof = "ticket::Ticket", tags = "1")]
    pub ticket: Option<ticket::Ticket>,
}

/// Appends rows to a table.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Append {
    #[prost(string, tag = "1")]
    pub database: String,
    #[prost(string, tag = "2")]
    pub table: String,
    /// The bucket of all rows. Absent: the node chooses, by the table's bucket key if it has one, else a bucket per batch.
    #[prost(uint32, optional, tag = "3")]
    pub bucket: Option<u32>,
    /// The partition of all rows, a value per partition column. Absent: each row says it.
    #[prost(message, repeated, tag = "4")]
    pub partition: Vec<PartitionValue>,
    /// Each batch is stored once, whatever is sent again. Needs `bucket`, or a table with one bucket.
    #[prost(message, optional, tag = "5")]
    pub writer: Option<Writer>,
    /// The table's id, so that rows do not go to a table made anew under the name. Absent or 0: whatever has the name.
    #[prost(uint64, tag = "6")]
    pub table_id: u64,
    /// The partition's id, so that a writer's rows do not go to one made anew with the same values, where it begins with 0. Absent or 0:
    /// whichever has the values.
    #[prost(uint64, tag = "7")]
    pub partition_id: u64,
}

/// A value of a partition column, as text of its type (2026-01-31, 17, eu).
#[derive(Clone, PartialEq, prost::Message)]
pub struct PartitionValue {
    #[prost(string, tag = "1")]
    pub column: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An idempotent writer, given by the action `writer.open`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Writer {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(int32, tag = "2")]
    pub epoch: i32,
}

/// FlightData.app_metadata of a batch in DoPut. May be absent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PutBatch {
    /// For writers: the number of the batch's first row, counted per bucket from 0, wrapping from 2^31 - 1 to 0.
    /// Absent: the row after the last one on this stream.
    #[prost(int32, optional, tag = "1")]
    pub sequence: Option<i32>,
}

/// PutResult.app_metadata: one for each batch of a DoPut stream, in order, when its rows are durable.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PutAck {
    /// The batch's number on the stream, from 0.
    #[prost(uint64, tag = "1")]
    pub batch: u64,
    /// Where its rows lie. Empty for a batch without rows.
    #[prost(message, repeated, tag = "2")]
    pub placed: Vec<Placed>,
    /// Rows that a writer sent before, so long ago that the node knows only that they are stored, not where.
    #[prost(uint64, tag = "3")]
    pub repeated_rows: u64,
}

/// A run of rows with neighbouring offsets.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Placed {
    #[prost(uint64, tag = "1")]
    pub partition: u64,
    #[prost(uint32, tag = "2")]
    pub bucket: u32,
    /// Offset of the first row.
    #[prost(uint64, tag = "3")]
    pub base_offset: u64,
    #[prost(uint64, tag = "4")]
    pub rows: u64,
}

/// Reads rows of a table's log.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scan {
    #[prost(string, tag = "1")]
    pub database: String,
    #[prost(string, tag = "2")]
    pub table: String,
    /// Only this bucket. Absent: all that the node serves, one after the other.
    #[prost(uint32, optional, tag = "3")]
    pub bucket: Option<u32>,
    /// Only this partition.
    #[prost(message, repeated, tag = "4")]
    pub partition: Vec<PartitionValue>,
    /// Where to begin in each bucket. Absent: at its start.
    #[prost(message, optional, tag = "5")]
    pub from: Option<Position>,
    /// Where to end in each bucket: the first offset that is not read. Absent: where the log ends when the scan begins;
    /// a scan that follows has no end.
    #[prost(uint64, optional, tag = "6")]
    pub until: Option<u64>,
    /// Only these columns, in this order. Empty: all.
    #[prost(string, repeated, tag = "7")]
    pub columns: Vec<String>,
    /// Only rows that meet all of these.
    #[prost(message, repeated, tag = "8")]
    pub filter: Vec<Comparison>,
    /// At most so many rows.
    #[prost(uint64, optional, tag = "9")]
    pub limit: Option<u64>,
    /// Number of the table's schema that the rows are to have. Absent: the newest.
    #[prost(uint32, optional, tag = "10")]
    pub schema: Option<u32>,
    /// The table's id, so that a table made anew under the name is not read by mistake. Absent or 0: whatever has the name.
    #[prost(uint64, tag = "11")]
    pub table_id: u64,
    /// The partition's id, so that one made anew with the same values is not read by mistake. Absent or 0: whichever has the values.
    #[prost(uint64, tag = "12")]
    pub partition_id: u64,
}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Position {
    #[prost(oneof = "position::Position", tags = "1, 2, 3, 4")]
    pub position: Option<position::Position>,
}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Earliest {}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Latest {}

/// A column against a constant of its type. Null meets IS_NULL only.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Comparison {
    #[prost(string, tag = "1")]
    pub column: String,
    #[prost(enumeration = "Operator", tag = "2")]
    pub operator: i32,
    /// The constant as text of the column's type; not looked at for IS_NULL and IS_NOT_NULL.
    #[prost(string, tag = "3")]
    pub value: String,
}

/// How a column is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Operator {
    Unspecified = 0,
    Equal = 1,
    NotEqual = 2,
    Less = 3,
    LessOrEqual = 4,
    Greater = 5,
    GreaterOrEqual = 6,
    IsNull = 7,
    IsNotNull = 8,
}

/// FlightData.app_metadata of a batch in DoGet and DoExchange.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchInfo {
    #[prost(uint64, tag = "1")]
    pub partition: u64,
    #[prost(uint32, tag = "2")]
    pub bucket: u32,
    /// Offset of the batch's first row; further rows follow it one by one, unless `filter` has left some out.
    #[prost(uint64, tag = "3")]
    pub base_offset: u64,
    /// Offset behind the last row that was looked at: where a reader that breaks off here goes on.
    #[prost(uint64, tag = "4")]
    pub next_offset: u64,
    /// When the rows were taken in, in ms since 1970.
    #[prost(int64, tag = "5")]
    pub commit_time_ms: i64,
}

/// Body of the action `writer.open`. Answered by one Writer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpenWriter {}

/// Body of the action `writer.state`. Answered by one WriterState for each bucket that remembers the writer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FindWriter {
    #[prost(string, tag = "1")]
    pub database: String,
    #[prost(string, tag = "2")]
    pub table: String,
    #[prost(int64, tag = "3")]
    pub id: i64,
}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WriterState {
    #[prost(uint64, tag = "1")]
    pub partition: u64,
    #[prost(uint32, tag = "2")]
    pub bucket: u32,
    #[prost(int32, tag = "3")]
    pub epoch: i32,
    /// The number of the last row that is stored; the next one follows it.
    #[prost(int32, tag = "4")]
    pub last_sequence: i32,
}

/// Body of the action `table.describe`. Answered by one TableDescription.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DescribeTable {
    #[prost(string, tag = "1")]
    pub database: String,
    #[prost(string, tag = "2")]
    pub table: String,
}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TableDescription {
    #[prost(uint64, tag = "1")]
    pub table_id: u64,
    #[prost(string, tag = "2")]
    pub database: String,
    #[prost(string, tag = "3")]
    pub table: String,
    /// Number of the newest schema. The schema itself: GetSchema. 0: a table in the kafka format, whose columns are fixed.
    #[prost(uint32, tag = "4")]
    pub schema: u32,
    #[prost(uint32, tag = "5")]
    pub buckets: u32,
    /// Columns whose hash gives a row's bucket. Empty: any bucket.
    #[prost(string, repeated, tag = "6")]
    pub bucket_key: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub partitioned_by: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub options: Vec<TableOption>,
    /// The table as SQL.
    #[prost(string, tag = "9")]
    pub create_statement: String,
}

/// See the protocol file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TableOption {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Answer of the action `node.describe`, whose body is empty: who the node is, and where its listeners are. An address is HOST:PORT as
/// clients are told it; empty if the listener is off. The host 0.0.0.0 or \[::\] of `http` stands for the one by which the node was reached.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeDescription {
    #[prost(string, tag = "1")]
    pub cluster: String,
    #[prost(uint32, tag = "2")]
    pub node_id: u32,
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(string, tag = "4")]
    pub kafka: String,
    #[prost(string, tag = "5")]
    pub flight: String,
    #[prost(string, tag = "6")]
    pub http: String,
}

/// What a [`Command`] says.
pub mod command {
    /// One of them.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Command {
        /// DoPut: rows to append.
        #[prost(message, tag = "1")]
        Append(super::Append),
        /// GetFlightInfo: rows to read. DoExchange: rows to follow.
        #[prost(message, tag = "2")]
        Scan(super::Scan),
    }
}

/// What a [`Ticket`] says.
pub mod ticket {
    /// One of them.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Ticket {
        #[prost(message, tag = "1")]
        Scan(super::Scan),
    }
}

/// What a [`Position`] says.
pub mod position {
    /// One of them.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Position {
        /// The first offset that is kept.
        #[prost(message, tag = "1")]
        Earliest(super::Earliest),
        /// Behind the last row that is there now.
        #[prost(message, tag = "2")]
        Latest(super::Latest),
        /// This offset. Refused (OUT_OF_RANGE, with where the log begins) if it is not kept any more, or lies beyond the end.
        #[prost(uint64, tag = "3")]
        Offset(u64),
        /// The first row that was appended at this time or later, in ms since 1970.
        #[prost(int64, tag = "4")]
        TimestampMs(i64),
    }
}
