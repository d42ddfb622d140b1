//! Answers within bounds: how many are made at a time, and how much memory those hold that clients have not taken.
//!
//! Lives on: the service runtime.
//! Owns: the permits.     Talks to: the routes.
//! Invariants: I20: an answer as large as the node has buckets is made for few at a time, and is counted until its last byte has gone.
//! `/healthz` waits for nothing; what the database keeps waiting leaves room for those who ask how the node is.
use crate::presence::Open;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::ServiceExt as _;

/// Pages made at a time; others wait for them. Each takes as long as the shards take to answer, which has an end.
const READS_MAX: usize = 4;
/// Changes at a time; one more is refused. Each may take as long as the database does.
const CHANGES_MAX: usize = 16;
/// Answers up to here are bounded by the number of connections.
const SMALL_BYTES: usize = 16 * 1024;
/// Bytes of one permit.
const UNIT: usize = 1024;
/// Between two looks for someone who takes nothing, while an answer waits for memory.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where requests are answered.
#[derive(Debug)]
pub(crate) struct Answers {
    router: Router,
    open: Open,
    reads: Semaphore,
    changes: Semaphore,
    memory: AnswerMemory,
    /// How long an answer may wait for memory.
    patience: Duration,
}

/// The memory of large answers.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    units: Arc<Semaphore>,
    units_max: u32,
}

impl AnswerMemory {
    fn new(bytes_max: usize) -> AnswerMemory {
        let units_max = u32::try_from(bytes_max / UNIT).unwrap_or(u32::MAX).clamp(1, 1 << 20);
        AnswerMemory { units: Arc::new(Semaphore::new(units_max as usize)), units_max }
    }

    /// Bytes that clients have not taken; one that is larger than the whole counts as the whole.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = (self.units_max as usize).saturating_sub(self.units.available_permits());
        (held * UNIT) as u64
    }
}

/// An answer's bytes, counted for as long as any of them is there.
struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A refusal as the API tells it.
pub(crate) fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    (status, Json(json!({ "error": why }))).into_response()
}

impl Answers {
    pub(crate) fn new(router: Router, open: Open, bytes_max: usize, patience: Duration) -> Answers {
        Answers {
            router,
            open,
            reads: Semaphore::new(READS_MAX),
            changes: Semaphore::new(CHANGES_MAX),
            memory: AnswerMemory::new(bytes_max),
            patience,
        }
    }

    /// A handle on the memory, for those who count.
    pub(crate) fn memory(&self) -> AnswerMemory {
        self.memory.clone()
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if request.uri().path() == "/healthz" {
            return self.routed(request).await;
        }
        if !request.method().is_safe() {
            let Ok(_permit) = self.changes.try_acquire() else {
                let why = "too many changes wait for the database; try again in a moment";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, why);
            };
            return self.routed(request).await;
        }
        let Ok(_permit) = self.reads.acquire().await else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "the node stops");
        };
        // Waits for memory with its place among the readers: so few large answers wait.
        self.counted(self.routed(request).await).await
    }

    async fn routed(&self, request: Request<Body>) -> Response<Body> {
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn counted(&self, response: Response<Body>) -> Response<Body> {
        let (parts, body) = response.into_parts();
        // It lies in memory as a whole already.
        let bytes = match to_bytes(body, usize::MAX).await {
            Ok(bytes) => bytes,
            Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        };
        if bytes.len() <= SMALL_BYTES {
            return Response::from_parts(parts, Body::from(bytes));
        }
        let units = u32::try_from(bytes.len().div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.memory.units_max);
        let Some(permit) = self.take(units).await else {
            let why = "the answers that other clients have not taken fill the memory for them; try again";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        Response::from_parts(parts, Body::from(Bytes::from_owner(Held { bytes, _permit: permit })))
    }

    /// Waits for memory; who takes nothing meanwhile goes.
    async fn take(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        let mut permit = std::pin::pin!(Arc::clone(&self.memory.units).acquire_many_owned(units));
        let until = Instant::now() + self.patience;
        loop {
            match tokio::time::timeout(LOOK_EVERY, &mut permit).await {
                Ok(permit) => return permit.ok(),
                Err(_) if Instant::now() >= until => return None,
                Err(_) => drop(self.open.make_room_for_an_answer()),
            }
        }
    }
}
