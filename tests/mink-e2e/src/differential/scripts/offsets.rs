//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use super::{Asker, TIMEOUT_MS, fill};

/// Of the first record that `fill` writes.
const TIMESTAMP: i64 = 1_700_000_000_000;

fn listed(name: &KafkaString, partitions: &[(i32, i64)]) -> ListOffsetsTopic {
    let partition = |(partition_index, timestamp): &(i32, i64)| ListOffsetsPartition {
        partition_index: *partition_index,
        timestamp: *timestamp,
        ..ListOffsetsPartition::default()
    };
    ListOffsetsTopic { name: name.clone(), partitions: partitions.iter().map(partition).collect() }
}

fn list(topics: Vec<ListOffsetsTopic>) -> ListOffsetsRequest {
    ListOffsetsRequest { replica_id: -1, topics, timeout_ms: TIMEOUT_MS, ..ListOffsetsRequest::default() }
}

pub(super) async fn list_offsets(run: &mut Asker) {
    let a = run.topic("a", 3).await;
    fill(run, &a, 0, 3).await;
    fill(run, &a, 0, 2).await;
    for timestamp in
        (-8..=1).chain([TIMESTAMP - 1, TIMESTAMP, TIMESTAMP + 1, TIMESTAMP + 2, TIMESTAMP + 3, i64::MAX])
    {
        run.ask(&format!("timestamp {timestamp}"), list(vec![listed(&a, &[(0, timestamp)])])).await;
    }
    for timestamp in [-6, -5, -4, -3, -2, -1, 0] {
        run.ask(&format!("timestamp {timestamp}, empty"), list(vec![listed(&a, &[(2, timestamp)])])).await;
    }
    run.ask("no such partition", list(vec![listed(&a, &[(9, -1), (-1, -1), (0, -1)])])).await;
    run.ask("a partition twice", list(vec![listed(&a, &[(0, -1), (0, -2)])])).await;
    run.ask("a topic twice", list(vec![listed(&a, &[(0, -1)]), listed(&a, &[(1, -2)])])).await;
    run.ask("unknown topic", list(vec![listed(&run.name("unknown"), &[(0, -1)])])).await;
    run.ask("bad name", list(vec![listed(&"a/b".into(), &[(0, -1)])])).await;
    run.ask("no name", list(vec![listed(&KafkaString::default(), &[(0, -1)])])).await;
    run.ask("no topics", list(vec![])).await;
    run.ask("no partitions", list(vec![listed(&a, &[])])).await;
    run.ask("a replica", ListOffsetsRequest { replica_id: 5, ..list(vec![listed(&a, &[(0, -1)])]) }).await;
    run.ask("a debugger", ListOffsetsRequest { replica_id: -2, ..list(vec![listed(&a, &[(0, -1)])]) }).await;
    if run.version >= 2 {
        let of =
            |isolation_level| ListOffsetsRequest { isolation_level, ..list(vec![listed(&a, &[(0, -1)])]) };
        run.ask("read committed", of(1)).await;
        run.ask("isolation level 7", of(7)).await;
    }
    if run.version >= 4 {
        for epoch in [0, 5, -7] {
            let mut topic = listed(&a, &[(0, -1)]);
            topic.partitions[0].current_leader_epoch = run.epoch(epoch);
            run.ask(&format!("epoch {epoch}"), list(vec![topic])).await;
        }
    }
    run.damaged(list(vec![listed(&a, &[(0, -1)])])).await;
}

pub(super) async fn offset_for_leader_epoch(run: &mut Asker) {
    let a = run.topic("a", 2).await;
    fill(run, &a, 0, 3).await;
    let first = run.epoch(0);
    let epoch = |epoch: i32| if epoch < 0 { epoch } else { first + epoch };
    let of = |topic: &KafkaString, partition, current: i32, leader: i32| OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![OffsetForLeaderTopic {
            topic: topic.clone(),
            partitions: vec![OffsetForLeaderPartition {
                partition,
                current_leader_epoch: epoch(current),
                leader_epoch: epoch(leader),
            }],
        }],
    };
    run.ask("epoch 0", of(&a, 0, -1, 0)).await;
    run.ask("epoch 1", of(&a, 0, -1, 1)).await;
    run.ask("epoch -1", of(&a, 0, -1, -1)).await;
    run.ask("epoch -7", of(&a, 0, -1, -7)).await;
    run.ask("current epoch 0", of(&a, 0, 0, 0)).await;
    run.ask("current epoch 3", of(&a, 0, 3, 0)).await;
    run.ask("empty partition", of(&a, 1, -1, 0)).await;
    run.ask("no such partition", of(&a, 9, -1, 0)).await;
    run.ask("unknown topic", of(&run.name("unknown"), 0, -1, 0)).await;
    run.ask("no topics", OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![] }).await;
    run.ask("a replica", OffsetForLeaderEpochRequest { replica_id: 5, ..of(&a, 0, -1, 0) }).await;
    run.damaged(of(&a, 0, -1, 0)).await;
}

pub(super) async fn delete_records(run: &mut Asker) {
    let a = run.topic("a", 2).await;
    fill(run, &a, 0, 5).await;
    let topic = |name: &KafkaString, parts: &[(i32, i64)]| {
        let part = |(partition_index, offset): &(i32, i64)| DeleteRecordsPartition {
            partition_index: *partition_index,
            offset: *offset,
        };
        DeleteRecordsTopic { name: name.clone(), partitions: parts.iter().map(part).collect() }
    };
    let of = |topics| DeleteRecordsRequest { topics, timeout_ms: TIMEOUT_MS };
    run.ask("before 0", of(vec![topic(&a, &[(0, 0)])])).await;
    run.ask("before 2", of(vec![topic(&a, &[(0, 2)])])).await;
    run.ask("before 1 after 2", of(vec![topic(&a, &[(0, 1)])])).await;
    run.ask("beyond the end", of(vec![topic(&a, &[(0, 6)])])).await;
    run.ask("before -2", of(vec![topic(&a, &[(0, -2)])])).await;
    run.ask("before the end", of(vec![topic(&a, &[(0, -1)])])).await;
    run.ask("empty partition", of(vec![topic(&a, &[(1, -1)])])).await;
    run.ask("no such partition", of(vec![topic(&a, &[(9, 0), (-1, 0)])])).await;
    run.ask("unknown topic", of(vec![topic(&run.name("unknown"), &[(0, 0), (1, 0)])])).await;
    run.ask("bad name", of(vec![topic(&"a/b".into(), &[(0, 0)])])).await;
    run.ask("a partition twice", of(vec![topic(&a, &[(1, 0), (1, 0)])])).await;
    run.ask("no topics", of(vec![])).await;
    run.ask("no partitions", of(vec![topic(&a, &[])])).await;
    run.damaged(of(vec![])).await;
}
