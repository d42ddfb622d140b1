//! The `s3://` store: any S3-compatible endpoint, through the `object_store` library with its retries off.
//!
//! Lives on: service runtime (its sockets need the tokio reactor there).
//! Owns: the HTTP client and its tap.     Talks to: the endpoint; the fault seam.
//! Invariants: I1, I7: an outcome comes from the true status that the tap saw, never from the library's error, which shows
//! 409 and 412 alike; one call is one request, so nothing is repeated behind our back (K-3, P-1).

mod tap;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use mink_types::{ObjectKey, Outcome};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, Extensions, GetOptions, GetRange, ObjectStore as _, PutMode, PutOptions,
    PutPayload, RetryConfig,
};

use crate::answers::{delete_status, get_status, put_status, reason};
use crate::faults::FaultSeam;
use crate::stats::{Op, StoreStats};
use crate::store::{
    DELETE_KEYS_MAX, DeleteRefused, GetError, LIST_PAGE_MAX, ListCursor, ListEntry, ListPage, ObjectMeta,
    ObjectStore, PUT_BYTES_MAX, Payload, PutRefused, Span, StoreHealth,
};
use tap::{Call, Tap, TapShared};

/// Longest time for a TCP and TLS connection to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for a whole request. Losers of a race on SeaweedFS are answered in 1 s steps, and 64 MiB must pass.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Most bytes that a read reserves at once, before any of them arrived.
const READ_RESERVE_MAX: usize = 8 << 20;

/// Where a bucket is and how to speak to it. Credentials come from the `AWS_*` environment unless `anonymous`.
#[derive(Clone, Debug, Default)]
pub(crate) struct S3Options {
    /// In place of `AWS_ENDPOINT_URL`, for instance to probe several gateways of one store.
    pub(crate) endpoint: Option<String>,
    /// Longest time for a whole request; 60 s if not given. Must stay above 10 s for SeaweedFS.
    pub(crate) request_timeout: Option<Duration>,
    /// Send no credentials.
    pub(crate) anonymous: bool,
    /// Asked around every request.
    pub(crate) faults: Option<Arc<dyn FaultSeam>>,
}

/// A bucket, or a prefix of one.
#[derive(Debug)]
pub(crate) struct S3Store {
    client: AmazonS3,
    tap: Arc<TapShared>,
    /// Nothing, or a path with a closing slash that stands before every key.
    prefix: String,
    address: String,
    /// A directory bucket: other listings, and sessions of its own for credentials.
    express: bool,
    credentials: Credentials,
}

/// Where the library will get credentials from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Credentials {
    /// Keys, a web identity, a container's role, or none are sent: named by whoever started us.
    Named,
    /// Nobody named any: the machine's metadata service is asked for a role, which most machines do not have.
    Machine,
}

/// What is missing where nobody named credentials and the machine has no role.
const NO_CREDENTIALS: &str = "no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and no role was found (neither \
     AWS_WEB_IDENTITY_TOKEN_FILE nor AWS_CONTAINER_CREDENTIALS_* is set, and the metadata service of this machine gave none); set the two \
     keys, and AWS_ENDPOINT_URL if the store is not AWS (AWS_PROFILE and ~/.aws are not read: `aws configure export-credentials --format \
     env` prints what they hold)";

impl S3Store {
    /// A client of `bucket`; sends nothing yet. The error holds no secret.
    pub(crate) fn open(bucket: &str, prefix: &str, options: &S3Options) -> Result<S3Store, String> {
        S3Store::build(AmazonS3Builder::from_env(), bucket, prefix, options)
    }

