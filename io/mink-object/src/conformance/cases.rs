//! The cases themselves, one function each.
//!
//! Lives on: tests of stores.
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use mink_types::{ClusterName, Incarnation, NodeId, ObjectId, ObjectKey, Outcome, WalChain, WalNumber};

use super::Subject;
use crate::exactly::{Created, Existing, create_exactly, decide_exists};
use crate::probe::{ProbeVerdict, probe};
use crate::store::{GetError, ListCursor, Payload, PutRefused, Span, list_all};

/// Objects of the listing case: more than one page of S3 holds (K-8).
const MANY: usize = 1_250;
/// Puts and reads in flight at once.
const AT_ONCE: usize = 16;

/// Bytes that differ from place to place.
fn pattern(len: usize, seed: u8) -> Bytes {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8)).to_le_bytes()[0] ^ seed).collect()
}

pub(super) async fn what_was_put_is_read_back(subject: Subject) {
    let key = subject.key("a/b/c");
    let parts = [Bytes::from_static(b"one "), Bytes::new(), Bytes::from_static(b"two")];
    subject.put(&key, parts.to_vec()).await;
    assert_eq!(subject.whole(&key).await, Ok(Bytes::from_static(b"one two")));
    assert_eq!(subject.store.head(&key).await.map(|meta| meta.len), Ok(7));
}

pub(super) async fn an_empty_object_is_an_object(subject: Subject) {
    let key = subject.key("empty");
    subject.put(&key, Payload::default()).await;
    assert_eq!(subject.whole(&key).await, Ok(Bytes::new()));
    assert_eq!(subject.store.head(&key).await.map(|meta| meta.len), Ok(0));
    assert_eq!(subject.store.put(&key, &Payload::default()).await, Outcome::Refused(PutRefused::Exists));
}

pub(super) async fn p_1_eight_mib_in_many_parts_arrive_whole(subject: Subject) {
    let key = subject.key("large");
    let whole = pattern(8 << 20, 7);
    // Parts of all sizes, more of them than one system call takes.
    let mut parts = Vec::new();
    let mut rest = whole.clone();
    while !rest.is_empty() {
        let size = (1 + (parts.len() * 37) % 5_000).min(rest.len());
        parts.push(rest.split_to(size));
    }
    assert!(parts.len() > 2_000);
    subject.put(&key, parts).await;
    assert!(subject.whole(&key).await == Ok(whole.clone()), "the bytes differ");
    let middle = subject.store.get(&key, Span::Range(4_000_000..4_000_100)).await;
    assert_eq!(middle, Ok(whole.slice(4_000_000..4_000_100)));
}

pub(super) async fn a_second_put_is_refused_and_changes_nothing(subject: Subject) {
    let key = subject.key("once");
    subject.put(&key, &b"first"[..]).await;
    for other in [&b"first"[..], b"other", b"a longer one"] {
        let outcome = subject.store.put(&key, &Payload::from(other)).await;
        assert_eq!(outcome, Outcome::Refused(PutRefused::Exists));
    }
    assert_eq!(subject.whole(&key).await, Ok(Bytes::from_static(b"first")));
}

pub(super) async fn k_2_of_sixteen_racing_creators_one_wins(subject: Subject) {
    for round in 0..4_u8 {
        let key = subject.key(&format!("race-{round}"));
        let contents: Vec<Bytes> = (0..16).map(|creator| pattern(2_000, creator)).collect();
        let payloads: Vec<Payload> = contents.iter().cloned().map(Payload::from).collect();
        let outcomes = join_all(payloads.iter().map(|payload| subject.store.put(&key, payload))).await;
        let winners: Vec<usize> =
            outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_done()).map(|(at, _)| at).collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        let loser_is_told = |outcome: &Outcome<(), PutRefused>| {
            matches!(outcome, Outcome::Done(()) | Outcome::Refused(PutRefused::Exists | PutRefused::Conflict))
        };
        assert!(outcomes.iter().all(loser_is_told), "{outcomes:?}");
        let winner = winners.first().and_then(|at| contents.get(*at)).expect("one has won");
        assert_eq!(subject.whole(&key).await.as_ref(), Ok(winner));
    }
}

pub(super) async fn ranges_are_exact_or_refused(subject: Subject) {
    let key = subject.key("ranged");
    let whole = pattern(1_000, 3);
    subject.put(&key, whole.clone()).await;
    for range in [0..1, 0..1_000, 999..1_000, 17..18, 100..900] {
        let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
        let want = whole.slice(start.expect("small")..end.expect("small"));
        assert_eq!(subject.store.get(&key, Span::Range(range)).await, Ok(want));
    }
    for asked in [0..1_001, 999..1_001, 1_000..1_001, 5_000..6_000, 10..10] {
        let read = subject.store.get(&key, Span::Range(asked.clone())).await;
        assert_eq!(read, Err(GetError::Range { asked }));
    }
}

