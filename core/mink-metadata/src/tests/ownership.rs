//! Fence, commit, open, release, leave: who may do what to a bucket.
use super::*;
use crate::{Invalid, ObjectFault, Stale};

fn stale(bucket: BucketId, why: Stale) -> Refusal {
    Refusal::Stale { bucket, why }
}

/// Two nodes; the first owns bucket 0 of a table, and has committed offsets 0..10 in stream object 1.
fn owned() -> (Log, Incarnation, Incarnation, BucketId) {
    let (mut log, one, two) = Log::with_nodes();
    let table = log.create("kafka.t", 2);
    let id = bucket(table, 0);
    log.open(one, &[(id, 0)], None);
    let chain = log.chain(one);
    log.done(commit(one, one, &[stream(chain, 1, &[range(id, 1, 0, 10)])], Some(2)));
    (log, one, two, id)
}

#[test]
fn t_18_a_commit_that_overlaps_or_leaves_a_gap_is_refused_as_a_whole() {
    let (mut log, one, _, id) = owned();
    let chain = log.chain(one);
    let other = bucket(id.table, 1);
    log.open(one, &[(other, 0)], None);
    for start in [0, 5, 9, 11] {
        let objects = [stream(chain, 2, &[range(other, 1, 0, 3), range(id, 1, start, 20)])];
        let refusal = log.refused(commit(one, one, &objects, Some(9)));
        assert_eq!(refusal, stale(id, Stale::End { committed: Offset(10) }), "from {start}");
    }
    // Within one command each range follows the one before it.
    let objects = [stream(chain, 2, &[range(id, 1, 10, 20)]), stream(chain, 3, &[range(id, 1, 19, 30)])];
    assert_eq!(
        log.refused(commit(one, one, &objects, None)),
        stale(id, Stale::End { committed: Offset(20) })
    );
    let objects = [stream(chain, 2, &[range(id, 1, 10, 20)]), stream(chain, 3, &[range(id, 1, 20, 30)])];
    log.done(commit(one, one, &objects, None));
    let found: Vec<_> =
        log.state.objects_of(&id).map(|(range, at, _)| (range.start.0, range.end.0, at.object)).collect();
    let at = |counter| ObjectId::Stream { chain, counter };
    assert_eq!(found, [(0, 10, at(1)), (10, 20, at(2)), (20, 30, at(3))]);
    let bucket = log.state.bucket(&id).expect("there");
    let from =
        |offset| bucket.ranges_from(Offset(offset)).map(|(range, _)| range.start.0).collect::<Vec<_>>();
    assert_eq!(
        (from(0), from(10), from(19), from(30)),
        (vec![0, 10, 20], vec![10, 20], vec![10, 20], vec![])
    );
}

#[test]
fn i5_a_fenced_incarnation_changes_nothing_any_more() {
    let (mut log, one, two, id) = owned();
    log.done(Command::Fence { incarnation: one, by: two });
    let chain = log.chain(one);
    let fenced = Refusal::Fenced { incarnation: one };
    for command in [
        commit(one, one, &[stream(chain, 2, &[range(id, 1, 10, 11)])], Some(7)),
        commit(one, one, &[], Some(7)),
        open(one, &[(bucket(id.table, 1), 0)], None),
        Command::Release { by: one, bucket: id, epoch: BucketEpoch(1), end: Offset(10) },
        Command::RaiseStart { by: one, bucket: id, epoch: BucketEpoch(1), start: Offset(10) },
        Command::Fence { incarnation: two, by: one },
        Command::Leave { incarnation: one, trim: WalNumber(9), seal: None },
    ] {
        assert_eq!(log.refused(command.clone()), fenced, "{command:?}");
    }
    assert_eq!(log.state.incarnation(one).expect("there").trim, WalNumber(2), "the trim is frozen");
    let again = log.run(Command::Fence { incarnation: one, by: two });
    assert!(again.is_fenced(), "already fenced counts as done: {again:?}");
    let unknown = Incarnation(99);
    let refusal = log.refused(Command::Fence { incarnation: unknown, by: two });
    assert_eq!(refusal, Refusal::NotRegistered { incarnation: unknown });
}

