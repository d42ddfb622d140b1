//! Compaction: which ranges a rewrite may move, and what becomes of the objects they lay in.
use super::*;
use crate::{Invalid, ObjectFault, Stale};

/// A log at level 2: the first node owns both buckets of a table, with offsets 0..40 of each in objects 1 to 4, ten in each.
struct Shared {
    log: Log,
    me: Incarnation,
    chain: WalChain,
    buckets: [BucketId; 2],
}

fn shared() -> Shared {
    let (mut log, me, two) = Log::with_nodes();
    log.done(Command::Leave { incarnation: me, trim: WalNumber(0), seal: None });
    log.done(Command::Leave { incarnation: two, trim: WalNumber(0), seal: None });
    log.done(Command::RaiseFeatureLevel { level: 2 });
    let Answer::Registered(me) =
        log.done(Command::Register(Registration { feature_level_max: 2, ..registration(1) }))
    else {
        panic!("registered");
    };
    let table = log.create("kafka.t", 2);
    let buckets = [bucket(table, 0), bucket(table, 1)];
    log.open(me, &buckets.map(|id| (id, 0)), None);
    let chain = log.chain(me);
    for counter in 1..=4 {
        let range = |id| {
            let mut range = range(id, 1, counter * 10 - 10, counter * 10);
            range.max_timestamp = Timestamp(if counter == 2 { 77 } else { 5 });
            range.last_commit_time = CommitTime(1_000 * i64::try_from(counter).expect("small"));
            range
        };
        log.done(commit(me, me, &[stream(chain, counter, &buckets.map(range))], None));
    }
    Shared { log, me, chain, buckets }
}

impl Shared {
    fn at(&self, counter: u64) -> ObjectId {
        ObjectId::Stream { chain: self.chain, counter }
    }

    fn sources(&self, counters: std::ops::RangeInclusive<u64>) -> Vec<ObjectId> {
        counters.map(|counter| self.at(counter)).collect()
    }

    fn rewrite(&self, sources: &[ObjectId], objects: &[(u64, &[Moved])]) -> Command {
        rewrite(self.me, sources, self.chain, objects)
    }

    /// Where the offsets of a bucket lie, as (start, end, counter).
    fn lies(&self, id: BucketId) -> Vec<(u64, u64, u64)> {
        let ranges = self.log.state.objects_of(&id).map(|(range, at, _)| match at.object {
            ObjectId::Stream { counter, .. } => (range.start.0, range.end.0, counter),
            ObjectId::Wal { number, .. } => (range.start.0, range.end.0, number.0),
        });
        ranges.collect()
    }

    fn doomed(&self) -> Vec<ObjectId> {
        self.log.state.doomed().map(|(id, _)| *id).collect()
    }
}

fn others(bucket: BucketId, at: u64) -> Refusal {
    Refusal::Stale { bucket, why: Stale::Ranges { at: Offset(at) } }
}

#[test]
fn i2_i14_a_run_moves_into_one_range_and_its_objects_are_doomed_when_all_is_gone() {
    let mut s = shared();
    let [a, b] = s.buckets;
    s.log.done(s.rewrite(&s.sources(1..=3), &[(9, &[(a, 1, 0, 30)])]));
    assert_eq!(s.lies(a), [(0, 30, 9), (30, 40, 4)]);
    assert_eq!(s.lies(b).len(), 4, "the other bucket still lies in the old objects");
    assert!(s.doomed().is_empty());
    let range = s.log.state.bucket(&a).expect("there").ranges.get(&Offset(0)).copied().expect("there");
    assert_eq!((range.max_timestamp, range.last_commit_time), (Timestamp(77), CommitTime(3_000)));
    assert_eq!(range.bytes, 300);
    s.log.done(s.rewrite(&s.sources(1..=4), &[(10, &[(b, 1, 0, 20), (b, 1, 20, 40)])]));
    assert_eq!(s.lies(b), [(0, 20, 10), (20, 40, 10)], "two ranges of one bucket in one object");
    assert_eq!(s.doomed(), s.sources(1..=3));
    assert_eq!(s.log.state.object(&s.at(10)).expect("there").ranges, 2);
    assert_eq!(s.log.state.objects().count(), 3, "objects 4, 9 and 10");
}

