//! Configurations of brokers, and of tables from feature level 5 on.
use super::*;
use crate::{
    BROKER_CONFIG_NAME_BYTES_MAX, BROKER_CONFIG_VALUE_BYTES_MAX, BROKER_CONFIGS_MAX, BrokerConfigChange,
    ConfigScope, FEATURE_LEVEL_CONFIGS, Invalid, KEPT_CONFIGS_MAX, LimitKind, RefusalKind, TableChange,
};
use mink_types::{CleanupPolicy, KEPT_VALUE_BYTES_MAX, TimestampType};
use std::collections::BTreeMap;

fn at_level(level: u32) -> Log {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in 2..=level {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: level, ..registration(1) }));
    log
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A change from what the scope has.
fn alter(log: &Log, scope: ConfigScope, configs: BTreeMap<String, String>) -> Command {
    let seen = log.state.broker_configs(scope).clone();
    Command::AlterBrokerConfigs(BrokerConfigChange { scope, seen, configs })
}

const ONE: ConfigScope = ConfigScope::Node(NodeId(1));

#[test]
fn a_brokers_own_value_goes_before_that_of_all_and_survives_a_restore() {
    let mut log = at_level(FEATURE_LEVEL_CONFIGS);
    let all = alter(&log, ConfigScope::Cluster, map(&[("a", "1"), ("b", "2")]));
    log.done(all);
    let own = alter(&log, ONE, map(&[("b", "3")]));
    log.done(own);
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    for state in [&log.state, &restored] {
        assert_eq!(state.broker_configs(ONE), &map(&[("b", "3")]));
        assert_eq!(
            ["a", "b", "c"].map(|name| state.broker_config(NodeId(1), name)),
            [Some("1"), Some("3"), None]
        );
        assert_eq!(state.broker_config(NodeId(2), "b"), Some("2"));
    }
    let removed = alter(&log, ONE, map(&[]));
    log.done(removed);
    assert_eq!(log.state.broker_config(NodeId(1), "b"), Some("2"));
    let bare = alter(&log, ConfigScope::Cluster, map(&[]));
    log.done(bare);
    assert_eq!(log.state.broker_configs.len(), 0, "a scope without a value is none");
}

#[test]
fn of_two_changes_that_saw_the_same_values_the_second_is_refused() {
    let mut log = at_level(FEATURE_LEVEL_CONFIGS);
    let (first, second) = (alter(&log, ONE, map(&[("a", "1")])), alter(&log, ONE, map(&[("b", "1")])));
    log.done(first);
    let refusal = log.refused(second);
    assert_eq!((refusal.kind(), refusal), (RefusalKind::Stale, Refusal::BrokerConfigsChanged));
    let restored = State::restore(&log.state.snapshot()).expect("the refusal is kept with its session");
    assert_eq!(restored.digest(), log.state.digest());
}

#[test]
fn configurations_are_bounded_and_belong_to_nodes_that_were_there() {
    let mut log = at_level(FEATURE_LEVEL_CONFIGS);
    let stranger = alter(&log, ConfigScope::Node(NodeId(9)), map(&[("a", "1")]));
    assert_eq!(log.refused(stranger), Refusal::Invalid(Invalid::UnknownNode));
    let names = |count: usize| (0..count).map(|at| (format!("n{at}"), "v".to_owned())).collect();
    let most = alter(&log, ONE, names(BROKER_CONFIGS_MAX));
    log.done(most);
    let more = alter(&log, ONE, names(BROKER_CONFIGS_MAX + 1));
    let limit = |limit, max: usize| Refusal::Limit { limit, max: max as u64 };
    assert_eq!(log.refused(more), limit(LimitKind::BrokerConfigs, BROKER_CONFIGS_MAX));
    let nameless = alter(&log, ONE, map(&[("", "1")]));
    assert_eq!(log.refused(nameless), Refusal::Invalid(Invalid::EmptyName));
    for (name, value, max) in [
        (BROKER_CONFIG_NAME_BYTES_MAX, BROKER_CONFIG_VALUE_BYTES_MAX, None),
        (BROKER_CONFIG_NAME_BYTES_MAX + 1, 0, Some(BROKER_CONFIG_NAME_BYTES_MAX)),
        (1, BROKER_CONFIG_VALUE_BYTES_MAX + 1, Some(BROKER_CONFIG_VALUE_BYTES_MAX)),
    ] {
        let change = alter(&log, ONE, map(&[("n".repeat(name).as_str(), "v".repeat(value).as_str())]));
        match max {
            None => _ = log.done(change),
            Some(max) => assert_eq!(log.refused(change), limit(LimitKind::TextBytes, max)),
        }
    }
}

