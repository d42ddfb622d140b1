//! The store in the process under each fault, on virtual time.

use super::*;
use mink_object::{ProbeVerdict, probe};
use mink_rt::{SimConfig, simulate};
use mink_types::ClusterName;

const KEY: &str = "mink/wal/0";

/// Runs `body` with a store under this plan, on virtual time.
fn with<T, F>(plan: &str, body: impl FnOnce(Arc<FaultyStore>, Service) -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let plan: Plan = plan.parse().unwrap();
    let outcome = simulate(SimConfig::seeded(1), move |runtime| async move {
        let service = runtime.service();
        let faults = Faults::new(service.clone(), plan);
        let store = FaultyStore::new(Arc::new(mink_object::MemoryStore::new()), faults);
        body(Arc::new(store), service).await
    });
    outcome.unwrap().value
}

fn key() -> ObjectKey {
    ObjectKey::parse(KEY).unwrap()
}

fn payload(bytes: &'static [u8]) -> Payload {
    Payload::from(bytes)
}

async fn stored(store: &FaultyStore) -> Option<Bytes> {
    store.inner.get(&key(), Span::Whole { max: 100 }).await.ok()
}

#[test]
fn k_3_all_four_combinations_of_the_two_coins() {
    for (plan, told_done, happened) in [
        ("get: lost", true, true),
        ("put: lost", false, true),
        ("put: undone lost", false, false),
        ("put: 500", false, true),
        ("put: undone 500", false, false),
        ("put: undone 200", true, false),
    ] {
        let (told, bytes) = with(plan, |store, _| async move {
            (store.put(&key(), &payload(b"abc")).await, stored(&store).await)
        });
        assert_eq!(told == Outcome::Done(()), told_done, "{plan}: {told:?}");
        assert!(told_done || matches!(told, Outcome::Unknown(_)), "{plan}: {told:?}");
        assert_eq!(bytes.is_some(), happened, "{plan}");
    }
}

#[test]
fn k_4_conflict_and_exists_are_told_as_they_are() {
    let told = with("put times=1: undone 409\nput: undone 412", |store, _| async move {
        [store.put(&key(), &payload(b"a")).await, store.put(&key(), &payload(b"a")).await]
    });
    assert_eq!(told, [Outcome::Refused(PutRefused::Conflict), Outcome::Refused(PutRefused::Exists)]);
}

#[test]
fn a_late_put_is_applied_after_its_time_unless_another_came_first() {
    let (before, after) = with("put: late 3s 500", |store, service| async move {
        assert!(matches!(store.put(&key(), &payload(b"late")).await, Outcome::Unknown(_)));
        service.sleep(Duration::from_millis(2_900)).await;
        let before = stored(&store).await;
        service.sleep(Duration::from_millis(200)).await;
        (before, stored(&store).await)
    });
    assert_eq!((before, after.as_deref()), (None, Some(&b"late"[..])));
    let winner = with("put times=1: late 3s lost", |store, service| async move {
        assert!(matches!(store.put(&key(), &payload(b"late")).await, Outcome::Unknown(_)));
        assert_eq!(store.put(&key(), &payload(b"other")).await, Outcome::Done(()));
        service.sleep(Duration::from_secs(4)).await;
        stored(&store).await
    });
    assert_eq!(winner.as_deref(), Some(&b"other"[..]));
}

#[test]
fn p_1_a_store_that_keeps_a_part_says_that_all_is_well() {
    for (percent, kept) in [(50, &b"abcd"[..]), (0, b"")] {
        let (told, bytes) = with(&format!("put: stored {percent}%"), |store, _| async move {
            let payload = Payload::new([Bytes::from_static(b"abc"), Bytes::from_static(b"defgh")]);
            (store.put(&key(), &payload).await, stored(&store).await)
        });
        assert_eq!((told, bytes.as_deref()), (Outcome::Done(()), Some(kept)));
    }
}

#[test]
fn reads_are_cut_short_and_lost() {
    let plan = "get times=1: cut 50%\nget times=1: short 50%\nget times=1: 503\nget times=1: 404";
    let told = with(plan, |store, _| async move {
        assert_eq!(store.put(&key(), &payload(b"abcd")).await, Outcome::Done(()));
        let mut told = Vec::new();
        for _ in 0..5 {
            told.push(store.get(&key(), Span::Range(0..4)).await);
        }
        told
    });
    assert!(matches!(told[0], Err(GetError::Unavailable { .. })), "{told:?}");
    assert_eq!(told[1], Err(GetError::WrongLength { asked: 4, got: 2 }));
    assert!(matches!(told[2], Err(GetError::Unavailable { .. })), "{told:?}");
    assert_eq!(told[3], Err(GetError::NotFound));
    assert_eq!(told[4].as_deref(), Ok(&b"abcd"[..]));
}

#[test]
fn an_outage_ends_by_itself_and_silence_takes_its_time() {
    let (told, silent) = with("any from=1s for=30s: away\nhead: silent", |store, service| async move {
        let mut told = Vec::new();
        for pause in [0, 2, 28, 2] {
            service.sleep(Duration::from_secs(pause)).await;
            told.push(store.get(&key(), Span::Whole { max: 9 }).await);
        }
        let began = service.now();
        assert!(store.head(&key()).await.is_err());
        (told, service.now().duration_since(began))
    });
    let away: Vec<_> = told.iter().map(|told| *told != Err(GetError::NotFound)).collect();
    assert_eq!(away, [false, true, true, false]);
    assert!(silent >= SILENCE, "{silent:?}");
}

#[test]
fn p_5_k_2_the_probe_finds_a_store_that_ignores_the_condition() {
    let verdicts = ["put: unconditional", "", "any 30%: delay 1ms..20ms\nput 20%: lost\nput 20%: undone 503"]
        .map(|plan| {
            with(plan, |store, service| async move {
                let cluster = ClusterName::new("mink").unwrap();
                probe(&[store as Arc<dyn ObjectStore>], &service, &cluster, 1).await
            })
        });
    assert!(matches!(verdicts[0], ProbeVerdict::Lies { .. }), "{:?}", verdicts[0]);
    assert_eq!(verdicts[1], ProbeVerdict::Sound);
    assert_eq!(verdicts[2], ProbeVerdict::Sound, "a store that is merely bad is not taken for a liar");
}

#[test]
fn the_seam_carries_out_what_a_seam_can() {
    let plan: Plan = "put times=1: lost\nput times=1: undone 503\nput times=1: undone 409".parse().unwrap();
    let outcome = simulate(SimConfig::seeded(1), move |runtime| async move {
        let faults = Faults::new(runtime.service(), plan);
        let inner = Arc::new(mink_object::MemoryStore::new());
        let store = mink_object::Counted::new(inner, Some(faults));
        let mut told = Vec::new();
        for _ in 0..4 {
            told.push(store.put(&key(), &payload(b"a")).await);
        }
        told
    });
    let told = outcome.unwrap().value;
    // Those that do not happen are asked first: 503, 409; then one that happens and is lost; then the truth: it exists.
    assert!(matches!(told[0], Outcome::Unknown(_)), "{told:?}");
    assert_eq!(told[1], Outcome::Refused(PutRefused::Conflict));
    assert!(matches!(told[2], Outcome::Unknown(_)), "{told:?}");
    assert_eq!(told[3], Outcome::Refused(PutRefused::Exists));
}
