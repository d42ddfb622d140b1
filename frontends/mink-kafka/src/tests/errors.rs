//! Every situation that a client is told of by an error code, with the test that meets it.
//!
//! Lives on: tests only.
//! Invariants: a row names a test that is there and that speaks of the row's code, by number or name; codes that no other test asks
//! for are asked for here.
use super::fake::{Behaviour, start};
use super::raw_client::{Client, batch};
use mink_api::AdminError;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_router::AppendError;
use mink_types::{BucketId, BucketIndex, ProducerEpoch, ProducerId, Sequence};
use std::time::Duration;

const FETCH: &str = include_str!("fetch.rs");
const PRODUCE: &str = include_str!("produce.rs");
const ADMIN: &str = include_str!("admin.rs");
const ALTER: &str = include_str!("alter.rs");
const DESCRIBE: &str = include_str!("describe.rs");
const SESSIONS: &str = include_str!("fetch_sessions.rs");
const HOSTILE: &str = include_str!("hostile.rs");
const CONFIGS: &str = include_str!("topic_configs.rs");
const IDS: &str = include_str!("topic_ids.rs");
const LIFE: &str = include_str!("groups/life.rs");
const WAITING: &str = include_str!("groups/waiting.rs");
const BROKERS: &str = include_str!("broker_configs.rs");
const PRODUCERS: &str = include_str!("producers.rs");
const HERE: &str = include_str!("errors.rs");
const JOINING: &str = include_str!("../../../../core/mink-group/src/tests/joining.rs");
const SYNCING: &str = include_str!("../../../../core/mink-group/src/tests/syncing.rs");
const STATICS: &str = include_str!("../../../../core/mink-group/src/tests/statics.rs");
const OFFSETS: &str = include_str!("../../../../core/mink-group/src/tests/offsets.rs");
const TABLET: &str = include_str!("../../../../core/mink-log/src/tablet/tests.rs");

