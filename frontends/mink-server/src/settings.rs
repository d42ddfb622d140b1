//! What a node is started with, checked: flags, environment, file and defaults joined into one value.
//!
//! Lives on: anywhere.
//! Invariants: a setting that cannot work is refused before anything is started, with the remedy.
use crate::args::{HostPort, Listen, ServeArgs};
use crate::file::{self, FileError};
use clap::{Args, Command, FromArgMatches};
use mink_rt::machine::FS_ROOT;
use mink_rt::{memory_limit, shards_by_default};
use mink_types::{ClusterName, DatabaseName, LimitError, Limits, NameError, NodeId};
use s3stream::{ENTRY_BYTES_MAX, WalConfig};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least memory that a node can work with: one WAL object and one frame of the largest size, and a little of everything else.
const MEMORY_MIN: u64 = 256 << 20;

/// Memory taken as given where the machine does not say what it has.
const MEMORY_UNKNOWN: u64 = 1 << 30;

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Flags(#[from] clap::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Limits(#[from] LimitError),
    #[error(
        "{listener} listens on {address}, which no client can connect to; say what to tell clients with --{listener}-advertise HOST:PORT"
    )]
    Unspecified { listener: &'static str, address: SocketAddr },
    #[error(
        "--storage memory:// goes with --metadata memory:// only: metadata would outlive its data; leave --metadata out"
    )]
    MemoryStorage,
    #[error(
        "--metadata memory:// goes with --storage memory:// only: data would outlive its metadata; leave --metadata out"
    )]
    MemoryMetadata,
    #[error("--metadata {url} is not supported: {why}")]
    Metadata { url: String, why: &'static str },
    #[error("--memory {bytes} bytes is too little; give at least {MEMORY_MIN}")]
    Memory { bytes: u64 },
    #[error("--{flag} {value} is out of range; use {accepted}")]
    Range { flag: &'static str, value: String, accepted: &'static str },
    #[error("the data directory {path:?} is not text; choose another")]
    Path { path: PathBuf },
}

/// Where the command log lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetadataPlace {
    Sqlite(PathBuf),
    Memory,
}

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    pub args: ServeArgs,
    pub cluster: ClusterName,
    pub node: NodeId,
    pub storage: String,
    pub wal_storage: Option<String>,
    pub metadata: MetadataPlace,
    pub kafka_database: DatabaseName,
    pub shards: NonZeroUsize,
    pub limits: Limits,
    pub memory_bytes: u64,
}

/// Parses the flags of `mink serve` (without the words `mink serve`), with the file they name.
pub fn parse(arguments: &[OsString]) -> Result<ServeArgs, SettingsError> {
    let command =
        || ServeArgs::augment_args(Command::new("serve").no_binary_name(true)).args_override_self(true);
    let first = ServeArgs::from_arg_matches(&command().try_get_matches_from(arguments)?)?;
    let Some(path) = &first.config else {
        return Ok(first);
    };
    let known: BTreeSet<String> =
        command().get_arguments().filter_map(|argument| argument.get_long().map(String::from)).collect();
    let mut all: Vec<OsString> = file::flags(path, &known, |name| std::env::var_os(name).is_some())?
        .into_iter()
        .map(OsString::from)
        .collect();
    all.extend_from_slice(arguments);
    Ok(ServeArgs::from_arg_matches(&command().try_get_matches_from(all)?)?)
}

impl Settings {
    /// Checks flags against each other and fills in what follows from others.
    pub fn resolve(args: ServeArgs) -> Result<Settings, SettingsError> {
        let data_dir =
            args.data_dir.to_str().ok_or_else(|| SettingsError::Path { path: args.data_dir.clone() })?;
        let storage = args.storage.clone().unwrap_or_else(|| default_storage(data_dir));
        let metadata = metadata_place(&args, &storage)?;
        advertised("kafka", args.kafka_listen, args.kafka_advertise.as_ref())?;
        let limits = limits(&args)?;
        let memory_bytes = match args.memory {
            Some(bytes) => bytes.0,
            None => (memory_limit(Path::new(FS_ROOT)).unwrap_or(MEMORY_UNKNOWN) / 2).max(MEMORY_MIN),
        };
        if memory_bytes < MEMORY_MIN {
            return Err(SettingsError::Memory { bytes: memory_bytes });
        }
        if args.lease_ttl < Duration::from_millis(300) || args.lease_ttl > Duration::from_mins(10) {
            let (flag, accepted) = ("lease-ttl", "300ms to 600s");
            return Err(SettingsError::Range { flag, value: format!("{:?}", args.lease_ttl), accepted });
        }
        if args.kafka_default_partitions == 0 || args.kafka_default_partitions > limits.buckets_per_table_max
        {
            let (flag, accepted) = ("kafka-default-partitions", "1 to the limit buckets-per-table-max");
            return Err(SettingsError::Range {
                flag,
                value: args.kafka_default_partitions.to_string(),
                accepted,
            });
        }
        Ok(Settings {
            cluster: ClusterName::new(&args.cluster)?,
            node: NodeId(args.node_id),
            storage,
            wal_storage: args.wal_storage.clone(),
            metadata,
            kafka_database: DatabaseName::new(&args.kafka_database)?,
            shards: args.shards.unwrap_or_else(shards_by_default),
            limits,
            memory_bytes,
            args,
        })
    }

