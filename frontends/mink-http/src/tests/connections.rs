//! What hostile and slow clients get: real sockets, with short times.
use super::{Fake, healthy, status};
use crate::{AllowedHosts, HttpConfig, HttpNode, HttpServer};
use futures::FutureExt as _;
use futures::channel::oneshot;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(200);
/// Longer than anything here takes, however busy the machine is.
const SOON: Duration = Duration::from_secs(20);
const HEALTHZ: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const READYZ: &str = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A listener over a node, and the way to stop it.
struct Served {
    address: SocketAddr,
    node: Arc<HttpNode>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    async fn start(node: Fake, config: HttpConfig) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let shown = Arc::new(HttpNode::starting(status(Vec::new())));
        shown.up(Arc::new(node));
        let (stop, stopped) = oneshot::channel();
        let server = HttpServer::new(listener, config);
        let served = server.run(Arc::clone(&shown), AllowedHosts::new([]), stopped.map(|_| ()));
        Served { address, node: shown, stop: Some(stop), task: tokio::spawn(served) }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the listener listens")
    }

    /// A connection that has sent this.
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.expect("sent");
        stream
    }

    /// Waits until the counter of this reason, or this other metric, is as wished.
    async fn until(&self, name: &str, reason: Option<&str>, is_so: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        loop {
            let metrics = self.node.metrics().await;
            let found = metrics.iter().find(|metric| {
                metric.name == name
                    && reason.is_none_or(|reason| metric.labels.iter().any(|(_, value)| value == reason))
            });
            let value = match found.map(|metric| &metric.value) {
                Some(mink_api::MetricValue::Counter(value)) => {
                    f64::from(u32::try_from(*value).expect("small"))
                }
                Some(mink_api::MetricValue::Gauge(value)) => *value,
                other => panic!("{name}: {other:?}"),
            };
            if is_so(value) {
                return;
            }
            assert!(begun.elapsed() < SOON, "{name} {reason:?} is {value}");
            tokio::task::yield_now().await;
        }
    }

    async fn until_closed(&self, reason: &str, count: f64) {
        self.until("mink_http_connections_closed", Some(reason), |closed| closed >= count).await;
    }
}

