//! What every store must do, as cases that each store's own tests run.
//!
//! Lives on: tests of stores (`conformance` feature outside this crate).
//! Talks to: a store through the seam alone.
//!
//! A case panics when the store fails it, and removes the objects that it made. Real backends run it on the service
//! runtime; a simulated store in a simulation.
mod cases;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{FutureExt as _, LocalBoxFuture};
use mink_rt::Service;
use mink_types::{ObjectKey, Outcome};

use crate::store::{GetError, ObjectStore, PUT_BYTES_MAX, Payload, Span, list_all};

/// A store under test and a corner of it that nobody else uses.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// Pauses, random numbers.
    pub service: Service,
    scope: String,
}

impl Subject {
    /// The store, with a fresh corner in it.
    pub fn new(store: Arc<dyn ObjectStore>, service: Service) -> Subject {
        let scope = format!("conformance/{:016x}", service.random_u64());
        Subject { store, service, scope }
    }

    /// A key in the corner.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::parse(&format!("{}/{name}", self.scope)).expect("a case names valid keys")
    }

    /// Puts, and says so if that fails.
    async fn put(&self, key: &ObjectKey, payload: impl Into<Payload>) {
        let outcome = self.store.put(key, &payload.into()).await;
        assert_eq!(outcome, Outcome::Done(()), "put of {key}");
    }

    async fn whole(&self, key: &ObjectKey) -> Result<Bytes, GetError> {
        self.store.get(key, Span::Whole { max: PUT_BYTES_MAX }).await
    }

    /// Removes what the case left, and looks that it is gone.
    async fn clean(&self) {
        let prefix = ObjectKey::parse(&self.scope).expect("the scope is a valid key");
        let (left, more) = list_all(&*self.store, &prefix, 100_000).await.expect("the listing works");
        assert!(!more);
        let keys: Vec<ObjectKey> = left.into_iter().map(|entry| entry.key).collect();
        for (key, outcome) in self.store.delete(&keys).await {
            assert_eq!(outcome, Outcome::Done(()), "delete of {key}");
        }
        let (left, _) = list_all(&*self.store, &prefix, 1).await.expect("the listing works");
        assert_eq!(left, [], "the case's objects are gone");
    }
}

/// One thing that every store must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// The behaviour, as the name of a test.
    pub name: &'static str,
    run: fn(Subject) -> LocalBoxFuture<'static, ()>,
}

impl Case {
    /// Runs the case; panics if the store fails it.
    pub async fn run(&self, subject: Subject) {
        (self.run)(subject.clone()).await;
        subject.clean().await;
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        /// All cases.
        pub const CASES: &[Case] = &[$(Case { name: stringify!($case), run: |subject| cases::$case(subject).boxed_local() }),+];
    };
}

cases!(
    what_was_put_is_read_back,
    an_empty_object_is_an_object,
    p_1_eight_mib_in_many_parts_arrive_whole,
    a_second_put_is_refused_and_changes_nothing,
    k_2_of_sixteen_racing_creators_one_wins,
    ranges_are_exact_or_refused,
    a_read_is_bounded_by_its_caller,
    a_missing_object_is_not_found,
    k_8_a_listing_goes_on_past_a_page,
    a_listing_is_by_text_prefix_and_complete,
    a_listing_begins_after_its_cursor,
    a_chain_is_listed_by_its_prefix,
    a_delete_is_done_for_missing_keys_too,
    a_deleted_key_reads_as_missing,
    a_put_beyond_the_bound_is_refused,
    k_3_read_back_tells_ours_from_foreign_from_absent,
    create_exactly_yields_to_what_is_there,
    p_5_the_probe_finds_the_store_sound,
);

/// Runs every case on `store`; panics with the names of those that failed.
pub async fn conformance(store: Arc<dyn ObjectStore>, service: Service) {
    let mut failed = Vec::new();
    for case in CASES {
        let subject = Subject::new(Arc::clone(&store), service.clone());
        if AssertUnwindSafe(case.run(subject)).catch_unwind().await.is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "{} fails {failed:?}", store.address());
}
