//! Every store through the same suite, and the faults of the network on each of them.
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use mink_rt::{EpollRuntime, Runtime as _, Service, SimConfig, simulate};
use mink_types::{ObjectKey, Outcome};

use crate::conformance::conformance;
use crate::{
    Counted, CreateError, Created, Existing, FaultAnswer, FaultSeam, GetError, ListCursor, MemoryStore,
    ObjectStore, Op, OpenContext, OpenErrorKind, Payload, PutRefused, Request, RequestOutcome, Span,
    create_exactly, decide_exists, open,
};

pub(crate) fn service() -> Service {
    EpollRuntime::attach().expect("a test runs on a runtime").service()
}

pub(crate) fn key(text: &str) -> ObjectKey {
    ObjectKey::parse(text).expect("a valid key")
}

/// A place for one test's objects; `None` where the machine has none, which is said.
#[derive(Debug)]
pub(crate) struct Place {
    url: String,
    _dir: Option<tempfile::TempDir>,
}

pub(crate) fn memory() -> Place {
    Place { url: "memory://".into(), _dir: None }
}

fn file() -> Place {
    let dir = tempfile::tempdir().expect("a temporary directory");
    Place { url: format!("file://{}", dir.path().display()), _dir: Some(dir) }
}

/// The store of `MINK_TEST_S3_URL` (with the `AWS_*` variables that go with it).
fn s3() -> Option<Place> {
    let url = std::env::var("MINK_TEST_S3_URL").ok();
    let strict = std::env::var("MINK_TEST_STRICT").is_ok_and(|strict| strict == "1");
    assert!(url.is_some() || !strict, "MINK_TEST_S3_URL is not set");
    if url.is_none() {
        eprintln!("skipped: MINK_TEST_S3_URL is not set");
    }
    url.map(|url| Place { url, _dir: None })
}

impl Place {
    pub(crate) fn open(&self, faults: Option<Arc<dyn FaultSeam>>) -> Arc<dyn ObjectStore> {
        let context = OpenContext { faults, ..OpenContext::new(service()) };
        open(&self.url, &context).expect("the store opens")
    }
}

/// Answers the next puts as planned: `(happens, answer)`.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    puts: Mutex<VecDeque<(bool, FaultAnswer)>>,
    happened: AtomicBool,
    bytes: Mutex<Vec<u64>>,
}

impl Plan {
    pub(crate) fn of(puts: &[(bool, FaultAnswer)]) -> Arc<Plan> {
        Arc::new(Plan { puts: Mutex::new(puts.iter().copied().collect()), ..Plan::default() })
    }
}

#[async_trait]
impl FaultSeam for Plan {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        if request.op != Op::Put {
            return None;
        }
        self.bytes.lock().unwrap().push(request.bytes);
        let mut puts = self.puts.lock().unwrap();
        match puts.front() {
            Some((true, _)) => {
                self.happened.store(true, Ordering::SeqCst);
                None
            }
            Some((false, _)) => puts.pop_front().map(|(_, answer)| answer),
            None => None,
        }
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        if request.op == Op::Put && self.happened.swap(false, Ordering::SeqCst) {
            return self.puts.lock().unwrap().pop_front().map(|(_, answer)| answer);
        }
        None
    }
}

/// K-3 and P-1: the first put happens, its answer is lost; the repeat is told "exists"; reading back says "ours".
async fn lost_answer(place: Place, name: &str) {
    let plan = Plan::of(&[(true, FaultAnswer::Lost)]);
    let store = place.open(Some(Arc::clone(&plan) as Arc<dyn FaultSeam>));
    let key = key(&format!("k3/{name}-{:016x}", service().random_u64()));
    let payload = Payload::new([Bytes::from_static(b"abc"), Bytes::from_static(b"defg")]);
    assert!(matches!(store.put(&key, &payload).await, Outcome::Unknown(_)));
    assert_eq!(store.put(&key, &payload).await, Outcome::Refused(PutRefused::Exists));
    assert_eq!(decide_exists(&*store, &key, &payload).await, Ok(Existing::Ours));
    assert_eq!(*plan.bytes.lock().unwrap(), [7, 7], "each attempt sends the whole payload");
    let stats = store.stats();
    assert_eq!(stats.requests(Op::Put, RequestOutcome::Lost), 1);
    assert_eq!(stats.requests(Op::Put, RequestOutcome::Exists), 1);
    assert_eq!(stats.requests_of(Op::Put), 2);
    assert!(store.delete(&[key]).await.iter().all(|(_, outcome)| outcome.is_done()));
}

