//! Rows are taken in order, once, and only if they follow by hash; what is not understood stops the node.
use super::*;
use crate::{
    ApplyError, FEATURE_LEVEL_MAX, GroupError, Invalid, PAYLOAD_BYTES_MAX, ROW_COMMANDS_MAX, row_hash,
};
use mink_types::schema::Literal;
use mink_types::{LogIndex, PartitionId, RowHash};

#[test]
fn i13_a_row_that_does_not_follow_by_hash_is_refused_and_changes_nothing() {
    let (log, _, _) = Log::with_nodes();
    let command = Command::CreateDatabase { name: database("x") };
    let good = row_of(&log.state, &[(request(9, 1), command)]);

    let mut state = log.state.clone();
    let mut other_past = good.clone();
    other_past.hash = row_hash(RowHash([1; 32]), good.index, &good.payload);
    assert!(matches!(state.apply(&other_past), Err(ApplyError::Hash { .. })));
    let mut changed = good.clone();
    *changed.payload.last_mut().expect("not empty") ^= 1;
    assert!(matches!(state.apply(&changed), Err(ApplyError::Hash { .. })));
    assert_eq!(state.digest(), log.state.digest());
    state.apply(&good).expect("the true row follows");
}

#[test]
fn a_gap_and_an_old_row_are_told_apart() {
    let (mut log, _, _) = Log::with_nodes();
    let digest = log.state.digest();
    let row = log.rows[1].clone();
    assert!(matches!(log.state.apply(&row), Err(ApplyError::Old { .. })));
    let mut later = row_of(&log.state, &[]);
    later.index = LogIndex(later.index.0 + 1);
    assert!(matches!(log.state.apply(&later), Err(ApplyError::Gap { .. })));
    assert_eq!(log.state.digest(), digest);
}

#[test]
fn i11_the_same_rows_give_the_same_state_over_restores_and_from_zero() {
    let (mut log, one, _) = Log::with_nodes();
    let table = log.create("kafka.t", 2);
    log.open(one, &[(bucket(table, 0), 0), (bucket(table, 1), 0)], None);
    let chain = log.chain(one);
    log.done(commit(one, one, &[stream(chain, 1, &[range(bucket(table, 0), 1, 0, 7)])], Some(3)));

    for restored_at in 0..=log.rows.len() {
        let mut state = State::new(CLUSTER);
        for (at, row) in log.rows.iter().enumerate() {
            if at == restored_at {
                state = State::restore(&state.snapshot()).expect("restores");
            }
            state.apply(row).expect("follows");
        }
        assert_eq!(state.digest(), log.state.digest(), "restored at {restored_at}");
        assert_eq!(state.snapshot(), log.state.snapshot());
    }
}

#[test]
fn p_8_a_restored_state_is_the_snapshot_alone() {
    let (mut log, one, _) = Log::with_nodes();
    let table = log.create("kafka.t", 1);
    let id = bucket(table, 0);
    log.open(one, &[(id, 0)], None);
    let chain = log.chain(one);
    log.done(commit(
        one,
        one,
        &[stream(chain, 1, &[range(id, 1, 0, 5)]), stream(chain, 2, &[range(id, 1, 5, 9)])],
        None,
    ));
    let mut follower = log.state.clone();
    assert_eq!(follower.objects().count(), 2);
    // The first object goes, a third comes; the follower that holds {o1, o2} loads {o2, o3}.
    log.done(Command::RaiseStart { by: one, bucket: id, epoch: BucketEpoch(1), start: Offset(5) });
    log.done(commit(one, one, &[stream(chain, 3, &[range(id, 1, 9, 10)])], None));
    follower = State::restore(&log.state.snapshot()).expect("restores");
    let objects: Vec<_> = follower.objects().map(|(id, object)| (*id, object.ranges)).collect();
    let expected = [2, 3].map(|counter| (ObjectId::Stream { chain, counter }, 1));
    assert_eq!(objects, expected);
    assert_eq!(follower.digest(), log.state.digest());
}

