//! Fetch without sessions: offsets, limits, epochs, and what is not there.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic, ReplicaState};
use mink_kafka_wire::{KafkaString, Uuid};

use super::{Asker, NOBODY, fill};

const BYTES_MAX: i32 = 1 << 20;
const WAIT_MS: i32 = 20;

pub(super) struct Target {
    pub(super) name: KafkaString,
    pub(super) id: Uuid,
}

pub(super) fn part(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition { partition, fetch_offset, partition_max_bytes: BYTES_MAX, ..FetchPartition::default() }
}

impl Target {
    pub(super) fn topic(&self, partitions: Vec<FetchPartition>) -> FetchTopic {
        FetchTopic { topic: self.name.clone(), topic_id: self.id, partitions }
    }
}

/// Without a session.
pub(super) fn request(version: i16, topics: Vec<FetchTopic>) -> FetchRequest {
    let base = FetchRequest::default();
    FetchRequest {
        replica_id: if version < 15 { -1 } else { base.replica_id },
        max_wait_ms: WAIT_MS,
        min_bytes: 1,
        max_bytes: BYTES_MAX,
        session_epoch: -1,
        topics,
        ..base
    }
}

async fn ask(run: &mut Asker, case: &str, request: FetchRequest) {
    let answer = run.try_ask(run.version, &request).await;
    run.note_fetch(case, answer);
}

pub(super) async fn target(run: &mut Asker, name: &str, partitions: i32) -> Target {
    let name = run.topic(name, partitions).await;
    let id = run.id_of(&name).await;
    Target { name, id }
}

pub(super) async fn fetch(run: &mut Asker) {
    let version = run.version;
    let a = target(run, "a", 3).await;
    fill(run, &a.name, 0, 3).await;
    fill(run, &a.name, 0, 2).await;
    fill(run, &a.name, 1, 2).await;
    let of = |partitions| request(version, vec![a.topic(partitions)]);
    for (case, offset) in [
        ("from 0", 0),
        ("from the middle of a batch", 1),
        ("from the second batch", 3),
        ("from the end", 5),
        ("beyond the end", 6),
        ("from -1", -1),
        ("from -2", -2),
    ] {
        ask(run, case, of(vec![part(0, offset)])).await;
    }
    ask(run, "an empty partition", of(vec![part(2, 0)])).await;
    ask(run, "all partitions", of(vec![part(0, 0), part(1, 0), part(2, 0)])).await;
    ask(run, "no such partition", of(vec![part(9, 0)])).await;
    ask(run, "partition -1", of(vec![part(-1, 0)])).await;
    ask(run, "one good, one out of range, one unknown", of(vec![part(0, 0), part(1, 99), part(9, 0)])).await;
    ask(run, "a partition twice", of(vec![part(1, 0), part(1, 1)])).await;
    ask(run, "a topic twice", request(version, vec![a.topic(vec![part(0, 0)]), a.topic(vec![part(1, 0)])]))
        .await;
    let nobody = Target { name: run.name("unknown"), id: NOBODY };
    ask(run, "unknown topic", request(version, vec![nobody.topic(vec![part(0, 0), part(1, 0)])])).await;
    let none = Target { name: KafkaString::default(), id: Uuid::ZERO };
    ask(run, "no name, no id", request(version, vec![none.topic(vec![part(0, 0)])])).await;
    let bad = Target { name: "a/b".into(), id: NOBODY };
    ask(run, "bad name", request(version, vec![bad.topic(vec![part(0, 0)])])).await;
    ask(run, "no topics", request(version, vec![])).await;
    ask(run, "no partitions", of(vec![])).await;
    limits(run, &a).await;
    readers(run, &a).await;
    run.damaged(of(vec![part(2, 0)])).await;
}

async fn limits(run: &mut Asker, a: &Target) {
    let of = |partitions| request(run.version, vec![a.topic(partitions)]);
    let limited =
        |partition, partition_max_bytes| FetchPartition { partition_max_bytes, ..part(partition, 0) };
    let cases = [
        ("partition of 1 byte", of(vec![limited(0, 1)])),
        ("partitions of 1 byte", of(vec![limited(0, 1), limited(1, 1)])),
        ("partition of 0 bytes", of(vec![limited(0, 0)])),
        ("partition of -1 bytes", of(vec![limited(0, -1)])),
        ("answer of 1 byte", FetchRequest { max_bytes: 1, ..of(vec![part(0, 0), part(1, 0)]) }),
        ("answer of 0 bytes", FetchRequest { max_bytes: 0, ..of(vec![part(0, 0)]) }),
        ("answer of -1 bytes", FetchRequest { max_bytes: -1, ..of(vec![part(0, 0)]) }),
        ("more bytes than there are", FetchRequest { min_bytes: BYTES_MAX, ..of(vec![part(0, 0)]) }),
        ("0 bytes at least", FetchRequest { min_bytes: 0, ..of(vec![part(2, 0)]) }),
        ("a wait of -1", FetchRequest { max_wait_ms: -1, ..of(vec![part(2, 0)]) }),
    ];
    for (case, request) in cases {
        ask(run, case, request).await;
    }
}

async fn readers(run: &mut Asker, a: &Target) {
    let version = run.version;
    let of = |partitions| request(version, vec![a.topic(partitions)]);
    ask(run, "read committed", FetchRequest { isolation_level: 1, ..of(vec![part(0, 0)]) }).await;
    ask(run, "isolation level 7", FetchRequest { isolation_level: 7, ..of(vec![part(0, 0)]) }).await;
    if version < 15 {
        ask(run, "a replica", FetchRequest { replica_id: 5, ..of(vec![part(0, 0)]) }).await;
        ask(run, "a debugger", FetchRequest { replica_id: -2, ..of(vec![part(0, 0)]) }).await;
    } else {
        let replica_state = ReplicaState { replica_id: 5, ..ReplicaState::default() };
        ask(run, "a replica", FetchRequest { replica_state, ..of(vec![part(0, 0)]) }).await;
    }
    if version >= 9 {
        for epoch in [0, 9, -7] {
            let part = FetchPartition { current_leader_epoch: run.epoch(epoch), ..part(0, 3) };
            ask(run, &format!("epoch {epoch}"), of(vec![part])).await;
        }
    }
    if version >= 12 {
        for epoch in [0, 9] {
            let part = FetchPartition { last_fetched_epoch: run.epoch(epoch), ..part(0, 3) };
            ask(run, &format!("last epoch {epoch}"), of(vec![part])).await;
        }
        let cluster_id = Some("another".into());
        ask(run, "another cluster", FetchRequest { cluster_id, ..of(vec![part(0, 3)]) }).await;
    }
    if version >= 11 {
        ask(run, "a rack", FetchRequest { rack_id: "r1".into(), ..of(vec![part(0, 3)]) }).await;
    }
}
