//! The proxy before a small server, byte by byte.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::http;

const WITHIN: Duration = Duration::from_secs(10);

/// Objects by path, and how often each method was called. GET gives the object, PUT keeps it (once, with a condition).
#[derive(Debug, Default)]
struct Server {
    objects: BTreeMap<String, Vec<u8>>,
    heads: Vec<String>,
}

type Shelf = Arc<Mutex<Server>>;

async fn server() -> (String, Shelf) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let shelf = Shelf::default();
    let shared = Arc::clone(&shelf);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&shared)));
        }
    });
    (address, shelf)
}

async fn serve(mut stream: TcpStream, shelf: Shelf) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let whole = end + 4 + length.unwrap_or(0);
        while bytes.len() < whole {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        }
        let body = bytes[end + 4..whole].to_vec();
        bytes.drain(..whole);
        let answer = answer(&mut shelf.lock().unwrap(), &head, body);
        stream.write_all(&answer).await?;
    }
}

fn answer(server: &mut Server, head: &str, body: Vec<u8>) -> Vec<u8> {
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap().to_owned());
    server.heads.push(head.to_owned());
    let conditional = head.to_lowercase().contains("if-none-match: *");
    match method {
        "PUT" if conditional && server.objects.contains_key(&path) => {
            b"HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\n\r\n".to_vec()
        }
        "PUT" => {
            server.objects.insert(path, body);
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()
        }
        _ => match server.objects.get(&path) {
            Some(object) => {
                let mut answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", object.len()).into_bytes();
                answer.extend_from_slice(object);
                answer
            }
            None => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
        },
    }
}

/// A proxy with this plan before a server of its own.
async fn proxy(plan: &str) -> (FaultProxy, Shelf) {
    let (address, shelf) = server().await;
    let config = ProxyConfig::new(&address).secret("secret");
    (FaultProxy::start(config, plan.parse().unwrap()).await.unwrap(), shelf)
}

