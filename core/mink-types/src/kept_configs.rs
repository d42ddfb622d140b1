//! Topic configurations that Kafka's clients set and read back, and that nothing here goes by (the store replicates, segments are objects):
//! which there are, what each takes, and those that a table has.
//!
//! Lives on: anywhere (pure).
//! Invariants: a value that is kept is one that Kafka would take, in the form in which Kafka shows it; a table without any pays one word.
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Longest value of a kept configuration, in bytes.
pub const KEPT_VALUE_BYTES_MAX: usize = 1_024;

/// What a value is, with the range of numbers that is taken, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptKind {
    Boolean,
    /// A boolean of which only `false` can be had.
    False,
    Int(i64, i64),
    Long(i64, i64),
    /// A number from 0 to 1.
    Ratio,
    /// One of these, to the letter.
    OneOf(&'static [&'static str]),
    /// `*`, or pairs of partition and broker with a colon between.
    Replicas,
}

/// A configuration that is kept, by Kafka's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    pub name: &'static str,
    pub kind: KeptKind,
    /// What holds while nobody has set it.
    pub default: &'static str,
}

const fn kept(name: &'static str, kind: KeptKind, default: &'static str) -> Kept {
    Kept { name, kind, default }
}

use KeptKind::{Boolean, False, Int, Long, OneOf, Ratio, Replicas};

const INT_MAX: i64 = i32::MAX as i64;
const MAX: i64 = i64::MAX;
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const LEAST_LAG: &str = "min.compaction.lag.ms";
const GZIP_LEVEL: &str = "compression.gzip.level";
const MOST_LAG: &str = "max.compaction.lag.ms";

impl Kept {
    /// In the order of their names, with the ranges and defaults of Kafka 4.4. One default is another: no time of a record is too far ahead.
    #[rustfmt::skip]
    pub const ALL: &'static [Kept] = &[
        kept(GZIP_LEVEL, Int(-1, 9), "-1"),
        kept("compression.lz4.level", Int(1, 17), "9"),
        kept("compression.type", OneOf(CODECS), "producer"),
        kept("compression.zstd.level", Int(-131_072, 22), "3"),
        kept("delete.retention.ms", Long(0, MAX), "86400000"),
        kept("errors.deadletterqueue.group.enable", Boolean, "false"),
        kept("file.delete.delay.ms", Long(0, MAX), "60000"),
        kept("flush.messages", Long(1, MAX), "9223372036854775807"),
        kept("flush.ms", Long(0, MAX), "9223372036854775807"),
        kept("follower.replication.throttled.replicas", Replicas, ""),
        kept("index.interval.bytes", Int(0, INT_MAX), "4096"),
        kept("leader.replication.throttled.replicas", Replicas, ""),
        kept("local.retention.bytes", Long(-2, MAX), "-2"),
        kept("local.retention.ms", Long(-2, MAX), "-2"),
        kept(MOST_LAG, Long(1, MAX), "9223372036854775807"),
        kept("message.timestamp.after.max.ms", Long(0, MAX), "9223372036854775807"),
        kept("message.timestamp.before.max.ms", Long(0, MAX), "9223372036854775807"),
        kept("min.cleanable.dirty.ratio", Ratio, "0.5"),
        kept(LEAST_LAG, Long(0, MAX), "0"),
        kept("min.insync.replicas", Int(1, INT_MAX), "1"),
        kept("preallocate", Boolean, "false"),
        kept("remote.copy.lag.bytes", Long(-1, MAX), "-1"),
        kept("remote.copy.lag.ms", Long(-1, MAX), "0"),
        kept("remote.log.copy.disable", Boolean, "false"),
        kept("remote.log.delete.on.disable", Boolean, "false"),
        kept("remote.storage.enable", False, "false"),
        kept("segment.bytes", Int(1_048_576, INT_MAX), "1073741824"),
        kept("segment.index.bytes", Int(4, INT_MAX), "10485760"),
        kept("segment.jitter.ms", Long(0, MAX), "0"),
        kept("segment.ms", Long(1, MAX), "604800000"),
        kept("unclean.leader.election.enable", Boolean, "false"),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Kept> {
        Kept::ALL.binary_search_by(|kept| kept.name.cmp(name)).ok().and_then(|at| Kept::ALL.get(at))
    }

    /// Whether its value is a list, which one can add to and take from.
    pub fn is_list(&self) -> bool {
        self.kind == Replicas
    }

    /// A value as Kafka shows it; what would be accepted, if it is none.
    pub(crate) fn value(&self, text: &str) -> Result<String, Cow<'static, str>> {
        let text = text.trim();
        let value = match self.kind {
            Boolean | False => {
                let value = text.to_ascii_lowercase();
                (value == "false" || (value == "true" && self.kind == Boolean)).then_some(value)
            }
            Int(least, most) | Long(least, most) => {
                let number = text.parse().ok().filter(|number: &i64| (least..=most).contains(number));
                let is_taken = |number: &i64| self.name != GZIP_LEVEL || *number != 0;
                number.filter(is_taken).map(|number| number.to_string())
            }
            Ratio => {
                let ratio = text.parse().ok().filter(|ratio: &f64| (0.0..=1.0).contains(ratio));
                ratio.map(|ratio| format!("{ratio:?}"))
            }
            OneOf(values) => values.contains(&text).then(|| text.to_owned()),
            Replicas => replicas(text),
        };
        value.filter(|value| value.len() <= KEPT_VALUE_BYTES_MAX).ok_or_else(|| self.accepted())
    }

    fn accepted(&self) -> Cow<'static, str> {
        let accepted = match self.kind {
            Boolean => "true or false",
            False => "false",
            // A level of compression is none at 0.
            Int(..) if self.name == GZIP_LEVEL => "a whole number from 1 to 9, or -1",
            Int(least, MAX) | Long(least, MAX) => {
                return format!("a whole number, {least} or more").into();
            }
            Int(least, most) | Long(least, most) => {
                return format!("a whole number from {least} to {most}").into();
            }
            Ratio => "a number from 0 to 1",
            OneOf(_) => "producer, uncompressed, gzip, snappy, lz4 or zstd",
            Replicas => "*, or a list of partition:broker of at most 1,024 bytes",
        };
        accepted.into()
    }
}

