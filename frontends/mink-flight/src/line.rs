//! One connection: its bytes, its place among those that may be open, and the end that the node may put to it.
//!
//! Lives on: the service runtime; polled by tonic.
//! Invariants: I20: a connection that does not say within its time that it speaks HTTP/2 is closed, and one that takes nothing of the answer
//! to a call that was cut off, while others wait for its memory. Pings look after the others.
use crate::counters::{Closed, FlightCounters};
use futures::task::AtomicWaker;
use mink_router::Admitted;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tonic::transport::server::Connected;

/// What a client of HTTP/2 says first (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

/// What the calls of a connection know of it; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Arc<LineState>);

#[derive(Debug, Default)]
struct LineState {
    is_cut: AtomicBool,
    connection: AtomicWaker,
}

impl Line {
    /// Closes the connection, with all its calls. False if that has been done.
    pub(crate) fn cut(&self) -> bool {
        let is_news = !self.0.is_cut.swap(true, Ordering::AcqRel);
        self.0.connection.wake();
        is_news
    }

    fn is_cut(&self, context: &mut Context<'_>) -> bool {
        self.0.connection.register(context.waker());
        self.0.is_cut.load(Ordering::Acquire)
    }
}

/// A connection that was let in.
pub(crate) struct Connection<S = TcpStream> {
    stream: S,
    line: Line,
    /// Bytes of the preface that are still to come, and until when.
    preface_left: usize,
    deadline: Pin<Box<Sleep>>,
    counters: FlightCounters,
    _place: Admitted,
}

impl<S> Connection<S> {
    pub(crate) fn new(
        stream: S,
        place: Admitted,
        patience: Duration,
        counters: FlightCounters,
    ) -> Connection<S> {
        counters.opened();
        Connection {
            stream,
            line: Line::default(),
            preface_left: PREFACE_BYTES,
            deadline: Box::pin(tokio::time::sleep(patience)),
            counters,
            _place: place,
        }
    }

    /// Counts what has come of the preface.
    fn came(&mut self, bytes: usize) {
        self.preface_left = self.preface_left.saturating_sub(bytes);
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.counters.ended();
    }
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Line;

    fn connect_info(&self) -> Line {
        self.line.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.line.is_cut(context) {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "its client took nothing while others waited for memory",
            )));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if this.preface_left > 0 {
            this.came(buffer.filled().len().saturating_sub(before));
            // Also when a byte comes now and then: the time is that of the whole preface.
            if this.preface_left > 0 && this.deadline.as_mut().poll(context).is_ready() {
                this.counters.closed(Closed::Preface);
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "it does not say that it speaks HTTP/2",
                )));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use mink_router::Admission;
    use mink_types::Limits;
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    fn connection(patience: Duration, counters: &FlightCounters) -> (Connection<DuplexStream>, DuplexStream) {
        let (node, client) = duplex(1024);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let place = Admission::new(&Limits::default()).admit(address, Duration::ZERO).expect("room");
        (Connection::new(node, place, patience, counters.clone()), client)
    }

    /// I20
    #[tokio::test]
    async fn i20_a_connection_that_does_not_begin_http2_in_time_is_closed_and_counted() {
        for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
            let counters = FlightCounters::default();
            let (mut connection, mut client) = connection(Duration::from_millis(50), &counters);
            client.write_all(said).await.expect("sent");
            let mut read = Vec::new();
            let ended = connection.read_to_end(&mut read).await.expect_err("closed");
            assert_eq!((ended.kind(), read.len()), (io::ErrorKind::TimedOut, said.len()));
            assert_eq!(counters.closed_for(Closed::Preface), 1);
        }
    }

    #[tokio::test]
    async fn one_that_has_begun_may_be_silent_and_ends_when_it_is_cut() {
        let counters = FlightCounters::default();
        // The time is over from the beginning; the preface is there in time.
        let (mut connection, mut client) = connection(Duration::ZERO, &counters);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("sent");
        connection.read_exact(&mut [0; PREFACE_BYTES]).await.expect("it is there");
        let line = connection.connect_info();
        let mut reads = Box::pin(async move { connection.read_u8().await });
        assert!((&mut reads).now_or_never().is_none(), "silence is for pings to look after");
        let woken = tokio::spawn(reads);
        assert!(line.cut() && !line.cut());
        let ended = woken.await.expect("no panic").expect_err("cut");
        assert_eq!(ended.kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(counters.closed_for(Closed::Preface), 0);
    }
}
