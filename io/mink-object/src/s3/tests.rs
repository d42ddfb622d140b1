//! What an HTTP endpoint may answer, byte by byte, from a server that plays a script.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mink_types::Outcome;
use object_store::aws::AmazonS3Builder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{S3Options, S3Store};
use crate::tests::key;
use crate::{DeleteRefused, GetError, ObjectStore, Op, Payload, PutRefused, RequestOutcome, Span};

/// One request as it came.
#[derive(Clone, Debug)]
struct Seen {
    head: String,
    body: Vec<u8>,
}

/// Raw answers; nothing stands for a connection that closes without one.
type Script = Vec<String>;

/// A server that answers each request with the next line of the script.
async fn server(script: Script) -> (S3Store, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut script = script.into_iter();
        while let Ok((mut socket, _)) = listener.accept().await {
            while let Some(request) = read_request(&mut socket).await {
                log.lock().unwrap().push(request);
                match script.next().filter(|answer| !answer.is_empty()) {
                    Some(answer) => socket.write_all(answer.as_bytes()).await.expect("the client reads"),
                    None => break,
                }
            }
        }
    });
    let options = S3Options {
        endpoint: Some(endpoint),
        request_timeout: Some(Duration::from_secs(5)),
        anonymous: true,
        faults: None,
    };
    (S3Store::open("bucket", "some/prefix/", &options).expect("the store opens"), seen)
}

async fn read_request(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let field = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = field.map_or(0, |length| length.trim().parse().expect("a length"));
            let mut body = bytes.split_off(end + 4);
            while body.len() < length {
                (socket.read_buf(&mut body).await.ok()? > 0).then_some(())?;
            }
            return Some(Seen { head, body });
        }
        (socket.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    }
}

fn answer(status: u16, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Word\r\ncontent-length: {length}\r\n{fields}\r\n{body}")
}

const ETAG: &str = "etag: \"1\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

fn payload() -> Payload {
    Payload::new([&b"a"[..], b"bc", b"def"].map(Bytes::from_static))
}

#[tokio::test]
async fn k_4_the_true_status_decides() {
    let statuses = [200, 412, 409, 403, 503, 500, 400, 501, 507, 304];
    let (store, seen) = server(statuses.iter().map(|status| answer(*status, ETAG, "")).collect()).await;
    let mut told = Vec::new();
    for _ in statuses {
        told.push(match store.put(&key("k"), &payload()).await {
            Outcome::Done(()) => "done",
            Outcome::Refused(PutRefused::Exists) => "exists",
            Outcome::Refused(PutRefused::Conflict) => "conflict",
            Outcome::Refused(PutRefused::Denied { .. }) => "denied",
            Outcome::Refused(PutRefused::Full { .. }) => "full",
            Outcome::Refused(_) => "refused",
            Outcome::Unknown(_) => "unknown",
        });
    }
    let want = [
        "done", "exists", "conflict", "denied", "unknown", "unknown", "refused", "refused", "full", "exists",
    ];
    assert_eq!(told, want);
    let stats = store.stats();
    assert_eq!(stats.requests_of(Op::Put), statuses.len() as u64, "nothing is repeated behind our back");
    assert_eq!(stats.requests(Op::Put, RequestOutcome::Throttled), 1);
    assert_eq!(stats.requests(Op::Put, RequestOutcome::Conflict), 1);
    assert_eq!(stats.bytes(Op::Put), 6 * statuses.len() as u64);
    for request in seen.lock().unwrap().iter() {
        assert!(request.head.starts_with("put /bucket/some/prefix/k http/1.1"), "{}", request.head);
        assert!(request.head.contains("if-none-match: *"), "{}", request.head);
    }
}

#[tokio::test]
async fn p_1_each_attempt_sends_the_whole_payload() {
    let (store, seen) = server(vec![answer(500, "", ""), String::new(), answer(200, ETAG, "")]).await;
    assert!(matches!(store.put(&key("k"), &payload()).await, Outcome::Unknown(_)));
    assert!(matches!(store.put(&key("k"), &payload()).await, Outcome::Unknown(_)), "the answer was lost");
    assert_eq!(store.put(&key("k"), &payload()).await, Outcome::Done(()));
    let bodies: Vec<Vec<u8>> = seen.lock().unwrap().iter().map(|request| request.body.clone()).collect();
    assert_eq!(bodies, [b"abcdef", b"abcdef", b"abcdef"]);
    assert_eq!(store.stats().requests(Op::Put, RequestOutcome::Lost), 1);
}

