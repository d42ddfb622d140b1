//! A bare Kafka connection: tests see every answer, every code, and whether the server closed.
//! Lives on: the test's tokio runtime.
//! Owns: its socket.
//! Invariants: nothing is retried but by the functions that say so.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_topics::DeleteTopicsRequest;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use mink_kafka_wire::{ErrorCode, Records, Request, decode_response, encode_request};
use mink_record::kafka::{BatchBuilder, Codec, ProducerStamp, RecordRef, batches, records};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PRODUCE: i16 = 9;
const FETCH: i16 = 12;
const CREATE_TOPICS: i16 = 7;
const DELETE_TOPICS: i16 = 5;
const INIT_PRODUCER_ID: i16 = 4;

/// Longer than anything a healthy server takes.
pub(crate) const SOON: Duration = Duration::from_secs(30);
const FETCH_BYTES_MAX: i32 = 8 << 20;
const INFLATED_BYTES_MAX: usize = 64 << 20;
/// Timestamp of a batch's first record; record n is n ms later.
const TIMESTAMP: i64 = 1_700_000_000_000;

/// The answer for one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) partition: i32,
    pub(crate) code: i16,
    pub(crate) offset: i64,
}

/// The answer to a fetch of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) code: i16,
    pub(crate) high_watermark: i64,
    /// Offsets and values, from the asked offset on.
    pub(crate) records: Vec<(i64, String)>,
}

/// A request that was sent and not answered yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent(i32);

#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    next_id: i32,
}

/// A batch of these values.
pub(crate) fn batch<V: AsRef<[u8]>>(
    values: impl IntoIterator<Item = V>,
    stamp: Option<ProducerStamp>,
) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (timestamp, value) in (TIMESTAMP..).zip(values) {
        let record = RecordRef { timestamp, key: None, value: Some(value.as_ref()), headers: &[] };
        builder.push(record).unwrap();
    }
    builder.build(Codec::None, stamp).unwrap()
}

/// Values that tell which batch they are of: `<name> <number>` for each number.
pub(crate) fn values(name: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{name} {number}")).collect()
}

impl Wire {
    pub(crate) async fn connect(address: &str) -> Self {
        Self::try_connect(address).await.expect("the server accepts")
    }

