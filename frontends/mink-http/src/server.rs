//! The routes, and the task that serves them.
//!
//! Lives on: the service runtime.
use crate::guard::{AllowedHosts, guard};
use crate::node::HttpNode;
use crate::{api, health, metrics};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get};
use std::future::Future;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Largest body of a request, in bytes: options of a table are small.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// What every handler is given.
pub(crate) type Node = Arc<HttpNode>;

/// The routes of the listener.
pub fn router(node: Arc<HttpNode>, hosts: AllowedHosts) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/status", get(api::status))
        .route("/api/v1/metadata", get(api::metadata))
        .route("/api/v1/databases", get(api::databases).post(api::create_database))
        .route("/api/v1/databases/{database}", delete(api::drop_database))
        .route("/api/v1/tables", get(api::tables).post(api::create_table))
        .route("/api/v1/tables/{database}/{table}", get(api::table).delete(api::drop_table))
        .layer(middleware::from_fn_with_state(Arc::new(hosts), guard))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(node)
}

/// The listener of one node.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
}

impl HttpServer {
    /// Serves on a bound listener.
    pub fn new(listener: TcpListener) -> HttpServer {
        HttpServer { listener }
    }

    /// Serves until `stop` completes, then ends the open requests. The node may still be starting.
    pub async fn run(
        self,
        node: Arc<HttpNode>,
        hosts: AllowedHosts,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        axum::serve(self.listener, router(node, hosts)).with_graceful_shutdown(stop).await
    }
}
