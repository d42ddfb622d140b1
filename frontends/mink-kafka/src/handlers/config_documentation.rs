//! What configurations mean here, in a line each, for clients that ask for it.
//!
//! Lives on: anywhere (pure).
use super::broker_configs::known;
use mink_types::Kept;

const KEPT: &str = "Kept and described for those who set it; nothing goes by it here.";

const OF_TOPICS: &[(&str, &str)] = &[
    (
        "cleanup.policy",
        "delete: records go by age and size. compact: they stay, and each must have a key; nothing is superseded.",
    ),
    ("compression.type", "Kept and described; batches stay compressed as their producer sent them."),
    ("max.message.bytes", "Largest batch that is taken, in bytes, as it is sent."),
    (
        "message.timestamp.type",
        "CreateTime: a record bears its producer's time. LogAppendTime: that of its batch's append.",
    ),
    (
        "min.insync.replicas",
        "Kept and described; the store replicates, and each acknowledged record is durable.",
    ),
    ("retention.bytes", "Bytes of a partition beyond which its oldest records go; -1 for no bound."),
    (
        "retention.ms",
        "Milliseconds after which records go, by the time at which they were written; -1 for never.",
    ),
];

const OF_BROKERS: &[(&str, &str)] = &[
    ("advertised.listeners", "The address that clients are given."),
    ("auto.create.topics.enable", "Whether a topic is made when it is first asked for."),
    ("broker.id", "The node's number."),
    ("connections.max.idle.ms", "Milliseconds without a request after which a connection is closed."),
    ("default.replication.factor", "1: the store replicates."),
    ("delete.topic.enable", "Whether topics can be deleted."),
    ("fetch.max.bytes", "Most bytes of records in one answer to a fetch."),
    ("listeners", "The address that clients are given."),
    ("log.cleanup.policy", "The policy of topics that have none of their own."),
    ("log.message.timestamp.type", "The kind of times of topics that have none of their own."),
    ("log.retention.bytes", "retention.bytes of topics that have none of their own."),
    ("log.retention.ms", "retention.ms of topics that have none of their own."),
    ("max.connections", "Most connections at once."),
    ("max.connections.per.ip", "Most connections at once from one address."),
    ("message.max.bytes", "max.message.bytes of topics that have none of their own."),
    ("node.id", "The node's number."),
    ("num.partitions", "Partitions of a topic that is made without a number of them."),
    ("offsets.topic.replication.factor", "1: the store replicates."),
    ("producer.id.expiration.ms", "Milliseconds after which an idle producer's sequence is forgotten."),
    ("socket.request.max.bytes", "Largest request that is read, in bytes."),
];

fn line(lines: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let at = lines.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    lines.get(at).map(|(_, line)| *line)
}

/// Of a topic's configuration; none if it is not known.
pub(super) fn of_topic(name: &str) -> Option<&'static str> {
    line(OF_TOPICS, name).or_else(|| Kept::named(name).map(|_| KEPT))
}

/// Of a broker's configuration; none if it is not known.
pub(super) fn of_broker(name: &str) -> Option<&'static str> {
    line(OF_BROKERS, name).or_else(|| known(name).map(|_| KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_in_the_order_of_names() {
        for lines in [OF_TOPICS, OF_BROKERS] {
            assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