/// Situation, code, and the test that meets it. What a pure core decides is tested there; that its error has the code is tested here
/// and in `error_code.rs`.
const ROWS: [(&str, i16, &str, &str); 66] = [
    ("not the owner", 6, PRODUCE, "what_was_sent_behind_a_curable_refusal_fails_too_and_a_retry_is_taken"),
    ("not the owner, and who is", 6, IDS, "who_comes_to_the_wrong_node_is_told_the_leader_and_its_address"),
    ("no leader yet", 5, ADMIN, "k_19_a_topic_without_leaders_yet_is_retried_by_clients"),
    ("no such topic", 3, PRODUCE, "t_7_a_topic_that_was_dropped_takes_nothing_and_its_successor_is_another"),
    ("no such id", 100, IDS, "k_18_k_26_an_id_never_means_the_topic_that_was_created_anew_under_the_name"),
    ("a session of names and ids", 106, SESSIONS, "a_session_keeps_to_names_or_to_ids"),
    ("no room for a batch in time", 7, PRODUCE, "i7_only_a_batch_that_found_no_room_times_out"),
    ("too many producers", 19, HERE, "what_the_log_refuses_has_a_code_of_its_own"),
    ("the store is down for a read", 56, FETCH, "an_error_is_answered_at_once"),
    (
        "outcome unknown: closed",
        0,
        PRODUCE,
        "i7_an_append_that_is_lost_before_it_was_ordered_closes_the_connection",
    ),
    ("wrong checksum", 2, PRODUCE, "a_damaged_batch_is_corrupt_and_zstd_needs_a_client_that_knows_it"),
    ("no record to be stored", 87, PRODUCE, "a_batch_that_can_never_be_accepted_fails_alone"),
    (
        "no key on a compacted topic",
        87,
        CONFIGS,
        "p_22_a_record_without_a_key_is_refused_on_a_compacted_topic_and_its_batch_with_it",
    ),
    ("more than is inflated", 10, CONFIGS, "i19_what_cannot_be_opened_is_refused_on_a_compacted_topic"),
    ("batch too large", 10, PRODUCE, "p_20_a_batch_beyond_max_message_bytes_uses_no_offset"),
    ("time out of bounds", 32, HERE, "what_a_batch_must_not_be_has_a_code_of_its_own"),
    ("transactional batch", 48, HERE, "what_a_batch_must_not_be_has_a_code_of_its_own"),
    ("control batch", 87, HERE, "what_a_batch_must_not_be_has_a_code_of_its_own"),
    ("bad acks", 21, PRODUCE, "bad_acks_refuse_every_partition_and_store_nothing"),
    (
        "codec that the version has not",
        76,
        PRODUCE,
        "a_damaged_batch_is_corrupt_and_zstd_needs_a_client_that_knows_it",
    ),
    ("old message format", 43, PRODUCE, "p_24_old_formats_are_refused_and_the_connection_serves_on"),
    ("sequence gap", 45, HERE, "what_the_log_refuses_has_a_code_of_its_own"),
    (
        "repeat within the window",
        0,
        TABLET,
        "k_9_any_of_the_last_five_repeated_in_any_order_gives_its_first_offset",
    ),
    (
        "repeat older than the window",
        45,
        TABLET,
        "t_10_a_repeat_older_than_the_window_is_out_of_order_and_changes_nothing",
    ),
    (
        "first batch is not the first",
        45,
        TABLET,
        "k_10_a_log_that_never_held_a_record_takes_only_a_first_batch",
    ),
    ("forgotten producer", 0, TABLET, "k_10_a_log_whose_records_were_all_dropped_did_hold_one"),
    ("old producer epoch", 47, HERE, "what_the_log_refuses_has_a_code_of_its_own"),
    ("no producer id yet", 14, HERE, "what_administration_refuses_has_a_code_of_its_own"),
    ("no producer id from here", 15, HERE, "what_administration_refuses_has_a_code_of_its_own"),
    ("outside of the log", 1, FETCH, "outside_of_the_log_is_out_of_range_without_positions"),
    ("older epoch", 74, FETCH, "the_leader_epoch_that_a_client_believes_in_is_checked"),
    ("newer epoch", 75, FETCH, "the_leader_epoch_that_a_client_believes_in_is_checked"),
    ("offsets of a bucket that opens", 78, HERE, "offsets_of_a_bucket_that_opens_are_not_available_yet"),
    (
        "no such session",
        70,
        SESSIONS,
        "a_session_that_is_not_there_and_an_epoch_that_is_not_due_are_refused_as_a_whole",
    ),
    (
        "session epoch not due",
        71,
        SESSIONS,
        "a_session_that_is_not_there_and_an_epoch_that_is_not_due_are_refused_as_a_whole",
    ),
    ("coordinator moved", 16, WAITING, "a_listener_that_stops_sends_waiting_members_to_another_coordinator"),
    ("bad group id", 24, LIFE, "an_empty_group_id_is_no_group"),
    ("unknown member", 25, LIFE, "i18_a_commit_of_an_old_generation_or_a_stranger_is_refused"),
    ("wrong generation", 22, LIFE, "i18_a_commit_of_an_old_generation_or_a_stranger_is_refused"),
    ("rebalance runs", 27, JOINING, "heartbeats_are_answered_by_state_and_generation"),
    (
        "first join without id",
        79,
        JOINING,
        "a_dynamic_member_of_version_4_is_told_its_id_before_it_is_a_member",
    ),
    ("no common protocol", 23, JOINING, "members_share_a_protocol_or_are_refused"),
    ("sync without its protocol", 23, LIFE, "a_sync_of_version_5_without_its_protocol_is_refused"),
    ("sync of another generation", 22, SYNCING, "a_sync_is_refused_by_generation_member_and_protocol"),
    ("session time-out out of bounds", 26, JOINING, "the_session_timeout_has_bounds"),
    ("group full", 81, JOINING, "a_full_group_refuses_new_members_and_keeps_those_it_has"),
    (
        "instance replaced",
        82,
        STATICS,
        "k_22_an_instance_that_joins_again_in_stable_keeps_its_assignment_and_its_old_id_is_fenced",
    ),
    (
        "commit metadata too long",
        12,
        OFFSETS,
        "p_22_the_metadata_of_a_commit_comes_back_and_is_bounded_for_each_offset",
    ),
    ("no offset committed", 0, LIFE, "a_partition_that_does_not_exist_is_refused_alone_and_has_no_offset"),
    (
        "group not empty, unknown, subscribed",
        68,
        LIFE,
        "offsets_are_deleted_unless_the_group_subscribes_to_their_topic",
    ),
    ("topic exists", 36, ADMIN, "topics_are_created_checked_and_refused_as_kafka_does"),
    ("bad partitions", 37, ALTER, "partitions_never_become_fewer_and_assignments_are_checked"),
    ("bad factor", 38, ADMIN, "topics_are_created_checked_and_refused_as_kafka_does"),
    ("bad name", 17, ADMIN, "k_19_a_new_name_becomes_a_topic_and_a_bad_one_is_refused_for_good"),
    ("bad configuration", 40, ADMIN, "topic_configs_are_taken_or_refused_by_name"),
    ("a broker's bad configuration", 42, BROKERS, "i19_a_refused_change_of_a_broker_changes_nothing"),
    ("too much kept for a broker", 44, BROKERS, "i20_what_is_kept_for_a_broker_is_bounded"),
    (
        "producers of a partition elsewhere",
        6,
        PRODUCERS,
        "what_is_not_there_or_elsewhere_is_refused_by_partition",
    ),
    (
        "more producers than an answer holds",
        42,
        PRODUCERS,
        "i20_an_answer_holds_a_bounded_number_of_producers_and_all_of_a_partition",
    ),
    ("a limit of ours", 44, HERE, "what_administration_refuses_has_a_code_of_its_own"),
    ("administration without metadata", 41, HERE, "what_administration_refuses_has_a_code_of_its_own"),
    ("unknown version", 35, HOSTILE, "an_unknown_version_of_api_versions_is_answered_in_the_oldest_form"),
    (
        "malformed frame: closed",
        0,
        HOSTILE,
        "k_28_a_count_of_two_billion_in_a_small_frame_closes_the_connection",
    ),
    ("too often", 89, HERE, "what_administration_refuses_has_a_code_of_its_own"),
    ("access control is off", 54, DESCRIBE, "without_authorisation_access_control_is_refused_for_good"),
    ("transactions", 42, ADMIN, "producer_ids_are_new_each_time_and_transactions_are_refused"),
];

