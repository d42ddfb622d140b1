//! Reading one partition by offset.
//!
//! Lives on: any tokio runtime.
//! Invariants: records come in offset order from the one asked for; a batch that holds it is given from there on (K-14).
use crate::client::{Client, check};
use crate::connection::ANSWER_TIMEOUT;
use crate::error::{ClientError, ErrorKind};
use bytes::Bytes;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use mink_record::kafka::{Record, batches, records};
use mink_record::{RecordError, RecordErrorKind};
use std::time::Duration;

/// Bytes that one batch may inflate to.
const INFLATED_BYTES_MAX: usize = 256 << 20;

/// A record that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRecord {
    pub offset: i64,
    /// Ms since 1970, as its producer said.
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    /// Names and values, in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// What one read brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadAnswer {
    pub records: Vec<ReadRecord>,
    /// Where to read on.
    pub next: i64,
    pub high_watermark: i64,
    pub log_start: i64,
    /// Bytes of the batches as stored.
    pub bytes: usize,
}

/// Reads one partition.
#[derive(Clone, Debug)]
pub struct Reader {
    client: Client,
    topic: String,
    partition: i32,
    bytes_max: i32,
}

impl Reader {
    /// A reader that takes up to 8 MiB at a time.
    pub fn new(client: &Client, topic: &str, partition: i32) -> Reader {
        Reader { client: client.clone(), topic: topic.into(), partition, bytes_max: 8 << 20 }
    }

    /// The same reader with another bound of bytes per read.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: i32) -> Reader {
        self.bytes_max = bytes_max;
        self
    }

    /// Records from `offset` on; waits up to `wait` for the first one.
    pub async fn read(&self, offset: i64, wait: Duration) -> Result<ReadAnswer, ClientError> {
        decode(self.read_batches(offset, wait).await?, offset)
    }

    /// Batches that hold records from `offset` on, as they came.
    pub(crate) async fn read_batches(&self, offset: i64, wait: Duration) -> Result<Fetched, ClientError> {
        self.client.retrying(|| self.try_read(offset, wait)).await
    }

    async fn try_read(&self, offset: i64, wait: Duration) -> Result<Fetched, ClientError> {
        let fetched = self.fetch(offset, wait).await;
        if fetched.is_err() {
            self.client.forget(&self.topic).await;
        }
        fetched
    }

    async fn fetch(&self, offset: i64, wait: Duration) -> Result<Fetched, ClientError> {
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: self.bytes_max,
            session_epoch: -1,
            topics: vec![FetchTopic {
                topic: self.topic.as_str().into(),
                partitions: vec![FetchPartition {
                    partition: self.partition,
                    current_leader_epoch: -1,
                    fetch_offset: offset,
                    last_fetched_epoch: -1,
                    log_start_offset: -1,
                    partition_max_bytes: self.bytes_max,
                    ..FetchPartition::default()
                }],
                ..FetchTopic::default()
            }],
            ..FetchRequest::default()
        };
        let what = format!("partition {} of {}", self.partition, self.topic);
        let leader = self.client.leader(&self.topic, self.partition).await?;
        let answer = leader.call(&request, wait + ANSWER_TIMEOUT).await?;
        check(answer.error_code, &what, None)?;
        let found = answer
            .responses
            .into_iter()
            .next()
            .and_then(|topic| topic.partitions.into_iter().next())
            .ok_or_else(|| ClientError::new(ErrorKind::Protocol, format!("{what}: not in the answer")))?;
        check(found.error_code, &what, None)?;
        Ok(Fetched {
            records: found.records.map(mink_kafka_wire::Records::into_bytes).unwrap_or_default(),
            high_watermark: found.high_watermark,
            log_start: found.log_start_offset,
        })
    }
}

/// An answer whose records nobody has looked at.
#[derive(Debug)]
pub(crate) struct Fetched {
    records: Bytes,
    high_watermark: i64,
    log_start: i64,
}

impl Fetched {
    /// Whether it brought anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Where to read on, by the headers of the batches alone.
    pub(crate) fn next(&self, from: i64) -> i64 {
        // What is damaged ends the run here, and `visit` says so.
        let headers = batches(self.records.clone()).map_while(Result::ok);
        headers.last().map_or(from, |(header, _)| from.max(header.last_offset() + 1))
    }

    /// Checks the batches, shows each record from `from` on, and says where to read on.
    pub(crate) fn visit(self, from: i64, mut show: impl FnMut(Record)) -> Result<i64, ClientError> {
        let mut next = from;
        for batch in batches(self.records) {
            let (header, batch) = match batch {
                Ok(batch) => batch,
                // A server may cut its answer by size; what is cut is asked for again.
                Err(error) if error.kind() == RecordErrorKind::Incomplete => break,
                Err(error) => return Err(damaged(&error)),
            };
            header.verify_checksum(&batch).map_err(|error| damaged(&error))?;
            next = next.max(header.last_offset() + 1);
            for record in records(&header, batch, INFLATED_BYTES_MAX).map_err(|error| damaged(&error))? {
                let record = record.map_err(|error| damaged(&error))?;
                if record.offset >= from {
                    show(record);
                }
            }
        }
        Ok(next)
    }
}

fn damaged(error: &RecordError) -> ClientError {
    ClientError::new(ErrorKind::Protocol, error.to_string())
}

fn decode(fetched: Fetched, from: i64) -> Result<ReadAnswer, ClientError> {
    let (high_watermark, log_start) = (fetched.high_watermark, fetched.log_start);
    let (mut records, bytes) = (Vec::new(), fetched.records.len());
    let next = fetched.visit(from, |record| {
        let headers = record.headers.iter().map(|header| (header.key, header.value)).collect();
        records.push(ReadRecord {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key,
            value: record.value,
            headers,
        });
    })?;
    Ok(ReadAnswer { records, next, high_watermark, log_start, bytes })
}
