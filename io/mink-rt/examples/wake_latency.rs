//! Measures a backend of the cores: how soon a message wakes an idle and a busy core, whether routed requests get lost,
//! what a node at rest costs. Run it as
//! `cargo run --release -p mink-rt --example wake_latency -- --runtime epoll`.
//! Lives on: a program of its own.

use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _};
use mink_rt::{
    Class, Core, CoreMain, Cores, CoresConfig, EpollRuntime, Instant, Runtime, RuntimeKind, ServiceConfig,
    Watchdog, core_main,
};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Requests that are under way at once, and the room of each queue between the two cores.
const WINDOW: u64 = 64;
/// What a request is answered with: itself, changed, so that an answer which is a copy is seen.
const ANSWER_MASK: u64 = 0x5555_5555_5555_5555;

/// What the command line asks for.
struct Asked {
    runtime: RuntimeKind,
    rounds: u32,
    requests: u64,
    rest: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = asked(std::env::args().skip(1))?;
    let services = EpollRuntime::start(ServiceConfig { workers: NonZeroUsize::new(1) })?;
    let runtime = asked.runtime.resolve()?.beside(&services)?;
    println!("runtime {}, {} rounds, {} requests", runtime.name(), asked.rounds, asked.requests);
    services.block_on(async {
        wake_latency(&*runtime, asked.rounds, false).await?;
        wake_latency(&*runtime, asked.rounds, true).await?;
        routed_requests(&*runtime, asked.requests).await?;
        rest(&*runtime, asked.rest).await
    })
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked {
        runtime: RuntimeKind::Epoll,
        rounds: 5_000,
        requests: 10_000_000,
        rest: Duration::from_secs(10),
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--runtime" => asked.runtime = value.parse()?,
            "--rounds" => asked.rounds = value.parse()?,
            "--requests" => asked.requests = value.parse()?,
            "--rest-seconds" => asked.rest = Duration::from_secs(value.parse()?),
            _ => return Err(format!("{flag} is none of --runtime --rounds --requests --rest-seconds").into()),
        }
    }
    Ok(asked)
}

fn start(runtime: &dyn Runtime, count: usize, main: CoreMain) -> Result<Cores, Box<dyn Error>> {
    let count = NonZeroUsize::new(count).ok_or("no cores")?;
    Ok(runtime.start_cores(CoresConfig { name: "measure", ..CoresConfig::shards(count) }, main)?)
}

/// Hands things out to cores, one to each call.
struct Handed<T>(Mutex<Vec<T>>);

