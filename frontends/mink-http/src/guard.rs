//! Keeps web pages out: DNS rebinding and cross-site requests.
//!
//! Lives on: the service runtime, before each handler.
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Hosts by which the listener may be called: its addresses, and what the configuration lists.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Names without ports; `localhost` and loopback addresses are always allowed.
    pub fn new(hosts: impl IntoIterator<Item = String>) -> AllowedHosts {
        AllowedHosts(hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    fn allows(&self, authority: &str) -> bool {
        let host = host_of(authority).to_ascii_lowercase();
        matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") || self.0.contains(&host)
    }
}

/// The host of `host:port`.
fn host_of(authority: &str) -> &str {
    match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => authority.get(..colon).unwrap_or(authority),
        _ => authority,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Why a request is not served, if it is not.
fn refusal(hosts: &AllowedHosts, method: &Method, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if !method.is_safe() {
        let Some(host) = text(headers, &header::HOST).filter(|host| hosts.allows(host)) else {
            return Some((StatusCode::FORBIDDEN, "the Host header is not an address of this listener"));
        };
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        if origin
            .is_some_and(|origin| origin.split_once("://").is_none_or(|(_, authority)| authority != host))
        {
            return Some((StatusCode::FORBIDDEN, "requests of other web pages are not served"));
        }
        let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json"));
        }
    }
    None
}

pub(crate) async fn guard(
    State(hosts): State<Arc<AllowedHosts>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    match refusal(&hosts, request.method(), request.headers()) {
        Some((status, why)) => (status, axum::Json(serde_json::json!({ "error": why }))).into_response(),
        None => next.run(request).await,
    }
}
