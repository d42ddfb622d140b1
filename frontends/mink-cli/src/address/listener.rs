//! The three listeners of a node: how each is reached, and what is said when another one, or nobody, answers.
//!
//! Lives on: any tokio runtime.
//! Invariants: nothing is asked for longer than `PATIENCE`; what answers at a wrong port is looked at only after a failure.
use crate::failure::Failure;
use mink_client::flight::{FlightClient, FlightError, FlightErrorKind, NodeDescription};
use mink_client::{Client, ClientError};
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a command tries to reach a node that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one look at what answers may take.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// Bytes that tell HTTP/1 from HTTP/2: a status line's beginning, or the header of the first frame.
const TELLING_BYTES: usize = 9;
/// The type of the frame that an HTTP/2 server sends first.
const SETTINGS: u8 = 4;

/// A listener of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listener {
    Kafka,
    Flight,
    Http,
}

impl Listener {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Listener::Kafka => "Kafka",
            Listener::Flight => "Flight",
            Listener::Http => "HTTP",
        }
    }

    /// The flag of `mink serve` that says where it is.
    pub(crate) fn serve_flag(self) -> &'static str {
        match self {
            Listener::Kafka => "--kafka-listen",
            Listener::Flight => "--flight-listen",
            Listener::Http => "--http-listen",
        }
    }

    /// How a command is told of one at this address.
    fn flag(self, authority: &str) -> String {
        match self {
            Listener::Kafka => format!("--kafka {authority}"),
            Listener::Flight => format!("--addr {authority}"),
            Listener::Http => format!("--addr http://{authority}"),
        }
    }
}

/// Who has said where a listener is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// `--addr`, or its default.
    Addr,
    /// `--kafka`.
    Kafka,
    /// The node that was asked at this address.
    Node(String),
}

/// The failure to reach a listener, with what to do.
pub(crate) async fn unreachable(
    wanted: Listener,
    authority: &str,
    origin: &Origin,
    why: impl std::fmt::Display,
) -> Failure {
    let remedy = remedy(wanted, Box::pin(who_answers(authority)).await, authority, origin);
    Failure::failed(format!("{} listener at {authority}: {why}; {remedy}", wanted.name()))
}

fn remedy(wanted: Listener, found: Option<Listener>, authority: &str, origin: &Origin) -> String {
    match (found, origin) {
        (Some(found), Origin::Addr | Origin::Kafka) if found != wanted => format!(
            "what answers there looks like a node's {} listener, so write {}, or name its {} listener, as the node's line `mink ready` tells it",
            found.name(),
            found.flag(authority),
            wanted.name()
        ),
        (_, Origin::Addr) => {
            "is a node running there? `mink serve` starts one, --addr HOST:PORT names another".into()
        }
        (_, Origin::Kafka) => {
            "is a node running there? `mink serve` starts one, --kafka HOST:PORT names another".into()
        }
        (_, Origin::Node(node)) => {
            let name = wanted.name().to_lowercase();
            match wanted {
                Listener::Http => format!(
                    "the node at {node} says it is there: it may listen for its own machine alone (--http-listen)"
                ),
                _ => format!(
                    "the node at {node} says it is there, which --{name}-advertise changes; {} overrides it",
                    wanted.flag("HOST:PORT")
                ),
            }
        }
    }
}

/// A client of this Flight listener, and what the node says of itself.
pub(crate) async fn flight(
    authority: &str,
    origin: &Origin,
) -> Result<(FlightClient, NodeDescription), Failure> {
    let asked = async {
        let client = FlightClient::connect(authority).await?;
        let node = client.describe_node().await?;
        Ok::<_, FlightError>((client, node))
    };
    let error = match timeout(PATIENCE, Box::pin(asked)).await {
        Ok(Ok(reached)) => return Ok(reached),
        Ok(Err(error)) => error,
        Err(_) => {
            return Err(unreachable(Listener::Flight, authority, origin, no_answer()).await);
        }
    };
    match error.kind() {
        FlightErrorKind::Retry | FlightErrorKind::Unknown | FlightErrorKind::Protocol => {
            Err(unreachable(Listener::Flight, authority, origin, error).await)
        }
        // Somebody speaks Flight there who does not know what was asked.
        _ => Err(Failure::failed(format!(
            "Flight listener at {authority}: {error}; is it a Mink node of this version?"
        ))),
    }
}

