//! Keys and values: golden bytes, both ways, and bytes of an enemy.
//!
//! Lives on: tests.
use super::*;
use proptest::prelude::*;

fn group(id: &str) -> GroupId {
    GroupId::new(id).expect("an id")
}

fn topic(table: u64, bucket: u32) -> TopicKey {
    TopicKey { table: TableId(table), bucket: BucketIndex(bucket) }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex"))
        .collect()
}

/// The format of version 1: never to be changed.
#[test]
fn the_bytes_of_version_1_are_golden() {
    assert_eq!(RecordKey::Group(group("ab")).encode(), unhex("01 0200 6162 01"));
    let key = RecordKey::Offset(group("ab"), topic(0x0102, 3));
    assert_eq!(key.encode(), unhex("01 0200 6162 02 0201000000000000 03000000"));
    let offset = CommittedOffset {
        offset: 5,
        leader_epoch: -1,
        metadata: "m".into(),
        commit_time: CommitTime(0x0100),
        expires: Some(CommitTime(2)),
    };
    let golden = "01 0500000000000000 ffffffff 0001000000000000 01 0200000000000000 0100 6d";
    assert_eq!(offset.encode(), unhex(golden));
    let value = GroupValue {
        generation: 7,
        protocol_type: Some("consumer".into()),
        protocol: Some("r".into()),
        leader: Some(MemberId::new("m")),
        emptied: None,
        members: vec![MemberValue {
            member: MemberId::new("m"),
            instance: Some(InstanceId::new("i")),
            client_id: "c".into(),
            client_host: "/h".into(),
            session_timeout_ms: 10,
            rebalance_timeout_ms: 20,
            metadata: Bytes::from_static(b"\x0a"),
            assignment: Bytes::from_static(b"\x0b\x0c"),
        }],
    };
    let golden = "01 07000000 01 0800 636f6e73756d6572 01 0100 72 01 0100 6d 00 01000000 \
        0100 6d 01 0100 69 0100 63 0200 2f68 0a000000 14000000 01000000 0a 02000000 0b0c";
    assert_eq!(value.encode(), unhex(golden));
    assert_eq!(GroupValue::decode(&unhex(golden)), Ok(value));
}

#[test]
fn a_newer_version_is_named() {
    let newer = RecordError::Version { part: "key", version: 2 };
    assert_eq!(RecordKey::decode(&unhex("02 0100 61 01")), Err(newer));
    let newer = RecordError::Version { part: "group", version: 9 };
    assert_eq!(GroupValue::decode(&[9]), Err(newer));
}

#[test]
fn no_group_is_in_the_prefix_of_another() {
    let ids = ["a", "ab", "abc", "a\u{1}", "b", "\0", "\0\0", "a\u{1}\u{1}"];
    for one in ids {
        for other in ids.iter().filter(|other| **other != one) {
            for key in [RecordKey::Group(group(other)), RecordKey::Offset(group(other), topic(u64::MAX, 0))] {
                assert!(!key.encode().starts_with(&group_prefix(&group(one))), "{one:?} {other:?}");
            }
        }
    }
}

#[test]
fn i19_a_count_never_outruns_the_bytes() {
    let mut bytes = unhex("01 00000000 00 00 00 00");
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(GroupValue::decode(&bytes), Err(RecordError::Length { part: "group" }));
    let mut bytes =
        unhex("01 00000000 01 0100 61 01 0100 61 00 00 01000000 0100 6d 00 0000 0000 00000000 00000000");
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(GroupValue::decode(&bytes), Err(RecordError::Length { part: "group" }));
}

#[test]
fn i19_a_group_that_contradicts_itself_is_refused() {
    let member = |id: &str, instance: Option<&str>| MemberValue {
        member: MemberId::new(id),
        instance: instance.map(InstanceId::new),
        client_id: "".into(),
        client_host: "".into(),
        session_timeout_ms: 1,
        rebalance_timeout_ms: 1,
        metadata: Bytes::new(),
        assignment: Bytes::new(),
    };
    let sound = GroupValue {
        generation: 1,
        protocol_type: Some("t".into()),
        protocol: Some("p".into()),
        leader: Some(MemberId::new("a")),
        emptied: None,
        members: vec![member("a", Some("x")), member("b", None)],
    };
    assert_eq!(GroupValue::decode(&sound.encode()), Ok(sound.clone()));
    let bad = [
        GroupValue { generation: -1, ..sound.clone() },
        GroupValue { protocol: None, ..sound.clone() },
        GroupValue { leader: Some(MemberId::new("c")), ..sound.clone() },
        GroupValue { members: vec![member("b", None), member("a", None)], ..sound.clone() },
        GroupValue { members: vec![member("a", None), member("a", None)], ..sound.clone() },
        GroupValue { members: vec![member("a", Some("x")), member("b", Some("x"))], ..sound },
    ];
    for value in bad {
        assert!(matches!(GroupValue::decode(&value.encode()), Err(RecordError::Content { .. })), "{value:?}");
    }
}

