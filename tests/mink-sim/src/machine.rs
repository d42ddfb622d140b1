//! A machine of the simulation: a directory, and on it one process after another, each a real node from its start to its end.
//!
//! Lives on: the simulation's thread; a node's tasks in its process.
//! Owns: who of them serves now.
//! Invariants: a machine has one process at a time (the directory's lock); a killed process has vanished before the next begins.
use crate::dice::Dice;
use crate::history::History;
use crate::ledger::Ledger;
use crate::log::SimLog;
use crate::plan::Plan;
use crate::store::SimStore;
use crate::weather::Cut;
use futures::channel::oneshot;
use futures::future::{Either, select};
use mink_api::{Admin, GroupCoordinator, LogSource};
use mink_node::{DataDir, GroupLimits, Node, NodeConfig, NodeEnd, Progress, StartError, Stores};
use mink_object::ObjectStore;
use mink_router::BytePermits;
use mink_rt::{Runtime, Service, SimClock, SimProcess, SimWorld};
use mink_sql::{CommandLog, Home, Metadata, MetadataConfig};
use mink_types::{ClusterName, DatabaseName, NodeId};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where nodes find everything.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) world: SimWorld,
    pub(crate) service: Service,
    pub(crate) dice: Dice,
    pub(crate) plan: Plan,
    pub(crate) cluster: ClusterName,
    pub(crate) store: SimStore,
    pub(crate) log: SimLog,
    pub(crate) history: Arc<History>,
    pub(crate) ledger: Arc<Ledger>,
    /// Nodes that serve, by process.
    serving: Arc<Mutex<BTreeMap<u64, Serving>>>,
    root: Arc<tempfile::TempDir>,
}

/// A node that clients can reach.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) process: SimProcess,
    pub(crate) source: Arc<dyn LogSource>,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) groups: Arc<dyn GroupCoordinator>,
    pub(crate) permits: BytePermits,
}

impl Serving {
    /// Does `work` in the node's process, as its listener would; none if the process dies meanwhile.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        drop(self.process.runtime().service().spawn("connection", async move {
            // Whoever asked may have hung up.
            drop(answer.send(work.await));
        }));
        answered.await.ok()
    }
}

/// How a process ended by itself.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Why, and whether it makes sense to try again.
    NotStarted {
        why: String,
        again: bool,
    },
    Node(NodeEnd),
}

/// A process under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u64,
    pub(crate) process: SimProcess,
    pub(crate) paused: bool,
    /// Whether it is cut off from the database, and from the store.
    pub(crate) from_database: Cut,
    pub(crate) from_store: Cut,
    drain: Option<oneshot::Sender<Duration>>,
    ended: oneshot::Receiver<Ended>,
}

impl Site {
    pub(crate) fn new(
        world: &SimWorld,
        dice: &Dice,
        plan: Plan,
        cluster: ClusterName,
        (store, log): (SimStore, SimLog),
        history: &Arc<History>,
        ledger: &Arc<Ledger>,
    ) -> Site {
        let shm = std::path::Path::new("/dev/shm");
        let builder = || tempfile::Builder::new().prefix("mink-sim-").to_owned();
        let root = if shm.is_dir() { builder().tempdir_in(shm) } else { builder().tempdir() };
        Site {
            world: world.clone(),
            service: world.runtime().service(),
            dice: dice.clone(),
            plan,
            cluster,
            store,
            log,
            history: Arc::clone(history),
            ledger: Arc::clone(ledger),
            serving: Arc::default(),
            root: Arc::new(root.expect("a directory for the machines' locks")),
        }
    }

    fn serving(&self) -> MutexGuard<'_, BTreeMap<u64, Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node that serves, or believes so: most often the newest.
    pub(crate) fn pick(&self) -> Option<Serving> {
        let serving = self.serving();
        if serving.len() > 1 && self.dice.one_in(4) {
            return serving.values().nth(self.dice.index(serving.len())).cloned();
        }
        serving.values().next_back().cloned()
    }

    pub(crate) fn gone(&self, number: u64) {
        self.serving().remove(&number);
    }

    /// How wrong a machine's wall clock is.
    fn wall_ahead_ms(&self) -> i64 {
        let most = i64::try_from(self.plan.wall_wrong.as_millis()).unwrap_or(0);
        i64::try_from(self.dice.below(2 * most.unsigned_abs())).unwrap_or(0) - most
    }

    /// Whether a process serves.
    pub(crate) fn serves(&self, number: u64) -> bool {
        self.serving().contains_key(&number)
    }

