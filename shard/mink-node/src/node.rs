//! A node: its start in order, its tasks, its end.
//!
//! Lives on: the service runtime; starts the cores.
//! Owns: the data directory's lock, the tasks, the cores.     Talks to: everything below it.
//! Invariants: I5, I13: nothing is served before predecessors are fenced, sealed, adopted and their lease has run out; the order of
//! `start` is in the order of decision 0003.
use crate::admin::NodeAdmin;
use crate::commits::NodeCommits;
use crate::config::NodeConfig;
use crate::context::{Context, ends};
use crate::data_dir::DataDir;
use crate::error::{NodeEnd, StartError};
use crate::garbage::GarbageCounters;
use crate::groups::{ASKS_MAX, Actor, NodeGroups};
use crate::lease::Lease;
use crate::opened::Opened;
use crate::producer_ids::ProducerIds;
use crate::retention::RetentionCounters;
use crate::running::{Running, TrackedReads};
use crate::source::NodeSource;
use crate::stall::Stall;
use crate::takeover::Taken;
use crate::{compaction, data_dir, follow, garbage, renew, retention, stall, suspect};
use futures::FutureExt;
use futures::StreamExt;
use futures::channel::mpsc;
use mink_api::{Admin, GroupCoordinator, LogSource};
use mink_coordinator::{Facts, Step, plan};
use mink_metadata::{Answer, Command, CommandResult, FEATURE_LEVEL_MAX, RefusalKind, Registration};
use mink_object::{ProbeVerdict, probe};
use mink_router::{BytePermits, ShardIndex, lane};
use mink_rt::{Cores, CoresConfig, Runtime, Service, Task, mutant};
use mink_shard::{Control, Inbox, LogFold, ShardConfig, ShardHandle, ShardParts, shard};
use mink_sql::{Metadata, ROWS_KEPT_DEFAULT};
use mink_types::{ClusterUuid, WalChain};
use s3stream::{Reader, ReaderParts, Wal, WalEnd, WalParts};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A running node.
#[derive(Debug)]
pub struct Node {
    context: Arc<Context>,
    admin: Arc<NodeAdmin>,
    ended: mpsc::Receiver<NodeEnd>,
    cores: Cores,
    tasks: Vec<Task>,
    _dir: Arc<DataDir>,
}

