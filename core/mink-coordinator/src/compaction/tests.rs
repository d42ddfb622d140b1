//! Plans carried out on the real state machine: always accepted, at an end soon, with few objects left and few bytes moved.
use std::collections::{BTreeMap, BTreeSet};

use mink_metadata::{
    Answer, BucketOpening, Command, CommittedObject, CommittedRange, Group, NewTable, Registration,
    RewrittenObject, RewrittenRange, State, TakenOver,
};
use mink_types::{
    BucketIndex, ClusterUuid, DatabaseName, NodeId, RequestId, SessionId, TableId, TableOptions, TablePath,
    TableUuid, Timestamp, WalNumber,
};
use proptest::prelude::*;

use super::*;
use crate::expired_start;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DAY_MS: i64 = 24 * 3_600_000;

/// A node that flushes and compacts, without any bytes.
struct Sim {
    state: State,
    me: Incarnation,
    policy: CompactionPolicy,
    counter: u64,
    clock: i64,
    flushed: u64,
    moved: u64,
    jobs: u64,
}

fn kafka() -> DatabaseName {
    DatabaseName::new("kafka").expect("valid")
}

impl Sim {
    fn new(policy: CompactionPolicy) -> Sim {
        let state = State::new(ClusterUuid([1; 16]));
        let me = Incarnation(0);
        let mut sim = Sim { state, me, policy, counter: 0, clock: 1, flushed: 0, moved: 0, jobs: 0 };
        sim.done(&Command::CreateDatabase { name: kafka() });
        sim.done(&Command::RaiseFeatureLevel { level: 2 });
        sim.me = sim.register();
        sim
    }

    fn done(&mut self, command: &Command) -> Answer {
        let mut group = Group::new();
        let counter = self.state.witness().index.0 + 1;
        group.push(RequestId { session: SessionId([1; 16]), counter }, command).expect("fits");
        let row = group.row(self.state.witness());
        self.state.apply(&row).expect("follows").remove(0).1.into_result().expect("accepted")
    }