    /// The WAL's configuration; a store whose PUTs cost nothing has no budget of them.
    pub fn wal(&self, needs_put_budget: bool) -> WalConfig {
        let defaults = WalConfig::default();
        let asked = self.args.wal_puts_per_second;
        let budget =
            asked.unwrap_or_else(|| if needs_put_budget { defaults.puts_per_second.unwrap_or(0) } else { 0 });
        WalConfig {
            linger: self.args.wal_linger,
            batch_bytes: self.args.wal_batch_bytes.0,
            puts_per_second: (budget > 0).then_some(budget),
            flush_age: self.args.wal_flush_age,
            untrimmed_bytes_max: (self.memory_bytes / 4)
                .clamp(defaults.object_bytes_max, defaults.untrimmed_bytes_max),
            waiting_bytes_max: (self.memory_bytes / 8).min(defaults.waiting_bytes_max),
            ..defaults
        }
    }

    /// Memory for requests that are read and not yet durable, in bytes.
    pub fn permit_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Memory for answers to fetches that clients have not taken yet, in bytes.
    pub fn answer_bytes(&self) -> u64 {
        self.memory_bytes / 8
    }

    /// Memory for flushed batches that stay readable without the store, in bytes.
    pub fn tail_bytes(&self) -> u64 {
        self.memory_bytes / 8
    }

    /// Memory for footers, in bytes.
    pub fn footer_cache_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 16).unwrap_or(usize::MAX)
    }
}

/// The embedded store. An absolute path keeps its meaning when the process is started elsewhere.
fn default_storage(data_dir: &str) -> String {
    let path = PathBuf::from(data_dir).join("objects");
    let path = std::path::absolute(&path).unwrap_or(path);
    format!("file://{}", path.display())
}

fn metadata_place(args: &ServeArgs, storage: &str) -> Result<MetadataPlace, SettingsError> {
    let in_memory = storage.starts_with("memory:");
    let Some(url) = &args.metadata else {
        return Ok(if in_memory {
            MetadataPlace::Memory
        } else {
            MetadataPlace::Sqlite(args.data_dir.join("meta.db"))
        });
    };
    let refuse = |why| Err(SettingsError::Metadata { url: without_password(url), why });
    match url.split_once("://") {
        Some(("memory", _)) if in_memory => Ok(MetadataPlace::Memory),
        Some(("memory", _)) => Err(SettingsError::MemoryMetadata),
        _ if in_memory => Err(SettingsError::MemoryStorage),
        Some(("sqlite", path)) if !path.is_empty() => Ok(MetadataPlace::Sqlite(path.into())),
        Some(("postgres" | "postgresql", _)) => {
            refuse("this version keeps metadata in SQLite; use sqlite://FILE")
        }
        _ => refuse("use sqlite://FILE"),
    }
}

/// A URL fit for a message: what stands between `//` and `@` may be a password.
pub(crate) fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://...@{rest}"),
        _ => url.into(),
    }
}

/// Nobody can connect to `0.0.0.0`, so a listener on it must say what to tell clients.
fn advertised(
    listener: &'static str,
    listen: Listen,
    advertise: Option<&HostPort>,
) -> Result<(), SettingsError> {
    match listen {
        Listen::At(address) if address.ip().is_unspecified() && advertise.is_none() => {
            Err(SettingsError::Unspecified { listener, address })
        }
        _ => Ok(()),
    }
}

