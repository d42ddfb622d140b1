//! Which APIs and versions a Mink server takes, and the decoding of a request under that table.
//!
//! Lives on: anywhere (pure).
//! Owns: the table. What a listener advertises is its own decision, never more than stands here.

use bytes::Bytes;

use crate::error::{DecodeError, Fault};
use crate::message::VersionRange;
use crate::messages::{ApiKey, RequestBody};

/// One API that a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub key: ApiKey,
    /// What ApiVersions may say.
    pub advertised: VersionRange,
    /// What is decoded: less than advertised for Produce alone, because librdkafka concludes from an advertised
    /// Produce 0 that the broker exists at all, and never sends it.
    pub decoded: VersionRange,
}

const fn offered(key: ApiKey, min: i16, max: i16) -> Offer {
    let range = VersionRange { min, max };
    Offer { key, advertised: range, decoded: range }
}

/// In the order of the keys, which is the order that ApiVersions answers in.
pub const OFFERED: &[Offer] = &[
    Offer {
        key: ApiKey::Produce,
        advertised: VersionRange { min: 0, max: 13 },
        decoded: VersionRange { min: 3, max: 13 },
    },
    offered(ApiKey::Fetch, 4, 18),
    offered(ApiKey::ListOffsets, 1, 11),
    offered(ApiKey::Metadata, 0, 13),
    offered(ApiKey::OffsetCommit, 2, 10),
    offered(ApiKey::OffsetFetch, 1, 10),
    offered(ApiKey::FindCoordinator, 0, 6),
    offered(ApiKey::JoinGroup, 0, 9),
    offered(ApiKey::Heartbeat, 0, 4),
    offered(ApiKey::LeaveGroup, 0, 5),
    offered(ApiKey::SyncGroup, 0, 5),
    offered(ApiKey::DescribeGroups, 0, 6),
    offered(ApiKey::ListGroups, 0, 5),
    offered(ApiKey::ApiVersions, 0, 4),
    offered(ApiKey::CreateTopics, 2, 7),
    offered(ApiKey::DeleteTopics, 1, 6),
    offered(ApiKey::DeleteRecords, 0, 2),
    offered(ApiKey::InitProducerId, 0, 5),
    offered(ApiKey::OffsetForLeaderEpoch, 2, 4),
    offered(ApiKey::DescribeAcls, 1, 3),
    offered(ApiKey::CreateAcls, 1, 3),
    offered(ApiKey::DeleteAcls, 1, 3),
    offered(ApiKey::DescribeConfigs, 1, 4),
    offered(ApiKey::AlterConfigs, 0, 2),
    offered(ApiKey::AlterReplicaLogDirs, 1, 2),
    offered(ApiKey::DescribeLogDirs, 1, 5),
    offered(ApiKey::CreatePartitions, 0, 3),
    offered(ApiKey::DeleteGroups, 0, 3),
    offered(ApiKey::ElectLeaders, 0, 2),
    offered(ApiKey::IncrementalAlterConfigs, 0, 1),
    offered(ApiKey::AlterPartitionReassignments, 0, 1),
    offered(ApiKey::ListPartitionReassignments, 0, 0),
    offered(ApiKey::OffsetDelete, 0, 0),
    offered(ApiKey::DescribeQuorum, 0, 2),
    offered(ApiKey::DescribeCluster, 0, 2),
    offered(ApiKey::DescribeProducers, 0, 0),
    offered(ApiKey::ListConfigResources, 0, 1),
    offered(ApiKey::DescribeTopicPartitions, 0, 0),
];

/// The line of the table for `key`, if there is one.
pub fn offer(key: ApiKey) -> Option<&'static Offer> {
    OFFERED.iter().find(|offer| offer.key == key)
}

/// Decodes the body of a request whose header said `api_key` and `version`.
///
/// An API or version that is not in [`OFFERED`] is an error, as is a body with a byte too few or too many. An
/// ApiVersions request of an unknown version must be answered all the same: look at [`offer`] first.
pub fn decode_request(api_key: i16, version: i16, body: Bytes) -> Result<RequestBody, DecodeError> {
    let refuse = |message, fault| Err(DecodeError { message, field: "api_key", fault });
    let Some(key) = ApiKey::from_code(api_key) else {
        return refuse("request", Fault::UnknownApi { api_key });
    };
    match offer(key) {
        None => refuse(key.name(), Fault::UnknownApi { api_key }),
        Some(offer) if !offer.decoded.contains(version) => {
            refuse(key.name(), Fault::UnsupportedVersion { api_key, version })
        }
        Some(_) => RequestBody::decode(key, version, mended(key, version, body)),
    }
}

