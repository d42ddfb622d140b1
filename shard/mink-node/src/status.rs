//! How the node is: its status for people and probes, its counters for `/metrics`.
//!
//! Lives on: the service runtime; counters of the shards are collected by message.
use crate::context::Context;
use crate::stall::REMEDY;
use futures::future::join_all;
use mink_api::{BucketStatus, Metric, MetricValue, NodeStatus};
use mink_object::{ObjectStore, Op, StoreHealth};
use mink_router::{ReplyTo, reply};
use mink_shard::{BucketLevel, Control, Latencies, ShardStats};
use mink_types::{BucketId, Offset};
use s3stream::ReadStats;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A shard that takes longer to answer is told of as stuck: a probe must not hang with it.
pub(crate) const SHARD_ANSWER_MAX: Duration = Duration::from_secs(2);

impl Context {
    /// The node's status.
    pub(crate) async fn status(&self) -> NodeStatus {
        let (high_watermarks, silent) = self.high_watermarks().await;
        let (state, wal) = (self.state(), self.wal.stats());
        let witness = state.witness();
        let mut not_ready = Vec::new();
        for store in self.distinct_stores() {
            match store.health() {
                StoreHealth::Well => {}
                StoreHealth::Full { since, reason } => {
                    not_ready
                        .push(format!("store {} has had no room for {since:?}: {reason}", store.address()));
                }
                StoreHealth::SyncFailed { since, reason } => {
                    let store = store.address();
                    not_ready.push(format!("store {store} failed to sync {since:?} ago ({reason}): check the disk, then restart the node"));
                }
            }
        }
        if let Some(lasts) = self.stall.lasts(self.service.now()) {
            let store = self.config.stores.wal.address();
            not_ready.push(format!(
                "no write has become durable for {lasts:.0?}: the store {store} takes none; {REMEDY}"
            ));
        }
        let lease = self.lease.holds(self.service.now());
        if !lease {
            not_ready.push("the read lease has run out: the database does not take heartbeats".into());
        }
        if let Some(why) = self.metadata.trouble() {
            not_ready.push(format!("the database {} does not answer: {why}", self.config.database));
        }
        if !silent.is_empty() && !self.is_draining() {
            not_ready.push(format!("shards {silent:?} do not answer"));
        }
        if wal.full {
            not_ready.push(
                "the WAL is full of data that is not flushed: the store or the database is slow".into(),
            );
        }
        let closed = state.hanging(self.me()).filter(|bucket| self.opened.epoch(bucket).is_none()).count();
        if closed > 0 {
            not_ready.push(format!("{closed} buckets are not open yet"));
        }
        let buckets = self.opened.all().into_iter().filter_map(|(id, epoch)| {
            let bucket = state.bucket(&id)?;
            Some(BucketStatus {
                bucket: id,
                epoch,
                log_start: bucket.start,
                committed_end: bucket.end,
                high_watermark: high_watermarks.get(&id).copied(),
            })
        });
        NodeStatus {
            node: self.config.node,
            incarnation: self.me(),
            not_ready,
            draining: self.is_draining(),
            lease,
            metadata_index: witness.index,
            metadata_hash: witness.hash,
            untrimmed_bytes: wal.untrimmed_bytes,
            untrimmed_objects: wal.untrimmed_objects as u64,
            pending_deletions: state.doomed().count() as u64,
            lost: self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            buckets: buckets.collect(),
            storage: self.config.stores.stream.address(),
            database: self.config.database.clone(),
            shards: self.shards.len(),
            runtime: self.config.runtime.clone(),
        }
    }

    fn distinct_stores(&self) -> Vec<&Arc<dyn ObjectStore>> {
        let (stream, wal) = (&self.config.stores.stream, &self.config.stores.wal);
        if Arc::ptr_eq(stream, wal) { vec![stream] } else { vec![stream, wal] }
    }

    /// Asks every shard, all at once; none for one that does not answer in time, or has ended.
    async fn ask_shards<T>(&self, question: impl Fn(ReplyTo<T>) -> Control) -> Vec<Option<T>> {
        let asked = self.shards.iter().map(|shard| {
            let (reply, answer) = reply();
            let question = question(reply);
            let answered = async move {
                shard.controls.send(question).await.ok()?;
                answer.answer().await.ok()
            };
            async move { self.service.timeout(SHARD_ANSWER_MAX, answered).await.ok().flatten() }
        });
        join_all(asked).await
    }