#[test]
fn nothing_of_level_5_is_accepted_below_it() {
    let mut log = at_level(FEATURE_LEVEL_CONFIGS - 1);
    let early = Refusal::Invalid(Invalid::FeatureLevel);
    let change = alter(&log, ConfigScope::Cluster, map(&[("a", "1")]));
    assert_eq!(log.refused(change), early);
    let id = log.create("kafka.t", 1);
    let plain = log.state.table(id).expect("there").options.clone();
    let appended = TableOptions { timestamps: TimestampType::LogAppendTime, ..plain.clone() };
    let compacted = TableOptions { cleanup: CleanupPolicy::CompactDelete, ..plain.clone() };
    let kept = TableOptions { kept: map(&[("segment.ms", "1")]).into(), ..plain.clone() };
    for options in [appended, compacted, kept] {
        let new = NewTable { options: options.clone(), ..new_table("kafka.n", 1) };
        assert_eq!(log.refused(Command::CreateTable(new)), early);
        let change = TableChange { id, seen: plain.clone(), options, schema: None, buckets_max: 10 };
        assert_eq!(log.refused(Command::AlterTable(change)), early);
    }
}

#[test]
fn i20_what_a_table_keeps_is_bounded_and_survives_a_snapshot() {
    let mut log = at_level(FEATURE_LEVEL_CONFIGS);
    let with = |name: &str, kept: BTreeMap<String, String>| {
        let new = new_table(name, 1);
        let options = TableOptions { kept: kept.into(), ..new.options };
        Command::CreateTable(NewTable { options, ..new })
    };
    let names = |count: usize| (0..count).map(|at| (format!("n{at}"), "v".to_owned())).collect();
    let limit = |limit, max: usize| Refusal::Limit { limit, max: max as u64 };
    assert_eq!(
        log.refused(with("kafka.t", names(KEPT_CONFIGS_MAX + 1))),
        limit(LimitKind::KeptConfigs, KEPT_CONFIGS_MAX)
    );
    let long = "v".repeat(BROKER_CONFIG_VALUE_BYTES_MAX + 1);
    assert_eq!(
        log.refused(with("kafka.t", map(&[("n", long.as_str())]))),
        limit(LimitKind::TextBytes, BROKER_CONFIG_VALUE_BYTES_MAX)
    );
    assert_eq!(log.refused(with("kafka.t", map(&[("", "1")]))), Refusal::Invalid(Invalid::EmptyName));
    log.done(with("kafka.t", names(KEPT_CONFIGS_MAX)));
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    let table = restored.table_at(&path("kafka.t")).expect("there");
    assert_eq!(table.options.kept.iter().count(), KEPT_CONFIGS_MAX);
    let (id, seen) = (table.id, table.options.clone());
    let options = TableOptions { kept: names(KEPT_CONFIGS_MAX + 1).into(), ..seen.clone() };
    let change = TableChange { id, seen, options, schema: None, buckets_max: 10 };
    assert_eq!(log.refused(Command::AlterTable(change)), limit(LimitKind::KeptConfigs, KEPT_CONFIGS_MAX));
}

const _: () = assert!(KEPT_VALUE_BYTES_MAX == BROKER_CONFIG_VALUE_BYTES_MAX);