    /// Begins a process on a machine.
    pub(crate) fn begin(&self, machine: usize, number: u64) -> Running {
        let drift = i32::try_from(self.dice.below(2 * self.plan.drift_ppm + 1)).unwrap_or(0)
            - i32::try_from(self.plan.drift_ppm).unwrap_or(0);
        let clock = SimClock {
            boot_ahead: Duration::from_secs(self.dice.below(100_000)),
            drift_ppm: drift,
            wall_ahead_ms: self.wall_ahead_ms(),
        };
        let process = self.world.process(clock);
        let (tell, ended) = oneshot::channel();
        let (drain, drains) = oneshot::channel();
        let (site, runtime) = (self.clone(), process.runtime());
        let path = self.root.path().join(format!("machine-{machine}"));
        let (from_database, from_store) = (Cut::default(), Cut::default());
        let (store, log) = (self.store.of_node(&from_store), self.log.of_node(&from_database));
        let site = Site { store, log, ..site };
        let life = Life { site, runtime, number, process: process.clone(), path };
        tracing::info!(machine, number, "process begins");
        drop(process.runtime().service().spawn("node main", async move {
            // The supervisor listens until it has killed the process.
            drop(tell.send(Box::pin(life.run(drains)).await));
        }));
        Running { number, process, paused: false, from_database, from_store, drain: Some(drain), ended }
    }

    /// Ends a process as a crash would.
    pub(crate) fn kill(&self, running: &Running) {
        tracing::info!(number = running.number, "process is killed");
        running.process.kill();
        self.gone(running.number);
    }
}

impl Running {
    /// Tells it to leave in order, once.
    pub(crate) fn drain(&mut self, limit: Duration) {
        if let Some(drain) = self.drain.take() {
            // It may have ended already.
            let _ = drain.send(limit);
        }
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        self.ended.try_recv().ok().flatten()
    }
}

fn not_started(why: String) -> Ended {
    Ended::NotStarted { why, again: true }
}

/// One process, seen from inside.
struct Life {
    site: Site,
    runtime: Arc<dyn Runtime>,
    number: u64,
    process: SimProcess,
    path: PathBuf,
}

impl Life {
    async fn run(self, drains: oneshot::Receiver<Duration>) -> Ended {
        let service = self.runtime.service();
        let dir = match DataDir::open(&self.path) {
            Ok(dir) => dir,
            Err(error) => return not_started(error.to_string()),
        };
        let home = Home {
            service: service.clone(),
            log: Arc::new(self.site.log.clone()),
            store: Arc::new(self.site.store.clone()),
            cluster: self.site.cluster.clone(),
        };
        let metadata = match Metadata::open(home, MetadataConfig::default()).await {
            Ok(metadata) => metadata,
            Err(error) => return not_started(format!("metadata: {error}")),
        };
        let config = self.config();
        let limits = config.limits.clone();
        let started = Box::pin(Node::start(config, &self.runtime, metadata.clone(), dir)).await;
        let mut node = match started {
            Ok(node) => node,
            Err(
                error @ (StartError::StoreLies { .. }
                | StartError::DatabaseBehind { .. }
                | StartError::DatabaseDiffers { .. }),
            ) => {
                self.site.history.violated(format!("process {} did not start: {error}", self.number));
                return not_started(error.to_string());
            }
            Err(error @ StartError::Fenced) => {
                return Ended::NotStarted { why: error.to_string(), again: false };
            }
            Err(error) => return not_started(error.to_string()),
        };
        let serving = Serving {
            process: self.process.clone(),
            source: node.source(),
            admin: node.admin(),
            groups: node.groups(),
            permits: BytePermits::new(u64::from(limits.frame_bytes_max)),
        };
        self.site.serving().insert(self.number, serving);
        tracing::info!(number = self.number, "node is up");
        let how = match select(Box::pin(node.ended()), drains).await {
            Either::Left((end, _)) => Either::Left(end),
            Either::Right((limit, _)) => Either::Right(limit),
        };
        let end = match how {
            Either::Left(end) => {
                node.stop().await;
                end
            }
            Either::Right(limit) => node.drain(limit.unwrap_or_default()).await,
        };
        metadata.stop().await;
        self.site.gone(self.number);
        Ended::Node(end)
    }

    fn config(&self) -> NodeConfig {
        let store: Arc<dyn ObjectStore> = Arc::new(self.site.store.clone());
        let only = Arc::clone(&store);
        let number = self.number;
        let plan = &self.site.plan;
        NodeConfig {
            cluster: self.site.cluster.clone(),
            node: NodeId(1),
            stores: Stores {
                stream: Arc::clone(&store),
                wal: Arc::clone(&store),
                probed: vec![store],
                open: Arc::new(move |_| Ok(Arc::clone(&only))),
            },
            log: Arc::new(self.site.log.clone()) as Arc<dyn CommandLog>,
            database: "sim".into(),
            listeners: Vec::new(),
            kafka_database: DatabaseName::new("kafka").expect("valid"),
            shards: NonZeroUsize::new(plan.shards).unwrap_or(NonZeroUsize::MIN),
            limits: plan.limits.clone(),
            groups: GroupLimits { rebalance_delay_ms: 0, ..GroupLimits::default() },
            wal: plan.wal.clone(),
            lease_ttl: plan.lease_ttl,
            tail_bytes: plan.tail_bytes,
            object_read_bytes: 64 << 20,
            footer_cache_bytes: plan.footer_cache_bytes,
            block_cache_bytes: plan.block_cache_bytes,
            compaction: plan.compaction,
            deletion_grace: plan.deletion_grace,
            snapshot_rows: 50,
            runtime: "sim".into(),
            version: "sim".into(),
            progress: Progress::new(move |step| tracing::debug!(number, step, "starting")),
        }
    }
}
