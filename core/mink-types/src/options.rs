//! Options of a table: parsed from the names users type, with the remedy in each refusal (FEATURES section 2).
//!
//! Lives on: anywhere (pure).
use crate::{Kept, KeptConfigs, Limits};

/// How a table's batches are stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogFormat {
    /// Kafka record batches, as sent.
    Kafka,
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
    /// What Kafka's clients have set, and nothing here goes by.
    pub kept: KeptConfigs,
}

/// An option that cannot be taken; names it and says what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    #[error("unknown table option {name:?}; see `mink table create --help` for the list")]
    Unknown { name: String },
    #[error("option {name}: {value:?} is not accepted; use {accepted}")]
    Value { name: String, value: String, accepted: &'static str },
    #[error("min.compaction.lag.ms must not be above max.compaction.lag.ms")]
    Lags,
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
            kept: KeptConfigs::default(),
        }
    }
}

/// Topic configurations that Kafka had before 4.0 and that tools still send: taken, and of no use.
const OF_OLD: [&str; 2] = ["message.downconversion.enable", "message.timestamp.difference.max.ms"];

impl TableOptions {
    /// Sets one option by the name a user typed: Mink's own or Kafka's for the same thing.
    pub fn set(&mut self, name: &str, value: &str, limits: &Limits) -> Result<(), OptionError> {
        let refuse = |accepted| OptionError::Value { name: name.into(), value: value.into(), accepted };
        match name {
            "bucket.num" => {
                let count = value.parse().ok().filter(|&n| n >= 1 && n <= limits.buckets_per_table_max);
                self.buckets = count
                    .ok_or_else(|| refuse("a whole number from 1 to the node's --buckets-per-table-max"))?;
            }
            "table.log.ttl" | "retention.ms" => {
                self.log_ttl_ms = bound(value).map_err(|_| refuse("milliseconds, or -1 for ever"))?;
            }
            "table.log.retention-bytes" | "retention.bytes" => {
                self.retention_bytes =
                    bound(value).map_err(|_| refuse("bytes per bucket, or -1 for no bound"))?;
            }
            "max.message.bytes" => {
                let bytes = value.parse().ok().filter(|&n| n >= 1 && n <= limits.batch_bytes_max);
                self.batch_bytes_max =
                    bytes.ok_or_else(|| refuse("bytes, from 1 to the limit batch-bytes-max"))?;
            }
            "cleanup.policy" => {
                self.cleanup =
                    CleanupPolicy::parse(value).ok_or_else(|| refuse("delete, compact or compact,delete"))?;
            }
            "message.timestamp.type" => {
                self.timestamps =
                    TimestampType::parse(value).ok_or_else(|| refuse("CreateTime or LogAppendTime"))?;
            }
            _ if OF_OLD.contains(&name) => {}
            _ => {
                let kept = Kept::named(name).ok_or_else(|| OptionError::Unknown { name: name.into() })?;
                self.kept.set(name.into(), kept.value(value).map_err(refuse)?);
            }
        }
        Ok(())
    }

    /// Whether what was set goes together.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.kept.agree() { Ok(()) } else { Err(OptionError::Lags) }
    }
}

/// A bound where `-1` means none.
fn bound(value: &str) -> Result<Option<u64>, std::num::ParseIntError> {
    if value == "-1" { Ok(None) } else { value.parse().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafka_and_mink_names_set_the_same_option() {
        let limits = Limits::default();
        let mut options = TableOptions::default();
        options.set("retention.ms", "5", &limits).expect("valid");
        assert_eq!(options.log_ttl_ms, Some(5));
        options.set("table.log.ttl", "-1", &limits).expect("valid");
        assert_eq!(options.log_ttl_ms, None);
    }

    #[test]
    fn what_nothing_goes_by_is_kept_and_what_is_of_old_is_not() {
        let limits = Limits::default();
        let mut options = TableOptions::default();
        options.set("message.downconversion.enable", "true", &limits).expect("taken");
        assert_eq!(options, TableOptions::default());
        options.set("compression.type", "zstd", &limits).expect("taken");
        options.set("min.compaction.lag.ms", "10", &limits).expect("taken");
        assert_eq!(options.kept.get("compression.type"), Some("zstd"));
        assert_eq!(options.check(), Ok(()));
        options.set("max.compaction.lag.ms", "9", &limits).expect("taken alone");
        assert_eq!(options.check(), Err(OptionError::Lags));
    }

    #[test]
    fn both_policies_are_shown_in_the_order_in_which_they_were_set() {
        let limits = Limits::default();
        let mut options = TableOptions::default();
        for (value, shown, deletes, compacts) in [
            ("compact", "compact", false, true),
            ("delete , compact", "delete,compact", true, true),
            ("compact,delete", "compact,delete", true, true),
            ("delete,delete", "delete", true, false),
            (" ", "", false, false),
        ] {
            options.set("cleanup.policy", value, &limits).expect("valid");
            let policy = options.cleanup;
            assert_eq!((policy.as_str(), policy.deletes(), policy.compacts()), (shown, deletes, compacts));
        }
        options.set("message.timestamp.type", "LogAppendTime", &limits).expect("valid");
        assert_eq!(options.timestamps.as_str(), "LogAppendTime");
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_words() {
        let limits = Limits::default();
        let mut options = TableOptions::default();
        for (name, value) in [
            ("cleanup.policy", "compacted"),
            ("cleanup.policy", "delete,,compact"),
            ("message.timestamp.type", "logappendtime"),
            ("bucket.num", "0"),
            ("max.message.bytes", "-5"),
            ("retention.ms", "-2"),
            ("no.such", "1"),
            ("compression.type", "rar"),
            ("segment.bytes", "x"),
            ("min.insync.replicas", "0"),
            ("min.cleanable.dirty.ratio", "1.5"),
        ] {
            let error = options.set(name, value, &limits).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(options, TableOptions::default());
    }
}
