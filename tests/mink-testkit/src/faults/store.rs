//! A plan of faults around a store in the process: as a store, and as the fault seam of one.
//! Lives on: the service runtime (in the simulator: on its one thread); time and pauses are the runtime's own.
//! Owns: the plan's coins.     Talks to: the store inside.
//! Invariants: a request that is told as failed and happens, or happens late, has the effect that it has on a real store.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mink_object::{
    DELETE_KEYS_MAX, DeleteRefused, FaultAnswer, FaultSeam, GetError, ListCursor, ListPage, ObjectKey,
    ObjectMeta, ObjectStore, Outcome, Payload, PutRefused, Request, Span, StoreHealth, StoreStats,
};
use mink_rt::{Instant, Service};

use super::{Draws, Happens, Op, Percent, Plan, Side, Tally, Told, Verdict};

/// How long a request without a word waits before it is told as lost.
const SILENCE: Duration = Duration::from_mins(10);

/// A plan under way in a process.
pub struct Faults {
    service: Service,
    phase: Mutex<Phase>,
}

struct Phase {
    draws: Draws,
    began: Instant,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({:?})", self.phase().draws.plan().to_string())
    }
}

impl Faults {
    /// Begins a plan now.
    pub fn new(service: Service, plan: Plan) -> Arc<Faults> {
        let began = service.now();
        Arc::new(Faults { service, phase: Mutex::new(Phase { draws: Draws::new(plan), began }) })
    }

    /// Begins another plan: its time and its counts start at zero.
    pub fn set(&self, plan: Plan) {
        *self.phase() = Phase { draws: Draws::new(plan), began: self.service.now() };
    }

    /// What was met since the plan began.
    pub fn tally(&self) -> Tally {
        self.phase().draws.tally()
    }

    /// Each change of a phase is one call, so a panic elsewhere leaves it whole.
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verdict on a request, whose delay has passed.
    async fn verdict(&self, op: Op, key: &str, side: Side) -> Verdict {
        let verdict = {
            let mut phase = self.phase();
            let elapsed = self.service.now().duration_since(phase.began);
            let mut verdict = phase.draws.draw(op, key, elapsed, side);
            if phase.draws.away(elapsed).0 && side != Side::After {
                (verdict.happens, verdict.told) = (Happens::No, Told::Away);
            }
            verdict
        };
        if !verdict.delay.is_zero() {
            self.service.sleep(verdict.delay).await;
        }
        verdict
    }

    /// What the caller is told instead of the truth.
    async fn answer(&self, told: Told) -> Option<FaultAnswer> {
        match told {
            Told::Truth => None,
            Told::Status(status) => Some(FaultAnswer::Status(status)),
            Told::Silence => {
                self.service.sleep(SILENCE).await;
                Some(FaultAnswer::Lost)
            }
            Told::Lost | Told::Away | Told::Cut(_) | Told::Short(_) => Some(FaultAnswer::Lost),
        }
    }
}

fn op(op: mink_object::Op) -> Op {
    match op {
        mink_object::Op::Put => Op::Put,
        mink_object::Op::Get => Op::Get,
        mink_object::Op::Head => Op::Head,
        mink_object::Op::List => Op::List,
        mink_object::Op::Delete => Op::Delete,
        mink_object::Op::Credentials => Op::Other,
    }
}

/// For a store that asks a seam (`s3://` in the process). A seam decides whether a request happens and what is told; late requests and
/// those with a part of their bytes need [`FaultyStore`]: here they do not happen.
#[async_trait]
impl FaultSeam for Faults {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let verdict = self.verdict(op(request.op), request.key, Side::Before).await;
        self.answer(verdict.told).await
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let verdict = self.verdict(op(request.op), request.key, Side::After).await;
        self.answer(verdict.told).await
    }
}