/// A multipart upload has no create condition and may be left half done, and what is left of it costs money until somebody lists and
/// aborts it. There is none: even the largest object is one PUT.
#[tokio::test]
async fn i14_the_largest_object_is_one_put_so_no_upload_can_be_abandoned() {
    let (store, seen) = server(vec![answer(200, ETAG, "")]).await;
    let bytes = usize::try_from(crate::PUT_BYTES_MAX).expect("fits");
    let outcome = store.put(&key("k"), &Payload::new([Bytes::from(vec![7; bytes])])).await;
    assert_eq!(outcome, Outcome::Done(()));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|request| request.body.len()).collect::<Vec<_>>(), [bytes]);
    assert!(seen[0].head.starts_with("put /bucket/some/prefix/k http/1.1"), "{}", seen[0].head);
}

#[tokio::test]
async fn i1_a_good_status_without_an_etag_is_done() {
    let (store, _) = server(vec![answer(200, "", "")]).await;
    assert_eq!(store.put(&key("k"), &payload()).await, Outcome::Done(()));
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = Some(format!("http://{}", listener.local_addr().expect("its address")));
    drop(listener);
    let options = S3Options { endpoint, anonymous: true, ..S3Options::default() };
    let store = S3Store::open("bucket", "", &options).expect("the store opens");
    assert!(matches!(store.put(&key("k"), &payload()).await, Outcome::Unknown(_)));
    assert!(matches!(store.head(&key("k")).await, Err(GetError::Unavailable { .. })));
    let deleted = store.delete(&[key("a"), key("b")]).await;
    assert!(deleted.iter().all(|(_, outcome)| matches!(outcome, Outcome::Unknown(_))), "{deleted:?}");
    assert_eq!(deleted.len(), 2);
}

#[tokio::test]
async fn p_1_a_read_of_another_length_is_an_error() {
    let part =
        |range: &str, body: &str| answer(206, &format!("{ETAG}content-range: bytes {range}\r\n"), body);
    let script = vec![
        part("2-5/9", "cdef"),
        // Half of the range, told honestly.
        part("2-3/4", "cd"),
        // Half of the range under the header of the whole one.
        part("2-5/9", "cd"),
        // More than was asked for.
        part("2-5/9", "cdefgh"),
        // The whole object instead of a range.
        answer(200, ETAG, "abcdefghi"),
        answer(416, "", ""),
    ];
    let count = script.len();
    let (store, _) = server(script).await;
    let mut reads = Vec::new();
    for _ in 0..count {
        reads.push(store.get(&key("k"), Span::Range(2..6)).await);
    }
    assert_eq!(reads[0], Ok(Bytes::from_static(b"cdef")));
    assert!(reads.iter().skip(1).all(Result::is_err), "{reads:?}");
    assert_eq!(reads[2], Err(GetError::WrongLength { asked: 4, got: 2 }));
    assert_eq!(reads[3], Err(GetError::WrongLength { asked: 4, got: 6 }));
    assert_eq!(reads[5], Err(GetError::Range { asked: 2..6 }));
    assert_eq!(store.stats().requests_of(Op::Get), count as u64);
}

#[tokio::test]
async fn a_missing_object_is_told_from_a_missing_bucket() {
    let words = |code: &str| answer(404, "", &format!("<Error><Code>{code}</Code></Error>"));
    let (store, _) = server(vec![words("NoSuchKey"), words("NoSuchBucket"), answer(403, "", "no")]).await;
    let object = key("k");
    let whole = || store.get(&object, Span::Whole { max: 9 });
    assert_eq!(whole().await, Err(GetError::NotFound));
    assert!(matches!(whole().await, Err(GetError::Unavailable { .. })));
    assert!(matches!(whole().await, Err(GetError::Denied { .. })));
}

