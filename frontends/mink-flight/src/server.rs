//! The listener: connections, their bounds, and the end of both.
//!
//! Lives on: the service runtime.
//! Owns: the socket that listens.
//! Invariants: I20: connections, how fast they come, their calls and the messages of each are bounded.     See: docs/security.md
use crate::answer_body::AnswerBody;
use crate::answers::Answers;
use crate::counters::Closed;
use crate::line::Connection;
use crate::node::Node;
use crate::paid_body::{Paid, PaidBody};
use crate::service::Calls;
use crate::{FlightConfig, FlightCounters};
use arrow_flight::flight_service_server::FlightServiceServer;
use futures::future::{MapOk, TryFutureExt};
use futures::stream::{self, Stream};
use mink_api::{Admin, LogSource};
use mink_router::{Admission, TurnedAway};
use mink_rt::Service;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::Server;
use tower::{Layer, Service as TowerService};

/// Calls that one connection may have open.
const CALLS_PER_CONNECTION_MAX: u32 = 128;
/// Bytes of the headers of one call.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Calls that a client may begin and cancel before the node has looked at them (CVE-2023-44487).
const RESET_CALLS_MAX: usize = 64;
/// Bytes that a client may send ahead: of one call, of a connection.
const CALL_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// A connection that answers no ping for so long is gone.
const PING_EVERY: Duration = Duration::from_mins(1);
const PING_PATIENCE: Duration = Duration::from_secs(20);
/// What a system that lacks something is given.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The Flight listener of one node.
#[derive(Debug)]
pub struct FlightServer {
    listener: TcpListener,
    node: Arc<Node>,
    stopping: watch::Sender<bool>,
}

impl FlightServer {
    /// A server on a bound listener.
    pub fn new(
        listener: TcpListener,
        config: FlightConfig,
        source: Arc<dyn LogSource>,
        admin: Arc<dyn Admin>,
        service: Service,
    ) -> FlightServer {
        let counters = FlightCounters::default();
        let (stopping, stops) = watch::channel(false);
        let answers = Answers::new(config.answer_permits.clone());
        let node = Node { config, source, admin, service, counters, answers, stopping: stops };
        FlightServer { listener, node: Arc::new(node), stopping }
    }

    /// A handle on the counters, which outlives the server.
    pub fn counters(&self) -> FlightCounters {
        self.node.counters.clone()
    }

    /// Serves until `stop` completes. Then takes no more calls, lets those that are open go on for `drain_timeout` at most, and returns.
    ///
    /// # Errors
    /// The listener broke.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), tonic::transport::Error> {
        let FlightServer { listener, node, stopping: calls_stop } = self;
        let message_bytes_max = node.config.limits.flight_message_bytes_max;
        let decoded_max = usize::try_from(message_bytes_max).unwrap_or(usize::MAX);
        let calls = FlightServiceServer::new(Calls(Arc::clone(&node)))
            .max_decoding_message_size(decoded_max)
            .max_encoding_message_size(usize::MAX);
        let paying = Paying { node: Arc::clone(&node) };
        let connections = connections(listener, Arc::clone(&node));
        let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
        let drain_timeout = node.config.drain_timeout;
        let mut serving = std::pin::pin!(
            Server::builder()
                .max_concurrent_streams(CALLS_PER_CONNECTION_MAX)
                .concurrency_limit_per_connection(CALLS_PER_CONNECTION_MAX as usize)
                .initial_stream_window_size(CALL_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .http2_max_header_list_size(HEADER_BYTES_MAX)
                .http2_max_pending_accept_reset_streams(Some(RESET_CALLS_MAX))
                .http2_keepalive_interval(Some(PING_EVERY))
                .http2_keepalive_timeout(Some(PING_PATIENCE))
                .layer(paying)
                .add_service(calls)
                .serve_with_incoming_shutdown(connections, async {
                    drop(stopped.await);
                })
        );
        tokio::select! {
            ended = &mut serving => return ended,
            () = stop => {}
        }
        calls_stop.send_replace(true);
        drop(stopping);
        match tokio::time::timeout(drain_timeout, serving).await {
            Ok(ended) => ended,
            Err(_) => Ok(()),
        }
    }
}

/// The connections that come and are let in.
fn connections(listener: TcpListener, node: Arc<Node>) -> impl Stream<Item = io::Result<Connection>> {
    let (door, began) = (Admission::new(&node.config.limits), Instant::now());
    let patience = Duration::from_millis(node.config.limits.frame_deadline_ms);
    stream::unfold((listener, door, node), move |(listener, door, node)| async move {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection of Flight was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match door.admit(peer.ip(), began.elapsed()) {
                Ok(place) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection of Flight keeps small packets back");
                    }
                    let connection = Connection::new(stream, place, patience, node.counters.clone());
                    return Some((Ok(connection), (listener, door, node)));
                }
                Err(why) => turn_away(&node, stream, peer, why),
            }
        }
    })
}

fn turn_away(node: &Node, stream: TcpStream, peer: SocketAddr, why: TurnedAway) {
    drop(stream);
    let why = match why {
        TurnedAway::TooMany => Closed::ConnectionLimit,
        TurnedAway::TooFast => Closed::ConnectionRate,
    };
    if let Some(closed) = node.counters.closed(why) {
        tracing::warn!(
            %peer, reason = why.name(), closed,
            "too many connections of Flight; see connections-max, connections-per-second and the same per address"
        );
    }
}

/// Makes the messages of every call pay, and those of its answer.
#[derive(Clone)]
struct Paying {
    node: Arc<Node>,
}

impl<S> Layer<S> for Paying {
    type Service = PayingService<S>;

    fn layer(&self, inner: S) -> PayingService<S> {
        PayingService { inner, node: Arc::clone(&self.node) }
    }
}

#[derive(Clone)]
struct PayingService<S> {
    inner: S,
    node: Arc<Node>,
}

impl<S> TowerService<http::Request<Body>> for PayingService<S>
where
    S: TowerService<http::Request<Body>, Response = http::Response<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = MapOk<S::Future, fn(http::Response<Body>) -> http::Response<Body>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let config = &self.node.config;
        let paid = Paid::default();
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(paid.clone());
        let permits = config.request_permits.clone();
        let body = PaidBody::new(body, paid, permits, &config.limits, self.node.counters.clone());
        self.inner
            .call(http::Request::from_parts(parts, Body::new(body)))
            .map_ok(AnswerBody::wrap as fn(_) -> _)
    }
}