impl Node {
    /// Starts a node: when this returns, its buckets are open.
    pub async fn start(
        config: NodeConfig,
        runtime: &Arc<dyn Runtime>,
        metadata: Metadata,
        dir: DataDir,
    ) -> Result<Node, StartError> {
        let (service, uuid) = (runtime.service(), metadata.view().cluster());
        config.progress.tell("probing the store");
        probe_store(&config, &service, &metadata).await?;
        config.progress.tell("registering");
        let chain = register(&config, &service, &metadata, &dir).await?;
        let lease = Lease::default();
        let Some(until) = renew::beat(&config.log, &service, chain.incarnation, 1, config.lease_ttl)
            .await
            .map_err(|_| StartError::Fenced)?
        else {
            return Err(StartError::Metadata(
                "the first heartbeat got no answer; check the database (--metadata), then start again".into(),
            ));
        };
        lease.renewed(until);
        let (ends, ended) = ends();
        let wal = start_wal(&config, &service, uuid, chain, &metadata)?;
        let reader = Reader::new(ReaderParts {
            service: service.clone(),
            wal_store: Arc::clone(&config.stores.wal),
            stream_store: Arc::clone(&config.stores.stream),
            cluster: config.cluster.clone(),
            footer_cache_bytes: config.footer_cache_bytes,
            block_cache_bytes: config.block_cache_bytes,
            get_timeout: config.wal.get_timeout,
        });
        let running = Running::default();
        let compactor = compaction::compactor(&config, &wal, &reader);
        let ages = retention::clock(&service, &metadata.view());
        let reads = Arc::new(TrackedReads {
            reader: reader.clone(),
            running: running.clone(),
            service: service.clone(),
        });
        let (shards, cores) = start_shards(&config, runtime, &wal, reads)?;
        let ids = ProducerIds::new(chain.incarnation, config.limits.producer_ids_per_second, service.now());
        // One search at a time may need the most that a batch inflates to; small batches go side by side.
        let inflating = BytePermits::new(u64::from(config.limits.inflated_bytes_max));
        let (groups, asks) = lane(ASKS_MAX);
        let context = Arc::new(Context {
            config,
            service: service.clone(),
            uuid,
            chain,
            metadata,
            wal,
            reader,
            shards,
            lease,
            opened: Opened::default(),
            stall: Stall::default(),
            running,
            compactor,
            retention: RetentionCounters::default(),
            garbage: GarbageCounters::default(),
            draining: AtomicBool::new(false),
            inflating,
            inflated_refused: AtomicU64::new(0),
            lost: Mutex::default(),
            ends,
            groups,
        });
        context.tell_shards(|| Control::Lease(until)).await;
        // The lease is renewed from here on: a takeover may take longer than it holds.
        let mut tasks = vec![service.spawn("lease", renew::renew(Arc::clone(&context), 1))];
        take_predecessors(&context, &dir).await?;
        create_kafka_database(&context).await?;
        context.serve_owned().await;
        context.open_planned(&context.state()).await?;
        tasks.push(service.spawn("follow-log", follow::follow(Arc::clone(&context))));
        tasks.push(service.spawn("suspect", suspect::watch(Arc::clone(&context))));
        tasks.push(service.spawn("garbage", garbage::collect(Arc::clone(&context))));
        tasks.push(service.spawn("stall", stall::watch(Arc::clone(&context))));
        let dir = Arc::new(dir);
        tasks.push(service.spawn("data-dir", data_dir::watch(Arc::clone(&context), Arc::clone(&dir))));
        context.raise_feature_level(&context.state()).await;
        tasks.push(service.spawn("compaction", compaction::compact(Arc::clone(&context))));
        tasks.push(service.spawn("groups", Actor::run(Arc::clone(&context), ages, asks)));
        tasks.push(service.spawn("retention", retention::retain(Arc::clone(&context), ages)));
        tasks.push(service.spawn("wal-end", watch_wal(Arc::clone(&context))));
        tasks.push(service.spawn("first-snapshot", first_snapshot(Arc::clone(&context))));
        let rows = context.config.snapshot_rows;
        tasks.push(context.metadata.keep_snapshots(context.me(), rows, ROWS_KEPT_DEFAULT));
        let admin = Arc::new(NodeAdmin { context: Arc::clone(&context), producer_ids: Mutex::new(ids) });
        Ok(Node { context, admin, ended, cores, tasks, _dir: dir })
    }

    /// The logs of this node.
    pub fn source(&self) -> Arc<dyn LogSource> {
        Arc::new(NodeSource(Arc::clone(&self.context)))
    }

    /// The consumer groups of this node.
    pub fn groups(&self) -> Arc<dyn GroupCoordinator> {
        Arc::new(NodeGroups(Arc::clone(&self.context)))
    }

    /// Administration through this node.
    pub fn admin(&self) -> Arc<dyn Admin> {
        Arc::clone(&self.admin) as Arc<dyn Admin>
    }

    /// Waits until the node must end by itself: fenced, or something failed.
    pub async fn ended(&mut self) -> NodeEnd {
        self.ended
            .next()
            .await
            .unwrap_or_else(|| NodeEnd::Failed { what: "all tasks of the node ended".into() })
    }

    /// Drains for at most `limit`, then stops.
    pub async fn drain(self, limit: Duration) -> NodeEnd {
        let end = self.context.drain(limit).await;
        self.stop().await;
        end
    }

    /// Stops at once, as a crash would: what was acked is durable, and the next start recovers it.
    pub async fn stop(self) {
        self.tasks.iter().for_each(Task::cancel);
        self.context.wal.stop().await;
        self.context.tell_shards(|| Control::Stop).await;
        self.cores.stop();
        if let Err(panic) = self.cores.join().await {
            tracing::error!(%panic, "a core ended badly");
        }
    }
}