#[test]
fn i13_a_bucket_on_a_live_chain_is_not_opened_by_another_and_epochs_only_grow() {
    let (mut log, one, two, id) = owned();
    let refused = |log: &mut Log, command, why| {
        assert_eq!(log.done(command), Answer::Opened { refused: vec![(id, why)] });
    };
    let hangs = Stale::Hangs { on: Some(one) };
    refused(&mut log, open(two, &[(id, 1)], None), hangs);
    refused(&mut log, open(one, &[(id, 1)], None), hangs);
    let from = TakenOver { incarnation: one, seal: WalNumber(4) };
    assert_eq!(log.refused(open(two, &[(id, 1)], Some(from))), Refusal::NotFenced { incarnation: one });
    log.done(Command::Fence { incarnation: one, by: two });
    // Fenced, but not walked: or walked by another name.
    refused(&mut log, open(two, &[(id, 1)], None), hangs);
    refused(&mut log, open(two, &[(id, 0)], Some(from)), Stale::Epoch { current: BucketEpoch(1) });
    assert_eq!(log.state.incarnation(one).expect("there").seal, None, "nothing was opened");
    log.open(two, &[(id, 1)], Some(from));
    let bucket = log.state.bucket(&id).expect("there");
    assert_eq!((bucket.epoch, bucket.owner), (BucketEpoch(2), Some(two)));
    assert_eq!(log.state.incarnation(one).expect("there").seal, Some(WalNumber(4)));
    assert!(log.state.dead(one) && !log.state.dead(two));
    // The same takeover once more comes too late.
    refused(&mut log, open(two, &[(id, 1)], Some(from)), Stale::Epoch { current: BucketEpoch(2) });
}

#[test]
fn each_bucket_of_an_open_is_judged_by_itself() {
    let (mut log, _, two, id) = owned();
    let free = bucket(id.table, 1);
    let gone = bucket(TableId(1), 0);
    let answer = log.done(open(two, &[(gone, 0), (id, 1), (free, 0)], None));
    let Answer::Opened { refused } = answer else { panic!("{answer:?}") };
    assert_eq!(refused.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [gone, id]);
    assert_eq!(refused[0].1, Stale::Gone);
    assert_eq!(log.state.hanging(two).collect::<Vec<_>>(), [free]);
}

#[test]
fn a_bucket_is_released_at_its_committed_end_by_its_owner_alone() {
    let (mut log, one, two, id) = owned();
    let release =
        |by, epoch, end| Command::Release { by, bucket: id, epoch: BucketEpoch(epoch), end: Offset(end) };
    assert_eq!(log.refused(release(two, 1, 10)), stale(id, Stale::Hangs { on: Some(one) }));
    assert_eq!(log.refused(release(one, 2, 10)), stale(id, Stale::Epoch { current: BucketEpoch(1) }));
    assert_eq!(log.refused(release(one, 1, 12)), stale(id, Stale::End { committed: Offset(10) }));
    log.done(release(one, 1, 10));
    assert_eq!(log.refused(release(one, 1, 10)), stale(id, Stale::Hangs { on: None }));
    log.open(two, &[(id, 1)], None);
    // What its former owner still sends is refused by the epoch.
    let late = commit(one, one, &[stream(log.chain(one), 2, &[range(id, 1, 10, 12)])], None);
    assert_eq!(log.refused(late), stale(id, Stale::Epoch { current: BucketEpoch(2) }));
}