fn limits(args: &ServeArgs) -> Result<Limits, SettingsError> {
    let (given, defaults) = (&args.limits, Limits::default());
    let size = |flag: &'static str, bytes: Option<crate::units::Bytes>, default: u32| match bytes {
        None => Ok(default),
        Some(bytes) => {
            u32::try_from(bytes.0).ok().filter(|n| *n > 0 && i32::try_from(*n).is_ok()).ok_or_else(|| {
                SettingsError::Range { flag, value: bytes.0.to_string(), accepted: "1 to 2147483647 bytes" }
            })
        }
    };
    let millis = |time: Option<Duration>, default: u64| {
        time.map_or(default, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    };
    let limits = Limits {
        frame_bytes_max: size("frame-bytes-max", given.frame_bytes_max, defaults.frame_bytes_max)?,
        frame_deadline_ms: millis(given.frame_deadline, defaults.frame_deadline_ms),
        idle_deadline_ms: millis(given.idle_deadline, defaults.idle_deadline_ms),
        connections_max: given.connections_max.unwrap_or(defaults.connections_max),
        connections_per_address_max: given.connections_per_address_max.unwrap_or_else(|| {
            defaults.connections_per_address_max.min(given.connections_max.unwrap_or(u32::MAX))
        }),
        requests_in_flight_max: given.requests_in_flight_max.unwrap_or(defaults.requests_in_flight_max),
        batch_bytes_max: size("batch-bytes-max", given.batch_bytes_max, defaults.batch_bytes_max)?,
        fetch_bytes_max: size("fetch-bytes-max", given.fetch_bytes_max, defaults.fetch_bytes_max)?,
        inflated_bytes_max: size(
            "inflated-bytes-max",
            given.inflated_bytes_max,
            defaults.inflated_bytes_max,
        )?,
        buckets_per_table_max: given.buckets_per_table_max.unwrap_or(defaults.buckets_per_table_max),
        buckets_max: given.buckets_max.unwrap_or(defaults.buckets_max),
        producers_per_bucket_max: given.producers_per_bucket_max.unwrap_or(defaults.producers_per_bucket_max),
        producer_expiry_ms: millis(given.producer_expiry, defaults.producer_expiry_ms),
        producer_ids_per_second: given.producer_ids_per_second.unwrap_or(defaults.producer_ids_per_second),
    };
    limits.check()?;
    if usize::try_from(limits.batch_bytes_max).is_ok_and(|bytes| bytes > ENTRY_BYTES_MAX) {
        let (flag, accepted) =
            ("batch-bytes-max", "at most 40MiB: a batch and its neighbours must fit one PUT");
        return Err(SettingsError::Range { flag, value: limits.batch_bytes_max.to_string(), accepted });
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: &[&str]) -> Result<Settings, SettingsError> {
        let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
        Settings::resolve(parse(&flags)?)
    }

    #[test]
    fn the_defaults_are_those_of_the_interface() {
        let settings = resolve(&[]).expect("valid");
        assert!(settings.storage.starts_with("file:///") && settings.storage.ends_with("/mink-data/objects"));
        assert_eq!(settings.metadata, MetadataPlace::Sqlite("./mink-data/meta.db".into()));
        assert_eq!(settings.wal(false).puts_per_second, None);
        assert_eq!(settings.wal(true).puts_per_second, Some(20));
        assert_eq!(settings.wal(true).check(), Ok(()));
        assert_eq!(settings.limits, Limits::default());
    }

    #[test]
    fn a_listener_that_nobody_can_reach_is_refused_with_the_remedy() {
        let error = resolve(&["--kafka-listen", "0.0.0.0:9092"]).expect_err("refused");
        assert!(error.to_string().contains("--kafka-advertise"), "{error}");
        resolve(&["--kafka-listen", "0.0.0.0:9092", "--kafka-advertise", "box:9092"]).expect("reachable");
        resolve(&["--kafka-listen", "none"]).expect("off");
    }

    #[test]
    fn memory_storage_and_memory_metadata_go_together() {
        assert_eq!(resolve(&["--storage", "memory://"]).expect("valid").metadata, MetadataPlace::Memory);
        resolve(&["--storage", "memory://", "--metadata", "sqlite://x"])
            .expect_err("metadata would outlive its data");
        resolve(&["--metadata", "memory://"]).expect_err("data would outlive its metadata");
    }

    #[test]
    fn a_password_stays_out_of_messages() {
        let error = resolve(&["--metadata", "postgres://me:secret@host/db"]).expect_err("not yet");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn what_cannot_work_is_refused_before_anything_starts() {
        for flags in [
            &["--memory", "1MiB"][..],
            &["--lease-ttl", "1ms"],
            &["--kafka-default-partitions", "0"],
            &["--frame-bytes-max", "1KiB"],
            &["--batch-bytes-max", "41MiB"],
            &["--cluster", "a/b"],
            &["--kafka-database", "mink"],
            &["--nonsense"],
        ] {
            resolve(flags).expect_err("refused");
        }
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "node-id = 5\nkafka-default-partitions = 3\n").expect("written");
        let path = file.path().to_str().expect("text");
        let settings = resolve(&["--config", path, "--node-id", "9"]).expect("valid");
        assert_eq!((settings.node, settings.args.kafka_default_partitions), (NodeId(9), 3));
    }
}
