//! What a node is started with, checked: flags, environment, file and defaults joined into one value.
//!
//! Lives on: anywhere.
//! Invariants: a setting that cannot work is refused before anything is started, with the remedy.
mod cores;

use crate::args::{HostPort, Listen, ServeArgs};
use crate::file::FileError;
use crate::groups::group_limits;
use crate::memory::{MEMORY_MIN, Memory};
use crate::origins::Origins;
use crate::units::{Amount, Bytes};
use mink_node::{CompactionConfig, GroupLimits};
use mink_rt::machine::FS_ROOT;
use mink_rt::memory_limit;
use mink_types::{ClusterName, DatabaseName, LimitError, Limits, NameError, NodeId};
use s3stream::{ENTRY_BYTES_MAX, WalConfig};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Memory taken as given where the machine does not say what it has.
const MEMORY_UNKNOWN: u64 = 1 << 30;

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Flags(#[from] clap::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("--{flag}: {source}")]
    Name { flag: &'static str, source: NameError },
    #[error(transparent)]
    Limits(#[from] LimitError),
    #[error(
        "--{flag} {address} is nothing that a client can connect to; say what to tell clients with --{advertise} HOST:PORT"
    )]
    Unspecified { flag: &'static str, address: SocketAddr, advertise: &'static str },
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
    #[error("--memory {given} is too little; give at least {}", Bytes(MEMORY_MIN))]
    Memory { given: Bytes },
    #[error("--{flag} {asked} does not fit --memory {memory}, which has room for {most}; {remedy}")]
    Fit { flag: &'static str, asked: Amount, memory: Bytes, most: Amount, remedy: String },
    #[error("--{flag} {value} is out of range; use {accepted}")]
    Range { flag: &'static str, value: String, accepted: &'static str },
    #[error(
        "--shards {asked} is more than this machine can use; give at most {most}: 4 for each core, or 64"
    )]
    Shards { asked: usize, most: usize },
    #[error("the data directory {path:?} is not text; choose another")]
    Path { path: PathBuf },
    /// Another of these, about values that do not stand on the command line.
    #[error("{error}{places}")]
    Placed { error: Box<SettingsError>, places: String },
}

impl SettingsError {
    /// The flags whose values it is about.
    fn flags(&self) -> Vec<&'static str> {
        match self {
            // These name the place themselves, as it was when they were read.
            SettingsError::Flags(_) | SettingsError::File(_) | SettingsError::Placed { .. } => Vec::new(),
            SettingsError::Name { flag, .. }
            | SettingsError::Range { flag, .. }
            | SettingsError::Unspecified { flag, .. } => vec![flag],
            SettingsError::Limits(LimitError { small, large }) => vec![small, large],
            SettingsError::MemoryStorage | SettingsError::MemoryMetadata => vec!["storage", "metadata"],
            SettingsError::Metadata { .. } => vec!["metadata"],
            SettingsError::Memory { .. } => vec!["memory"],
            SettingsError::Shards { .. } => vec!["shards"],
            SettingsError::Fit { flag, .. } => vec![flag, "memory"],
            SettingsError::Path { .. } => vec!["data-dir"],
        }
    }

    fn placed(self, origins: &Origins) -> SettingsError {
        let places = origins.tell(&self.flags());
        if places.is_empty() { self } else { SettingsError::Placed { error: Box::new(self), places } }
    }
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
    pub groups: GroupLimits,
    pub memory: Memory,
}

impl Settings {
    /// Checks flags against each other and fills in what follows from others.
    pub fn resolve(args: ServeArgs) -> Result<Settings, SettingsError> {
        let origins = args.origins.clone();
        Settings::check(args).map_err(|error| error.placed(&origins))
    }