#[test]
fn a_recovered_tail_is_adopted_from_the_fenced_chain_and_only_from_it() {
    let (mut log, one, two, id) = owned();
    let (chain, own) = (log.chain(one), log.chain(two));
    let adopted = wal(chain, 2, &[range(id, 1, 10, 15)]);
    assert_eq!(
        log.refused(commit(two, one, std::slice::from_ref(&adopted), None)),
        Refusal::NotFenced { incarnation: one }
    );
    log.done(Command::Fence { incarnation: one, by: two });
    let foreign = |id| Refusal::Object { id, why: ObjectFault::Foreign };
    for object in [wal(own, 2, &[range(id, 1, 10, 15)]), stream(chain, 9, &[range(id, 1, 10, 15)])] {
        assert_eq!(log.refused(commit(two, one, std::slice::from_ref(&object), None)), foreign(object.id));
    }
    let refusal = log.refused(commit(two, one, std::slice::from_ref(&adopted), Some(3)));
    assert_eq!(refusal, Refusal::Invalid(Invalid::ForeignTrim));
    log.done(commit(two, one, std::slice::from_ref(&adopted), None));
    assert_eq!(log.state.bucket(&id).expect("there").end, Offset(15));
    assert_eq!(log.state.adopted(chain).collect::<Vec<_>>(), [WalNumber(2)]);
    assert!(!log.state.dead(one), "the bucket hangs on it until it opens");
    // Own WAL objects go by the trim: no range may refer to them.
    log.open(two, &[(id, 1)], Some(TakenOver { incarnation: one, seal: WalNumber(3) }));
    let own_wal = wal(own, 0, &[range(id, 2, 15, 16)]);
    assert_eq!(log.refused(commit(two, two, std::slice::from_ref(&own_wal), None)), foreign(own_wal.id));
}

#[test]
fn two_takers_may_adopt_buckets_of_one_wal_object_if_it_is_the_same() {
    let (mut log, one, two, id) = owned();
    let other = bucket(id.table, 1);
    log.open(one, &[(other, 0)], None);
    let three = log.register(3);
    let chain = log.chain(one);
    log.done(Command::Fence { incarnation: one, by: two });
    log.done(commit(two, one, &[wal(chain, 2, &[range(id, 1, 10, 15)])], None));
    let mut second = wal(chain, 2, &[range(other, 1, 0, 4)]);
    second.checksum ^= 1;
    let differs = Refusal::Object { id: second.id, why: ObjectFault::Differs };
    assert_eq!(log.refused(commit(three, one, std::slice::from_ref(&second), None)), differs);
    second.checksum ^= 1;
    log.done(commit(three, one, std::slice::from_ref(&second), None));
    assert_eq!(log.state.object(&second.id).expect("there").ranges, 2);
}

#[test]
fn i14_an_adopted_wal_object_is_doomed_by_itself_only_once_its_chain_is_dead() {
    for dead_first in [false, true] {
        let (mut log, one, two, id) = owned();
        let other = bucket(id.table, 1);
        log.open(one, &[(other, 0)], None);
        log.done(Command::Fence { incarnation: one, by: two });
        let adopted = wal(log.chain(one), 2, &[range(id, 1, 10, 15)]);
        log.done(commit(two, one, std::slice::from_ref(&adopted), None));
        let from = Some(TakenOver { incarnation: one, seal: WalNumber(3) });
        log.open(two, &[(id, 1)], from);
        if dead_first {
            log.open(two, &[(other, 1)], from);
        }
        log.done(Command::RaiseStart { by: two, bucket: id, epoch: BucketEpoch(2), start: Offset(15) });
        let doomed: Vec<_> = log.state.doomed().map(|(id, _)| *id).collect();
        assert_eq!(doomed.contains(&adopted.id), dead_first, "a second taker may still walk over it");
        assert_eq!(log.state.object(&adopted.id), None);
    }
}

#[test]
fn an_object_id_is_never_taken_twice() {
    let (mut log, one, _, id) = owned();
    let chain = log.chain(one);
    let known =
        |counter| Refusal::Object { id: ObjectId::Stream { chain, counter }, why: ObjectFault::Known };
    assert_eq!(log.refused(commit(one, one, &[stream(chain, 1, &[range(id, 1, 10, 11)])], None)), known(1));
    let twice = [stream(chain, 2, &[range(id, 1, 10, 11)]), stream(chain, 2, &[range(id, 1, 11, 12)])];
    assert_eq!(log.refused(commit(one, one, &twice, None)), known(2));
    log.done(Command::RaiseStart { by: one, bucket: id, epoch: BucketEpoch(1), start: Offset(10) });
    assert_eq!(log.refused(commit(one, one, &[stream(chain, 1, &[range(id, 1, 10, 11)])], None)), known(1));
    let mut odd = stream(chain, 3, &[range(id, 1, 10, 11)]);
    odd.footer_length = 5_000;
    let lengths = Refusal::Object { id: odd.id, why: ObjectFault::Lengths };
    assert_eq!(log.refused(commit(one, one, &[odd], None)), lengths);
    let empty = [stream(chain, 3, &[range(id, 1, 10, 10)])];
    assert_eq!(log.refused(commit(one, one, &empty, None)), Refusal::Invalid(Invalid::EmptyRange));
}