/// What the cores call a situation whose code they do not know.
const IN_OTHER_WORDS: [(i16, &str); 1] = [(45, "is_gap(")];

#[test]
fn every_row_names_a_test_that_is_there_and_speaks_of_its_code() {
    for (situation, code, text, test) in ROWS {
        let (_, rest) =
            text.split_once(&format!("fn {test}(")).unwrap_or_else(|| panic!("{situation}: no {test}"));
        let body = rest.split("\n}\n").next().unwrap_or_default();
        let name = ErrorCode::from_code(code).map(|code| format!("::{code:?}"));
        let name = name.unwrap_or_else(|| panic!("{situation}: {code} is no code"));
        let other = IN_OTHER_WORDS.iter().find(|(of, _)| *of == code);
        let number = |text: &str| {
            text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == code.to_string())
        };
        // 0 is of requests whose answer is no answer: the connection closes.
        let speaks = code == 0 || body.contains(&name) || number(body);
        assert!(
            speaks || other.is_some_and(|(_, words)| body.contains(words)),
            "{situation}: {test} says nothing of {code}"
        );
    }
}

#[tokio::test]
async fn what_the_log_refuses_has_a_code_of_its_own() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let bucket = BucketId::unpartitioned(table, BucketIndex(0));
    let producer = ProducerId(7);
    let epoch = ProducerEpoch(4);
    let errors = [
        (AppendError::OutOfOrder { bucket, producer, expected: Some(Sequence(2)), found: Sequence(9) }, 45),
        (AppendError::ProducerFenced { bucket, producer, current: epoch, found: ProducerEpoch(3) }, 47),
        (AppendError::TooManyProducers { bucket, producers: 9 }, 19),
        (AppendError::TooLarge { bucket, bytes: 9, bytes_max: 8 }, 10),
        (AppendError::Opening { bucket }, 6),
        (AppendError::Draining, 6),
    ];
    for (error, code) in errors {
        running.fake.behave(table, 0, Behaviour { refuse: Some(error.clone()), ..Behaviour::default() });
        // A connection of its own: a curable refusal holds back what comes behind it.
        let mut client = Client::connect(running.address).await;
        let answer = client.produce("t", 0, batch(&["x"])).await;
        assert_eq!((answer.error_code, answer.base_offset), (code, -1), "{error}");
    }
}

#[tokio::test]
async fn what_a_batch_must_not_be_has_a_code_of_its_own() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for (attributes, code) in [(0x08, 32), (0x10, 48), (0x20, 87), (0x80, 87)] {
        let mut bytes = batch(&["x"]).to_vec();
        bytes[22] = attributes;
        let checksum = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(client.produce("t", 0, bytes.into()).await.error_code, code, "{attributes:#x}");
    }
    assert_eq!(running.fake.end(table, 0), (0, 0));
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[tokio::test]
async fn offsets_of_a_bucket_that_opens_are_not_available_yet() {
    let running = start().await;
    running.fake.opens(false);
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let partition = ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() };
    let topics = vec![ListOffsetsTopic { name: "t".into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..ListOffsetsRequest::default() };
    for (version, code) in [(4, 6), (5, 78), (9, 78)] {
        let answer = client.call(version, &request).await;
        assert_eq!(answer.topics[0].partitions[0].error_code, code, "{version}");
    }
}

#[tokio::test]
async fn what_administration_refuses_has_a_code_of_its_own() {
    let why = || "because".to_owned();
    // The code of CreateTopics and that of InitProducerId.
    let refused = [
        (AdminError::Throttled { after: Duration::from_secs(1) }, 89, 14),
        (AdminError::Limit { why: why() }, 44, 44),
        (AdminError::Conflict { why: why() }, 41, 14),
        (AdminError::Unavailable { why: why() }, 7, 14),
        (AdminError::Stopping, 41, 15),
    ];
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (error, creating, beginning) in refused {
        *running.fake.refuses.lock().expect("not poisoned") = Some(error.clone());
        let topic = CreatableTopic {
            name: "refused".into(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        let created = client.call(7, &request).await;
        assert_eq!(created.topics[0].error_code, creating, "{error}");
        let request = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        assert_eq!(client.call(4, &request).await.error_code, beginning, "{error}");
    }
}
