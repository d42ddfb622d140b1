//! The listener: accepts connections within its bound, starts a task for each, and ends them in order.
//!
//! Lives on: the service runtime.
//! Owns: the socket that listens, and the tasks of the connections.
//! Invariants: I20: no more connections than the bound are open, and their files with them; whoever comes next is let in as long as one
//! is silent, which goes for him. A panic in one connection ends that connection only. `run` returns when every connection has ended.
use crate::answers::Answers;
use crate::config::HttpConfig;
use crate::connection::{Shared, serve};
use crate::counters::{Closed, Counters};
use crate::guard::AllowedHosts;
use crate::node::HttpNode;
use crate::presence::Open;
use crate::routes::router;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// First and longest pause after the system refused a connection for want of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long a connection that was sent away may take to be gone.
const ROOM_PATIENCE: Duration = Duration::from_millis(200);

/// The listener of one node.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    config: HttpConfig,
}

impl HttpServer {
    /// Serves on a bound listener.
    pub fn new(listener: TcpListener, config: HttpConfig) -> HttpServer {
        HttpServer { listener, config }
    }

    /// Serves until `stop` completes, then ends the open requests. The node may still be starting; it shows this listener's counters.
    pub async fn run(
        self,
        node: Arc<HttpNode>,
        hosts: AllowedHosts,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let HttpServer { listener, config } = self;
        let (counters, open) = (Counters::new(), Open::default());
        let (bytes_max, patience) = (config.answer_bytes_max, config.write_deadline);
        let routes = router(Arc::clone(&node), hosts);
        let answers = Answers::new(routes, open.clone(), bytes_max, patience);
        let (counted, memory) = (Arc::clone(&counters), answers.memory());
        node.count_too(Arc::new(move || counted.metrics(memory.held_bytes())));
        let door = Door { places: Arc::new(Semaphore::new(config.connections_max)) };
        let shared = Arc::new(Shared { config, counters, open, answers });
        let (stopping, stops) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let mut pause = ACCEPT_PAUSE;
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(end) = connections.join_next() => {
                    ended(&shared, &end);
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = ACCEPT_PAUSE;
                    shared.counters.accepted();
                    match door.place(&shared, peer).await {
                        Some(place) => start(&mut connections, &shared, stream, place, stops.clone()),
                        None => drop(stream),
                    }
                }
                Err(error) => {
                    shared.counters.accept_failed();
                    if !is_exhausted(&error) {
                        // The client went away before it was accepted.
                        continue;
                    }
                    shared.open.make_room();
                    if shared.counters.may_tell(Instant::now()).is_some() {
                        tracing::warn!(%error, "no files left for http connections; raise the limit of open files");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        while let Some(end) = connections.join_next().await {
            ended(&shared, &end);
        }
    }
}

/// Who may come in.
struct Door {
    places: Arc<Semaphore>,
}

impl Door {
    /// A place for a connection, if need be that of another; none if all are being served.
    async fn place(&self, shared: &Shared, peer: SocketAddr) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let is_room_made = shared.open.make_room();
        if let Some(held_back) = shared.counters.may_tell(Instant::now()) {
            let limit = shared.config.connections_max;
            tracing::warn!(
                %peer, limit, held_back,
                "as many http connections as may be: the one that is silent for the longest goes for the next"
            );
        }
        if is_room_made {
            let place = Arc::clone(&self.places).acquire_owned();
            if let Ok(Ok(place)) = tokio::time::timeout(ROOM_PATIENCE, place).await {
                return Some(place);
            }
        }
        shared.counters.closed(Closed::ConnectionLimit);
        None
    }
}

fn start(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    stops: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting for more only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's algorithm");
    }
    shared.counters.opened();
    let (listed, shared) = (shared.open.list(), Arc::clone(shared));
    connections.spawn(async move {
        serve(stream, listed, shared, stops).await;
        drop(place);
    });
}

fn ended(shared: &Shared, end: &Result<(), JoinError>) {
    shared.counters.ended();
    if let Err(error) = end
        && error.is_panic()
    {
        tracing::error!(%error, "an http connection ended by a fault");
        shared.counters.closed(Closed::Fault);
    }
}

/// Whether the system lacks something that comes back: files, buffers, memory.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let lacking = [Errno::NOMEM, Errno::NFILE, Errno::MFILE, Errno::NOBUFS];
    lacking.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
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
