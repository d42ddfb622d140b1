//! One connection: requests go out in order, answers come back in order.
//!
//! Lives on: two tasks, one that writes and one that reads.
//! Owns: the socket, the queue of requests that wait for their answer.
//! Invariants: requests begun by one task go out in that order; an answer goes to the oldest request that waits, and its correlation
//! id must be that request's; a broken connection ends every request that waits, as unknown, and is never used again.
use crate::error::{ClientError, ErrorKind};
use bytes::{Bytes, BytesMut};
use mink_kafka_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use mink_kafka_wire::{
    ApiKey, ErrorCode, FRAME_PREFIX_LEN, Frame, KafkaString, Request, decode_api_versions_response,
    decode_response, encode_request, frame_length, offer,
};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::IoSlice;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// Requests that may wait for their answer on one connection.
const IN_FLIGHT_MAX: usize = 64;
/// Longest answer that is taken, in bytes.
const ANSWER_BYTES_MAX: u32 = 256 << 20;
/// Bytes that a read makes room for at a time, whatever length an answer declares.
const READ_STEP: usize = 1 << 20;
/// Bytes that one read takes at once, so that small answers need no read for their length, nor each one of its own.
const READ_AHEAD: usize = 4 << 10;
/// Longest time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that an answer may take beyond what the request itself allows.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

struct Outgoing {
    frame: Frame,
    answer: oneshot::Sender<Bytes>,
}

/// A connection to one server.
#[derive(Debug)]
pub(crate) struct Connection {
    requests: mpsc::Sender<Outgoing>,
    next_id: AtomicI32,
    client_id: KafkaString,
    /// Highest version of each API that both sides speak.
    versions: BTreeMap<ApiKey, i16>,
    tasks: [AbortHandle; 2],
}

