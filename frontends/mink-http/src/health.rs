//! `/healthz`: the process answers. `/readyz`: it serves, or says why not.
//!
//! Lives on: the service runtime.
use crate::routes::Node;
use axum::extract::State;
use axum::http::StatusCode;

pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

pub(crate) async fn ready(State(node): State<Node>) -> (StatusCode, String) {
    let status = node.status().await;
    if status.is_ready() {
        return (StatusCode::OK, "ready\n".into());
    }
    let mut why = status.not_ready.clone();
    if status.draining {
        why.push("the node is draining".into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, why.join("\n") + "\n")
}
