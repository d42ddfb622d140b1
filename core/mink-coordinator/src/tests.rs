//! Tests of plans, on logs built by the real state machine.
use std::collections::BTreeSet;

use mink_metadata::{
    Answer, BucketOpening, Command, CommittedObject, CommittedRange, Group, NewTable, Registration, State,
    TakenOver,
};
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, CleanupPolicy, ClusterUuid, CommitTime, DatabaseName, Incarnation,
    LogIndex, NodeId, ObjectId, Offset, RequestId, SessionId, TableOptions, TablePath, TableUuid, Timestamp,
    WalNumber,
};

use crate::{
    Expiry, Facts, OPEN_BUCKETS_MAX, Step, expired_start, expiry, garbage, live_nodes, plan,
    producers_expire, sweep_again, takeover, wal_floor,
};

struct Log(State);

impl Log {
    fn new() -> Log {
        let mut log = Log(State::new(ClusterUuid([1; 16])));
        log.done(&Command::CreateDatabase { name: kafka() });
        log
    }

    fn done(&mut self, command: &Command) -> Answer {
        let mut group = Group::new();
        let counter = self.0.witness().index.0 + 1;
        group.push(RequestId { session: SessionId([1; 16]), counter }, command).expect("fits");
        let row = group.row(self.0.witness());
        self.0.apply(&row).expect("follows").remove(0).1.into_result().expect("accepted")
    }

