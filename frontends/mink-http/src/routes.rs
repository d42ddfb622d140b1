//! The routes: which handler answers what.
//!
//! Lives on: the service runtime.
use crate::config::BODY_BYTES_MAX;
use crate::guard::{AllowedHosts, guard};
use crate::node::HttpNode;
use crate::{api, health, metrics};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get};
use std::sync::Arc;

/// What every handler is given.
pub(crate) type Node = Arc<HttpNode>;

/// The routes of the listener.
pub fn router(node: Arc<HttpNode>, hosts: AllowedHosts) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/status", get(api::status))
        .route("/api/v1/node", get(api::node))
        .route("/api/v1/metadata", get(api::metadata))
        .route("/api/v1/databases", get(api::databases).post(api::create_database))
        .route("/api/v1/databases/{database}", delete(api::drop_database))
        .route("/api/v1/tables", get(api::tables).post(api::create_table))
        .route("/api/v1/tables/{database}/{table}", get(api::table).delete(api::drop_table))
        .layer(middleware::from_fn_with_state(Arc::new(hosts), guard))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(node)
}
