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

/// Values that a configuration may have which is taken and then not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Anything,
    Boolean,
    Codec,
    /// From 0 to 1.
    Ratio,
    /// From this number on.
    Whole(i64),
}

impl Kind {
    fn accepts(self, value: &str) -> bool {
        match self {
            Kind::Anything => true,
            Kind::Boolean => value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false"),
            Kind::Codec => ["uncompressed", "producer", "gzip", "snappy", "lz4", "zstd"].contains(&value),
            Kind::Ratio => value.parse().is_ok_and(|ratio: f64| (0.0..=1.0).contains(&ratio)),
            Kind::Whole(least) => value.trim().parse().is_ok_and(|number: i64| number >= least),
        }
    }

    fn accepted(self) -> &'static str {
        match self {
            Kind::Anything => "any text",
            Kind::Boolean => "true or false",
            Kind::Codec => "producer, uncompressed, gzip, snappy, lz4 or zstd",
            Kind::Ratio => "a number from 0 to 1",
            Kind::Whole(_) => "a whole number that Kafka accepts",
        }
    }
}

/// Topic configurations of Kafka that Mink takes and has no use for (the store replicates, segments are objects), with what Kafka takes for
/// a value: a typing error is told here too. The least segment is that of Kafka before 4.0.
const KAFKA_IGNORED: [(&str, Kind); 22] = [
    ("compression.type", Kind::Codec),
    ("delete.retention.ms", Kind::Whole(0)),
    ("file.delete.delay.ms", Kind::Whole(0)),
    ("flush.messages", Kind::Whole(1)),
    ("flush.ms", Kind::Whole(0)),
    ("follower.replication.throttled.replicas", Kind::Anything),
    ("index.interval.bytes", Kind::Whole(0)),
    ("leader.replication.throttled.replicas", Kind::Anything),
    ("local.retention.bytes", Kind::Whole(-2)),
    ("local.retention.ms", Kind::Whole(-2)),
    ("max.compaction.lag.ms", Kind::Whole(1)),
    ("message.downconversion.enable", Kind::Boolean),
    ("message.timestamp.after.max.ms", Kind::Whole(0)),
    ("message.timestamp.before.max.ms", Kind::Whole(0)),
    ("message.timestamp.difference.max.ms", Kind::Whole(0)),
    ("min.cleanable.dirty.ratio", Kind::Ratio),
    ("min.compaction.lag.ms", Kind::Whole(0)),
    ("min.insync.replicas", Kind::Whole(1)),
    ("segment.bytes", Kind::Whole(14)),
    ("segment.index.bytes", Kind::Whole(4)),
    ("segment.jitter.ms", Kind::Whole(0)),
    ("segment.ms", Kind::Whole(1)),
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
            _ => match KAFKA_IGNORED.iter().find(|(ignored, _)| *ignored == name) {
                None => return Err(OptionError::Unknown { name: name.into() }),
                Some((_, kind)) if !kind.accepts(value) => return Err(refuse(kind.accepted())),
                Some(_) => {}
            },
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
        for (name, value) in [
            ("segment.bytes", "100"),
            ("compression.type", "zstd"),
            ("min.cleanable.dirty.ratio", "0.5"),
            ("leader.replication.throttled.replicas", "*"),
        ] {
            options.set(name, value, &limits).expect("taken and ignored, as Kafka's own names are");
        }
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
            ("compression.type", "rar"),
            ("segment.bytes", "x"),
            ("min.insync.replicas", "0"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("message.downconversion.enable", "yes"),
        ] {
            let error = options.set(name, value, &limits).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(options, TableOptions::default());
    }
}
