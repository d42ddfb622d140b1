//! A store that is away for minutes: the writer stops at its bounds, nothing fails, all goes on by itself.
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::FutureExt as _;
use futures::stream::FuturesUnordered;
use mink_object::Op;

use crate::ChunkEnd;
use crate::testing::{World, in_world};

const MS: Duration = Duration::from_millis(1);
const AWAY: Duration = Duration::from_mins(10);
/// PUTs of stream objects at a time.
const STREAM_PUTS_MAX: usize = 4;

/// Writes before, during and after an outage that `away` begins and ends.
fn outage(seed: u64, away: fn(&World, bool)) {
    in_world(seed, |mut world| async move {
        world.config.waiting_bytes_max = 4_000;
        world.config.untrimmed_objects_max = 40;
        world.config.linger = MS;
        world.seam.latency(Op::Put, MS * 5, MS * 10);
        let mut node = world.node(1, &[1]).await;
        for _ in 0..50 {
            node.write(1).await;
        }
        away(&world, true);
        let begun = world.service.now();
        let calm = {
            let world = world.clone();
            world.clone().service.spawn("test-calm", async move {
                world.sleep(AWAY).await;
                away(&world, false);
            })
        };
        // As many as go: a push that waits is a shard that waits, and with it the sockets.
        let (mut told, mut pushed) = (FuturesUnordered::new(), 0u32);
        while world.service.now() - begun < AWAY + Duration::from_secs(10) {
            told.push(node.append(1).await);
            pushed += 1;
            let stats = node.wal.stats();
            assert!(stats.in_flight <= world.config.puts_in_flight_max, "{stats:?}");
            assert!(stats.waiting_bytes <= world.config.waiting_bytes_max + 100, "{stats:?}");
            assert!(stats.untrimmed_objects <= world.config.untrimmed_objects_max, "{stats:?}");
            if world.service.now() - begun < AWAY {
                assert!(pushed < 1_000, "nothing stops the shard");
            }
            world.sleep(MS * 20).await;
        }
        assert!(node.wal.ended().now_or_never().is_none());
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
        let order = world.ack_order.lock().unwrap().clone();
        assert!(order.windows(2).all(|pair| pair[0].1 < pair[1].1), "acks in order, each once");
        // An attempt that is given up ends: those under way are one per number, a hedge or two, and stream objects.
        let most = world.config.puts_in_flight_max + STREAM_PUTS_MAX + 4;
        assert!(world.seam.open_most(Op::Put) <= most, "{} PUTs at a time", world.seam.open_most(Op::Put));
        node.wal.flush_now().await.unwrap();
        world.check_acked(&[1]).await;
        assert_eq!(calm.join().await, mink_rt::TaskEnd::Finished);
    });
}

#[test]
fn i20_ten_minutes_without_an_answer_stop_the_shards_and_nothing_piles_up() {
    outage(1, |world, away| world.seam.hang(away));
}

#[test]
fn i20_ten_minutes_of_broken_connections_stop_the_shards_and_nothing_piles_up() {
    outage(2, |world, away| world.seam.down(away));
}

#[test]
fn i20_a_store_that_is_gone_stops_the_shard_and_everything_is_acked_when_it_is_back() {
    in_world(10, |mut world| async move {
        world.config.lane_chunks = 2;
        world.config.waiting_bytes_max = 200;
        world.config.puts_in_flight_max = 3;
        world.config.linger = MS;
        let mut node = world.node(1, &[1]).await;
        world.seam.down(true);
        let mut told = FuturesUnordered::new();
        // The lanes fill up; then a push waits.
        let stuck = loop {
            let batch = node.batch(1, 1);
            let push = node.push(vec![batch]);
            match world.service.timeout(Duration::from_secs(5), push).await {
                Ok(end) => told.push(end),
                Err(_) => break told.len(),
            }
            assert!(told.len() < 1_000, "nothing stops the shard");
        };
        assert!(stuck > 3 && node.wal.stats().in_flight == 3, "{:?}", node.wal.stats());
        assert!(node.wal.stats().waiting_bytes <= 200 + 64);
        world.seam.down(false);
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
    });
}