/// The store must be one whose create-only put has one winner (K-2); the verdict is kept in the metadata.
async fn probe_store(config: &NodeConfig, service: &Service, metadata: &Metadata) -> Result<(), StartError> {
    let store = config.stores.wal.address();
    let known = metadata.view().probe(&store).map(|probe| (probe.sound, probe.detail.clone()));
    let (sound, detail) = if let Some(verdict) = known {
        verdict
    } else {
        let tag = service.random_u64();
        let verdict = match probe(&config.stores.probed, service, &config.cluster, tag).await {
            ProbeVerdict::Sound => (true, String::new()),
            ProbeVerdict::Lies { detail } => (false, detail),
            ProbeVerdict::Undecided { detail } => return Err(StartError::StoreUndecided { store, detail }),
        };
        let probed = Command::Probed { store: store.clone(), sound: verdict.0, detail: verdict.1.clone() };
        match metadata.submit(probed).await {
            Ok(CommandResult::Done(_)) => verdict,
            Ok(CommandResult::Refused(refusal)) => return Err(StartError::Metadata(refusal.to_string())),
            Err(error) => return Err(StartError::Metadata(error.to_string())),
        }
    };
    if sound { Ok(()) } else { Err(StartError::StoreLies { store, detail }) }
}

/// Begins a life: notes it under the lock, then registers it.
async fn register(
    config: &NodeConfig,
    service: &Service,
    metadata: &Metadata,
    dir: &DataDir,
) -> Result<WalChain, StartError> {
    let tag = service.random_u64();
    dir.begin_life(tag)?;
    let registration = Registration {
        node: config.node,
        tag,
        storage: config.stores.stream.address(),
        wal_storage: config.stores.wal.address(),
        listeners: config.listeners.clone(),
        version: config.version.clone(),
        feature_level_max: FEATURE_LEVEL_MAX,
    };
    match metadata.submit(Command::Register(registration)).await {
        Ok(CommandResult::Done(Answer::Registered(incarnation))) => {
            Ok(WalChain { node: config.node, incarnation, tag })
        }
        Ok(other) => Err(StartError::Metadata(format!("registration: {other:?}"))),
        Err(error) => Err(StartError::Metadata(error.to_string())),
    }
}

fn start_wal(
    config: &NodeConfig,
    service: &Service,
    uuid: ClusterUuid,
    chain: WalChain,
    metadata: &Metadata,
) -> Result<Wal, StartError> {
    let witness = metadata.clone();
    Wal::start(WalParts {
        service: service.clone(),
        wal_store: Arc::clone(&config.stores.wal),
        stream_store: Arc::clone(&config.stores.stream),
        cluster: config.cluster.clone(),
        uuid,
        chain,
        config: config.wal.clone(),
        commits: Arc::new(NodeCommits { metadata: metadata.clone(), me: chain.incarnation }),
        fold: Arc::new(LogFold { limits: (&config.limits).into() }),
        witness: Arc::new(move || witness.view().witness()),
    })
    .map_err(|error| StartError::Wal(error.to_string()))
}

