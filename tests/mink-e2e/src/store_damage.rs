//! P-14, P-1: on a real S3 server one WAL object is removed by hand and another one holds half of what was sent, though the store said
//! that all was well: both are named, their offsets alone are missing, and nothing of a later offset is given for them.

use mink_kafka_wire::ErrorCode;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::process::Output;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "t";
const RECORDS: usize = 10;
/// Batches, each in a WAL object of its own.
const BATCHES: usize = 6;
const REMOVED: usize = 1;
const HALVED: usize = 3;

#[tokio::test]
async fn p_14_p_1_a_removed_and_a_halved_object_cost_their_own_offsets_only() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "damage").await;
    let bucket = setup::bucket_of(&config);
    let mut node = config.flag("--wal-flush-age", "1h").start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let mut objects: Vec<String> = Vec::new();
    for number in 0..BATCHES {
        let plan = if number == HALVED { "put key=*/wal/* times=1: stored 50%" } else { "" };
        proxy.set_text(plan).unwrap();
        let records = values("r", number * RECORDS..(number + 1) * RECORDS);
        let offset = wire.produce(TOPIC, 0, &batch(records, None)).await;
        assert_eq!(offset, i64::try_from(number * RECORDS).unwrap());
        let listed = store.tool(&["list", &bucket, "e2e/mink/wal/"]).await.unwrap();
        let made: Vec<_> = listed.lines().filter(|key| !objects.iter().any(|known| known == key)).collect();
        assert_eq!(made.len(), 1, "one batch, one object: {made:?}");
        objects.push(made[0].to_owned());
    }
    node.process().kill9().await.unwrap();
    store.tool(&["delete", &bucket, &objects[REMOVED]]).await.unwrap();

    let config = node.config().clone();
    // What it says about the damage is looked at here.
    node.restart_as(config.allow_line("")).await.unwrap();
    let log = node.process().text(Output::Stderr).unwrap();
    for number in [REMOVED, HALVED] {
        let name = objects[number].rsplit('/').next().unwrap().trim_start_matches('0');
        let name = if name.is_empty() { "0" } else { name };
        let alarm = log.lines().find(|line| line.contains("ERROR") && line.contains(name));
        assert!(alarm.is_some(), "no alarm that names object {name}:\n{log}");
    }
    println!("status: {}", setup::status(node.http()).await["lost"]);

    let mut wire = Wire::connect(node.kafka()).await;
    for number in 0..BATCHES {
        let offset = i64::try_from(number * RECORDS).unwrap();
        let fetched = wire.fetch_open(TOPIC, 0, offset).await;
        if [REMOVED, HALVED].contains(&number) {
            let silent = [0, ErrorCode::OffsetOutOfRange.code()].contains(&fetched.code);
            assert!(!silent && fetched.records.is_empty(), "at {offset}: {fetched:?}");
            continue;
        }
        let expected: Vec<_> =
            (offset..).zip(values("r", number * RECORDS..(number + 1) * RECORDS)).collect();
        assert_eq!((fetched.code, fetched.records.get(..RECORDS)), (0, Some(&expected[..])), "at {offset}");
        // Never silent data of a later offset behind a lost one.
        let next = fetched.records.get(RECORDS).map(|(offset, _)| *offset);
        assert!(next.is_none_or(|next| next == offset + 10), "{fetched:?}");
    }
    let end = i64::try_from(BATCHES * RECORDS).unwrap();
    assert_eq!(wire.produce(TOPIC, 0, &batch(["on"], None)).await, end, "the log goes on");
    node.stop(SOON).await.unwrap();
}
