//! Kafka's names for configurations of a broker: those that can be set while it runs, and those that cannot.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing.
use super::describe_configs::{BOOLEAN, DOUBLE, INT, LONG, STRING};

/// What a value must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Accepts {
    /// A whole number in this range, both ends included.
    Whole(i64, i64),
    /// A number in this range, both ends included.
    Real(f64, f64),
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    Anything,
}

/// A configuration that Kafka lets change while a broker runs, and that is of something Mink does not have: it is kept and described.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Of its values, by Kafka's numbers.
    pub(super) kind: i8,
    pub(super) accepts: Accepts,
    /// None where another configuration's value holds.
    pub(super) default: Option<&'static str>,
}

const fn known(name: &'static str, kind: i8, accepts: Accepts, default: Option<&'static str>) -> Known {
    Known { name, kind, accepts, default }
}

use Accepts::{Anything, OneOf, Real, Whole};

const INT_MAX: i64 = i32::MAX as i64;
const MAX: i64 = i64::MAX;
const BOOLEANS: &[&str] = &["true", "false"];
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const GZIP_LEVELS: &[&str] = &["-1", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// In the order of their names.
#[rustfmt::skip]
pub(super) const KNOWN: &[Known] = &[
    known("background.threads", INT, Whole(1, INT_MAX), Some("10")),
    known("compression.gzip.level", INT, OneOf(GZIP_LEVELS), Some("-1")),
    known("compression.lz4.level", INT, Whole(1, 17), Some("9")),
    known("compression.type", STRING, OneOf(CODECS), Some("producer")),
    known("compression.zstd.level", INT, Whole(-131_072, 22), Some("3")),
    known("errors.deadletterqueue.auto.create.topics.enable", BOOLEAN, OneOf(BOOLEANS), Some("false")),
    known("errors.deadletterqueue.topic.name.prefix", STRING, Anything, Some("dlq.")),
    known("follower.fetch.last.tiered.offset.enable", BOOLEAN, OneOf(BOOLEANS), Some("false")),
    known("group.consumer.assignment.interval.ms", INT, Whole(0, 15_000), Some("1000")),
    known("group.coordinator.cached.buffer.max.bytes", INT, Whole(524_288, INT_MAX), Some("1048588")),
    known("group.share.assignment.interval.ms", INT, Whole(0, 15_000), Some("1000")),
    known("group.streams.assignment.interval.ms", INT, Whole(0, 15_000), Some("1000")),
    known("log.cleaner.backoff.ms", LONG, Whole(0, MAX), Some("15000")),
    known("log.cleaner.dedupe.buffer.size", LONG, Whole(1_048_577, MAX), Some("134217728")),
    known("log.cleaner.delete.retention.ms", LONG, Whole(0, MAX), Some("86400000")),
    known("log.cleaner.io.buffer.load.factor", DOUBLE, Real(f64::MIN, f64::MAX), Some("0.9")),
    known("log.cleaner.io.buffer.size", INT, Whole(0, INT_MAX), Some("524288")),
    known("log.cleaner.io.max.bytes.per.second", DOUBLE, Real(f64::MIN, f64::MAX), Some("1.7976931348623157E308")),
    known("log.cleaner.max.compaction.lag.ms", LONG, Whole(1, MAX), Some("9223372036854775807")),
    known("log.cleaner.min.cleanable.ratio", DOUBLE, Real(0.0, 1.0), Some("0.5")),
    known("log.cleaner.min.compaction.lag.ms", LONG, Whole(0, MAX), Some("0")),
    known("log.cleaner.threads", INT, Whole(0, INT_MAX), Some("1")),
    known("log.flush.interval.messages", LONG, Whole(1, MAX), Some("9223372036854775807")),
    known("log.flush.interval.ms", LONG, Whole(i64::MIN, MAX), None),
    known("log.index.interval.bytes", INT, Whole(0, INT_MAX), Some("4096")),
    known("log.index.size.max.bytes", INT, Whole(4, INT_MAX), Some("10485760")),
    known("log.local.retention.bytes", LONG, Whole(-2, MAX), Some("-2")),
    known("log.local.retention.ms", LONG, Whole(-2, MAX), Some("-2")),
    known("log.message.timestamp.after.max.ms", LONG, Whole(0, MAX), Some("9223372036854775807")),
    known("log.message.timestamp.before.max.ms", LONG, Whole(0, MAX), Some("9223372036854775807")),
    known("log.preallocate", BOOLEAN, OneOf(BOOLEANS), Some("false")),
    known("log.remote.copy.lag.bytes", LONG, Whole(-1, MAX), Some("-1")),
    known("log.remote.copy.lag.ms", LONG, Whole(-1, MAX), Some("0")),
    known("log.roll.jitter.ms", LONG, Whole(0, MAX), None),
    known("log.roll.ms", LONG, Whole(1, MAX), None),
    known("log.segment.bytes", INT, Whole(1_048_576, INT_MAX), Some("1073741824")),
    known("log.segment.delete.delay.ms", LONG, Whole(0, MAX), Some("60000")),
    known("min.insync.replicas", INT, Whole(1, INT_MAX), Some("1")),
    known("num.io.threads", INT, Whole(1, INT_MAX), Some("8")),
    known("num.network.threads", INT, Whole(1, INT_MAX), Some("3")),
    known("num.recovery.threads.per.data.dir", INT, Whole(1, INT_MAX), Some("2")),
    known("num.replica.fetchers", INT, Whole(1, INT_MAX), Some("1")),
    known("remote.fetch.max.wait.ms", INT, Whole(1, INT_MAX), Some("500")),
    known("remote.list.offsets.request.timeout.ms", LONG, Whole(1, MAX), Some("30000")),
    known("remote.log.index.file.cache.total.size.bytes", LONG, Whole(1, MAX), Some("1073741824")),
    known("remote.log.manager.copier.thread.pool.size", INT, Whole(1, INT_MAX), Some("10")),
    known("remote.log.manager.copy.max.bytes.per.second", LONG, Whole(1, MAX), Some("9223372036854775807")),
    known("remote.log.manager.expiration.thread.pool.size", INT, Whole(1, INT_MAX), Some("10")),
    known("remote.log.manager.fetch.max.bytes.per.second", LONG, Whole(1, MAX), Some("9223372036854775807")),
    known("remote.log.manager.follower.thread.pool.size", INT, Whole(1, INT_MAX), Some("2")),
    known("remote.log.reader.threads", INT, Whole(1, INT_MAX), Some("10")),
    known("transaction.partition.verification.enable", BOOLEAN, OneOf(BOOLEANS), Some("true")),
    known("unclean.leader.election.enable", BOOLEAN, OneOf(BOOLEANS), Some("false")),
];

/// What Kafka changes while a broker runs, and Mink cannot: with what to do instead. A name that ends in a dot stands for all that begin
/// so.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("config.providers", NONE),
    ("cordoned.log.dirs", NONE),
    ("listener.", NONE),
    ("listeners", "start the node with another --kafka-listen"),
    ("log.cleanup.policy", "set cleanup.policy of each topic"),
    ("log.message.timestamp.type", "set message.timestamp.type of each topic"),
    ("log.retention.bytes", "set retention.bytes of each topic"),
    ("log.retention.ms", "set retention.ms of each topic"),
    ("max.connection.creation.rate", "start the node with another --connections-per-second"),
    ("max.connections", "start the node with another --connections-max"),
    ("max.connections.per.ip", "start the node with another --connections-per-address-max"),
    ("max.connections.per.ip.overrides", NONE),
    ("max.decompressed.message.bytes", "start the node with another --inflated-bytes-max"),
    ("message.max.bytes", "set max.message.bytes of each topic"),
    ("metric.reporters", NONE),
    ("principal.builder.class", NONE),
    ("producer.id.expiration.ms", "start the node with another --producer-expiry"),
    ("sasl.", NONE),
    ("ssl.", NONE),
];
const NONE: &str = "a node has nothing of the kind";

