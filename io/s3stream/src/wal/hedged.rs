//! Hedged PUTs: a late one is overtaken, whatever the two of them are told, and a slow store is left alone.
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::FutureExt as _;
use futures::stream::FuturesUnordered;
use mink_object::{FaultAnswer, ObjectStore as _, Op};

use crate::testing::{Node, When, World, chain, in_world};
use crate::{ChunkEnd, WalEnd};

const MS: Duration = Duration::from_millis(1);
/// Writes until a PUT's lateness is known and a hedge is saved up.
const WARM: u64 = 40;

fn key(n: u64) -> String {
    format!("/{n:020}")
}

/// A node that has written `WARM` objects to a store that takes 50 ms.
async fn warm(world: &World) -> Node {
    world.seam.latency(Op::Put, MS * 50, MS * 50);
    let mut node = world.node(1, &[1]).await;
    for _ in 0..WARM {
        node.write(1).await;
    }
    assert_eq!((node.wal.stats().next, node.wal.stats().hedges), (WARM, 0));
    node
}

/// Writes once more and gives how long that took; the node lives, nothing was acked twice, all is readable.
async fn one_more(world: &World, node: &mut Node) -> Duration {
    let begun = world.service.now();
    node.write(1).await;
    let took = world.service.now() - begun;
    assert!(node.wal.ended().now_or_never().is_none());
    node.wal.flush_now().await.unwrap();
    assert_eq!(world.ack_order.lock().unwrap().len() as u64, WARM + 1);
    world.check_acked(&[1]).await;
    took
}

#[test]
fn a_stalled_put_is_overtaken_by_its_hedge() {
    in_world(1, |world| async move {
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), Duration::from_secs(20));
        let took = one_more(&world, &mut node).await;
        assert!(took >= MS * 150 && took < MS * 155, "late after 100 ms, then 50 ms: {took:?}");
        let stats = node.wal.stats();
        assert_eq!((stats.hedges, stats.hedges_won, stats.repeats), (1, 1, 0));
    });
}

#[test]
fn both_succeed_and_the_first_answer_is_one_ack() {
    in_world(2, |world| async move {
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), MS * 60);
        let took = one_more(&world, &mut node).await;
        assert!(took >= MS * 110 && took < MS * 115, "{took:?}");
        assert_eq!((node.wal.stats().hedges, node.wal.stats().hedges_won), (1, 0));
    });
}

#[test]
fn k_3_the_first_applied_and_lost_and_the_hedge_told_412_is_one_ack_and_no_step_down() {
    in_world(3, |world| async move {
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), MS * 60);
        world.seam.fault(Op::Put, &key(WARM), When::After, FaultAnswer::Lost, 1);
        let took = one_more(&world, &mut node).await;
        assert!(took < MS * 155, "the hedge's 412 is read back: {took:?}");
        assert_eq!((node.wal.stats().hedges, node.wal.stats().repeats), (1, 0));
    });
}

#[test]
fn k_4_conflicts_of_either_decide_nothing() {
    in_world(4, |world| async move {
        // The hedge is told 409 while the first is under way.
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), MS * 250);
        world.seam.fault(Op::Put, &key(WARM), When::Before, FaultAnswer::Status(409), 1);
        let took = one_more(&world, &mut node).await;
        assert!(took >= MS * 300 && took < MS * 305, "the first ends it: {took:?}");
        assert_eq!(node.wal.stats().repeats, 0);
    });
    in_world(5, |world| async move {
        // The first is told 409 when the hedge is under way, and nobody has created anything.
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), MS * 60);
        world.seam.fault(Op::Put, &key(WARM), When::Before, FaultAnswer::Status(409), 1);
        let took = one_more(&world, &mut node).await;
        assert!(took < MS * 155, "the hedge ends it: {took:?}");
        assert_eq!((node.wal.stats().hedges_won, node.wal.stats().repeats), (1, 0));
    });
    in_world(6, |world| async move {
        // Both: the attempt as a whole knows nothing and is repeated.
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), MS * 60);
        world.seam.fault(Op::Put, &key(WARM), When::Before, FaultAnswer::Status(409), 2);
        one_more(&world, &mut node).await;
        assert_eq!((node.wal.stats().hedges, node.wal.stats().repeats), (1, 1));
    });
}

#[test]
fn i20_a_store_that_becomes_slow_for_everything_gets_few_hedges() {
    in_world(7, |world| async move {
        let mut node = warm(&world).await;
        let (puts, hedges) = (node.wal.stats().next, node.wal.stats().hedges);
        world.seam.latency(Op::Put, MS * 800, MS * 1_500);
        let mut told = FuturesUnordered::new();
        for _ in 0..3_000 {
            told.push(node.append(1).await);
            world.sleep(MS * 10).await;
        }
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
        let (puts, hedges) = (node.wal.stats().next - puts, node.wal.stats().hedges - hedges);
        assert!(puts > 200, "{puts}");
        assert!(hedges <= 4, "{hedges} of {puts}: what was saved up, then such latencies are not late");
    });
}

