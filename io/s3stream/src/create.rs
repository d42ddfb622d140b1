//! Creating one object for certain: frozen bytes, sent until it is known whose object lies under the key.
//!
//! Lives on: service runtime, one task per object.
//! Owns: the attempts.     Talks to: the store.
//! Invariants: every attempt of a key sends the same bytes (P-1); "exists" and "conflict" alike are decided by reading
//! back, never by the status (K-3, K-4); an outcome that is not known is never taken for one (I1, I5).
//!
//! Attempts go on, at most one per `retry_pause_max`, until the outcome is known or the task is dropped: a frozen number
//! can neither be given up nor be used for anything else. Room for a hedged second PUT of a late number is here: the same
//! key and bytes, whichever ends first.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mink_object::{GetError, ObjectStore, Outcome, Payload, PutRefused, Span};
use mink_rt::Service;
use mink_types::{ObjectId, ObjectKey};

use crate::format::{HEADER_BYTES, Header, Nonce, ObjectKind, Sealer};
use crate::wal::WalConfig;

/// How a creation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Created {
    /// The object holds our bytes, durable.
    Ours,
    /// A seal lies there.
    Sealed(Sealer),
    /// Something that must not be there: another's data, damaged bytes. Stop, a person must look.
    Foreign { what: String },
}

/// An object to create.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) id: ObjectId,
    pub(crate) key: ObjectKey,
    pub(crate) payload: Payload,
    pub(crate) nonce: Nonce,
}

/// Who creates objects in one store.
#[derive(Clone, Debug)]
pub(crate) struct Creator {
    pub(crate) service: Service,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) config: Arc<WalConfig>,
    /// Attempts beyond the first, over all objects.
    pub(crate) repeats: Arc<AtomicU64>,
}

/// What a read-back found.
enum Look {
    Known(Created),
    Absent,
    Unclear(String),
}

impl Creator {
    /// Creates the object; ends only when it is known what lies under its key.
    pub(crate) async fn create(&self, object: &Frozen) -> Created {
        let mut pause = Pause::new(&self.config);
        let mut attempt = 0u64;
        loop {
            let why = match self.put_once(object).await {
                Outcome::Done(()) => return Created::Ours,
                Outcome::Refused(PutRefused::Exists | PutRefused::Conflict) => {
                    match self.look(object).await {
                        Look::Known(created) => return created,
                        Look::Absent => "said to exist or contended, yet absent".to_owned(),
                        Look::Unclear(why) => why,
                    }
                }
                Outcome::Refused(PutRefused::TooLarge { len }) => {
                    return Created::Foreign { what: format!("the store takes no object of {len} bytes") };
                }
                Outcome::Refused(refusal) => refusal.to_string(),
                Outcome::Unknown(unknown) => unknown.to_string(),
            };
            attempt += 1;
            self.repeats.fetch_add(1, Ordering::Relaxed);
            if attempt >= 4 && attempt.is_power_of_two() {
                tracing::warn!(object = %object.id, attempt, why, "object not yet created, trying again");
            }
            self.service.sleep(pause.next(self.service.random_u64())).await;
        }
    }

    async fn put_once(&self, object: &Frozen) -> Outcome<(), PutRefused> {
        let put = self.store.put(&object.key, &object.payload);
        match self.service.timeout(self.config.put_timeout, put).await {
            Ok(outcome) => outcome,
            Err(elapsed) => Outcome::unknown(elapsed.to_string()),
        }
    }

    async fn look(&self, object: &Frozen) -> Look {
        let header = self.store.get(&object.key, Span::Range(0..HEADER_BYTES as u64));
        let header = match self.service.timeout(self.config.get_timeout, header).await {
            Err(elapsed) => return Look::Unclear(format!("reading back: {elapsed}")),
            Ok(Err(GetError::NotFound)) => return Look::Absent,
            Ok(Err(error @ (GetError::Unavailable { .. } | GetError::Denied { .. }))) => {
                return Look::Unclear(format!("reading back: {error}"));
            }
            Ok(Err(error)) => return foreign(format!("damaged: {error}")),
            Ok(Ok(bytes)) => match Header::decode(&bytes) {
                Ok(header) => header,
                Err(error) => return foreign(format!("not an object of ours: {error}")),
            },
        };
        if header.nonce != object.nonce {
            return match header.kind {
                ObjectKind::Seal { by } if header.object() == object.id => Look::Known(Created::Sealed(by)),
                _ => foreign(format!("another's object, {} with another nonce", header.object())),
            };
        }
        // Ours; but a store that kept only a part of it has not made it durable (P-1).
        match self.service.timeout(self.config.get_timeout, self.store.head(&object.key)).await {
            Ok(Ok(meta)) if meta.len == object.payload.len() => Look::Known(Created::Ours),
            Ok(Ok(meta)) => foreign(format!("{} bytes stored of {} sent", meta.len, object.payload.len())),
            Ok(Err(error)) => Look::Unclear(format!("reading back: {error}")),
            Err(elapsed) => Look::Unclear(format!("reading back: {elapsed}")),
        }
    }
}

fn foreign(what: String) -> Look {
    Look::Known(Created::Foreign { what })
}

/// Doubling pauses with jitter, so that nodes that met the same outage do not come back in step.
#[derive(Debug)]
pub(crate) struct Pause {
    next: Duration,
    max: Duration,
}

impl Pause {
    pub(crate) fn new(config: &WalConfig) -> Pause {
        Pause::between(config.retry_pause_first, config.retry_pause_max)
    }

    pub(crate) fn between(first: Duration, max: Duration) -> Pause {
        Pause { next: first, max }
    }

    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let now = self.next;
        self.next = now.saturating_mul(2).min(self.max);
        let quarter = u64::try_from(now.as_nanos() / 4).unwrap_or(u64::MAX).max(1);
        now + Duration::from_nanos(random % quarter)
    }
}
