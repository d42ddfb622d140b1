//! One GET for all who want the same: together, behind each other, with failures, with readers that give up.
use futures::future::join_all;

use super::shelf::{KIB, MIB, Shelf};
use super::*;

const ROOM: usize = 256 * MIB;

async fn gets_of(world: &World, readers: usize, skew: Duration) -> u64 {
    let mut shelf = Shelf::new(world, 128 * KIB);
    for _ in 0..2 {
        shelf.object(&[(1, 8 * 63)]).await;
    }
    let before = shelf.gets();
    let reader = shelf.reader(ROOM);
    let all = (0..readers).map(|n| {
        let (shelf, reader) = (&shelf, &reader);
        async move {
            world.sleep(skew * u32::try_from(n).unwrap()).await;
            shelf.read_all(reader, 1, MIB).await;
        }
    });
    join_all(all).await;
    let stats = reader.stats();
    assert!(stats.get_bytes < shelf.stored() * 102 / 100, "nothing twice: {stats:?}");
    println!("{readers} readers, {skew:?} apart: {} GETs, {stats:?}", shelf.gets() - before);
    shelf.gets() - before
}

#[test]
fn ten_readers_of_one_range_cost_the_gets_of_one() {
    let together = |readers: usize, skew: Duration| {
        let (tell, told) = std::sync::mpsc::channel();
        in_world(1, move |world| async move {
            world.seam.latency(Op::Get, Duration::from_millis(50), Duration::from_millis(50));
            tell.send(gets_of(&world, readers, skew).await).unwrap();
        });
        told.recv().unwrap()
    };
    let one = together(1, Duration::ZERO);
    assert_eq!(together(10, Duration::ZERO), one);
    let behind = together(10, Duration::from_millis(70));
    assert!(behind <= one + 2, "one behind the other: {behind} GETs, {one} for one");
}

#[test]
fn a_reader_that_gives_up_stops_nobody_else() {
    in_world(2, |world| async move {
        let mut shelf = Shelf::new(&world, 128 * KIB);
        shelf.object(&[(1, 8 * 20)]).await;
        world.seam.latency(Op::Get, Duration::from_millis(50), Duration::from_millis(50));
        let reader = shelf.reader(ROOM);
        let give_up = async |from: u64, after: u64| {
            let (request, sleep) = (shelf.request(1, Offset(from), MIB), Duration::from_millis(after));
            let read = std::pin::pin!(reader.read(&request));
            assert!(world.service.timeout(sleep, read).await.is_err(), "the block takes longer");
        };
        let (waits, other) = (reader.clone(), shelf.request(1, Offset(0), MIB));
        let (tell, told) = futures::channel::oneshot::channel();
        let task = world.service.spawn("waits", async move {
            let _ = tell.send(waits.read(&other).await);
        });
        // The footer is here, the block is on its way; one of the two who wait for it gives up.
        give_up(0, 70).await;
        assert_eq!(told.await.unwrap().unwrap().batches.len(), 8);
        drop(task);
        assert_eq!(shelf.gets(), 2);
        assert_eq!(reader.stats().joined, 2, "footer and block: {:?}", reader.stats());
        // With nobody waiting it lands all the same.
        give_up(100, 10).await;
        world.sleep(Duration::from_millis(100)).await;
        let gets = shelf.gets();
        shelf.read(&reader, 1, Offset(100), MIB).await;
        assert_eq!(shelf.gets(), gets);
        assert_eq!(reader.stats().in_flight_bytes, 0);
    });
}