/// All four draws of the two coins, through the loop that must come out right.
async fn two_coins(place: Place, name: &str) {
    for (round, plan) in [
        &[][..],
        &[(true, FaultAnswer::Lost)],
        &[(false, FaultAnswer::Lost)],
        &[(false, FaultAnswer::Status(503)), (true, FaultAnswer::Status(500))],
        &[(false, FaultAnswer::Status(409)), (false, FaultAnswer::Status(409))],
        &[(true, FaultAnswer::Status(409))],
        &[(true, FaultAnswer::Lost), (true, FaultAnswer::Lost), (false, FaultAnswer::Status(403))],
    ]
    .into_iter()
    .enumerate()
    {
        let store = place.open(Some(Plan::of(plan)));
        let key = key(&format!("coins/{name}-{round}-{:016x}", service().random_u64()));
        let payload = Payload::from(&b"the bytes"[..]);
        let created = create_exactly(&*store, &service(), &key, &payload).await;
        assert_eq!(created, Ok(Created::Ours), "{plan:?}");
        assert_eq!(store.get(&key, Span::Whole { max: 100 }).await, Ok(payload.to_bytes()), "{plan:?}");
        assert!(store.delete(&[key]).await.iter().all(|(_, outcome)| outcome.is_done()));
    }
}

macro_rules! on_every_store {
    ($($store:ident),+) => {$(
        mod $store {
            use super::{Place, conformance, lost_answer, service, two_coins};

            fn place() -> Option<Place> {
                super::$store().into()
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn passes_conformance() {
                if let Some(place) = place() {
                    conformance(place.open(None), service()).await;
                }
            }

            #[tokio::test]
            async fn k_3_p_1_a_lost_answer_is_found_to_be_ours() {
                if let Some(place) = place() {
                    lost_answer(place, stringify!($store)).await;
                }
            }

            #[tokio::test]
            async fn k_4_two_coins_come_out_right() {
                if let Some(place) = place() {
                    two_coins(place, stringify!($store)).await;
                }
            }
        }
    )+};
}

on_every_store!(memory, file, s3);

/// Each of two contenders is told "conflict" at first: one of them must own the key in the end.
#[tokio::test]
async fn k_4_conflicts_leave_one_owner() {
    let plan = [(false, FaultAnswer::Status(409)), (false, FaultAnswer::Status(409))];
    let store = memory().open(Some(Plan::of(&plan)));
    let (service, key) = (service(), key("contended"));
    let [one, two] = [&b"one"[..], b"two"].map(Payload::from);
    let ends = futures::future::join(
        create_exactly(&*store, &service, &key, &one),
        create_exactly(&*store, &service, &key, &two),
    );
    let ends = <[_; 2]>::from(ends.await);
    let owners = ends.iter().filter(|end| **end == Ok(Created::Ours)).count();
    let losers = ends.iter().filter(|end| matches!(end, Ok(Created::Foreign { .. }))).count();
    assert_eq!((owners, losers), (1, 1), "{ends:?}");
}

/// A refusal after an attempt that may have happened is no proof that it did not.
#[test]
fn i7_create_exactly_stays_undecided_after_an_unknown_attempt() {
    let denied = (false, FaultAnswer::Status(403));
    let lost = (false, FaultAnswer::Lost);
    let ends = in_simulation(move |service| async move {
        let plan: Vec<_> = std::iter::once(lost).chain(std::iter::repeat_n(denied, 20)).collect();
        let (key, payload) = (key("k"), Payload::from(&b"x"[..]));
        let store = |plan| Counted::new(Arc::new(MemoryStore::new()), Some(Plan::of(plan)));
        let unknown_first = create_exactly(&store(&plan), &service, &key, &payload).await;
        (unknown_first, create_exactly(&store(&[denied]), &service, &key, &payload).await)
    });
    assert!(matches!(ends.0, Err(CreateError::Undecided { .. })), "{ends:?}");
    assert!(matches!(ends.1, Err(CreateError::Refused { .. })), "{ends:?}");
}

/// Runs `root` in virtual time; the second run must come out as the first.
fn in_simulation<T: Debug + 'static, F: Future<Output = T> + 'static>(
    root: impl Fn(Service) -> F + Clone,
) -> T {
    let run = || {
        let root = root.clone();
        simulate(SimConfig::seeded(7), |runtime| root(runtime.service())).expect("the simulation completes")
    };
    let (first, second) = (run(), run());
    assert_eq!(first.trace, second.trace, "the same seed gives the same run");
    first.value
}

#[test]
fn memory_passes_conformance_in_the_simulator() {
    in_simulation(|service| async move {
        conformance(Arc::new(Counted::new(Arc::new(MemoryStore::new()), None)), service).await;
    });
}

/// Our own stores list as S3 does: by the bytes of whole keys, over pages too.
#[tokio::test]
async fn memory_and_file_list_in_byte_order() {
    let sorted = ["p-1", "p.d/x", "p/b", "p/c/d/e", "p/c0", "p0", "pq/z"];
    for place in [memory(), file()] {
        let store = place.open(None);
        for name in sorted.iter().rev() {
            assert!(store.put(&key(name), &Payload::default()).await.is_done());
        }
        for limit in 1..9 {
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let page = store.list(&key("p"), cursor.as_ref(), limit).await.expect("a page");
                found.extend(page.entries.into_iter().map(|entry| entry.key.to_string()));
                let Some(next) = page.next else { break };
                cursor = Some(next);
            }
            assert_eq!(found, sorted, "{place:?}");
        }
        for (after, left) in
            [("p", 7), ("p.", 6), ("p/b", 4), ("p/c", 4), ("p/c/d", 4), ("p/c/d/e", 3), ("q", 0)]
        {
            let page =
                store.list(&key("p"), Some(&ListCursor::after(&key(after))), 100).await.expect("a page");
            assert_eq!(page.entries.len(), left, "{place:?} after {after}");
        }
    }
}

