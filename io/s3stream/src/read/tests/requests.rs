//! GETs per GiB of catch-up readers, and what a reader that jumps about costs.
use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;

use super::shelf::{KIB, MIB, Shelf};
use super::*;

const PER_GIB_MAX: u64 = 150;
const ROOM: usize = 256 * MIB;

fn slow(world: &World) {
    world.seam.latency(Op::Get, Duration::from_millis(40), Duration::from_millis(60));
}

/// One bucket, in objects of its own of so many MiB.
fn one_bucket(seed: u64, objects: &'static [usize], batch: usize, room: usize) {
    in_world(seed, move |world| async move {
        let mut shelf = Shelf::new(&world, batch);
        for mib in objects {
            shelf.object(&[(1, mib * MIB / batch)]).await;
        }
        slow(&world);
        let reader = shelf.reader(room);
        shelf.read_all(&reader, 1, MIB).await;
        let per_gib = shelf.gets_per_gib(&format!("one partition, objects of {objects:?} MiB, room {room}"));
        assert!(per_gib <= PER_GIB_MAX, "{per_gib} GETs per GiB, {:?}", reader.stats());
        assert_eq!(reader.stats().ahead_wasted_bytes, 0);
        assert!(reader.stats().get_bytes < shelf.stored() * 105 / 100, "nothing twice: {:?}", reader.stats());
    });
}

#[test]
fn a_topic_of_one_partition_costs_150_gets_per_gib_at_most() {
    one_bucket(1, &[63, 63, 63, 63], 128 * KIB, ROOM);
    one_bucket(2, &[63, 63, 63, 63], 16 * KIB, ROOM);
}

#[test]
fn so_it_does_with_the_room_of_256_mib_of_memory() {
    one_bucket(3, &[63, 63, 63, 63], 128 * KIB, 32 * MIB);
}

#[test]
fn one_partition_after_compaction_costs_150_gets_per_gib_at_most() {
    one_bucket(4, &[8; 32], 128 * KIB, ROOM);
    one_bucket(5, &[17; 15], 128 * KIB, ROOM);
    one_bucket(6, &[33; 8], 128 * KIB, ROOM);
    one_bucket(7, &[8, 12, 20, 30, 40, 50, 62], 128 * KIB, ROOM);
}

/// 64 buckets whose flushes share objects, each read 1 MiB at a time, `at_once` of them at a time.
fn sixty_four(seed: u64, at_once: usize, shards: u64, room: usize) {
    // 63 MiB in all: an object is one PUT.
    sixty_four_in(seed, at_once, shards, room, &[8; 4]);
}

fn sixty_four_in(seed: u64, at_once: usize, shards: u64, room: usize, objects: &'static [usize]) {
    in_world(seed, move |world| async move {
        let mut shelf = Shelf::new(&world, 126 * KIB);
        for batches in objects {
            shelf.object(&(1..=64).map(|n| (n, *batches)).collect::<Vec<_>>()).await;
        }
        slow(&world);
        let reader = shelf.reader(room);
        let mut at: BTreeMap<u64, Offset> = (1..=64).map(|n| (n, Offset(0))).collect();
        // As one Kafka client does, whose partitions lie on several shards.
        while at.iter().any(|(n, at)| *at < shelf.end(*n)) {
            let order = (0..shards).flat_map(|shard| (1..=64u64).filter(move |n| *n % shards == shard));
            let from = at.clone();
            let reads = order.map(|n| {
                let (shelf, reader, from) = (&shelf, &reader, from[&n]);
                async move { (n, shelf.read(reader, n, from, MIB).await) }
            });
            let next: Vec<_> = stream::iter(reads).buffered(at_once).collect().await;
            at.extend(next);
        }
        let what =
            format!("64 partitions, {at_once} at once, {shards} shards, room {room}, objects {objects:?}");
        let per_gib = shelf.gets_per_gib(&what);
        if objects.len() > 4 {
            let most = objects.len() as u64 + 20;
            assert!(shelf.gets() <= most, "one GET an object, but for the first: {:?}", reader.stats());
        } else {
            assert!(per_gib <= PER_GIB_MAX, "{per_gib} GETs per GiB, {:?}", reader.stats());
        }
        assert!(reader.stats().get_bytes < shelf.stored() * 102 / 100, "nothing twice: {:?}", reader.stats());
    });
}