    fn check(args: ServeArgs) -> Result<Settings, SettingsError> {
        let data_dir =
            args.data_dir.to_str().ok_or_else(|| SettingsError::Path { path: args.data_dir.clone() })?;
        let storage = args.storage.clone().unwrap_or_else(|| default_storage(data_dir));
        let metadata = metadata_place(&args, &storage)?;
        advertised(["kafka-listen", "kafka-advertise"], args.kafka_listen, args.kafka_advertise.as_ref())?;
        advertised(
            ["flight-listen", "flight-advertise"],
            args.flight_listen,
            args.flight_advertise.as_ref(),
        )?;
        let memory_bytes = match args.memory {
            Some(bytes) => bytes.0,
            None => (memory_limit(Path::new(FS_ROOT)).unwrap_or(MEMORY_UNKNOWN) / 2).max(MEMORY_MIN),
        };
        let memory =
            Memory::split(memory_bytes).ok_or(SettingsError::Memory { given: Bytes(memory_bytes) })?;
        let limits = limits(&args, &memory)?;
        if args.lease_ttl < Duration::from_millis(300) || args.lease_ttl > Duration::from_mins(10) {
            let (flag, accepted) = ("lease-ttl", "300ms to 600s");
            return Err(SettingsError::Range { flag, value: format!("{:?}", args.lease_ttl), accepted });
        }
        if args.drain_timeout.is_zero() {
            let (flag, accepted) = ("drain-timeout", "more than 0s; a second signal exits at once");
            return Err(SettingsError::Range { flag, value: "0s".into(), accepted });
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
            cluster: ClusterName::new(&args.cluster)
                .map_err(|source| SettingsError::Name { flag: "cluster", source })?,
            node: NodeId(args.node_id),
            storage,
            wal_storage: args.wal_storage.clone(),
            metadata,
            kafka_database: kafka_database(&args.kafka_database)
                .map_err(|source| SettingsError::Name { flag: "kafka-database", source })?,
            shards: cores::shards(args.shards)?,
            groups: group_limits(&args, &memory)?,
            limits,
            memory,
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
            // A disk that stalls gets no faster by a second write.
            hedge_puts: needs_put_budget,
            flush_age: self.args.wal_flush_age,
            object_bytes_max: self.memory.object_bytes_max(),
            chunk_bytes_max: self.memory.chunk_bytes_max(),
            untrimmed_bytes_max: self.memory.untrimmed_bytes_max(),
            waiting_bytes_max: self.memory.waiting_bytes_max(),
            flush_bytes: self.memory.object_bytes_max().min(defaults.flush_bytes),
            ..defaults
        }
    }
}

impl Settings {
    /// Compaction within half of what flushes and upkeep may hold: the other half is for the flush beside it.
    pub fn compaction(&self) -> CompactionConfig {
        let window = (self.memory.work / 2).min(self.memory.object_bytes_max());
        CompactionConfig {
            bytes_per_second: self.args.compaction_bytes_per_second.0,
            window_bytes: window.max(CompactionConfig::WINDOW_BYTES_MIN),
        }
    }
}