/// A client of this Kafka listener; several addresses stand between commas.
pub(crate) async fn kafka(address: &str, origin: &Origin) -> Result<Client, Failure> {
    let connected = timeout(PATIENCE, Box::pin(Client::with_patience(address, PATIENCE))).await;
    let why = match connected {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(error)) => error.to_string(),
        Err(_) => no_answer(),
    };
    // Of several the first is looked at.
    let first = address.split(',').next().unwrap_or_default().trim();
    Err(unreachable(Listener::Kafka, first, origin, why).await)
}

fn no_answer() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// Which listener answers at an address, if it is one that a node has.
async fn who_answers(authority: &str) -> Option<Listener> {
    if let Some(found) = timeout(LOOK_MAX, sniff(authority)).await.ok().flatten() {
        return Some(found);
    }
    let kafka: Result<Result<Client, ClientError>, _> =
        timeout(LOOK_MAX, Client::with_patience(authority, Duration::ZERO)).await;
    matches!(kafka, Ok(Ok(_))).then_some(Listener::Kafka)
}

/// Sends a request of HTTP/1 and looks at the first bytes that come.
async fn sniff(authority: &str) -> Option<Listener> {
    let mut stream = TcpStream::connect(authority).await.ok()?;
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut first = [0; TELLING_BYTES];
    stream.read_exact(&mut first).await.ok()?;
    told_by(&first)
}

fn told_by(first: &[u8; TELLING_BYTES]) -> Option<Listener> {
    match first {
        [b'H', b'T', b'T', b'P', b'/', b'1', ..] => Some(Listener::Http),
        // Three bytes of length, the type, flags, and the stream 0.
        [0, 0, _, SETTINGS, 0, 0, 0, 0, 0] => Some(Listener::Flight),
        _ => None,
    }
}

/// A text of a JSON object.
pub(super) fn text_of(object: &Value, name: &str) -> Option<String> {
    object.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_port_is_told_with_the_flag_that_fits_it() {
        let words = remedy(Listener::Flight, Some(Listener::Http), "box:9180", &Origin::Addr);
        assert!(words.contains("HTTP listener, so write --addr http://box:9180"), "{words}");
        let words = remedy(Listener::Flight, Some(Listener::Kafka), "box:9092", &Origin::Addr);
        assert!(words.contains("Kafka listener, so write --kafka box:9092"), "{words}");
        let words = remedy(Listener::Kafka, Some(Listener::Flight), "box:9123", &Origin::Kafka);
        assert!(words.contains("Flight listener, so write --addr box:9123"), "{words}");
    }

    #[test]
    fn nobody_there_is_told_with_how_to_start_or_name_a_node() {
        let words = remedy(Listener::Flight, None, "box:9123", &Origin::Addr);
        assert!(words.contains("`mink serve` starts one, --addr HOST:PORT"), "{words}");
        let words = remedy(Listener::Kafka, None, "box:9092", &Origin::Kafka);
        assert!(words.contains("--kafka HOST:PORT names another"), "{words}");
    }

    #[test]
    fn an_address_that_the_node_told_is_told_as_such() {
        let by = Origin::Node("box:9123".into());
        let words = remedy(Listener::Kafka, None, "inner:9092", &by);
        assert!(words.contains("node at box:9123 says") && words.contains("--kafka-advertise"), "{words}");
        let words = remedy(Listener::Http, None, "127.0.0.1:9180", &by);
        assert!(words.contains("--http-listen"), "{words}");
    }

    #[test]
    fn the_first_bytes_tell_http_from_flight() {
        assert_eq!(told_by(b"HTTP/1.1 "), Some(Listener::Http));
        assert_eq!(told_by(&[0, 0, 0x24, 4, 0, 0, 0, 0, 0]), Some(Listener::Flight));
        assert_eq!(told_by(b"SSH-2.0-O"), None);
    }
}