#[tokio::test]
async fn requests_and_bytes_are_counted() {
    let store = memory().open(None);
    let payload = Payload::from(&b"12345"[..]);
    assert!(store.put(&key("a"), &payload).await.is_done());
    assert_eq!(store.put(&key("a"), &payload).await, Outcome::Refused(PutRefused::Exists));
    assert_eq!(store.get(&key("a"), Span::Range(1..3)).await.map(|bytes| bytes.len()), Ok(2));
    assert_eq!(store.get(&key("b"), Span::Whole { max: 1 }).await, Err(GetError::NotFound));
    let keys: Vec<ObjectKey> = (0..1_001).map(|n| key(&format!("n/{n}"))).collect();
    assert_eq!(store.delete(&keys).await.len(), 1_001);
    let stats = store.stats();
    let rows: Vec<_> =
        stats.rows().map(|(op, outcome, count)| (op.label(), outcome.label(), count)).collect();
    let want = [
        ("put", "ok", 1),
        ("put", "exists", 1),
        ("get", "ok", 1),
        ("get", "not_found", 1),
        ("delete", "ok", 2),
    ];
    assert_eq!(rows, want);
    assert_eq!((stats.bytes(Op::Put), stats.bytes(Op::Get)), (10, 2));
    assert_eq!(stats.requests_total(), 6);
}

#[tokio::test]
async fn a_url_that_is_no_store_is_refused_with_the_remedy_and_without_secrets() {
    let context = OpenContext::new(service());
    for (url, kind, word) in [
        ("nothing", OpenErrorKind::Config, "s3://BUCKET"),
        ("gs://bucket", OpenErrorKind::Unsupported, "s3://"),
        ("az://bucket", OpenErrorKind::Unsupported, "s3://"),
        ("ftp://host/x", OpenErrorKind::Config, "file:///DIR"),
        ("file://", OpenErrorKind::Config, "file:///DIR"),
        ("memory://x", OpenErrorKind::Config, "leave out"),
        ("s3://", OpenErrorKind::Config, "s3://BUCKET"),
        ("s3://key:canary@bucket/x", OpenErrorKind::Config, "AWS_ACCESS_KEY_ID"),
        ("s3://bucket/a/../b", OpenErrorKind::Config, "prefix"),
        ("file:///proc/none/x", OpenErrorKind::Place, "permissions"),
    ] {
        let error = open(url, &context).expect_err(url);
        assert_eq!(error.kind, kind, "{url}");
        let text = error.to_string();
        assert!(text.contains(word), "{text}");
        assert!(!text.contains("canary") && !format!("{error:?}").contains("canary"), "{text}");
    }
}

#[test]
fn a_payload_compares_over_its_parts() {
    let payload = Payload::new([&b"ab"[..], b"", b"cde"].map(Bytes::from_static));
    assert_eq!((payload.len(), payload.parts().len()), (5, 2));
    for head in [&b""[..], b"a", b"ab", b"abc", b"abcde"] {
        assert!(payload.starts_with(head), "{head:?}");
    }
    for head in [&b"b"[..], b"abd", b"abcdef", b"abcdx"] {
        assert!(!payload.starts_with(head), "{head:?}");
    }
    assert!(Payload::default().starts_with(b"") && !Payload::default().starts_with(b"a"));
}
