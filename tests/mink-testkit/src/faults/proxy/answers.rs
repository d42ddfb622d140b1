//! The bodies that pass through the proxy, whole and cut, and the answers that it makes up itself.
//! Lives on: the proxy's runtime.
//! Owns: nothing.
//! Invariants: no body is held; what a cut leaves over is read to its end, so that the connection behind stays usable.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

/// The proxy breaks this connection.
#[derive(Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken by the plan of faults, or by the server")
    }
}

impl std::error::Error for Broken {}

/// What ends a body when it has given its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As if that had been all.
    Whole,
    /// The connection breaks.
    Breaks,
}

/// A body on its way.
#[derive(Debug)]
pub(super) enum AnyBody {
    Passing(Incoming),
    /// The first `left` bytes, then the end.
    Part {
        inner: Incoming,
        left: u64,
        end: End,
    },
    Own(Bytes),
}

impl Body for AnyBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            AnyBody::Passing(inner) => {
                Pin::new(inner).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(|_| Broken)))
            }
            AnyBody::Part { inner, left, end } => poll_part(inner, left, *end, cx),
            AnyBody::Own(bytes) if bytes.is_empty() => Poll::Ready(None),
            AnyBody::Own(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnyBody::Passing(inner) => inner.size_hint(),
            AnyBody::Part { left, end: End::Whole, .. } => SizeHint::with_exact(*left),
            AnyBody::Part { .. } => SizeHint::default(),
            AnyBody::Own(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnyBody::Passing(inner) => inner.is_end_stream(),
            AnyBody::Part { .. } => false,
            AnyBody::Own(bytes) => bytes.is_empty(),
        }
    }
}

fn poll_part(
    inner: &mut Incoming,
    left: &mut u64,
    end: End,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
    loop {
        if *left == 0 && end == End::Breaks {
            return Poll::Ready(Some(Err(Broken)));
        }
        let frame = match Pin::new(&mut *inner).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(frame)) => frame.map_err(|_| Broken),
        };
        match frame.map(Frame::into_data) {
            Err(broken) => return Poll::Ready(Some(Err(broken))),
            Ok(Ok(mut data)) if *left > 0 => {
                data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= data.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            // Beyond the part, or trailers.
            Ok(_) => {}
        }
    }
}

/// An answer that no server gave: the status with the words that S3 has for it.
pub(super) fn status(method: &Method, status: u16) -> Result<Response<AnyBody>, Broken> {
    let code = match status {
        200..=299 => "",
        304 | 412 => "PreconditionFailed",
        403 => "AccessDenied",
        404 => "NoSuchKey",
        409 => "ConditionalRequestConflict",
        500 => "InternalError",
        501 => "NotImplemented",
        503 => "SlowDown",
        _ => "Injected",
    };
    let words = if code.is_empty() || method == Method::HEAD {
        String::new()
    } else {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        )
    };
    let mut answer = Response::new(AnyBody::Own(Bytes::from(words)));
    *answer.status_mut() = StatusCode::from_u16(status).map_err(|_| Broken)?;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    headers.insert("etag", HeaderValue::from_static("\"injected\""));
    Ok(answer)
}

/// The first part of an answer's body.
pub(super) fn part(answer: Response<Incoming>, of: impl Fn(u64) -> u64, end: End) -> Response<AnyBody> {
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    // Without a length: of what a page of a listing holds at least.
    let left = of(length.unwrap_or(512));
    let mut answer = answer.map(|inner| AnyBody::Part { inner, left, end });
    if end == End::Whole && length.is_some() {
        answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(left));
    }
    answer
}
