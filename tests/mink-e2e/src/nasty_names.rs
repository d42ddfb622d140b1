//! I19: names that hurt others (quotes, `;`, NUL, right-to-left marks, bytes that are no text, paths, too long ones) in every field that
//! takes text, of every offered API and version: each request is answered or its connection closed, nothing panics, logs hold no raw
//! control characters, object keys hold no names, and the command log holds none but those that are allowed.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use mink_kafka_wire::messages::metadata::MetadataRequest;
use mink_kafka_wire::{
    FRAME_PREFIX_LEN, KafkaString, OFFERED, Records, Request, Uuid, encode_request, offer,
};
use mink_testkit::http;
use mink_testkit::node::Node;
use mink_testkit::process::Output;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

/// How each message is drawn, field by field: generated from Kafka's definitions.
#[path = "../../../core/mink-kafka-wire/tests/samples/generated.rs"]
mod generated;

/// Stands in every field of text until the name is put there.
const PLACE: &[u8] = b"zq.place.zq";

/// Requests drawn for each API, version and name.
const DRAWS: u64 = 4;

/// A request, and whatever it waits for, is over by then.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

fn names() -> Vec<Vec<u8>> {
    let texts = [
        "' OR 1=1; DROP TABLE topics;--",
        "\"quoted\"",
        "semi;colon",
        "nul\0inside",
        "\u{202e}gnirts\u{202d}",
        "line\nbreak\r\u{1b}[31m\u{7}",
        "../../etc/passwd",
        "..",
        "/absolute/path",
        "${jndi:ldap://x}%s%n",
        "",
    ];
    let long = [b"a".repeat(249), b"b".repeat(250), b"c".repeat(40_000)];
    let no_text = [b"bad \xff\xfe\xc0\x80 text".to_vec()];
    texts.map(|text| text.as_bytes().to_vec()).into_iter().chain(long).chain(no_text).collect()
}

/// A struct of the protocol that can be drawn, complete for `version`.
trait Sample {
    fn sample(source: &mut Source, version: i16) -> Self;
}

/// Draws small numbers, and [`PLACE`] for every text.
struct Source(u64);

#[expect(clippy::unused_self, reason = "the generated half asks a source for every field")]
impl Source {
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[usize::try_from(self.0 >> 33).unwrap() % of.len()]
    }

    fn boolean(&mut self) -> bool {
        self.one_of(&[false, true])
    }

    fn int8(&mut self) -> i8 {
        self.one_of(&[0, 1, 2, 2, 4])
    }

    fn int16(&mut self) -> i16 {
        self.one_of(&[-1, 1])
    }

    fn uint16(&mut self) -> u16 {
        1
    }

    fn int32(&mut self) -> i32 {
        self.one_of(&[-1, 0, 1, 1])
    }

    fn int64(&mut self) -> i64 {
        self.one_of(&[-1, 0, 1])
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::ZERO
    }

    fn string(&mut self) -> KafkaString {
        std::str::from_utf8(PLACE).unwrap().into()
    }

    fn bytes(&mut self) -> Bytes {
        Bytes::from_static(PLACE)
    }

    fn records(&mut self) -> Records {
        batch(["x"], None).into()
    }

    fn optional<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_of(&[true, true, true, false]).then(|| draw(self))
    }

    fn array<T>(&mut self, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.one_of(&[1, 1, 1, 0])).map(|_| draw(self)).collect()
    }
}

/// Frames of one API and version, with [`PLACE`] for the name.
fn frames<R: Request + Sample>() -> Vec<Vec<Bytes>> {
    let versions = offer(R::API_KEY).map_or_else(Vec::new, |offer| offer.decoded.iter().collect());
    let drawn = |version: i16| {
        let client = std::str::from_utf8(PLACE).unwrap();
        (0..DRAWS).map(move |seed| {
            let request = R::sample(&mut Source(seed * 77 + 1), version);
            encode_request(version, 1, Some(&client.into()), &request).unwrap().to_bytes()
        })
    };
    versions.into_iter().map(|version| drawn(version).collect()).collect()
}

