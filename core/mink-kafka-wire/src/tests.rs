//! What holds for every message at every version: round trips, agreement with another implementation, hostile bytes.
//!
//! Lives on: tests only.
//! Owns: nothing. The messages come from `tests/samples`, so an API that the generator learns is tested by that.

#[path = "../tests/samples/mod.rs"]
mod samples;

mod oracle;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use crate::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use crate::messages::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use crate::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use crate::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use crate::*;
use samples::{Sample, Source, with_each_api};

/// Drawn messages per message and version.
const SAMPLES: u64 = 60;

fn body_of<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::new(M::NAME, M::is_flexible(version));
    message.encode_body(version, &mut writer).unwrap();
    writer.finish().unwrap().to_bytes().slice(FRAME_PREFIX_LEN..)
}

/// Calls `check` with each drawn message of a type: message, version, its bytes.
fn each_sample<M: Message + Sample>(samples: u64, mut check: impl FnMut(&M, i16, Bytes)) {
    for version in M::VERSIONS.iter() {
        for seed in 0..samples {
            let message = M::sample(&mut Source::new(seed), version);
            let body = body_of(&message, version);
            check(&message, version, body);
        }
    }
}

/// Runs one generic function over every request and response.
macro_rules! for_every_message {
    ($check:ident) => {{
        macro_rules! one {
            ($name:ident, $module:ident, $request:ident, $response:ident) => {
                $check::<messages::$module::$request>();
                $check::<messages::$module::$response>();
            };
        }
        with_each_api!(one);
    }};
}

#[test]
fn every_message_comes_back_equal_at_every_version() {
    fn check<M: Message + Sample>() {
        each_sample::<M>(SAMPLES, |message, version, body| {
            assert_eq!(M::decode_body(version, body).as_ref(), Ok(message), "{} {version}", M::NAME);
        });
    }
    for_every_message!(check);
}

#[test]
fn k_28_a_message_cut_short_at_any_byte_is_an_error() {
    fn check<M: Message + Sample>() {
        each_sample::<M>(8, |_, version, body| {
            for cut in 0..body.len() {
                let outcome = M::decode_body(version, body.slice(..cut));
                assert!(outcome.is_err(), "{} {version} cut at {cut} of {}", M::NAME, body.len());
            }
        });
    }
    for_every_message!(check);
}

#[test]
fn i19_a_byte_left_over_is_an_error() {
    fn check<M: Message + Sample>() {
        each_sample::<M>(8, |_, version, body| {
            let mut longer = BytesMut::from(&body[..]);
            longer.extend_from_slice(&[0]);
            let error = M::decode_body(version, longer.freeze()).unwrap_err();
            assert_eq!(error.fault, Fault::Trailing { count: 1 }, "{} {version}", M::NAME);
        });
    }
    for_every_message!(check);
}

