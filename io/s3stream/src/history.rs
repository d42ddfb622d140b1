//! Histories of several owners, one after the other, while old owners may live on: nothing acked is lost, nothing acked
//! twice, whatever the store does.
//!
//! Lives on: the simulator of mink-rt; a failing seed prints itself.
use std::collections::BTreeSet;
use std::time::Duration;

use mink_object::Op;
use mink_types::{ObjectId, Offset, WalNumber};

use crate::compact::tests::{compactor, everything};
use crate::testing::{CountingFold, Node, World, bucket, chain, cluster, in_world};
use crate::*;

const MS: Duration = Duration::from_millis(1);
const BUCKETS: [u64; 3] = [1, 2, 3];

/// What happens to an owner before the next one takes over.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Dies,
    /// Goes on writing: nobody told it that it is fenced.
    LivesOn,
    /// Its PUTs are held back until long after.
    Stalls,
    Leaves,
}

fn draw(world: &World, below: u64) -> u64 {
    world.service.random_u64() % below
}

/// Writes for a while; chunks of one to three batches of any buckets, flushes now and then.
async fn work(world: &World, node: &mut Node, chunks: u64) {
    for _ in 0..chunks {
        let mut entries = Vec::new();
        for _ in 0..=draw(world, 3) {
            let (n, count) = (BUCKETS[usize::try_from(draw(world, 3)).unwrap()], draw(world, 4) + 1);
            entries.push(node.batch(n, u32::try_from(count).unwrap()));
        }
        drop(node.push(entries).await);
        world.sleep(MS * u32::try_from(draw(world, 12)).unwrap()).await;
        if draw(world, 15) == 0 {
            let wal = node.wal.clone();
            drop(world.service.spawn("test-flush", async move { drop(wal.flush_now().await) }));
        }
    }
}

/// Compacts while the owner works; a fate of the owner may strike at any of its steps.
fn compact(world: &World, owner: &Node) -> mink_rt::Task {
    let (view, compactor) = (world.clone(), compactor(world, owner, 50_000));
    world.service.spawn("test-compaction", async move {
        for _ in 0..=draw(&view, 2) {
            view.sleep(MS * u32::try_from(draw(&view, 300)).unwrap()).await;
            let end = compactor.run(&everything(&view, &BUCKETS)).await;
            // A flush may have come between, or the owner is no owner any more.
            let fine = matches!(
                end,
                CompactionEnd::Done
                    | CompactionEnd::Refused { .. }
                    | CompactionEnd::Missing { .. }
                    | CompactionEnd::Unavailable { .. }
            );
            assert!(fine, "{end:?}");
            if matches!(end, CompactionEnd::Refused { fenced: true, .. }) {
                return;
            }
        }
    })
}

async fn clean(world: &World, dead: u64) {
    let mut wal: BTreeSet<WalNumber> =
        world.meta.lock().unwrap().chains[&chain(dead)].seal.iter().copied().collect();
    let mut stream = BTreeSet::new();
    for range in BUCKETS.into_iter().flat_map(|n| world.ranges(bucket(n))) {
        match range.object {
            ObjectId::Wal { chain: of, number } if of == chain(dead) => drop(wal.insert(number)),
            ObjectId::Stream { chain: of, counter } if of == chain(dead) => drop(stream.insert(counter)),
            _ => {}
        }
    }
    for _ in 0..100 {
        let a = sweep_wal(world.store.as_ref(), &cluster(), chain(dead), &wal).await;
        let b = sweep_stream(world.store.as_ref(), &cluster(), chain(dead), &stream).await;
        if a.is_ok_and(|swept| swept.failed == 0) && b.is_ok_and(|swept| swept.failed == 0) {
            return;
        }
    }
    panic!("a sweep that never ends");
}

async fn history(mut world: World) {
    world.config.linger = MS * 5;
    world.config.untrimmed_objects_max = 20;
    world.config.own_object_bytes = 2_000;
    world.config.flush_bytes = 4_000;
    world.config.flush_age = MS * 300;
    world.seam.latency(Op::Put, MS, MS * 60);
    world.seam.latency(Op::Get, MS, MS * 20);
    // Some PUTs are late enough to be hedged.
    world.seam.tail(draw(&world, 3) * 4, MS * 500);
    world.seam.percent(draw(&world, 25));
    let mut others = Vec::new();
    let mut owner = world.node(1, &BUCKETS).await;
    for next in 2..6u64 {
        let chunks = 10 + draw(&world, 60);
        if draw(&world, 3) > 0 {
            others.push(compact(&world, &owner));
        }
        work(&world, &mut owner, chunks).await;
        let fate = [Fate::Dies, Fate::LivesOn, Fate::Stalls, Fate::Leaves];
        let fate = fate[usize::try_from(draw(&world, 4)).unwrap()];
        match fate {
            Fate::Dies => owner.wal.stop().await,
            Fate::Leaves => {
                owner.wal.drain().await.expect("nobody fenced it");
            }
            Fate::Stalls => world.seam.stall(chain(next - 1)),
            Fate::LivesOn => {}
        }
        if matches!(fate, Fate::LivesOn | Fate::Stalls) {
            let (zombie_world, mut zombie) = (world.clone(), owner);
            others.push(world.service.spawn("test-zombie", async move {
                work(&zombie_world, &mut zombie, 30).await;
                let end = zombie.wal.ended().await;
                assert!(matches!(end, WalEnd::Fenced { .. }), "{end}");
            }));
        }
        world.take_over(next - 1, next).await;
        owner = world.node(next, &BUCKETS).await;
        if draw(&world, 2) == 0 {
            clean(&world, next - 1).await;
        }
    }
    work(&world, &mut owner, 20).await;
    world.seam.open_gates();
    world.seam.percent(0);
    work(&world, &mut owner, 1).await;
    owner.wal.drain().await.expect("the last owner is not fenced");
    for other in others {
        assert_eq!(other.join().await, mink_rt::TaskEnd::Finished);
    }
    check(&world).await;
    for dead in 1..5 {
        clean(&world, dead).await;
    }
    check(&world).await;
    let left: usize = world.names("wal", 5).await.len();
    assert!(left <= 2, "the seal and the anchor alone: {left}");
}

async fn check(world: &World) {
    assert!(world.conflicts.lock().unwrap().is_empty(), "{:?}", world.conflicts.lock().unwrap());
    world.check_acked(&BUCKETS).await;
    for n in BUCKETS {
        // What the fold was given over all owners is every record exactly once (T-3).
        let recovery = world.recovery(bucket(n)).await;
        let counted = CountingFold.fold(&recovery.producers, &recovery.entries).unwrap();
        assert_eq!(counted, world.end(bucket(n)).0.to_string().as_bytes());
        assert!(recovery.epochs.windows(2).all(|pair| pair[0].epoch < pair[1].epoch));
        assert!(world.end(bucket(n)) > Offset(0));
    }
}

/// `MINK_SEEDS=1000` for a long run.
#[test]
fn i1_i2_i5_histories_of_owners_lose_nothing_and_never_ack_two_things_for_one_offset() {
    let seeds = std::env::var("MINK_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    for seed in 0..seeds {
        in_world(seed, history);
    }
}