/// A store with faults. Wrap it in [`mink_object::Counted`] to count what its callers see.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    faults: Arc<Faults>,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Arc<Faults>) -> FaultyStore {
        FaultyStore { inner, faults }
    }

    /// The put as a store without conditions has it.
    async fn overwrite(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        match self.inner.put(key, payload).await {
            Outcome::Refused(PutRefused::Exists) => {
                self.inner.delete(std::slice::from_ref(key)).await;
                self.inner.put(key, payload).await
            }
            outcome => outcome,
        }
    }

    async fn delete_group(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        // A request for one key names it; one for many has them in its body, where a plan does not look.
        let named = match keys {
            [only] => only.as_str(),
            _ => "",
        };
        let verdict = self.faults.verdict(Op::Delete, named, Side::Whole).await;
        let done = match verdict.happens {
            Happens::No => None,
            Happens::Late(_) => {
                let (inner, keys) = (Arc::clone(&self.inner), keys.to_vec());
                self.late(verdict, async move { drop(inner.delete(&keys).await) });
                None
            }
            Happens::Yes | Happens::Stored(_) | Happens::Unconditional => Some(self.inner.delete(keys).await),
        };
        match (self.faults.answer(verdict.told).await, done) {
            (None, Some(done)) => done,
            (answer, _) => {
                let told = answer.unwrap_or(FaultAnswer::Lost);
                keys.iter().map(|key| (key.clone(), told.delete())).collect()
            }
        }
    }

    /// Carries out later what was told already; whether it then succeeds nobody hears, as with a packet that was long under way.
    fn late(&self, verdict: Verdict, work: impl Future<Output = ()> + Send + 'static) {
        let service = self.faults.service.clone();
        let pause = service.sleep(verdict.late_by);
        // The task ends by itself, after this one request.
        drop(service.spawn("late-request", async move {
            pause.await;
            work.await;
        }));
    }
}

/// The first part of a payload.
fn first_part(payload: &Payload, percent: Percent) -> Payload {
    let mut left = percent.of(payload.len());
    Payload::new(payload.parts().iter().map_while(|part| {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
        left -= len as u64;
        (len > 0).then(|| part.slice(..len))
    }))
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        let verdict = self.faults.verdict(Op::Put, key.as_str(), Side::Whole).await;
        let done = match verdict.happens {
            Happens::Yes => Some(self.inner.put(key, payload).await),
            Happens::Stored(percent) => Some(self.inner.put(key, &first_part(payload, percent)).await),
            Happens::Unconditional => Some(self.overwrite(key, payload).await),
            Happens::No => None,
            Happens::Late(_) => {
                let (inner, key, payload) = (Arc::clone(&self.inner), key.clone(), payload.clone());
                self.late(verdict, async move { drop(inner.put(&key, &payload).await) });
                None
            }
        };
        match (self.faults.answer(verdict.told).await, done) {
            (None, Some(done)) => done,
            (answer, _) => answer.unwrap_or(FaultAnswer::Lost).put(payload.len()),
        }
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        let verdict = self.faults.verdict(Op::Get, key.as_str(), Side::Whole).await;
        let read = self.inner.get(key, span.clone()).await;
        match (verdict.told, read) {
            (Told::Truth, read) => read,
            (Told::Short(_), Err(error)) => Err(error),
            (Told::Short(percent), Ok(bytes)) => {
                let asked = bytes.len() as u64;
                Err(GetError::WrongLength { asked, got: percent.of(asked) })
            }
            (told, _) => {
                let answer = self.faults.answer(told).await.unwrap_or(FaultAnswer::Lost);
                Err(answer.get(Some(&span)))
            }
        }
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        let verdict = self.faults.verdict(Op::Head, key.as_str(), Side::Whole).await;
        match self.faults.answer(verdict.told).await {
            Some(answer) => Err(answer.get(None)),
            None => self.inner.head(key).await,
        }
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let verdict = self.faults.verdict(Op::List, prefix.as_str(), Side::Whole).await;
        match self.faults.answer(verdict.told).await {
            Some(answer) => Err(answer.get(None)),
            None => self.inner.list(prefix, cursor, limit).await,
        }
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let mut all = Vec::with_capacity(keys.len());
        for group in keys.chunks(DELETE_KEYS_MAX) {
            all.extend(self.delete_group(group).await);
        }
        all
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    fn address(&self) -> String {
        self.inner.address()
    }

    fn needs_put_budget(&self) -> bool {
        self.inner.needs_put_budget()
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