    fn build(
        environment: AmazonS3Builder,
        bucket: &str,
        prefix: &str,
        options: &S3Options,
    ) -> Result<S3Store, String> {
        let credentials = credentials(&environment, options.anonymous)?;
        let tap = Arc::new(TapShared::new(options.faults.clone()));
        let mut builder = environment
            .with_bucket_name(bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_unsigned_payload(true)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(Tap(Arc::clone(&tap)));
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
        }
        let express = bucket.ends_with("--x-s3");
        if express {
            builder = builder.with_s3_express(true);
        }
        if options.anonymous {
            builder = builder.with_skip_signature(true);
        }
        let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
            .iter()
            .find_map(|key| builder.get_config_value(key));
        // Who names an http endpoint has said that it may be http.
        let plain = endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let timeout = options.request_timeout.unwrap_or(REQUEST_TIMEOUT);
        let client = builder
            .with_client_options(
                ClientOptions::new()
                    .with_allow_http(plain)
                    .with_connect_timeout(CONNECT_TIMEOUT)
                    .with_timeout(timeout),
            )
            .build()
            .map_err(|error| reason(&error))?;
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            some => format!("{some}/"),
        };
        Path::parse(&prefix).map_err(|error| reason(&error))?;
        let at =
            endpoint.map(|endpoint| format!(" at {}", without_credentials(&endpoint))).unwrap_or_default();
        let address = format!("s3://{bucket}/{prefix}{at}");
        Ok(S3Store { client, tap, prefix, address, express, credentials })
    }

    /// Why a call failed. One that never left for the store had no credentials to leave with, if nobody named any.
    fn reason(&self, call: &Call, error: &Error) -> String {
        if self.credentials == Credentials::Machine && !call.left() {
            return format!("{NO_CREDENTIALS}; {}", reason(error));
        }
        reason(error)
    }

    fn path(&self, key: &ObjectKey) -> Result<Path, String> {
        Path::parse(format!("{}{key}", self.prefix)).map_err(|error| reason(&error))
    }

    /// A call's slot, and the extension that carries it to the tap.
    fn call(op: Op, key: &ObjectKey) -> (Call, Extensions) {
        let call = Call::new(op, key.as_str());
        let mut extensions = Extensions::new();
        extensions.insert(call.clone());
        (call, extensions)
    }

    async fn fetch(&self, key: &ObjectKey, span: Option<&Span>) -> Result<(u64, Bytes), GetError> {
        let path = self.path(key).map_err(|reason| GetError::Unavailable { reason })?;
        let op = if span.is_some() { Op::Get } else { Op::Head };
        let (call, extensions) = Self::call(op, key);
        let range = match span {
            Some(Span::Range(asked)) if asked.start >= asked.end => {
                return Err(GetError::Range { asked: asked.clone() });
            }
            Some(Span::Range(asked)) => Some(GetRange::Bounded(asked.clone())),
            _ => None,
        };
        let options = GetOptions { range, head: span.is_none(), extensions, ..GetOptions::default() };
        let answer = match self.client.get_opts(&path, options).await {
            Ok(answer) => answer,
            Err(error) => return Err(read_error(&call, span, self.reason(&call, &error))),
        };
        let len = answer.meta.size;
        let want = match span {
            None => return Ok((len, Bytes::new())),
            Some(Span::Whole { max }) if len > *max => return Err(GetError::TooLarge { len, max: *max }),
            Some(Span::Whole { .. }) => len,
            Some(Span::Range(asked)) if asked.end > len => {
                return Err(GetError::Range { asked: asked.clone() });
            }
            Some(Span::Range(asked)) => asked.end - asked.start,
        };
        let bytes = collect(answer.into_stream(), want).await?;
        self.tap.meter.bytes(Op::Get, bytes.len() as u64);
        Ok((len, bytes))
    }

    async fn delete_group(&self, keys: &[ObjectKey]) -> Vec<Outcome<(), DeleteRefused>> {
        let paths: Result<Vec<Path>, String> = keys.iter().map(|key| self.path(key)).collect();
        let paths = match paths {
            Ok(paths) => paths,
            Err(reason) => {
                let refused = DeleteRefused::Other { status: None, reason };
                return keys.iter().map(|_| Outcome::Refused(refused.clone())).collect();
            }
        };
        let mut results = self.client.delete_stream(futures::stream::iter(paths.into_iter().map(Ok)).boxed());
        let mut outcomes = Vec::with_capacity(keys.len());
        // The library panics on an answer that names a key which was not asked for: an answer must not end our task.
        let all = async {
            while let Some(result) = results.next().await {
                outcomes.push(result.map(|_| ()));
            }
        };
        let panicked = AssertUnwindSafe(all).catch_unwind().await.is_err();
        let mut told: Vec<_> = outcomes.into_iter().map(deleted).collect();
        // A request that failed as a whole gives one error for all of its keys.
        let rest = match told.last() {
            Some(last) if told.len() < keys.len() && !panicked => last.clone(),
            _ => Outcome::unknown("the store's answer to a bulk delete made no sense"),
        };
        told.resize(keys.len(), rest);
        told
    }
}

