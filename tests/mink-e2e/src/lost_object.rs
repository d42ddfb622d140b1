//! P-14: one WAL object that somebody deleted by hand is noticed and named; everything else is served. The newest stream object is no
//! exception.
mod newest;

use std::path::PathBuf;

use mink_kafka_wire::ErrorCode;
use mink_testkit::process::Output;

use crate::setup::{self, Folder, wal_objects};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "t";

/// Appends batches (partition, first number, records) with one request and gives the one WAL object that it made.
async fn append(wire: &mut Wire, store: &std::path::Path, parts: &[(i32, usize, usize)]) -> PathBuf {
    let before = wal_objects(store);
    let batches: Vec<_> = parts
        .iter()
        .map(|(partition, first, end)| (*partition, batch(values("r", *first..*end), None)))
        .collect();
    let sent = wire.send_produce(TOPIC, &batches).await.unwrap();
    for answer in wire.receive_produce(sent, SOON).await.unwrap() {
        let (_, first, _) = parts.iter().find(|(partition, ..)| *partition == answer.partition).unwrap();
        assert_eq!((answer.code, answer.offset), (0, i64::try_from(*first).unwrap()), "{answer:?}");
    }
    let made: Vec<PathBuf> = wal_objects(store).into_iter().filter(|path| !before.contains(path)).collect();
    assert_eq!(made.len(), 1, "one request, one object: {made:?}");
    made[0].clone()
}

#[tokio::test]
async fn p_14_a_lost_object_costs_its_own_offsets_only() {
    let folder = Folder::new();
    let store = folder.join("data").join("objects");
    // One PUT a second: what arrives between two of them goes into one object.
    let config = setup::node(&folder).flag("--wal-flush-age", "1h").flag("--wal-puts-per-second", "1");
    let mut node = config.clone().start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 3).await;
    for partition in 0..3 {
        // Opens each partition: what follows is one request and one turn of the shard.
        wire.fetch_open(TOPIC, partition, 0).await;
    }
    append(&mut wire, &store, &[(0, 0, 10)]).await;
    append(&mut wire, &store, &[(1, 0, 5)]).await;
    let lost = append(&mut wire, &store, &[(0, 10, 20), (1, 5, 9)]).await;
    append(&mut wire, &store, &[(0, 20, 25)]).await;
    append(&mut wire, &store, &[(1, 9, 12)]).await;
    append(&mut wire, &store, &[(2, 0, 5)]).await;
    node.process().kill9().await.unwrap();
    std::fs::remove_file(&lost).unwrap();

    let config = config.allow_line("acknowledged data is lost").allow_line("acked data is missing");
    node.restart_as(config.allow_line("acknowledged data cannot be read")).await.unwrap();
    let number = lost.file_name().unwrap().to_str().unwrap().trim_start_matches('0').to_owned();
    let log = node.process().text(Output::Stderr).unwrap();
    let alarm = log.lines().find(|line| line.contains("ERROR") && line.contains("lost"));
    assert!(alarm.is_some_and(|line| line.contains(&number)), "no alarm that names object {number}:\n{log}");
    let status = setup::status(node.http()).await;
    let named = status["lost"].to_string();
    assert!(named.contains(&format!("WAL object {number} ")) && named.contains("10..20"), "{status}");

    let mut wire = Wire::connect(node.kafka()).await;
    for (partition, from, end) in [(0, 0, 10), (0, 20, 25), (1, 0, 5), (1, 9, 12), (2, 0, 5)] {
        let fetched = wire.fetch_open(TOPIC, partition, from).await;
        let expected: Vec<(i64, String)> = (from..end)
            .zip(values("r", usize::try_from(from).unwrap()..usize::try_from(end).unwrap()))
            .collect();
        let good = fetched.records.get(..expected.len());
        assert_eq!((fetched.code, good), (0, Some(&expected[..])), "partition {partition} from {from}");
        // Never silent data of a later offset behind a lost one.
        let next = fetched.records.get(expected.len()).map(|(offset, _)| *offset);
        assert!(next.is_none_or(|offset| offset == end), "{fetched:?}");
    }
    for (partition, offset) in [(0, 10), (0, 19), (1, 5)] {
        let fetched = wire.fetch(TOPIC, partition, offset).await.unwrap();
        let passed_over = [0, ErrorCode::OffsetOutOfRange.code()].contains(&fetched.code);
        assert!(!passed_over && fetched.records.is_empty(), "partition {partition} at {offset}: {fetched:?}");
    }
    // The log goes on behind the loss, and does so after another restart, which takes the loss for known.
    assert_eq!(wire.produce(TOPIC, 0, &batch(values("r", 25..26), None)).await, 25);
    let restarting = node.config().clone();
    node.process().kill9().await.unwrap();
    node.restart_as(restarting).await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.fetch_open(TOPIC, 0, 20).await.records.len(), 6);
}

/// P-1: an object that holds less than was sent is an alarm that names it, never silent data.
#[tokio::test]
async fn p_1_an_object_cut_short_is_an_alarm() {
    let folder = Folder::new();
    let stream = folder.join("data").join("objects").join("mink").join("stream");
    let config = setup::node(&folder).flag("--wal-flush-age", "300ms");
    let mut node = config.clone().start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 2).await;
    for partition in 0..2 {
        assert_eq!(wire.produce(TOPIC, partition, &batch(values("r", 0..1_000), None)).await, 0);
        setup::flushed(node.http(), SOON).await;
    }
    let objects = setup::objects(&stream);
    assert_eq!(objects.len(), 2, "{objects:?}");
    node.process().kill9().await.unwrap();
    let cut = std::fs::read(&objects[0]).unwrap();
    std::fs::write(&objects[0], &cut[..cut.len() / 2]).unwrap();

    node.restart_as(config.allow_line("")).await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let whole = wire.read_all(TOPIC, 1).await;
    assert_eq!(whole.len(), 1_000);
    let fetched = wire.fetch(TOPIC, 0, 0).await.unwrap();
    let silent = [0, ErrorCode::OffsetOutOfRange.code()].contains(&fetched.code);
    assert!(!silent && fetched.records.is_empty(), "{fetched:?}");
    let log = node.process().text(Output::Stderr).unwrap();
    let number = objects[0].file_name().unwrap().to_str().unwrap().trim_start_matches('0');
    let alarm = log.lines().find(|line| line.contains("ERROR") && line.contains("stream object"));
    assert!(alarm.is_some_and(|line| line.contains(number)), "no alarm that names the object:\n{log}");
}