impl<T> Handed<T> {
    fn new(things: Vec<T>) -> Self {
        Self(Mutex::new(things))
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// One way: from before the send on another thread until the task on the core has the message.
async fn wake_latency(runtime: &dyn Runtime, rounds: u32, busy: bool) -> Result<(), Box<dyn Error>> {
    let (mut out, received) = mpsc::channel::<Instant>(1);
    let (tell, mut told) = mpsc::channel::<Duration>(1);
    let ends = Arc::new(Handed::new(vec![(received, tell)]));
    let main = core_main(move |core: Core| {
        let ends = ends.take();
        async move {
            if busy {
                let burns = core.clone();
                drop(core.spawn(Class::Background, "burns", async move {
                    while !burns.is_stopping() {
                        std::hint::black_box(burns.now());
                        burns.yield_if_due().await;
                    }
                }));
            }
            let Some((mut received, mut tell)) = ends else { return };
            while let Some(sent) = received.next().await {
                if tell.send(core.now().duration_since(sent)).await.is_err() {
                    return;
                }
            }
        }
    });
    let cores = start(runtime, 1, main)?;
    let (watchdog, service) = (cores.watchdog(), runtime.service());
    let mut waits = Vec::new();
    for _ in 0..rounds {
        // Long enough for an idle core to park, and off the beat of a busy one.
        service.sleep(Duration::from_micros(500 + service.random_u64() % 1_000)).await;
        out.send(service.now()).await?;
        waits.push(told.next().await.ok_or("the core has gone")?);
    }
    cores.stop();
    drop(out);
    cores.join().await?;
    waits.sort_unstable();
    let at = |share: usize| {
        waits.get((waits.len().saturating_sub(1)) * share / 1_000).copied().unwrap_or_default()
    };
    let what = if busy { "busy" } else { "idle" };
    println!(
        "wake of a core that is {what}: p50 {:?} p99 {:?} p99.9 {:?} max {:?}; {}",
        at(500),
        at(990),
        at(999),
        at(1_000),
        stalls(&watchdog, 1)
    );
    Ok(())
}

fn stalls(watchdog: &Watchdog, cores: usize) -> String {
    let stats: Vec<_> = (0..cores).filter_map(|core| watchdog.core(core)).collect();
    let parked: u64 = stats.iter().map(|core| core.parked_stalls).sum();
    let wakes: u64 = stats.iter().map(|core| core.foreign_wakes).sum();
    format!("stalls {} (parked {parked}), foreign wakes {wakes}", watchdog.stalls())
}

/// Core 0 asks, core 1 answers, over two bounded queues with a window; counts and sums must agree on both.
async fn routed_requests(runtime: &dyn Runtime, requests: u64) -> Result<(), Box<dyn Error>> {
    let room = usize::try_from(WINDOW)?;
    let (ask, asked) = mpsc::channel::<u64>(room);
    let (answer, answered) = mpsc::channel::<u64>(room);
    let (asker, answerer) = (Handed::new(vec![(ask, answered)]), Handed::new(vec![(answer, asked)]));
    let (tell, mut told) = mpsc::channel::<(usize, u64, u64)>(2);
    let main = core_main(move |core: Core| {
        let mut tell = tell.clone();
        let (asker, answerer) =
            if core.index() == 0 { (asker.take(), None) } else { (None, answerer.take()) };
        async move {
            let (mut count, mut sum) = (0_u64, 0_u64);
            if let Some((mut ask, mut answered)) = asker {
                let mut sent = 0;
                while count < requests {
                    while sent < requests && sent - count < WINDOW && ask.try_send(sent).is_ok() {
                        sent += 1;
                    }
                    let Some(answer) = answered.next().await else { break };
                    (count, sum) = (count + 1, sum.wrapping_add(answer ^ ANSWER_MASK));
                    core.yield_if_due().await;
                }
            } else if let Some((mut answer, mut asked)) = answerer {
                while let Some(request) = asked.next().await {
                    (count, sum) = (count + 1, sum.wrapping_add(request));
                    if answer.send(request ^ ANSWER_MASK).await.is_err() {
                        break;
                    }
                    core.yield_if_due().await;
                }
            }
            drop(tell.send((core.index(), count, sum)).await);
        }
    });
    let (start_at, cpu) = (runtime.service().now(), cpu_time());
    let cores = start(runtime, 2, main)?;
    let watchdog = cores.watchdog();
    cores.join().await?;
    let took = runtime.service().now().duration_since(start_at);
    let cpu = cpu_time().saturating_sub(cpu);
    let mut seen = 0;
    while let Some((core, count, sum)) = told.next().await {
        let expected = (0..requests).fold(0_u64, u64::wrapping_add);
        if (count, sum) != (requests, expected) {
            return Err(format!("core {core} has seen {count} of {requests} requests, sum {sum}").into());
        }
        seen += 1;
        if seen == 2 {
            break;
        }
    }
    println!("{requests} routed requests: none lost, {took:?}, CPU {cpu:?}; {}", stalls(&watchdog, 2));
    Ok(())
}

/// CPU time of all threads of this process while two cores wait for their stop.
async fn rest(runtime: &dyn Runtime, duration: Duration) -> Result<(), Box<dyn Error>> {
    let cores = start(runtime, 2, core_main(|core: Core| async move { core.stopped().await }))?;
    let (watchdog, service) = (cores.watchdog(), runtime.service());
    service.sleep(Duration::from_secs(1)).await;
    let cpu = cpu_time();
    service.sleep(duration).await;
    let cpu = cpu_time().saturating_sub(cpu);
    cores.stop();
    cores.join().await?;
    println!("{duration:?} of rest with two cores: CPU {cpu:?}; {}", stalls(&watchdog, 2));
    Ok(())
}

fn cpu_time() -> Duration {
    let read = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(read.tv_sec).unwrap_or(0), u32::try_from(read.tv_nsec).unwrap_or(0))
}