#[test]
fn a_damaged_or_newer_snapshot_is_refused_at_every_byte() {
    use crate::SnapshotError;
    let (mut log, _, _) = Log::with_nodes();
    log.create("kafka.t", 1);
    let bytes = log.state.snapshot();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(State::restore(&changed).is_err(), "byte {at} changed");
        assert!(State::restore(&bytes[..at]).is_err(), "cut at {at}");
    }
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert!(matches!(State::restore(&newer), Err(SnapshotError::Unsupported { .. })));
}

#[test]
fn an_unknown_kind_field_or_version_stops_the_node() {
    let (log, _, _) = Log::with_nodes();
    let good = row_of(&log.state, &[(request(9, 1), Command::Swept { incarnation: Incarnation(1) })]);
    let with = |payload: Vec<u8>| {
        let hash = row_hash(log.state.witness().hash, good.index, &payload);
        log.state.clone().apply(&Row { hash, payload, ..good.clone() })
    };
    assert!(with(good.payload.clone()).is_ok());
    // version 2
    let mut payload = good.payload.clone();
    payload[1] = 2;
    assert!(matches!(with(payload), Err(ApplyError::Unsupported { .. })));
    // a field 100 (varint 1) behind the known ones
    let mut payload = good.payload.clone();
    payload.extend([0xa0, 0x06, 0x01]);
    assert!(matches!(with(payload), Err(ApplyError::Unsupported { .. })));
    // the command's kind, tag 15 (0x78), becomes tag 115
    let mut payload = good.payload.clone();
    let kind = payload.len() - 2;
    assert_eq!(payload[kind], 0x78);
    payload[kind] = 0x98;
    payload.insert(kind + 1, 0x07);
    payload[3] += 1;
    assert!(matches!(with(payload), Err(ApplyError::Unsupported { .. })));
    assert!(matches!(with(vec![0xff; 9]), Err(ApplyError::Malformed { .. })));
}

#[test]
fn a_row_is_bounded_and_holds_one_registration() {
    let mut group = Group::new();
    let register = Command::Register(registration(1));
    group.push(request(1, 1), &register).expect("the first");
    assert_eq!(group.push(request(1, 2), &register), Err(GroupError::Full));
    let small = Command::Swept { incarnation: Incarnation(1) };
    for counter in 2..=ROW_COMMANDS_MAX as u64 {
        group.push(request(1, counter), &small).expect("room");
    }
    assert_eq!(group.push(request(1, 5_000), &small), Err(GroupError::Full));
    let detail = "x".repeat(PAYLOAD_BYTES_MAX);
    let large = Command::Probed { store: "s".into(), sound: true, detail };
    assert!(matches!(Group::new().push(request(1, 1), &large), Err(GroupError::TooLarge { .. })));

    let mut group = Group::new();
    let detail = "x".repeat(PAYLOAD_BYTES_MAX / 7);
    let mut counter = 0;
    while group
        .push(
            request(1, counter),
            &Command::Probed { store: "s".into(), sound: true, detail: detail.clone() },
        )
        .is_ok()
    {
        counter += 1;
    }
    assert_eq!(counter, 6);
    assert!(group.row(mink_types::Witness::default()).payload.len() <= PAYLOAD_BYTES_MAX);
}

