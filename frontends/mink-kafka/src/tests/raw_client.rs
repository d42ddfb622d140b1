//! A Kafka client that sends what it is told and sees every answer.
//!
//! Lives on: tests only.
use bytes::Bytes;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use mink_kafka_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use mink_kafka_wire::{Request, decode_response, encode_request};
use mink_record::kafka::{BatchBuilder, Codec, HEADER_BYTES, RecordRef, batches, records};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct Client {
    pub(super) stream: TcpStream,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.expect("accepted");
        stream.set_nodelay(true).expect("a socket");
        Client { stream }
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("sent");
    }

    pub(super) async fn send<R: Request>(&mut self, version: i16, correlation: i32, request: &R) {
        self.send_bytes(&frame(version, correlation, request)).await;
    }

    /// The next answer, or none if the connection was closed.
    pub(super) async fn next_frame(&mut self) -> Option<Bytes> {
        let length = self.stream.read_i32().await.ok()?;
        let mut body = vec![0; usize::try_from(length).expect("not negative")];
        self.stream.read_exact(&mut body).await.expect("whole");
        Some(body.into())
    }

    pub(super) async fn receive<R: Request>(&mut self, version: i16) -> (i32, R::Response) {
        let frame = self.next_frame().await.expect("not closed");
        decode_response::<R>(version, frame).expect("well-formed")
    }

    pub(super) async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.send(version, 77, request).await;
        let (correlation, response) = self.receive::<R>(version).await;
        assert_eq!(correlation, 77);
        response
    }

    /// Waits for the end of the connection; nothing may come before.
    pub(super) async fn assert_closed(&mut self) {
        assert_eq!(self.next_frame().await, None);
    }

    /// Produces one batch and gives the partition's answer.
    pub(super) async fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: Bytes,
    ) -> PartitionProduceResponse {
        let mut response = self.call(9, &produce(topic, partition, batch, -1)).await;
        response.responses.remove(0).partition_responses.remove(0)
    }
}

pub(super) fn frame<R: Request>(version: i16, correlation: i32, request: &R) -> Bytes {
    encode_request(version, correlation, Some(&"test".into()), request).expect("encodes").to_bytes()
}

pub(super) fn produce(topic: &str, partition: i32, batch: Bytes, acks: i16) -> ProduceRequest {
    ProduceRequest {
        acks,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: topic.into(),
            partition_data: vec![PartitionProduceData { index: partition, records: Some(batch.into()) }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

/// A batch of values, one millisecond apart from 1,000 on.
pub(super) fn batch(values: &[&str]) -> Bytes {
    batch_of(values.iter().map(|value| value.as_bytes()), Codec::None)
}

pub(super) fn batch_of<'a>(values: impl Iterator<Item = &'a [u8]>, codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (value, timestamp) in values.zip(1_000..) {
        builder.push(RecordRef { timestamp, value: Some(value), ..RecordRef::default() }).expect("fits");
    }
    builder.build(codec, None).expect("built")
}

/// The batch with nonsense for records, and a checksum that is right.
pub(super) fn damaged_records(batch: &[u8]) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[HEADER_BYTES..].fill(0xee);
    let checksum = !bytes[21..].iter().fold(u32::MAX, |crc, byte| {
        let step = |crc: u32, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        (0..8).fold(crc ^ u32::from(*byte), step)
    });
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

/// A fetch of partitions of one topic with their offsets, that waits for nothing.
pub(super) fn fetch(topic: &str, partitions: &[(i32, i64)]) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: partitions
                .iter()
                .map(|(partition, fetch_offset)| FetchPartition {
                    partition: *partition,
                    fetch_offset: *fetch_offset,
                    partition_max_bytes: 1 << 20,
                    ..FetchPartition::default()
                })
                .collect(),
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

/// Offsets and values of the records that a client at `from` sees in what it was sent.
pub(super) fn visible(sent: Bytes, from: i64) -> Vec<(i64, String)> {
    let mut seen = Vec::new();
    for found in batches(sent) {
        let (header, batch) = found.expect("whole batches");
        for record in records(&header, batch, 1 << 20).expect("sound") {
            let record = record.expect("sound");
            if record.offset >= from {
                let value = record.value.expect("a value");
                seen.push((record.offset, String::from_utf8(value.to_vec()).expect("text")));
            }
        }
    }
    seen
}
