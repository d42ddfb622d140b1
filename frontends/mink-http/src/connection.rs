//! One connection: requests in, answers out, and an end to every wait for its client.
//!
//! Lives on: the service runtime, one task per connection.
//! Owns: its socket.     Talks to: the answers, the list of connections.
//! Invariants: I20: heads and bodies are bounded in bytes and time; a request is worked on once all of it is there.
use crate::answers::{Answers, refuse};
use crate::config::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, HttpConfig};
use crate::counters::{Closed, Counters};
use crate::presence::{Listed, Open, Presence};
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// What the connections of a listener share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: HttpConfig,
    pub(crate) counters: Arc<Counters>,
    pub(crate) open: Open,
    pub(crate) answers: Answers,
}

/// Serves a connection to its end. Once `stops` says so, the request that is being served is its last.
pub(crate) async fn serve(
    stream: TcpStream,
    listed: Listed,
    shared: Arc<Shared>,
    mut stops: watch::Receiver<bool>,
) {
    let presence = &listed.presence;
    let service = service_fn(|request| answer(&shared, presence, request));
    let io = TokioIo::new(Watched { stream, presence: Arc::clone(presence) });
    let connection = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // Deadlines are ours, which tell why.
        .header_read_timeout(None)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let mut clock = pin!(tokio::time::sleep_until(Instant::now()));
    let mut sent_away = pin!(presence.sent_away());
    // An error means that the listener is gone, which is a stop.
    let mut stop = pin!(async { drop(stops.wait_for(|stopping| *stopping).await) });
    let mut stopping = false;
    let why = std::future::poll_fn(|cx| {
        if !stopping && stop.as_mut().poll(cx).is_ready() {
            stopping = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(why) = sent_away.as_mut().poll(cx) {
            return Poll::Ready(Some(why));
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended.err().and_then(|error| reason(&error)));
        }
        // What the connection has just done may have moved its deadline.
        let Some((deadline, why)) = presence.deadline(&shared.config) else { return Poll::Pending };
        if clock.deadline() != deadline {
            clock.as_mut().reset(deadline);
        }
        clock.as_mut().poll(cx).map(|()| Some(why))
    });
    if let Some(why) = why.await {
        shared.counters.closed(why);
    }
}

/// Why hyper has ended a connection, if not for something that the client or the network did.
fn reason(error: &hyper::Error) -> Option<Closed> {
    if error.is_parse_too_large() {
        Some(Closed::HeadSize)
    } else {
        error.is_parse().then_some(Closed::Malformed)
    }
}

async fn answer(
    shared: &Shared,
    presence: &Presence,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    presence.note_head();
    let (parts, body) = request.into_parts();
    let answer = match whole(&shared.config, body).await {
        Ok(bytes) => {
            presence.note_request();
            shared.answers.answer(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err((status, text, why)) => {
            if let Some(why) = why {
                shared.counters.closed(why);
            }
            let mut refusal = refuse(status, text);
            // The rest of the body is not read.
            refusal.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            refusal
        }
    };
    presence.note_answer();
    Ok(answer)
}

/// The whole body, or what to answer and what to count.
async fn whole(
    config: &HttpConfig,
    body: Incoming,
) -> Result<Bytes, (StatusCode, &'static str, Option<Closed>)> {
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "send a body of at most 64 KiB", Some(Closed::BodySize));
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large);
    }
    match tokio::time::timeout(config.body_deadline, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body broke off", None)),
        Err(_) => {
            let text = "the body did not come in its time; send it behind the head";
            Err((StatusCode::REQUEST_TIMEOUT, text, Some(Closed::BodyDeadline)))
        }
    }
}

/// A socket that tells how far it has got.
struct Watched {
    stream: TcpStream,
    presence: Arc<Presence>,
}

impl Watched {
    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(bytes)) if *bytes > 0 => self.presence.note_written(),
            Poll::Ready(_) => {}
            Poll::Pending => self.presence.note_stalled(),
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.presence.note_read();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
