//! Options of a table: parsed from the names users type, with the remedy in each refusal (FEATURES section 2).
//!
//! Lives on: anywhere (pure).
use crate::closest::closest;
use crate::{Kept, KeptConfigs, Limits};
use std::borrow::Cow;

/// How a table's batches are stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogFormat {
    /// Kafka record batches, as sent.
    Kafka,
    /// Arrow record batches: rows of a table with columns.
    Arrow,
}

impl LogFormat {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            LogFormat::Kafka => "kafka",
            LogFormat::Arrow => "arrow",
        }
    }
}

/// How the columns of Arrow batches are compressed: `table.log.arrow.compression`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ArrowCompression {
    None,
    Lz4,
    #[default]
    Zstd,
}

impl ArrowCompression {
    const ALL: [ArrowCompression; 3] =
        [ArrowCompression::None, ArrowCompression::Lz4, ArrowCompression::Zstd];

    pub fn as_str(self) -> &'static str {
        match self {
            ArrowCompression::None => "none",
            ArrowCompression::Lz4 => "lz4",
            ArrowCompression::Zstd => "zstd",
        }
    }

    fn parse(text: &str) -> Option<ArrowCompression> {
        ArrowCompression::ALL.into_iter().find(|compression| compression.as_str() == text)
    }
}

/// What Kafka clients see of a row of a table with columns: `kafka.value.format`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum KafkaValueFormat {
    /// The columns as one JSON object.
    #[default]
    Json,
    /// The bytes of the only column. Nobody serves it yet, so it cannot be set; a log may have tables with it, which are no topics.
    Raw,
}

impl KafkaValueFormat {
    pub fn as_str(self) -> &'static str {
        match self {
            KafkaValueFormat::Json => "json",
            KafkaValueFormat::Raw => "raw",
        }
    }
}

/// Which time the records of a table bear.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TimestampType {
    /// What the producer says.
    #[default]
    CreateTime,
    /// When the batch got its offsets.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        }
    }

    fn parse(text: &str) -> Option<TimestampType> {
        [TimestampType::CreateTime, TimestampType::LogAppendTime]
            .into_iter()
            .find(|kind| kind.as_str() == text.trim())
    }
}

/// Why records of a table may go. The two that name both mean the same: a value is shown as it was set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum CleanupPolicy {
    /// By age and size.
    #[default]
    Delete,
    /// Never by age or size; the newest record of each key stays.
    Compact,
    CompactDelete,
    DeleteCompact,
    /// Never. Kafka's empty list.
    None,
}

impl CleanupPolicy {
    const ALL: [CleanupPolicy; 5] = [
        CleanupPolicy::Delete,
        CleanupPolicy::Compact,
        CleanupPolicy::CompactDelete,
        CleanupPolicy::DeleteCompact,
        CleanupPolicy::None,
    ];

    /// Kafka's list of it.
    pub fn as_str(self) -> &'static str {
        match self {
            CleanupPolicy::Delete => "delete",
            CleanupPolicy::Compact => "compact",
            CleanupPolicy::CompactDelete => "compact,delete",
            CleanupPolicy::DeleteCompact => "delete,compact",
            CleanupPolicy::None => "",
        }
    }

    /// Whether records go by age and size.
    pub fn deletes(self) -> bool {
        !matches!(self, CleanupPolicy::Compact | CleanupPolicy::None)
    }

    /// Whether each record must have a key, by which a later one supersedes it.
    pub fn compacts(self) -> bool {
        !matches!(self, CleanupPolicy::Delete | CleanupPolicy::None)
    }

    /// Kafka's reading of a list: what is named twice counts once.
    fn parse(text: &str) -> Option<CleanupPolicy> {
        let mut named: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim) {
            if part.is_empty() && !text.trim().is_empty() {
                return None;
            }
            if !named.contains(&part) {
                named.push(part);
            }
            // No policy has three; the text may be long.
            if named.len() > 2 {
                return None;
            }
        }
        let list = named.join(",");
        CleanupPolicy::ALL.into_iter().find(|policy| policy.as_str() == list)
    }
}

