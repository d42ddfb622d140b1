//! A node with its listeners: started in order, served, stopped in order.
//!
//! Lives on: the service runtime.
//! Owns: the node, the listeners' tasks.     Talks to: everything below.
//! Invariants: listeners are bound before the node registers (its registration tells their ports); HTTP answers from then on, since a
//! takeover may take long and probes must not take it for death, Kafka once the node is ready. On the way down the node drains while
//! connections still carry its acks.
use crate::allocator;
use crate::args::{HostPort, Listen};
use crate::cpu::cpu_metrics;
use crate::resident::{Permits, memory_metrics};
use crate::settings::{MetadataPlace, Settings, without_password};
use futures::FutureExt;
use futures::channel::oneshot;
use mink_api::NodeStatus;
use mink_flight::{FlightConfig, FlightCounters, FlightServer};
use mink_http::{AllowedHosts, HttpConfig, HttpNode, HttpServer};
use mink_kafka::{KafkaConfig, KafkaCounters, KafkaServer};
use mink_metadata::Listener;
use mink_node::{DataDir, DataDirError, Node, NodeConfig, NodeEnd, Progress, StartError, Stores};
use mink_object::{ObjectStore, OpenContext, OpenError};
use mink_rt::{Runtime, Service};
use mink_sql::{
    CommandLog, Database, Home, IdentityError, LoadError, Metadata, MetadataConfig, OpenLogError, SqliteLog,
};
use mink_types::{Incarnation, LogIndex, RowHash};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Why a node is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(
        "cannot listen on {address}: {source}; stop what listens there, or give another --{flag} (port 0 takes a free one)"
    )]
    Listen { flag: &'static str, address: SocketAddr, source: std::io::Error },
    #[error("{0}")]
    Store(String),
    #[error("{0}{remedy}", remedy = of_database(.0))]
    Log(#[from] OpenLogError),
    #[error("{0}{remedy}", remedy = of_store(.0))]
    Load(#[from] LoadError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("signals: {0}")]
    Signals(std::io::Error),
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> ServeError {
        ServeError::Store(error.to_string())
    }
}

/// What to do about a database, where its own words do not say it.
fn of_database(error: &OpenLogError) -> &'static str {
    match error {
        OpenLogError::Open { .. } => {
            "; check that it is one of mink's, in a directory that exists and is writable, or name another by --metadata"
        }
        OpenLogError::Newer { .. } => "",
    }
}

/// What to do about a store, where its own words do not say it.
fn of_store(error: &LoadError) -> &'static str {
    match error {
        LoadError::Store { .. }
        | LoadError::Identity(IdentityError::Store { .. } | IdentityError::Create { .. }) => {
            "; check --storage, that the store is reachable, and its credentials, then start again"
        }
        // These say it, or no flag helps.
        _ => "",
    }
}

/// Where a node serves. Its text is the ready line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ready {
    pub kafka: Option<SocketAddr>,
    pub flight: Option<SocketAddr>,
    pub http: Option<SocketAddr>,
    pub runtime: &'static str,
    pub shards: usize,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |address: Option<SocketAddr>| address.map_or_else(|| "none".into(), |a| a.to_string());
        let (kafka, flight, http) = (text(self.kafka), text(self.flight), text(self.http));
        write!(
            f,
            "mink ready kafka={kafka} flight={flight} http={http} runtime={} shards={}",
            self.runtime, self.shards
        )
    }
}

/// A node that serves.
#[derive(Debug)]
pub struct Server {
    node: Node,
    metadata: Metadata,
    ready: Ready,
    drain_timeout: Duration,
    listeners: Listeners,
}

/// The listeners that serve. Dropped, they stop.
#[derive(Debug, Default)]
struct Listeners {
    /// Dropping one tells its listener to stop.
    stops: Vec<oneshot::Sender<()>>,
    tasks: Vec<JoinHandle<()>>,
    /// Its open requests get a moment, then it is cut: a client that never ends its request must not keep the node from leaving.
    http: Option<JoinHandle<()>>,
}

/// How long HTTP requests may go on once the node stops.
const HTTP_PATIENCE: Duration = Duration::from_secs(2);

/// The part of a drain's time that connections have for the answers to what was asked. The rest, and what they leave, is the node's: a
/// client that takes nothing must not keep it from leaving in order.
fn part_of_listeners(drain_timeout: Duration) -> Duration {
    drain_timeout / 2
}