/// The frame with `name` in each place, and how many there were. Texts have lengths of two bytes or of one, bytes of four or of one.
fn put(frame: &[u8], name: &[u8]) -> (Vec<u8>, usize) {
    let (mut made, mut count) = (Vec::new(), 0);
    let mut rest = &frame[FRAME_PREFIX_LEN..];
    while let Some(at) = rest.windows(PLACE.len()).position(|window| window == PLACE) {
        let (before, behind) = rest.split_at(at);
        if before.last().is_some_and(|length| usize::from(*length) == PLACE.len() + 1) {
            made.extend_from_slice(&before[..at - 1]);
            let mut length = name.len() + 1;
            while length >= 0x80 {
                made.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
                length >>= 7;
            }
            made.push(u8::try_from(length).unwrap());
            made.extend_from_slice(name);
        } else if before.ends_with(&[0, 0, 0, 11]) {
            // Bytes, which may be anything.
            made.extend_from_slice(before);
            made.extend_from_slice(PLACE);
        } else {
            let name = &name[..name.len().min(32_767)];
            made.extend_from_slice(&before[..at - 2]);
            made.extend_from_slice(&i16::try_from(name.len()).unwrap().to_be_bytes());
            made.extend_from_slice(name);
        }
        count += 1;
        rest = &behind[PLACE.len()..];
    }
    made.extend_from_slice(rest);
    let mut whole = i32::try_from(made.len()).unwrap().to_be_bytes().to_vec();
    whole.extend_from_slice(&made);
    (whole, count)
}

/// Sends the frames, each on the heels of the other, and waits until the server has answered or closed.
async fn send(kafka: &str, frames: &[Vec<u8>]) {
    for frame in frames {
        let mut stream = TcpStream::connect(kafka).await.unwrap();
        stream.write_all(frame).await.unwrap();
        // Nothing more comes, so that nothing waits for it.
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(ENDS_WITHIN, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "neither answered nor closed: {:?}", &frame[..frame.len().min(200)]);
    }
}

async fn topics(node: &Node) -> BTreeSet<String> {
    let mut wire = Wire::connect(node.kafka()).await;
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let answer = wire.call(9, &all).await.unwrap();
    answer.topics.iter().map(|topic| topic.name.as_ref().unwrap().as_str().to_owned()).collect()
}

#[tokio::test]
async fn i19_nasty_names_in_every_field_of_every_api_hurt_nobody() {
    let folder = Folder::new();
    let config = setup::node(&folder)
        .flag("--connections-per-second", "100000")
        .flag("--connections-per-address-per-second", "100000")
        .allow_line("kafka connection closed");
    let mut node = config.start().await.unwrap();
    let mut apis = 0;
    let mut places = 0;
    macro_rules! each {
        ($key:ident, $module:ident, $request:ident, $response:ident) => {{
            let versions = frames::<mink_kafka_wire::messages::$module::$request>();
            apis += usize::from(!versions.is_empty());
            for drawn in versions {
                for name in names() {
                    let put: Vec<_> = drawn.iter().map(|frame| put(frame, &name)).collect();
                    places += put.iter().map(|(_, count)| count).sum::<usize>();
                    send(node.kafka(), &put.into_iter().map(|(frame, _)| frame).collect::<Vec<_>>()).await;
                }
            }
        }};
    }
    generated::with_each_api!(each);
    assert_eq!(apis, OFFERED.len(), "every API that is offered");
    println!("{apis} APIs, {places} places");
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    let faults = metrics.metric("mink_kafka_connections_closed_total{reason=\"fault\"}");
    assert_eq!(faults, Some(0.0), "{}", metrics.body);

    // A last word of each name that could be a topic's.
    let before = topics(&node).await;
    let allowed = "a".repeat(249);
    assert!(before.iter().all(|topic| *topic == allowed), "{before:?}");
    node.crash_and_restart().await.unwrap();
    assert_eq!(topics(&node).await, before, "the command log gives the same again");
    node.stop(SOON).await.unwrap();

    let log = node.process().text(Output::Stderr).unwrap();
    let raw = log.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
    assert_eq!(raw, None, "a raw control character in the log");
    let store = folder.join("data").join("objects");
    for object in setup::objects(&store) {
        let key = object.strip_prefix(&store).unwrap().to_str().expect("text").to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
        assert!(key.chars().all(plain) && !key.contains("..") && !key.contains("aaaaaaaa"), "{key}");
    }
    assert_no_name_in(&folder.join("data").join("meta.db"));
}

/// The database holds none of the names but the one that is allowed.
fn assert_no_name_in(database: &std::path::Path) {
    let bytes = std::fs::read(database).unwrap();
    assert!(!bytes.is_empty());
    for name in names() {
        if name.len() < 4 || name[0] == b'a' {
            continue;
        }
        let needle = &name[..name.len().min(200)];
        let found = bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!found, "{:?} in the command log", String::from_utf8_lossy(needle));
    }
}
