//! The listener: accepts connections, starts a task for each, and ends them in order.
//!
//! Lives on: the service runtime.
//! Owns: the socket that listens, and the tasks of the connections.
//! Invariants: I20: connections are bounded in all and per address, and in how fast they come; when there is no room for more, or few
//! files are left to open, the one that was idle for the longest goes; a panic in one connection ends that connection only; `run`
//! returns when every connection has ended.
use crate::connection::serve;
use crate::counters::Closed;
use crate::fetch_sessions::FetchSessions;
use crate::idle::{Idle, Listed};
use crate::node::Node;
use crate::{KafkaConfig, KafkaCounters};
use futures::stream::{FuturesUnordered, StreamExt};
use mink_api::{Admin, GroupCoordinator, LogSource};
use mink_router::{Admission, Admitted};
use mink_rt::{Service, Task, TaskEnd};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// First and longest pause after the system refused a connection for want of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Open files that connections leave to others, and at most this part of all.
const FILES_RESERVED: u64 = 256;
const FILES_RESERVED_PART: u64 = 4;

/// The Kafka listener of one node.
#[derive(Debug)]
pub struct KafkaServer {
    listener: TcpListener,
    node: Arc<Node>,
}

impl KafkaServer {
    /// A server on a bound listener.
    pub fn new(
        listener: TcpListener,
        config: KafkaConfig,
        source: Arc<dyn LogSource>,
        admin: Arc<dyn Admin>,
        groups: Arc<dyn GroupCoordinator>,
        service: Service,
    ) -> KafkaServer {
        let counters = KafkaCounters::new();
        let sessions = FetchSessions::default();
        let node = Arc::new(Node {
            config,
            source,
            admin,
            groups,
            service,
            counters,
            sessions,
            alterations: Semaphore::new(1),
        });
        KafkaServer { listener, node }
    }

    /// A handle on the counters, which outlives the server.
    pub fn counters(&self) -> KafkaCounters {
        self.node.counters.clone()
    }

    /// Where the server listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` completes. Then accepts and reads no more, lets every connection send the answers of what was
    /// asked (for `drain_timeout` at most), closes them and returns.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let KafkaServer { listener, node } = self;
        let (door, began) = (Admission::new(&node.config.limits), Instant::now());
        let idle = Idle::default();
        let (stopping, stops) = watch::channel(false);
        let mut connections = FuturesUnordered::new();
        let mut stop = std::pin::pin!(stop);
        let mut pause = ACCEPT_PAUSE;
        let files = OpenFiles::of_the_process();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(end) = connections.next(), if !connections.is_empty() => {
                    ended(&node, &end);
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = ACCEPT_PAUSE;
                    node.counters.accepted();
                    let few_files = files.are_few(&stream);
                    if few_files {
                        note_few_files(&node, None);
                    }
                    match door.admit(peer.ip(), began.elapsed()) {
                        // What is left is for the store, the database and whoever looks at the node.
                        Ok(_) if few_files && !idle.make_room(Instant::now()) => {
                            turn_away(&node, stream, peer, Closed::OpenFiles);
                        }
                        Ok(place) => {
                            let place = (place, idle.list());
                            connections.push(start(&node, stream, peer, place, stops.clone()));
                        }
                        Err(why) => turn_away(&node, stream, peer, why.into()),
                    }
                    // For whoever comes next.
                    if door.is_full() {
                        idle.make_room(Instant::now());
                    }
                }
                Err(error) => {
                    node.counters.accept_failed();
                    if !is_exhausted(&error) {
                        // The client went away before it was accepted.
                        continue;
                    }
                    idle.make_room(Instant::now());
                    note_few_files(&node, Some(&error));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        drain(&node, connections).await;
    }
}

/// How many files the process may have open, and from where on there are few left.
struct OpenFiles {
    few_from: Option<u64>,
}

impl OpenFiles {
    fn of_the_process() -> OpenFiles {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        OpenFiles { few_from: most.map(|most| most - FILES_RESERVED.min(most / FILES_RESERVED_PART)) }
    }

    /// The system gives the lowest number that is free: a high one says that all below are taken.
    fn are_few(&self, newest: &TcpStream) -> bool {
        let number = u64::try_from(newest.as_raw_fd()).unwrap_or(0);
        self.few_from.is_some_and(|few_from| number >= few_from)
    }
}

/// Says that there are too few files, once in a while.
fn note_few_files(node: &Node, error: Option<&io::Error>) {
    if node.counters.may_tell_of_files() {
        let error = error.map(tracing::field::display);
        tracing::warn!(error, "no files left for kafka connections; raise the limit of open files");
    }
}

fn start(
    node: &Arc<Node>,
    stream: TcpStream,
    peer: SocketAddr,
    (place, listed): (Admitted, Listed),
    stops: watch::Receiver<bool>,
) -> Task {
    // Answers are written whole; waiting for more only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot turn off Nagle's algorithm");
    }
    node.counters.opened();
    let served = Arc::clone(node);
    node.service.spawn("kafka-connection", async move {
        serve(stream, peer, served, stops, listed).await;
        drop(place);
    })
}

fn turn_away(node: &Node, stream: TcpStream, peer: SocketAddr, why: Closed) {
    drop(stream);
    if let Some(held_back) = node.counters.closed(why) {
        tracing::warn!(
            %peer, reason = why.name(), held_back,
            "too many kafka connections; see connections-max, connections-per-second and the same per address"
        );
    }
}

fn ended(node: &Node, end: &TaskEnd) {
    node.counters.ended();
    if let TaskEnd::Panicked(_) = end {
        // The runtime has logged it.
        let _held_back = node.counters.closed(Closed::Fault);
    }
}

async fn drain(node: &Node, mut connections: FuturesUnordered<Task>) {
    let all = async {
        while let Some(end) = connections.next().await {
            ended(node, &end);
        }
    };
    if tokio::time::timeout(node.config.drain_timeout, all).await.is_ok() {
        return;
    }
    tracing::warn!(connections = connections.len(), "kafka connections did not end in time and are cut");
    connections.iter().for_each(Task::cancel);
    while let Some(end) = connections.next().await {
        ended(node, &end);
    }
}

/// Whether the system lacks something that comes back: files, buffers, memory.
fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_the_systems_own_means_makes_the_listener_pause() {
        assert!(is_exhausted(&io::Error::from_raw_os_error(24)));
        assert!(!is_exhausted(&io::ErrorKind::ConnectionAborted.into()));
    }
}