    fn register(&mut self, node: u32) -> Incarnation {
        let registration = Registration {
            node: NodeId(node),
            tag: 5,
            storage: "s3://data".into(),
            wal_storage: "s3://wal".into(),
            listeners: vec![],
            version: "0".into(),
            feature_level_max: mink_metadata::FEATURE_LEVEL_MAX,
        };
        match self.done(&Command::Register(registration)) {
            Answer::Registered(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn create(&mut self, name: &str, buckets: u32) -> Vec<BucketId> {
        let mut uuid = [1; 16];
        uuid[..name.len()].copy_from_slice(name.as_bytes());
        let table = NewTable {
            path: TablePath::parse(&format!("kafka.{name}")).expect("valid"),
            uuid: TableUuid(uuid),
            options: TableOptions { buckets, ..TableOptions::default() },
            schema: None,
            kafka_database: kafka(),
            buckets_max: 100_000,
        };
        match self.done(&Command::CreateTable(table)) {
            Answer::TableCreated(id) => {
                (0..buckets).map(|at| BucketId::unpartitioned(id, BucketIndex(at))).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Carries out the opens of a node's plan.
    fn open(&mut self, me: Incarnation) {
        for step in plan(&self.0, me, &Facts::default()) {
            if let Step::Open { buckets } = step {
                let answer = self.done(&Command::Open { by: me, buckets, from: None });
                assert_eq!(answer, Answer::Opened { refused: vec![] });
            }
        }
    }

    fn commit(
        &mut self,
        by: Incarnation,
        source: Incarnation,
        id: ObjectId,
        range: CommittedRange,
        trim: Option<u64>,
    ) {
        let object = CommittedObject { id, length: 100, footer_length: 10, checksum: 1, ranges: vec![range] };
        self.done(&Command::Commit { by, source, objects: vec![object], trim: trim.map(WalNumber) });
    }

    fn stream(&self, by: Incarnation, counter: u64) -> ObjectId {
        ObjectId::Stream { chain: self.0.incarnation(by).expect("registered").chain, counter }
    }

    fn wal(&self, by: Incarnation, number: u64) -> ObjectId {
        ObjectId::Wal { chain: self.0.incarnation(by).expect("registered").chain, number: WalNumber(number) }
    }
}

fn kafka() -> DatabaseName {
    DatabaseName::new("kafka").expect("valid")
}

fn range(bucket: BucketId, epoch: u32, start: u64, end: u64) -> CommittedRange {
    CommittedRange {
        bucket,
        epoch: BucketEpoch(epoch),
        start: Offset(start),
        end: Offset(end),
        max_timestamp: Timestamp(0),
        last_commit_time: CommitTime(1_000),
        bytes: 10,
    }
}

fn takeovers(steps: &[Step]) -> Vec<(Incarnation, bool, usize)> {
    let taken = steps.iter().filter_map(|step| match step {
        Step::TakeOver(takeover) => Some((takeover.incarnation, takeover.fence, takeover.buckets.len())),
        _ => None,
    });
    taken.collect()
}

#[test]
fn a_single_node_opens_every_free_bucket_in_bounded_commands() {
    let mut log = Log::new();
    let me = log.register(1);
    log.create("t", 5_000);
    let steps = plan(&log.0, me, &Facts::default());
    let sizes = steps.iter().map(|step| match step {
        Step::Open { buckets } => buckets.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [OPEN_BUCKETS_MAX, 5_000 - OPEN_BUCKETS_MAX]);
    log.open(me);
    assert_eq!(plan(&log.0, me, &Facts::default()), []);
}

#[test]
fn live_nodes_share_free_buckets_evenly_and_without_overlap() {
    let mut log = Log::new();
    let nodes: Vec<_> = (1..=3).map(|node| log.register(node)).collect();
    let first = log.create("a", 4);
    let only = first.iter().map(|bucket| BucketOpening { bucket: *bucket, epoch: BucketEpoch(0) }).collect();
    log.done(&Command::Open { by: nodes[0], buckets: only, from: None });
    log.create("b", 8);
    let view = log.0.clone();
    for node in &nodes {
        for step in plan(&view, *node, &Facts::default()) {
            let Step::Open { buckets } = step else { panic!("{step:?}") };
            assert_eq!(
                log.done(&Command::Open { by: *node, buckets, from: None }),
                Answer::Opened { refused: vec![] }
            );
        }
    }
    let loads: Vec<_> = nodes.iter().map(|node| log.0.hanging(*node).count()).collect();
    assert_eq!(loads, [4, 4, 4]);
}

#[test]
fn a_restart_takes_over_its_predecessors_and_nobody_elses_live_chain() {
    let mut log = Log::new();
    let old = log.register(1);
    let other = log.register(2);
    log.create("t", 4);
    log.open(old);
    log.open(other);
    let me = log.register(1);
    let steps = plan(&log.0, me, &Facts::default());
    assert_eq!(takeovers(&steps), [(old, true, 2)]);
    assert_eq!(takeovers(&plan(&log.0, other, &Facts::default())), []);
    // The one that was paused must not fight its successor.
    assert_eq!(takeovers(&plan(&log.0, old, &Facts::default())), []);
    log.done(&Command::Fence { incarnation: old, by: me });
    let again = takeover(&log.0, old).expect("known");
    assert!(!again.fence && again.wal_storage == "s3://wal");
    assert!(again.buckets.iter().all(|opening| opening.epoch == BucketEpoch(1)));
    assert_eq!(takeovers(&plan(&log.0, me, &Facts::default())), [(old, false, 2)]);
    assert_eq!(plan(&log.0, old, &Facts::default()), [], "fenced: it plans nothing");
    let from = Some(TakenOver { incarnation: old, seal: WalNumber(0) });
    log.done(&Command::Open { by: me, buckets: again.buckets, from });
    assert_eq!(takeovers(&plan(&log.0, me, &Facts::default())), []);
}

#[test]
fn an_expired_node_is_taken_over_by_exactly_one_other() {
    let mut log = Log::new();
    let nodes: Vec<_> = (1..=4).map(|node| log.register(node)).collect();
    log.create("t", 8);
    let view = log.0.clone();
    for node in &nodes {
        for step in plan(&view, *node, &Facts::default()) {
            let Step::Open { buckets } = step else { panic!("{step:?}") };
            log.done(&Command::Open { by: *node, buckets, from: None });
        }
    }
    let facts = Facts { expired: BTreeSet::from([nodes[1]]), ..Facts::default() };
    assert_eq!(live_nodes(&log.0, &facts.expired).len(), 3);
    let takers: Vec<_> =
        nodes.iter().filter(|node| !takeovers(&plan(&log.0, **node, &facts)).is_empty()).collect();
    assert_eq!(takers.len(), 1);
    // Fenced and then forgotten by its taker: still somebody's.
    log.done(&Command::Fence { incarnation: nodes[1], by: *takers[0] });
    let takers: usize =
        nodes.iter().map(|node| takeovers(&plan(&log.0, *node, &Facts::default())).len()).sum();
    assert_eq!(takers, 1);
}

#[test]
fn an_elder_goes_on_once_the_younger_life_of_its_node_has_expired() {
    let mut log = Log::new();
    let elder = log.register(1);
    let younger = log.register(1);
    log.create("t", 2);
    assert_eq!(plan(&log.0, elder, &Facts::default()), [], "the younger one may live, and will fence it");
    let facts = Facts { expired: BTreeSet::from([younger]), ..Facts::default() };
    let steps = plan(&log.0, elder, &facts);
    assert_eq!(takeovers(&steps), [(younger, true, 0)]);
    assert!(matches!(steps.last(), Some(Step::Open { buckets }) if buckets.len() == 2), "{steps:?}");
    // It is too late for the younger one: its commands are refused, and nobody need suspect it any more.
    log.done(&Command::Fence { incarnation: younger, by: elder });
    assert_eq!(plan(&log.0, younger, &Facts::default()), []);
    let steps = plan(&log.0, elder, &Facts::default());
    assert!(matches!(steps.as_slice(), [Step::Open { buckets }] if buckets.len() == 2), "{steps:?}");
}

#[test]
fn k_1_a_sweep_keeps_the_recorded_seal_and_what_is_referenced() {
    let mut log = Log::new();
    let old = log.register(1);
    let buckets = log.create("t", 1);
    log.open(old);
    let (kept, adopted) = (log.stream(old, 1), log.wal(old, 3));
    log.commit(old, old, kept, range(buckets[0], 1, 0, 5), Some(2));
    assert_eq!(wal_floor(&log.0, old), WalNumber(1), "number 1 is the anchor");
    let me = log.register(1);
    log.done(&Command::Fence { incarnation: old, by: me });
    log.commit(me, old, adopted, range(buckets[0], 1, 5, 6), None);
    let collect = Facts { collect: true, ..Facts::default() };
    let sweeps = |log: &Log, facts: &Facts| -> Vec<_> {
        let steps = plan(&log.0, me, facts).into_iter();
        steps.filter_map(|step| if let Step::Sweep(sweep) = step { Some(sweep) } else { None }).collect()
    };
    assert!(sweeps(&log, &collect).is_empty(), "a bucket hangs on it");
    let taken = takeover(&log.0, old).expect("known");
    let from = Some(TakenOver { incarnation: old, seal: WalNumber(4) });
    log.done(&Command::Open { by: me, buckets: taken.buckets, from });
    assert!(sweeps(&log, &Facts::default()).is_empty(), "not without the lease");
    let sweep = sweeps(&log, &collect).remove(0);
    assert_eq!((sweep.incarnation, sweep.storage.as_str()), (old, "s3://data"));
    let keep = &sweep.keep;
    assert!(!keep.must_look());
    for (id, stays) in [
        (kept, true),
        (adopted, true),
        (log.wal(old, 4), true),
        (log.wal(old, 2), false),
        (log.wal(old, 9), false),
        (log.stream(old, 2), false),
        (log.wal(me, 0), true),
        (log.stream(me, 7), true),
    ] {
        assert_eq!(keep.keeps(id, true), stays, "{id}");
    }
    log.done(&Command::Swept { incarnation: old });
    assert!(sweeps(&log, &collect).is_empty());
}

#[test]
fn a_chain_without_a_recorded_seal_keeps_every_seal() {
    let mut log = Log::new();
    let old = log.register(1);
    let me = log.register(1);
    log.done(&Command::Fence { incarnation: old, by: me });
    let facts = Facts { collect: true, ..Facts::default() };
    let steps = plan(&log.0, me, &facts);
    let [Step::Sweep(sweep)] = steps.as_slice() else { panic!("{steps:?}") };
    assert!(sweep.keep.must_look());
    assert!(sweep.keep.keeps(log.wal(old, 1), true));
    assert!(!sweep.keep.keeps(log.wal(old, 1), false));
}

#[test]
fn i14_doomed_objects_go_only_after_the_grace_time() {
    let mut log = Log::new();
    let me = log.register(1);
    let buckets = log.create("t", 1);
    log.open(me);
    let object = log.stream(me, 1);
    log.commit(me, me, object, range(buckets[0], 1, 0, 5), None);
    log.done(&Command::DropTable { id: buckets[0].table });
    let at = log.0.witness().index;
    let with = |index, collect| plan(&log.0, me, &Facts { grace_passed: index, collect, ..Facts::default() });
    assert_eq!(with(LogIndex(at.0 - 1), true), []);
    assert_eq!(with(at, false), []);
    assert_eq!(with(at, true), [Step::Delete { objects: vec![object] }]);
}

#[test]
fn p_9_retention_drops_whole_ranges_by_commit_time_and_size() {
    let mut log = Log::new();
    let me = log.register(1);
    let buckets = log.create("t", 1);
    log.open(me);
    for (counter, time) in [(0, 0), (1, 2_000), (2, 3_000)] {
        let mut range = range(buckets[0], 1, counter * 5, counter * 5 + 5);
        range.last_commit_time = CommitTime(time);
        log.commit(me, me, log.stream(me, counter), range, None);
    }
    let bucket = log.0.bucket(&buckets[0]).expect("there").clone();
    let options =
        |ttl, bytes| TableOptions { log_ttl_ms: ttl, retention_bytes: bytes, ..TableOptions::default() };
    let start = |ttl, bytes, now| expired_start(&bucket, &options(ttl, bytes), CommitTime(now));
    assert_eq!(start(None, None, i64::MAX), None);
    for (cleanup, dropped) in [
        (CleanupPolicy::Delete, true),
        (CleanupPolicy::CompactDelete, true),
        (CleanupPolicy::DeleteCompact, true),
        (CleanupPolicy::Compact, false),
        (CleanupPolicy::None, false),
    ] {
        let options = TableOptions { cleanup, ..options(Some(500), Some(10)) };
        let expired = expiry(&bucket, &options, CommitTime(2_501));
        assert_eq!(expired.start.is_some(), dropped, "{cleanup:?}");
        assert_eq!(expired.due.is_some(), dropped, "{cleanup:?}");
    }
    assert_eq!(start(Some(500), None, 2_500), None, "a range without a commit time is young");
    assert_eq!(start(Some(500), None, 2_501), Some(Offset(10)), "but older than an old one behind it");
    assert_eq!(start(Some(500), Some(10), 0), Some(Offset(10)), "by size, whatever the time");
    let due = |ttl, now| expiry(&bucket, &options(ttl, None), CommitTime(now));
    let (first, second) = (CommitTime(2_501), CommitTime(3_501));
    assert_eq!(due(Some(500), 0), Expiry { start: None, due: Some(first) });
    assert_eq!(due(Some(500), 2_501), Expiry { start: Some(Offset(10)), due: Some(second) });
    assert_eq!(due(Some(500), 3_501), Expiry { start: Some(Offset(15)), due: None });
    assert_eq!(due(None, 3_501), Expiry::default());
    assert_eq!(start(None, Some(20), 0), Some(Offset(5)));
    assert_eq!(start(None, Some(21), 0), None, "what stays must be enough");
    let aged = log.done(&Command::RaiseStart {
        by: me,
        bucket: buckets[0],
        epoch: BucketEpoch(1),
        start: Offset(5),
    });
    assert_eq!(aged, Answer::Done);
    let bucket = log.0.bucket(&buckets[0]).expect("there").clone();
    let start = |now| expired_start(&bucket, &options(Some(500), None), CommitTime(now));
    assert_eq!([2_500, 2_501, 3_501].map(start), [None, Some(Offset(10)), Some(Offset(15))]);
    assert_eq!(start(-5), None, "a clock before the commit forgets nothing");
}

#[test]
fn i6_a_log_without_records_keeps_its_producers_until_the_last_has_expired() {
    let mut log = Log::new();
    for level in 2..=mink_metadata::FEATURE_LEVEL_MAX {
        log.done(&Command::RaiseFeatureLevel { level });
    }
    let me = log.register(1);
    let bucket = log.create("t", 1)[0];
    log.open(me);
    for (counter, time) in [(0, 1_000), (1, 2_000)] {
        let mut range = range(bucket, 1, counter * 5, counter * 5 + 5);
        (range.last_commit_time, range.bytes) = (CommitTime(time), 100);
        log.commit(me, me, log.stream(me, counter), range, None);
    }
    let raise = |start| Command::RaiseStart { by: me, bucket, epoch: BucketEpoch(1), start: Offset(start) };
    let expire = |log: &Log| producers_expire(log.0.bucket(&bucket).expect("there"), 500);
    assert_eq!(expire(&log), None);
    log.done(&raise(7));
    assert_eq!(expire(&log), None, "it has records");
    log.done(&raise(10));
    assert_eq!(expire(&log), Some(CommitTime(2_501)));
    let known = log.0.bucket(&bucket).expect("there").clone();
    let options = TableOptions { retention_bytes: Some(1), log_ttl_ms: Some(1), ..TableOptions::default() };
    let nothing = expiry(&known, &options, CommitTime(i64::MAX));
    assert_eq!((known.ranges.len(), nothing), (1, Expiry::default()), "retention has nothing to do with it");
    log.done(&Command::ForgetProducers { by: me, bucket, epoch: BucketEpoch(1), end: Offset(10) });
    assert_eq!(expire(&log), None, "nothing is kept");
}

#[test]
fn p_4_cleaned_chains_are_listed_again_in_turn_and_keep_what_they_kept() {
    let mut log = Log::new();
    let lives: Vec<Incarnation> = (0..4).map(|_| log.register(1)).collect();
    let me = lives[3];
    assert_eq!(sweep_again(&log.0, Incarnation(0)), None);
    for (seal, life) in (5..).zip(&lives[..3]) {
        log.done(&Command::Fence { incarnation: *life, by: me });
        let from = Some(TakenOver { incarnation: *life, seal: WalNumber(seal) });
        log.done(&Command::Open { by: me, buckets: vec![], from });
    }
    for life in [lives[0], lives[2]] {
        log.done(&Command::Swept { incarnation: life });
    }
    let turn = |after: Incarnation| sweep_again(&log.0, after).expect("some are cleaned");
    let mut after = Incarnation(0);
    let turns = [(); 4].map(|()| {
        after = turn(after).incarnation;
        after
    });
    assert_eq!(turns, [lives[0], lives[2], lives[0], lives[2]]);
    assert_eq!(turn(Incarnation(u64::MAX)).incarnation, lives[0]);
    let keep = turn(lives[0]).keep;
    assert_eq!(keep.wal_numbers(), [WalNumber(7)].into());
    assert!(!keep.keeps(log.wal(lives[2], 8), true), "a late PUT behind the seal");
    assert!(keep.keeps(log.wal(lives[1], 0), false), "another chain's");
}

#[test]
fn i14_a_fenced_node_deletes_nothing_and_a_plan_of_garbage_is_that_part_of_the_whole_plan() {
    let mut log = Log::new();
    let old = log.register(1);
    let buckets = log.create("t", 3);
    log.open(old);
    log.commit(old, old, log.stream(old, 1), range(buckets[0], 1, 0, 5), None);
    log.done(&Command::DropTable { id: buckets[0].table });
    let facts = Facts { collect: true, grace_passed: log.0.witness().index, ..Facts::default() };
    assert_eq!(garbage(&log.0, old, &facts).len(), 1);
    let me = log.register(1);
    log.done(&Command::Fence { incarnation: old, by: me });
    assert_eq!(garbage(&log.0, old, &facts), []);
    let facts = Facts { grace_passed: log.0.witness().index, ..facts };
    let whole: Vec<Step> =
        plan(&log.0, me, &facts).into_iter().filter(|step| !matches!(step, Step::TakeOver(_))).collect();
    let part = garbage(&log.0, me, &facts);
    assert_eq!((part.len(), &part), (2, &whole));
}