/// Topics are no tables of Mink's own.
fn kafka_database(name: &str) -> Result<DatabaseName, NameError> {
    let database = DatabaseName::new(name)?;
    if database.is_internal() { Err(NameError::Reserved { name: name.into() }) } else { Ok(database) }
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
    [flag, advertise]: [&'static str; 2],
    listen: Listen,
    told: Option<&HostPort>,
) -> Result<(), SettingsError> {
    match listen {
        Listen::At(address) if address.ip().is_unspecified() && told.is_none() => {
            Err(SettingsError::Unspecified { flag, address, advertise })
        }
        _ => Ok(()),
    }
}

/// What a client may send must fit the memory: a default is cut to it, a wish that does not fit is refused.
fn fit(
    flag: &'static str,
    asked: Option<u32>,
    default: u32,
    memory: &Memory,
    amount: fn(u64) -> Amount,
    most: impl Fn(&Memory) -> u64,
) -> Result<u32, SettingsError> {
    let fits = u32::try_from(most(memory)).unwrap_or(u32::MAX);
    match asked {
        None => Ok(default.min(fits)),
        Some(asked) if asked <= fits => Ok(asked),
        Some(asked) => Err(SettingsError::Fit {
            flag,
            asked: amount(asked.into()),
            memory: Bytes(memory.total).rounded_down(),
            most: amount(fits.into()).rounded_down(),
            remedy: match Memory::least(|memory| most(memory) >= asked.into()) {
                Some(least) => format!("lower it, or give --memory {}", Bytes(least)),
                None => "lower it".into(),
            },
        }),
    }
}

fn limits(args: &ServeArgs, memory: &Memory) -> Result<Limits, SettingsError> {
    let (given, defaults) = (&args.limits, Limits::default());
    let size = |flag: &'static str, bytes: Option<Bytes>| {
        let accepted = "at least 1B and less than 2GiB";
        let in_range = |bytes: Bytes| {
            let taken = u32::try_from(bytes.0).ok().filter(|n| *n > 0 && i32::try_from(*n).is_ok());
            taken.ok_or_else(|| SettingsError::Range { flag, value: bytes.to_string(), accepted })
        };
        bytes.map(in_range).transpose()
    };
    let millis = |time: Option<Duration>, default: u64| {
        time.map_or(default, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    };
    let asked = (
        size("frame-bytes-max", given.frame_bytes_max)?,
        size("batch-bytes-max", given.batch_bytes_max)?,
        size("fetch-bytes-max", given.fetch_bytes_max)?,
        size("inflated-bytes-max", given.inflated_bytes_max)?,
        size("flight-message-bytes-max", given.flight_message_bytes_max)?,
    );
    let (frame, batch, fetch, inflated, message) = asked;
    if batch.is_some_and(|bytes| usize::try_from(bytes).is_ok_and(|bytes| bytes > ENTRY_BYTES_MAX)) {
        let (flag, accepted) =
            ("batch-bytes-max", "at most 40MiB: a batch and its neighbours must fit one PUT");
        let value = Bytes(batch.unwrap_or_default().into()).to_string();
        return Err(SettingsError::Range { flag, value, accepted });
    }
    let most = |flag, asked, default, most: fn(&Memory) -> u64| {
        fit(flag, asked, default, memory, Amount::size, most)
    };
    let (asked, default) = (given.buckets_max, defaults.buckets_max);
    let buckets_max = fit("buckets-max", asked, default, memory, Amount::Count, Memory::buckets_max)?;
    let limits = Limits {
        frame_bytes_max: most("frame-bytes-max", frame, defaults.frame_bytes_max, Memory::frame_bytes_max)?,
        frame_deadline_ms: millis(given.frame_deadline, defaults.frame_deadline_ms),
        idle_deadline_ms: millis(given.idle_deadline, defaults.idle_deadline_ms),
        connections_max: given.connections_max.unwrap_or(defaults.connections_max),
        connections_per_address_max: given.connections_per_address_max.unwrap_or_else(|| {
            defaults.connections_per_address_max.min(given.connections_max.unwrap_or(u32::MAX))
        }),
        connections_per_second: given.connections_per_second.unwrap_or(defaults.connections_per_second),
        connections_per_address_per_second: given.connections_per_address_per_second.unwrap_or_else(|| {
            defaults.connections_per_address_per_second.min(given.connections_per_second.unwrap_or(u32::MAX))
        }),
        frame_bytes_per_second_min: size("frame-bytes-per-second-min", given.frame_bytes_per_second_min)?
            .unwrap_or(defaults.frame_bytes_per_second_min),
        requests_in_flight_max: given.requests_in_flight_max.unwrap_or(defaults.requests_in_flight_max),
        batch_bytes_max: most("batch-bytes-max", batch, defaults.batch_bytes_max, Memory::batch_bytes_max)?,
        fetch_bytes_max: most("fetch-bytes-max", fetch, defaults.fetch_bytes_max, Memory::fetch_bytes_max)?,
        inflated_bytes_max: most("inflated-bytes-max", inflated, defaults.inflated_bytes_max, |memory| {
            memory.inflating
        })?,
        flight_message_bytes_max: most(
            "flight-message-bytes-max",
            message,
            defaults.flight_message_bytes_max,
            Memory::flight_message_bytes_max,
        )?,
        buckets_per_table_max: given
            .buckets_per_table_max
            .unwrap_or(defaults.buckets_per_table_max.min(buckets_max)),
        buckets_max,
        producers_per_bucket_max: given.producers_per_bucket_max.unwrap_or(defaults.producers_per_bucket_max),
        producer_expiry_ms: millis(given.producer_expiry, defaults.producer_expiry_ms),
        producer_ids_per_second: given.producer_ids_per_second.unwrap_or(defaults.producer_ids_per_second),
    };
    limits.check()?;
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use std::ffi::OsString;

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
        assert_eq!(resolve(&["--memory", "16GiB"]).expect("valid").limits, Limits::default());
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
    fn i20_a_small_memory_cuts_the_defaults_and_refuses_wishes_with_the_remedy() {
        for memory in ["128MiB", "256MiB", "1GiB", "16GiB"] {
            let settings = resolve(&["--memory", memory]).expect("valid");
            assert_eq!(settings.wal(true).check(), Ok(()), "{memory}");
            assert_eq!(settings.limits.check(), Ok(()), "{memory}");
        }
        let small = resolve(&["--memory", "256MiB"]).expect("valid").limits;
        assert!(
            small.frame_bytes_max < Limits::default().frame_bytes_max && small.batch_bytes_max > 16 << 20
        );
        let error = resolve(&["--memory", "256MiB", "--batch-bytes-max", "32MiB"]).expect_err("refused");
        assert!(error.to_string().contains("give --memory 512MiB"), "{error}");
        resolve(&["--memory", "512MiB", "--batch-bytes-max", "32MiB"]).expect("as the remedy says");
    }

    #[test]
    fn i20_refusals_of_sizes_are_told_in_units() {
        let words = |flags: &[&str]| resolve(flags).expect_err("refused").to_string();
        assert_eq!(words(&["--memory", "64MiB"]), "--memory 64MiB is too little; give at least 128MiB");
        assert_eq!(
            words(&["--memory", "1GiB", "--frame-bytes-max", "1073741824"]),
            "--frame-bytes-max 1GiB does not fit --memory 1GiB, which has room for 96MiB; lower it"
        );
        assert!(words(&["--frame-bytes-max", "3GiB"]).contains("3GiB is out of range"));
        assert!(words(&["--memory", "128MiB", "--buckets-max", "100000"]).contains("100000 does not fit"));
    }

    #[test]
    fn a_password_stays_out_of_messages() {
        let error = resolve(&["--metadata", "postgres://me:secret@host/db"]).expect_err("not yet");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn what_cannot_work_is_refused_before_anything_starts() {
        for flags in [
            &["--memory", "127MiB"][..],
            &["--memory", "128MiB", "--frame-bytes-max", "64MiB"],
            &["--memory", "256MiB", "--batch-bytes-max", "32MiB"],
            &["--memory", "256MiB", "--buckets-max", "100000"],
            &["--lease-ttl", "1ms"],
            &["--drain-timeout", "0s"],
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
    fn a_wrong_value_of_the_file_is_refused_by_its_key() {
        let refused = |text: &str, flags: &[&str]| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), text).expect("written");
            let path = file.path().to_str().expect("text");
            let all: Vec<&str> = ["--config", path].iter().chain(flags).copied().collect();
            (resolve(&all).expect_err("refused").to_string(), path.to_owned())
        };
        for (text, key) in [
            // Not of its kind; of its kind and out of range; in conflict with another.
            ("node-id = \"seven\"", "node-id"),
            ("[wal]\nlinger = \"50 parsec\"", "wal-linger"),
            ("log-format = \"xml\"", "log-format"),
            ("lease-ttl = \"1ms\"", "lease-ttl"),
            ("cluster = \"a/b\"", "cluster"),
            ("kafka-listen = \"0.0.0.0:9092\"", "kafka-listen"),
            ("frame-bytes-max = \"1KiB\"", "frame-bytes-max"),
        ] {
            let (words, path) = refused(text, &[]);
            assert!(words.contains(&format!("key {key:?} of {path}")), "{words}");
        }
        let (words, path) = refused("wal-linger = \"5ms\"", &["--node-id", "seven"]);
        assert!(!words.contains(&path), "typed, and not of the file: {words}");
        let (words, path) = refused("lease-ttl = \"5s\"", &["--lease-ttl", "1ms"]);
        assert!(!words.contains(&path), "typed, and not of the file: {words}");
        let (words, path) = refused("storag = \"memory://\"", &[]);
        assert!(words.contains("did you mean \"storage\"?") && words.contains(&path), "{words}");
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