    /// The high watermarks of all open buckets, and the shards that do not tell theirs.
    pub(crate) async fn high_watermarks(&self) -> (BTreeMap<BucketId, Offset>, Vec<usize>) {
        let (mut known, mut silent) = (BTreeMap::new(), Vec::new());
        let answers: Vec<Option<Vec<BucketLevel>>> =
            self.ask_shards(|reply| Control::Buckets { reply }).await;
        for (index, answer) in answers.into_iter().enumerate() {
            match answer {
                Some(levels) => {
                    known.extend(levels.iter().map(|level| (level.bucket, level.high_watermark)));
                }
                None => silent.push(index),
            }
        }
        (known, silent)
    }

    /// The node's counters.
    pub(crate) async fn metrics(self: &Arc<Self>) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for store in self.distinct_stores() {
            store_metrics(store, &mut metrics);
        }
        self.wal_metrics(&mut metrics);
        self.metadata_metrics(&mut metrics);
        self.upkeep_metrics(&mut metrics);
        let stats = self.ask_shards(|reply| Control::Stats { reply }).await;
        for (index, stats) in stats.iter().enumerate() {
            let Some(stats) = stats else { continue };
            shard_metrics(index, stats, &mut metrics);
        }
        self.group_metrics(&mut metrics).await;
        read_metrics(&self.reader.stats(), &mut metrics);
        let inflating = self.inflating.total_bytes() - self.inflating.free_bytes();
        metrics.push(Metric::level("mink_memory_bytes", MEMORY, inflating).label("part", "inflating"));
        let (help, refused) =
            ("batches that inflate to more than the limit", self.inflated_refused.load(Ordering::Relaxed));
        metrics.push(Metric::counter("mink_inflated_refused", help, refused));
        let metadata =
            self.state().memory_bytes() + stats.iter().flatten().map(ShardStats::state_bytes).sum::<u64>();
        metrics.push(Metric::level("mink_memory_bytes", MEMORY, metadata).label("part", "metadata"));
        metrics
    }

    fn wal_metrics(&self, metrics: &mut Vec<Metric>) {
        let wal = self.wal.stats();
        metrics.extend([
            Metric::counter("mink_wal_objects", "WAL objects cut", wal.next),
            Metric::counter("mink_wal_bytes", "bytes of WAL objects cut", wal.bytes_cut),
            Metric::counter("mink_wal_put_repeats", "attempts of PUTs beyond the first", wal.repeats),
            Metric::counter("mink_wal_put_hedges", "late PUTs of WAL objects sent a second time", wal.hedges),
            Metric::counter("mink_wal_put_hedges_won", "of these the ones that ended first", wal.hedges_won),
            Metric::counter("mink_wal_flushes", "commits of flushed data applied", wal.flushes),
            Metric::counter("mink_wal_flushes_refused", "commits of flushed data refused", wal.refusals),
            Metric::level(
                "mink_wal_untrimmed_objects",
                "WAL objects not trimmed",
                wal.untrimmed_objects as u64,
            ),
            Metric::level("mink_wal_untrimmed_bytes", "WAL bytes not trimmed", wal.untrimmed_bytes),
            Metric::level("mink_wal_in_flight", "WAL objects not durable yet", wal.in_flight as u64),
            Metric::level("mink_wal_waiting_bytes", "bytes that wait to be cut", wal.waiting_bytes),
        ]);
    }

    fn metadata_metrics(&self, metrics: &mut Vec<Metric>) {
        let state = self.state();
        metrics.extend([
            Metric::level("mink_metadata_index", "rows of the command log applied", state.witness().index.0),
            Metric::level(
                "mink_metadata_objects",
                "objects that ranges refer to",
                state.objects().count() as u64,
            ),
            Metric::level("mink_metadata_doomed", "objects to be deleted", state.doomed().count() as u64),
            Metric::level("mink_metadata_buckets", "buckets of all tables", state.bucket_count() as u64),
        ]);
    }
}

