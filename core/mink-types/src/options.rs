//! Options of a table: parsed from the names users type, with the remedy in each refusal (FEATURES section 2).
//!
//! Lives on: anywhere (pure).
use crate::Limits;

/// How a table's batches are stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogFormat {
    /// Kafka record batches, as sent.
    Kafka,
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
}

/// An option that cannot be taken; names it and says what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    #[error("unknown table option {name:?}; see `mink table create --help` for the list")]
    Unknown { name: String },
    #[error("option {name}: {value:?} is not accepted; use {accepted}")]
    Value { name: String, value: String, accepted: &'static str },
    #[error("option {name}={value} is not supported: {why}")]
    Unsupported { name: String, value: String, why: &'static str },
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
        }
    }
}

/// Topic configurations of Kafka that Mink takes and has no use for: the store replicates, segments are objects.
const KAFKA_IGNORED: [&str; 22] = [
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "message.downconversion.enable",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
];

impl TableOptions {
    /// Sets one option by the name a user typed: Mink's own or Kafka's for the same thing.
    pub fn set(&mut self, name: &str, value: &str, limits: &Limits) -> Result<(), OptionError> {
        let refuse = |accepted| OptionError::Value { name: name.into(), value: value.into(), accepted };
        match name {
            "bucket.num" => {
                let count = value.parse().ok().filter(|&n| n >= 1 && n <= limits.buckets_per_table_max);
                self.buckets =
                    count.ok_or_else(|| refuse("a whole number from 1 to the limit table.buckets-max"))?;
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
            "cleanup.policy" => match value {
                "delete" => {}
                "compact" | "compact,delete" | "delete,compact" => {
                    let why = "compacted topics are primary-key tables, which this version does not have; use delete";
                    return Err(OptionError::Unsupported { name: name.into(), value: value.into(), why });
                }
                _ => return Err(refuse("delete")),
            },
            "message.timestamp.type" => match value {
                "CreateTime" => {}
                "LogAppendTime" => {
                    let why = "batches are stored as sent; use CreateTime";
                    return Err(OptionError::Unsupported { name: name.into(), value: value.into(), why });
                }
                _ => return Err(refuse("CreateTime")),
            },
            ignored if KAFKA_IGNORED.contains(&ignored) => {}
            _ => return Err(OptionError::Unknown { name: name.into() }),
        }
        Ok(())
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
        options.set("segment.bytes", "100", &limits).expect("taken and ignored, as Kafka's own names are");
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_words() {
        let limits = Limits::default();
        let mut options = TableOptions::default();
        for (name, value) in [
            ("cleanup.policy", "compact"),
            ("message.timestamp.type", "LogAppendTime"),
            ("bucket.num", "0"),
            ("max.message.bytes", "-5"),
            ("retention.ms", "-2"),
            ("no.such", "1"),
        ] {
            let error = options.set(name, value, &limits).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(options, TableOptions::default());
    }
}