/// A request that was handed to the connection; its answer comes after those of all requests begun before it.
#[derive(Debug)]
pub(crate) struct Pending<R> {
    id: i32,
    version: i16,
    answer: oneshot::Receiver<Bytes>,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Pending<R> {
    /// Waits for the answer. May be dropped and called again.
    pub(crate) async fn answer(&mut self) -> Result<R::Response, ClientError> {
        let answer = (&mut self.answer).await.map_err(|_| broken("closed before the answer came"))?;
        let (answered, body) = decode_response::<R>(self.version, answer).map_err(protocol)?;
        check_id(self.id, answered)?;
        Ok(body)
    }
}

fn broken(what: impl std::fmt::Display) -> ClientError {
    ClientError::new(ErrorKind::Connection, format!("connection: {what}"))
}

fn protocol(what: impl std::fmt::Display) -> ClientError {
    ClientError::new(ErrorKind::Protocol, what.to_string())
}

/// The newest version of an API that this client fills. It names topics, which the newest versions of some know by id alone.
fn newest(key: ApiKey, decoded: i16) -> i16 {
    const BY_NAME_UNTIL: i16 = 12;
    const OFFSETS_BY_NAME_UNTIL: i16 = 9;
    match key {
        ApiKey::Produce | ApiKey::Fetch => decoded.min(BY_NAME_UNTIL),
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => decoded.min(OFFSETS_BY_NAME_UNTIL),
        _ => decoded,
    }
}

impl Connection {
    /// Connects and asks which versions the server speaks.
    pub(crate) async fn open(address: &str, client_id: &str) -> Result<Connection, ClientError> {
        let connect = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address));
        let stream = connect
            .await
            .map_err(|_| broken(format!("{address} does not answer")))?
            .map_err(|error| broken(format!("{address}: {error}")))?;
        stream.set_nodelay(true).map_err(broken)?;
        let (reader, writer) = stream.into_split();
        let (requests, outgoing) = mpsc::channel(IN_FLIGHT_MAX);
        let (waiting, answers) = mpsc::channel(IN_FLIGHT_MAX);
        let tasks = [tokio::spawn(write(writer, outgoing, waiting)), tokio::spawn(read(reader, answers))];
        let mut connection = Connection {
            requests,
            next_id: AtomicI32::new(0),
            client_id: KafkaString::from(client_id),
            versions: BTreeMap::new(),
            tasks: tasks.map(|task| task.abort_handle()),
        };
        connection.versions = connection.negotiate().await?;
        Ok(connection)
    }

    async fn negotiate(&self) -> Result<BTreeMap<ApiKey, i16>, ClientError> {
        let ours = offer(ApiKey::ApiVersions).map_or(0, |offer| offer.decoded.max);
        let request = ApiVersionsRequest {
            client_software_name: "mink".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..ApiVersionsRequest::default()
        };
        let mut answer = self.api_versions(ours, &request).await?;
        if answer.error_code == ErrorCode::UnsupportedVersion.code() {
            answer = self.api_versions(0, &ApiVersionsRequest::default()).await?;
        }
        let mut versions = BTreeMap::new();
        for range in answer.api_keys {
            let Some(key) = ApiKey::from_code(range.api_key) else { continue };
            if let Some(offer) = offer(key) {
                let max = range.max_version.min(newest(key, offer.decoded.max));
                if max >= range.min_version.max(offer.decoded.min) {
                    versions.insert(key, max);
                }
            }
        }
        Ok(versions)
    }

    async fn api_versions(
        &self,
        version: i16,
        request: &ApiVersionsRequest,
    ) -> Result<ApiVersionsResponse, ClientError> {
        let (id, frame) = self.frame(version, request)?;
        let answer = self.enqueue(frame).await?;
        let answer =
            self.within(ANSWER_TIMEOUT, async { answer.await.map_err(|_| broken("closed")) }).await?;
        let (answered, body) = decode_api_versions_response(version, answer).map_err(protocol)?;
        check_id(id, answered)?;
        Ok(body)
    }

    fn frame<R: Request>(&self, version: i16, request: &R) -> Result<(i32, Frame), ClientError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = encode_request(version, id, Some(&self.client_id), request)
            .map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
        Ok((id, frame))
    }

    async fn enqueue(&self, frame: Frame) -> Result<oneshot::Receiver<Bytes>, ClientError> {
        let (answer, comes) = oneshot::channel();
        self.requests.send(Outgoing { frame, answer }).await.map_err(|_| broken("closed"))?;
        Ok(comes)
    }

    /// The version at which `R` is spoken here.
    pub(crate) fn version<R: Request>(&self) -> Result<i16, ClientError> {
        self.versions.get(&R::API_KEY).copied().ok_or_else(|| {
            ClientError::new(
                ErrorKind::Protocol,
                format!("the server speaks no version of {} that we do", R::NAME),
            )
        })
    }

    /// Hands a request over to be sent; waits only for its place in the queue.
    pub(crate) async fn begin<R: Request>(&self, request: &R) -> Result<Pending<R>, ClientError> {
        let version = self.version::<R>()?;
        let (id, frame) = self.frame(version, request)?;
        let answer = self.enqueue(frame).await?;
        Ok(Pending { id, version, answer, request: PhantomData })
    }

    /// Waits for `what` at most `limit`; a server that does not answer in time loses the connection, so that nothing of it comes later.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        what: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let ended = match tokio::time::timeout(limit, what).await {
            Ok(ended) => ended,
            Err(_) => Err(ClientError::new(ErrorKind::Timeout, format!("no answer within {limit:?}"))),
        };
        if let Err(ErrorKind::Timeout | ErrorKind::Protocol) = ended.as_ref().map_err(ClientError::kind) {
            self.close();
        }
        ended
    }

    /// Sends a request and waits for its answer, at most `limit`.
    pub(crate) async fn call<R: Request>(
        &self,
        request: &R,
        limit: Duration,
    ) -> Result<R::Response, ClientError> {
        self.within(limit, async { self.begin(request).await?.answer().await }).await
    }

    /// Ends the connection: every request that waits fails.
    pub(crate) fn close(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn check_id(asked: i32, answered: i32) -> Result<(), ClientError> {
    if asked == answered {
        return Ok(());
    }
    Err(protocol(format!("the answer to request {asked} carries id {answered}")))
}

/// Sends frames in order; each one's answer is waited for in the same order.
async fn write(
    mut socket: OwnedWriteHalf,
    mut outgoing: mpsc::Receiver<Outgoing>,
    waiting: mpsc::Sender<oneshot::Sender<Bytes>>,
) {
    loop {
        // The reader ends first when the server goes: then nobody may be told to wait any more.
        let next = tokio::select! {
            next = outgoing.recv() => next,
            () = waiting.closed() => None,
        };
        let Some(Outgoing { frame, answer }) = next else { return };
        if waiting.send(answer).await.is_err() {
            return;
        }
        if let Err(error) = write_frame(&mut socket, &frame).await {
            tracing::debug!(%error, "write to the server");
            return;
        }
    }
}

/// All segments at once: one by one each would be a call and a packet of its own.
async fn write_frame(socket: &mut OwnedWriteHalf, frame: &Frame) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = frame.segments().iter().map(|segment| IoSlice::new(segment)).collect();
    let mut left = slices.as_mut_slice();
    while !left.is_empty() {
        match socket.write_vectored(left).await? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            written => IoSlice::advance_slices(&mut left, written),
        }
    }
    Ok(())
}

async fn read(socket: OwnedReadHalf, mut waiting: mpsc::Receiver<oneshot::Sender<Bytes>>) {
    let mut socket = BufReader::with_capacity(READ_AHEAD, socket);
    loop {
        let answer = match read_frame(&mut socket).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, "read from the server");
                return;
            }
        };
        match waiting.recv().await {
            // Whoever asked may have given up.
            Some(asked) => drop(asked.send(answer)),
            None => return,
        }
    }
}

async fn read_frame(socket: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Bytes> {
    let mut prefix = [0; FRAME_PREFIX_LEN];
    socket.read_exact(&mut prefix).await?;
    let length = frame_length(prefix, ANSWER_BYTES_MAX).map_err(std::io::Error::other)?;
    let mut left = usize::try_from(length).map_err(std::io::Error::other)?;
    let mut frame = BytesMut::new();
    while left > 0 {
        frame.reserve(left.min(READ_STEP));
        let mut part = (&mut *socket).take(left as u64);
        let read = part.read_buf(&mut frame).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        left -= read;
    }
    Ok(frame.freeze())
}