/// Kafka's reading of a list of replicas: blanks and empty parts do not count, `*` stands alone, what is named twice counts once.
fn replicas(text: &str) -> Option<String> {
    let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let is_pair =
        |part: &str| part.split_once(':').is_some_and(|(one, two)| is_number(one) && is_number(two));
    // Looked through once before anything is compared with all that precedes it: the text may be long.
    let is_all = parts().take(2).eq(["*"]);
    if text.len() > 4 * KEPT_VALUE_BYTES_MAX || !(is_all || parts().all(is_pair)) {
        return None;
    }
    let mut named: Vec<&str> = Vec::new();
    for part in parts() {
        if !named.contains(&part) {
            named.push(part);
        }
    }
    Some(named.join(","))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Values by name, of one table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[expect(clippy::box_collection, reason = "most tables have none, and pay one word instead of three")]
pub struct KeptConfigs(Option<Box<BTreeMap<String, String>>>);

impl KeptConfigs {
    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|map| map.iter()).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.as_ref()?.get(name).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of names and values.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    pub fn set(&mut self, name: String, value: String) {
        self.0.get_or_insert_default().insert(name, value);
    }

    pub fn remove(&mut self, name: &str) {
        let Some(map) = &mut self.0 else { return };
        map.remove(name);
        if map.is_empty() {
            self.0 = None;
        }
    }

    /// Whether the values go together, as Kafka judges it: records may not have to stay longer than they may.
    pub(crate) fn agree(&self) -> bool {
        let number = |name: &str| self.get(name).and_then(|value| value.parse::<i64>().ok());
        number(LEAST_LAG).unwrap_or(0) <= number(MOST_LAG).unwrap_or(MAX)
    }
}

impl From<BTreeMap<String, String>> for KeptConfigs {
    fn from(map: BTreeMap<String, String>) -> KeptConfigs {
        KeptConfigs((!map.is_empty()).then(|| Box::new(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_defaults_are_values() {
        assert!(Kept::ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for kept in Kept::ALL {
            assert_eq!(kept.value(kept.default).as_deref(), Ok(kept.default), "{}", kept.name);
            assert_eq!(Kept::named(kept.name), Some(kept));
        }
        assert_eq!(Kept::named("max.message.bytes"), None);
    }

    #[test]
    fn values_are_taken_as_kafka_takes_them_and_shown_as_kafka_shows_them() {
        for (name, taken, refused) in [
            ("segment.bytes", &[("1048576", "1048576")][..], &["1048575", "2147483648", "x"][..]),
            ("segment.ms", &[(" 5 ", "5"), ("+5", "5")], &["0", "-1", "1.5", "", "9223372036854775808"]),
            ("min.insync.replicas", &[("3", "3")], &["0", "2147483648"]),
            ("local.retention.ms", &[("-2", "-2")], &["-3"]),
            ("compression.type", &[(" gzip ", "gzip"), ("zstd", "zstd")], &["GZIP", "none", "rar", ""]),
            ("compression.gzip.level", &[("-1", "-1"), ("9", "9")], &["0", "10"]),
            ("min.cleanable.dirty.ratio", &[("1e-1", "0.1"), ("1", "1.0")], &["1.1", "-0.1", "x", ""]),
            ("preallocate", &[("TRUE", "true"), (" false ", "false")], &["yes", ""]),
            ("remote.storage.enable", &[("false", "false")], &["true", "yes"]),
            (
                "leader.replication.throttled.replicas",
                &[("*", "*"), ("", ""), (" 0:1 , 1:1,,0:1", "0:1,1:1")],
                &["*,0:1", "x", "1", "0:x", ":1"],
            ),
        ] {
            let kept = Kept::named(name).expect(name);
            for (value, shown) in taken {
                assert_eq!(kept.value(value).as_deref(), Ok(*shown), "{name}={value}");
            }
            for value in refused {
                assert!(!kept.value(value).expect_err(value).is_empty(), "{name}={value}");
            }
        }
    }

    #[test]
    fn i20_a_long_list_is_refused() {
        let list = |count: usize| (0..count).map(|at| format!("{at}:1")).collect::<Vec<_>>().join(",");
        let kept = Kept::named("follower.replication.throttled.replicas").expect("kept");
        assert!(kept.value(&list(150)).is_ok());
        assert!(kept.value(&list(300)).is_err());
        assert!(kept.value(&list(100_000)).is_err());
    }

    #[test]
    fn a_table_without_any_has_no_map() {
        assert_eq!(size_of::<KeptConfigs>(), size_of::<usize>());
        let mut configs = KeptConfigs::default();
        configs.set("segment.ms".into(), "1".into());
        assert_eq!((configs.is_empty(), configs.get("segment.ms")), (false, Some("1")));
        configs.remove("segment.bytes");
        assert_eq!(configs.iter().collect::<Vec<_>>(), [("segment.ms", "1")]);
        configs.remove("segment.ms");
        assert_eq!((configs.is_empty(), &configs), (true, &KeptConfigs::default()));
        assert_eq!(KeptConfigs::from(BTreeMap::new()), configs);
    }
}
