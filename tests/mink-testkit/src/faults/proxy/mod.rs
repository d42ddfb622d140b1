//! A plan of faults as an HTTP proxy before any S3 server.
//! Lives on: the tokio runtime of whoever starts it.
//! Owns: its two listeners and every connection through them.     Talks to: the server behind it.
//! Invariants: bodies pass in pieces and are never held, but those of late requests, which have a bound; what the clients signed passes as it is.
//!
//! Plain HTTP/1.1, path style. The client's `Host` is passed on, for it is signed.

mod answers;
mod control;
mod listen;
mod meet;
mod seen;
mod sign;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Draws, Happens, Plan, Side, Tally, Verdict};
use crate::{Error, ErrorKind, Result};
use answers::AnyBody;
use seen::Seen;
pub use sign::SecretKey;

/// Bytes of late requests that are held at a time, in KiB; one that finds no room does not happen.
const LATE_KIB_MAX: u32 = 256 << 10;
/// A connection to the server that was idle for so long is not used again: the server may be about to close it.
const SERVER_IDLE: Duration = Duration::from_secs(10);

/// Where a proxy stands and before what.
#[derive(Debug, Clone)]
pub struct ProxyConfig {
    /// Where clients come; port 0 for a free one.
    pub listen: SocketAddr,
    /// Where the plan is looked at and changed; port 0 for a free one.
    pub control: SocketAddr,
    /// `HOST:PORT` of the server.
    pub to: String,
    /// For rules with `unconditional`: the condition is part of what the client signed, so the request must be signed anew.
    pub secret: Option<SecretKey>,
}

impl ProxyConfig {
    /// On free ports of 127.0.0.1; `to` is `HOST:PORT` or `http://HOST:PORT`.
    pub fn new(to: &str) -> ProxyConfig {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let to = to.trim_start_matches("http://").trim_end_matches('/').to_owned();
        ProxyConfig { listen: free, control: free, to, secret: None }
    }

    /// With the clients' secret key.
    #[must_use]
    pub fn secret(self, secret: impl Into<String>) -> ProxyConfig {
        ProxyConfig { secret: Some(SecretKey::new(secret)), ..self }
    }
}

/// A proxy; it ends with the value.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    control: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    to: String,
    secret: Option<SecretKey>,
    phase: Mutex<Phase>,
    /// Tells the listener that the plan is another one.
    changed: watch::Sender<()>,
    client: Client<HttpConnector, AnyBody>,
    late_room: Arc<Semaphore>,
    late: LateCounts,
}

/// The plan that is under way.
#[derive(Debug)]
struct Phase {
    draws: Draws,
    began: Instant,
}

/// What became of late requests.
#[derive(Debug, Default)]
struct LateCounts {
    waiting: AtomicU64,
    applied: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

/// What became of the requests that happen after their answer, since the proxy began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// Not yet sent to the server.
    pub waiting: u64,
    /// Answered with success.
    pub applied: u64,
    /// Refused by the server (the object was there, say) or not answered.
    pub refused: u64,
    /// Too many at a time: never sent.
    pub dropped: u64,
}

