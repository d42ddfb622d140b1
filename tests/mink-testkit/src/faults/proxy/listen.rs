//! The clients' listener: takes connections, and is gone while the store is away.
//! Lives on: the proxy's runtime, one task, and one per connection.
//! Owns: the listener and the connections.
//! Invariants: the port stays the proxy's own while nobody listens on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::{Shared, meet};

const BACKLOG: u32 = 1_024;
/// Connections at a time; further ones wait in the kernel.
const CONNECTIONS_MAX: usize = 1_024;
/// How often the plan is looked at where none of its windows begins or ends: a change of the plan is told at once.
const NO_EDGE: Duration = Duration::from_hours(1);
/// After an error of the machine (no file left, the port in the hands of somebody else).
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Goes on until it is aborted.
pub(super) async fn run(listener: TcpListener, address: SocketAddr, shared: Arc<Shared>) {
    let mut listener = Some(listener);
    loop {
        let socket = match listener.take() {
            Some(listener) => serve(listener, &shared).await,
            None => hold(address).await,
        };
        wait_until_back(&shared).await;
        listener = match socket {
            Some(socket) => socket.listen(BACKLOG).ok(),
            None => None,
        };
    }
}

/// Takes connections until the store goes away; then all of them break. The port, held.
async fn serve(listener: TcpListener, shared: &Arc<Shared>) -> Option<TcpSocket> {
    let address = listener.local_addr().ok()?;
    let mut changed = shared.changed.subscribe();
    let mut connections = JoinSet::new();
    loop {
        let (away, next) = shared.away();
        if away {
            drop(listener);
            connections.shutdown().await;
            return hold(address).await;
        }
        let edge = next.unwrap_or(NO_EDGE);
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(shared)))),
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            // An error means that the proxy ends.
            _ = changed.changed() => {}
            () = tokio::time::sleep(edge) => {}
        }
    }
}

/// Binds the port without listening: connections to it are refused. `None` if the machine does not allow it now.
async fn hold(address: SocketAddr) -> Option<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.ok()?;
    let bound = socket.set_reuseaddr(true).and_then(|()| socket.bind(address));
    if bound.is_err() {
        tokio::time::sleep(AGAIN_AFTER).await;
        return None;
    }
    Some(socket)
}

async fn wait_until_back(shared: &Shared) {
    let mut changed = shared.changed.subscribe();
    loop {
        let (away, next) = shared.away();
        if !away {
            return;
        }
        let edge = next.unwrap_or(NO_EDGE);
        tokio::select! {
            _ = changed.changed() => {}
            () = tokio::time::sleep(edge) => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Without it an answer waits for the client's next packet; that it cannot be set harms nothing else.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| meet::meet(Arc::clone(&shared), request));
    // No timer: an idle connection is the client's to close.
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is what this is for: the client sees it.
    drop(serving.await);
}