#[test]
fn t_18_the_second_of_two_compactions_that_read_the_same_is_refused() {
    let mut s = shared();
    let [a, b] = s.buckets;
    let both: &[Moved] = &[(a, 1, 0, 20), (b, 1, 0, 20)];
    s.log.done(s.rewrite(&s.sources(1..=2), &[(9, both)]));
    assert_eq!(s.log.refused(s.rewrite(&s.sources(1..=2), &[(10, both)])), others(a, 0));
    // Also one that overlaps only in part, or only in the last bucket that it names.
    let late = s.rewrite(&s.sources(2..=3), &[(10, &[(a, 1, 10, 30)])]);
    assert_eq!(s.log.refused(late), others(a, 10));
    let late = s.rewrite(&s.sources(1..=3), &[(10, &[(a, 1, 20, 30), (b, 1, 0, 30)])]);
    assert_eq!(s.log.refused(late), others(b, 0));
    assert_eq!((s.lies(a)[0], s.lies(b)[0]), ((0, 20, 9), (0, 20, 9)));
    let mut again = s.log.state.objects().map(|(id, _)| *id).collect::<Vec<_>>();
    again.dedup();
    assert_eq!(again.len(), s.log.state.objects().count(), "P-8: each object once");
}

#[test]
fn t_18_a_range_that_is_no_exact_run_of_the_named_objects_is_refused_as_a_whole() {
    let mut s = shared();
    let [a, b] = s.buckets;
    for (sources, moved, at) in [
        (s.sources(1..=2), (a, 1, 0, 15), 10),
        (s.sources(1..=2), (a, 1, 5, 20), 5),
        (s.sources(1..=2), (a, 1, 0, 30), 20),
        (s.sources(1..=4), (a, 1, 0, 41), 40),
        (s.sources(2..=2), (a, 1, 0, 20), 0),
        (vec![s.at(1), s.at(3)], (a, 1, 0, 30), 10),
    ] {
        let command = s.rewrite(&sources, &[(9, &[(b, 1, 0, 10)]), (10, &[moved])]);
        let expected = if sources.contains(&s.at(1)) { others(a, at) } else { others(b, 0) };
        assert_eq!(s.log.refused(command), expected, "{moved:?}");
    }
    // Two new ranges for one old one, in one object or in two.
    for objects in [
        &[(9, &[(a, 1, 0, 10), (a, 1, 0, 10)][..])][..],
        &[(9, &[(a, 1, 0, 20)][..]), (10, &[(a, 1, 10, 20)][..])][..],
    ] {
        assert!(matches!(s.log.refused(s.rewrite(&s.sources(1..=2), objects)), Refusal::Stale { .. }));
    }
    let empty = s.rewrite(&s.sources(1..=2), &[(9, &[(a, 1, 10, 10)])]);
    assert_eq!(s.log.refused(empty), Refusal::Invalid(Invalid::EmptyRange));
}

#[test]
fn the_order_of_objects_in_a_command_does_not_matter() {
    let mut s = shared();
    let [a, b] = s.buckets;
    let objects: &[(u64, &[Moved])] = &[(9, &[(a, 1, 20, 40)]), (10, &[(a, 1, 0, 20), (b, 1, 0, 40)])];
    s.log.done(s.rewrite(&s.sources(1..=4), objects));
    assert_eq!((s.lies(a), s.lies(b)), (vec![(0, 20, 10), (20, 40, 9)], vec![(0, 40, 10)]));
    assert_eq!(s.doomed(), s.sources(1..=4));
}