impl Server {
    /// Starts a node and its listeners; when this returns clients are served.
    pub async fn start(settings: Settings, runtime: Arc<dyn Runtime>) -> Result<Server, ServeError> {
        let service = runtime.service();
        let dir = DataDir::open_patiently(&settings.args.data_dir, &service).await?;
        // What lives in memory leaves nothing in the directory that could be another cluster's.
        let is_kept = settings.metadata != MetadataPlace::Memory;
        if is_kept {
            dir.check_cluster(&settings.cluster)?;
        }
        let kafka = bind("kafka-listen", settings.args.kafka_listen).await?;
        let flight = bind("flight-listen", settings.args.flight_listen).await?;
        let http = bind("http-listen", settings.args.http_listen).await?;
        let ready = Ready {
            kafka: local(kafka.as_ref()),
            flight: local(flight.as_ref()),
            http: local(http.as_ref()),
            runtime: runtime.name(),
            shards: settings.shards.get(),
        };
        let mut listeners = Listeners::default();
        let shown = Arc::new(HttpNode::starting(status_at_start(&settings, &ready)));
        listeners.serve_http(http, &shown, &settings, &ready);
        shown.step("opening the store");
        let stores = open_stores(&settings, &service)?;
        shown.step("loading the metadata");
        let log = open_log(&settings, &service).await?;
        let home = Home {
            service: service.clone(),
            log: Arc::clone(&log),
            store: Arc::clone(&stores.stream),
            cluster: settings.cluster.clone(),
        };
        let metadata = Metadata::open(home, MetadataConfig::default()).await?;
        if is_kept {
            dir.note_cluster(&settings.cluster)?;
        }
        let told = Arc::clone(&shown);
        let progress = Progress::new(move |step| told.step(&step));
        let config = node_config(&settings, stores, log, &ready, progress);
        let node = Node::start(config, &runtime, metadata.clone(), dir).await?;
        // It ends with the runtime: nothing depends on it.
        drop(tokio::spawn(allocator::keep_giving_back()));
        let permits = Permits::of(&settings.memory, &settings.limits);
        let kafka = listeners.serve_kafka(kafka, &node, &settings, &permits, &service);
        let flight = listeners.serve_flight(flight, &node, &settings, &permits, &service);
        if kafka.is_some() || flight.is_some() {
            let memory = settings.memory;
            shown.count_too(Arc::new(move || {
                let mut metrics = kafka.as_ref().map(KafkaCounters::metrics).unwrap_or_default();
                metrics.extend(flight.as_ref().map(FlightCounters::metrics).unwrap_or_default());
                metrics.extend(memory_metrics(&memory, &permits));
                metrics.extend(cpu_metrics());
                metrics
            }));
        }
        shown.up(node.admin());
        let drain_timeout = settings.args.drain_timeout;
        Ok(Server { node, metadata, ready, drain_timeout, listeners })
    }

    /// Where it serves.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Serves until SIGTERM or SIGINT, then drains; or until the node ends by itself. A second signal ends the process at once.
    pub async fn run(mut self) -> Result<NodeEnd, ServeError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
        let end = tokio::select! {
            end = self.node.ended() => Some(end),
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
        };
        if let Some(end) = end {
            tracing::error!(%end, "the node ends");
            self.node.stop().await;
            self.metadata.stop().await;
            return Ok(end);
        }
        tracing::info!(limit = ?self.drain_timeout, "draining; a second signal exits at once");
        tokio::select! {
            end = self.drain() => Ok(end),
            _ = terminate.recv() => Ok(NodeEnd::Hurried),
            _ = interrupt.recv() => Ok(NodeEnd::Hurried),
        }
    }

    /// Drains and stops: the listeners take no more connections, what was ordered is acked, the node leaves.
    pub async fn drain(self) -> NodeEnd {
        let Server { node, metadata, drain_timeout, listeners, .. } = self;
        let until = Instant::now() + drain_timeout;
        listeners.stop(HTTP_PATIENCE.min(part_of_listeners(drain_timeout))).await;
        let end = node.drain(until.saturating_duration_since(Instant::now())).await;
        metadata.stop().await;
        end
    }
}

