//! Creating one object for certain: frozen bytes, sent until it is known whose object lies under the key.
//!
//! Lives on: service runtime, one task per object.
//! Owns: the attempts.     Talks to: the store.
//! Invariants: every attempt of a key sends the same bytes (P-1); "exists" and "conflict" alike are decided by reading
//! back, never by the status (K-3, K-4); an outcome that is not known is never taken for one (I1, I5).
//!
//! Attempts go on, at most one per `retry_pause_max`, until the outcome is known or the task is dropped: a frozen number
//! can neither be given up nor be used for anything else. An attempt is one PUT, or two when the first is late
//! ([`Hedges`]): the same key and bytes, and whichever creates the object decides. The one that is still under way then is
//! dropped, which ends its connection; should the store apply it nevertheless, it meets the object or, once that is trimmed,
//! leaves an orphan below the trim that goes with the chain. Where PUTs have a budget ([`PutBudget`]), a repeat waits until
//! it is paid, and a hedge that cannot be paid is not sent.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{FusedStream, FuturesUnordered, StreamExt as _};
use mink_object::{GetError, ObjectStore, Outcome, Payload, PutRefused, Span};
use mink_rt::{Service, mutant};
use mink_types::{ObjectId, ObjectKey};

use crate::format::{HEADER_BYTES, Header, Nonce, ObjectKind, Sealer};
use crate::hedge::Hedges;
use crate::wal::WalConfig;
use crate::wal::budget::PutBudget;

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
    /// Who says when a PUT is late; none where nobody waits for it.
    pub(crate) hedges: Option<Arc<Hedges>>,
    /// What pays for hedges and repeats; none where PUTs have no budget.
    pub(crate) budget: Option<Arc<PutBudget>>,
}

/// What a read-back found.
enum Look {
    Known(Created),
    Absent,
    Unclear(String),
}

impl Creator {
    /// A creator that does not hedge and has no budget.
    pub(crate) fn new(service: Service, store: Arc<dyn ObjectStore>, config: Arc<WalConfig>) -> Creator {
        Creator { service, store, config, repeats: Arc::default(), hedges: None, budget: None }
    }

    /// Creates the object; ends only when it is known what lies under its key.
    pub(crate) async fn create(&self, object: &Frozen) -> Created {
        let mut pause = Pause::new(&self.config);
        let mut attempt = 0u64;
        loop {
            let why = match self.attempt(object).await {
                Look::Known(created) => return created,
                Look::Absent => "said to exist or contended, yet absent".to_owned(),
                Look::Unclear(why) => why,
            };
            attempt += 1;
            self.repeats.fetch_add(1, Ordering::Relaxed);
            if attempt >= 4 && attempt.is_power_of_two() {
                tracing::warn!(object = %object.id, attempt, why, "object not yet created, trying again");
            }
            self.service.sleep(pause.next(self.service.random_u64())).await;
            if let Some(budget) = &self.budget {
                let paid_at = budget.repeat_at(self.service.now());
                self.service.sleep_until(paid_at).await;
            }
        }
    }

    /// Whether a late PUT is sent a second time.
    fn may_hedge(&self) -> bool {
        let pay = || self.budget.as_ref().is_none_or(|budget| budget.hedge(self.service.now()));
        self.hedges.as_ref().is_some_and(|hedges| hedges.take(pay))
    }

    /// One PUT, and a second one if the first is late. Ends when it is known what lies there, or when neither of them tells.
    async fn attempt(&self, object: &Frozen) -> Look {
        let late_after = self.hedges.as_ref().and_then(|hedges| hedges.late_after(object.payload.len()));
        let mut late = std::pin::pin!(
            async {
                match late_after {
                    Some(after) => self.service.sleep(after).await,
                    None => std::future::pending().await,
                }
            }
            .fuse()
        );
        let mut puts = FuturesUnordered::new();
        puts.push(self.put(object, false));
        let mut last = Look::Absent;
        loop {
            futures::select_biased! {
                answer = puts.next() => match answer {
                    None => return last,
                    Some(answer) => match self.judge(object, answer, &mut puts).await {
                        Look::Known(created) => return Look::Known(created),
                        // The other PUT may know more.
                        unknown if !puts.is_empty() => last = unknown,
                        unknown => return unknown,
                    },
                },
                () = late => {
                    if self.may_hedge() {
                        puts.push(self.put(object, true));
                    }
                }
            }
        }
    }

    /// What an answer says. "Exists" and "conflict" say nothing by themselves: it is read back, unless another PUT of the same
    /// object is answered first with success.
    async fn judge(
        &self,
        object: &Frozen,
        answer: Outcome<(), PutRefused>,
        others: &mut (impl FusedStream<Item = Outcome<(), PutRefused>> + Unpin),
    ) -> Look {
        match answer {
            Outcome::Done(()) => return Look::Known(Created::Ours),
            Outcome::Refused(PutRefused::Exists | PutRefused::Conflict) => {}
            Outcome::Refused(PutRefused::TooLarge { len }) => {
                return foreign(format!("the store takes no object of {len} bytes"));
            }
            Outcome::Refused(refusal) => return Look::Unclear(refusal.to_string()),
            Outcome::Unknown(unknown) => return Look::Unclear(unknown.to_string()),
        }
        let mut look = std::pin::pin!(self.look(object).fuse());
        loop {
            futures::select_biased! {
                found = look => return found,
                other = others.select_next_some() => {
                    if other.is_done() {
                        return Look::Known(Created::Ours);
                    }
                    // Whatever it says, the read-back knows better.
                }
            }
        }
    }

    async fn put(&self, object: &Frozen, hedge: bool) -> Outcome<(), PutRefused> {
        let begun = self.service.now();
        let regroups = mutant("retry-regroups") && self.repeats.load(Ordering::Relaxed) > 0;
        let other = regroups.then(|| Payload::new(object.payload.parts().iter().skip(1).cloned()));
        let put = self.store.put(&object.key, other.as_ref().unwrap_or(&object.payload));
        match self.service.timeout(self.config.put_timeout, put).await {
            Ok(outcome) => {
                if let (true, Some(hedges)) = (outcome.is_done(), &self.hedges) {
                    hedges.done(object.payload.len(), self.service.now() - begun, hedge);
                }
                outcome
            }
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
        if mutant("nonce-unchecked") {
            return Look::Known(Created::Ours);
        }
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
