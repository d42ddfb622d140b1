//! Options by the names and values that users type.
//!
//! Lives on: anywhere (pure).
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
fn what_was_changed_is_listed_and_goes_back() {
    let limits = Limits::default();
    let new = TableOptions { format: LogFormat::Arrow, ..TableOptions::default() };
    assert_eq!(new.changed(), []);
    for (name, value) in [
        ("bucket.num", "3"),
        ("table.log.ttl", "-1"),
        ("table.log.retention-bytes", "5"),
        ("max.message.bytes", "7"),
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "LogAppendTime"),
        ("table.log.arrow.compression", "lz4"),
        ("segment.bytes", "1048576"),
    ] {
        let mut options = new.clone();
        options.set(name, value, &limits).expect(name);
        assert_eq!(options.changed(), [(name, value.to_owned())]);
        assert!(options.list().contains(&(name, value.to_owned())), "{name}");
        assert!(options.reset(name));
        assert_eq!(options, new, "{name}");
    }
    let mut raw = TableOptions { kafka_value: KafkaValueFormat::Raw, ..new.clone() };
    assert_eq!(raw.changed(), [("kafka.value.format", "raw".to_owned())]);
    assert!(raw.reset("kafka.value.format") && raw == new);
    assert!(!new.clone().reset("no.such"));
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
fn a_table_with_columns_has_options_that_a_topic_has_not() {
    let limits = Limits::default();
    let arrow = TableOptions { format: LogFormat::Arrow, ..TableOptions::default() };
    for value in ["lz4", "none"] {
        let mut typed = arrow.clone();
        typed.set("table.log.arrow.compression", value, &limits).expect("valid");
        assert_eq!((typed.arrow_compression.as_str(), typed.check()), (value, Ok(())));
        let topic = TableOptions { format: LogFormat::Kafka, ..typed };
        let name = "table.log.arrow.compression";
        assert_eq!(topic.check(), Err(OptionError::TopicHasNone { name }));
    }
    let raw = TableOptions { kafka_value: KafkaValueFormat::Raw, ..arrow.clone() };
    assert_eq!(raw.check(), Ok(()));
    let topic = TableOptions { format: LogFormat::Kafka, ..raw };
    assert_eq!(topic.check(), Err(OptionError::TopicHasNone { name: "kafka.value.format" }));
    let defaults = [arrow.format.as_str(), arrow.arrow_compression.as_str(), arrow.kafka_value.as_str()];
    assert_eq!(defaults, ["arrow", "zstd", "json"]);
    let compacted = TableOptions { cleanup: CleanupPolicy::CompactDelete, ..arrow };
    assert_eq!(compacted.check(), Err(OptionError::NoKeyToCompact));
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
        ("bucket.key", "a"),
        ("table.log.arrow.compression", "gzip"),
        ("kafka.value.format", "avro"),
        ("kafka.value.format", "raw"),
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

#[test]
fn a_refused_value_and_a_name_that_is_none_say_what_is_taken() {
    let limits = Limits { buckets_per_table_max: 64, batch_bytes_max: 1_000, ..Limits::default() };
    for (name, value, said) in [
        ("bucket.num", "x", "use a whole number from 1 to 64, "),
        ("bucket.num", "65", "use a whole number from 1 to 64, "),
        ("max.message.bytes", "1001", "use bytes, from 1 to 1000, "),
        ("kafka.value.format", "raw", "use json; raw "),
        ("segment.bytes", "1", "use a whole number from 1048576 to 2147483647"),
        ("segment.ms", "0", "use a whole number, 1 or more"),
        ("compression.gzip.level", "0", "from 1 to 9, or -1"),
        ("bucket.nums", "1", "did you mean bucket.num?"),
        ("kafka.value.fromat", "1", "did you mean kafka.value.format?"),
        ("segment.byte", "1", "did you mean segment.bytes?"),
        ("nonsense", "1", "`mink table create --help` list"),
    ] {
        let error = TableOptions::default().set(name, value, &limits).expect_err(name).to_string();
        assert!(error.contains(said), "{error}");
    }
    for name in RULING {
        let refused = TableOptions::default().set(name, "\u{0}", &limits);
        assert!(!matches!(refused, Err(OptionError::Unknown { .. })), "{name} is no option");
    }
}