impl Context {
    /// What retention and the collector of garbage have done.
    fn upkeep_metrics(&self, metrics: &mut Vec<Metric>) {
        let (retention, garbage) = (&self.retention, &self.garbage);
        let counters = [
            ("mink_retention_raises", "log starts raised", &retention.raises),
            ("mink_retention_refused", "log starts that the log did not raise", &retention.refused),
            ("mink_retention_offsets", "offsets forgotten", &retention.offsets),
            ("mink_retention_bytes", "stored bytes of the ranges forgotten", &retention.bytes),
            ("mink_garbage_deleted", "objects deleted after their grace", &garbage.deleted),
            ("mink_garbage_swept", "objects of dead chains deleted", &garbage.swept),
            ("mink_garbage_failed", "deletions that are tried again", &garbage.failed),
            (
                "mink_garbage_listed_again",
                "listings of chains that were cleaned before",
                &garbage.listed_again,
            ),
        ];
        metrics.extend(
            counters.map(|(name, help, value)| Metric::counter(name, help, value.load(Ordering::Relaxed))),
        );
        let compaction = self.compactor.as_ref().map(|compactor| compactor.stats()).unwrap_or_default();
        metrics.extend([
            Metric::counter("mink_compaction_jobs", "compactions carried out", compaction.jobs),
            Metric::counter("mink_compaction_rewrites", "commands that moved ranges", compaction.rewrites),
            Metric::counter("mink_compaction_refused", "moves that the log did not take", compaction.refused),
            Metric::counter("mink_compaction_bytes", "stored bytes moved", compaction.bytes),
            Metric::counter(
                "mink_compaction_objects_read",
                "objects read, once per job",
                compaction.objects_read,
            ),
            Metric::counter("mink_compaction_objects_written", "objects written", compaction.objects_written),
        ]);
        let (state, plans) = (self.state(), self.running.count() as u64);
        let chains = state.incarnations().filter(|(id, life)| !life.swept && state.dead(*id)).count() as u64;
        metrics.extend([
            Metric::level("mink_garbage_waiting", "objects to be deleted", state.doomed().count() as u64),
            Metric::level("mink_garbage_chains_waiting", "dead chains to be cleaned", chains),
            Metric::level("mink_garbage_plans", "reads and other plans that hold deletions up", plans),
        ]);
    }
}

const MEMORY: &str = "memory held, by part";
const COPIED: &str = "bytes of requests copied in user space, by where";

fn store_metrics(store: &Arc<dyn ObjectStore>, metrics: &mut Vec<Metric>) {
    let stats = store.stats();
    for (op, outcome, count) in stats.rows().filter(|(.., count)| *count > 0) {
        let metric = Metric::counter("mink_object_store_requests", "requests to the object store", count);
        metrics.push(metric.label("op", op.label()).label("outcome", outcome.label()));
    }
    for op in Op::ALL {
        let metric = Metric::counter(
            "mink_object_store_bytes",
            "payload bytes to and from the store",
            stats.bytes(op),
        );
        metrics.push(metric.label("op", op.label()));
    }
}

fn read_metrics(stats: &ReadStats, metrics: &mut Vec<Metric>) {
    let counters = [
        ("mink_read_cache_hits", "blocks found in memory", stats.hits),
        ("mink_read_cache_misses", "blocks that had to be fetched", stats.misses),
        ("mink_read_cache_joined", "blocks and footers that a GET under way brought along", stats.joined),
        ("mink_read_cache_footer_hits", "footers found in memory", stats.footer_hits),
        ("mink_read_cache_footer_misses", "footers that had to be fetched", stats.footer_misses),
        ("mink_read_cache_evicted", "extents that left to make room", stats.evicted),
        ("mink_read_cache_gets", "GETs of readers", stats.gets),
        ("mink_read_cache_gets_failed", "GETs of readers that failed", stats.gets_failed),
        ("mink_read_cache_get_bytes", "bytes that GETs of readers brought", stats.get_bytes),
        ("mink_read_cache_ahead_used_bytes", "bytes fetched ahead and used", stats.ahead_used_bytes),
        ("mink_read_cache_ahead_wasted_bytes", "bytes fetched ahead in vain", stats.ahead_wasted_bytes),
        ("mink_read_cache_copied_bytes", "bytes copied because readers held too much", stats.copied_bytes),
    ];
    metrics.extend(counters.map(|(name, help, value)| Metric::counter(name, help, value)));
    let in_flight = stats.in_flight_bytes;
    metrics.push(Metric::level("mink_read_cache_in_flight_bytes", "bytes that GETs will bring", in_flight));
    let help = "objects found gone or damaged when buckets were opened: they need a person";
    metrics.push(Metric::level("mink_objects_damaged", help, stats.damaged_objects));
    let parts = [
        ("footers", stats.footer_bytes),
        ("blocks", stats.kept_bytes),
        ("blocks_lingering", stats.lingering_bytes),
    ];
    metrics.extend(
        parts.map(|(part, value)| Metric::level("mink_memory_bytes", MEMORY, value).label("part", part)),
    );
}

