//! Faults on demand around the store of a test's world: answers, delays, gates, outages.
//!
//! Lives on: the simulator of mink-rt.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use mink_object::{FaultAnswer, FaultSeam, Op, Request};
use mink_rt::Service;
use mink_types::WalChain;

/// Length of a seal: what is longer is its owner's own.
const SEAL_BYTES: u64 = 196;

/// When a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// It did not happen.
    Before,
    /// It happened.
    After,
}

#[derive(Debug)]
struct Fault {
    op: Op,
    key: String,
    when: When,
    answer: FaultAnswer,
    times: u32,
}

/// Faults on demand, delays, gates that hold requests back.
pub(crate) struct Seam {
    service: Service,
    state: Mutex<SeamState>,
}

#[derive(Debug, Default)]
struct SeamState {
    latency: BTreeMap<Op, (Duration, Duration)>,
    faults: Vec<Fault>,
    gates: BTreeSet<(Op, String)>,
    /// The next request for such a key waits so long before it happens.
    late: Vec<(Op, String, Duration)>,
    /// Of 1,000 PUTs so many take so much longer.
    tail: (u64, Duration),
    /// Requests that have begun and not ended.
    open: BTreeMap<Op, usize>,
    /// The most of them at a time.
    open_most: BTreeMap<Op, usize>,
    down: bool,
    hanging: bool,
    stalled: BTreeSet<String>,
    /// Of 100 requests so many fail before, and of the rest so many after.
    percent: u64,
    /// Of 100 reads and listings so many are told 503.
    throttled: u64,
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seam")
    }
}

impl Seam {
    pub(super) fn new(service: Service) -> Seam {
        Seam { service, state: Mutex::default() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut SeamState) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Requests take `least` to `most`.
    pub(crate) fn latency(&self, op: Op, least: Duration, most: Duration) {
        self.with(|state| state.latency.insert(op, (least, most)));
    }

    /// The next `times` requests for keys that end in `key` are answered so.
    pub(crate) fn fault(&self, op: Op, key: &str, when: When, answer: FaultAnswer, times: u32) {
        self.with(|state| {
            state.faults.push(Fault { op, key: key.to_owned(), when, answer, times });
        });
    }

    /// Requests for keys that end in `key` wait until the gate opens.
    pub(crate) fn close_gate(&self, op: Op, key: &str) {
        self.with(|state| state.gates.insert((op, key.to_owned())));
    }

    /// The next request for a key that ends in `key` is held up, and later ones are not.
    pub(crate) fn late(&self, op: Op, key: &str, by: Duration) {
        self.with(|state| state.late.push((op, key.to_owned(), by)));
    }

    /// Of 1,000 PUTs `per_mille` take `longer` than the others.
    pub(crate) fn tail(&self, per_mille: u64, longer: Duration) {
        self.with(|state| state.tail = (per_mille, longer));
    }

    /// The most requests that were under way at a time.
    pub(crate) fn open_most(&self, op: Op) -> usize {
        self.with(|state| state.open_most.get(&op).copied().unwrap_or(0))
    }

    /// Holds back the PUTs of WAL objects that an incarnation itself sends from now on; a taker's seal passes.
    pub(crate) fn stall(&self, chain: WalChain) {
        self.with(|state| state.stalled.insert(format!("{}-{:016x}/", chain.incarnation, chain.tag)));
    }

    pub(crate) fn open_gates(&self) {
        self.with(|state| state.stalled.clear());
        self.with(|state| state.gates.clear());
    }

    /// Faults that were asked for strike no more.
    pub(crate) fn heal(&self) {
        self.with(|state| state.faults.clear());
    }

    pub(crate) fn down(&self, down: bool) {
        self.with(|state| state.down = down);
    }

    /// While `hanging`, no request is answered.
    pub(crate) fn hang(&self, hanging: bool) {
        self.with(|state| state.hanging = hanging);
    }

    pub(crate) fn percent(&self, percent: u64) {
        self.with(|state| state.percent = percent);
    }

    /// Of 100 reads and listings `percent` are told 503 from now on.
    pub(crate) fn throttle(&self, percent: u64) {
        self.with(|state| state.throttled = percent);
    }

    fn strikes(&self, request: Request<'_>, when: When) -> Option<FaultAnswer> {
        let random = self.service.random_u64();
        self.with(|state| {
            let found = state.faults.iter_mut().find(|fault| {
                fault.op == request.op
                    && fault.when == when
                    && fault.times > 0
                    && request.key.ends_with(&fault.key)
            });
            if let Some(fault) = found {
                fault.times -= 1;
                return Some(fault.answer);
            }
            if state.down {
                return Some(FaultAnswer::Lost);
            }
            let reads = matches!(request.op, Op::Get | Op::Head | Op::List);
            if reads && when == When::Before && random % 100 < state.throttled {
                return Some(FaultAnswer::Status(503));
            }
            let unlucky = random % 100 < state.percent;
            unlucky.then_some(if random.is_multiple_of(3) {
                FaultAnswer::Status(503)
            } else {
                FaultAnswer::Lost
            })
        })
    }
}

/// Counts a request that is under way, also one whose caller gives it up.
struct Open<'a>(&'a Seam, Op);

impl<'a> Open<'a> {
    fn new(seam: &'a Seam, op: Op) -> Open<'a> {
        seam.with(|state| {
            let open = state.open.entry(op).or_default();
            *open += 1;
            let open = *open;
            let most = state.open_most.entry(op).or_default();
            *most = open.max(*most);
        });
        Open(seam, op)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.with(|state| *state.open.entry(self.1).or_default() -= 1);
    }
}

#[async_trait]
impl FaultSeam for Seam {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let _open = Open::new(self, request.op);
        let gated = |state: &mut SeamState| {
            let data = request.op == Op::Put && request.bytes > SEAL_BYTES;
            let stalled = data && state.stalled.iter().any(|part| request.key.contains(part));
            stalled || state.gates.iter().any(|(op, key)| *op == request.op && request.key.ends_with(key))
        };
        while self.with(gated) {
            self.service.sleep(Duration::from_millis(1)).await;
        }
        while self.with(|state| state.hanging) {
            self.service.sleep(Duration::from_millis(100)).await;
        }
        let late = self.with(|state| {
            let hit = |(op, key, _): &(Op, String, Duration)| *op == request.op && request.key.ends_with(key);
            let at = state.late.iter().position(hit)?;
            Some(state.late.remove(at).2)
        });
        if let Some(late) = late {
            self.service.sleep(late).await;
        }
        let (per_mille, longer) = self.with(|state| state.tail);
        if request.op == Op::Put && per_mille > 0 && self.service.random_u64() % 1_000 < per_mille {
            self.service.sleep(longer).await;
        }
        let latency = self.with(|state| state.latency.get(&request.op).copied());
        if let Some((least, most)) = latency {
            let spread = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap() + 1;
            let extra = Duration::from_nanos(self.service.random_u64() % spread);
            self.service.sleep(least + extra).await;
        }
        self.strikes(request, When::Before)
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        self.strikes(request, When::After)
    }
}
