//! Creating one object whatever the network does: the read-back that decides "already exists", and the loop around it.
//!
//! Lives on: service runtime.
//! Invariants: I1, I5, I7: "already exists" is never taken for "somebody else's" without looking (K-3), a conflict is never
//! taken for "exists" (K-4), every attempt sends the same bytes (P-1).
use std::time::Duration;

use bytes::Bytes;
use mink_rt::Service;
use mink_types::{Indeterminate, ObjectKey, Outcome};

use crate::store::{GetError, ObjectStore, Payload, PutRefused, Span};

/// Bytes read back to compare. With the length they identify a payload, as all that Mink stores begins with something
/// unique: a nonce, a cluster's UUID, an incarnation's counter.
const HEAD_BYTES: u64 = 64 << 10;
/// Attempts of [`create_exactly`] before it gives up undecided.
const ATTEMPTS_MAX: u32 = 10;
/// First and longest pause between attempts; in all about 20 s, longer than SeaweedFS's losers poll.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What lies under a key that is said to exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Existing {
    /// The expected bytes: an earlier attempt of ours was carried out.
    Ours,
    /// Something else: its first bytes (at most 64 KiB) and its whole length. A seal, or an alarm: the caller decides.
    Foreign { head: Bytes, len: u64 },
    /// Nothing: undecided, put again.
    Absent,
}

/// Looks under `key` and compares with `expected`: its length, and its first 64 KiB.
pub async fn decide_exists(
    store: &dyn ObjectStore,
    key: &ObjectKey,
    expected: &Payload,
) -> Result<Existing, GetError> {
    let len = match store.head(key).await {
        Ok(meta) => meta.len,
        Err(GetError::NotFound) => return Ok(Existing::Absent),
        Err(error) => return Err(error),
    };
    let head = match len.min(HEAD_BYTES) {
        0 => Bytes::new(),
        some => match store.get(key, Span::Range(0..some)).await {
            Ok(head) => head,
            Err(GetError::NotFound) => return Ok(Existing::Absent),
            Err(error) => return Err(error),
        },
    };
    if len == expected.len() && expected.starts_with(&head) {
        Ok(Existing::Ours)
    } else {
        Ok(Existing::Foreign { head, len })
    }
}

/// How [`create_exactly`] ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// The object is there with our bytes, durable.
    Ours,
    /// Somebody else's object is there.
    Foreign { head: Bytes, len: u64 },
}

/// Why [`create_exactly`] has no object to show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CreateError {
    /// Did not happen and will not by repeating it.
    #[error("could not create {key}: {refusal}")]
    Refused { key: ObjectKey, refusal: PutRefused },
    /// May have happened. Go on under this key with these bytes only.
    #[error("could not find out whether {key} was created: {last}")]
    Undecided { key: ObjectKey, last: Indeterminate },
}

/// Creates `key` with `payload` and finds out that it did: repeats what is unknown with the same bytes, reads back what
/// exists. Bounded: 10 attempts within about 20 s and the store's own time-outs.
pub async fn create_exactly(
    store: &dyn ObjectStore,
    service: &Service,
    key: &ObjectKey,
    payload: &Payload,
) -> Result<Created, CreateError> {
    let mut pause = PAUSE_FIRST;
    let mut last = Indeterminate::new("not tried");
    // Once an attempt's outcome was unknown it may still be carried out late, whatever later attempts are told.
    let mut may_have_happened = false;
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            service.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        last = match store.put(key, payload).await {
            Outcome::Done(()) => return Ok(Created::Ours),
            Outcome::Refused(refusal @ (PutRefused::Exists | PutRefused::Conflict)) => {
                match decide_exists(store, key, payload).await {
                    Ok(Existing::Ours) => return Ok(Created::Ours),
                    Ok(Existing::Foreign { head, len }) => return Ok(Created::Foreign { head, len }),
                    Ok(Existing::Absent) => Indeterminate::new(format!("{refusal}, yet nothing was found")),
                    Err(error) => Indeterminate::new(format!("{refusal}, and reading back: {error}")),
                }
            }
            Outcome::Refused(refusal @ PutRefused::Full { .. }) => Indeterminate::new(refusal.to_string()),
            Outcome::Refused(refusal) if !may_have_happened => {
                return Err(CreateError::Refused { key: key.clone(), refusal });
            }
            Outcome::Refused(refusal) => Indeterminate::new(refusal.to_string()),
            Outcome::Unknown(unknown) => {
                may_have_happened = true;
                unknown
            }
        };
    }
    Err(CreateError::Undecided { key: key.clone(), last })
}