impl FaultProxy {
    /// Starts one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot listen, [`ErrorKind::Failed`] if the plan cannot be carried out.
    pub async fn start(config: ProxyConfig, plan: Plan) -> Result<FaultProxy> {
        let listener = bind(config.listen).await?;
        let control_listener = bind(config.control).await?;
        let address = |listener: &TcpListener| {
            listener.local_addr().map_err(|error| Error::io("looking at a listener", &error))
        };
        let (listen, control) = (address(&listener)?, address(&control_listener)?);
        check(&plan, config.secret.as_ref())?;
        let shared = Arc::new(Shared {
            to: config.to,
            secret: config.secret,
            phase: Mutex::new(Phase { draws: Draws::new(plan), began: Instant::now() }),
            changed: watch::Sender::new(()),
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(SERVER_IDLE)
                .build_http(),
            late_room: Arc::new(Semaphore::new(LATE_KIB_MAX as usize)),
            late: LateCounts::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(listen::run(listener, listen, Arc::clone(&shared)));
        tasks.spawn(control::run(control_listener, Arc::clone(&shared)));
        Ok(FaultProxy { address: listen, control, shared, _tasks: tasks })
    }

    /// `http://HOST:PORT` for clients.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://HOST:PORT/__faults`: GET tells the plan and its counts, POST begins another one, DELETE ends all faults.
    pub fn control(&self) -> String {
        format!("http://{}{}", self.control, control::PATH)
    }

    /// Begins another plan: its time and its counts start at zero.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if the plan cannot be carried out.
    pub fn set(&self, plan: Plan) -> Result<()> {
        self.shared.set(plan)
    }

    /// As [`FaultProxy::set`], from the plan's text.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it is no plan, or cannot be carried out.
    pub fn set_text(&self, plan: &str) -> Result<()> {
        let plan = plan.parse().map_err(|error| Error::new(ErrorKind::Failed, format!("{error}")))?;
        self.set(plan)
    }

    /// What was met since the plan began.
    pub fn tally(&self) -> Tally {
        self.shared.phase().draws.tally()
    }

    /// What became of late requests.
    pub fn late(&self) -> Late {
        self.shared.late()
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Error::io(format_args!("listening on {address}"), &error))
}

fn check(plan: &Plan, secret: Option<&SecretKey>) -> Result<()> {
    let wrong = |words: String| Error::new(ErrorKind::Failed, words);
    for rule in &plan.rules {
        rule.check().map_err(wrong)?;
        if rule.effect.happens == Happens::Unconditional && secret.is_none() {
            let remedy = "the condition is part of what the client signed; give the proxy the secret key \
                          (AWS_SECRET_ACCESS_KEY)";
            return Err(wrong(format!("cannot carry out {rule:?}: {remedy}", rule = rule.to_string())));
        }
    }
    Ok(())
}

impl Shared {
    /// Each change of a phase is one call, so a panic elsewhere leaves it whole.
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, plan: Plan) -> Result<()> {
        check(&plan, self.secret.as_ref())?;
        *self.phase() = Phase { draws: Draws::new(plan), began: Instant::now() };
        self.changed.send_replace(());
        Ok(())
    }

    fn draw(&self, seen: &Seen) -> Verdict {
        let mut phase = self.phase();
        let elapsed = phase.began.elapsed();
        phase.draws.draw(seen.op, &seen.key, elapsed, Side::Whole)
    }

    /// Whether nobody listens now, and how long that holds at least.
    fn away(&self) -> (bool, Option<Duration>) {
        let phase = self.phase();
        let elapsed = phase.began.elapsed();
        let (away, next) = phase.draws.away(elapsed);
        (away, next.map(|next| next.saturating_sub(elapsed)))
    }

    fn late(&self) -> Late {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let LateCounts { waiting, applied, refused, dropped } = &self.late;
        Late {
            waiting: load(waiting),
            applied: load(applied),
            refused: load(refused),
            dropped: load(dropped),
        }
    }

    /// Plan and counts as JSON.
    fn report(&self) -> serde_json::Value {
        let (plan, elapsed, tally) = {
            let phase = self.phase();
            (phase.draws.plan().to_string(), phase.began.elapsed(), phase.draws.tally())
        };
        let requests: BTreeMap<_, _> = tally.requests.iter().map(|(op, count)| (op.name(), count)).collect();
        let rules: Vec<_> = tally
            .rules
            .iter()
            .map(|line| serde_json::json!({ "rule": line.rule, "seen": line.seen, "taken": line.taken }))
            .collect();
        let late = self.late();
        serde_json::json!({
            "plan": plan,
            "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "away": self.away().0,
            "requests": requests,
            "rules": rules,
            "late": {
                "waiting": late.waiting,
                "applied": late.applied,
                "refused": late.refused,
                "dropped": late.dropped,
            },
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
