//! A model: clients that join, sync, commit, leave and fall silent at random, over a log that is slow, refuses, and survives its
//! coordinator. Checks I18 after every step.
//!
//! Lives on: tests.
use super::harness::{Bench, committing, group, joining, syncing, topic};
use crate::{
    AppendRefused, Effects, Fold, GroupError, GroupLimits, Groups, InstanceId, JoinRequest, KeyedRecord,
    MemberId, Record, Reply,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

const CLIENTS: usize = 4;
const HOUR_MS: u64 = 3_600_000;

#[derive(Clone, Copy, Debug)]
enum Action {
    /// A client does what a good client does next.
    GoOn {
        client: usize,
    },
    /// A client joins with the id it has, if it has one; or as one that starts anew.
    Join {
        client: usize,
        anew: bool,
        protocol: bool,
    },
    Sync {
        client: usize,
        generation: i32,
    },
    Heartbeat {
        client: usize,
    },
    Leave {
        client: usize,
    },
    Commit {
        client: usize,
        generation: i32,
        bucket: u32,
    },
    CommitAlone {
        bucket: u32,
    },
    Advance {
        ms: u64,
    },
    Store,
    Refuse {
        why: AppendRefused,
    },
    Crash {
        stored: usize,
    },
    Delete,
    DeleteOffsets {
        bucket: u32,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let client = 0..CLIENTS;
    let why = prop_oneof![Just(AppendRefused::Retriable), Just(AppendRefused::TooLarge)];
    // Mostly the generation that the client knows.
    let generation = prop_oneof![8 => Just(0), 1 => Just(-1), 1 => Just(1)];
    prop_oneof![
        30 => client.clone().prop_map(|client| Action::GoOn { client }),
        3 => (client.clone(), prop::bool::weighted(0.2), prop::bool::weighted(0.2))
            .prop_map(|(client, anew, protocol)| Action::Join { client, anew, protocol }),
        3 => (client.clone(), generation.clone())
            .prop_map(|(client, generation)| Action::Sync { client, generation }),
        2 => client.clone().prop_map(|client| Action::Heartbeat { client }),
        1 => client.clone().prop_map(|client| Action::Leave { client }),
        6 => (client, generation, 0..3_u32)
            .prop_map(|(client, generation, bucket)| Action::Commit { client, generation, bucket }),
        1 => (0..3_u32).prop_map(|bucket| Action::CommitAlone { bucket }),
        3 => prop_oneof![8 => 0..4_000_u64, 2 => 0..20_000_u64, 1 => 0..90_000_u64]
            .prop_map(|ms| Action::Advance { ms }),
        20 => Just(Action::Store),
        1 => why.prop_map(|why| Action::Refuse { why }),
        1 => (0..3_usize).prop_map(|stored| Action::Crash { stored }),
        1 => Just(Action::Delete),
        1 => (0..3_u32).prop_map(|bucket| Action::DeleteOffsets { bucket }),
    ]
}

/// What a good client does next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Join,
    Sync,
    Consume,
}

/// What a client knows of itself. Clients with an odd number are static, those above 1 know of required ids.
#[derive(Clone, Default)]
struct Client {
    next: Next,
    /// What it waits for, as far as it remembers.
    waits: Option<u32>,
    member: Option<MemberId>,
    generation: i32,
    /// Whom it has to assign to; empty for a follower.
    others: Vec<MemberId>,
}

struct Model {
    bench: Bench,
    clients: Vec<Client>,
    /// Who waits with which token for a join, and for a sync of which generation.
    joins: BTreeMap<u32, usize>,
    syncs: BTreeMap<u32, (usize, i32)>,
    /// The round of assignments that was handed out for each generation.
    handed: BTreeMap<i32, String>,
    rounds: u32,
    /// The highest generation that this life of the coordinator has told anyone, or found.
    newest: i32,
    offset: i64,
    /// How often things happened that the model is about.
    reached: Reached,
}

#[derive(Clone, Copy, Default, Debug)]
struct Reached {
    assignments: usize,
    commits: usize,
    /// Joins that were answered with a generation that had its assignments.
    went_on: usize,
    refusals: usize,
    crashes_with_members: usize,
    most_members: usize,
}

impl Model {
    fn new(limits: GroupLimits) -> Model {
        let mut bench = Bench::with(limits);
        bench.stores_at_once = false;
        Model {
            bench,
            clients: vec![Client::default(); CLIENTS],
            joins: BTreeMap::new(),
            syncs: BTreeMap::new(),
            handed: BTreeMap::new(),
            rounds: 0,
            newest: 0,
            offset: 0,
            reached: Reached::default(),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::GoOn { client } => self.go_on(client),
            Action::Join { client, anew, protocol } => self.join(client, anew, protocol),
            Action::Sync { client, generation } => self.sync(client, generation),
            Action::Heartbeat { client } => {
                if let Some(member) = self.clients[client].member.clone() {
                    let _ = self.bench.heartbeat(&member, self.clients[client].generation);
                }
            }
            Action::Leave { client } => {
                if let Some(member) = self.clients[client].member.take() {
                    self.bench.leave(&[(member.as_str(), None)]).ok();
                }
            }
            Action::Commit { client, generation, bucket } => self.commit(client, generation, bucket),
            Action::CommitAlone { bucket } => self.commit_alone(bucket),
            Action::Advance { ms } => self.bench.advance(ms),
            Action::Store => {
                self.bench.store();
            }
            Action::Refuse { why } => {
                if !self.bench.queued.is_empty() {
                    self.bench.refuse(why);
                    self.reached.refusals += 1;
                }
            }
            Action::Crash { stored } => self.crash(stored),
            Action::Delete => {
                self.bench.delete();
            }
            Action::DeleteOffsets { bucket } => {
                self.bench.delete_offsets(&[topic(1, bucket)]);
            }
        }
        self.look_at_answers();
        self.check();
        if self.bench.groups.is_empty() {
            // Another group of its name begins at the first generation.
            self.handed.clear();
            self.newest = 0;
        }
    }

    fn go_on(&mut self, client: usize) {
        let Client { next, waits, member, generation, .. } = self.clients[client].clone();
        if waits.is_some_and(|token| self.bench.waits(token)) {
            return;
        }
        match (next, member) {
            (Next::Consume, Some(member)) => match self.bench.heartbeat(&member, generation) {
                Ok(()) => self.commit(client, 0, u32::try_from(client).expect("small") % 3),
                Err(GroupError::RebalanceInProgress) => self.join(client, false, false),
                Err(_) => self.join(client, true, false),
            },
            (Next::Sync, Some(_)) => self.sync(client, 0),
            _ => self.join(client, false, false),
        }
    }

    fn join(&mut self, client: usize, anew: bool, protocol: bool) {
        if anew {
            self.clients[client] = Client::default();
        }
        let member = self.clients[client].member.clone();
        let mut request = JoinRequest {
            instance: (client % 2 == 1).then(|| InstanceId::new(&format!("i{client}"))),
            member_id_required: client > 1,
            can_skip_assignment: client > 1,
            session_timeout_ms: 6_000 + i32::try_from(client).expect("small") * 1_000,
            rebalance_timeout_ms: (client != 0).then_some(20_000),
            ..joining(member.as_ref().map_or("", MemberId::as_str))
        };
        if protocol {
            request.protocols.push(super::harness::protocol("sticky"));
        }
        let token = self.bench.join(request);
        self.joins.insert(token, client);
        self.clients[client].waits = Some(token);
    }

    fn sync(&mut self, client: usize, generation: i32) {
        let Client { member: Some(member), generation: known, others, .. } = self.clients[client].clone()
        else {
            return;
        };
        self.rounds += 1;
        let round = self.rounds.to_string();
        let assignments: Vec<_> = others.iter().map(|other| (other, round.as_str())).collect();
        let token = self.bench.sync(syncing(&member, known + generation, &assignments));
        self.syncs.insert(token, (client, known + generation));
        self.clients[client].waits = Some(token);
    }

    fn commit(&mut self, client: usize, generation: i32, bucket: u32) {
        let Some(member) = self.clients[client].member.clone() else { return };
        let generation = self.clients[client].generation + generation;
        self.offset += 1;
        let (before, current) = (self.bench.queued.len(), self.bench.generation());
        let request = committing(member.as_str(), generation, &[(topic(1, bucket), self.offset)]);
        self.bench.commit(request);
        if self.bench.queued.len() > before && generation >= 0 {
            self.reached.commits += 1;
            // A group that lost its last member is a generation further than anybody was told; as in Kafka, whoever joins it next may name that.
            assert_eq!(generation, current, "I18: only the newest generation may commit");
            assert!(
                generation >= self.newest,
                "I18: no generation before one that was handed out may commit"
            );
        }
    }

    fn commit_alone(&mut self, bucket: u32) {
        self.offset += 1;
        let before = self.bench.queued.len();
        let members = self.bench.groups.members();
        self.bench.commit(committing("", -1, &[(topic(1, bucket), self.offset)]));
        assert!(self.bench.queued.len() == before || members == 0, "I18: a group with members is theirs");
    }

    /// The coordinator is given up with appends in flight, of which the first `stored` did happen.
    fn crash(&mut self, stored: usize) {
        let limits = self.bench.limits.clone();
        let groups = std::mem::replace(&mut self.bench.groups, Groups::new(limits));
        let mut effects = Effects::default();
        groups.close(GroupError::CoordinatorLoadInProgress, &mut effects);
        self.bench.take(effects);
        assert_eq!(self.bench.answers.len(), self.bench.tokens as usize, "everyone has been answered");
        for append in self.bench.queued.drain(..).take(stored) {
            self.bench.log.extend(append.records);
        }
        self.bench.reload();
        self.newest = self.bench.generation();
        self.reached.crashes_with_members += usize::from(self.bench.groups.members() > 0);
    }

    fn look_at_answers(&mut self) {
        let fresh: Vec<_> = self.bench.answers.keys().copied().collect();
        for token in fresh {
            if let Some(client) = self.joins.remove(&token) {
                self.joined(token, client);
            }
            let Some((client, generation)) = self.syncs.remove(&token) else { continue };
            let Ok(synced) = self.bench.synced(token) else {
                self.clients[client].next = Next::Join;
                continue;
            };
            self.clients[client].next = Next::Consume;
            let round = String::from_utf8(synced.assignment.to_vec()).expect("text");
            // A member that the leader did not know of has nothing; it owns nothing.
            if !round.is_empty() {
                self.reached.assignments += 1;
                let before = self.handed.entry(generation).or_insert_with(|| round.clone());
                assert_eq!(*before, round, "I18: one set of assignments per generation");
            }
        }
    }

    fn joined(&mut self, token: u32, client: usize) {
        match &self.bench.answers[&token] {
            Reply::Join(Ok(joined)) => {
                assert!(joined.generation >= self.newest, "generations never go back");
                self.reached.went_on += usize::from(self.handed.contains_key(&joined.generation));
                self.reached.most_members = self.reached.most_members.max(joined.members.len());
                self.newest = joined.generation;
                let leads = joined.leader.as_ref() == Some(&joined.member) && !joined.skip_assignment;
                let others = joined.members.iter().map(|other| other.member.clone());
                self.clients[client] = Client {
                    next: Next::Sync,
                    waits: None,
                    member: Some(joined.member.clone()),
                    generation: joined.generation,
                    others: if leads { others.collect() } else { Vec::new() },
                };
            }
            Reply::Join(Err(refused)) => match refused.error {
                GroupError::MemberIdRequired => self.clients[client].member = Some(refused.member.clone()),
                GroupError::UnknownMemberId | GroupError::FencedInstanceId => {
                    self.clients[client] = Client::default();
                }
                _ => {}
            },
            other => panic!("no join but {other:?}"),
        }
    }

    fn check(&self) {
        let bench = &self.bench;
        let stored: Vec<KeyedRecord> = bench.fold().records().collect();
        let snapshot: Vec<KeyedRecord> = bench.groups.snapshot_records().collect();
        assert_eq!(snapshot, stored, "I18: what is seen is what is stored, in log order");
        check_generations(&bench.log);
        if let Some(next) = bench.groups.next_deadline() {
            assert!(next >= bench.now.monotonic_ms, "nothing that was due is left");
            assert!(next <= bench.now.monotonic_ms + HOUR_MS, "deadlines are bounded");
        }
        let group = bench.groups.get(&group());
        let timers = group.map_or(0, |group| group.deadlines.len());
        let members = bench.groups.members() + group.map_or(0, |group| group.pending.len());
        assert!(timers <= members + 4, "{timers} timers for {members} members");
        let waiting = bench.tokens as usize - bench.answers.len();
        assert!(waiting <= 2 * members + bench.queued.len(), "{waiting} wait for {members} members");
        assert_eq!(bench.groups.in_flight(), bench.queued.len());
    }

    /// Silence: everything that was held is given back.
    fn end(mut self) -> Reached {
        for _ in 0..24 * 9 {
            self.bench.store_all();
            self.bench.advance(HOUR_MS);
            self.look_at_answers();
            self.check();
        }
        self.bench.store_all();
        let groups = &self.bench.groups;
        assert_eq!(
            (groups.len(), groups.bytes(), groups.in_flight(), groups.next_deadline()),
            (0, 0, 0, None)
        );
        assert_eq!(self.bench.answers.len(), self.bench.tokens as usize, "every token has been answered");
        assert_eq!(self.bench.fold().records().count(), 0);
        self.reached
    }
}

/// Between two deletions of the group its generations grow.
fn check_generations(log: &[KeyedRecord]) {
    let (mut newest, mut fold) = (0, Fold::default());
    for record in log {
        fold.apply(&record.key, record.value.as_deref()).expect("a record");
        match Record::decode(&record.key, record.value.as_deref()).expect("a record") {
            Record::Group(_, Some(value)) => {
                assert!(value.generation >= newest, "stored generations never go back");
                newest = value.generation;
            }
            Record::Group(_, None) => newest = 0,
            Record::Offset(..) => {}
        }
    }
}

fn run(actions: Vec<Action>, rebalance_delay_ms: u32) -> Reached {
    let mut model = Model::new(GroupLimits { rebalance_delay_ms, members_max: 5, ..GroupLimits::default() });
    for action in actions {
        model.act(action);
    }
    model.end()
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn i18_holds_whatever_clients_log_and_coordinator_do(
        actions in actions(), delay in prop_oneof![Just(0), Just(3_000_u32)],
    ) {
        run(actions, delay);
    }
}

/// The first generation ends with its last member; the next member, still joining, names the second before anybody was told of it.
#[test]
fn i18_a_commit_may_name_the_generation_that_the_end_of_the_last_one_began() {
    let client = 2;
    let mut actions = vec![Action::GoOn { client: 0 }, Action::GoOn { client }, Action::GoOn { client }];
    actions.extend([Action::Advance { ms: 6_000 }, Action::Leave { client }, Action::Advance { ms: 6_000 }]);
    actions.extend(std::iter::repeat_n(Action::GoOn { client }, 3));
    actions.push(Action::Commit { client, generation: 1, bucket: 0 });
    assert_eq!(run(actions, 3_000).commits, 1);
}

/// A model that never gets to a second generation would find nothing.
#[test]
fn the_model_gets_to_what_it_is_about() {
    let mut runner = TestRunner::deterministic();
    let mut all = Reached::default();
    for _ in 0..100 {
        let actions = actions().new_tree(&mut runner).expect("a sequence").current();
        let reached = run(actions, 0);
        all.assignments += reached.assignments;
        all.commits += reached.commits;
        all.went_on += reached.went_on;
        all.refusals += reached.refusals;
        all.crashes_with_members += reached.crashes_with_members;
        all.most_members = all.most_members.max(reached.most_members);
    }
    let counts = [all.assignments, all.commits, all.crashes_with_members];
    assert!(counts.iter().all(|count| *count > 50), "{all:?}");
    assert!(all.refusals > 20 && all.went_on > 0 && all.most_members > 2, "{all:?}");
}
