//! The HTTP listener: `/metrics`, `/healthz`, `/readyz`, and administration as JSON under `/api/v1`.
//!
//! Lives on: the service runtime.
//! Owns: the listener's connections.     Talks to: a node through `mink_api::Admin`, once it is up.
//! Invariants: I20: connections, requests and answers are bounded in number, bytes and time (docs/security.md#http-connections). A web
//! page is no client: writes need `Content-Type: application/json`, a `Host` that is ours and no foreign
//! `Origin`, and no answer carries a CORS header.
#![forbid(unsafe_code)]

mod answers;
mod api;
mod config;
mod connection;
mod counters;
mod guard;
mod health;
mod metrics;
mod node;
mod presence;
mod routes;
mod server;
mod view;

pub use config::HttpConfig;
pub use guard::AllowedHosts;
pub use node::{HttpNode, MetricSource, NotUp};
pub use routes::router;
pub use server::HttpServer;

#[cfg(test)]
mod tests;
