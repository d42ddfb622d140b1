//! Configurations of brokers that are set while they run: which names and values are taken.
//!
//! Lives on: anywhere (pure).
//! Invariants: what would have to mean something here, and cannot change, is refused with what to do instead: it is never kept as if it
//! held.
use super::broker_config_names::{AT_START_ONLY, Accepts, ELSEWHERE, KNOWN, Known};
use crate::node::Node;
use crate::topic::Refusal;
use mink_kafka_wire::ErrorCode;
use mink_metadata::ConfigScope;

impl Accepts {
    fn takes(self, value: &str) -> bool {
        let value = value.trim();
        match self {
            Accepts::Whole(least, most) => {
                value.parse::<i64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            Accepts::Real(least, most) => {
                value.parse::<f64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            Accepts::OneOf(values) => values.iter().any(|one| one.eq_ignore_ascii_case(value)),
            Accepts::Anything => true,
        }
    }

    fn words(self) -> String {
        match self {
            Accepts::Whole(least, i64::MAX) => format!("a whole number from {least} on"),
            Accepts::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Accepts::Real(f64::MIN, _) => "a number".into(),
            Accepts::Real(least, most) => format!("a number from {least} to {most}"),
            Accepts::OneOf(values) => values.join(", "),
            Accepts::Anything => "any text".into(),
        }
    }
}

/// The configuration of this name, if it is one that is kept without an effect.
pub(super) fn known(name: &str) -> Option<&'static Known> {
    KNOWN.binary_search_by(|known| known.name.cmp(name)).ok().and_then(|at| KNOWN.get(at))
}

/// The scope that a resource's name means, as far as this node answers for it.
pub(super) fn scope(node: &Node, name: &str) -> Result<ConfigScope, Refusal> {
    let invalid = |why: String| Err(Refusal::new(ErrorCode::InvalidRequest, why));
    let own = node.broker_id();
    match name.parse::<i32>() {
        _ if name.is_empty() => Ok(ConfigScope::Cluster),
        Ok(id) if id == own => Ok(ConfigScope::Node(node.admin.identity().node)),
        Ok(_) => invalid(format!("this is node {own}; ask the node {name} itself for its configuration")),
        Err(_) => invalid(format!("a node is named by its number, which {name:?} is not")),
    }
}

/// Whether a configuration may be set to a value. A name that nobody knows may: Kafka's plugins bring their own.
pub(super) fn check(name: &str, value: &str) -> Result<(), Refusal> {
    let invalid = |why: String| Err(Refusal::new(ErrorCode::InvalidRequest, why));
    if let Some(known) = known(name) {
        return if known.accepts.takes(value) {
            Ok(())
        } else {
            invalid(format!("{name} cannot be {value:?}; use {}", known.accepts.words()))
        };
    }
    let is = |(known, _): &&(&str, &str)| *known == name || (known.ends_with('.') && name.starts_with(known));
    if let Some((_, instead)) = ELSEWHERE.iter().find(is) {
        return invalid(format!("{name} does not change while a node runs: {instead}"));
    }
    if AT_START_ONLY.split(' ').any(|known| known == name) {
        return invalid(format!("{name} is set when a node starts; see the flags of mink serve"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_each_is_of_one_kind() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(ELSEWHERE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let at_start: Vec<&str> = AT_START_ONLY.split(' ').collect();
        assert!(at_start.windows(2).all(|pair| pair[0] < pair[1]), "no blank too many, none twice");
        assert_eq!(at_start.len(), 246);
        for known in KNOWN {
            assert!(
                !at_start.contains(&known.name) && !ELSEWHERE.iter().any(|(name, _)| *name == known.name)
            );
            assert!(known.default.is_none_or(|default| known.accepts.takes(default)), "{}", known.name);
        }
    }

    #[test]
    fn values_are_taken_as_kafka_takes_them() {
        for (name, taken, refused) in [
            ("log.flush.interval.messages", &["1", " 8 ", "9223372036854775807"][..], &["0", "x", ""][..]),
            ("log.flush.interval.ms", &["-5", "0"], &["", "1.5"]),
            ("log.segment.bytes", &["1048576", "2147483647"], &["100", "2147483648"]),
            ("log.cleaner.min.cleanable.ratio", &["0", "1", "0.5"], &["1.1", "-1", "x", "NaN"]),
            ("compression.gzip.level", &["-1", "1", "9"], &["0", "10"]),
            ("log.preallocate", &["true", "FALSE"], &["yes", ""]),
            ("no.such", &["", "x"], &[]),
        ] {
            for value in taken {
                assert_eq!(check(name, value), Ok(()), "{name}={value}");
            }
            for value in refused {
                let refusal = check(name, value).expect_err(name);
                assert_eq!(refusal.code, ErrorCode::InvalidRequest);
                assert!(refusal.why.contains(name) && refusal.why.contains("use "), "{}", refusal.why);
            }
        }
    }

    #[test]
    fn what_would_mean_something_is_refused_with_what_to_do() {
        for (name, words) in [
            ("log.retention.ms", "retention.ms of each topic"),
            ("message.max.bytes", "max.message.bytes of each topic"),
            ("max.connections", "--connections-max"),
            ("max.connections.per.ip", "--connections-per-address-max"),
            ("listener.name.internal.ssl.keystore.location", "nothing of the kind"),
            ("sasl.enabled.mechanisms", "nothing of the kind"),
            ("num.partitions", "mink serve"),
            ("zookeeper.connect.x", ""),
        ] {
            let refusal = check(name, "1");
            match words {
                "" => assert_eq!(refusal, Ok(())),
                words => assert!(refusal.is_err_and(|refusal| refusal.why.contains(words)), "{name}"),
            }
        }
    }
}