#[test]
fn a_failure_is_told_to_all_who_wait_and_the_next_asks_anew() {
    in_world(3, |world| async move {
        let mut shelf = Shelf::new(&world, 128 * KIB);
        let id = shelf.object(&[(1, 8 * 20)]).await;
        let key = ObjectKey::object(&cluster(), id).to_string();
        let reader = shelf.reader(ROOM);
        world.seam.latency(Op::Get, Duration::from_millis(50), Duration::from_millis(50));
        for failing in ["footer", "block"] {
            world.seam.fault(Op::Get, &key, When::Before, FaultAnswer::Status(503), 1);
            let before = shelf.gets();
            let requests = (0..10).map(|_| shelf.request(1, Offset(0), MIB)).collect::<Vec<_>>();
            let ends = join_all(requests.iter().map(|request| reader.read(request))).await;
            for end in ends {
                assert_eq!(*end.unwrap_err().kind(), ErrorKind::Retry, "{failing}");
            }
            assert_eq!(shelf.gets() - before, 1, "{failing}");
            if failing == "footer" {
                reader.find_by_time(bucket(1), &shelf.ranges[&1], Offset(0), Timestamp(0)).await.unwrap();
            }
        }
        shelf.read_all(&reader, 1, MIB).await;
        assert_eq!(reader.stats().gets_failed, 2);
    });
}

#[test]
fn p_14_a_store_that_fails_midway_fails_what_it_did_not_bring_and_nothing_else() {
    in_world(4, |world| async move {
        let mut shelf = Shelf::new(&world, 128 * KIB);
        for _ in 0..3 {
            shelf.object(&[(1, 8 * 20), (2, 8)]).await;
        }
        let reader = shelf.reader(ROOM);
        shelf.read(&reader, 1, Offset(0), MIB).await;
        world.seam.down(true);
        // What is here is given, and an answer ends where the store's silence begins.
        let answer = reader.read(&shelf.request(1, Offset(4), MIB)).await.unwrap();
        assert_eq!(answer.next(), Some(Offset(8)));
        let error = reader.read(&shelf.request(1, Offset(8), MIB)).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Retry);
        world.seam.down(false);
        shelf.read_all(&reader, 1, MIB).await;
        shelf.read_all(&reader, 2, MIB).await;

        // A missing object in between: its own ranges fail, for both buckets, whoever reads ahead.
        let reader = shelf.reader(ROOM);
        let gone = shelf.ranges[&1][1].object;
        for (_, outcome) in world.memory.delete(&[ObjectKey::object(&cluster(), gone)]).await {
            assert!(outcome.is_done());
        }
        let (mut from, hole) = (Offset(0), shelf.ranges[&1][1].range);
        while from < hole.start {
            from = shelf.read(&reader, 1, from, MIB).await;
        }
        for (n, from) in [(1, hole.start), (2, Offset(8))] {
            let error = reader.read(&shelf.request(n, from, MIB)).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Missing { object: gone });
        }
        assert!(shelf.read(&reader, 1, hole.end, MIB).await > hole.end);
        assert!(shelf.read(&reader, 2, Offset(16), MIB).await > Offset(16));
    });
}

#[test]
fn p_14_a_damaged_block_fails_itself_and_not_those_that_came_with_it() {
    in_world(5, |world| async move {
        let mut shelf = Shelf::new(&world, 128 * KIB);
        let id = shelf.object(&[(1, 8 * 12)]).await;
        let key = ObjectKey::object(&cluster(), id);
        let whole = world.memory.get(&key, Span::Whole { max: 1 << 30 }).await.unwrap();
        let mut bad = whole.to_vec();
        bad[5 * MIB + 1_000] ^= 1;
        let put = async |bytes: Bytes| {
            world.memory.delete(std::slice::from_ref(&key)).await;
            assert!(world.memory.put(&key, &bytes.into()).await.is_done());
        };
        put(bad.into()).await;
        let reader = shelf.reader(ROOM);
        let mut from = Offset(0);
        while from < Offset(40) {
            from = shelf.read(&reader, 1, from, MIB).await;
        }
        let error = reader.read(&shelf.request(1, Offset(40), MIB)).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Corrupt { object: id });
        assert!(shelf.read(&reader, 1, Offset(48), MIB).await > Offset(48));
        // Damage is not kept: once the object is restored it is read again.
        put(whole).await;
        shelf.read_all(&reader, 1, MIB).await;
    });
}
