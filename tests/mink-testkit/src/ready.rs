//! The line by which a node says that it is ready.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: none of the product's.

use crate::{Error, ErrorKind, Result};

const MARK: &str = "mink ready ";

/// What `mink ready kafka=HOST:PORT flight=none http=HOST:PORT runtime=epoll shards=2` says. A listener that is off is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// `host:port` of the Kafka listener.
    pub kafka: Option<String>,
    /// `host:port` of the Flight listener.
    pub flight: Option<String>,
    /// `host:port` of the HTTP listener.
    pub http: Option<String>,
    /// `uring` or `epoll`.
    pub runtime: String,
    /// Number of shards, at least 1.
    pub shards: u32,
}

impl Ready {
    /// Parses a line of a node's stderr; `None` for any other line. Names that this version does not know are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] for a ready line that lacks a value or holds a wrong one.
    pub fn parse(line: &str) -> Option<Result<Self>> {
        let (_, values) = line.split_once(MARK)?;
        Some(Self::from_values(values).map_err(|error| error.during(format_args!("ready line {line:?}"))))
    }

    fn from_values(values: &str) -> Result<Self> {
        let value = |name: &str| {
            let mut pairs = values.split_whitespace().filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
            found.ok_or_else(|| Error::new(ErrorKind::Failed, format!("no value for {name}")))
        };
        let runtime = value("runtime")?;
        if !matches!(runtime.as_str(), "uring" | "epoll") {
            return Err(Error::new(
                ErrorKind::Failed,
                format!("runtime {runtime} is neither uring nor epoll"),
            ));
        }
        let shards = value("shards")?;
        let shards = shards.parse().ok().filter(|count| *count > 0);
        let shards = shards.ok_or_else(|| Error::new(ErrorKind::Failed, "shards is no positive number"))?;
        Ok(Self {
            kafka: listener("kafka", value("kafka")?)?,
            flight: listener("flight", value("flight")?)?,
            http: listener("http", value("http")?)?,
            runtime,
            shards,
        })
    }
}

fn listener(name: &str, address: String) -> Result<Option<String>> {
    if address == "none" {
        return Ok(None);
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port != 0 => Ok(Some(address)),
        _ => Err(Error::new(ErrorKind::Failed, format!("{name}={address} has no port"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "mink ready kafka=127.0.0.1:9092 flight=none http=127.0.0.1:9180 runtime=epoll shards=2";

    #[test]
    fn a_ready_line_is_parsed() {
        let ready = Ready::parse(LINE).unwrap().unwrap();
        assert_eq!(ready.kafka.as_deref(), Some("127.0.0.1:9092"));
        assert_eq!(ready.flight, None);
        assert_eq!(ready.http.as_deref(), Some("127.0.0.1:9180"));
        assert_eq!((ready.runtime.as_str(), ready.shards), ("epoll", 2));
    }

    #[test]
    fn a_prefix_and_later_names_do_not_matter() {
        let line = format!("2026-01-01T00:00:00Z INFO {LINE} node=1");
        assert_eq!(Ready::parse(&line).unwrap().unwrap(), Ready::parse(LINE).unwrap().unwrap());
    }

    #[test]
    fn other_lines_are_not_ready_lines() {
        assert!(Ready::parse("mink is ready soon").is_none());
    }

    #[test]
    fn wrong_ready_lines_are_refused_in_words() {
        for (from, to, words) in [
            ("kafka=127.0.0.1:9092", "kafka=127.0.0.1:0", "kafka=127.0.0.1:0 has no port"),
            (" http=127.0.0.1:9180", "", "no value for http"),
            ("runtime=epoll", "runtime=fast", "neither uring nor epoll"),
            ("shards=2", "shards=0", "no positive number"),
        ] {
            let error = Ready::parse(&LINE.replace(from, to)).unwrap().unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