/// What a Kafka 4.4 broker takes when it starts, and never after. Names apart from each other by blanks, in their order.
#[rustfmt::skip]
pub(super) const AT_START_ONLY: &str = "\
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms advertised.listeners \
    alter.config.policy.class.name alter.log.dirs.replication.quota.window.num \
    alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name auto.create.topics.enable \
    auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.id broker.rack broker.session.timeout.ms \
    client.quota.callback.class connection.failed.authentication.delay.ms connections.max.idle.ms \
    connections.max.reauth.ms controlled.shutdown.enable controller.listener.names \
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers \
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms \
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes \
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms \
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num \
    controller.quota.window.size.seconds controller.socket.timeout.ms create.topic.policy.class.name \
    default.replication.factor delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms \
    delegation.token.max.lifetime.ms delegation.token.secret.key \
    delete.records.purgatory.purge.interval.requests delete.topic.enable early.start.listeners \
    fetch.max.bytes fetch.purgatory.purge.interval.requests group.consumer.assignors \
    group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms \
    group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size \
    group.consumer.migration.policy group.consumer.min.assignment.interval.ms \
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms \
    group.consumer.session.timeout.ms group.coordinator.append.linger.ms group.coordinator.background.threads \
    group.coordinator.rebalance.protocols group.coordinator.threads group.initial.rebalance.delay.ms \
    group.max.session.timeout.ms group.max.size group.min.session.timeout.ms group.share.assignors \
    group.share.delivery.count.limit group.share.heartbeat.interval.ms group.share.max.assignment.interval.ms \
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms \
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms \
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size \
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit \
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks \
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms \
    group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms \
    group.streams.assignors group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms \
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms \
    group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas \
    group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms \
    group.streams.min.session.timeout.ms group.streams.num.standby.replicas \
    group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms \
    group.streams.topology.description.plugin.class initial.broker.registration.timeout.ms \
    inter.broker.listener.name kafka.metrics.polling.interval.secs kafka.metrics.reporters \
    leader.imbalance.check.interval.seconds log.cleaner.enable log.dir log.dir.failure.timeout.ms log.dirs \
    log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms \
    log.flush.start.offset.checkpoint.interval.ms log.retention.check.interval.ms log.retention.hours \
    log.retention.minutes log.roll.hours log.roll.jitter.hours max.incremental.fetch.session.cache.slots \
    max.request.partition.size.limit metadata.log.dir metadata.log.max.record.bytes.between.snapshots \
    metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms \
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms metrics.num.samples \
    metrics.recording.level metrics.sample.window.ms node.id num.partitions \
    num.replica.alter.log.dirs.threads offset.metadata.max.bytes offsets.commit.timeout.ms \
    offsets.load.buffer.size offsets.retention.check.interval.ms offsets.retention.minutes \
    offsets.topic.compression.codec offsets.topic.num.partitions offsets.topic.replication.factor \
    offsets.topic.segment.bytes process.roles producer.purgatory.purge.interval.requests \
    queued.max.request.bytes queued.max.requests quota.window.num quota.window.size.seconds \
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds \
    remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds \
    remote.log.manager.task.interval.ms remote.log.manager.thread.pool.size \
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name \
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix \
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks \
    remote.log.storage.manager.class.name remote.log.storage.manager.class.path \
    remote.log.storage.manager.impl.prefix remote.log.storage.system.enable replica.fetch.backoff.ms \
    replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes \
    replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms \
    replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms \
    replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms \
    sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class \
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms \
    sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol sasl.oauthbearer.allow.unverified.audience \
    sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm \
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds \
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include \
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub \
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file \
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file \
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret \
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer \
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms \
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url \
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope \
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url \
    sasl.server.callback.handler.class sasl.server.max.receive.size security.inter.broker.protocol \
    security.providers share.coordinator.append.linger.ms share.coordinator.load.buffer.size \
    share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec \
    share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions \
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes \
    share.coordinator.threads share.coordinator.write.timeout.ms \
    share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms \
    socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes \
    socket.request.max.bytes socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes \
    ssl.principal.mapping.rules telemetry.max.bytes \
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms \
    transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size \
    transaction.state.log.min.isr transaction.state.log.num.partitions \
    transaction.state.log.replication.factor transaction.state.log.segment.bytes \
    transaction.two.phase.commit.enable transactional.id.expiration.ms";
