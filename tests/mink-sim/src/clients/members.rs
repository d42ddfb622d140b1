//! Members of a consumer group: they join, commit, stand still, leave or die, and try commits of generations that are over.
//!
//! Lives on: the simulation's thread, outside every node's process.
//! Invariants checked: I18 (by the group's history).
use crate::clients::Clients;
use crate::group_history::{GroupHistory, Sent};
use crate::machine::Serving;
use bytes::Bytes;
use mink_group::{
    CommitRequest, GroupError, GroupId, HeartbeatRequest, JoinRequest, Joined, LeaveRequest, Leaving,
    MemberId, OffsetToCommit, Protocol, SyncRequest, TopicKey,
};
use mink_types::{BucketIndex, TableId, TableName, TablePath};
use std::sync::Arc;
use std::time::Duration;

/// Partitions that the group shares. Coordinators do not ask whether they exist, only whether their table does.
const PARTITIONS: u32 = 3;
/// The shortest that a coordinator takes.
const SESSION_MS: i32 = 6_000;
const REBALANCE_MS: i32 = 4_000;
/// A client hangs up when an answer takes longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(300);
/// Tries of the last look.
const LAST_READS_MAX: u32 = 600;

/// A group, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    clients: Clients,
    group: GroupId,
    history: Arc<GroupHistory>,
    count: u64,
}

/// A member's place in a generation.
#[derive(Clone, Debug)]
struct Place {
    member: MemberId,
    generation: i32,
    partitions: Vec<u32>,
}

impl Members {
    pub(crate) fn new(clients: &Clients) -> Members {
        let count = 2 + clients.site.dice.below(2);
        let group = GroupId::new("sim").expect("valid");
        Members { clients: clients.clone(), group, history: Arc::default(), count }
    }

    /// So many live at a time.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn judge(&self, told: Option<String>) {
        if let Some(what) = told {
            self.clients.site.history.violated(what);
        }
    }

    /// Asks a node; none if it dies, hangs or is not there.
    async fn call<T: Send + 'static>(
        &self,
        serving: &Serving,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.clients.site.service.timeout(REQUEST_TIMEOUT, serving.call(work)).await.ok().flatten()
    }

    async fn pause(&self) {
        self.clients.site.service.sleep(self.clients.site.dice.between(PAUSE / 3, PAUSE * 2)).await;
    }

    /// A table that stays, on a node that serves and has been asked for the group's coordinator.
    async fn find(&self) -> Option<(Serving, TableId)> {
        let serving = self.clients.site.pick()?;
        let path =
            TablePath { database: crate::clients::admin::database()?, table: TableName::new("t0").ok()? };
        let table = serving.admin.state().table_at(&path)?.id;
        let (groups, group) = (Arc::clone(&serving.groups), self.group.clone());
        // It makes the internal table. Where it is does not matter: each node here is asked.
        drop(self.call(&serving, async move { groups.coordinator(&group).await }).await);
        Some((serving, table))
    }

    async fn join(
        &self,
        serving: &Serving,
        member: MemberId,
    ) -> Option<Result<(Sent, Joined), (GroupError, MemberId)>> {
        let dice = &self.clients.site.dice;
        let mut unique = [0; 16];
        for byte in &mut unique {
            *byte = u8::try_from(dice.below(256)).unwrap_or(0);
        }
        let request = JoinRequest {
            group: self.group.clone(),
            member,
            instance: None,
            client_id: "sim".into(),
            client_host: "/sim".into(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: Some(REBALANCE_MS),
            protocol_type: "consumer".into(),
            protocols: vec![Protocol { name: "range".into(), metadata: Bytes::from_static(&[0; 10]) }],
            member_id_required: dice.one_in(2),
            can_skip_assignment: false,
            unique,
        };
        let (sent, groups) = (self.history.sent(), Arc::clone(&serving.groups));
        let answer = self.call(serving, async move { groups.join(request).await }).await?;
        Some(answer.map(|joined| (sent, joined)).map_err(|refused| (refused.error, refused.member)))
    }

    /// Joins and gets an assignment.
    async fn enter(&self, serving: &Serving, member: MemberId) -> Result<Place, MemberId> {
        let (sent, joined) = match self.join(serving, member.clone()).await {
            Some(Ok(joined)) => joined,
            Some(Err((GroupError::MemberIdRequired, given))) => return Err(given),
            Some(Err((GroupError::UnknownMemberId, _))) => return Err(MemberId::new("")),
            Some(Err(_)) | None => return Err(member),
        };
        self.judge(sent.told(joined.generation));
        let count = u32::try_from(joined.members.len()).unwrap_or(1).max(1);
        let assignments = (0..).zip(&joined.members).map(|(at, member)| {
            let of_it = (0..PARTITIONS).filter(|partition| partition % count == at);
            let bytes: Vec<u8> = of_it.filter_map(|partition| u8::try_from(partition).ok()).collect();
            (member.member.clone(), Bytes::from(bytes))
        });
        let request = SyncRequest {
            group: self.group.clone(),
            member: joined.member.clone(),
            instance: None,
            generation: joined.generation,
            protocol_type: None,
            protocol: None,
            assignments: assignments.collect(),
        };
        let (sent, groups) = (self.history.sent(), Arc::clone(&serving.groups));
        let Some(Ok(synced)) = self.call(serving, async move { groups.sync(request).await }).await else {
            return Err(joined.member);
        };
        let partitions: Vec<u32> = synced.assignment.iter().map(|byte| u32::from(*byte)).collect();
        let (member, generation) = (joined.member, joined.generation);
        self.judge(self.history.assigned(sent, generation, &member, &partitions));
        Ok(Place { member, generation, partitions })
    }

    /// A heartbeat: whether the place is still held.
    async fn beat(&self, serving: &Serving, place: &Place) -> Option<Result<(), GroupError>> {
        let request = HeartbeatRequest {
            group: self.group.clone(),
            member: place.member.clone(),
            instance: None,
            generation: place.generation,
        };
        let (sent, groups) = (self.history.sent(), Arc::clone(&serving.groups));
        let answer = self.call(serving, async move { groups.heartbeat(request).await }).await?;
        if answer.is_ok() {
            self.judge(sent.told(place.generation));
        }
        Some(answer)
    }

    async fn commit(
        &self,
        serving: &Serving,
        table: TableId,
        place: &Place,
    ) -> Option<Result<(), GroupError>> {
        let dice = &self.clients.site.dice;
        let partition = place.partitions.get(dice.index(place.partitions.len())).copied()?;
        let (id, offset, sent) = self.history.committing(partition, place.generation);
        let topic = TopicKey { table, bucket: BucketIndex(partition) };
        let request = CommitRequest {
            group: self.group.clone(),
            member: place.member.clone(),
            instance: None,
            generation: place.generation,
            offsets: vec![OffsetToCommit { topic, offset, leader_epoch: -1, metadata: "".into() }],
            retention_ms: None,
        };
        let groups = Arc::clone(&serving.groups);
        let answer = self.call(serving, async move { groups.commit(request).await }).await?;
        let answer = answer.and_then(|results| results.into_iter().next().unwrap_or(Ok(())));
        self.judge(self.history.committed(id, sent, answer));
        Some(answer)
    }

    /// What is committed; false if nobody told.
    async fn fetch(&self, serving: &Serving, table: TableId) -> bool {
        let topics = (0..PARTITIONS).map(|number| TopicKey { table, bucket: BucketIndex(number) }).collect();
        let (sent, groups, group) = (self.history.sent(), Arc::clone(&serving.groups), self.group.clone());
        let asked = self.call(serving, async move { groups.offsets(&group, Some(topics)).await });
        let Some(Ok(offsets)) = asked.await else { return false };
        for (topic, found) in offsets {
            self.judge(self.history.fetched(sent, topic.bucket.0, found.map(|found| found.offset)));
        }
        true
    }

    async fn leave(&self, serving: &Serving, place: &Place) {
        let members = vec![Leaving { member: place.member.clone(), instance: None }];
        let request = LeaveRequest { group: self.group.clone(), members };
        let groups = Arc::clone(&serving.groups);
        // Without an answer its session ends.
        drop(self.call(serving, async move { groups.leave(request).await }).await);
    }

    /// Whatever befell the group, what was committed is there.
    pub(crate) async fn read_last(&self) {
        for _ in 0..LAST_READS_MAX {
            if let Some((serving, table)) = self.find().await
                && self.fetch(&serving, table).await
            {
                return;
            }
            self.pause().await;
        }
        self.judge(Some("I18: nobody tells what is committed though all is well".into()));
    }
}