/// What a client hears on a connection of its own, to its end; `None` if the connection broke before a whole answer.
async fn ask(proxy: &FaultProxy, request: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let exchange = async {
        let mut stream = TcpStream::connect(proxy.address).await?;
        let head = format!(
            "{request} HTTP/1.1\r\nhost: bucket.example\r\nif-none-match: *\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = timeout(WITHIN, exchange).await.expect("the proxy answers or breaks").ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
    let body = answer[end + 4..].to_vec();
    (body.len() == length).then(|| (head.split(' ').nth(1).unwrap().parse().unwrap(), body))
}

async fn put(proxy: &FaultProxy, path: &str, body: &[u8]) -> Option<u16> {
    ask(proxy, &format!("PUT {path}"), body).await.map(|(status, _)| status)
}

fn stored(shelf: &Shelf, path: &str) -> Option<Vec<u8>> {
    shelf.lock().unwrap().objects.get(path).cloned()
}

async fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn without_a_plan_everything_passes_as_it_is() {
    let (proxy, shelf) = proxy("").await;
    let large = vec![7; 3 << 20];
    assert_eq!(put(&proxy, "/b/large", &large).await, Some(200));
    assert_eq!(ask(&proxy, "GET /b/large", b"").await, Some((200, large)));
    assert_eq!(put(&proxy, "/b/large", b"x").await, Some(412));
    let heads = shelf.lock().unwrap().heads.clone();
    assert!(heads.iter().all(|head| head.contains("host: bucket.example")), "{heads:?}");
    assert_eq!(
        proxy.tally().requests,
        BTreeMap::from([(crate::faults::Op::Put, 2), (crate::faults::Op::Get, 1)])
    );
}

#[tokio::test]
async fn k_3_all_four_combinations_of_the_two_coins() {
    let plan = "put key=a: lost\nput key=b: undone lost\nput key=c: 500\nput key=d: undone 503\nput key=e: undone 200";
    let (proxy, shelf) = proxy(plan).await;
    for (path, told, happened) in [
        ("/b/a", None, true),
        ("/b/b", None, false),
        ("/b/c", Some(500), true),
        ("/b/d", Some(503), false),
        ("/b/e", Some(200), false),
    ] {
        assert_eq!(put(&proxy, path, &vec![1; 100_000]).await, told, "{path}");
        assert_eq!(stored(&shelf, path).is_some(), happened, "{path}");
    }
    assert!(proxy.tally().rules.iter().all(|line| line.taken == 1), "{:?}", proxy.tally());
}

#[tokio::test]
async fn p_1_bodies_are_cut_both_ways() {
    let plan = "put key=half: stored 50%\nget key=whole times=1: cut 50%\nget key=whole times=1: short 50%";
    let (proxy, shelf) = proxy(plan).await;
    assert_eq!(put(&proxy, "/b/half", &vec![1; 200_001]).await, Some(200));
    assert_eq!(stored(&shelf, "/b/half").unwrap().len(), 100_000);
    assert_eq!(put(&proxy, "/b/whole", &vec![2; 200_000]).await, Some(200));
    assert_eq!(ask(&proxy, "GET /b/whole", b"").await, None);
    assert_eq!(ask(&proxy, "GET /b/whole", b"").await, Some((200, vec![2; 100_000])));
    assert_eq!(ask(&proxy, "GET /b/whole", b"").await, Some((200, vec![2; 200_000])));
}

#[tokio::test]
async fn p_5_a_condition_is_dropped_on_the_way() {
    let (proxy, shelf) = proxy("put: unconditional").await;
    assert_eq!(put(&proxy, "/b/k", b"first").await, Some(200));
    assert_eq!(put(&proxy, "/b/k", b"second").await, Some(200));
    assert_eq!(stored(&shelf, "/b/k").unwrap(), b"second");
}

#[tokio::test]
async fn a_late_put_is_applied_after_its_answer() {
    let (proxy, shelf) = proxy("put: late 200ms 500").await;
    let began = Instant::now();
    assert_eq!(put(&proxy, "/b/k", b"late").await, Some(500));
    assert!(stored(&shelf, "/b/k").is_none() || began.elapsed() >= Duration::from_millis(200));
    until(|| stored(&shelf, "/b/k").is_some()).await;
    until(|| proxy.late().applied == 1).await;
}

#[tokio::test]
async fn a_store_that_is_away_refuses_and_comes_back_on_its_port() {
    let (proxy, _) = proxy("").await;
    let mut open = TcpStream::connect(proxy.address).await.unwrap();
    for _ in 0..3 {
        proxy.set_text("any: away").unwrap();
        // The open connection breaks, a new one is refused.
        timeout(WITHIN, open.read_to_end(&mut Vec::new())).await.unwrap().ok();
        let deadline = Instant::now() + WITHIN;
        let refused = loop {
            match TcpStream::connect(proxy.address).await {
                Err(error) => break error.kind(),
                Ok(_) => assert!(Instant::now() < deadline, "still taken"),
            }
        };
        assert_eq!(refused, io::ErrorKind::ConnectionRefused);
        proxy.set_text("").unwrap();
        let deadline = Instant::now() + WITHIN;
        open = loop {
            match TcpStream::connect(proxy.address).await {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(ask(&proxy, "GET /b/none", b"").await.unwrap().0, 404);
    }
    proxy.set_text("any for=100ms: away").unwrap();
    let deadline = Instant::now() + WITHIN;
    while ask(&proxy, "GET /b/none", b"").await.is_none() {
        assert!(Instant::now() < deadline, "does not come back by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn silence_is_neither_an_answer_nor_an_end() {
    let (proxy, shelf) = proxy("put: silent").await;
    let asked = timeout(Duration::from_millis(300), put(&proxy, "/b/k", b"x")).await;
    assert!(asked.is_err(), "{asked:?}");
    assert!(stored(&shelf, "/b/k").is_some());
}

#[tokio::test]
async fn the_control_listener_tells_and_changes_the_plan() {
    let (proxy, _) = proxy("put: undone 503").await;
    assert_eq!(put(&proxy, "/b/k", b"x").await, Some(503));
    let control = proxy.control();
    let (address, path) = control.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let path = format!("/{path}");
    let report = http::get(address, &path).await.unwrap();
    let report: serde_json::Value = serde_json::from_str(&report.body).unwrap();
    assert_eq!(report["rules"][0]["taken"], 1, "{report}");
    assert_eq!(report["requests"]["put"], 1, "{report}");
    for (plan, status) in [("put: undone 500", 200), ("put: vanish", 400)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{plan}",
            plan.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert_eq!(put(&proxy, "/b/k", b"x").await, Some(500));
}

#[tokio::test]
async fn a_plan_that_cannot_be_carried_out_is_refused_in_words() {
    let plan = "put: unconditional".parse().unwrap();
    let error = FaultProxy::start(ProxyConfig::new("127.0.0.1:1"), plan).await.unwrap_err();
    assert!(error.to_string().contains("AWS_SECRET_ACCESS_KEY"), "{error}");
}