#[test]
fn every_command_survives_its_encoding() {
    let chain = WalChain { node: NodeId(3), incarnation: Incarnation(u64::MAX), tag: u64::MAX };
    let id = bucket(TableId(1 << 20), 9);
    let by = Incarnation(5);
    let from = Some(TakenOver { incarnation: Incarnation(2), seal: WalNumber(0) });
    let adopted = wal(chain, 0, &[range(id, 0, 0, 1), range(id, 3, 1, 1 << 62)]);
    let commands = [
        Command::Register(registration(0)),
        Command::Fence { incarnation: by, by: Incarnation(0) },
        Command::Leave { incarnation: by, trim: WalNumber(0), seal: None },
        Command::Leave { incarnation: by, trim: WalNumber(0), seal: Some(WalNumber(0)) },
        Command::CreateDatabase { name: database("x") },
        Command::DropDatabase { name: database("x") },
        Command::CreateTable(new_table("kafka.a.b", 0)),
        Command::AlterTable(crate::TableChange {
            id: TableId(0),
            seen: new_table("kafka.a.b", 0).options,
            options: new_table("kafka.a.b", 7).options,
            schema: None,
            buckets_max: u32::MAX,
        }),
        Command::CreateTable(columns::with_columns("a.t", columns::all_types(), 1)),
        Command::AlterTable(columns::of_no_table()),
        partitions::create(TableId(0), &[]),
        partitions::create(TableId(1), &[Literal::Boolean(false), Literal::Text(String::new())]),
        Command::DropPartition { table: TableId(0), partition: PartitionId(u64::MAX) },
        Command::DropTable { id: TableId(0) },
        commit(by, Incarnation(0), &[adopted, stream(chain, 0, &[])], Some(0)),
        commit(by, by, &[], None),
        open(by, &[(id, 0)], from),
        open(by, &[], None),
        Command::Release { by, bucket: id, epoch: BucketEpoch(0), end: Offset(0) },
        Command::RaiseStart { by, bucket: id, epoch: BucketEpoch(1), start: Offset(u64::MAX) },
        Command::ForgetProducers { by, bucket: id, epoch: BucketEpoch(1), end: Offset(u64::MAX) },
        Command::Deleted { objects: vec![ObjectId::Stream { chain, counter: 1 }] },
        Command::Swept { incarnation: Incarnation(0) },
        Command::Probed { store: String::new(), sound: false, detail: "ä".into() },
        Command::RaiseFeatureLevel { level: 0 },
    ];
    let numbered: Vec<_> =
        (1..).zip(commands).map(|(counter, command)| (request(1, counter), command)).collect();
    let mut rest = numbered.as_slice();
    while let Some((first, more)) = rest.split_first() {
        let row = row_of(&State::new(CLUSTER), std::slice::from_ref(first));
        assert_eq!(row.commands().expect("decodes"), std::slice::from_ref(first));
        rest = more;
    }
}

#[test]
fn ids_of_one_row_differ_and_a_second_registration_in_a_row_is_refused() {
    let mut log = Log::new();
    let create = |name: &str| Command::CreateDatabase { name: database(name) };
    let results = log.append(&[(request(1, 1), create("a")), (request(1, 2), create("b"))]);
    let ids: Vec<_> = log.state.databases().map(|database| database.id).collect();
    assert_eq!(results[0].1, CommandResult::Done(Answer::DatabaseCreated(ids[0])));
    assert_ne!(ids[0], ids[1]);

    // No group of ours carries two, but a row might.
    let register = |session| crate::wire::envelope(request(session, 1), &Command::Register(registration(1)));
    let wire = crate::wire::Group { version: 1, commands: vec![register(2), register(3)] };
    let payload = prost::Message::encode_to_vec(&wire);
    let (previous, index) = (log.state.witness().hash, log.state.witness().index.next());
    let row = Row { index, hash: row_hash(previous, index, &payload), payload };
    let results = log.state.apply(&row).expect("applies");
    assert_eq!(results[0].1, CommandResult::Done(Answer::Registered(Incarnation(2))));
    assert_eq!(results[1].1, CommandResult::Refused(Refusal::Invalid(Invalid::SecondRegistration)));
}

#[test]
fn a_feature_level_rises_only_when_every_live_node_knows_it() {
    let mut log = Log::new();
    let next = FEATURE_LEVEL_MAX + 1;
    let old = log.register(1);
    let newer = Registration { feature_level_max: next, ..registration(2) };
    let _ = log.done(Command::Register(newer));
    let refused = Refusal::Invalid(Invalid::FeatureLevel);
    assert_eq!(log.refused(Command::RaiseFeatureLevel { level: next }), refused);
    assert_eq!(log.refused(Command::RaiseFeatureLevel { level: next + 1 }), refused);
    log.done(Command::Leave { incarnation: old, trim: WalNumber(0), seal: None });
    for level in 2..next {
        log.done(Command::RaiseFeatureLevel { level });
    }
    // Now all live nodes know it, but this program does not: it stops instead of skipping the row.
    let row = row_of(&log.state, &[(request(5, 1), Command::RaiseFeatureLevel { level: next })]);
    let digest = log.state.digest();
    assert!(matches!(log.state.apply(&row), Err(ApplyError::Unsupported { .. })));
    assert_eq!(log.state.digest(), digest);
}