#[test]
fn k_28_a_huge_count_at_any_place_neither_panics_nor_yields_a_huge_message() {
    fn check<M: Message + Sample>() {
        each_sample::<M>(8, |_, version, body| {
            for at in 0..body.len() {
                for hostile in
                    [&b"\x7f\xff\xff\xff"[..], b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff"]
                {
                    let mut mutated = BytesMut::from(&body[..at]);
                    mutated.extend_from_slice(hostile);
                    mutated.extend_from_slice(&body[at..]);
                    if let Ok(message) = M::decode_body(version, mutated.freeze()) {
                        // It fell into a number or a string; then it says the same when written again.
                        assert_eq!(M::decode_body(version, body_of(&message, version)), Ok(message));
                    }
                }
            }
        });
    }
    for_every_message!(check);
}

#[test]
fn tagged_fields_of_a_later_kafka_are_passed_over() {
    fn check<M: Message>() {
        for version in M::VERSIONS.iter().filter(|version| M::is_flexible(*version)) {
            // All at its default, so no tagged field of its own: the last byte is their count. Make it one, tag 99.
            let message = M::default();
            let body = body_of(&message, version);
            assert_eq!(body.last(), Some(&0));
            let mut later = BytesMut::from(&body[..body.len() - 1]);
            later.extend_from_slice(b"\x01\x63\x03abc");
            assert_eq!(M::decode_body(version, later.freeze()), Ok(message), "{} {version}", M::NAME);
        }
    }
    for_every_message!(check);
}

#[test]
fn i19_a_version_that_the_message_does_not_have_is_refused_both_ways() {
    fn check<M: Message + Sample>() {
        for version in [M::VERSIONS.min - 1, M::VERSIONS.max + 1, i16::MIN, i16::MAX] {
            let error = M::decode_body(version, Bytes::new()).unwrap_err();
            assert_eq!(error.fault, Fault::UnsupportedVersion { api_key: M::API_KEY.code(), version });
            let mut writer = Writer::new(M::NAME, false);
            let error = M::default().encode_body(version, &mut writer).unwrap_err();
            assert_eq!(error.fault, EncodeFault::UnsupportedVersion { version });
        }
    }
    for_every_message!(check);
}

#[test]
fn every_offered_version_passes_whole_frames_both_ways() {
    macro_rules! check {
        ($name:ident, $module:ident, $request:ident, $response:ident) => {
            let offered = offer(ApiKey::$name).map(|offer| offer.decoded);
            for version in offered.into_iter().flat_map(VersionRange::iter) {
                for seed in 0..SAMPLES {
                    let asked = messages::$module::$request::sample(&mut Source::new(seed), version);
                    let client = (seed % 2 == 0).then(|| KafkaString::from_static("a client"));
                    let frame = encode_request(version, 77, client.as_ref(), &asked).unwrap().to_bytes();
                    let (prefix, rest) = frame.split_first_chunk::<FRAME_PREFIX_LEN>().unwrap();
                    assert_eq!(frame_length(*prefix, 1 << 20), Ok(u32::try_from(rest.len()).unwrap()));
                    let (header, body) = RequestHeader::decode(frame.slice(FRAME_PREFIX_LEN..)).unwrap();
                    let expected = RequestHeader {
                        api_key: ApiKey::$name.code(),
                        api_version: version,
                        correlation_id: 77,
                        client_id: client,
                    };
                    assert_eq!(header, expected);
                    assert_eq!(decode_request(header.api_key, version, body), Ok(RequestBody::$name(asked)));

                    let answer = messages::$module::$response::sample(&mut Source::new(seed), version);
                    let frame = ResponseBody::$name(answer.clone()).encode(version, 77).unwrap().to_bytes();
                    let decoded = decode_response::<messages::$module::$request>(
                        version,
                        frame.slice(FRAME_PREFIX_LEN..),
                    );
                    assert_eq!(decoded, Ok((77, answer)));
                }
            }
        };
    }
    with_each_api!(check);
}

#[test]
fn produce_records_are_slices_of_the_frame() {
    let records = Records::from(Bytes::from(vec![7; 1000]));
    let partition_data = vec![PartitionProduceData { index: 3, records: Some(records.clone()) }];
    let topic_data = vec![TopicProduceData { name: "t".into(), partition_data, ..Default::default() }];
    let request = ProduceRequest { acks: -1, topic_data, ..Default::default() };
    for version in 3..=13 {
        let frame = encode_request(version, 1, None, &request).unwrap();
        let sent: Vec<_> = frame.segments().iter().map(|segment| segment.as_ptr()).collect();
        assert!(sent.contains(&records.clone().into_bytes().as_ptr()), "sent without a copy");
        let bytes = frame.to_bytes().slice(FRAME_PREFIX_LEN..);
        let (_, body) = RequestHeader::decode(bytes.clone()).unwrap();
        let RequestBody::Produce(decoded) = decode_request(0, version, body).unwrap() else {
            panic!("produce")
        };
        let received = decoded.topic_data[0].partition_data[0].records.clone().unwrap().into_bytes();
        assert_eq!(received, vec![7; 1000]);
        assert!(bytes.as_ptr_range().contains(&received.as_ptr()), "decoded without a copy");
    }
}

#[test]
fn a_fetch_answer_is_sent_as_the_batches_it_was_given() {
    let batches: Vec<_> = (0..3).map(|n| Bytes::from(vec![n; 100])).collect();
    let partition = PartitionData { records: Some(batches.iter().cloned().collect()), ..Default::default() };
    let partitions = vec![partition.clone(), PartitionData::default(), partition];
    let responses = vec![FetchableTopicResponse { topic: "t".into(), partitions, ..Default::default() }];
    let response = FetchResponse { responses, ..Default::default() };
    for version in 4..=18 {
        let frame = encode_response(version, 9, &response).unwrap();
        let sent: Vec<_> = frame.segments().iter().map(|segment| segment.as_ptr()).collect();
        let expected = sent.iter().filter(|at| batches.iter().any(|batch| batch.as_ptr() == **at)).count();
        assert_eq!(expected, 6);
        let framing: usize = frame.len() - 600;
        assert!(framing < 256, "{framing} bytes of framing fit the first buffer");
    }
}

#[test]
fn a_field_that_the_version_lacks_is_refused_when_set_unless_it_may_be_dropped() {
    let topics = vec![DeleteTopicState::default()];
    let by_id = DeleteTopicsRequest { topics, ..Default::default() };
    let error = encode_request(5, 1, None, &by_id).unwrap_err();
    assert_eq!(
        (error.field, error.fault),
        ("DeleteTopicsRequest.topics", EncodeFault::NotInVersion { version: 5 })
    );
    let by_name = DeleteTopicsRequest { topic_names: vec!["t".into()], ..Default::default() };
    encode_request(6, 1, None, &by_name).unwrap();
}

#[test]
fn null_is_refused_where_the_version_has_none() {
    let all = MetadataRequest { topics: None, ..Default::default() };
    let error = encode_request(0, 1, None, &all).unwrap_err();
    assert_eq!((error.field, error.fault), ("MetadataRequest.topics", EncodeFault::Required));
    let nameless = MetadataRequestTopic { name: None, ..Default::default() };
    let by_id = MetadataRequest { topics: Some(vec![nameless]), ..Default::default() };
    assert!(encode_request(9, 1, None, &by_id).is_err());
    encode_request(12, 1, None, &by_id).unwrap();
    let null_topics = MetadataRequest::decode_body(0, Bytes::from_static(b"\xff\xff\xff\xff")).unwrap_err();
    assert_eq!((null_topics.field, null_topics.fault), ("MetadataRequest.topics", Fault::Null));
}

#[test]
fn i20_large_honest_requests_stay_within_the_memory_budget() {
    let name = |n: u32| KafkaString::from(format!("t{n}"));
    let topics: Vec<_> =
        (0..20_000).map(|n| MetadataRequestTopic { name: Some(name(n)), ..Default::default() }).collect();
    let metadata = MetadataRequest { topics: Some(topics), ..Default::default() };
    for version in [1, 9, 12] {
        let decoded = MetadataRequest::decode_body(version, body_of(&metadata, version));
        assert_eq!(decoded.as_ref(), Ok(&metadata));
    }
    let deletion = DeleteTopicsRequest { topic_names: (0..20_000).map(name).collect(), ..Default::default() };
    for version in [1, 5] {
        let decoded = DeleteTopicsRequest::decode_body(version, body_of(&deletion, version));
        assert_eq!(decoded.as_ref(), Ok(&deletion));
    }
}

#[test]
fn golden_bytes_of_metadata_at_an_old_and_a_flexible_version() {
    let topics = Some(vec![MetadataRequestTopic { name: Some("logs".into()), ..Default::default() }]);
    let request = MetadataRequest { topics, ..Default::default() };
    let old = encode_request(4, 258, Some(&"cli".into()), &request).unwrap();
    let expected =
        b"\x00\x00\x00\x18\x00\x03\x00\x04\x00\x00\x01\x02\x00\x03cli\x00\x00\x00\x01\x00\x04logs\x01";
    assert_eq!(old.to_bytes(), &expected[..]);
    let flexible = encode_request(9, 258, Some(&"cli".into()), &request).unwrap();
    let expected =
        b"\x00\x00\x00\x19\x00\x03\x00\x09\x00\x00\x01\x02\x00\x03cli\x00\x02\x05logs\x00\x01\x00\x00\x00";
    assert_eq!(flexible.to_bytes(), &expected[..]);
}

proptest! {
    #[test]
    fn i19_random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let bytes = Bytes::from(bytes);
        macro_rules! check {
            ($name:ident, $module:ident, $request:ident, $response:ident) => {
                for version in messages::$module::$request::VERSIONS.iter() {
                    let _ = messages::$module::$request::decode_body(version, bytes.clone());
                    let _ = messages::$module::$response::decode_body(version, bytes.clone());
                }
            };
        }
        with_each_api!(check);
        let _ = RequestHeader::decode(bytes);
    }

    #[test]
    fn i19_frames_with_changed_bytes_never_panic(
        seed in any::<u64>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        macro_rules! check {
            ($name:ident, $module:ident, $request:ident, $response:ident) => {
                for version in messages::$module::$request::VERSIONS.iter() {
                    let request = messages::$module::$request::sample(&mut Source::new(seed), version);
                    let _ = messages::$module::$request::decode_body(version, changed(&body_of(&request, version), &changes));
                    let response = messages::$module::$response::sample(&mut Source::new(seed), version);
                    let _ = messages::$module::$response::decode_body(version, changed(&body_of(&response, version), &changes));
                }
            };
        }
        with_each_api!(check);
    }
}

fn changed(body: &Bytes, changes: &[(prop::sample::Index, u8)]) -> Bytes {
    let mut bytes = body.to_vec();
    for (index, value) in changes {
        if !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = *value;
        }
    }
    bytes.into()
}