impl Listeners {
    fn serve_kafka(
        &mut self,
        listener: Option<TcpListener>,
        node: &Node,
        settings: &Settings,
        permits: &Permits,
        service: &Service,
    ) -> Option<KafkaCounters> {
        let listener = listener?;
        let config = KafkaConfig {
            limits: settings.limits.clone(),
            kafka_database: settings.kafka_database.clone(),
            auto_create: settings.args.kafka_auto_create,
            default_partitions: settings.args.kafka_default_partitions,
            request_permits: permits.requests.clone(),
            large_request_permits: permits.large_requests.clone(),
            answer_permits: permits.answers.clone(),
            drain_timeout: part_of_listeners(settings.args.drain_timeout),
        };
        let server =
            KafkaServer::new(listener, config, node.source(), node.admin(), node.groups(), service.clone());
        let counters = server.counters();
        let stopped = self.stop_signal();
        self.tasks.push(tokio::spawn(server.run(stopped)));
        Some(counters)
    }

    fn serve_flight(
        &mut self,
        listener: Option<TcpListener>,
        node: &Node,
        settings: &Settings,
        permits: &Permits,
        service: &Service,
    ) -> Option<FlightCounters> {
        let config = FlightConfig {
            limits: settings.limits.clone(),
            kafka_database: settings.kafka_database.clone(),
            request_permits: permits.flight_requests.clone(),
            answer_permits: permits.flight_answers.clone(),
            drain_timeout: part_of_listeners(settings.args.drain_timeout),
        };
        let server = FlightServer::new(listener?, config, node.source(), node.admin(), service.clone());
        let counters = server.counters();
        let stopped = self.stop_signal();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = server.run(stopped).await {
                tracing::error!(%error, "the flight listener ended");
            }
        }));
        Some(counters)
    }

    fn serve_http(
        &mut self,
        listener: Option<TcpListener>,
        node: &Arc<HttpNode>,
        settings: &Settings,
        ready: &Ready,
    ) {
        let Some(listener) = listener else { return };
        let mut hosts = settings.args.http_hosts.clone();
        hosts.extend(ready.http.map(|address| address.ip().to_string()));
        let stopped = self.stop_signal();
        let config = HttpConfig::beside(settings.limits.connections_max);
        let server = HttpServer::new(listener, config);
        self.http = Some(tokio::spawn(server.run(Arc::clone(node), AllowedHosts::new(hosts), stopped)));
    }

    /// Completes when the listeners stop.
    fn stop_signal(&mut self) -> impl Future<Output = ()> + Send + 'static {
        let (stop, stopped) = oneshot::channel::<()>();
        self.stops.push(stop);
        // The sender is dropped to stop; nothing is ever sent.
        stopped.map(|_| ())
    }

    /// Stops all, and waits for their connections; for those of HTTP so long at most.
    async fn stop(self, http_patience: Duration) {
        let cut = Instant::now() + http_patience;
        drop(self.stops);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::warn!(%error, "a listener ended badly");
            }
        }
        let Some(mut http) = self.http else { return };
        if tokio::time::timeout_at(cut, &mut http).await.is_err() {
            http.abort();
        }
    }
}

async fn bind(flag: &'static str, listen: Listen) -> Result<Option<TcpListener>, ServeError> {
    match listen {
        Listen::Off => Ok(None),
        Listen::At(address) => TcpListener::bind(address)
            .await
            .map(Some)
            .map_err(|source| ServeError::Listen { flag, address, source }),
    }
}

/// The address a listener was bound to; a bound listener has one.
fn local(listener: Option<&TcpListener>) -> Option<SocketAddr> {
    listener.and_then(|listener| listener.local_addr().ok())
}

pub(crate) fn open_stores(settings: &Settings, service: &Service) -> Result<Stores, ServeError> {
    let context = OpenContext::new(service.clone());
    let stream = mink_object::open(&settings.storage, &context)?;
    let wal: Arc<dyn ObjectStore> = match &settings.wal_storage {
        Some(url) => mink_object::open(url, &context)?,
        None => Arc::clone(&stream),
    };
    let opener = context.clone();
    Ok(Stores {
        probed: vec![Arc::clone(&wal)],
        stream,
        wal,
        open: Arc::new(move |url| mink_object::open(url, &opener).map_err(|error| error.to_string())),
    })
}

pub(crate) async fn open_log(
    settings: &Settings,
    service: &Service,
) -> Result<Arc<dyn CommandLog>, ServeError> {
    let database = match &settings.metadata {
        MetadataPlace::Sqlite(path) => Database::File(path.clone()),
        MetadataPlace::Memory => Database::Memory,
    };
    Ok(Arc::new(SqliteLog::open(service, database, &settings.cluster).await?))
}