    fn register(&mut self) -> Incarnation {
        let registration = Registration {
            node: NodeId(1),
            tag: 5,
            storage: String::new(),
            wal_storage: String::new(),
            listeners: vec![],
            version: String::new(),
            feature_level_max: 2,
        };
        match self.done(&Command::Register(registration)) {
            Answer::Registered(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn create(&mut self, buckets: u32, ttl_ms: Option<u64>) -> Vec<BucketId> {
        let uuid = TableUuid(u128::from(self.state.witness().index.0 + 1).to_le_bytes());
        let table = NewTable {
            path: TablePath::parse(&format!("kafka.t{}", self.state.witness().index.0)).expect("valid"),
            uuid,
            options: TableOptions { buckets, log_ttl_ms: ttl_ms, ..TableOptions::default() },
            schema: None,
            kafka_database: kafka(),
            buckets_max: 100_000,
        };
        let Answer::TableCreated(id) = self.done(&Command::CreateTable(table)) else {
            panic!("created");
        };
        let all: Vec<_> = (0..buckets).map(|at| BucketId::unpartitioned(id, BucketIndex(at))).collect();
        let openings = |id: &BucketId| BucketOpening { bucket: *id, epoch: BucketEpoch(0) };
        let buckets = all.iter().map(openings).collect();
        self.done(&Command::Open { by: self.me, buckets, from: None });
        all
    }

    fn chain(&self, of: Incarnation) -> mink_types::WalChain {
        self.state.incarnation(of).expect("registered").chain
    }

    fn stream(&mut self) -> ObjectId {
        self.counter += 1;
        ObjectId::Stream { chain: self.chain(self.me), counter: self.counter }
    }

    fn range(&self, id: BucketId, bytes: u64) -> CommittedRange {
        let bucket = self.state.bucket(&id).expect("there");
        CommittedRange {
            bucket: id,
            epoch: bucket.epoch,
            start: bucket.end,
            end: Offset(bucket.end.0 + 1),
            max_timestamp: Timestamp(self.clock),
            last_commit_time: CommitTime(self.clock),
            bytes,
        }
    }

    fn object(id: ObjectId, ranges: Vec<CommittedRange>) -> CommittedObject {
        let bytes: u64 = ranges.iter().map(|range| range.bytes).sum();
        let footer_length = 100 * u32::try_from(ranges.len()).expect("few");
        CommittedObject {
            id,
            length: 200 + bytes + u64::from(footer_length),
            footer_length,
            checksum: 1,
            ranges,
        }
    }

    /// Commits what these buckets have got, as the flusher would: large ones apart.
    fn flush(&mut self, parts: &BTreeMap<BucketId, u64>) {
        let mut objects = Vec::new();
        let (own, shared): (Vec<_>, Vec<_>) = parts
            .iter()
            .map(|(id, bytes)| self.range(*id, *bytes))
            .partition(|r| r.bytes >= self.policy.own_bytes);
        for range in own {
            objects.push(Sim::object(self.stream(), vec![range]));
        }
        if !shared.is_empty() {
            objects.push(Sim::object(self.stream(), shared));
        }
        self.flushed += parts.values().sum::<u64>();
        self.done(&Command::Commit { by: self.me, source: self.me, objects, trim: None });
    }

    /// The next life takes over: each part lies in a WAL object of its own that is adopted; one of them is lost.
    fn take_over(&mut self, parts: &BTreeMap<BucketId, u64>, lost: Option<usize>) {
        let (old, me) = (self.me, self.register());
        self.done(&Command::Fence { incarnation: old, by: me });
        let chain = self.chain(old);
        let objects = parts.iter().enumerate().map(|(number, (id, bytes))| {
            let wal = ObjectId::Wal { chain, number: WalNumber(number as u64) };
            let object = Sim::object(wal, vec![self.range(*id, *bytes)]);
            if lost == Some(number) {
                CommittedObject { length: 0, footer_length: 0, checksum: 0, ..object }
            } else {
                object
            }
        });
        let objects: Vec<_> = objects.collect();
        self.flushed += parts.values().sum::<u64>();
        self.done(&Command::Commit { by: me, source: old, objects, trim: None });
        let hanging = self
            .state
            .hanging(old)
            .map(|bucket| BucketOpening { bucket, epoch: self.state.bucket(&bucket).expect("there").epoch });
        let buckets = hanging.collect();
        let from = Some(TakenOver { incarnation: old, seal: WalNumber(9_999) });
        self.done(&Command::Open { by: me, buckets, from });
        (self.me, self.counter) = (me, 0);
    }

    /// Drops what has expired, and what is doomed.
    fn retain(&mut self) {
        let due: Vec<(BucketId, BucketEpoch, Offset)> = self
            .state
            .hanging(self.me)
            .filter_map(|id| {
                let (bucket, table) = (self.state.bucket(&id)?, self.state.table(id.table)?);
                Some((id, bucket.epoch, expired_start(bucket, &table.options, CommitTime(self.clock))?))
            })
            .collect();
        for (bucket, epoch, start) in due {
            self.done(&Command::RaiseStart { by: self.me, bucket, epoch, start });
        }
        let objects: Vec<_> = self.state.doomed().map(|(id, _)| *id).collect();
        if !objects.is_empty() {
            self.done(&Command::Deleted { objects });
        }
    }

    /// Carries plans out until there is none.
    fn compact(&mut self) {
        let spared = BTreeSet::new();
        for round in 0.. {
            assert!(round < 1_000, "planning comes to an end");
            let Some(job) = compaction(&self.state, self.me, &self.policy, &spared) else {
                return;
            };
            self.check(&job);
            self.moved += job.bytes();
            self.jobs += 1;
            let command = self.rewrite(&job);
            self.done(&command);
            for id in &job.replaced {
                assert!(self.state.object(id).is_none(), "all of {id} was this node's, and moved");
            }
        }
    }

    fn check(&self, job: &CompactionJob) {
        assert!(!job.moves.is_empty());
        assert!(job.replaced.len() <= self.policy.objects_max);
        for moved in &job.moves {
            assert!(moved.ranges.len() == 1 || moved.bytes() <= self.policy.range_bytes_max);
            assert!(moved.ranges.windows(2).all(|pair| pair[0].0.end == pair[1].0.start), "I2");
            for (_, range) in &moved.ranges {
                assert!(self.state.object(&range.object).is_some_and(|object| object.length > 0), "lost");
            }
        }
        let again = compaction(&self.state, self.me, &self.policy, &BTreeSet::new());
        assert_eq!(again.as_ref(), Some(job), "the same view gives the same plan");
    }

    fn rewrite(&mut self, job: &CompactionJob) -> Command {
        let mut objects: Vec<RewrittenObject> = Vec::new();
        let (mut shared, mut bytes): (Vec<RewrittenRange>, u64) = (Vec::new(), 0);
        let made = |id, ranges: Vec<RewrittenRange>, bytes: u64| {
            let footer_length = 100 * u32::try_from(ranges.len()).expect("few");
            RewrittenObject {
                id,
                length: bytes + u64::from(footer_length) + 200,
                footer_length,
                checksum: 2,
                ranges,
            }
        };
        for moved in &job.moves {
            let OffsetRange { start, end } = moved.range();
            let range = RewrittenRange { bucket: moved.bucket, epoch: moved.epoch, start, end };
            if moved.bytes() >= self.policy.own_bytes {
                objects.push(made(self.stream(), vec![range], moved.bytes()));
                continue;
            }
            let full =
                bytes + moved.bytes() > self.policy.range_bytes_max || shared.len() >= BUCKETS_PER_OBJECT;
            if full && !shared.is_empty() {
                objects.push(made(self.stream(), std::mem::take(&mut shared), bytes));
                bytes = 0;
            }
            shared.push(range);
            bytes += moved.bytes();
        }
        if !shared.is_empty() {
            objects.push(made(self.stream(), shared, bytes));
        }
        Command::Rewrite { by: self.me, replaced: job.replaced.iter().copied().collect(), objects }
    }

    fn objects(&self) -> usize {
        self.state.objects().count()
    }

    /// Bytes moved per hundred bytes flushed.
    fn moved_percent(&self) -> u64 {
        self.moved * 100 / self.flushed.max(1)
    }
}

fn all(ids: &[BucketId], bytes: u64) -> BTreeMap<BucketId, u64> {
    ids.iter().map(|id| (*id, bytes)).collect()
}

/// A batch of 1 KiB every ten seconds, flushed every thirty, kept for a week.
fn month(days: i64, buckets: u32) -> (usize, u64, usize) {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(buckets, Some(u64::try_from(7 * DAY_MS).expect("positive")));
    let (mut most, mut spanned) = (0, 0);
    while sim.clock < days * DAY_MS {
        sim.clock += 30_000;
        sim.flush(&all(&ids, 3 * KIB));
        sim.compact();
        if sim.clock % 600_000 < 30_000 {
            sim.retain();
            most = most.max(sim.objects());
            let bucket = sim.state.bucket(&ids[0]).expect("there");
            let oldest = bucket.ranges.values().next().map_or(sim.clock, |range| range.last_commit_time.0);
            let kept = bucket.end.0 - bucket.start.0;
            assert!(sim.clock - oldest <= 7 * DAY_MS + 600_000);
            spanned = spanned.max(usize::try_from(kept * 30_000 / 86_400_000).expect("small"));
        }
    }
    (most, sim.moved_percent(), spanned)
}

#[test]
fn i14_the_object_count_stays_flat_over_a_month() {
    let days = if std::env::var_os("MINK_E2E_LONG").is_some() { 120 } else { 30 };
    let (most, percent, kept_days) = month(days, 1);
    println!("{days} days: at most {most} objects, {percent} % of its bytes moved, {kept_days} days kept");
    assert!(most <= 64, "{most} objects");
    assert!(percent <= 600, "{percent}");
    assert!(kept_days <= 9, "a quarter of the retention time at most beyond it: {kept_days}");
}

#[test]
fn one_of_64_partitions_gets_long_runs_in_objects_of_its_own() {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(64, None);
    for _ in 0..78 {
        sim.clock += 1_000;
        sim.flush(&all(&ids, MIB - KIB));
        sim.compact();
    }
    println!(
        "64 flushes of 64 x 1 MiB: {} objects, {} % of its bytes moved",
        sim.objects(),
        sim.moved_percent()
    );
    let bucket = sim.state.bucket(&ids[17]).expect("there");
    let long = bucket.ranges.values().filter(|range| range.bytes >= 8 * MIB).map(|range| range.bytes);
    let total: u64 = bucket.ranges.values().map(|range| range.bytes).sum();
    assert!(long.sum::<u64>() * 10 >= total * 9, "{:?}", bucket.ranges);
    assert!(sim.moved_percent() <= 250, "{}", sim.moved_percent());
}

#[test]
fn many_quiet_buckets_share_few_objects() {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(2_000, None);
    let mut most = 0;
    for round in 0..400usize {
        sim.clock += 30_000;
        // Each flush has fifty of them, others each time.
        let some: Vec<BucketId> = (0..50).map(|n| ids[(round * 53 + n * 37) % ids.len()]).collect();
        sim.flush(&all(&some, 700));
        sim.compact();
        most = most.max(sim.objects());
    }
    println!(
        "400 flushes of 50 of 2,000 buckets: {most} objects, {} % of its bytes moved",
        sim.moved_percent()
    );
    assert!(most <= 64 && sim.moved_percent() <= 600);
}

#[test]
fn adopted_objects_are_rewritten_at_once_and_free_their_chain() {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(3, None);
    sim.flush(&all(&ids, KIB));
    let dead = sim.me;
    sim.take_over(&all(&ids, KIB), Some(1));
    let job = compaction(&sim.state, sim.me, &sim.policy, &BTreeSet::new()).expect("due");
    assert_eq!((job.cause, job.replaced.len()), (CompactionCause::Adopted, 2));
    sim.compact();
    let chain = sim.chain(dead);
    assert_eq!(sim.state.adopted(chain).collect::<Vec<_>>(), [WalNumber(1)], "what is lost stays named");
    let other = compaction(&sim.state, dead, &sim.policy, &BTreeSet::new());
    assert_eq!(other, None, "a fenced incarnation plans nothing");
}

#[test]
fn p_14_an_object_that_cannot_be_read_is_left_alone_and_nothing_bridges_it() {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(1, None);
    for _ in 0..12 {
        sim.clock += 1;
        sim.flush(&all(&ids, KIB));
    }
    let bad = sim.state.bucket(&ids[0]).expect("there").ranges.values().nth(3).expect("twelve").object;
    let job = compaction(&sim.state, sim.me, &sim.policy, &BTreeSet::from([bad])).expect("due");
    assert!(!job.replaced.contains(&bad));
    let runs: Vec<_> = job.moves.iter().map(|moved| (moved.range().start.0, moved.range().end.0)).collect();
    assert_eq!(runs, [(0, 3), (4, 12)]);
    let command = sim.rewrite(&job);
    sim.done(&command);
}

#[test]
fn nothing_is_planned_below_its_feature_level_or_for_others_buckets() {
    let mut sim = Sim::new(CompactionPolicy::default());
    let ids = sim.create(1, None);
    for _ in 0..20 {
        sim.flush(&all(&ids, KIB));
    }
    let other = sim.register();
    assert_eq!(compaction(&sim.state, other, &sim.policy, &BTreeSet::new()), None);
    let young = State::new(ClusterUuid([1; 16]));
    assert_eq!(compaction(&young, sim.me, &sim.policy, &BTreeSet::new()), None);
}

#[derive(Clone, Debug)]
enum Step {
    /// Buckets with bytes.
    Flush(Vec<(usize, u64)>),
    Compact,
    Raise(usize, u64),
    Drop,
    TakeOver(Vec<(usize, u64)>, Option<usize>),
    Later(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![6 => 1..400u64, 3 => 400..6_000u64, 1 => 6_000..40_000u64];
    let parts = || prop::collection::vec((0..12usize, size.clone()), 1..8);
    let step = prop_oneof![
        12 => parts().prop_map(Step::Flush),
        6 => Just(Step::Compact),
        2 => (0..12usize, 0..6u64).prop_map(|(at, up)| Step::Raise(at, up)),
        1 => (parts(), prop::option::of(0..8usize)).prop_map(|(parts, lost)| Step::TakeOver(parts, lost)),
        1 => (1..50_000i64).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 1..120).prop_flat_map(|steps| {
        // At most one table is dropped, at a place of its own.
        (Just(steps), prop::option::of(0..100usize)).prop_map(|(mut steps, at)| {
            if let Some(at) = at.filter(|at| *at < steps.len()) {
                steps.insert(at, Step::Drop);
            }
            steps
        })
    })
}

fn small_policy() -> CompactionPolicy {
    CompactionPolicy {
        fan_in: 3,
        objects_max: 9,
        job_bytes_max: 100_000,
        footer_bytes_max: 1 << 20,
        own_bytes: 4_096,
        settled_bytes: 16_384,
        range_bytes_max: 28_000,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn t_18_every_plan_is_accepted_and_planning_ends(steps in steps()) {
        let mut sim = Sim::new(small_policy());
        let mut ids = sim.create(8, None);
        ids.extend(sim.create(4, Some(60_000)));
        let named = |sim: &Sim, parts: &[(usize, u64)]| -> BTreeMap<BucketId, u64> {
            let there = parts.iter().filter(|(at, _)| sim.state.bucket(&ids[*at]).is_some());
            there.map(|(at, bytes)| (ids[*at], *bytes)).collect()
        };
        for step in steps {
            sim.clock += 100;
            match step {
                Step::Flush(parts) => {
                    let parts = named(&sim, &parts);
                    sim.flush(&parts);
                }
                Step::Compact => sim.compact(),
                Step::Raise(at, up) => {
                    let Some(bucket) = sim.state.bucket(&ids[at]) else { continue };
                    let (epoch, start) = (bucket.epoch, Offset(bucket.start.0 + up));
                    if up > 0 && start <= bucket.end {
                        sim.done(&Command::RaiseStart { by: sim.me, bucket: ids[at], epoch, start });
                    }
                }
                Step::Drop => drop(sim.done(&Command::DropTable { id: TableId(ids[0].table.0) })),
                Step::TakeOver(parts, lost) => {
                    let parts = named(&sim, &parts);
                    sim.take_over(&parts, lost);
                }
                Step::Later(ms) => {
                    sim.clock += ms;
                    sim.retain();
                }
            }
        }
        sim.compact();
        // At rest few objects are left: some per class and quarter of the retention time, lost ones, and what data needs.
        let data: u64 = ids.iter().filter_map(|id| sim.state.bucket(id))
            .flat_map(|bucket| bucket.ranges.values().map(|range| range.bytes)).sum();
        let lost = sim.state.objects().filter(|(_, object)| object.length == 0).count();
        let expected = 40 + lost + usize::try_from(data / 2_048).expect("small");
        prop_assert!(sim.objects() <= expected, "{} objects for {} bytes", sim.objects(), data);
        prop_assert!(sim.moved_percent() <= 800, "{}", sim.moved_percent());
    }
}
