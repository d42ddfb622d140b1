//! One request: what the plan says of it, carried out.
//! Lives on: the proxy's runtime, in the task of its connection.
//! Owns: nothing.
//! Invariants: a request that does not happen is read to its last byte before the client is told; one that happens late is held whole,
//! within a bound.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};
use tokio::sync::OwnedSemaphorePermit;

use super::answers::{AnyBody, Broken, End, part, status};
use super::seen::Seen;
use super::sign::sign_anew;
use super::{LATE_KIB_MAX, Shared};
use crate::faults::{Happens, Percent, Told, Verdict};

/// A connection that stays without a word is broken after this.
const SILENCE: Duration = Duration::from_mins(10);

pub(super) async fn meet(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Broken> {
    let (parts, body) = request.into_parts();
    let mut changed = shared.changed.subscribe();
    let verdict = shared.draw(&Seen::of(&parts.method, &parts.uri));
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    let method = parts.method.clone();
    let answer = match verdict.happens {
        Happens::Yes => Some(forward(&shared, parts, AnyBody::Passing(body)).await?),
        Happens::Stored(percent) => Some(store_part(&shared, parts, body, percent).await?),
        Happens::Unconditional => Some(without_condition(&shared, parts, body).await?),
        Happens::No => {
            drain(body).await?;
            None
        }
        Happens::Late(_) => {
            hold(&shared, parts, body, verdict).await?;
            None
        }
    };
    let answer = match (verdict.told, answer) {
        (Told::Truth, Some(answer)) => return Ok(answer.map(AnyBody::Passing)),
        (Told::Cut(percent), Some(answer)) => return Ok(part(answer, |len| percent.of(len), End::Breaks)),
        (Told::Short(percent), Some(answer)) => return Ok(part(answer, |len| percent.of(len), End::Whole)),
        (_, answer) => answer,
    };
    // What the server says is heard to its end, so that the request has happened before anything is told.
    if let Some(answer) = answer {
        drain(answer.into_body()).await?;
    }
    match verdict.told {
        Told::Status(code) => status(&method, code),
        Told::Silence => {
            // Another plan ends it: then the connection breaks.
            drop(tokio::time::timeout(SILENCE, changed.changed()).await);
            Err(Broken)
        }
        Told::Truth | Told::Cut(_) | Told::Short(_) | Told::Lost | Told::Away => Err(Broken),
    }
}

async fn forward(shared: &Shared, mut parts: Parts, body: AnyBody) -> Result<Response<Incoming>, Broken> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = format!("http://{}{path}", shared.to).parse::<Uri>().map_err(|_| Broken)?;
    shared.client.request(Request::from_parts(parts, body)).await.map_err(|_| Broken)
}

async fn store_part(
    shared: &Shared,
    mut parts: Parts,
    body: Incoming,
    percent: Percent,
) -> Result<Response<Incoming>, Broken> {
    let left = percent.of(body.size_hint().exact().ok_or(Broken)?);
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(left));
    forward(shared, parts, AnyBody::Part { inner: body, left, end: End::Whole }).await
}

async fn without_condition(
    shared: &Shared,
    mut parts: Parts,
    body: Incoming,
) -> Result<Response<Incoming>, Broken> {
    let had = [IF_NONE_MATCH, IF_MATCH].map(|name| parts.headers.remove(name).is_some());
    if had.contains(&true)
        && let Some(secret) = &shared.secret
    {
        // A request that nobody signed needs no signature.
        let _ = sign_anew(&mut parts, secret);
    }
    forward(shared, parts, AnyBody::Passing(body)).await
}

async fn drain(mut body: Incoming) -> Result<(), Broken> {
    while let Some(frame) = body.frame().await {
        frame.map_err(|_| Broken)?;
    }
    Ok(())
}

/// Takes the whole request and sends it later.
async fn hold(shared: &Arc<Shared>, parts: Parts, body: Incoming, verdict: Verdict) -> Result<(), Broken> {
    let length = body.size_hint().exact().ok_or(Broken)?;
    let Some(room) = room_for(shared, length) else {
        shared.late.dropped.fetch_add(1, Ordering::Relaxed);
        return drain(body).await;
    };
    let limit = usize::try_from(length).map_err(|_| Broken)?;
    let bytes = Limited::new(body, limit).collect().await.map_err(|_| Broken)?.to_bytes();
    shared.late.waiting.fetch_add(1, Ordering::Relaxed);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::time::sleep(verdict.late_by).await;
        let applied = send_late(&shared, parts, bytes, room).await;
        let counter = if applied { &shared.late.applied } else { &shared.late.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        shared.late.waiting.fetch_sub(1, Ordering::Relaxed);
    });
    Ok(())
}

fn room_for(shared: &Shared, length: u64) -> Option<OwnedSemaphorePermit> {
    let kib = u32::try_from(length.div_ceil(1_024)).ok().filter(|kib| *kib <= LATE_KIB_MAX)?;
    Arc::clone(&shared.late_room).try_acquire_many_owned(kib).ok()
}

async fn send_late(shared: &Shared, parts: Parts, bytes: Bytes, _room: OwnedSemaphorePermit) -> bool {
    match forward(shared, parts, AnyBody::Own(bytes)).await {
        Ok(answer) => answer.status().is_success() && drain(answer.into_body()).await.is_ok(),
        Err(Broken) => false,
    }
}