/// Where credentials will come from. One half of a pair of keys is refused here: the library would name it by its own names, and
/// signs with an empty one.
fn credentials(builder: &AmazonS3Builder, anonymous: bool) -> Result<Credentials, String> {
    let [key, secret] = [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey]
        .map(|key| builder.get_config_value(&key));
    let state = |value: &Option<String>| match value.as_deref() {
        Some("") => "is empty",
        Some(_) => "is set",
        None => "is not set",
    };
    match (key.as_deref(), secret.as_deref()) {
        _ if anonymous => return Ok(Credentials::Named),
        (None, None) => {}
        (Some(key), Some(secret)) if !key.is_empty() && !secret.is_empty() => return Ok(Credentials::Named),
        _ => {
            let (key, secret) = (state(&key), state(&secret));
            return Err(format!("AWS_ACCESS_KEY_ID {key}, AWS_SECRET_ACCESS_KEY {secret}: both are needed"));
        }
    }
    let roles = [
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
        AmazonS3ConfigKey::SkipSignature,
    ];
    let named = roles.iter().any(|role| builder.get_config_value(role).is_some_and(|value| value != "false"));
    Ok(if named { Credentials::Named } else { Credentials::Machine })
}

/// The userinfo that a careless endpoint may hold does not belong into logs.
fn without_credentials(endpoint: &str) -> String {
    match (endpoint.split_once("://"), endpoint.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => endpoint.to_owned(),
    }
}

fn read_error(call: &Call, span: Option<&Span>, reason: String) -> GetError {
    match call.status() {
        // A good status, yet the library is not content: a range of another length than asked for, no length at all.
        Some(200..=299) => GetError::Unavailable { reason: format!("unusable answer: {reason}") },
        Some(status) => get_status(status, span, reason),
        None => GetError::Unavailable { reason },
    }
}

/// The body, which must be `want` bytes long.
async fn collect(
    mut body: futures::stream::BoxStream<'static, object_store::Result<Bytes>>,
    want: u64,
) -> Result<Bytes, GetError> {
    let unavailable = |error: Error| GetError::Unavailable { reason: reason(&error) };
    let Some(first) = body.try_next().await.map_err(unavailable)? else {
        return if want == 0 { Ok(Bytes::new()) } else { Err(GetError::WrongLength { asked: want, got: 0 }) };
    };
    if first.len() as u64 == want {
        // Small objects come in one piece: no copy.
        return match body.try_next().await.map_err(unavailable)? {
            None => Ok(first),
            Some(more) => Err(GetError::WrongLength { asked: want, got: want + more.len() as u64 }),
        };
    }
    let reserve = usize::try_from(want).unwrap_or(READ_RESERVE_MAX).min(READ_RESERVE_MAX);
    let mut whole = BytesMut::with_capacity(reserve);
    whole.extend_from_slice(&first);
    while let Some(part) = body.try_next().await.map_err(unavailable)? {
        let got = (whole.len() + part.len()) as u64;
        if got > want {
            return Err(GetError::WrongLength { asked: want, got });
        }
        whole.extend_from_slice(&part);
    }
    match whole.len() as u64 {
        got if got == want => Ok(whole.freeze()),
        got => Err(GetError::WrongLength { asked: want, got }),
    }
}