/// A Metadata request for all topics as librdkafka (2.12 and before) writes it, in the form that the protocol has.
///
/// From version 9 on the absent list of topics is one byte, 0; librdkafka writes four. Such a body is three bytes too long, so the
/// three are dropped and the flags behind them mean what they were meant to. A sound body of that length has a tagged field of one
/// byte behind flags that are all unset; it is taken for the other only if field and content are 0 or 1 and 0, which nobody sends:
/// the request has no tagged fields.
fn mended(key: ApiKey, version: i16, body: Bytes) -> Bytes {
    /// First version with compact lengths.
    const COMPACT_FROM: i16 = 9;
    /// Last version with a flag for the operations allowed on the cluster, besides the two that all versions have.
    const CLUSTER_FLAG_UNTIL: i16 = 10;
    const WIDE_NULL: [u8; 4] = [0; 4];
    let flags = if version <= CLUSTER_FLAG_UNTIL { 3 } else { 2 };
    let no_tags = 1;
    let is_wide = key == ApiKey::Metadata
        && version >= COMPACT_FROM
        && body.len() == WIDE_NULL.len() + flags + no_tags
        && body
            .strip_prefix(&WIDE_NULL)
            .and_then(<[u8]>::split_last)
            .is_some_and(|(tags, flags)| *tags == 0 && flags.iter().all(|flag| *flag <= 1));
    if is_wide { body.slice(WIDE_NULL.len() - 1..) } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_each_key_once() {
        assert!(OFFERED.windows(2).all(|pair| pair[0].key < pair[1].key));
    }

    #[test]
    fn of_the_newest_kafka_only_versions_with_a_reason_are_left_out() {
        // ApiVersions 5 asks for a node by id; InitProducerId 6 is not stable in Kafka.
        let left_out = [ApiKey::ApiVersions, ApiKey::InitProducerId];
        let older = OFFERED.iter().filter(|offer| {
            let next = RequestBody::decode(offer.key, offer.decoded.max + 1, Bytes::new()).map(drop);
            !matches!(next.map_err(|error| error.fault), Err(Fault::UnsupportedVersion { .. }))
        });
        assert_eq!(older.map(|offer| offer.key).collect::<Vec<_>>(), left_out);
    }

    #[test]
    fn all_topics_are_understood_as_librdkafka_asks_for_them() {
        for (version, flags) in
            [(9, &[1, 0, 1][..]), (10, &[1, 0, 1]), (11, &[1, 1]), (12, &[1, 1]), (13, &[1, 1])]
        {
            let wide = [&[0, 0, 0, 0][..], flags, &[0]].concat();
            let RequestBody::Metadata(request) = decode_request(3, version, wide.clone().into()).unwrap()
            else {
                panic!("another request");
            };
            assert_eq!(request.topics, None);
            assert!(request.allow_auto_topic_creation && request.include_topic_authorized_operations);
            assert!(!request.include_cluster_authorized_operations);
            let proper = decode_request(3, version, wide[3..].to_vec().into()).unwrap();
            assert_eq!(proper, RequestBody::Metadata(request));
            // One byte more or less is malformed as ever (I19).
            for length in [wide.len() - 1, wide.len() + 1] {
                let mut other = wide.clone();
                other.resize(length, 0);
                assert!(decode_request(3, version, other.into()).is_err(), "{version} with {length} bytes");
            }
        }
    }

    #[test]
    fn a_sound_request_for_all_topics_with_a_tagged_field_of_tomorrow_stays_what_it_is() {
        // No topics, no flag set, one tagged field: number 5, one byte.
        let sound = Bytes::from_static(&[0, 0, 0, 0, 1, 5, 1, 7]);
        let RequestBody::Metadata(request) = decode_request(3, 9, sound).unwrap() else {
            panic!("another request");
        };
        assert!(request.topics.is_none() && !request.allow_auto_topic_creation);
    }

    /// Old librdkafka sends batches uncompressed to a broker that says it begins with Produce 3.
    #[test]
    fn k_12_produce_is_advertised_from_0_and_decoded_from_3() {
        let produce = offer(ApiKey::Produce).expect("offered");
        assert_eq!((produce.advertised.min, produce.decoded.min), (0, 3));
        for version in 0..3 {
            let refused = decode_request(0, version, Bytes::from_static(&[0; 64])).unwrap_err();
            assert_eq!(refused.fault, Fault::UnsupportedVersion { api_key: 0, version });
        }
    }

    #[test]
    fn what_is_not_offered_is_refused_whatever_its_body() {
        let refused = |key: i16, version| decode_request(key, version, Bytes::new()).unwrap_err().fault;
        assert_eq!(refused(999, 0), Fault::UnknownApi { api_key: 999 });
        assert_eq!(refused(24, 0), Fault::UnknownApi { api_key: 24 });
        for version in [0, 2, 14, -1, i16::MAX, i16::MIN] {
            assert_eq!(refused(0, version), Fault::UnsupportedVersion { api_key: 0, version });
        }
    }
}
