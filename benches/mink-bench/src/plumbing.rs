//! Single pieces of the hot paths that need no runtime.
//!
//! Lives on: the thread that measures.
use crate::batch::{Batch, LIMITS, batch};
use bytes::Bytes;
use mink_kafka_wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchableTopicResponse, PartitionData,
};
use mink_kafka_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
use mink_kafka_wire::{
    FRAME_PREFIX_LEN, Frame, Records, RequestBody, RequestHeader, decode_request, encode_request,
    encode_response,
};
use mink_log::{ProducerLimits, Recovered, Tablet, TabletLimits};
use mink_record::kafka::{BatchHeader, check_produced, set_append_time, set_offset_and_epoch};
use mink_types::{BucketEpoch, CommitTime, Limits};

/// Versions that librdkafka and the Java client speak today.
const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 12;

/// The checks of a batch before it may get an offset: header and checksum.
pub fn check(bytes: usize) -> impl FnMut() -> bool {
    let Batch { bytes, .. } = batch(bytes);
    move || check_produced(&bytes, LIMITS).is_ok()
}

/// Offset and epoch written into a batch.
pub fn place(bytes: usize) -> impl FnMut() -> bool {
    let mut bytes = batch(bytes).bytes.to_vec();
    let mut offset = 0;
    move || {
        offset += 1;
        set_offset_and_epoch(&mut bytes, offset, 3).is_ok()
    }
}

/// The time of appending written into a batch, its checksum kept right.
pub fn stamp(bytes: usize) -> impl FnMut() -> bool {
    let mut bytes = batch(bytes).bytes.to_vec();
    let mut time = 1_767_225_600_000;
    move || {
        time += 1;
        set_append_time(&mut bytes, time).is_ok()
    }
}

/// A batch of an idempotent producer gets its offset, and becomes durable.
pub fn tablet() -> impl FnMut() -> bool {
    let limits =
        TabletLimits { batch_bytes_max: 8 << 20, producers: ProducerLimits::from(&Limits::default()) };
    let recovered = Recovered { epoch: BucketEpoch(1), ..Recovered::default() };
    let mut tablet = Tablet::recover(recovered, limits)
        .unwrap_or_else(|error| unreachable!("an empty log opens: {error}"));
    let Batch { header, .. } = batch(16 << 10);
    let mut header = BatchHeader { producer_id: 5, producer_epoch: 0, base_sequence: 0, ..header };
    let mut now = 1_767_225_600_000;
    move || {
        now += 1;
        let ordered = tablet.append(&header, CommitTime(now)).is_ok();
        header.base_sequence += header.record_count;
        ordered && tablet.durable_to(tablet.next_offset())
    }
}

fn body_of(frame: &Frame) -> Bytes {
    frame.to_bytes().slice(FRAME_PREFIX_LEN..)
}

/// A Produce request for so many partitions of one topic, from its frame.
pub fn decode_produce(partitions: i32, bytes: usize) -> impl FnMut() -> bool {
    let records = Records::from(batch(bytes).bytes);
    let partition = |index| PartitionProduceData { index, records: Some(records.clone()) };
    let topic = TopicProduceData {
        name: "flights".into(),
        partition_data: (0..partitions).map(partition).collect(),
        ..TopicProduceData::default()
    };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..ProduceRequest::default() };
    decoding(
        encode_request(PRODUCE_VERSION, 7, Some(&"client".into()), &request).map(|frame| body_of(&frame)),
    )
}

/// A Fetch request for so many partitions of one topic, from its frame.
pub fn decode_fetch(partitions: i32) -> impl FnMut() -> bool {
    let partition =
        |partition| FetchPartition { partition, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic = FetchTopic {
        topic: "flights".into(),
        partitions: (0..partitions).map(partition).collect(),
        ..FetchTopic::default()
    };
    let request = FetchRequest { max_wait_ms: 500, topics: vec![topic], ..FetchRequest::default() };
    decoding(encode_request(FETCH_VERSION, 7, Some(&"client".into()), &request).map(|frame| body_of(&frame)))
}

fn decoding(body: Result<Bytes, mink_kafka_wire::EncodeError>) -> impl FnMut() -> bool {
    let body = body.unwrap_or_else(|error| unreachable!("our own request encodes: {error}"));
    move || match RequestHeader::decode(body.clone()) {
        Ok((header, rest)) => matches!(
            decode_request(header.api_key, header.api_version, rest),
            Ok(RequestBody::Produce(_) | RequestBody::Fetch(_))
        ),
        Err(_) => false,
    }
}

/// The answer to a Produce of so many partitions.
pub fn encode_produce(partitions: i32) -> impl FnMut() -> usize {
    let answer =
        |index| PartitionProduceResponse { index, base_offset: 77, ..PartitionProduceResponse::default() };
    move || {
        let topic = TopicProduceResponse {
            name: "flights".into(),
            partition_responses: (0..partitions).map(answer).collect(),
            ..TopicProduceResponse::default()
        };
        let response = ProduceResponse { responses: vec![topic], ..ProduceResponse::default() };
        encode_response(PRODUCE_VERSION, 7, &response).map_or(0, |frame| frame.len())
    }
}

/// The answer to a Fetch: so many partitions, each with so many batches.
pub fn encode_fetch(partitions: i32, batches: usize, bytes: usize) -> impl FnMut() -> usize {
    let Batch { bytes, .. } = batch(bytes);
    let answer = move |partition_index| PartitionData {
        partition_index,
        high_watermark: 77,
        records: Some(std::iter::repeat_n(&bytes, batches).cloned().collect()),
        ..PartitionData::default()
    };
    move || {
        let topic = FetchableTopicResponse {
            topic: "flights".into(),
            partitions: (0..partitions).map(&answer).collect(),
            ..FetchableTopicResponse::default()
        };
        let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
        encode_response(FETCH_VERSION, 7, &response).map_or(0, |frame| frame.len())
    }
}
