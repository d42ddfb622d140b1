//! How long a takeover and the recovery behind it take, in round trips and bytes, and what a listing may do to them.
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mink_object::{FaultAnswer, GetError, ListCursor, ListPage, ObjectKey, ObjectStore, Op, StoreLayer};
use mink_types::{ObjectId, Offset, WalNumber};

use super::*;
use crate::testing::{When, World, bucket, chain, in_world};
use crate::{ChunkEnd, Entry};

const MS: Duration = Duration::from_millis(1);
const TRIP: Duration = Duration::from_millis(50);

/// A dead chain of `objects` objects of `bytes` bytes each, none of them trimmed.
async fn dead_chain(world: &mut World, objects: u64, bytes: usize) {
    world.config.linger = MS;
    world.config.flush_bytes = world.config.untrimmed_bytes_max;
    world.config.untrimmed_objects_max = 10_000;
    let mut node = world.node(1, &[1]).await;
    let body = Bytes::from(vec![7; bytes]);
    for _ in 0..objects {
        let entry = Entry { bytes: body.clone(), ..node.batch(1, 1) };
        assert_eq!(node.push(vec![entry]).await.await, Ok(ChunkEnd::Durable));
    }
    assert_eq!(node.wal.stats().trim, 0);
    node.wal.stop().await;
}

fn far_away(world: &World) {
    for op in [Op::Get, Op::Head, Op::List, Op::Put] {
        world.seam.latency(op, TRIP, TRIP);
    }
}

/// Two per object, and the headers of the probe.
fn gets_at_a_time(world: &World) -> usize {
    2 * world.config.reads_in_flight_max + world.config.puts_in_flight_max
}

/// Time, GETs and bytes read of a takeover of chain 1.
async fn take(world: &World) -> (Recovered, Duration, u64, u64) {
    let (begun, before) = (world.service.now(), world.store.stats());
    let found = world.takeover(1, 2).run().await.unwrap();
    let after = world.store.stats();
    let gets = after.requests_of(Op::Get) - before.requests_of(Op::Get);
    (found, world.service.now() - begun, gets, after.bytes(Op::Get) - before.bytes(Op::Get))
}

#[test]
fn eight_long_objects_take_three_round_trips_and_their_ends_only() {
    in_world(1, |mut world| async move {
        dead_chain(&mut world, 8, 8 << 20).await;
        far_away(&world);
        let (found, took, gets, bytes) = take(&world).await;
        assert_eq!((found.objects.len(), found.seal), (8, WalNumber(8)));
        // The listing, the objects with the probe behind them, the seal.
        assert!(took <= TRIP * 3 + MS, "{took:?}");
        assert!(gets <= 2 * 8 + 1 + 1 + 16, "{gets}");
        assert!(bytes < 8 * (300 << 10), "{bytes}");
    });
}

#[test]
fn five_hundred_short_objects_take_few_round_trips_more() {
    in_world(2, |mut world| async move {
        dead_chain(&mut world, 512, 128 << 10).await;
        far_away(&world);
        let (found, took, gets, bytes) = take(&world).await;
        assert_eq!((found.objects.len(), found.seal), (512, WalNumber(512)));
        assert!(took <= TRIP * (2 + 513_u32.div_ceil(128)) + MS, "{took:?}");
        assert!(gets <= 2 * 512 + 1 + 1 + 16, "{gets}");
        assert!(bytes < 512 * (20 << 10) + (1 << 20), "{bytes}");
        assert!(world.seam.open_most(Op::Get) <= gets_at_a_time(&world));
    });
}

#[test]
fn a_chain_that_never_held_anything_takes_three_round_trips() {
    in_world(3, |world| async move {
        far_away(&world);
        let (found, took, ..) = take(&world).await;
        assert_eq!((found.objects.len(), found.seal), (0, WalNumber(0)));
        assert!(took <= TRIP * 3 + MS, "the listing, a read with the probe, the seal: {took:?}");
    });
}

#[test]
fn without_a_listing_it_only_takes_longer() {
    in_world(4, |mut world| async move {
        dead_chain(&mut world, 100, 100 << 10).await;
        far_away(&world);
        world.seam.fault(Op::List, "", When::Before, FaultAnswer::Status(503), 1);
        let (found, took, ..) = take(&world).await;
        assert_eq!((found.objects.len(), found.seal), (100, WalNumber(100)));
        assert!(took <= TRIP * (2 + 100 / 16 + 4 + 2), "{took:?}");
    });
}

