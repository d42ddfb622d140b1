//! A Kafka server in memory for tests: one node, idempotent producers, and faults by script.
//!
//! Lives on: the test's runtime.
//! Invariants: a producer's sequences are checked as a real server checks them; what the script says happens once, to the next produce request.
mod groups;

use bytes::{Bytes, BytesMut};
use mink_kafka_wire::messages::api_versions::{ApiVersion, ApiVersionsResponse};
use mink_kafka_wire::messages::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use mink_kafka_wire::messages::init_producer_id::InitProducerIdResponse;
use mink_kafka_wire::messages::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use mink_kafka_wire::messages::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use mink_kafka_wire::messages::produce::{
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use mink_kafka_wire::{
    ErrorCode, Frame, Message, OFFERED, Records, RequestBody, RequestHeader, decode_request, encode_response,
    frame_length,
};
use mink_record::kafka::{BatchHeader, set_offset_and_epoch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const PARTITIONS: i32 = 3;

/// What happens to a produce request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The connection breaks before the request is looked at.
    LoseRequest,
    /// It is stored, then the connection breaks.
    LoseAnswer,
    /// It is refused with this code and not stored.
    Refuse(ErrorCode),
    /// It is stored, and answered with this code.
    StoreAndRefuse(ErrorCode),
    /// It is taken as usual.
    Take,
}

#[derive(Debug, Default)]
pub(crate) struct Broker {
    pub(crate) faults: VecDeque<Fault>,
    pub(crate) logs: BTreeMap<i32, Vec<Bytes>>,
    /// Every produce request that was looked at: partition and batch.
    pub(crate) attempts: Vec<(i32, Bytes)>,
    producers: BTreeMap<(i32, i64), Vec<Seen>>,
    producer_ids: i64,
    /// By group, topic and partition.
    committed: BTreeMap<(String, String, i32), i64>,
    pub(crate) coordinator_lookups: u32,
    port: u16,
}

/// First sequence, records and base offset of a stored batch.
type Seen = (i32, i32, i64);
pub(crate) type Shared = Arc<Mutex<Broker>>;

/// Starts a server; its address and its state.
pub(crate) async fn start() -> (String, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker: Shared = Arc::new(Mutex::new(Broker { port: address.port(), ..Broker::default() }));
    let shared = Arc::clone(&broker);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, Arc::clone(&shared)));
        }
    });
    (address.to_string(), broker)
}

async fn serve(mut socket: TcpStream, broker: Shared) {
    loop {
        let mut prefix = [0; 4];
        if socket.read_exact(&mut prefix).await.is_err() {
            return;
        }
        let mut frame = BytesMut::zeroed(frame_length(prefix, 64 << 20).unwrap() as usize);
        if socket.read_exact(&mut frame).await.is_err() {
            return;
        }
        let (header, body) = RequestHeader::decode(frame.freeze()).unwrap();
        let request = decode_request(header.api_key, header.api_version, body).unwrap();
        let Some(answer) = broker.lock().unwrap().answer(&header, request) else { return };
        for segment in answer.segments() {
            if socket.write_all(segment).await.is_err() {
                return;
            }
        }
    }
}

fn framed<M: Message>(header: &RequestHeader, body: &M) -> Frame {
    encode_response(header.api_version, header.correlation_id, body).unwrap()
}

impl Broker {
    /// None: the connection breaks.
    fn answer(&mut self, header: &RequestHeader, request: RequestBody) -> Option<Frame> {
        Some(match request {
            RequestBody::ApiVersions(_) => framed(header, &api_versions()),
            RequestBody::Metadata(asked) => {
                let names = asked.topics.unwrap_or_default();
                let topics = names
                    .iter()
                    .filter_map(|topic| topic.name.clone())
                    .map(|name| Broker::topic(name.as_str()));
                framed(
                    header,
                    &MetadataResponse {
                        brokers: vec![MetadataResponseBroker {
                            node_id: 1,
                            host: "127.0.0.1".into(),
                            port: self.port.into(),
                            ..Default::default()
                        }],
                        controller_id: 1,
                        topics: topics.collect(),
                        ..Default::default()
                    },
                )
            }
            RequestBody::InitProducerId(_) => {
                self.producer_ids += 1;
                framed(
                    header,
                    &InitProducerIdResponse {
                        producer_id: self.producer_ids,
                        producer_epoch: 0,
                        ..Default::default()
                    },
                )
            }
            RequestBody::Produce(asked) => framed(header, &self.produce(&asked)?),
            RequestBody::ListOffsets(asked) => {
                let partition = &asked.topics[0].partitions[0];
                let end = self.end(partition.partition_index);
                let offset = if partition.timestamp == -1 { end } else { 0 };
                let found = ListOffsetsPartitionResponse {
                    partition_index: partition.partition_index,
                    offset,
                    ..Default::default()
                };
                let topic =
                    ListOffsetsTopicResponse { name: asked.topics[0].name.clone(), partitions: vec![found] };
                framed(header, &ListOffsetsResponse { topics: vec![topic], ..Default::default() })
            }
            RequestBody::Fetch(asked) => {
                let partition = &asked.topics[0].partitions[0];
                let batches = self.logs.get(&partition.partition).into_iter().flatten();
                let records: Records = batches
                    .filter(|batch| {
                        BatchHeader::parse(batch).unwrap().last_offset() >= partition.fetch_offset
                    })
                    .cloned()
                    .collect();
                let found = PartitionData {
                    partition_index: partition.partition,
                    high_watermark: self.end(partition.partition),
                    records: Some(records),
                    ..Default::default()
                };
                let topic = FetchableTopicResponse {
                    topic: asked.topics[0].topic.clone(),
                    partitions: vec![found],
                    ..Default::default()
                };
                framed(header, &FetchResponse { responses: vec![topic], ..Default::default() })
            }
            RequestBody::FindCoordinator(asked) => framed(header, &self.find_coordinator(&asked)),
            RequestBody::ListGroups(_) => framed(header, &Broker::list_groups()),
            RequestBody::DescribeGroups(asked) => framed(header, &Broker::describe_groups(&asked)),
            RequestBody::DeleteGroups(asked) => framed(header, &Broker::delete_groups(&asked)),
            RequestBody::OffsetCommit(asked) => framed(header, &self.commit(&asked)),
            RequestBody::OffsetFetch(asked) => framed(header, &self.committed(&asked)),
            other => panic!("not in this server: {other:?}"),
        })
    }

