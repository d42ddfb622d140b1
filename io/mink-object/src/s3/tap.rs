//! The tap in the HTTP client: sees every request's true status, counts it, and is where faults come in.
//!
//! Lives on: service runtime.
//! Owns: the store's counters.     Talks to: the library's HTTP client, the fault seam.
//! Invariants: every request that the library sends passes here once, those for credentials too.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};

use crate::faults::{FaultAnswer, FaultSeam, Request};
use crate::stats::{Meter, Op, RequestOutcome};

/// One call of ours, carried by its request as an extension; the tap writes into it what the library does not tell.
#[derive(Clone, Debug)]
pub(super) struct Call(Arc<CallState>);

#[derive(Debug)]
struct CallState {
    op: Op,
    key: String,
    /// 0 until there is an answer.
    status: AtomicU16,
    left: AtomicBool,
}

impl Call {
    pub(super) fn new(op: Op, key: &str) -> Call {
        let key = key.to_owned();
        Call(Arc::new(CallState { op, key, status: AtomicU16::new(0), left: AtomicBool::new(false) }))
    }

    /// The status that the store answered, if it did.
    pub(super) fn status(&self) -> Option<u16> {
        Some(self.0.status.load(Ordering::Acquire)).filter(|status| *status != 0)
    }

    /// Whether the request was handed to the network.
    pub(super) fn left(&self) -> bool {
        self.0.left.load(Ordering::Acquire)
    }
}

/// What all clients of one store share.
#[derive(Debug)]
pub(super) struct TapShared {
    pub(super) meter: Meter,
    faults: Option<Arc<dyn FaultSeam>>,
}

impl TapShared {
    pub(super) fn new(faults: Option<Arc<dyn FaultSeam>>) -> TapShared {
        TapShared { meter: Meter::default(), faults }
    }
}

/// Makes the library's clients, each with the tap in it.
#[derive(Debug)]
pub(super) struct Tap(pub(super) Arc<TapShared>);

impl HttpConnector for Tap {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(TappedClient { inner, shared: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct TappedClient {
    inner: HttpClient,
    shared: Arc<TapShared>,
}

#[async_trait]
impl HttpService for TappedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let call = request.extensions().get::<Call>().cloned();
        // The library gives a bulk delete no extension; nothing else of it posts to `?delete`.
        let is_delete = request.method() == Method::POST && request.uri().query() == Some("delete");
        let op = match &call {
            Some(call) => call.0.op,
            None if is_delete => Op::Delete,
            None => Op::Credentials,
        };
        let bytes = if op == Op::Put { request.body().content_length() as u64 } else { 0 };
        let seen = Request { op, key: call.as_ref().map_or("", |call| &call.0.key), bytes };
        if let Some(call) = &call {
            call.0.left.store(true, Ordering::Release);
        }
        if let Some(faults) = &self.shared.faults
            && let Some(answer) = faults.before(seen).await
        {
            return self.tell(seen, call.as_ref(), injected(answer));
        }
        let result = self.inner.execute(request).await;
        self.shared.meter.bytes(op, bytes);
        if let Some(faults) = &self.shared.faults
            && let Some(answer) = faults.after(seen).await
        {
            return self.tell(seen, call.as_ref(), injected(answer));
        }
        self.tell(seen, call.as_ref(), result)
    }
}

impl TappedClient {
    /// Counts what the caller is told and notes the true status for it.
    fn tell(
        &self,
        request: Request<'_>,
        call: Option<&Call>,
        result: Result<HttpResponse, HttpError>,
    ) -> Result<HttpResponse, HttpError> {
        let status = result.as_ref().ok().map(|response| response.status().as_u16());
        let outcome = status.map_or(RequestOutcome::Lost, RequestOutcome::of_status);
        self.shared.meter.request(request.op, outcome);
        if let (Some(call), Some(status)) = (call, status) {
            call.0.status.store(status, Ordering::Release);
        }
        result
    }
}

/// An injected answer as the library would have got it.
fn injected(answer: FaultAnswer) -> Result<HttpResponse, HttpError> {
    let lost = || HttpError::new(HttpErrorKind::Interrupted, std::io::Error::other("injected: no answer"));
    match answer {
        FaultAnswer::Lost => Err(lost()),
        FaultAnswer::Status(status) => {
            let mut response = HttpResponse::new(HttpResponseBody::from(Bytes::from_static(b"injected")));
            *response.status_mut() = StatusCode::from_u16(status).map_err(|_| lost())?;
            Ok(response)
        }
    }
}
