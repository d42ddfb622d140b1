//! The flags of `mink serve`. Each has an environment variable `MINK_<NAME>` and a key of the same name in the TOML file.
//!
//! Lives on: anywhere.
use crate::origins::Origins;
use crate::units::{Bytes, at_least_1, count, duration, some_time};
use mink_rt::RuntimeKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `mink serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// TOML file with any of these values, by the flags' names (`wal-linger = "50ms"`, or `linger` below `[wal]`)
    #[arg(long, env = "MINK_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Working copies; with the default storage and metadata it also is the data
    #[arg(long, env = "MINK_DATA_DIR", value_name = "DIR", default_value = "./mink-data")]
    pub data_dir: PathBuf,
    /// Where data is stored: s3://BUCKET/PREFIX (with the usual AWS_* variables), file:///DIR or memory:// [default: file://<data-dir>/objects]
    #[arg(long, env = "MINK_STORAGE", value_name = "URL")]
    pub storage: Option<String>,
    /// Where metadata is agreed: sqlite://FILE, or memory:// with memory storage [default: sqlite://<data-dir>/meta.db]
    #[arg(long, env = "MINK_METADATA", value_name = "URL")]
    pub metadata: Option<String>,
    /// Cluster id, part of every object key and row: clusters can share a store and a database
    #[arg(long, env = "MINK_CLUSTER", value_name = "NAME", default_value = "mink")]
    pub cluster: String,
    /// Number of this node: small, stable over restarts
    #[arg(long, env = "MINK_NODE_ID", value_name = "N", default_value_t = 1)]
    pub node_id: u32,
    /// Kafka listener; `none` for none, port 0 for a free one
    #[arg(long, env = "MINK_KAFKA_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    pub kafka_listen: Listen,
    /// Arrow Flight listener; `none` for none, port 0 for a free one
    #[arg(long, env = "MINK_FLIGHT_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:9123")]
    pub flight_listen: Listen,
    /// HTTP listener: /metrics, /healthz, /readyz, /api/v1
    #[arg(long, env = "MINK_HTTP_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:9180")]
    pub http_listen: Listen,
    /// HOST:PORT that Kafka clients are told [default: the listen address]
    #[arg(long, env = "MINK_KAFKA_ADVERTISE", value_name = "HOST:PORT")]
    pub kafka_advertise: Option<HostPort>,
    /// HOST:PORT that Flight clients are told [default: the listen address]
    #[arg(long, env = "MINK_FLIGHT_ADVERTISE", value_name = "HOST:PORT")]
    pub flight_advertise: Option<HostPort>,
    /// Further names by which web clients may call the HTTP listener
    #[arg(long, env = "MINK_HTTP_HOSTS", value_name = "NAME", value_delimiter = ',')]
    pub http_hosts: Vec<String>,
    /// Where WAL objects are stored, if elsewhere (S3 Express, say) [default: as --storage]
    #[arg(long, env = "MINK_WAL_STORAGE", value_name = "URL")]
    pub wal_storage: Option<String>,
    /// Shards [default: one per core that the process may run on]
    #[arg(long, env = "MINK_SHARDS", value_name = "N", value_parser = at_least_1)]
    pub shards: Option<std::num::NonZeroUsize>,
    /// Threads for listeners, the store's and the database's clients [default: one per core that the process may run on, which is the most]
    #[arg(long, env = "MINK_SERVICE_THREADS", value_name = "N", value_parser = at_least_1)]
    pub service_threads: Option<std::num::NonZeroUsize>,
    /// What drives the cores: auto, uring or epoll
    #[arg(long, env = "MINK_RUNTIME", value_name = "NAME", default_value = "auto")]
    pub runtime: RuntimeKind,
    /// Longest time a write waits while PUTs are in flight
    #[arg(long, env = "MINK_WAL_LINGER", value_name = "TIME", default_value = "50ms", value_parser = duration)]
    pub wal_linger: Duration,
    /// A WAL object is cut at this size
    #[arg(long, env = "MINK_WAL_BATCH_BYTES", value_name = "SIZE", default_value = "8MiB")]
    pub wal_batch_bytes: Bytes,
    /// Average of WAL PUTs per second, bursts of as many; 0 for no bound [default: 20, 0 for file:// and memory://]
    #[arg(long, env = "MINK_WAL_PUTS_PER_SECOND", value_name = "N")]
    pub wal_puts_per_second: Option<u32>,
    /// Acked data is flushed from the WAL to stream objects at this age
    #[arg(long, env = "MINK_WAL_FLUSH_AGE", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub wal_flush_age: Duration,
    /// How long the read lease holds without a heartbeat; what a contender waits
    #[arg(long, env = "MINK_LEASE_TTL", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub lease_ttl: Duration,
    /// Everything the node may hold in memory, at least 128MiB [default: half of what the process may use]
    #[arg(long, env = "MINK_MEMORY", value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Bytes per second that compaction moves on average (each is read and written once); 0 turns it off
    #[arg(long, env = "MINK_COMPACTION_BYTES_PER_SECOND", value_name = "SIZE", default_value = "32MiB")]
    pub compaction_bytes_per_second: Bytes,
    /// How long an object stays after metadata has given it up, for readers that planned on an older view
    #[arg(long, env = "MINK_DELETION_GRACE", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub deletion_grace: Duration,
    /// Rows of the command log between two snapshots of the metadata
    #[arg(long, env = "MINK_SNAPSHOT_ROWS", value_name = "N", default_value_t = 10_000)]
    pub snapshot_rows: u64,
    /// Topics are made on first use
    #[arg(long, env = "MINK_KAFKA_AUTO_CREATE", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub kafka_auto_create: bool,
    /// Partitions of topics that are created without a count
    #[arg(long, env = "MINK_KAFKA_DEFAULT_PARTITIONS", value_name = "N", default_value_t = 1)]
    pub kafka_default_partitions: u32,
    /// How long a new consumer group waits for more members, each time one arrives; at least 200 ms
    #[arg(long, env = "MINK_KAFKA_REBALANCE_DELAY", value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub kafka_rebalance_delay: Duration,
    /// Shortest session time-out that a member of a consumer group may ask for
    #[arg(long, env = "MINK_KAFKA_SESSION_TIMEOUT_MIN", value_name = "TIME", default_value = "6s", value_parser = duration)]
    pub kafka_session_timeout_min: Duration,
    /// How long committed offsets are kept once no member of their group needs them
    #[arg(long, env = "MINK_KAFKA_OFFSETS_RETENTION", value_name = "TIME", default_value = "7d", value_parser = duration)]
    pub kafka_offsets_retention: Duration,
    /// Database whose tables are topics by their bare name
    #[arg(long, env = "MINK_KAFKA_DATABASE", value_name = "NAME", default_value = "kafka")]
    pub kafka_database: String,
    /// SIGTERM and SIGINT drain for at most this long in all, more than 0s; a second signal exits at once
    #[arg(long, env = "MINK_DRAIN_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub drain_timeout: Duration,
    /// Level of the log on stderr: error, warn, info, debug, trace (RUST_LOG filters work too)
    #[arg(long, env = "MINK_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    /// Form of the log: text or json
    #[arg(long, env = "MINK_LOG_FORMAT", value_name = "FORM", default_value = "text")]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where those came from that nobody typed.
    #[arg(skip)]
    pub(crate) origins: Origins,
}

/// Limits against hostile input.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest Kafka request
    #[arg(long, env = "MINK_FRAME_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub frame_bytes_max: Option<Bytes>,
    /// Time for a whole request from its first byte
    #[arg(long, env = "MINK_FRAME_DEADLINE", value_name = "TIME", value_parser = some_time, hide_short_help = true)]
    pub frame_deadline: Option<Duration>,
    /// A connection silent for so long is closed
    #[arg(long, env = "MINK_IDLE_DEADLINE", value_name = "TIME", value_parser = some_time, hide_short_help = true)]
    pub idle_deadline: Option<Duration>,
    /// Connections in all
    #[arg(long, env = "MINK_CONNECTIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub connections_max: Option<u32>,
    /// Connections of one address
    #[arg(long, env = "MINK_CONNECTIONS_PER_ADDRESS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub connections_per_address_max: Option<u32>,
    /// New connections per second on average; four times as many may come at once
    #[arg(long, env = "MINK_CONNECTIONS_PER_SECOND", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub connections_per_second: Option<u32>,
    /// New connections per second of one address
    #[arg(long, env = "MINK_CONNECTIONS_PER_ADDRESS_PER_SECOND", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub connections_per_address_per_second: Option<u32>,
    /// A request of more than 8KiB keeps arriving at this rate (per second)
    #[arg(long, env = "MINK_FRAME_BYTES_PER_SECOND_MIN", value_name = "SIZE", hide_short_help = true)]
    pub frame_bytes_per_second_min: Option<Bytes>,
    /// Requests of one connection that wait for their answer
    #[arg(long, env = "MINK_REQUESTS_IN_FLIGHT_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub requests_in_flight_max: Option<u32>,
    /// Largest batch that a table may allow
    #[arg(long, env = "MINK_BATCH_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub batch_bytes_max: Option<Bytes>,
    /// Largest message of Arrow Flight
    #[arg(long, env = "MINK_FLIGHT_MESSAGE_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub flight_message_bytes_max: Option<Bytes>,
    /// Largest answer to one fetch
    #[arg(long, env = "MINK_FETCH_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub fetch_bytes_max: Option<Bytes>,
    /// What one batch may inflate to
    #[arg(long, env = "MINK_INFLATED_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub inflated_bytes_max: Option<Bytes>,
    /// Buckets of one table
    #[arg(long, env = "MINK_BUCKETS_PER_TABLE_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub buckets_per_table_max: Option<u32>,
    /// Buckets of all tables
    #[arg(long, env = "MINK_BUCKETS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub buckets_max: Option<u32>,
    /// Idempotent producers remembered per bucket
    #[arg(long, env = "MINK_PRODUCERS_PER_BUCKET_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub producers_per_bucket_max: Option<u32>,
    /// An idempotent producer idle for so long is forgotten
    #[arg(long, env = "MINK_PRODUCER_EXPIRY", value_name = "TIME", value_parser = some_time, hide_short_help = true)]
    pub producer_expiry: Option<Duration>,
    /// Members of one consumer group
    #[arg(long, env = "MINK_GROUP_MAX_SIZE", value_name = "N", value_parser = count, hide_short_help = true)]
    pub group_max_size: Option<usize>,
    /// Names and metadata of one member of a consumer group
    #[arg(long, env = "MINK_GROUP_MEMBER_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub group_member_bytes_max: Option<Bytes>,
    /// Names, metadata and assignments of all members of a consumer group
    #[arg(long, env = "MINK_GROUP_BYTES_MAX", value_name = "SIZE", hide_short_help = true)]
    pub group_bytes_max: Option<Bytes>,
    /// Consumer groups of one coordinator, of which a cluster has 16
    #[arg(long, env = "MINK_GROUPS_PER_COORDINATOR_MAX", value_name = "N", value_parser = count, hide_short_help = true)]
    pub groups_per_coordinator_max: Option<usize>,
    /// Metadata of one committed offset, in bytes
    #[arg(long, env = "MINK_OFFSET_METADATA_BYTES_MAX", value_name = "BYTES", hide_short_help = true)]
    pub offset_metadata_bytes_max: Option<u16>,
    /// New producer ids per second
    #[arg(long, env = "MINK_PRODUCER_IDS_PER_SECOND", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub producer_ids_per_second: Option<u32>,
}

/// Where to listen, if at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listen {
    At(SocketAddr),
    Off,
}

impl std::str::FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        if text == "none" {
            return Ok(Listen::Off);
        }
        let text = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse()
            .map(Listen::At)
            .map_err(|_| format!("{text:?} is no ADDRESS:PORT; write 127.0.0.1:9092, or none"))
    }
}

/// An address that clients are told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPort {
    pub host: String,
    pub port: u16,
}

impl std::str::FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPort, String> {
        let wrong = || format!("{text:?} is no HOST:PORT");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() { Err(wrong()) } else { Ok(HostPort { host: host.into(), port }) }
    }
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
