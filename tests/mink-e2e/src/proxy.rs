//! An HTTP proxy before a real S3 server that draws two coins for a request: did it happen, was it told.
//! Lives on: the test's tokio runtime.
//! Owns: its listener; a task per connection.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const HEAD_BYTES_MAX: usize = 64 << 10;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Happens, and the connection breaks before the answer.
    DoneUntold,
    /// Does not happen, and the connection breaks after the last byte of the body.
    UndoneUntold,
    /// Happens, and is told as an error of the server.
    DoneToldFailed,
    /// Does not happen: an error of the server after the last byte of the body.
    UndoneToldFailed,
}

pub(crate) const FAULTS: [Fault; 4] =
    [Fault::DoneUntold, Fault::UndoneUntold, Fault::DoneToldFailed, Fault::UndoneToldFailed];

const SERVER_ERROR: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The first PUT of each WAL object meets one fault after another; all else passes.
#[derive(Debug)]
pub(crate) struct FaultProxy {
    address: String,
    drawn: Arc<Mutex<Drawn>>,
    _task: AbortOnDrop,
}

#[derive(Debug)]
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug, Default)]
struct Drawn {
    /// By the object's path: attempts seen.
    attempts: BTreeMap<String, u32>,
    faults: BTreeMap<Fault, u32>,
    /// Whether faults are drawn at all.
    on: bool,
}

impl Drawn {
    fn draw(&mut self, request: &Request) -> Option<Fault> {
        if !self.on || request.method != "PUT" || !request.path.contains("/wal/") {
            return None;
        }
        let next = self.attempts.len();
        let attempts = self.attempts.entry(request.path.clone()).or_default();
        *attempts += 1;
        let fault = (*attempts == 1).then(|| FAULTS[next % FAULTS.len()])?;
        *self.faults.entry(fault).or_default() += 1;
        Some(fault)
    }
}

impl FaultProxy {
    /// A proxy before `upstream` (`HOST:PORT`); faults are off at first.
    pub(crate) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let drawn = Arc::new(Mutex::new(Drawn::default()));
        let (upstream, shared) = (upstream.to_owned(), Arc::clone(&drawn));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (upstream, drawn) = (upstream.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    // A broken connection is the server's or the client's to see.
                    drop(serve(client, &upstream, &drawn).await);
                });
            }
        });
        Self { address, drawn, _task: AbortOnDrop(task) }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn faults_on(&self, on: bool) {
        self.drawn.lock().unwrap().on = on;
    }

    /// How often each fault was drawn, and the most attempts that an object took.
    pub(crate) fn drawn(&self) -> (BTreeMap<Fault, u32>, u32) {
        let drawn = self.drawn.lock().unwrap();
        (drawn.faults.clone(), drawn.attempts.values().copied().max().unwrap_or_default())
    }
}

/// A request, whole.
#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    bytes: Vec<u8>,
}

async fn read_request(client: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > HEAD_BYTES_MAX || client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut words = head.split(' ');
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    if header("transfer-encoding").is_some() {
        return Err(io::Error::other("a chunked request, which this proxy does not take"));
    }
    let body: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    while bytes.len() < head_end + body {
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Request { method, path, bytes }))
}

/// One request per connection: the upstream is told so, and tells the client.
async fn serve(mut client: TcpStream, upstream: &str, drawn: &Mutex<Drawn>) -> io::Result<()> {
    let Some(request) = read_request(&mut client).await? else {
        return Ok(());
    };
    let fault = drawn.lock().unwrap().draw(&request);
    let answer = match fault {
        None | Some(Fault::DoneUntold | Fault::DoneToldFailed) => forward(&request, upstream).await?,
        Some(Fault::UndoneUntold | Fault::UndoneToldFailed) => Vec::new(),
    };
    match fault {
        None => client.write_all(&answer).await?,
        Some(Fault::DoneToldFailed | Fault::UndoneToldFailed) => client.write_all(SERVER_ERROR).await?,
        Some(Fault::DoneUntold | Fault::UndoneUntold) => {}
    }
    client.shutdown().await
}

async fn forward(request: &Request, upstream: &str) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(upstream).await?;
    let line_end = request.bytes.windows(2).position(|window| window == b"\r\n").unwrap_or_default() + 2;
    let (line, rest) = request.bytes.split_at(line_end);
    server.write_all(line).await?;
    server.write_all(b"Connection: close\r\n").await?;
    server.write_all(rest).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    Ok(answer)
}