/// What clients are told of a listener; nothing if nobody can connect to its address.
fn told(name: &str, bound: Option<SocketAddr>, advertise: Option<&HostPort>) -> Option<Listener> {
    let bound = bound?;
    let (host, port) = match advertise {
        None if bound.ip().is_unspecified() => return None,
        // Port 0 stands for the port that was bound.
        Some(told) => (told.host.clone(), if told.port == 0 { bound.port() } else { told.port }),
        None => (bound.ip().to_string(), bound.port()),
    };
    Some(Listener { name: name.into(), host, port })
}

/// The HTTP listener has no address of its own to tell. One on all interfaces is told as such: who came by another listener knows the host.
fn told_http(bound: Option<SocketAddr>) -> Option<Listener> {
    bound.map(|bound| Listener { name: "http".into(), host: bound.ip().to_string(), port: bound.port() })
}

fn database_name(settings: &Settings) -> String {
    match &settings.metadata {
        MetadataPlace::Sqlite(path) => format!("sqlite://{}", path.display()),
        MetadataPlace::Memory => "memory://".into(),
    }
}

/// What is known of the node before it has registered.
fn status_at_start(settings: &Settings, ready: &Ready) -> NodeStatus {
    NodeStatus {
        node: settings.node,
        incarnation: Incarnation(0),
        not_ready: Vec::new(),
        draining: false,
        lease: false,
        metadata_index: LogIndex(0),
        metadata_hash: RowHash::default(),
        untrimmed_bytes: 0,
        untrimmed_objects: 0,
        pending_deletions: 0,
        lost: Vec::new(),
        buckets: Vec::new(),
        storage: without_password(&settings.storage),
        database: database_name(settings),
        shards: ready.shards,
        runtime: ready.runtime.into(),
    }
}

fn node_config(
    settings: &Settings,
    stores: Stores,
    log: Arc<dyn CommandLog>,
    ready: &Ready,
    progress: Progress,
) -> NodeConfig {
    let listeners = [
        told("kafka", ready.kafka, settings.args.kafka_advertise.as_ref()),
        told("flight", ready.flight, settings.args.flight_advertise.as_ref()),
        told_http(ready.http),
    ];
    NodeConfig {
        cluster: settings.cluster.clone(),
        node: settings.node,
        wal: settings.wal(stores.wal.needs_put_budget()),
        stores,
        log,
        database: database_name(settings),
        listeners: listeners.into_iter().flatten().collect(),
        kafka_database: settings.kafka_database.clone(),
        shards: settings.shards,
        limits: settings.limits.clone(),
        groups: settings.groups.clone(),
        lease_ttl: settings.args.lease_ttl,
        tail_bytes: settings.memory.log,
        object_read_bytes: settings.memory.answers,
        footer_cache_bytes: usize::try_from(settings.memory.footers).unwrap_or(usize::MAX),
        block_cache_bytes: usize::try_from(settings.memory.blocks).unwrap_or(usize::MAX),
        compaction: settings.compaction(),
        deletion_grace: settings.args.deletion_grace,
        snapshot_rows: settings.args.snapshot_rows,
        runtime: ready.runtime.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        progress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_interfaces_is_told_only_where_clients_can_tell_its_host() {
        let everywhere = Some("0.0.0.0:9180".parse().expect("an address"));
        assert_eq!(told("kafka", everywhere, None), None);
        assert_eq!(told_http(everywhere).map(|at| (at.host, at.port)), Some(("0.0.0.0".into(), 9180)));
        assert_eq!(told_http(None), None);
    }

    #[test]
    fn a_database_or_a_store_that_cannot_be_opened_is_told_with_the_flag_that_names_it() {
        let reason = || "no".to_owned();
        let open = OpenLogError::Open { path: "x".into(), reason: reason() };
        let identity = IdentityError::Store { store: "s3://b".into(), reason: reason() };
        for (error, flag) in [
            (ServeError::from(open), "--metadata"),
            (LoadError::from(identity).into(), "--storage"),
            (LoadError::Store { reason: reason() }.into(), "--storage"),
        ] {
            assert!(error.to_string().contains(flag), "{error}");
        }
        let empty = LoadError::NoSnapshot;
        assert_eq!(ServeError::from(empty.clone()).to_string(), empty.to_string(), "it has its own remedy");
    }
}
