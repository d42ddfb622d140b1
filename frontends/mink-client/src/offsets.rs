//! Finding offsets by position or time.
//!
//! Lives on: any tokio runtime.
use crate::client::{Client, check};
use crate::connection::ANSWER_TIMEOUT;
use crate::error::{ClientError, ErrorKind};
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};

/// Where to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The first offset that is kept.
    Earliest,
    /// The offset that the next record gets.
    Latest,
    /// The first record at or after this time, in ms since 1970.
    AtOrAfter(i64),
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundOffset {
    /// None when no record is at or after the time.
    pub offset: Option<i64>,
    /// The timestamp of the record found by time.
    pub timestamp: Option<i64>,
}

impl Client {
    /// Finds an offset of a partition.
    pub async fn offset(
        &self,
        topic: &str,
        partition: i32,
        position: Position,
    ) -> Result<FoundOffset, ClientError> {
        let timestamp = match position {
            Position::Earliest => -2,
            Position::Latest => -1,
            Position::AtOrAfter(time) => time,
        };
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: topic.into(),
                partitions: vec![ListOffsetsPartition {
                    partition_index: partition,
                    current_leader_epoch: -1,
                    timestamp,
                }],
            }],
            ..ListOffsetsRequest::default()
        };
        let request = &request;
        self.retrying(|| async move {
            let what = format!("partition {partition} of {topic}");
            let asked = async { self.leader(topic, partition).await?.call(request, ANSWER_TIMEOUT).await };
            let found = asked.await.and_then(|answer| {
                let found =
                    answer.topics.first().and_then(|topic| topic.partitions.first()).ok_or_else(|| {
                        ClientError::new(ErrorKind::Protocol, format!("{what}: not in the answer"))
                    })?;
                check(found.error_code, &what, None)?;
                let there = |value: i64| (value >= 0).then_some(value);
                Ok(FoundOffset { offset: there(found.offset), timestamp: there(found.timestamp) })
            });
            if found.is_err() {
                self.forget(topic).await;
            }
            found
        })
        .await
    }
}
