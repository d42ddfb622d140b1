//! One history from its seed to the verdict.
//!
//! Lives on: the simulation's thread.
use crate::clients::admin::{self, Notes};
use crate::clients::members::{self, Members};
use crate::clients::reader::{Got, read};
use crate::clients::{Clients, producer, reader};
use crate::dice::Dice;
use crate::history::{Counts, History};
use crate::ledger::Ledger;
use crate::log::SimLog;
use crate::loud::{heard, log_level};
use crate::machine::Site;
use crate::nature::Nature;
use crate::plan::Plan;
use crate::store::SimStore;
use crate::weather::Weather;
use futures::channel::oneshot;
use mink_object::MemoryStore;
use mink_rt::{SimConfig, SimFailure, SimWorld, simulate_world};
use mink_sql::{CommandLog, Database, SqliteLog};
use mink_types::{BucketId, ClusterName, Offset};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Polls after which a history is given up.
const STEPS_MAX: u64 = 30_000_000;

/// Times that the last readers try before they say that nobody serves.
const LAST_READS_MAX: u32 = 600;

/// What a history is asked to be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long clients and nature are at work, in virtual time.
    pub duration: Duration,
    /// Whether there is a consumer group, whose members come and go. Such a history damages nothing: a group goes back to what the
    /// rest of its log says when an object of it is lost (decision 0016).
    pub group: bool,
    /// Whether most tables have columns, so that their logs are of batches of Arrow.
    pub typed: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { duration: Duration::from_secs(40), group: false, typed: false }
    }
}

/// A history that ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Invariants that do not hold, in words; empty if all is well.
    pub violations: Vec<String>,
    /// What happened.
    pub counts: Counts,
    /// Hash of all decisions and of all requests to store and database.
    pub trace: u64,
    /// Polls of tasks.
    pub steps: u64,
    /// Virtual time that passed.
    pub elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.seed;
        if self.violations.is_empty() {
            return write!(f, "seed {seed}: no violation, {:?}", self.counts);
        }
        writeln!(f, "seed {seed}: {} violations:", self.violations.len())?;
        self.violations.iter().try_for_each(|what| writeln!(f, "  {what}"))?;
        write!(f, "replay: MINK_SEED={seed} MINK_SIM_LOG=info cargo test -p mink-sim one_seed -- --nocapture")
    }
}

/// Runs the history of `seed`.
pub fn run(seed: u64, options: Options) -> Report {
    let history = Arc::new(History::default());
    let config = SimConfig { steps_max: STEPS_MAX, ..SimConfig::seeded(seed) };
    let kept = Arc::clone(&history);
    let (ended, errors) =
        heard(log_level(), || simulate_world(config, move |world| story(world, kept, options)));
    let unexpected = |line: &String| !is_expected(line) && !history.names_hurt(line);
    errors.into_iter().filter(unexpected).for_each(|line| history.violated(line));
    let (trace, steps, elapsed) = match ended {
        Ok(outcome) => (outcome.trace, outcome.steps, outcome.elapsed),
        Err(failure) => {
            let what = match failure {
                SimFailure::Deadlock { waiting, .. } => format!("deadlock: {} tasks wait", waiting.len()),
                other => other.to_string(),
            };
            history.violated(what);
            (0, 0, Duration::ZERO)
        }
    };
    Report { seed, violations: history.violations(), counts: history.counts(), trace, steps, elapsed }
}

/// Error lines that tell of what nature did, or of what the history knows already.
fn is_expected(line: &str) -> bool {
    line.contains("mink_sim") || line.contains("wall clock jumped ahead")
}

/// A task of the world whose result somebody waits for.
struct Client<T>(oneshot::Receiver<T>);

fn start<T: Send + 'static>(
    site: &Site,
    name: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> Client<T> {
    let (tell, told) = oneshot::channel();
    drop(site.service.spawn(name, async move { drop(tell.send(work.await)) }));
    Client(told)
}

