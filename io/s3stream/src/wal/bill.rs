//! The bill of WAL PUTs as the store sees it, in virtual time: every span of every load stays within rate and burst.
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use mink_object::{Counted, FaultAnswer, FaultSeam, MemoryStore, Op, Request};
use mink_rt::{Instant, Service};

use crate::testing::{World, in_world};
use crate::{ChunkEnd, Entry};

const MS: Duration = Duration::from_millis(1);
const RATE: u32 = 20;
/// An object is cut when so much waits: 8 MiB in small.
const BATCH_BYTES: u64 = 8 << 10;

/// Notes when each PUT of a WAL object is sent, and how long it is; a seal is none.
struct Bill {
    below: Arc<dyn FaultSeam>,
    service: Service,
    puts: Mutex<Vec<(Instant, u64)>>,
}

#[async_trait]
impl FaultSeam for Bill {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        if request.op == Op::Put && request.key.contains("/wal/") && request.bytes > 196 {
            self.puts.lock().unwrap().push((self.service.now(), request.bytes));
        }
        self.below.before(request).await
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        self.below.after(request).await
    }
}

impl fmt::Debug for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bill")
    }
}

/// PUTs as (when, bytes), in order.
type Puts = Vec<(Instant, u64)>;

/// Two to six stretches of load, each of a speed of its own, with pauses in it; gives the PUTs.
fn puts_of(seed: u64, linger: Duration, prepare: fn(&World)) -> (Puts, u64, u64) {
    let (tell, told) = std::sync::mpsc::channel();
    in_world(seed, |mut world| async move {
        let below: Arc<dyn FaultSeam> = Arc::<crate::testing::Seam>::clone(&world.seam);
        let bill = Arc::new(Bill { below, service: world.service.clone(), puts: Mutex::default() });
        let seam: Arc<dyn FaultSeam> = Arc::<Bill>::clone(&bill);
        world.store = Arc::new(Counted::new(Arc::<MemoryStore>::clone(&world.memory), Some(seam)));
        world.config.puts_per_second = Some(RATE);
        world.config.batch_bytes = BATCH_BYTES;
        world.config.linger = linger;
        prepare(&world);
        let mut node = world.node(1, &[1]).await;
        let mut acks = FuturesUnordered::new();
        for _ in 0..2 + world.service.random_u64() % 5 {
            // From a trickle to five times what the rate takes in objects of `BATCH_BYTES`.
            let bytes = 1 << (world.service.random_u64() % 11 + 4);
            let pause = MS * u32::try_from(1 + world.service.random_u64() % 20).unwrap();
            let body = Bytes::from(vec![7; bytes]);
            for _ in 0..100 + world.service.random_u64() % 200 {
                let entry = Entry { bytes: body.clone(), ..node.batch(1, 1) };
                acks.push(node.push(vec![entry]).await);
                let stutter = world.service.random_u64().is_multiple_of(32);
                world.sleep(if stutter { pause + MS * 150 } else { pause }).await;
            }
            let rest = world.service.random_u64() % 2_000;
            world.sleep(MS * u32::try_from(rest).unwrap()).await;
        }
        while let Some(end) = acks.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
        let stats = node.wal.stats();
        assert_eq!(stats.next, stats.durable_below);
        let puts = bill.puts.lock().unwrap().clone();
        assert!(puts.len() as u64 >= stats.next);
        tell.send((puts, stats.hedges, stats.repeats)).unwrap();
    });
    told.recv().unwrap()
}

/// Panics if a span of the PUTs has more of them than `most` gives for its length.
fn check(seed: u64, puts: &Puts, most: impl Fn(Duration) -> f64) {
    for (first, (from, _)) in puts.iter().enumerate() {
        for (last, (to, _)) in puts.iter().enumerate().skip(first) {
            let (count, span) = (u32::try_from(last - first + 1).unwrap(), *to - *from);
            let most = most(span) + 1e-6;
            assert!(f64::from(count) <= most, "seed {seed}: {count} PUTs in {span:?}, {most} allowed");
        }
    }
}

fn by_rate(span: Duration) -> f64 {
    f64::from(RATE) * span.as_secs_f64()
}

#[test]
fn i20_any_load_on_a_store_of_50_ms_pays_the_rate_and_nothing_more_in_any_span() {
    for seed in 0..30 {
        let (puts, hedges, repeats) =
            puts_of(seed, MS * 50, |world| world.seam.latency(Op::Put, MS * 50, MS * 50));
        assert_eq!((hedges, repeats), (0, 0));
        // The one at the span's begin, and then the rate: no burst, whatever the speed does. From cut to store it takes a moment.
        check(seed, &puts, |span| 1.0 + by_rate(span + MS));
    }
}

#[test]
fn i20_hedges_and_repeats_are_paid_out_of_rate_and_burst_in_any_span() {
    let (mut hedges, mut repeats) = (0, 0);
    for seed in 0..60 {
        // A fast store, of which every 20th PUT is late and every 10th gets no answer or a 503.
        let cost = puts_of(seed, MS * 5, |world| {
            world.seam.latency(Op::Put, MS * 2, MS * 10);
            world.seam.tail(50, MS * 400);
            world.seam.percent(5);
        });
        check(seed, &cost.0, |span| f64::from(RATE) + by_rate(span + MS));
        (hedges, repeats) = (hedges + cost.1, repeats + cost.2);
    }
    assert!(hedges > 10 && repeats > 100, "{hedges} {repeats}");
}