/// Starts one shard per core.
fn start_shards(
    config: &NodeConfig,
    runtime: &Arc<dyn Runtime>,
    wal: &Wal,
    reads: Arc<TrackedReads>,
) -> Result<(Vec<ShardHandle>, Cores), StartError> {
    let count = config.shards.get();
    let mut handles = Vec::new();
    let mut inboxes: Vec<Option<Inbox>> = Vec::new();
    for index in 0..count {
        let tail_bytes = config.tail_bytes / count as u64;
        let object_read_bytes_max = config.object_read_bytes / count as u64;
        let shard_config = ShardConfig {
            object_read_bytes_max,
            ..ShardConfig::new(ShardIndex(index), count, &config.limits, tail_bytes)
        };
        let (handle, inbox) = shard(shard_config);
        handles.push(handle);
        inboxes.push(Some(inbox));
    }
    // Each core takes its own inbox, once, before it does anything else.
    let inboxes = Arc::new(Mutex::new(inboxes));
    let (wal, service) = (wal.clone(), runtime.service());
    let main = Arc::new(move |core: mink_rt::Core| {
        let inbox = inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(core.index())
            .and_then(Option::take);
        let parts = ShardParts {
            sink: Box::new(wal.sender()),
            objects: Arc::<TrackedReads>::clone(&reads),
            service: service.clone(),
        };
        async move {
            let Some(inbox) = inbox else { return };
            let index = core.index();
            let end = mink_shard::run(core, inbox, parts).await;
            tracing::debug!(index, ?end, "shard ended");
        }
        .boxed_local()
    });
    let cores = runtime
        .start_cores(CoresConfig::shards(config.shards), main)
        .map_err(|error| StartError::Cores(error.to_string()))?;
    Ok((handles, cores))
}

/// Takes over every chain that this node must: its own earlier lives, and fenced chains on which buckets hang.
async fn take_predecessors(context: &Arc<Context>, dir: &DataDir) -> Result<(), StartError> {
    let state = context.state();
    let mut taken: Vec<(Taken, bool)> = Vec::new();
    for step in plan(&state, context.me(), &Facts::default()) {
        let Step::TakeOver(chain) = step else { continue };
        let incarnation = chain.incarnation;
        let store = context
            .wal_store_of(&state, incarnation)
            .map_err(|what| StartError::Takeover { incarnation, what })?;
        let known_dead = chain.drained || dir.known_dead().contains(&chain.chain.tag);
        context.config.progress.tell(format!("taking over from incarnation {incarnation}"));
        taken.push((context.taker().take(incarnation, store).await?, known_dead));
    }
    for (taken, known_dead) in taken {
        if !known_dead && !mutant("lease-not-awaited") {
            context.wait_for_lease(&taken).await;
        }
        context.lost.lock().unwrap_or_else(PoisonError::into_inner).extend(taken.lost);
        context.config.progress.tell(format!("opening {} buckets", taken.buckets.len()));
        context.open(&taken.buckets, Some(taken.from)).await?;
    }
    dir.forget_others(context.chain.tag)?;
    Ok(())
}

async fn create_kafka_database(context: &Arc<Context>) -> Result<(), StartError> {
    let name = context.config.kafka_database.clone();
    if context.state().database(&name).is_some() {
        return Ok(());
    }
    match context.metadata.submit(Command::CreateDatabase { name }).await {
        Ok(CommandResult::Done(_)) => Ok(()),
        Ok(CommandResult::Refused(refusal)) if refusal.kind() == RefusalKind::Exists => Ok(()),
        Ok(CommandResult::Refused(refusal)) => Err(StartError::Metadata(refusal.to_string())),
        Err(error) => Err(StartError::Metadata(error.to_string())),
    }
}

/// Writes one snapshot of the metadata once the node is up: from then on the store proves how far the log had got, and a lost
/// database can be refilled, however few rows there are.
async fn first_snapshot(context: Arc<Context>) {
    match context.metadata.snapshot(context.me(), ROWS_KEPT_DEFAULT).await {
        Ok(place) => tracing::debug!(index = %place.witness.index, "metadata snapshot written"),
        Err(error) => tracing::warn!(%error, "no metadata snapshot was written at the start"),
    }
}

/// Ends the node when its WAL ends.
async fn watch_wal(context: Arc<Context>) {
    let end = context.wal.ended().await;
    context.lease.end();
    context.tell_shards(|| Control::CloseAll).await;
    match end {
        WalEnd::Drained(_) | WalEnd::Stopped => {}
        WalEnd::Fenced { .. } => context.end(NodeEnd::Fenced { how: end.to_string() }),
        other => context.end(NodeEnd::Failed { what: other.to_string() }),
    }
}