/// P-6: the bound is the storm, or five seconds beyond what the reads take without one, whichever is less.
#[test]
fn p_6_a_takeover_of_2000_objects_through_a_storm_of_503s_takes_seconds() {
    in_world(5, |mut world| async move {
        dead_chain(&mut world, 2_000, 64 << 10).await;
        far_away(&world);
        world.seam.throttle(30);
        let seam = Arc::clone(&world.seam);
        let service = world.service.clone();
        let calm = world.service.spawn("test-calm", async move {
            service.sleep(Duration::from_secs(20)).await;
            seam.throttle(0);
        });
        let (found, took, gets, _) = take(&world).await;
        assert_eq!((found.objects.len(), found.seal), (2_000, WalNumber(2_000)));
        assert!(took < Duration::from_secs(10), "{took:?}");
        // Of ten attempts three are in vain; nothing hammers.
        assert!(gets < 2 * 2_000 * 10 / 6, "{gets}");
        assert!(world.seam.open_most(Op::Get) <= gets_at_a_time(&world));
        assert_eq!(calm.join().await, mink_rt::TaskEnd::Finished);
        world.take_over(1, 2).await;
        assert_eq!(world.end(bucket(1)), Offset(2_000));
    });
}

#[test]
fn p_6_a_storm_of_nothing_but_503s_is_outlived() {
    in_world(6, |mut world| async move {
        dead_chain(&mut world, 20, 1 << 10).await;
        far_away(&world);
        world.seam.throttle(100);
        let seam = Arc::clone(&world.seam);
        let service = world.service.clone();
        drop(world.service.spawn("test-calm", async move {
            service.sleep(Duration::from_secs(20)).await;
            seam.throttle(0);
        }));
        let (found, took, gets, _) = take(&world).await;
        assert_eq!(found.seal, WalNumber(20));
        assert!(took < Duration::from_secs(24), "{took:?}");
        // 20 objects, the number behind and 16 headers, each asked for about a dozen times.
        assert!(gets < 16 * (20 + 1 + 16), "pauses grow: {gets}");
    });
}

/// A listing that has fallen behind or is plainly wrong.
#[derive(Debug)]
struct LyingList {
    inner: Arc<dyn ObjectStore>,
    /// Changes what is listed of a number: none leaves it out.
    lie: fn(u64, u64) -> Option<u64>,
}

#[async_trait]
impl StoreLayer for LyingList {
    fn below(&self) -> &dyn ObjectStore {
        &*self.inner
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let mut page = self.inner.list(prefix, cursor, limit).await?;
        page.entries.retain_mut(|entry| {
            let number: u64 = entry.key.file_name().parse().unwrap();
            let lie = (self.lie)(number, entry.len);
            entry.len = lie.unwrap_or(entry.len);
            lie.is_some()
        });
        Ok(page)
    }
}

#[test]
fn i1_a_listing_is_a_hint_and_nothing_that_it_says_is_believed() {
    let lies: [fn(u64, u64) -> Option<u64>; 6] = [
        |_, _| None,
        |number, len| (number < 5).then_some(len),
        |number, len| (number % 2 == 0).then_some(len),
        |_, len| Some(len + 1),
        |_, len| Some(len / 2),
        |_, _| Some(0),
    ];
    for bytes in [1 << 10, 100 << 10] {
        for lie in lies {
            in_world(7, |mut world| async move {
                dead_chain(&mut world, 20, bytes).await;
                let store = Arc::new(LyingList { inner: world.object_store(), lie });
                let found = Takeover { store, ..world.takeover(1, 2) }.run().await.unwrap();
                assert_eq!((found.objects.len(), found.seal), (20, WalNumber(20)));
                assert!(found.damaged.is_empty() && found.lost.is_empty());
            });
        }
    }
}

#[test]
fn the_recovery_of_buckets_reads_each_footer_once_and_many_at_a_time() {
    in_world(8, |mut world| async move {
        dead_chain(&mut world, 300, 10).await;
        world.take_over(1, 2).await;
        far_away(&world);
        let (reader, objects) = (world.reader(), world.ranges(bucket(1)));
        let (begun, before) = (world.service.now(), world.store.stats().requests_of(Op::Get));
        let recover = || reader.recover_bucket(bucket(1), &objects, Offset(300));
        let (one, other) = futures::join!(recover(), recover());
        assert_eq!((one.unwrap().entries.len(), other.unwrap().entries.len()), (300, 300));
        assert_eq!(world.store.stats().requests_of(Op::Get) - before, 300);
        let took = world.service.now() - begun;
        assert!(took <= TRIP * 300_u32.div_ceil(64) + MS * 5, "{took:?}");
        let id = ObjectId::Wal { chain: chain(1), number: WalNumber(0) };
        assert_eq!(objects[0].object, id);
    });
}