pub(super) async fn a_read_is_bounded_by_its_caller(subject: Subject) {
    let key = subject.key("bounded");
    subject.put(&key, pattern(1_000, 9)).await;
    let read = subject.store.get(&key, Span::Whole { max: 999 }).await;
    assert_eq!(read, Err(GetError::TooLarge { len: 1_000, max: 999 }));
    let read = subject.store.get(&key, Span::Whole { max: 1_000 }).await;
    assert_eq!(read.map(|bytes| bytes.len()), Ok(1_000));
}

pub(super) async fn a_missing_object_is_not_found(subject: Subject) {
    for name in ["none", "no/such/folder/none"] {
        let key = subject.key(name);
        assert_eq!(subject.whole(&key).await, Err(GetError::NotFound));
        assert_eq!(subject.store.get(&key, Span::Range(0..1)).await, Err(GetError::NotFound));
        assert_eq!(subject.store.head(&key).await, Err(GetError::NotFound));
    }
    let (found, more) = list_all(&*subject.store, &subject.key("none"), 10).await.expect("the listing works");
    assert_eq!((found, more), (Vec::new(), false));
}

pub(super) async fn k_8_a_listing_goes_on_past_a_page(subject: Subject) {
    let keys: Vec<ObjectKey> =
        (0..MANY).map(|n| subject.key(&format!("many/{:02x}/{n:020}", n % 7))).collect();
    let put = |key: ObjectKey| {
        let subject = subject.clone();
        async move { subject.put(&key, &b"x"[..]).await }
    };
    stream::iter(keys.clone()).for_each_concurrent(AT_ONCE, put).await;
    let want: BTreeSet<ObjectKey> = keys.iter().cloned().collect();
    for page in [usize::MAX, 100, 333] {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let got = subject.store.list(&subject.key("many"), cursor.as_ref(), page).await.expect("a page");
            assert!(got.entries.len() <= page.min(1_000), "a page has {} keys", got.entries.len());
            found.extend(got.entries.into_iter().map(|entry| entry.key));
            match got.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(found.len(), want.len(), "pages of {page}: each key once");
        assert_eq!(BTreeSet::from_iter(found), want, "pages of {page}");
    }
    let (some, more) =
        list_all(&*subject.store, &subject.key("many"), 1_100).await.expect("the listing works");
    assert_eq!((some.len(), more), (1_100, true));
    for (key, outcome) in subject.store.delete(&keys).await {
        assert_eq!(outcome, Outcome::Done(()), "delete of {key}");
    }
}

/// The names under `prefix`, one key a page, so that every cursor is used.
async fn names(subject: &Subject, prefix: &str, mut cursor: Option<ListCursor>) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = subject.store.list(&subject.key(prefix), cursor.as_ref(), 1).await.expect("a page");
        let name = |key: &ObjectKey| key.as_str().replacen(&format!("{}/", subject.scope), "", 1);
        found.extend(page.entries.iter().map(|entry| name(&entry.key)));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

pub(super) async fn a_listing_is_by_text_prefix_and_complete(subject: Subject) {
    // '-' and '.' sort before '/', '0' after it: a tree walked folder by folder gets the order wrong, which is allowed,
    // but must not lose or repeat a key over pages.
    let sorted = ["p-1", "p.d/x", "p/b", "p/c/d/e", "p/c0", "p0", "pq/z"];
    for name in sorted.iter().rev() {
        subject.put(&subject.key(name), &b"abc"[..]).await;
    }
    for (prefix, want) in
        [("p", &sorted[..]), ("p/c", &["p/c/d/e", "p/c0"]), ("p.", &["p.d/x"]), ("p/c/d/e", &["p/c/d/e"])]
    {
        let mut found = names(&subject, prefix, None).await;
        found.sort();
        assert_eq!(found, want, "prefix {prefix}");
    }
    let page = subject.store.list(&subject.key("p"), None, 100).await.expect("a page");
    assert!(page.entries.iter().all(|entry| entry.len == 3));
    assert!(page.entries.is_sorted_by(|a, b| a.key < b.key), "{page:?}");
    assert_eq!((page.next, page.foreign), (None, 0));
}

pub(super) async fn a_listing_begins_after_its_cursor(subject: Subject) {
    for name in ["q/01", "q/02", "q/03", "q/10"] {
        subject.put(&subject.key(name), &b"abc"[..]).await;
    }
    for (after, want) in [
        ("q/01", &["q/02", "q/03", "q/10"][..]),
        ("q/00", &["q/01", "q/02", "q/03", "q/10"]),
        ("q/04", &["q/10"]),
        ("q/10", &[]),
    ] {
        let found = names(&subject, "q", Some(ListCursor::after(&subject.key(after)))).await;
        assert_eq!(found, want, "after {after}");
    }
}