#[test]
fn only_the_live_owner_rewrites_and_only_into_new_objects_of_its_own() {
    let mut s = shared();
    let [a, _] = s.buckets;
    let moved: &[Moved] = &[(a, 1, 0, 20)];
    let sources = s.sources(1..=2);
    let refused = |id, why| Refusal::Object { id, why };
    let (known, foreign) = (s.at(3), ObjectId::Stream { chain: WalChain { tag: 1, ..s.chain }, counter: 9 });
    assert_eq!(s.log.refused(s.rewrite(&sources, &[(3, moved)])), refused(known, ObjectFault::Known));
    let twice = s.rewrite(&sources, &[(9, moved), (9, &[])]);
    assert_eq!(s.log.refused(twice), refused(s.at(9), ObjectFault::Known));
    let other = rewrite(s.me, &sources, WalChain { tag: 1, ..s.chain }, &[(9, moved)]);
    assert_eq!(s.log.refused(other), refused(foreign, ObjectFault::Foreign));
    let stale = s.rewrite(&sources, &[(9, &[(a, 0, 0, 20)])]);
    let why = Stale::Epoch { current: BucketEpoch(1) };
    assert_eq!(s.log.refused(stale), Refusal::Stale { bucket: a, why });
    let two = match s.log.done(Command::Register(Registration { feature_level_max: 2, ..registration(2) })) {
        Answer::Registered(two) => two,
        other => panic!("{other:?}"),
    };
    let theirs = rewrite(two, &sources, s.log.chain(two), &[(9, moved)]);
    let why = Stale::Hangs { on: Some(s.me) };
    assert_eq!(s.log.refused(theirs), Refusal::Stale { bucket: a, why });
    // I5: a fenced compaction changes nothing, and what it wrote is swept with its incarnation.
    s.log.done(Command::Fence { incarnation: s.me, by: two });
    let late = s.rewrite(&sources, &[(9, moved)]);
    assert_eq!(s.log.refused(late), Refusal::Fenced { incarnation: s.me });
}

#[test]
fn a_rewrite_waits_for_its_feature_level() {
    let (mut log, one, _) = Log::with_nodes();
    let table = log.create("kafka.t", 1);
    log.open(one, &[(bucket(table, 0), 0)], None);
    let chain = log.chain(one);
    let early = rewrite(one, &[], chain, &[(9, &[])]);
    assert_eq!(log.refused(early), Refusal::Invalid(Invalid::FeatureLevel));
}

#[test]
fn what_retention_has_dropped_since_the_plan_is_left_out() {
    let mut s = shared();
    let [a, b] = s.buckets;
    let raise =
        |id, start| Command::RaiseStart { by: s.me, bucket: id, epoch: BucketEpoch(1), start: Offset(start) };
    // One bucket has lost the front of the run, the other all of it; a start within a range drops nothing.
    s.log.done(raise(a, 10));
    s.log.done(raise(b, 25));
    let command = s.rewrite(&s.sources(1..=2), &[(9, &[(a, 1, 0, 20), (b, 1, 0, 20)])]);
    s.log.done(command);
    assert_eq!(s.lies(a), [(10, 20, 9), (20, 30, 3), (30, 40, 4)]);
    assert_eq!(s.lies(b), [(20, 30, 3), (30, 40, 4)]);
    assert_eq!(s.log.state.bucket(&a).expect("there").ranges.get(&Offset(10)).expect("there").bytes, 100);
    assert_eq!(s.log.state.object(&s.at(9)).expect("there").ranges, 1);
    assert_eq!(s.doomed(), s.sources(1..=2));
    // Nothing is left of what it would move: the new object is garbage at once.
    let late = s.rewrite(&s.sources(1..=2), &[(10, &[(b, 1, 0, 20)])]);
    s.log.done(late);
    assert_eq!(s.doomed(), [s.at(1), s.at(2), s.at(10)]);
    // A range whose middle is the log's start moves as a whole.
    s.log.done(s.rewrite(&s.sources(3..=4), &[(11, &[(b, 1, 20, 40)])]));
    assert_eq!((s.lies(b), s.log.state.bucket(&b).expect("there").start), (vec![(20, 40, 11)], Offset(25)));
    // All committed offsets are dropped.
    s.log.done(raise(b, 40));
    s.log.done(s.rewrite(&[s.at(11)], &[(12, &[(b, 1, 20, 40)])]));
    assert!(s.lies(b).is_empty() && s.doomed().contains(&s.at(12)));
}

