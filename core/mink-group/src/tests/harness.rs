//! A coordinator with a log and a clock that a test moves.
//!
//! Lives on: tests.
//! Invariants: each token is answered once; whoever looks at the clock sees each deadline when it comes.
use crate::{
    Append, AppendRefused, CommitRequest, CommittedOffset, Effects, Fold, GroupError, GroupId, GroupLimits,
    GroupState, Groups, HeartbeatRequest, InstanceId, JoinRefused, JoinRequest, Joined, KeyedRecord,
    LeaveRequest, Leaving, LeftMember, MemberId, Now, OffsetToCommit, Protocol, Reply, SyncRequest, Synced,
    TopicKey,
};
use bytes::Bytes;
use mink_types::{BucketIndex, CommitTime, TableId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) const START_MS: i64 = 1_700_000_000_000;

pub(super) struct Bench {
    pub(super) groups: Groups<u32>,
    pub(super) limits: GroupLimits,
    pub(super) now: Now,
    /// Appends are durable at once; otherwise they wait in `queued`.
    pub(super) stores_at_once: bool,
    pub(super) queued: VecDeque<Append>,
    pub(super) log: Vec<KeyedRecord>,
    pub(super) answers: BTreeMap<u32, Reply>,
    pub(super) tokens: u32,
}

pub(super) fn group() -> GroupId {
    GroupId::new("g").expect("an id")
}

pub(super) fn id(text: &str) -> MemberId {
    MemberId::new(text)
}

pub(super) fn topic(table: u64, bucket: u32) -> TopicKey {
    TopicKey { table: TableId(table), bucket: BucketIndex(bucket) }
}

/// The name of each table's topic: `t` and its number.
pub(super) fn topic_name(table: TableId) -> Arc<str> {
    format!("t{table}").into()
}

pub(super) fn subscription(topics: &[&str]) -> Bytes {
    let mut out = vec![0, 1];
    out.extend_from_slice(&i32::try_from(topics.len()).expect("few").to_be_bytes());
    for topic in topics {
        out.extend_from_slice(&i16::try_from(topic.len()).expect("short").to_be_bytes());
        out.extend_from_slice(topic.as_bytes());
    }
    out.into()
}

pub(super) fn protocol(name: &str) -> Protocol {
    Protocol { name: name.into(), metadata: subscription(&["t1"]) }
}

/// A join as version 3 has it, of a consumer of topic `t1` with a session of 10 s and a rebalance time-out of 60 s.
pub(super) fn joining(member: &str) -> JoinRequest {
    JoinRequest {
        group: group(),
        member: id(member),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: Some(60_000),
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        member_id_required: false,
        can_skip_assignment: false,
        unique: [0; 16],
    }
}

pub(super) fn joining_static(instance: &str) -> JoinRequest {
    JoinRequest { instance: Some(InstanceId::new(instance)), member_id_required: true, ..joining("") }
}

pub(super) fn syncing(member: &MemberId, generation: i32, assignments: &[(&MemberId, &str)]) -> SyncRequest {
    let owned =
        |(member, text): &(&MemberId, &str)| ((*member).clone(), Bytes::copy_from_slice(text.as_bytes()));
    SyncRequest {
        group: group(),
        member: member.clone(),
        instance: None,
        generation,
        protocol_type: None,
        protocol: None,
        assignments: assignments.iter().map(owned).collect(),
    }
}

pub(super) fn committing(member: &str, generation: i32, offsets: &[(TopicKey, i64)]) -> CommitRequest {
    let wanted = |(topic, offset): &(TopicKey, i64)| OffsetToCommit {
        topic: *topic,
        offset: *offset,
        leader_epoch: -1,
        metadata: "".into(),
    };
    CommitRequest {
        group: group(),
        member: id(member),
        instance: None,
        generation,
        offsets: offsets.iter().map(wanted).collect(),
        retention_ms: None,
    }
}

impl Bench {
    /// A coordinator whose groups do not wait for more members.
    pub(super) fn new() -> Bench {
        Bench::with(GroupLimits { rebalance_delay_ms: 0, ..GroupLimits::default() })
    }

    pub(super) fn with(limits: GroupLimits) -> Bench {
        Bench {
            groups: Groups::new(limits.clone()),
            limits,
            now: Now { monotonic_ms: 1_000, wall: CommitTime(START_MS) },
            stores_at_once: true,
            queued: VecDeque::new(),
            log: Vec::new(),
            answers: BTreeMap::new(),
            tokens: 0,
        }
    }

    pub(super) fn token(&mut self) -> u32 {
        self.tokens += 1;
        self.tokens
    }

    pub(super) fn take(&mut self, effects: Effects<u32>) {
        for (token, reply) in effects.replies {
            let before = self.answers.insert(token, reply);
            assert_eq!(before, None, "token {token} is answered twice");
        }
        self.queued.extend(effects.appends);
        if self.stores_at_once {
            self.store_all();
        }
    }

    /// The next append becomes durable.
    pub(super) fn store(&mut self) -> bool {
        let Some(append) = self.queued.pop_front() else { return false };
        self.log.extend(append.records);
        let mut effects = Effects::default();
        self.groups.durable(append.handle, self.now, &mut effects);
        self.take(effects);
        true
    }

    pub(super) fn store_all(&mut self) {
        while self.store() {}
    }

    /// The next append is refused.
    pub(super) fn refuse(&mut self, why: AppendRefused) {
        let append = self.queued.pop_front().expect("an append");
        let mut effects = Effects::default();
        self.groups.failed(append.handle, why, self.now, &mut effects);
        self.take(effects);
    }