    fn topic(name: &str) -> MetadataResponseTopic {
        if name == "missing" {
            let error_code = ErrorCode::UnknownTopicOrPartition.code();
            return MetadataResponseTopic { error_code, name: Some(name.into()), ..Default::default() };
        }
        // Tables of one database are topics by their bare name.
        let name = name.strip_prefix("kafka.").unwrap_or(name);
        let partitions = (0..PARTITIONS).map(|partition_index| MetadataResponsePartition {
            partition_index,
            leader_id: 1,
            ..Default::default()
        });
        MetadataResponseTopic {
            name: Some(name.into()),
            partitions: partitions.collect(),
            ..Default::default()
        }
    }

    pub(crate) fn end(&self, partition: i32) -> i64 {
        let last = self.logs.get(&partition).and_then(|log| log.last());
        last.map_or(0, |batch| BatchHeader::parse(batch).unwrap().last_offset() + 1)
    }

    fn produce(&mut self, asked: &ProduceRequest) -> Option<ProduceResponse> {
        let topic = &asked.topic_data[0];
        let partition = &topic.partition_data[0];
        let batch = partition.records.clone().unwrap().into_bytes();
        let fault = self.faults.pop_front().unwrap_or(Fault::Take);
        if matches!(fault, Fault::LoseRequest) {
            return None;
        }
        self.attempts.push((partition.index, batch.clone()));
        let ended = match fault {
            Fault::Refuse(code) => Err(code),
            _ => self.append(partition.index, &batch),
        };
        let ended = match fault {
            Fault::LoseAnswer => return None,
            Fault::StoreAndRefuse(code) => Err(code),
            _ => ended,
        };
        let answer = PartitionProduceResponse {
            index: partition.index,
            error_code: ended.err().map_or(0, ErrorCode::code),
            base_offset: ended.unwrap_or(-1),
            log_append_time_ms: -1,
            ..Default::default()
        };
        let topic = TopicProduceResponse {
            name: topic.name.clone(),
            partition_responses: vec![answer],
            ..Default::default()
        };
        Some(ProduceResponse { responses: vec![topic], ..Default::default() })
    }

    fn append(&mut self, partition: i32, batch: &Bytes) -> Result<i64, ErrorCode> {
        let header = BatchHeader::parse(batch).unwrap();
        header.verify_checksum(batch).unwrap();
        let base = self.end(partition);
        if header.is_idempotent() {
            let known = self.producers.entry((partition, header.producer_id)).or_default();
            let recent = known.iter().rev().take(5);
            let mut repeats = recent
                .filter(|(first, count, _)| (*first, *count) == (header.base_sequence, header.record_count));
            if let Some((_, _, base)) = repeats.next() {
                return Ok(*base);
            }
            let next = known.last().map_or(header.base_sequence, |(first, count, _)| {
                i32::try_from((i64::from(*first) + i64::from(*count)) & 0x7fff_ffff).unwrap()
            });
            if header.base_sequence != next {
                return Err(ErrorCode::OutOfOrderSequenceNumber);
            }
            known.push((header.base_sequence, header.record_count, base));
        }
        let mut stored = BytesMut::from(&batch[..]);
        set_offset_and_epoch(&mut stored, base, 0).unwrap();
        self.logs.entry(partition).or_default().push(stored.freeze());
        Ok(base)
    }
}

fn api_versions() -> ApiVersionsResponse {
    let keys = OFFERED.iter().map(|offer| ApiVersion {
        api_key: offer.key.code(),
        min_version: offer.advertised.min,
        max_version: offer.advertised.max,
    });
    ApiVersionsResponse { api_keys: keys.collect(), ..Default::default() }
}