#[test]
fn i20_an_outage_earns_no_hedge() {
    in_world(8, |world| async move {
        let mut node = warm(&world).await;
        world.seam.down(true);
        let mut told = FuturesUnordered::new();
        for _ in 0..50 {
            told.push(node.append(1).await);
            world.sleep(MS * 60).await;
        }
        world.sleep(Duration::from_mins(10)).await;
        assert!(node.wal.stats().hedges <= 2, "{:?}", node.wal.stats());
        world.seam.down(false);
        while let Some(end) = told.next().await {
            assert_eq!(end, Ok(ChunkEnd::Durable));
        }
    });
}

#[test]
fn the_budget_of_puts_pays_for_hedges() {
    in_world(9, |mut world| async move {
        world.config.puts_per_second = Some(20);
        world.seam.latency(Op::Put, MS * 5, MS * 5);
        world.seam.tail(6, Duration::from_secs(2));
        let mut node = world.node(1, &[1]).await;
        let begun = world.store.stats().requests_of(Op::Put);
        for _ in 0..60_000 {
            drop(node.append(1).await);
            world.sleep(MS).await;
        }
        let (puts, hedges) = (world.store.stats().requests_of(Op::Put) - begun, node.wal.stats().hedges);
        assert!(hedges > 2, "{hedges}");
        // Dropped requests are not counted by the store's meter: they are at most one per hedge. A stream object or two are.
        let paid = node.wal.stats().next + hedges;
        assert!(puts <= 20 * 60 + 20 + 4 && paid <= 20 * 60 + 20, "{puts} {paid} {hedges}");
    });
}

#[test]
fn i5_a_writer_that_hedges_into_a_seal_is_fenced_by_it() {
    in_world(10, |world| async move {
        let mut node = warm(&world).await;
        world.seam.late(Op::Put, &key(WARM), Duration::from_secs(5));
        world.seam.fault(Op::Put, &key(WARM), When::Before, FaultAnswer::Lost, 1);
        let told = node.append(1).await;
        world.sleep(MS * 10).await;
        world.take_over(1, 2).await;
        assert_eq!(told.await, Ok(ChunkEnd::Fenced));
        let by = crate::Sealer { chain: chain(2) };
        assert_eq!(node.wal.ended().await, WalEnd::Fenced { by: Some(by) });
    });
}

/// Both of a number's contenders are told 409 first: exactly one owns it in the end, and both know who.
#[test]
fn k_4_the_writer_and_the_taker_of_its_chain_are_both_told_409() {
    let acked = std::cell::Cell::new(0);
    for seed in 0..20 {
        let (tell, told_all) = std::sync::mpsc::channel();
        in_world(seed, |world| async move {
            world.seam.latency(Op::Put, MS, MS * 40);
            world.seam.fault(Op::Put, &key(0), When::Before, FaultAnswer::Status(409), 2);
            let mut node = world.node(1, &[1]).await;
            let told = node.append(1).await;
            let (recovered, _) = world.take_over(1, 2).await;
            let durable = told.await == Ok(ChunkEnd::Durable);
            assert_eq!(recovered.objects.len(), usize::from(durable), "acked and recovered, or neither");
            assert_eq!(recovered.seal.0, u64::from(durable));
            world.check_acked(&[1]).await;
            tell.send(durable).unwrap();
        });
        acked.set(acked.get() + usize::from(told_all.recv().unwrap()));
    }
    assert!((1..20).contains(&acked.get()), "either may win: {}", acked.get());
}

#[test]
fn four_coins_with_hedges_lose_nothing_and_ack_once() {
    let mut hedges = 0;
    for seed in 0..20 {
        let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let count = std::sync::Arc::clone(&sent);
        in_world(seed, |mut world| async move {
            world.config.linger = MS;
            world.seam.latency(Op::Put, MS * 5, MS * 20);
            world.seam.tail(7, MS * 400);
            world.seam.percent(5);
            let mut node = world.node(1, &[1, 2]).await;
            let mut told = FuturesUnordered::new();
            for n in 0..300u64 {
                told.push(node.append(n % 2 + 1).await);
                world.sleep(MS * 10).await;
            }
            while let Some(end) = told.next().await {
                assert_eq!(end, Ok(ChunkEnd::Durable));
            }
            node.wal.flush_now().await.unwrap();
            world.seam.percent(0);
            assert_eq!(world.ack_order.lock().unwrap().len(), 300);
            world.check_acked(&[1, 2]).await;
            count.store(node.wal.stats().hedges, std::sync::atomic::Ordering::Relaxed);
        });
        hedges += sent.load(std::sync::atomic::Ordering::Relaxed);
    }
    assert!(hedges > 10, "{hedges} hedges in all");
}
