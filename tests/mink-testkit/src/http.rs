//! One HTTP GET, for `/readyz`, `/metrics` and the like.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.
//! Invariants: none of the product's.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Error, ErrorKind, Result};

const ANSWER_BYTES_MAX: u64 = 16 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

impl Answer {
    /// The value of a Prometheus sample, e.g. `mink_object_store_requests_total{op="put",outcome="done"}`: its name and labels
    /// just as they are printed. `None` if there is no such sample.
    pub fn metric(&self, sample: &str) -> Option<f64> {
        self.body
            .lines()
            .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.split(' ').next()?.parse().ok())
    }

    /// The sum of all samples with this name, whatever their labels; 0 without one.
    pub fn metric_sum(&self, name: &str) -> f64 {
        let samples = self.body.lines().filter_map(|line| line.strip_prefix(name));
        let own = samples.filter(|rest| rest.starts_with(['{', ' ']));
        own.filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}

/// Gets `path` from `address` (`host:port`), whatever the status.
///
/// # Errors
/// [`ErrorKind::Io`] if the server is out of reach, [`ErrorKind::TimedOut`] after 10 seconds, [`ErrorKind::Failed`] if it does
/// not answer in HTTP.
pub async fn get(address: &str, path: &str) -> Result<Answer> {
    let doing = format!("GET http://{address}{path}");
    match timeout(ANSWER_WITHIN, exchange(address, path)).await {
        Err(_) => {
            Err(Error::new(ErrorKind::TimedOut, format!("{doing}: no answer within {ANSWER_WITHIN:?}")))
        }
        Ok(Err(error)) => Err(Error::io(doing, &error)),
        Ok(Ok(answer)) => {
            parse(&answer).ok_or_else(|| Error::new(ErrorKind::Failed, format!("{doing}: no HTTP answer")))
        }
    }
}

async fn exchange(address: &str, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP/1.0: the server sends the body as it is and closes.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_parsed() {
        let answer = parse(b"HTTP/1.0 503 Service Unavailable\r\na: b\r\n\r\nnot yet\n").unwrap();
        assert_eq!(answer, Answer { status: 503, body: "not yet\n".to_owned() });
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), None);
    }

    #[test]
    fn metrics_are_found_by_sample_and_by_name() {
        let body =
            "# HELP a_total x\na_total{op=\"put\"} 3\na_total{op=\"get\"} 4 1700000000\nab_total 9\nb 1.5\n";
        let answer = Answer { status: 200, body: body.replace(" 1700000000", "") };
        assert_eq!(answer.metric("a_total{op=\"put\"}"), Some(3.0));
        assert_eq!(answer.metric("b"), Some(1.5));
        assert_eq!(answer.metric("c"), None);
        assert!((answer.metric_sum("a_total") - 7.0).abs() < f64::EPSILON);
    }

    #[tokio::test]
    async fn a_real_exchange_works() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nok").await.unwrap();
            request
        });
        assert_eq!(get(&address, "/readyz").await.unwrap(), Answer { status: 200, body: "ok".to_owned() });
        assert!(server.await.unwrap().starts_with(b"GET /readyz HTTP/1.0\r\n"));
    }
}
