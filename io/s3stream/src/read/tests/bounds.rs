//! Memory of the caches: within their bounds whatever is read, and counted by what is really held.
use mink_rt::SimConfig;
use proptest::prelude::*;

use super::shelf::{KIB, MIB, Shelf};
use super::*;

#[test]
fn p_17_memory_is_flat_over_many_objects() {
    in_world(1, |world| async move {
        let mut shelf = Shelf::new(&world, 16 * KIB);
        let reader = shelf.reader_with(4 * MIB, 256 * KIB);
        let mut from = Offset(0);
        let mut levels = Vec::new();
        for n in 0..2_000 {
            shelf.object(&[(1, 64)]).await;
            while from < shelf.end(1) {
                from = shelf.read(&reader, 1, from, 512 * KIB).await;
            }
            let stats = reader.stats();
            levels
                .push(stats.kept_bytes + stats.footer_bytes + stats.lingering_bytes + stats.in_flight_bytes);
            // The store's own copy is not the reader's memory.
            let object = shelf.ranges.get_mut(&1).unwrap().pop().unwrap();
            world.memory.delete(&[ObjectKey::object(&cluster(), object.object)]).await;
            let last = ObjectRange {
                range: OffsetRange { start: object.range.end, end: object.range.end },
                ..object
            };
            *shelf.ranges.get_mut(&1).unwrap() = vec![last];
            assert!(stats.kept_bytes <= 3 * MIB as u64, "object {n}: {stats:?}");
        }
        let (before, after) = (levels[..100].iter().max().unwrap(), levels[100..].iter().max().unwrap());
        println!("most memory up to object 100: {before}, after it: {after}");
        assert!(*after <= before * 105 / 100);
    });
}

#[test]
fn i20_what_readers_hold_is_told_and_beyond_a_quarter_they_get_copies() {
    in_world(2, |world| async move {
        let mut shelf = Shelf::new(&world, 64 * KIB);
        for _ in 0..4 {
            shelf.object(&[(1, 16 * 16)]).await;
        }
        let reader = shelf.reader(16 * MIB);
        let mut slow = Vec::new();
        let mut from = Offset(0);
        while from < shelf.end(1) {
            let answer = reader.read(&shelf.request(1, from, MIB)).await.unwrap();
            from = answer.next().unwrap();
            // A client that takes nothing: one batch of each answer stays.
            slow.push(answer.batches[0].bytes.clone());
            let stats = reader.stats();
            assert!(stats.kept_bytes <= 12 * MIB as u64, "{stats:?}");
            assert!(stats.lingering_bytes <= 17 * MIB as u64, "{stats:?}");
        }
        let stats = reader.stats();
        assert!(stats.lingering_bytes > 4 * MIB as u64 && stats.copied_bytes > 0, "{stats:?}");
        drop(slow);
        assert_eq!(reader.stats().lingering_bytes, 0);
    });
}

#[test]
fn what_was_passed_leaves_before_what_others_use() {
    in_world(3, |world| async move {
        let mut shelf = Shelf::new(&world, 64 * KIB);
        shelf.object(&[(1, 16), (2, 16)]).await;
        for _ in 0..8 {
            shelf.object(&[(3, 16 * 8)]).await;
        }
        let reader = shelf.reader(32 * MIB);
        // Two blocks that somebody comes back to, in no order.
        for from in [3, 9, 1, 14] {
            for n in [1, 2] {
                shelf.read(&reader, n, Offset(from), 1).await;
            }
        }
        shelf.read_all(&reader, 3, MIB).await;
        let gets = shelf.gets();
        assert!(reader.stats().evicted > 0);
        for n in [1, 2] {
            shelf.read(&reader, n, Offset(5), 1).await;
        }
        assert_eq!(shelf.gets(), gets, "64 MiB went by, and they are still here: {:?}", reader.stats());
    });
}

#[test]
fn what_a_reader_has_passed_stays_for_one_behind_it_and_else_leaves_first() {
    in_world(4, |world| async move {
        let mut shelf = Shelf::new(&world, 64 * KIB);
        shelf.object(&[(1, 16 * 60)]).await;
        shelf.object(&[(2, 16 * 60)]).await;
        let reader = shelf.reader(96 * MIB);
        let mut at = [Offset(0); 3];
        // Two in bucket 1, one 12 MiB behind the other, and one that reads bucket 2.
        for turn in 0..75 {
            for (n, bucket, lag) in [(0, 1, 0), (1, 1, 12), (2, 2, 0)] {
                if turn >= lag && at[n] < shelf.end(bucket) {
                    at[n] = shelf.read(&reader, bucket, at[n], MIB).await;
                }
            }
            world.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(at, [shelf.end(1), shelf.end(1), shelf.end(2)]);
        let stats = reader.stats();
        println!("one behind another, one beside them: {stats:?}");
        assert!(stats.evicted > 0, "{stats:?}");
        assert!(stats.get_bytes < shelf.stored() * 101 / 100, "nothing twice: {stats:?}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn i20_the_caches_stay_within_their_bounds_and_give_the_right_bytes(
        seed in any::<u64>(),
        room in 64usize * KIB..4 * MIB,
        shapes in prop::collection::vec(prop::collection::vec((1u64..6, 1usize..40), 1..5), 1..8),
        steps in prop::collection::vec((1u64..6, any::<u16>(), 1usize..600_000, any::<bool>(), 0u8..30), 1..80),
    ) {
        let seed = SimConfig::seeded(seed).seed;
        in_world(seed, move |world| async move {
            let mut shelf = Shelf::new(&world, 10_000);
            for shape in shapes {
                let parts: std::collections::BTreeMap<u64, usize> = shape.into_iter().collect();
                shelf.object(&parts.into_iter().collect::<Vec<_>>()).await;
            }
            world.seam.latency(Op::Get, Duration::from_millis(1), Duration::from_millis(60));
            let reader = shelf.reader(room);
            let mut at = std::collections::BTreeMap::<u64, Offset>::new();
            let mut held = std::collections::VecDeque::new();
            for (n, place, bytes, jump, wait) in steps {
                if !shelf.ranges.contains_key(&n) {
                    continue;
                }
                let from = at.entry(n).or_insert(Offset(0));
                if jump || *from >= shelf.end(n) {
                    *from = Offset(u64::from(place) % shelf.end(n).0);
                }
                let answer = reader.read(&shelf.request(n, *from, bytes)).await.unwrap();
                assert_eq!(answer.batches[0].base_offset, *from);
                assert!(answer.batches.len() == 1 || answer.bytes <= bytes);
                *from = shelf.read(&reader, n, *from, bytes).await;
                held.push_back(answer);
                if held.len() > 3 {
                    held.pop_front();
                }
                world.sleep(Duration::from_millis(u64::from(wait))).await;
                let stats = reader.stats();
                assert!(stats.kept_bytes <= (room - room / 4) as u64, "{stats:?}");
            }
            drop(held);
            world.sleep(Duration::from_secs(11)).await;
            let stats = reader.stats();
            assert_eq!((stats.lingering_bytes, stats.in_flight_bytes), (0, 0), "{stats:?}");
        });
    }
}