/// Options of a log table. What is absent has Kafka's or FEATURES' default.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableOptions {
    pub format: LogFormat,
    /// `bucket.num`: buckets, from 1.
    pub buckets: u32,
    /// `table.log.ttl` in ms by commit time; none keeps for ever (`-1`). Kafka's `retention.ms`.
    pub log_ttl_ms: Option<u64>,
    /// `table.log.retention-bytes` per bucket; none has no bound (`-1`). Kafka's `retention.bytes`.
    pub retention_bytes: Option<u64>,
    /// Largest batch in bytes. Kafka's `max.message.bytes`.
    pub batch_bytes_max: u32,
    /// Kafka's `message.timestamp.type`.
    pub timestamps: TimestampType,
    /// Kafka's `cleanup.policy`.
    pub cleanup: CleanupPolicy,
    /// `table.log.arrow.compression`; of use in format arrow alone, as the next.
    pub arrow_compression: ArrowCompression,
    /// `kafka.value.format`.
    pub kafka_value: KafkaValueFormat,
    /// What Kafka's clients have set, and nothing here goes by.
    pub kept: KeptConfigs,
}

/// An option that cannot be taken; names it and says what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    #[error("unknown table option {name:?}; {}", TableOptions::nearest(name))]
    Unknown { name: String },
    #[error("option {name}: {value:?} is not accepted; use {accepted}")]
    Value { name: String, value: String, accepted: Cow<'static, str> },
    #[error("min.compaction.lag.ms must not be above max.compaction.lag.ms")]
    Lags,
    #[error("option {name} is for tables with columns; leave it out for topics that Kafka clients make")]
    TopicHasNone { name: &'static str },
    #[error("option cleanup.policy: a log of rows has no key to compact by; use delete")]
    NoKeyToCompact,
}

/// Seven days, in ms: the default of `table.log.ttl`.
pub const LOG_TTL_MS_DEFAULT: u64 = 7 * 24 * 60 * 60 * 1000;

/// Kafka's default of `max.message.bytes`.
pub const BATCH_BYTES_MAX_DEFAULT: u32 = 1_048_588;

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            format: LogFormat::Kafka,
            buckets: 1,
            log_ttl_ms: Some(LOG_TTL_MS_DEFAULT),
            retention_bytes: None,
            batch_bytes_max: BATCH_BYTES_MAX_DEFAULT,
            timestamps: TimestampType::CreateTime,
            cleanup: CleanupPolicy::Delete,
            arrow_compression: ArrowCompression::default(),
            kafka_value: KafkaValueFormat::default(),
            kept: KeptConfigs::default(),
        }
    }
}

/// Topic configurations that Kafka had before 4.0 and that tools still send: taken, and of no use.
const OF_OLD: [&str; 2] = ["message.downconversion.enable", "message.timestamp.difference.max.ms"];

/// Options that something goes by, by all their names.
const RULING: [&str; 10] = [
    "bucket.num",
    "table.log.ttl",
    "retention.ms",
    "table.log.retention-bytes",
    "retention.bytes",
    "max.message.bytes",
    "cleanup.policy",
    "message.timestamp.type",
    "table.log.arrow.compression",
    "kafka.value.format",
];

impl TableOptions {
    /// What to say to a name that is none.
    fn nearest(name: &str) -> String {
        let known = RULING.into_iter().chain(Kept::ALL.iter().map(|kept| kept.name));
        match closest(name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "docs/sql.md and `mink table create --help` list those that are".into(),
        }
    }

    /// Sets one option by the name a user typed: Mink's own or Kafka's for the same thing.
    pub fn set(&mut self, name: &str, value: &str, limits: &Limits) -> Result<(), OptionError> {
        let refuse_as = |accepted| OptionError::Value { name: name.into(), value: value.into(), accepted };
        let refuse = |accepted: &'static str| refuse_as(Cow::Borrowed(accepted));
        match name {
            "bucket.num" => {
                let most = limits.buckets_per_table_max;
                let count = value.parse().ok().filter(|&n| n >= 1 && n <= most);
                self.buckets = count.ok_or_else(|| {
                    let accepted =
                        format!("a whole number from 1 to {most}, the node's --buckets-per-table-max");
                    refuse_as(accepted.into())
                })?;
            }
            "table.log.ttl" | "retention.ms" => {
                self.log_ttl_ms = bound(value).map_err(|_| refuse("milliseconds, or -1 for ever"))?;
            }
            "table.log.retention-bytes" | "retention.bytes" => {
                self.retention_bytes =
                    bound(value).map_err(|_| refuse("bytes per bucket, or -1 for no bound"))?;
            }
            "max.message.bytes" => {
                let most = limits.batch_bytes_max;
                let bytes = value.parse().ok().filter(|&n| n >= 1 && n <= most);
                self.batch_bytes_max = bytes.ok_or_else(|| {
                    refuse_as(format!("bytes, from 1 to {most}, the node's --batch-bytes-max").into())
                })?;
            }
            "cleanup.policy" => {
                self.cleanup =
                    CleanupPolicy::parse(value).ok_or_else(|| refuse("delete, compact or compact,delete"))?;
            }
            "message.timestamp.type" => {
                self.timestamps =
                    TimestampType::parse(value).ok_or_else(|| refuse("CreateTime or LogAppendTime"))?;
            }
            "table.log.arrow.compression" => {
                self.arrow_compression =
                    ArrowCompression::parse(value).ok_or_else(|| refuse("none, lz4 or zstd"))?;
            }
            "kafka.value.format" => {
                if value != KafkaValueFormat::Json.as_str() {
                    return Err(refuse("json; raw and avro are not there yet"));
                }
                self.kafka_value = KafkaValueFormat::Json;
            }
            _ if OF_OLD.contains(&name) => {}
            _ => {
                let kept = Kept::named(name).ok_or_else(|| OptionError::Unknown { name: name.into() })?;
                self.kept.set(name.into(), kept.value(value).map_err(refuse_as)?);
            }
        }
        Ok(())
    }