#[test]
fn the_start_rises_within_the_committed_offsets_and_frees_whole_ranges() {
    let (mut log, one, _, id) = owned();
    let chain = log.chain(one);
    log.done(commit(one, one, &[stream(chain, 2, &[range(id, 1, 10, 20)])], None));
    let raise =
        |start| Command::RaiseStart { by: one, bucket: id, epoch: BucketEpoch(1), start: Offset(start) };
    assert_eq!(log.refused(raise(0)), Refusal::Invalid(Invalid::StartOutOfRange));
    assert_eq!(log.refused(raise(21)), Refusal::Invalid(Invalid::StartOutOfRange));
    log.done(raise(15));
    let bucket = log.state.bucket(&id).expect("there");
    assert_eq!((bucket.start, bucket.ranges.len()), (Offset(15), 1));
    assert_eq!(log.state.doomed().count(), 1);
    log.done(raise(20));
    assert_eq!(log.state.doomed().count(), 2);
    let restored = State::restore(&log.state.snapshot()).expect("an empty bucket with an end restores");
    assert_eq!(restored.digest(), log.state.digest());
}

#[test]
fn a_leaving_node_frees_its_buckets_when_the_seal_stands_at_the_trim() {
    let leave = |incarnation, trim, seal: Option<u64>| Command::Leave {
        incarnation,
        trim: WalNumber(trim),
        seal: seal.map(WalNumber),
    };
    for (trim, seal, freed) in [(5, Some(5), true), (5, Some(6), false), (5, None, false), (0, Some(2), true)]
    {
        let (mut log, one, two, id) = owned();
        log.done(leave(one, trim, seal));
        let state = log.state.incarnation(one).expect("there");
        assert!(state.fenced && state.drained);
        assert_eq!((state.trim, state.seal), (WalNumber(trim.max(2)), seal.map(WalNumber)));
        assert_eq!(log.state.hangs(one), !freed);
        assert_eq!(log.state.dead(one), freed);
        if freed {
            log.open(two, &[(id, 1)], None);
            log.done(Command::Swept { incarnation: one });
        } else {
            let refusal = log.refused(Command::Swept { incarnation: one });
            assert_eq!(refusal, Refusal::StillNeeded { incarnation: one });
        }
    }
    let (mut log, one, _, _) = owned();
    assert_eq!(log.refused(leave(one, 0, Some(1))), Refusal::Invalid(Invalid::SealBelowTrim));
    assert_eq!(log.refused(Command::Swept { incarnation: one }), Refusal::NotFenced { incarnation: one });
}

#[test]
fn the_trim_only_rises() {
    let (mut log, one, _, _) = owned();
    for (trim, expected) in [(7, 7), (3, 7), (8, 8)] {
        log.done(commit(one, one, &[], Some(trim)));
        assert_eq!(log.state.incarnation(one).expect("there").trim, WalNumber(expected));
    }
}

#[test]
fn epochs_stop_at_the_greatest_that_kafka_can_carry() {
    let (mut log, one, _) = Log::with_nodes();
    let table = log.create("kafka.t", 1);
    let id = bucket(table, 0);
    let mut worn = log.state.bucket(&id).expect("there").clone();
    worn.epoch = BucketEpoch::MAX;
    log.state.set_bucket(id, worn);
    let answer = log.done(open(one, &[(id, BucketEpoch::MAX.0)], None));
    assert_eq!(answer, Answer::Opened { refused: vec![(id, Stale::EpochsUsedUp)] });
}

#[test]
fn probes_are_kept_by_store() {
    let mut log = Log::new();
    let probed = |sound| Command::Probed { store: "s3://b".into(), sound, detail: "16 of 16".into() };
    log.done(probed(false));
    log.done(probed(true));
    assert!(log.state.probe("s3://b").expect("kept").sound);
    assert_eq!(log.state.probe("s3://c"), None);
    let long = Command::Probed { store: "s".into(), sound: true, detail: "x".repeat(5_000) };
    assert!(matches!(log.refused(long), Refusal::Limit { .. }));
}