    /// To a server that may be gone by now.
    pub(crate) async fn try_connect(address: &str) -> io::Result<Self> {
        let stream = timeout(SOON, TcpStream::connect(address)).await.expect("the server accepts in time")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, next_id: 0 })
    }

    /// The port on this side.
    pub(crate) fn local_port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// How many requests were sent.
    pub(crate) fn requests(&self) -> usize {
        usize::try_from(self.next_id).unwrap()
    }

    async fn send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<Sent> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = encode_request(version, id, Some(&"e2e".into()), request).unwrap();
        timeout(SOON, self.stream.write_all(&frame.to_bytes())).await??;
        Ok(Sent(id))
    }

    async fn receive<R: Request>(
        &mut self,
        version: i16,
        sent: Sent,
        within: Duration,
    ) -> io::Result<R::Response> {
        let read = async {
            let length = self.stream.read_i32().await?;
            let mut frame = vec![0; usize::try_from(length).unwrap()];
            self.stream.read_exact(&mut frame).await?;
            io::Result::Ok(frame)
        };
        let frame = timeout(within, read).await??;
        let (id, body) = decode_response::<R>(version, frame.into()).expect("an answer that can be decoded");
        assert_eq!(id, sent.0, "answers come in the order of their requests");
        Ok(body)
    }

    pub(crate) async fn call<R: Request>(&mut self, version: i16, request: &R) -> io::Result<R::Response> {
        let sent = self.send(version, request).await?;
        self.receive::<R>(version, sent, SOON).await
    }

    /// Whether the server has sent something, or closed, within this time.
    pub(crate) async fn stirs_within(&self, bound: Duration) -> bool {
        timeout(bound, self.stream.peek(&mut [0])).await.is_ok()
    }

    pub(crate) async fn create_topic(&mut self, topic: &str, partitions: i32) {
        self.create_topic_with(topic, partitions, &[]).await;
    }

    /// With a configuration of its own.
    pub(crate) async fn create_topic_with(&mut self, topic: &str, partitions: i32, configs: &[(&str, &str)]) {
        let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
            name: (*name).into(),
            value: Some((*value).into()),
        };
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: topic.into(),
                num_partitions: partitions,
                replication_factor: 1,
                configs: configs.iter().map(config).collect(),
                ..CreatableTopic::default()
            }],
            timeout_ms: 30_000,
            ..CreateTopicsRequest::default()
        };
        let answer = self.call(CREATE_TOPICS, &request).await.unwrap();
        assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    }

    /// The error code of deleting a topic; 0 if it is gone.
    pub(crate) async fn delete_topic(&mut self, topic: &str) -> i16 {
        let request = DeleteTopicsRequest {
            topic_names: vec![topic.into()],
            timeout_ms: 30_000,
            ..DeleteTopicsRequest::default()
        };
        let answer = self.call(DELETE_TOPICS, &request).await.unwrap();
        answer.responses[0].error_code
    }

    /// A fresh idempotent producer: its id and epoch.
    pub(crate) async fn init_producer(&mut self) -> (i64, i16) {
        let request = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        let answer = self.call(INIT_PRODUCER_ID, &request).await.unwrap();
        assert_eq!(answer.error_code, 0, "{answer:?}");
        (answer.producer_id, answer.producer_epoch)
    }

    /// Sends one request with these batches, each for a partition of its own.
    pub(crate) async fn send_produce(&mut self, topic: &str, parts: &[(i32, Bytes)]) -> io::Result<Sent> {
        let request = ProduceRequest {
            acks: -1,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: topic.into(),
                partition_data: parts
                    .iter()
                    .map(|(index, batch)| PartitionProduceData {
                        index: *index,
                        records: Some(Records::from(batch.clone())),
                    })
                    .collect(),
                ..TopicProduceData::default()
            }],
            ..ProduceRequest::default()
        };
        self.send(PRODUCE, &request).await
    }

    pub(crate) async fn receive_produce(
        &mut self,
        sent: Sent,
        within: Duration,
    ) -> io::Result<Vec<Answered>> {
        let answer: ProduceResponse = self.receive::<ProduceRequest>(PRODUCE, sent, within).await?;
        let parts = answer.responses.into_iter().flat_map(|topic| topic.partition_responses);
        Ok(parts
            .map(|part| Answered { partition: part.index, code: part.error_code, offset: part.base_offset })
            .collect())
    }

    /// One batch, one answer.
    pub(crate) async fn try_produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &Bytes,
    ) -> io::Result<Answered> {
        let sent = self.send_produce(topic, &[(partition, batch.clone())]).await?;
        let answers = self.receive_produce(sent, SOON).await?;
        assert_eq!(answers.len(), 1, "{answers:?}");
        Ok(answers[0])
    }

    /// One batch that must be acked; tried again while the partition is not open yet. Its base offset.
    pub(crate) async fn produce(&mut self, topic: &str, partition: i32, batch: &Bytes) -> i64 {
        let deadline = Instant::now() + SOON;
        loop {
            let answer = self.try_produce(topic, partition, batch).await.unwrap();
            if answer.code == 0 {
                return answer.offset;
            }
            let early = is_early(answer.code) && Instant::now() < deadline;
            assert!(early, "{topic}/{partition}: {answer:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    pub(crate) async fn send_fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        wait: Duration,
    ) -> io::Result<Sent> {
        let request = FetchRequest {
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap(),
            min_bytes: 1,
            max_bytes: FETCH_BYTES_MAX,
            session_epoch: -1,
            topics: vec![FetchTopic {
                topic: topic.into(),
                partitions: vec![FetchPartition {
                    partition,
                    current_leader_epoch: -1,
                    fetch_offset: offset,
                    last_fetched_epoch: -1,
                    partition_max_bytes: FETCH_BYTES_MAX,
                    ..FetchPartition::default()
                }],
                ..FetchTopic::default()
            }],
            ..FetchRequest::default()
        };
        self.send(FETCH, &request).await
    }

    pub(crate) async fn receive_fetch(&mut self, sent: Sent, offset: i64) -> io::Result<Fetched> {
        let answer = self.receive::<FetchRequest>(FETCH, sent, SOON).await?;
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let part = answer.responses.into_iter().flat_map(|topic| topic.partitions).next();
        let part = part.expect("the partition that was asked for");
        let run = part.records.map(Records::into_bytes).unwrap_or_default();
        let mut found = Vec::new();
        for batch in batches(run) {
            let Ok((header, bytes)) = batch else { break }; // cut at the end, as the protocol allows
            header.verify_checksum(&bytes).unwrap();
            for record in records(&header, bytes, INFLATED_BYTES_MAX).unwrap() {
                let record = record.unwrap();
                if record.offset >= offset {
                    let value = record.value.unwrap_or_default();
                    found.push((record.offset, String::from_utf8(value.to_vec()).unwrap()));
                }
            }
        }
        Ok(Fetched { code: part.error_code, high_watermark: part.high_watermark, records: found })
    }

    pub(crate) async fn fetch(&mut self, topic: &str, partition: i32, offset: i64) -> io::Result<Fetched> {
        let sent = self.send_fetch(topic, partition, offset, Duration::ZERO).await?;
        self.receive_fetch(sent, offset).await
    }

    /// As `fetch`, tried again while the partition is not open yet.
    pub(crate) async fn fetch_open(&mut self, topic: &str, partition: i32, offset: i64) -> Fetched {
        let deadline = Instant::now() + SOON;
        loop {
            let fetched = self.fetch(topic, partition, offset).await.unwrap();
            if !is_early(fetched.code) || Instant::now() >= deadline {
                return fetched;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// All values of a partition, whose offsets must be dense from 0 to the high watermark (I2).
    pub(crate) async fn read_all(&mut self, topic: &str, partition: i32) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        loop {
            let from = i64::try_from(found.len()).unwrap();
            let fetched = self.fetch_open(topic, partition, from).await;
            assert_eq!(fetched.code, 0, "{topic}/{partition} from {from}: {fetched:?}");
            if fetched.high_watermark == from {
                return found;
            }
            assert!(!fetched.records.is_empty(), "{topic}/{partition}: nothing from {from} on: {fetched:?}");
            for (offset, value) in fetched.records {
                assert_eq!(
                    offset,
                    i64::try_from(found.len()).unwrap(),
                    "offsets of {topic}/{partition} are dense"
                );
                found.push(value);
            }
        }
    }
}

const POLL: Duration = Duration::from_millis(20);

/// Codes of a partition that is about to be served.
fn is_early(code: i16) -> bool {
    [ErrorCode::NotLeaderOrFollower, ErrorCode::LeaderNotAvailable, ErrorCode::UnknownTopicOrPartition]
        .iter()
        .any(|early| early.code() == code)
}

/// Whether this error says that the server closed the connection.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
    )
}
