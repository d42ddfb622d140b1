//! From a storage URL to a store.
//!
//! Lives on: service runtime.
//! Invariants: an error names the remedy and holds no credentials.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mink_rt::Service;

use crate::counted::Counted;
use crate::faults::FaultSeam;
use crate::file::{FileOpenError, FileStore};
use crate::latency::{self, Latencies};
use crate::memory::MemoryStore;
use crate::s3::{S3Options, S3Store};
use crate::store::ObjectStore;

/// What a store needs beside its URL.
#[derive(Clone, Debug)]
pub struct OpenContext {
    /// Where blocking work and pauses go.
    pub service: Service,
    /// Asked around every request; `None` in production.
    pub faults: Option<Arc<dyn FaultSeam>>,
    /// For `s3://`: in place of `AWS_ENDPOINT_URL`, to reach another gateway of the same store.
    pub endpoint: Option<String>,
    /// For `s3://`: longest time for a whole request; 60 s if not given.
    pub request_timeout: Option<Duration>,
}

impl OpenContext {
    /// The context of production.
    pub fn new(service: Service) -> OpenContext {
        OpenContext { service, faults: None, endpoint: None, request_timeout: None }
    }
}

/// Why a URL gave no store, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the storage {url:?}: {reason}; {remedy}")]
pub struct OpenError {
    /// What the caller can do.
    pub kind: OpenErrorKind,
    /// The URL without credentials.
    pub url: String,
    /// What is wrong.
    pub reason: String,
    /// What a person should do.
    pub remedy: String,
}

/// What the caller of [`open`] can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenErrorKind {
    /// The URL or the environment is wrong: change it.
    Config,
    /// This version has no such store.
    Unsupported,
    /// The place itself does not work.
    Place,
}

/// Opens `file://PATH` (made if need be; relative paths are allowed), `memory://` or `s3://BUCKET[/PREFIX]`. The first two may be
/// slowed down for trials and benchmarks: `memory://?put-latency=50ms&get-latency=50ms` takes as long as a remote store.
/// Blocks for a few system calls on `file://`; sends nothing on `s3://`.
pub fn open(url: &str, context: &OpenContext) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let fail = |kind, reason: String, remedy: &str| OpenError {
        kind,
        url: redacted(url),
        reason,
        remedy: remedy.to_owned(),
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        let remedy = "give file:///DIR, s3://BUCKET/PREFIX or memory://";
        return Err(fail(OpenErrorKind::Config, "it has no scheme".into(), remedy));
    };
    let (rest, latencies) = match scheme {
        "memory" | "file" => latency::split(rest).map_err(|reason| {
            let remedy = "give put-latency and get-latency as in memory://?put-latency=50ms&get-latency=50ms";
            fail(OpenErrorKind::Config, reason, remedy)
        })?,
        _ => (rest, Latencies::default()),
    };
    let faults = || latencies.seam(&context.service, context.faults.clone());
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(Counted::new(Arc::new(MemoryStore::new()), faults()))),
        "memory" => {
            let reason = "memory:// takes no path".into();
            Err(fail(OpenErrorKind::Config, reason, "leave out what follows memory://"))
        }
        "file" if rest.is_empty() => {
            let reason = "it names no directory".into();
            Err(fail(
                OpenErrorKind::Config,
                reason,
                "give file:///DIR, or file://./DIR below the working directory",
            ))
        }
        "file" => {
            let store = FileStore::open(&PathBuf::from(rest), &context.service, None).map_err(|error| {
                let remedy = match &error {
                    FileOpenError::Io { .. } => {
                        "check that the directory exists or can be made, and its permissions"
                    }
                    FileOpenError::Unfit { .. } => "put the data on a local file system such as ext4 or xfs",
                };
                fail(OpenErrorKind::Place, error.to_string(), remedy)
            })?;
            Ok(Arc::new(Counted::new(Arc::new(store), faults())))
        }
        "s3" => open_s3(rest, context, &fail),
        "gs" | "gcs" | "az" | "azure" | "abfs" | "abfss" => {
            let reason = format!("{scheme}:// is not supported yet");
            let remedy = "use s3:// (Google Cloud Storage speaks it too, without conditional puts: the probe refuses it)";
            Err(fail(OpenErrorKind::Unsupported, reason, remedy))
        }
        _ => {
            let reason = format!("{scheme}:// is no storage that Mink knows");
            Err(fail(OpenErrorKind::Config, reason, "give file:///DIR, s3://BUCKET/PREFIX or memory://"))
        }
    }
}

fn open_s3(
    rest: &str,
    context: &OpenContext,
    fail: &dyn Fn(OpenErrorKind, String, &str) -> OpenError,
) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(fail(OpenErrorKind::Config, "it names no bucket".into(), "give s3://BUCKET/PREFIX"));
    }
    let bucket_char = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_';
    if !bucket.bytes().all(bucket_char) {
        let remedy = "give s3://BUCKET/PREFIX; credentials and endpoint belong into AWS_ACCESS_KEY_ID, \
                      AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL";
        return Err(fail(OpenErrorKind::Config, "that is no bucket name".into(), remedy));
    }
    let prefix_char = |b: u8| bucket_char(b) || b == b'/';
    if !prefix.bytes().all(prefix_char)
        || prefix.trim_matches('/').split('/').any(|part| part == "." || part == "..")
    {
        let remedy = "use letters, digits, '-', '_', '.' and '/' in the prefix";
        return Err(fail(OpenErrorKind::Config, "the prefix has other characters".into(), remedy));
    }
    let options = S3Options {
        endpoint: context.endpoint.clone(),
        request_timeout: context.request_timeout,
        anonymous: false,
        faults: context.faults.clone(),
    };
    let store = S3Store::open(bucket, prefix, &options).map_err(|reason| {
        fail(
            OpenErrorKind::Config,
            reason,
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and as needed AWS_REGION, AWS_SESSION_TOKEN and AWS_ENDPOINT_URL",
        )
    })?;
    Ok(Arc::new(store))
}

/// The URL without what stands before an `@`.
fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
}

impl FileStore {
    /// A store in `path` whose every writing step asks `faults` first: for tests of what a bad disk does.
    pub fn open_with_faults(
        path: &Path,
        service: &Service,
        faults: Arc<dyn crate::file::DiskFaults>,
    ) -> Result<FileStore, OpenError> {
        FileStore::open(path, service, Some(faults)).map_err(|error| OpenError {
            kind: OpenErrorKind::Place,
            url: format!("file://{}", path.display()),
            reason: error.to_string(),
            remedy: "give a directory on a local file system".into(),
        })
    }
}
