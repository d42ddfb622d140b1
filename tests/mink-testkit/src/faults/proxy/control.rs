//! The control listener: another plan while clients run.
//! Lives on: the proxy's runtime, one task, and one per connection.
//! Owns: its listener and its connections.
//! Invariants: none of the product's.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::Shared;
use crate::faults::Plan;

pub(super) const PATH: &str = "/__faults";
const PLAN_BYTES_MAX: usize = 64 << 10;
const CONNECTIONS_MAX: usize = 64;
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Goes on until it is aborted.
pub(super) async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(AGAIN_AFTER).await;
                    continue;
                };
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(stream), service);
                    // Whoever broke it knows.
                    drop(connection.await);
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(text(StatusCode::NOT_FOUND, format!("GET, POST (a plan) or DELETE {PATH}\n")));
    }
    let set = match *request.method() {
        Method::GET => Ok(()),
        Method::DELETE => shared.set(Plan::default()).map_err(|error| error.to_string()),
        Method::POST | Method::PUT => begin(&shared, request).await,
        _ => return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "GET, POST or DELETE\n".into())),
    };
    Ok(match set {
        Ok(()) => {
            let mut answer = text(StatusCode::OK, format!("{:#}\n", shared.report()));
            let kind = hyper::header::HeaderValue::from_static("application/json");
            answer.headers_mut().insert(CONTENT_TYPE, kind);
            answer
        }
        Err(words) => text(StatusCode::BAD_REQUEST, format!("{words}\n")),
    })
}

async fn begin(shared: &Shared, request: Request<Incoming>) -> Result<(), String> {
    let body = Limited::new(request.into_body(), PLAN_BYTES_MAX).collect().await;
    let bytes = body.map_err(|error| format!("the plan did not arrive: {error}"))?.to_bytes();
    let plan = std::str::from_utf8(&bytes).map_err(|_| "a plan is text".to_owned())?;
    let plan = plan.parse::<Plan>().map_err(|error| error.to_string())?;
    shared.set(plan).map_err(|error| error.to_string())
}

fn text(status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(words)));
    *answer.status_mut() = status;
    answer
}