pub(super) async fn a_chain_is_listed_by_its_prefix(subject: Subject) {
    let cluster = ClusterName::new("conformance").expect("a valid name");
    let chain = WalChain { node: NodeId(1), incarnation: Incarnation(7), tag: subject.service.random_u64() };
    let prefix = ObjectKey::wal_prefix(&cluster, chain);
    let object = |number| ObjectKey::object(&cluster, ObjectId::Wal { chain, number: WalNumber(number) });
    let keys: Vec<ObjectKey> = [1, 2, 9, 10, 100].map(object).to_vec();
    for key in &keys {
        subject.put(key, &b"abc"[..]).await;
    }
    let (found, more) = list_all(&*subject.store, &prefix, 100).await.expect("the listing works");
    assert_eq!(found.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), keys);
    assert!(!more);
    let page = subject.store.list(&prefix, Some(&ListCursor::after(&object(9))), 1).await.expect("a page");
    assert_eq!(page.entries.first().map(|entry| &entry.key), Some(&object(10)));
    // A prefix names no object.
    assert!(matches!(subject.store.put(&prefix, &Payload::default()).await, Outcome::Refused(_)));
    assert_eq!(subject.store.head(&prefix).await, Err(GetError::NotFound));
    for (key, outcome) in subject.store.delete(&keys).await {
        assert_eq!(outcome, Outcome::Done(()), "delete of {key}");
    }
}

pub(super) async fn a_delete_is_done_for_missing_keys_too(subject: Subject) {
    let keys: Vec<ObjectKey> = ["d/1", "none", "d/2", "no/such/none"].map(|name| subject.key(name)).to_vec();
    subject.put(&subject.key("d/1"), &b"1"[..]).await;
    subject.put(&subject.key("d/2"), &b"2"[..]).await;
    subject.put(&subject.key("d/3"), &b"3"[..]).await;
    for _ in 0..2 {
        let told = subject.store.delete(&keys).await;
        assert_eq!(told, keys.iter().map(|key| (key.clone(), Outcome::Done(()))).collect::<Vec<_>>());
    }
    assert_eq!(names(&subject, "d", None).await, ["d/3"]);
    assert_eq!(subject.store.delete(&[]).await, []);
}

pub(super) async fn a_deleted_key_reads_as_missing(subject: Subject) {
    let key = subject.key("gone");
    subject.put(&key, &b"1"[..]).await;
    assert_eq!(subject.store.delete(std::slice::from_ref(&key)).await, [(key.clone(), Outcome::Done(()))]);
    assert_eq!(subject.whole(&key).await, Err(GetError::NotFound));
    assert_eq!(subject.store.head(&key).await, Err(GetError::NotFound));
}

pub(super) async fn a_put_beyond_the_bound_is_refused(subject: Subject) {
    let part = Bytes::from(vec![0_u8; 1 << 20]);
    let payload = Payload::new(std::iter::repeat_n(part, 65));
    let key = subject.key("too-large");
    let outcome = subject.store.put(&key, &payload).await;
    assert_eq!(outcome, Outcome::Refused(PutRefused::TooLarge { len: 65 << 20 }));
    assert_eq!(subject.store.head(&key).await, Err(GetError::NotFound));
}

pub(super) async fn k_3_read_back_tells_ours_from_foreign_from_absent(subject: Subject) {
    let (key, ours) = (subject.key("decided"), Payload::from(pattern(100_000, 1)));
    assert_eq!(decide_exists(&*subject.store, &key, &ours).await, Ok(Existing::Absent));
    subject.put(&key, ours.clone()).await;
    assert_eq!(decide_exists(&*subject.store, &key, &ours).await, Ok(Existing::Ours));
    let head = pattern(100_000, 1).slice(..64 << 10);
    let foreign = Existing::Foreign { head, len: 100_000 };
    for other in [pattern(100_000, 2), pattern(99_999, 1), pattern(100_001, 1), Bytes::new()] {
        assert_eq!(decide_exists(&*subject.store, &key, &other.into()).await, Ok(foreign.clone()));
    }
}

pub(super) async fn create_exactly_yields_to_what_is_there(subject: Subject) {
    let key = subject.key("exactly");
    let create = |content: &'static [u8]| {
        let (subject, key) = (subject.clone(), key.clone());
        async move { create_exactly(&*subject.store, &subject.service, &key, &Payload::from(content)).await }
    };
    assert_eq!(create(b"mine").await, Ok(Created::Ours));
    assert_eq!(create(b"mine").await, Ok(Created::Ours));
    let there = Created::Foreign { head: Bytes::from_static(b"mine"), len: 4 };
    assert_eq!(create(b"another's").await, Ok(there));
}

pub(super) async fn p_5_the_probe_finds_the_store_sound(subject: Subject) {
    let cluster = ClusterName::new("conformance").expect("a valid name");
    let tag = subject.service.random_u64();
    let stores = [Arc::clone(&subject.store), Arc::clone(&subject.store)];
    assert_eq!(probe(&stores, &subject.service, &cluster, tag).await, ProbeVerdict::Sound);
    let left = list_all(&*subject.store, &ObjectKey::probe(&cluster, tag, 0), 10).await;
    assert_eq!(left, Ok((Vec::new(), false)), "the probe cleans up");
}
