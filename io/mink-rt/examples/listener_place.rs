//! Measures where a listener should live: on the service runtime, from which each request goes to its core and back, or on the core itself.
//! Both do the same with a frame: read it, copy it into memory of the core, answer with 16 bytes; a core's own listener
//! saves the way there and back, and has to read and write between the core's other work. The client is this program once more, in a
//! process of its own. Run it as `cargo run --release -p mink-rt --example listener_place`.
//! Lives on: a program of its own.

use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use mink_rt::{Core, CoresConfig, EpollRuntime, Runtime as _, ServiceConfig, core_main};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::num::NonZeroUsize;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

/// Connections, and frames that each has under way.
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 5;
const ANSWER: usize = 16;
/// What a core keeps of frames before it begins anew.
const ARENA: usize = 4 << 20;
/// Bytes of a frame's body, and how many frames a round has.
const ROUNDS: [(usize, usize); 3] = [(64, 400_000), (16 << 10, 100_000), (128 << 10, 20_000)];

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [address, body, frames] = words.as_slice() {
        return ask(address, body.parse()?, frames.parse()?);
    }
    println!("{CONNECTIONS} connections, {IN_FLIGHT} frames in flight on each");
    for (body, frames) in ROUNDS {
        for _ in 0..3 {
            report("through a hop", body, frames, hop(body, frames)?);
            report("on the core", body, frames, on_the_core(body, frames)?);
        }
    }
    Ok(())
}

fn report(place: &str, body: usize, frames: usize, (took, cpu): (Duration, Duration)) {
    let frames = u32::try_from(frames).unwrap_or(u32::MAX);
    println!("{body:>7} B, {place:<13}: CPU {:>9.2?} a frame, {:>9.2?} of time", cpu / frames, took / frames);
}

/// What the core does with a frame.
fn take(arena: &mut Vec<u8>, body: &[u8]) -> [u8; ANSWER] {
    if arena.len() + body.len() > ARENA {
        arena.clear();
    }
    arena.extend_from_slice(body);
    let mut answer = [0; ANSWER];
    for (to, from) in answer.iter_mut().zip(arena.iter().rev()) {
        *to = *from;
    }
    answer
}

async fn frame(stream: &mut TcpStream, body: &mut Vec<u8>) -> bool {
    let Ok(length) = stream.read_u32_le().await else { return false };
    body.resize(usize::try_from(length).unwrap_or(0), 0);
    stream.read_exact(body).await.is_ok()
}

struct Request {
    body: Vec<u8>,
    reply: oneshot::Sender<([u8; ANSWER], Vec<u8>)>,
}

/// Listener on a service thread, frames on a core of the seam.
fn hop(body: usize, frames: usize) -> Result<(Duration, Duration), Failure> {
    let services = EpollRuntime::start(ServiceConfig { workers: NonZeroUsize::new(1) })?;
    let (ask, asked) = mpsc::channel::<Request>(CONNECTIONS * IN_FLIGHT);
    let asked = Mutex::new(Some(asked));
    let main = core_main(move |core: Core| {
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            let Some(mut asked) = asked else { return };
            let mut arena = Vec::with_capacity(ARENA);
            while let Some(request) = asked.next().await {
                let answer = take(&mut arena, &request.body);
                drop(request.reply.send((answer, request.body)));
                core.yield_if_due().await;
            }
        }
    });
    let one = NonZeroUsize::MIN;
    let cores = services.start_cores(CoresConfig { name: "measure", ..CoresConfig::shards(one) }, main)?;
    let measured = services.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut measure = Measure::start(&listener, body, frames)?;
        let mut served = Vec::new();
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let mut ask = ask.clone();
            served.push(tokio::spawn(async move {
                let mut body = Vec::new();
                while frame(&mut stream, &mut body).await {
                    let (reply, replied) = oneshot::channel();
                    let request = Request { body: std::mem::take(&mut body), reply };
                    if futures::SinkExt::send(&mut ask, request).await.is_err() {
                        return;
                    }
                    let Ok((answer, back)) = replied.await else { return };
                    body = back;
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }));
        }
        for task in served {
            task.await?;
        }
        measure.end()
    });
    cores.stop();
    drop(ask);
    services.block_on(cores.join())?;
    services.shutdown(Duration::from_secs(1));
    measured
}

/// Listener and frames on one pinned thread, as a core of the epoll backend with a listener of its own would be.
fn on_the_core(body: usize, frames: usize) -> Result<(Duration, Duration), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut measure = Measure::start(&listener, body, frames)?;
        let arena = std::rc::Rc::new(std::cell::RefCell::new(Vec::with_capacity(ARENA)));
        let mut served = Vec::new();
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let arena = std::rc::Rc::clone(&arena);
            served.push(tokio::task::spawn_local(async move {
                let mut body = Vec::new();
                while frame(&mut stream, &mut body).await {
                    let answer = take(&mut arena.borrow_mut(), &body);
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }));
        }
        for task in served {
            task.await?;
        }
        measure.end()
    })
}

/// Time and processor time of this process, from before the client starts until it has all its answers.
struct Measure {
    client: Child,
    began: Instant,
    cpu: Duration,
}

impl Measure {
    fn start(listener: &TcpListener, body: usize, frames: usize) -> Result<Self, Failure> {
        let client = Command::new(std::env::current_exe()?)
            .args([listener.local_addr()?.to_string(), body.to_string(), frames.to_string()])
            .spawn()?;
        Ok(Self { client, began: Instant::now(), cpu: cpu_time() })
    }

    fn end(&mut self) -> Result<(Duration, Duration), Failure> {
        let (took, cpu) = (self.began.elapsed(), cpu_time().saturating_sub(self.cpu));
        if self.client.wait()?.success() { Ok((took, cpu)) } else { Err("the client failed".into()) }
    }
}

/// The client: a thread per connection, which sends a frame for each answer.
fn ask(address: &str, body: usize, frames: usize) -> Result<(), Failure> {
    let threads: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let address = address.to_owned();
            std::thread::spawn(move || -> Result<(), Failure> {
                let mut stream = std::net::TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                let mut frame = u32::try_from(body)?.to_le_bytes().to_vec();
                frame.resize(4 + body, 7);
                let (mut answer, all) = ([0; ANSWER], frames / CONNECTIONS);
                for sent in 0..all + IN_FLIGHT {
                    if sent < all {
                        stream.write_all(&frame)?;
                    }
                    if sent >= IN_FLIGHT {
                        stream.read_exact(&mut answer)?;
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a connection's thread panicked")??;
    }
    Ok(())
}

fn cpu_time() -> Duration {
    let read = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(read.tv_sec).unwrap_or(0), u32::try_from(read.tv_nsec).unwrap_or(0))
}