async fn story(world: SimWorld, history: Arc<History>, options: Options) {
    let service = world.runtime().service();
    let dice = Dice::new(service.clone());
    let mut plan = Plan::draw(&dice, options.duration);
    plan.damage &= !options.group;
    plan.typed = options.typed;
    tracing::info!(?plan, "plan");
    let cluster = ClusterName::new("sim").expect("valid");
    let sqlite = SqliteLog::open(&service, Database::Memory, &cluster).await.expect("opens in memory");
    let sqlite: Arc<dyn CommandLog> = Arc::new(sqlite);
    let weather = Arc::new(Weather::new(&world, &dice));
    let ledger = Arc::new(Ledger::new(&service, Arc::clone(&sqlite), &cluster, &plan, &history));
    let memory = Arc::new(MemoryStore::new());
    let store = SimStore::new(&service, &memory, &weather, &ledger);
    let log = SimLog::new(&service, sqlite, &weather, &ledger);
    let site = Site::new(&world, &dice, plan, cluster, (store, log), &history, &ledger);
    let mut nature = Nature::new(&site, &weather, &memory);
    let clients = Clients::new(&site);
    let group = options.group.then(|| Members::new(&clients));

    let tables = {
        let (clients, tables) = (clients.clone(), site.plan.tables);
        start(&site, "create tables", async move {
            for table in 0..tables {
                admin::create(&clients, &format!("t{table}")).await;
            }
        })
    };
    nature.rest(Duration::from_secs(2)).await;
    let mut producers: Vec<Client<()>> = Vec::new();
    for _ in 0..site.plan.idempotent {
        producers.push(start(&site, "idempotent producer", producer::idempotent(clients.clone())));
    }
    for _ in 0..site.plan.plain {
        producers.push(start(&site, "plain producer", producer::plain(clients.clone())));
    }
    for _ in 0..site.plan.readers {
        producers.push(start(&site, "reader", reader::wander(clients.clone())));
    }
    for _ in 0..group.as_ref().map_or(0, Members::count) {
        producers.extend(group.clone().map(|group| start(&site, "member", members::live(group))));
    }
    let admin = start(&site, "administrator", admin::wander(clients.clone()));
    nature.rage(site.plan.duration).await;

    tracing::info!("calm");
    nature.calm();
    clients.stop();
    let waiting = start(&site, "ends", async move {
        let _ = tables.0.await;
        for producer in producers {
            let _ = producer.0.await;
        }
        admin.0.await.unwrap_or_default()
    });
    let notes = with(&mut nature, waiting, Duration::from_mins(2)).await;
    if notes.is_none() {
        history.violated("clients do not come to an end though all is well".into());
    }
    if history.violations().is_empty() {
        last_look(&mut nature, &clients, &memory, notes.unwrap_or_default(), group.as_ref()).await;
    }
    nature.end_all(false).await;
}

/// Keeps processes going until a client has ended, at most so long.
async fn with<T>(nature: &mut Nature, mut client: Client<T>, limit: Duration) -> Option<T> {
    let rounds = limit.as_secs();
    for _ in 0..rounds {
        nature.rest(Duration::from_secs(1)).await;
        match client.0.try_recv() {
            Ok(None) => {}
            Ok(Some(ended)) => return Some(ended),
            Err(oneshot::Canceled) => return None,
        }
    }
    None
}

/// Every later reader and owner finds everything; in the end nothing is kept beyond its time, and no garbage is left.
async fn last_look(
    nature: &mut Nature,
    clients: &Clients,
    memory: &MemoryStore,
    notes: Notes,
    group: Option<&Members>,
) {
    let (site, ledger) = (&clients.site, &clients.site.ledger);
    for round in 0..3 {
        let reading = {
            let (clients, group) = (clients.clone(), group.cloned());
            start(site, "last readers", async move {
                read_all(&clients).await;
                if let Some(group) = group {
                    group.read_last().await;
                }
            })
        };
        if with(nature, reading, Duration::from_secs(200)).await.is_none() {
            return site.history.violated("the last readers do not come to an end".into());
        }
        nature.end_all(round == 1 || site.dice.one_in(2)).await;
    }
    // Whoever serves now cleans up: doomed objects after their grace, dead chains after theirs, and failed ones again.
    let cleaned = site.plan.deletion_grace * 4 + site.plan.compaction_takes() + Duration::from_mins(1);
    nature.rest(cleaned).await;
    ledger.check_objects(memory, true).await;
    let Some(state) = ledger.state() else { return };
    notes.check(clients, &state);
    ledger.check_forgotten(&state);
    if let Some(serving) = site.pick() {
        let its = serving.admin.state();
        let (ours, digest) = (state.digest(), its.digest());
        if its.witness() == state.witness() && ours != digest {
            site.history.violated("I11: a node's metadata differ from what the rows say".into());
        }
    }
}

async fn read_all(clients: &Clients) {
    let buckets: Vec<BucketId> = clients.buckets().iter().copied().collect();
    for bucket in buckets {
        read_whole(clients, bucket).await;
    }
}

async fn read_whole(clients: &Clients, bucket: BucketId) {
    let (site, mut at, mut start, mut failures) = (&clients.site, Offset(0), Offset(0), 0);
    while failures < LAST_READS_MAX {
        let got = match site.pick() {
            Some(serving) => read(clients, &serving, bucket, at).await,
            None => Got::Nothing,
        };
        match got {
            Got::Upto(next, high_watermark) if next == high_watermark => {
                return site.history.whole(bucket, start, next);
            }
            Got::Upto(next, _) if next > at => at = next,
            Got::Upto(next, high_watermark) => {
                let what = format!("I4: {bucket}: a read at {next} finds nothing below {high_watermark}");
                return site.history.violated(what);
            }
            Got::From(from) => (at, start) = (from, from),
            Got::Beyond(next) => at = next,
            Got::Nothing => {
                failures += 1;
                site.service.sleep(Duration::from_millis(200)).await;
            }
        }
    }
    site.history.violated(format!("{bucket}: nobody serves it though all is well"));
}