    /// All options with their values, by Mink's own names, as users type them.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        let bound = |value: Option<u64>| value.map_or_else(|| "-1".into(), |value| value.to_string());
        let ruling = [
            ("bucket.num", self.buckets.to_string()),
            ("table.log.ttl", bound(self.log_ttl_ms)),
            ("table.log.retention-bytes", bound(self.retention_bytes)),
            ("max.message.bytes", self.batch_bytes_max.to_string()),
            ("cleanup.policy", self.cleanup.as_str().to_owned()),
            ("message.timestamp.type", self.timestamps.as_str().to_owned()),
        ];
        let typed = [
            ("table.log.arrow.compression", self.arrow_compression.as_str().to_owned()),
            ("kafka.value.format", self.kafka_value.as_str().to_owned()),
        ];
        let typed = typed.into_iter().filter(|_| self.format == LogFormat::Arrow);
        let kept =
            Kept::ALL.iter().filter_map(|kept| Some((kept.name, self.kept.get(kept.name)?.to_owned())));
        ruling.into_iter().chain(typed).chain(kept).collect()
    }

    /// Those of [`TableOptions::list`] that are not what a new table of the format has.
    pub fn changed(&self) -> Vec<(&'static str, String)> {
        let new = TableOptions { format: self.format, ..TableOptions::default() }.list();
        self.list().into_iter().filter(|option| !new.contains(option)).collect()
    }

    /// Gives an option its default again; false for a name that is none.
    pub fn reset(&mut self, name: &str) -> bool {
        let new = TableOptions::default();
        match name {
            "bucket.num" => self.buckets = new.buckets,
            "table.log.ttl" | "retention.ms" => self.log_ttl_ms = new.log_ttl_ms,
            "table.log.retention-bytes" | "retention.bytes" => self.retention_bytes = new.retention_bytes,
            "max.message.bytes" => self.batch_bytes_max = new.batch_bytes_max,
            "cleanup.policy" => self.cleanup = new.cleanup,
            "message.timestamp.type" => self.timestamps = new.timestamps,
            "table.log.arrow.compression" => self.arrow_compression = new.arrow_compression,
            "kafka.value.format" => self.kafka_value = new.kafka_value,
            _ if Kept::named(name).is_some() => self.kept.remove(name),
            _ => return OF_OLD.contains(&name),
        }
        true
    }

    /// Whether what was set goes together.
    pub fn check(&self) -> Result<(), OptionError> {
        let refuse = |name| Err(OptionError::TopicHasNone { name });
        match self.format {
            LogFormat::Kafka if self.arrow_compression != ArrowCompression::default() => {
                refuse("table.log.arrow.compression")
            }
            LogFormat::Kafka if self.kafka_value != KafkaValueFormat::default() => {
                refuse("kafka.value.format")
            }
            LogFormat::Arrow if self.cleanup.compacts() => Err(OptionError::NoKeyToCompact),
            _ if !self.kept.agree() => Err(OptionError::Lags),
            _ => Ok(()),
        }
    }
}

/// A bound where `-1` means none.
fn bound(value: &str) -> Result<Option<u64>, std::num::ParseIntError> {
    if value == "-1" { Ok(None) } else { value.parse().map(Some) }
}

#[cfg(test)]
mod tests;