#[test]
fn k_26_ranges_of_dropped_tables_are_skipped() {
    let mut s = shared();
    let gone = s.log.create("kafka.gone", 1);
    let gone = bucket(gone, 0);
    s.log.open(s.me, &[(gone, 0)], None);
    let object = stream(s.chain, 5, &[range(gone, 1, 0, 5), range(s.buckets[0], 1, 40, 50)]);
    s.log.done(commit(s.me, s.me, &[object], None));
    s.log.done(Command::DropTable { id: gone.table });
    let command = s.rewrite(&s.sources(4..=5), &[(9, &[(gone, 1, 0, 5), (s.buckets[0], 1, 30, 50)])]);
    s.log.done(command);
    assert_eq!(s.lies(s.buckets[0]).last(), Some(&(30, 50, 9)));
    assert_eq!(s.log.state.bucket(&gone), None, "no zombie");
    assert_eq!(s.doomed(), [s.at(5)], "object 4 still holds the other bucket");
    s.log.done(s.rewrite(&[s.at(5)], &[(10, &[(gone, 1, 0, 5)])]));
    assert_eq!(s.doomed(), [s.at(5), s.at(10)]);
}

#[test]
fn adopted_objects_of_other_epochs_join_one_range_but_lost_ones_never_move() {
    let mut s = shared();
    let [a, b] = s.buckets;
    let two = match s.log.done(Command::Register(Registration { feature_level_max: 2, ..registration(1) })) {
        Answer::Registered(two) => two,
        other => panic!("{other:?}"),
    };
    s.log.done(Command::Fence { incarnation: s.me, by: two });
    let lost = CommittedObject {
        length: 0,
        footer_length: 0,
        checksum: 0,
        ..wal(s.chain, 7, &[range(b, 1, 40, 45)])
    };
    let adopted = [wal(s.chain, 6, &[range(a, 1, 40, 45)]), lost, wal(s.chain, 8, &[range(b, 1, 45, 50)])];
    s.log.done(commit(two, s.me, &adopted, None));
    let seal = WalNumber(9);
    s.log.open(two, &[(a, 1), (b, 1)], Some(TakenOver { incarnation: s.me, seal }));
    let chain = s.log.chain(two);
    let wal = |number| ObjectId::Wal { chain: s.chain, number: WalNumber(number) };
    s.log.done(commit(two, two, &[stream(chain, 0, &[range(a, 2, 45, 50)])], None));
    let sources = [s.at(4), wal(6), ObjectId::Stream { chain, counter: 0 }];
    s.log.done(rewrite(two, &sources, chain, &[(1, &[(a, 2, 30, 50)])]));
    assert_eq!(s.lies(a).last(), Some(&(30, 50, 1)), "three sources of two chains and two epochs");
    assert!(s.doomed().contains(&wal(6)), "its chain is dead");
    let bridged = rewrite(two, &[s.at(4), wal(7), wal(8)], chain, &[(2, &[(b, 2, 30, 50)])]);
    assert_eq!(s.log.refused(bridged), Refusal::Object { id: wal(7), why: ObjectFault::Lost });
    let around = rewrite(two, &[s.at(4), wal(8)], chain, &[(2, &[(b, 2, 30, 40), (b, 2, 45, 50)])]);
    s.log.done(around);
    assert_eq!(s.lies(b)[3..], [(30, 40, 2), (40, 45, 7), (45, 50, 2)]);
}
