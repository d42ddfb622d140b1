//! The create-only probe: does the store let exactly one of many racing creators win?
//!
//! Lives on: service runtime, once per store and cluster, and in `mink doctor`.
//! Owns: its own keys, `<cluster>/probe/...`, which it removes.
//! Invariants: I5 rests on what it finds: a store with two winners, or whose losers are told nothing, is `Lies` (P-5, K-2).
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use mink_rt::Service;
use mink_types::{ClusterName, ObjectKey, Outcome};

use crate::store::{GetError, ObjectStore, Payload, PutRefused, Span};

/// Creators that race for one key.
pub(crate) const CREATORS: usize = 16;
/// Keys that are raced for, one after the other.
pub(crate) const ROUNDS: u32 = 4;
/// Attempts of one creator whose outcome is a conflict or unknown.
const ATTEMPTS_MAX: u32 = 8;
/// First and longest pause between them; in all about 10 s.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Length of the raced-for objects: more than a packet, so that bodies are in flight at the same time.
const CONTENT_BYTES: usize = 4_096;

/// What the probe found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeVerdict {
    /// Every race had one winner, whose bytes are what every endpoint shows.
    Sound,
    /// The store does not keep create-only puts apart. It must not carry a cluster.
    Lies { detail: String },
    /// No verdict: the store refused or did not answer. Try again once the reason is gone.
    Undecided { detail: String },
}

/// How one creator's race ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// The store said that this creator made the object.
    Won,
    /// The object was there already, and no attempt of this creator was left open.
    Lost,
    /// The object was there already, after an attempt whose outcome is not known: it may be this creator's.
    LostAfterUnknown,
}

/// Races for fresh keys over `stores`, which are endpoints of one store (K-2), and removes them. `tag` must be new for
/// each probe. Takes about a second; half a minute at worst on a store that does not decide.
pub async fn probe(
    stores: &[Arc<dyn ObjectStore>],
    service: &Service,
    cluster: &ClusterName,
    tag: u64,
) -> ProbeVerdict {
    let Some(first) = stores.first() else {
        return ProbeVerdict::Undecided { detail: "no endpoint was given".into() };
    };
    let keys: Vec<ObjectKey> = (0..ROUNDS).map(|round| ObjectKey::probe(cluster, tag, round)).collect();
    let mut verdict = ProbeVerdict::Sound;
    for key in &keys {
        verdict = match race(stores, service, key).await {
            Ok(()) => ProbeVerdict::Sound,
            Err(other) => other,
        };
        if verdict != ProbeVerdict::Sound {
            break;
        }
    }
    for (key, outcome) in first.delete(&keys).await {
        if !outcome.is_done() {
            tracing::warn!(%key, ?outcome, "a probe's object was not removed");
        }
    }
    verdict
}

async fn race(
    stores: &[Arc<dyn ObjectStore>],
    service: &Service,
    key: &ObjectKey,
) -> Result<(), ProbeVerdict> {
    let creators = stores.iter().cycle().take(CREATORS).enumerate();
    let ends = join_all(creators.map(|(creator, store)| create(store.as_ref(), service, key, creator))).await;
    let told = ends.into_iter().collect::<Result<Vec<Told>, ProbeVerdict>>()?;
    let winners: Vec<usize> =
        (0..CREATORS).filter(|creator| told.get(*creator) == Some(&Told::Won)).collect();
    if winners.len() > 1 {
        return Err(lies(format!(
            "{} of {CREATORS} creators of {key} were told that they made it",
            winners.len()
        )));
    }
    for store in stores {
        let holder = holder(store.as_ref(), service, key).await?;
        let at = store.address();
        match (holder, winners.first()) {
            (None, _) => return Err(lies(format!("{key} is said to exist, but {at} does not find it"))),
            (Some(holder), Some(winner)) if holder == *winner => {}
            (Some(holder), None) if told.get(holder) == Some(&Told::LostAfterUnknown) => {}
            (Some(holder), _) => {
                return Err(lies(format!(
                    "{key} at {at} has the bytes of creator {holder}, who was told otherwise"
                )));
            }
        }
    }
    Ok(())
}

fn lies(detail: String) -> ProbeVerdict {
    ProbeVerdict::Lies { detail }
}

async fn create(
    store: &dyn ObjectStore,
    service: &Service,
    key: &ObjectKey,
    creator: usize,
) -> Result<Told, ProbeVerdict> {
    let payload = Payload::from(content(key, creator));
    let mut pause = PAUSE_FIRST;
    let mut unknown = false;
    let mut last = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            service.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        match store.put(key, &payload).await {
            Outcome::Done(()) => return Ok(Told::Won),
            Outcome::Refused(PutRefused::Exists) if unknown => return Ok(Told::LostAfterUnknown),
            Outcome::Refused(PutRefused::Exists) => return Ok(Told::Lost),
            // Some stores answer 409 where others say 412: it is decided once the object shows (decision 0003).
            Outcome::Refused(PutRefused::Conflict) => match store.head(key).await {
                Ok(_) if unknown => return Ok(Told::LostAfterUnknown),
                Ok(_) => return Ok(Told::Lost),
                Err(error) => last = format!("conflict, then {error}"),
            },
            Outcome::Refused(refusal) => {
                return Err(ProbeVerdict::Undecided { detail: format!("{}: {refusal}", store.address()) });
            }
            Outcome::Unknown(reason) => {
                unknown = true;
                last = reason.to_string();
            }
        }
    }
    Err(ProbeVerdict::Undecided {
        detail: format!("{}: {ATTEMPTS_MAX} attempts, the last: {last}", store.address()),
    })
}

/// Whose bytes lie under the key; `None` if nothing does.
async fn holder(
    store: &dyn ObjectStore,
    service: &Service,
    key: &ObjectKey,
) -> Result<Option<usize>, ProbeVerdict> {
    let mut pause = PAUSE_FIRST;
    let mut last = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            service.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        match store.get(key, Span::Whole { max: 2 * CONTENT_BYTES as u64 }).await {
            Ok(bytes) => {
                return match (0..CREATORS).find(|creator| content(key, *creator) == bytes) {
                    Some(creator) => Ok(Some(creator)),
                    None => Err(lies(format!("{key} holds {} bytes that nobody wrote", bytes.len()))),
                };
            }
            Err(GetError::NotFound) => return Ok(None),
            Err(GetError::Unavailable { reason }) => last = reason,
            Err(error) => {
                return Err(ProbeVerdict::Undecided {
                    detail: format!("{}: reading back: {error}", store.address()),
                });
            }
        }
    }
    Err(ProbeVerdict::Undecided { detail: format!("{}: reading back: {last}", store.address()) })
}

/// What a creator writes: its number and the key, over and over.
fn content(key: &ObjectKey, creator: usize) -> Bytes {
    let line = format!("creator {creator} of {key}\n");
    line.bytes().cycle().take(CONTENT_BYTES).collect()
}
