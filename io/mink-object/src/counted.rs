//! Counts and faults around a store that has no HTTP connector to do it in.
//!
//! Lives on: service runtime.
//! Owns: the counters of the store inside.     Talks to: the fault seam.
//! Invariants: one call is one request; a fault after the call leaves its effect in place.
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{ObjectKey, Outcome};

use crate::faults::{FaultAnswer, FaultSeam, Request};
use crate::stats::{Meter, Op, RequestOutcome, StoreStats};
use crate::store::{
    DELETE_KEYS_MAX, DeleteRefused, GetError, ListCursor, ListPage, ObjectMeta, ObjectStore, Payload,
    PutRefused, Span, StoreHealth,
};

/// A store with counters and a seat for faults.
#[derive(Debug)]
pub struct Counted {
    inner: Arc<dyn ObjectStore>,
    faults: Option<Arc<dyn FaultSeam>>,
    meter: Meter,
}

impl Counted {
    /// Wraps `inner`; `faults` is asked around every call.
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Option<Arc<dyn FaultSeam>>) -> Counted {
        Counted { inner, faults, meter: Meter::default() }
    }

    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let answer = self.faults.as_ref()?.before(request).await?;
        self.meter.request(request.op, answer.outcome());
        Some(answer)
    }

    /// The seam's last word, and the count of the request with what the caller is told.
    async fn after(&self, request: Request<'_>, outcome: RequestOutcome) -> Option<FaultAnswer> {
        let answer = match &self.faults {
            Some(faults) => faults.after(request).await,
            None => None,
        };
        self.meter.request(request.op, answer.map_or(outcome, FaultAnswer::outcome));
        answer
    }
}

fn put_outcome(outcome: &Outcome<(), PutRefused>) -> RequestOutcome {
    match outcome {
        Outcome::Done(()) => RequestOutcome::Ok,
        Outcome::Refused(PutRefused::Exists) => RequestOutcome::Exists,
        Outcome::Refused(PutRefused::Conflict) => RequestOutcome::Conflict,
        Outcome::Refused(PutRefused::Denied { .. }) => RequestOutcome::Denied,
        Outcome::Refused(
            PutRefused::Full { .. } | PutRefused::TooLarge { .. } | PutRefused::Other { .. },
        ) => RequestOutcome::Refused,
        Outcome::Unknown(_) => RequestOutcome::Lost,
    }
}

fn get_outcome<T>(result: &Result<T, GetError>) -> RequestOutcome {
    match result {
        Ok(_) => RequestOutcome::Ok,
        Err(GetError::NotFound) => RequestOutcome::NotFound,
        Err(GetError::Denied { .. }) => RequestOutcome::Denied,
        Err(GetError::Range { .. } | GetError::TooLarge { .. } | GetError::WrongLength { .. }) => {
            RequestOutcome::Refused
        }
        Err(GetError::Unavailable { .. }) => RequestOutcome::Lost,
    }
}

/// A bulk delete is one request; its class is that of its worst key.
fn delete_outcome(results: &[(ObjectKey, Outcome<(), DeleteRefused>)]) -> RequestOutcome {
    results
        .iter()
        .map(|(_, outcome)| match outcome {
            Outcome::Done(()) => RequestOutcome::Ok,
            Outcome::Refused(DeleteRefused::Denied { .. }) => RequestOutcome::Denied,
            Outcome::Refused(DeleteRefused::Other { .. }) => RequestOutcome::Refused,
            Outcome::Unknown(_) => RequestOutcome::Lost,
        })
        .max()
        .unwrap_or(RequestOutcome::Ok)
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        let request = Request { op: Op::Put, key: key.as_str(), bytes: payload.len() };
        if let Some(answer) = self.before(request).await {
            return answer.put(payload.len());
        }
        let outcome = self.inner.put(key, payload).await;
        self.meter.bytes(Op::Put, payload.len());
        match self.after(request, put_outcome(&outcome)).await {
            Some(answer) => answer.put(payload.len()),
            None => outcome,
        }
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        let request = Request { op: Op::Get, key: key.as_str(), bytes: 0 };
        if let Some(answer) = self.before(request).await {
            return Err(answer.get(Some(&span)));
        }
        let result = self.inner.get(key, span.clone()).await;
        if let Ok(bytes) = &result {
            self.meter.bytes(Op::Get, bytes.len() as u64);
        }
        match self.after(request, get_outcome(&result)).await {
            Some(answer) => Err(answer.get(Some(&span))),
            None => result,
        }
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        let request = Request { op: Op::Head, key: key.as_str(), bytes: 0 };
        if let Some(answer) = self.before(request).await {
            return Err(answer.get(None));
        }
        let result = self.inner.head(key).await;
        match self.after(request, get_outcome(&result)).await {
            Some(answer) => Err(answer.get(None)),
            None => result,
        }
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let request = Request { op: Op::List, key: prefix.as_str(), bytes: 0 };
        if let Some(answer) = self.before(request).await {
            return Err(answer.get(None));
        }
        let result = self.inner.list(prefix, cursor, limit).await;
        match self.after(request, get_outcome(&result)).await {
            Some(answer) => Err(answer.get(None)),
            None => result,
        }
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let mut all = Vec::with_capacity(keys.len());
        for group in keys.chunks(DELETE_KEYS_MAX) {
            let first = group.first().map_or("", ObjectKey::as_str);
            let request = Request { op: Op::Delete, key: first, bytes: 0 };
            let told = |answer: FaultAnswer| group.iter().map(move |key| (key.clone(), answer.delete()));
            if let Some(answer) = self.before(request).await {
                all.extend(told(answer));
                continue;
            }
            let results = self.inner.delete(group).await;
            match self.after(request, delete_outcome(&results)).await {
                Some(answer) => all.extend(told(answer)),
                None => all.extend(results),
            }
        }
        all
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn stats(&self) -> StoreStats {
        self.meter.snapshot()
    }

    fn address(&self) -> String {
        self.inner.address()
    }

    fn needs_put_budget(&self) -> bool {
        self.inner.needs_put_budget()
    }
}