#[tokio::test]
async fn a_bulk_delete_tells_of_each_key() {
    let body = "<DeleteResult><Deleted><Key>some/prefix/a</Key></Deleted>\
        <Error><Key>some/prefix/b</Key><Code>AccessDenied</Code><Message>no</Message></Error>\
        <Error><Key>some/prefix/c</Key><Code>InternalError</Code><Message>oh</Message></Error>\
        <Error><Key>some/prefix/d</Key><Code>NoSuchKey</Code><Message>gone</Message></Error></DeleteResult>";
    let foreign =
        "<DeleteResult><Error><Key>other</Key><Code>X</Code><Message>y</Message></Error></DeleteResult>";
    let (store, _) = server(vec![answer(200, "", body), answer(403, "", ""), answer(200, "", foreign)]).await;
    let keys = ["a", "b", "c", "d"].map(key);
    let told = store.delete(&keys).await;
    let outcomes: Vec<_> = told.iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes[0], &Outcome::Done(()));
    assert!(matches!(outcomes[1], Outcome::Refused(DeleteRefused::Denied { .. })), "{told:?}");
    assert!(matches!(outcomes[2], Outcome::Unknown(_)), "{told:?}");
    assert_eq!(outcomes[3], &Outcome::Done(()));
    let told = store.delete(&keys).await;
    assert!(
        told.iter().all(|(_, o)| matches!(o, Outcome::Refused(DeleteRefused::Denied { .. }))),
        "{told:?}"
    );
    let told = store.delete(&keys).await;
    assert_eq!(told.len(), 4);
    assert!(told.iter().all(|(_, outcome)| matches!(outcome, Outcome::Unknown(_))), "{told:?}");
    assert_eq!(store.stats().requests_of(Op::Delete), 3);
}

#[tokio::test]
async fn the_address_holds_no_credentials() {
    let endpoint = Some("http://user:canary@127.0.0.1:1".to_owned());
    let options = S3Options { endpoint, anonymous: true, ..S3Options::default() };
    let store = S3Store::open("bucket", "p", &options).expect("the store opens");
    assert_eq!(store.address(), "s3://bucket/p/ at http://127.0.0.1:1");
    assert!(store.needs_put_budget());
}

#[tokio::test]
async fn who_names_no_credentials_is_told_which_are_missing() {
    // Nothing listens there: a machine without a metadata service.
    let nowhere = "http://127.0.0.1:1";
    let options = S3Options {
        endpoint: Some(nowhere.into()),
        request_timeout: Some(Duration::from_secs(5)),
        ..S3Options::default()
    };
    let environment = AmazonS3Builder::new().with_metadata_endpoint(nowhere);
    let store = S3Store::build(environment, "bucket", "", &options).expect("sends nothing yet");
    let Err(GetError::Unavailable { reason }) = store.get(&key("k"), Span::Range(0..1)).await else {
        panic!("nobody answers");
    };
    let Outcome::Refused(PutRefused::Other { status: None, reason: of_put }) =
        store.put(&key("k"), &payload()).await
    else {
        panic!("the put did not leave");
    };
    let Err(GetError::Unavailable { reason: of_list }) = store.list(&key("k"), None, 1).await else {
        panic!("nobody answers");
    };
    for words in [reason, of_put, of_list] {
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"] {
            assert!(words.contains(name), "{words}");
        }
    }
    let environment = AmazonS3Builder::new().with_access_key_id("key").with_secret_access_key("secret");
    let store = S3Store::build(environment, "bucket", "", &options).expect("sends nothing yet");
    let Err(GetError::Unavailable { reason }) = store.get(&key("k"), Span::Range(0..1)).await else {
        panic!("nobody answers");
    };
    assert!(!reason.contains("AWS_ACCESS_KEY_ID"), "the store is away, the credentials are there: {reason}");
}

#[test]
fn one_half_of_the_keys_is_refused_by_the_names_that_people_set() {
    let half = AmazonS3Builder::new().with_access_key_id("key");
    let words = S3Store::build(half, "bucket", "", &S3Options::default()).expect_err("no secret");
    assert_eq!(words, "AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not set: both are needed");
    let empty = AmazonS3Builder::new().with_access_key_id("").with_secret_access_key("secret");
    let words = S3Store::build(empty, "bucket", "", &S3Options::default()).expect_err("no key");
    assert!(words.starts_with("AWS_ACCESS_KEY_ID is empty"), "{words}");
}