#[test]
fn sixty_four_partitions_read_together_cost_150_gets_per_gib_at_most() {
    sixty_four(8, 8, 1, ROOM);
    sixty_four(9, 1, 1, ROOM);
    sixty_four(10, 64, 1, ROOM);
    sixty_four(11, 16, 2, ROOM);
    sixty_four(12, 64, 8, ROOM);
}

#[test]
fn so_they_do_with_the_room_of_256_mib_of_memory() {
    sixty_four(15, 2, 1, 32 * MIB);
    sixty_four(16, 8, 1, 32 * MIB);
}

#[test]
fn small_flushes_are_fetched_whole_once_all_are_read_together() {
    // 8 MiB an object.
    sixty_four_in(17, 8, 1, ROOM, &[1; 32]);
}

#[test]
fn a_reader_that_jumps_about_costs_the_blocks_it_touches_and_their_footers() {
    in_world(13, |world| async move {
        let mut shelf = Shelf::new(&world, 16 * KIB);
        for _ in 0..2 {
            shelf.object(&[(1, 60 * 64)]).await;
        }
        let shared: Vec<_> = (2..66).map(|n| (n, 60)).collect();
        shelf.object(&shared).await;
        let reader = shelf.reader(ROOM);
        let mut asked = 0;
        for _ in 0..200 {
            let n = 1 + world.service.random_u64() % 65;
            let from = Offset(world.service.random_u64() % shelf.end(n).0);
            shelf.read(&reader, n, from, 16 * KIB).await;
            asked += 1;
        }
        let stats = reader.stats();
        let footers: u64 =
            [1, 2].iter().map(|n| u64::from(shelf.ranges[n][0].footer_length) + 32).sum::<u64>() * 2;
        println!("jumping about: {asked} reads of 16 KiB, {stats:?}");
        // A block is 1 MiB. What comes ahead is as much at most as readers of several buckets have used of that object.
        let used = stats.misses * MIB as u64 + stats.ahead_used_bytes;
        assert!(stats.get_bytes <= used * 2 + footers, "{stats:?}");
        assert!(stats.gets <= asked + 3, "{stats:?}");

        // In one bucket alone nothing comes ahead.
        let reader = shelf.reader(ROOM);
        for round in 0..50 {
            shelf.read(&reader, 1, Offset(round * 997 % shelf.end(1).0), 16 * KIB).await;
        }
        let stats = reader.stats();
        let footers = 2 * (u64::from(shelf.ranges[&1][0].footer_length) + 32);
        assert_eq!(stats.get_bytes, stats.misses * MIB as u64 + footers, "{stats:?}");
    });
}

#[test]
fn who_reads_on_is_never_fetched_more_than_he_has_read() {
    in_world(14, |world| async move {
        let mut shelf = Shelf::new(&world, 16 * KIB);
        shelf.object(&[(1, 63 * 64)]).await;
        let reader = shelf.reader(ROOM);
        let mut from = Offset(0);
        let footer = u64::from(shelf.ranges[&1][0].footer_length) + 32;
        for _ in 0..100 {
            from = shelf.read(&reader, 1, from, 64 * KIB).await;
            // Let what was sent for ahead arrive.
            world.sleep(Duration::from_millis(1)).await;
            let read = from.0 * 16 * KIB as u64;
            let fetched = reader.stats().get_bytes - footer;
            assert!(fetched <= 2 * read + 2 * MIB as u64, "{fetched} fetched for {read} read");
        }
    });
}