/// Lives as one member after another until the clients stop.
pub(crate) async fn live(group: Members) {
    let (dice, mut member) = (group.clients.site.dice.clone(), MemberId::new(""));
    let mut over: Option<Place> = None;
    while !group.clients.stopping() {
        group.pause().await;
        let Some((serving, table)) = group.find().await else { continue };
        if dice.one_in(3) {
            group.fetch(&serving, table).await;
        }
        let place = match group.enter(&serving, member.clone()).await {
            Ok(place) => place,
            Err(next) => {
                member = next;
                continue;
            }
        };
        member = place.member.clone();
        // A thread of the client that missed the rebalance, and goes on with what it knows.
        if let Some(over) = over.replace(place.clone())
            && over.generation < place.generation
        {
            let _ = group.commit(&serving, table, &over).await;
        }
        stay(&group, &place, table).await;
        if dice.one_in(4) {
            // It dies without a word, or in order.
            if dice.one_in(2) {
                group.leave(&serving, &place).await;
            }
            member = MemberId::new("");
        }
    }
}

/// Works as a member until something is wrong or enough.
async fn stay(group: &Members, place: &Place, table: TableId) {
    let dice = &group.clients.site.dice;
    for _ in 0..dice.below(40) {
        group.pause().await;
        if group.clients.stopping() {
            return;
        }
        if dice.one_in(60) {
            // Longer than its session.
            group.clients.site.service.sleep(Duration::from_secs(8)).await;
        }
        let Some(serving) = group.clients.site.pick() else { continue };
        let told = match dice.below(4) {
            0 => group.beat(&serving, place).await,
            1 => {
                group.fetch(&serving, table).await;
                None
            }
            _ => group.commit(&serving, table, place).await,
        };
        let over =
            [GroupError::RebalanceInProgress, GroupError::IllegalGeneration, GroupError::UnknownMemberId];
        if let Some(Err(error)) = told
            && over.contains(&error)
        {
            return;
        }
    }
}
