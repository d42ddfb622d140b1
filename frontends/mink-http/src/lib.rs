//! The HTTP listener: `/metrics`, `/healthz`, `/readyz`, and administration as JSON under `/api/v1`.
//!
//! Lives on: the service runtime.
//! Owns: the listener's connections.     Talks to: a node through `mink_api::Admin`, once it is up.
//! Invariants: a web page is no client: writes need `Content-Type: application/json`, a `Host` that is ours and no foreign
//! `Origin`, and no answer carries a CORS header.
#![forbid(unsafe_code)]

mod api;
mod guard;
mod health;
mod metrics;
mod node;
mod server;
mod view;

pub use guard::AllowedHosts;
pub use node::{HttpNode, MetricSource, NotUp};
pub use server::{HttpServer, router};

#[cfg(test)]
mod tests;
