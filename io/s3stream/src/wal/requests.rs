//! Requests and bytes that a steady load costs, in virtual time: 200 MiB/s on a store whose PUT takes 50 ms.
use std::time::Duration;

use bytes::Bytes;
use mink_object::{ObjectStore as _, Op};

use crate::Entry;
use crate::testing::{World, in_world};

const MIB: u64 = 1 << 20;
/// What one turn of a shard's pump appends, and how long it takes.
const TURN_BYTES: u64 = MIB;
const TURN: Duration = Duration::from_millis(5);
const TURNS: u64 = 384;
const PUTS_PER_SECOND: u32 = 20;

/// Requests of a load, in all and as PUTs of WAL objects, and bytes sent.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    requests: u64,
    wal_puts: u64,
    deletes: u64,
    flushes: u64,
    bytes: u64,
}

async fn cost(mut world: World, buckets: u64, batch_bytes: u64) -> Cost {
    world.config.puts_per_second = Some(PUTS_PER_SECOND);
    world.seam.latency(Op::Put, Duration::from_millis(50), Duration::from_millis(50));
    let all: Vec<u64> = (1..=buckets).collect();
    let mut node = world.node(1, &all).await;
    let body = Bytes::from(vec![7; usize::try_from(batch_bytes).unwrap()]);
    let mut next = 0;
    for _ in 0..TURNS {
        let mut entries = Vec::new();
        for _ in 0..TURN_BYTES / batch_bytes {
            entries.push(Entry { bytes: body.clone(), ..node.batch(next % buckets + 1, 1) });
            next += 1;
        }
        drop(node.push(entries).await);
        world.sleep(TURN).await;
    }
    node.wal.flush_now().await.unwrap();
    world.sleep(Duration::from_secs(2)).await;
    let (stats, wal) = (world.store.stats(), node.wal.stats());
    Cost {
        requests: stats.requests_total(),
        wal_puts: wal.next + wal.repeats + wal.hedges,
        deletes: stats.requests_of(Op::Delete),
        flushes: wal.flushes,
        bytes: stats.bytes(Op::Put),
    }
}

#[test]
fn a_gib_at_200_mib_a_second_costs_at_most_220_requests_whatever_its_batches_and_buckets() {
    let load_bytes = TURNS * TURN_BYTES;
    let per_gib = |count: u64| count * 1024 * MIB / load_bytes;
    let mut all = Vec::new();
    for (buckets, batch_bytes) in [(1, MIB), (64, MIB), (1, 16 << 10), (64, 16 << 10)] {
        let (tell, told) = std::sync::mpsc::channel();
        in_world(1, |world| async move { tell.send(cost(world, buckets, batch_bytes).await).unwrap() });
        let cost = told.recv().unwrap();
        println!("{buckets} buckets, batches of {batch_bytes}: {cost:?}, {} per GiB", per_gib(cost.requests));
        let seconds = (TURN * u32::try_from(TURNS).unwrap()).as_secs_f64();
        let wal_puts = u32::try_from(cost.wal_puts).unwrap();
        // The first object is cut at once, the last one when the load has ended.
        assert!(f64::from(wal_puts) <= f64::from(PUTS_PER_SECOND) * seconds + 2.0, "{cost:?}");
        assert!(per_gib(cost.wal_puts) <= 128, "{cost:?}");
        assert!(per_gib(cost.requests) <= 220, "{cost:?}");
        assert!(cost.deletes <= cost.flushes, "one bulk deletion per flush: {cost:?}");
        assert!(cost.bytes * 100 <= load_bytes * 205, "{cost:?}");
        all.push(cost.requests);
    }
    let (least, most) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
    assert!(most * 10 <= least * 11, "{all:?}");
}
