//! Which operation of S3 an HTTP request is, and on which key: path style.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: none of the product's.

use hyper::{Method, Uri};

use crate::faults::Op;

/// What a plan sees of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) op: Op,
    /// Behind the bucket; of a listing its prefix; empty where the body names the keys.
    pub(super) key: String,
}

impl Seen {
    pub(super) fn of(method: &Method, uri: &Uri) -> Seen {
        let path = uri.path().trim_start_matches('/');
        let (_, key) = path.split_once('/').unwrap_or((path, ""));
        let query = uri.query().unwrap_or_default();
        let parameter = |name: &str| {
            let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
        };
        if !key.is_empty() {
            let op = match *method {
                Method::PUT => Op::Put,
                Method::GET => Op::Get,
                Method::HEAD => Op::Head,
                Method::DELETE => Op::Delete,
                _ => Op::Other,
            };
            return Seen { op, key: decoded(key) };
        }
        let lists = parameter("list-type").is_some() || parameter("prefix").is_some();
        let op = match *method {
            Method::GET if lists => Op::List,
            Method::POST if parameter("delete").is_some() => Op::Delete,
            _ => Op::Other,
        };
        Seen { op, key: parameter("prefix").unwrap_or_default() }
    }
}

/// Without percent signs; what is no text after that stays as it was.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_told_by_method_and_query() {
        for (method, uri, op, key) in [
            (Method::PUT, "/b/mink/wal/0a/1/7", Op::Put, "mink/wal/0a/1/7"),
            (Method::PUT, "/b", Op::Other, ""),
            (Method::GET, "/b/a%2Fb?x=1", Op::Get, "a/b"),
            (Method::HEAD, "/b/k", Op::Head, "k"),
            (Method::GET, "/b?list-type=2&prefix=mink%2Fwal%2F", Op::List, "mink/wal/"),
            (Method::GET, "/b/?prefix=p", Op::List, "p"),
            (Method::GET, "/b?location", Op::Other, ""),
            (Method::POST, "/b?delete", Op::Delete, ""),
            (Method::DELETE, "/b/k", Op::Delete, "k"),
            (Method::GET, "/", Op::Other, ""),
        ] {
            let seen = Seen::of(&method, &uri.parse().unwrap());
            assert_eq!(seen, Seen { op, key: key.to_owned() }, "{method} {uri}");
        }
    }

    #[test]
    fn a_lone_percent_sign_stays() {
        assert_eq!(
            (decoded("100%").as_str(), decoded("%zz").as_str(), decoded("%ff").as_str()),
            ("100%", "%zz", "%ff")
        );
    }
}
