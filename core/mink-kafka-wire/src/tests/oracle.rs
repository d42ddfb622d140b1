//! Agreement with the `kafka-protocol` crate, at every version both know.
//!
//! Lives on: tests only.
//! Owns: the comparison of two types that never heard of each other. Both crates derive `Debug` from the same Kafka
//! definitions, so their fields are compared by name through that. The other crate's decoder trusts counts: it is fed
//! our own encodings only.

use std::fmt::Debug;

use bytes::BytesMut;
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message as TheirMessage};

use super::samples::{Sample, with_each_api};
use super::{SAMPLES, body_of, each_sample};
use crate::Message;

fn agree<Ours, Theirs>()
where
    Ours: Message + Sample,
    Theirs: Decodable + Encodable + TheirMessage + Debug,
{
    let mut compared = 0;
    each_sample::<Ours>(SAMPLES, |ours, version, body| {
        if version < Theirs::VERSIONS.min || version > Theirs::VERSIONS.max {
            return;
        }
        let place = format!("{} {version}", Ours::NAME);
        let mut rest = body.clone();
        let read = Theirs::decode(&mut rest, version).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(rest.is_empty(), "{place}: they left {} bytes", rest.len());
        compared += compare(&place, &Shape::of(ours), &Shape::of(&read));
        let mut written = BytesMut::new();
        read.encode(&mut written, version).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert_eq!(written, body, "{place}: they write other bytes");
        assert_eq!(Ours::decode_body(version, written.freeze()).as_ref(), Ok(ours), "{place}");
        assert_eq!(body_of(ours, version), body);
    });
    assert!(compared > 0, "{}: nothing was compared", Ours::NAME);
}

#[test]
fn another_implementation_reads_the_same_fields_and_writes_the_same_bytes() {
    macro_rules! check {
        ($name:ident, $module:ident, $request:ident, $response:ident) => {
            agree::<crate::messages::$module::$request, theirs::$request>();
            agree::<crate::messages::$module::$response, theirs::$response>();
        };
    }
    with_each_api!(check);
}

/// A value as its `Debug` text shows it, newtypes taken off.
#[derive(Debug)]
enum Shape {
    Leaf(String),
    /// Records, which we do not print.
    Hidden,
    Parts(Vec<(String, Shape)>),
}

impl Shape {
    fn of(value: &impl Debug) -> Self {
        let text = format!("{value:?}");
        let mut rest = text.as_str();
        let shape = Self::parse(&mut rest);
        assert_eq!(rest, "", "the whole text was understood");
        shape
    }

    fn parse(rest: &mut &str) -> Self {
        if eat(rest, "[") {
            let mut parts = Vec::new();
            while !eat(rest, "]") {
                parts.push((parts.len().to_string(), Self::parse(rest)));
                eat(rest, ", ");
            }
            return Self::Parts(parts);
        }
        if eat(rest, "{}") {
            return Self::Leaf("{}".to_owned()); // the unknown tags of their messages, always none
        }
        let quote = usize::from(rest.starts_with("b\""));
        if rest[quote..].starts_with('"') {
            return Self::Leaf(quoted(rest, quote));
        }
        let end = rest.find([',', '(', ')', '[', ']', '{', '}', ' ']).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        *rest = &rest[end..];
        if word == "Records" {
            *rest = &rest[rest.find(')').unwrap() + 1..];
            return Self::Hidden;
        }
        if eat(rest, "(") {
            let inner = Self::parse(rest);
            assert!(eat(rest, ")"), "a tuple of one");
            return if word == "Some" { Self::Parts(vec![(word, inner)]) } else { inner };
        }
        if eat(rest, " { ") {
            let mut parts = Vec::new();
            while !eat(rest, "}") {
                let colon = rest.find(": ").unwrap();
                let name = rest[..colon].to_owned();
                *rest = &rest[colon + 2..];
                parts.push((name, Self::parse(rest)));
                let _ = eat(rest, ", ") || eat(rest, " ");
            }
            return Self::Parts(parts);
        }
        Self::Leaf(word)
    }
}

fn eat(rest: &mut &str, token: &str) -> bool {
    rest.strip_prefix(token).is_some_and(|after| {
        *rest = after;
        true
    })
}

fn quoted(rest: &mut &str, quote: usize) -> String {
    let mut escaped = false;
    let close = rest[quote + 1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let (text, after) = rest.split_at(quote + 1 + close.unwrap() + 1);
    *rest = after;
    text.to_owned()
}

/// Every field of theirs must be one of ours with the same value; we may have fields of a later Kafka. Returns how many
/// values were equal.
fn compare(place: &str, ours: &Shape, theirs: &Shape) -> usize {
    match (ours, theirs) {
        (Shape::Hidden, _) => 1, // their bytes are compared as a whole
        (Shape::Leaf(ours), Shape::Leaf(theirs)) => {
            assert_eq!(ours, theirs, "{place}");
            1
        }
        (Shape::Parts(ours), Shape::Parts(theirs)) => theirs
            .iter()
            .filter(|(name, _)| name != "unknown_tagged_fields")
            .map(|(name, value)| {
                // They write `enable_2_pc` where we write `enable2_pc`.
                let plain = |name: &str| name.replace('_', "");
                let own = ours.iter().find(|(own, _)| plain(own) == plain(name));
                let (_, own) = own.unwrap_or_else(|| panic!("{place}: we have no {name}"));
                compare(&format!("{place} {name}"), own, value)
            })
            .sum(),
        _ => panic!("{place}: {ours:?} is not {theirs:?}"),
    }
}