/// All that still comes, until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too: what was sent meanwhile was not read.
    drop(tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("closed in time"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first line of the next answer, if it comes before the connection ends.
async fn first_line(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = vec![0; 512];
    let read = tokio::time::timeout(SOON, stream.read(&mut bytes)).await.expect("in time").ok()?;
    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
    text.lines().next().map(str::to_owned)
}

fn short() -> HttpConfig {
    HttpConfig { head_deadline: SHORT, body_deadline: SHORT, ..HttpConfig::default() }
}

#[tokio::test]
async fn i20_a_head_that_does_not_come_ends_by_its_deadline() {
    let served = Served::start(healthy(), short()).await;
    let begun = Instant::now();
    let mut halves = Vec::new();
    for text in ["", "GET", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"] {
        halves.push(served.send(text).await);
    }
    for half in &mut halves {
        assert_eq!(rest(half).await, "");
    }
    assert!(begun.elapsed() >= SHORT);
    served.until_closed("head_deadline", 3.0).await;
    // A byte now and then does not move it.
    let mut trickle = served.connect().await;
    let begun = Instant::now();
    while trickle.write_all(b"G").await.is_ok() {
        assert!(begun.elapsed() < SOON, "it stays open");
        tokio::time::sleep(SHORT / 10).await;
    }
    served.until_closed("head_deadline", 4.0).await;
}

#[tokio::test]
async fn i20_a_head_above_its_bytes_or_lines_is_refused() {
    let served = Served::start(healthy(), HttpConfig::default()).await;
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
    for (count, head) in [(1.0, long), (2.0, many)] {
        let mut stream = served.send(&head).await;
        let answer = rest(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        served.until_closed("head_size", count).await;
    }
    let mut other = served.send("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").await;
    assert!(rest(&mut other).await.starts_with("HTTP/1.1 400 "));
    served.until_closed("malformed", 1.0).await;
}

#[tokio::test]
async fn i20_a_body_that_does_not_come_or_is_too_large_is_refused() {
    let served = Served::start(healthy(), short()).await;
    let head = "POST /api/v1/databases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for (body, status, reason) in [
        ("Content-Length: 50\r\n\r\n{".to_owned(), "HTTP/1.1 408 ", "body_deadline"),
        ("Content-Length: 1000000\r\n\r\n".to_owned(), "HTTP/1.1 413 ", "body_size"),
        (
            format!("Transfer-Encoding: chunked\r\n\r\n11000\r\n{}\r\n", "a".repeat(0x11000)),
            "HTTP/1.1 413 ",
            "body_size",
        ),
    ] {
        let mut stream = served.connect().await;
        // What is sent behind a refusal may not be taken any more.
        drop(stream.write_all(format!("{head}{body}").as_bytes()).await);
        let answer = first_line(&mut stream).await.unwrap_or_default();
        assert!(answer.starts_with(status.trim_end()), "{answer}");
        rest(&mut stream).await;
        served.until_closed(reason, 1.0).await;
    }
    let whole = format!("{head}Content-Length: 12\r\n\r\n{{\"name\":\"a\"}}");
    assert_eq!(first_line(&mut served.send(&whole).await).await.as_deref(), Some("HTTP/1.1 201 Created"));
}

#[tokio::test]
async fn i20_a_connection_without_a_next_request_is_closed_in_its_time() {
    let config = HttpConfig { idle_deadline: SHORT, ..HttpConfig::default() };
    let served = Served::start(healthy(), config).await;
    let mut stream = served.connect().await;
    for _ in 0..3 {
        stream.write_all(HEALTHZ.as_bytes()).await.expect("kept");
        assert_eq!(first_line(&mut stream).await.as_deref(), Some("HTTP/1.1 200 OK"));
    }
    let begun = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(begun.elapsed() >= SHORT / 2);
    served.until_closed("idle", 1.0).await;
}

#[tokio::test]
async fn i20_connections_are_bounded_and_the_one_silent_for_the_longest_goes() {
    let config = HttpConfig { connections_max: 4, ..HttpConfig::default() };
    let served = Served::start(healthy(), config).await;
    let mut flood = Vec::new();
    for number in 0..50 {
        flood.push(served.send("GET /healthz HTTP/1.1\r\nHost: ").await);
        served.until("mink_http_connections_accepted", None, |accepted| accepted > f64::from(number)).await;
        let mut good = served.send(HEALTHZ).await;
        assert_eq!(first_line(&mut good).await.as_deref(), Some("HTTP/1.1 200 OK"), "after {number}");
        served.until("mink_http_connections", None, |open| open <= 4.0).await;
    }
    served.until_closed("made_room", 46.0).await;
    assert_eq!(rest(&mut flood[0]).await, "");
}

#[tokio::test]
async fn i20_while_all_are_being_served_the_next_is_turned_away_at_once() {
    let config = HttpConfig { connections_max: 2, ..HttpConfig::default() };
    let served = Served::start(healthy(), config).await;
    let head = "POST /api/v1/databases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let stuck = format!("{head}Content-Length: 16\r\n\r\n{{\"name\":\"stuck\"}}");
    let mut busy = Vec::new();
    for _ in 0..2 {
        busy.push(served.send(&stuck).await);
    }
    // Until both are worked on, one may still be sent away for it.
    let begun = Instant::now();
    while served.node.metrics().await.iter().all(|metric| {
        let is_limit = metric.labels.iter().any(|(_, reason)| reason == "connection_limit");
        !is_limit || matches!(metric.value, mink_api::MetricValue::Counter(0))
    }) {
        rest(&mut served.connect().await).await;
        assert!(begun.elapsed() < SOON);
        if busy.len() < 4 {
            busy.push(served.send(&stuck).await);
        }
    }
    drop(busy);
    // Who leaves gives its place back.
    served.until("mink_http_connections", None, |open| open < 1.0).await;
    assert_eq!(first_line(&mut served.send(HEALTHZ).await).await.as_deref(), Some("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn i20_changes_that_wait_are_bounded_and_keep_no_probe_out() {
    let served = Served::start(healthy(), HttpConfig::default()).await;
    let head = "POST /api/v1/databases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let stuck = format!("{head}Content-Length: 16\r\n\r\n{{\"name\":\"stuck\"}}");
    let mut streams = Vec::new();
    for _ in 0..17 {
        streams.push(served.send(&stuck).await);
    }
    let answers = streams.iter_mut().map(|stream| Box::pin(first_line(stream)));
    let (refused, _, _) = futures::future::select_all(answers).await;
    assert_eq!(refused.as_deref(), Some("HTTP/1.1 503 Service Unavailable"));
    assert_eq!(first_line(&mut served.send(READYZ).await).await.as_deref(), Some("HTTP/1.1 200 OK"));
}

/// A client with little room for what comes.
async fn slow_reader(served: &Served, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("set");
    let mut stream = socket.connect(served.address).await.expect("the listener listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

#[tokio::test]
async fn i20_a_client_that_takes_nothing_of_its_answer_is_closed() {
    let large = Fake { not_ready: vec!["x".repeat(16 << 20)] };
    let config = HttpConfig { write_deadline: SHORT, ..HttpConfig::default() };
    let served = Served::start(large, config).await;
    let mut stream = slow_reader(&served, READYZ).await;
    served.until_closed("write_deadline", 1.0).await;
    assert!(rest(&mut stream).await.len() < 16 << 20);
}

#[tokio::test]
async fn i20_large_answers_that_nobody_takes_hold_a_bounded_memory_and_go_for_the_next() {
    let large = Fake { not_ready: vec!["x".repeat(16 << 20)] };
    let served = Served::start(large, HttpConfig::default()).await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        stalled.push(slow_reader(&served, READYZ).await);
    }
    served.until("mink_http_answer_bytes", None, |held| held >= f64::from(8 << 20)).await;
    // Each is larger than the whole memory of answers, so each has to go before the next is sent, and a probe waits for none.
    assert_eq!(first_line(&mut served.send(HEALTHZ).await).await.as_deref(), Some("HTTP/1.1 200 OK"));
    let mut good = served.send(READYZ).await;
    let answer = rest(&mut good);
    let mut heard = std::pin::pin!(answer);
    tokio::select! {
        _ = &mut heard => panic!("a connection that is kept does not end"),
        () = served.until_closed("write_deadline", 3.0) => {}
    }
    drop(stalled);
    // All that was held is given back with the connections, but for the good one's.
    served.until("mink_http_connections", None, |open| open <= 2.0).await;
}

#[tokio::test]
async fn a_stop_lets_the_open_request_end_and_closes_who_asks_nothing() {
    let served = Served::start(healthy(), HttpConfig::default()).await;
    let mut idle = served.connect().await;
    for _ in 0..2 {
        idle.write_all(HEALTHZ.as_bytes()).await.expect("kept");
        assert!(first_line(&mut idle).await.is_some());
    }
    let head = "POST /api/v1/databases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut open = served.send(&format!("{head}Content-Length: 12\r\n\r\n{{\"name\"")).await;
    served.until("mink_http_connections", None, |count| count >= 2.0).await;
    let Served { address, stop, mut task, .. } = served;
    drop(stop);
    assert_eq!(rest(&mut idle).await, "");
    assert!((&mut task).now_or_never().is_none(), "a request is open");
    open.write_all(b":\"a\"}").await.expect("taken");
    assert!(rest(&mut open).await.starts_with("HTTP/1.1 201 "));
    tokio::time::timeout(SOON, task).await.expect("ends in time").expect("no panic");
    TcpStream::connect(address).await.expect_err("nobody listens");
}