fn text() -> impl Strategy<Value = Arc<str>> {
    "[a-zé\0-\u{2}]{0,12}".prop_map(Arc::from)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn members() -> impl Strategy<Value = Vec<MemberValue>> {
    let member = (text(), text(), (any::<u32>(), any::<u32>()), bytes(), bytes());
    prop::collection::btree_map("[a-z]{1,6}", (any::<bool>(), member), 0..6).prop_map(|members| {
        members
            .into_iter()
            .map(|(id, (is_static, (client, host, timeouts, metadata, assignment)))| MemberValue {
                member: MemberId::new(&id),
                instance: is_static.then(|| InstanceId::new(&format!("i-{id}"))),
                client_id: client,
                client_host: host,
                session_timeout_ms: timeouts.0,
                rebalance_timeout_ms: timeouts.1,
                metadata,
                assignment,
            })
            .collect()
    })
}

fn group_value() -> impl Strategy<Value = GroupValue> {
    let emptied = prop::option::of(any::<i64>().prop_map(CommitTime));
    (0..i32::MAX, text(), text(), emptied, members()).prop_map(
        |(generation, kind, protocol, emptied, members)| GroupValue {
            generation,
            protocol_type: Some(kind),
            protocol: Some(protocol),
            leader: members.first().map(|member| member.member.clone()),
            emptied,
            members,
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let id = "[a-zé\0]{1,20}".prop_map(|id| group(&id));
    let topic = (any::<u64>(), any::<u32>()).prop_map(|(table, bucket)| topic(table, bucket));
    let expires = prop::option::of(any::<i64>().prop_map(CommitTime));
    let offset = (any::<i64>(), any::<i32>(), text(), any::<i64>(), expires).prop_map(
        |(offset, leader_epoch, metadata, at, expires)| CommittedOffset {
            offset,
            leader_epoch,
            metadata,
            commit_time: CommitTime(at),
            expires,
        },
    );
    prop_oneof![
        (id.clone(), prop::option::of(group_value())).prop_map(|(id, value)| Record::Group(id, value)),
        (id, topic, prop::option::of(offset)).prop_map(|(id, topic, value)| Record::Offset(id, topic, value)),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(record in record()) {
        let stored = record.encode();
        prop_assert_eq!(Record::decode(&stored.key, stored.value.as_deref()), Ok(record));
    }

    #[test]
    fn i19_every_cut_is_refused_and_nothing_may_follow(record in record()) {
        let stored = record.encode();
        for cut in 0..stored.key.len() {
            prop_assert!(RecordKey::decode(&stored.key[..cut]).is_err());
        }
        let mut longer = stored.key.to_vec();
        longer.push(0);
        prop_assert!(RecordKey::decode(&longer).is_err());
        if let Some(value) = &stored.value {
            for cut in 0..value.len() {
                prop_assert!(Record::decode(&stored.key, Some(&value[..cut])).is_err());
            }
            let mut longer = value.to_vec();
            longer.push(0);
            prop_assert!(Record::decode(&stored.key, Some(&longer)).is_err());
        }
    }

    /// Whatever is read as a record has one way of being written.
    #[test]
    fn i19_bytes_of_an_enemy_are_refused_or_are_what_we_write(
        record in record(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let stored = record.encode();
        let mut key = stored.key.to_vec();
        let place = at.index(key.len());
        key[place] = byte;
        if let Ok(decoded) = RecordKey::decode(&key) {
            prop_assert_eq!(decoded.encode().to_vec(), key);
        }
        if let Some(value) = stored.value.filter(|value| !value.is_empty()) {
            let mut value = value.to_vec();
            let place = at.index(value.len());
            value[place] = byte;
            if let Ok(decoded) = Record::decode(&stored.key, Some(&value)) {
                prop_assert_eq!(decoded.encode().value.map(|v| v.to_vec()), Some(value));
            }
        }
    }

    #[test]
    fn i19_random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (RecordKey::decode(&bytes), GroupValue::decode(&bytes), CommittedOffset::decode(&bytes));
        let mut versioned = vec![1];
        versioned.extend_from_slice(&bytes);
        let _ = (RecordKey::decode(&versioned), GroupValue::decode(&versioned), CommittedOffset::decode(&versioned));
    }
}