fn shard_metrics(index: usize, stats: &ShardStats, metrics: &mut Vec<Metric>) {
    let refused = &stats.refused;
    let counters = [
        ("mink_append_batches", "batches ordered", stats.appended_batches),
        ("mink_append_records", "records ordered", stats.appended_records),
        ("mink_append_bytes", "bytes ordered", stats.appended_bytes),
        ("mink_append_duplicates", "repeats of stored batches", stats.duplicates),
        ("mink_append_producers_expired", "silent producers forgotten", stats.producers_expired),
        ("mink_fetch_tail_bytes", "bytes read from memory", stats.read_bytes_tail),
        ("mink_fetch_object_bytes", "bytes read from the store", stats.read_bytes_object),
        ("mink_fetch_refused", "reads refused", stats.reads_refused),
        ("mink_fetch_waits_refused", "waits for data for which there was no room", stats.watches_refused),
        ("mink_router_turns", "turns of the shard's pump", stats.turns),
    ];
    let shard = index.to_string();
    metrics.extend(
        counters.map(|(name, help, value)| Metric::counter(name, help, value).label("shard", &*shard)),
    );
    metrics.push(ack_metric(&stats.ack_latency).label("shard", &*shard));
    let failures = [("damaged", stats.damaged_reads), ("other", stats.failed_reads)];
    metrics.extend(failures.map(|(kind, value)| {
        let help = "reads that objects failed: damaged or lost ones need a person";
        Metric::counter("mink_fetch_object_failures", help, value).label("shard", &*shard).label("kind", kind)
    }));
    let refusals = [
        ("not_owner", refused.not_owner),
        ("opening", refused.opening),
        ("draining", refused.draining),
        ("too_large", refused.too_large),
        ("out_of_order", refused.out_of_order),
        ("producer_fenced", refused.producer_fenced),
        ("too_many_producers", refused.too_many_producers),
    ];
    metrics.extend(refusals.map(|(reason, value)| {
        let metric = Metric::counter("mink_append_refused", "batches refused", value);
        metric.label("shard", &*shard).label("reason", reason)
    }));
    let copied = Metric::counter("mink_copied_bytes", COPIED, stats.copied_bytes);
    metrics.push(copied.label("site", "arena").label("shard", &*shard));
    let batches =
        Metric::level("mink_log_tail_batches", "batches that are read from memory", stats.tail_batches);
    metrics.push(batches.label("shard", &*shard));
    let lingering = stats.arena_bytes.saturating_sub(stats.tail_bytes);
    for (part, value) in [("log", stats.tail_bytes), ("log_lingering", lingering)] {
        let metric = Metric::level("mink_memory_bytes", MEMORY, value);
        metrics.push(metric.label("part", part).label("shard", &*shard));
    }
}

fn ack_metric(acks: &Latencies) -> Metric {
    let bound = |bound: Option<Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
    let buckets = acks.buckets().map(|(upper, count)| (bound(upper), count)).collect();
    Metric {
        name: "mink_append_ack_seconds",
        help: "time from a batch's offset to its ack",
        labels: Vec::new(),
        value: MetricValue::Histogram { buckets, sum: acks.sum().as_secs_f64(), count: acks.count() },
    }
}