    /// The process dies, and a successor reads the log.
    pub(super) fn reload(&mut self) {
        self.queued.clear();
        self.groups = Groups::load(self.limits.clone(), self.fold(), self.now);
    }

    pub(super) fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        for record in &self.log {
            fold.apply(&record.key, record.value.as_deref()).expect("a record of ours");
        }
        fold
    }

    /// Time passes, and each deadline is met when it comes.
    pub(super) fn advance(&mut self, ms: u64) {
        let until = self.now.monotonic_ms + ms;
        for _ in 0..100_000 {
            let next = self.groups.next_deadline().filter(|next| *next <= until);
            let to = next.unwrap_or(until).max(self.now.monotonic_ms);
            self.now.wall.0 += i64::try_from(to - self.now.monotonic_ms).expect("small");
            self.now.monotonic_ms = to;
            if next.is_none() {
                return;
            }
            let mut effects = Effects::default();
            self.groups.tick(&|table| Some(topic_name(table)), self.now, &mut effects);
            self.take(effects);
        }
        panic!("deadlines come without end");
    }

    pub(super) fn join(&mut self, mut request: JoinRequest) -> u32 {
        let token = self.token();
        request.unique = u128::from(token).to_be_bytes();
        let mut effects = Effects::default();
        self.groups.join(request, token, self.now, &mut effects);
        self.take(effects);
        token
    }

    pub(super) fn sync(&mut self, request: SyncRequest) -> u32 {
        let (token, mut effects) = (self.token(), Effects::default());
        self.groups.sync(request, token, self.now, &mut effects);
        self.take(effects);
        token
    }

    pub(super) fn commit(&mut self, request: CommitRequest) -> u32 {
        let (token, mut effects) = (self.token(), Effects::default());
        self.groups.commit(request, token, self.now, &mut effects);
        self.take(effects);
        token
    }

    pub(super) fn delete(&mut self) -> u32 {
        let (token, mut effects) = (self.token(), Effects::default());
        self.groups.delete(&group(), token, self.now, &mut effects);
        self.take(effects);
        token
    }

    pub(super) fn delete_offsets(&mut self, topics: &[TopicKey]) -> u32 {
        let named: Vec<_> = topics.iter().map(|t| (*t, topic_name(t.table))).collect();
        let (token, mut effects) = (self.token(), Effects::default());
        self.groups.delete_offsets(&group(), &named, token, self.now, &mut effects);
        self.take(effects);
        token
    }

    pub(super) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Result<Vec<LeftMember>, GroupError> {
        let members = members
            .iter()
            .map(|(member, instance)| Leaving { member: id(member), instance: instance.map(InstanceId::new) })
            .collect();
        let mut effects = Effects::default();
        let left = self.groups.leave(LeaveRequest { group: group(), members }, self.now, &mut effects);
        self.take(effects);
        left
    }

    pub(super) fn heartbeat(&mut self, member: &MemberId, generation: i32) -> Result<(), GroupError> {
        let request = HeartbeatRequest { group: group(), member: member.clone(), instance: None, generation };
        self.groups.heartbeat(&request, self.now)
    }

    pub(super) fn state(&self) -> GroupState {
        self.groups.describe(&group()).state
    }

    pub(super) fn generation(&self) -> i32 {
        self.groups.describe(&group()).generation
    }

    pub(super) fn waits(&self, token: u32) -> bool {
        !self.answers.contains_key(&token)
    }

    pub(super) fn joined(&self, token: u32) -> Joined {
        match self.answers.get(&token) {
            Some(Reply::Join(Ok(joined))) => joined.clone(),
            other => panic!("no join but {other:?}"),
        }
    }

    pub(super) fn not_joined(&self, token: u32) -> JoinRefused {
        match self.answers.get(&token) {
            Some(Reply::Join(Err(refused))) => refused.clone(),
            other => panic!("no refused join but {other:?}"),
        }
    }

    pub(super) fn synced(&self, token: u32) -> Result<Synced, GroupError> {
        match self.answers.get(&token) {
            Some(Reply::Sync(result)) => result.clone(),
            other => panic!("no sync but {other:?}"),
        }
    }

    pub(super) fn assignment(&self, token: u32) -> String {
        let synced = self.synced(token).expect("synced");
        String::from_utf8(synced.assignment.to_vec()).expect("text")
    }

    pub(super) fn committed(&self, token: u32) -> Result<(), GroupError> {
        match self.answers.get(&token) {
            Some(Reply::Commit(Ok(results))) => results.first().copied().unwrap_or(Ok(())),
            Some(Reply::Commit(Err(error))) => Err(*error),
            other => panic!("no commit but {other:?}"),
        }
    }

    pub(super) fn offset(&self, topic: TopicKey) -> Option<CommittedOffset> {
        let found = self.groups.fetch_offsets(&group(), &[topic]).expect("a living group");
        found.first().and_then(|(_, offset)| offset.cloned())
    }

    /// A group of two with an assignment for each, in Stable: (leader, follower).
    pub(super) fn pair(&mut self) -> (MemberId, MemberId) {
        let first = self.join(joining(""));
        let leader = self.joined(first).member;
        let second = self.join(joining(""));
        let again = self.join(joining(leader.as_str()));
        let (leader, follower) = (self.joined(again).member, self.joined(second).member);
        self.settle(&leader, &follower);
        (leader, follower)
    }

    /// Leader and follower sync in the current generation.
    pub(super) fn settle(&mut self, leader: &MemberId, follower: &MemberId) {
        let generation = self.generation();
        self.sync(syncing(follower, generation, &[]));
        self.sync(syncing(leader, generation, &[(leader, "A"), (follower, "B")]));
        assert_eq!(self.state(), GroupState::Stable);
    }
}