fn deleted(result: object_store::Result<()>) -> Outcome<(), DeleteRefused> {
    match result {
        Ok(()) | Err(Error::NotFound { .. }) => Outcome::Done(()),
        Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. })) => {
            delete_status(403, reason(&error))
        }
        // One key's error comes as words: the code is in them. All but a plain "no" stays unknown; deletes are repeated.
        Err(error) => match reason(&error) {
            words if words.contains("code: NoSuchKey") => Outcome::Done(()),
            words if words.contains("code: AccessDenied") => delete_status(403, words),
            words => Outcome::unknown(words),
        },
    }
}

#[async_trait]
impl ObjectStore for S3Store {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        if payload.len() > PUT_BYTES_MAX {
            return Outcome::Refused(PutRefused::TooLarge { len: payload.len() });
        }
        let path = match self.path(key) {
            Ok(path) if !key.as_str().ends_with('/') => path,
            _ => {
                let reason = "not the name of an object".into();
                return Outcome::Refused(PutRefused::Other { status: None, reason });
            }
        };
        let (call, extensions) = Self::call(Op::Put, key);
        let options = PutOptions { mode: PutMode::Create, extensions, ..PutOptions::default() };
        let body: PutPayload = payload.parts().iter().cloned().collect();
        let result = self.client.put_opts(&path, body, options).await;
        let words = result.as_ref().err().map(|error| self.reason(&call, error)).unwrap_or_default();
        match (call.status(), result) {
            // A 2xx whose headers the library does not like has created the object all the same.
            (Some(status), _) => put_status(status, payload.len(), words),
            (None, Ok(_)) => Outcome::Done(()),
            (None, Err(_)) if call.left() => Outcome::unknown(words),
            // No credentials, a request that could not be built: nothing left the process.
            (None, Err(_)) => Outcome::Refused(PutRefused::Other { status: None, reason: words }),
        }
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        self.fetch(key, Some(&span)).await.map(|(_, bytes)| bytes)
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        self.fetch(key, None).await.map(|(len, _)| ObjectMeta { len })
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let (call, extensions) = Self::call(Op::List, prefix);
        let (after, page_token) = match cursor {
            None => (None, None),
            Some(cursor) => (cursor.after.clone(), cursor.token.clone()),
        };
        // S3 Express has no such parameter; what it lists too much is left out below.
        let offset = after
            .as_ref()
            .filter(|_| page_token.is_none() && !self.express)
            .map(|text| format!("{}{text}", self.prefix));
        let max_keys = Some(limit.clamp(1, LIST_PAGE_MAX));
        let options = PaginatedListOptions { offset, page_token, max_keys, extensions, ..Default::default() };
        let full = format!("{}{prefix}", self.prefix);
        let answer = self
            .client
            .list_paginated(Some(&full), options)
            .await
            .map_err(|error| read_error(&call, None, self.reason(&call, &error)))?;
        let next = answer.page_token.map(|token| ListCursor { after: after.clone(), token: Some(token) });
        let mut page = ListPage { next, ..ListPage::default() };
        for object in answer.result.objects {
            let name = object.location.as_ref().strip_prefix(&self.prefix).map(ObjectKey::parse);
            match name {
                Some(Ok(key)) if after.as_deref().is_some_and(|after| key.as_str() <= after) => {}
                Some(Ok(key)) => page.entries.push(ListEntry { key, len: object.size }),
                _ => page.foreign += 1,
            }
        }
        // The library promises no order.
        page.entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(page)
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let mut all = Vec::with_capacity(keys.len());
        for group in keys.chunks(DELETE_KEYS_MAX) {
            let outcomes = self.delete_group(group).await;
            all.extend(group.iter().cloned().zip(outcomes));
        }
        all
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    fn stats(&self) -> StoreStats {
        self.tap.meter.snapshot()
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn needs_put_budget(&self) -> bool {
        true
    }
}
