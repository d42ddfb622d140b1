//! A coordinator in memory: the real state machines before a log whose appends a test can hold back.
//!
//! Lives on: tests only.
use super::{Fake, NODE};
use async_trait::async_trait;
use mink_api::{Admin as _, Broker, FetchedOffsets, GroupCoordinator};
use mink_group::{
    CommitRequest, Description, Effects, GroupError, GroupId, GroupLimits, GroupState, Groups, Handle,
    HeartbeatRequest, JoinRefused, JoinRequest, Joined, LeaveRequest, LeftMember, Now, Reply, Summary,
    SyncRequest, Synced, TopicKey,
};
use mink_types::CommitTime;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

#[derive(Debug)]
struct Inner {
    groups: Groups<u64>,
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    tokens: u64,
    holds: bool,
    held: Vec<Handle>,
}

/// The coordinator of every group.
#[derive(Debug)]
pub(in crate::tests) struct FakeGroups {
    inner: Mutex<Inner>,
    begun: Instant,
}

impl Default for FakeGroups {
    fn default() -> FakeGroups {
        let limits = GroupLimits { rebalance_delay_ms: 0, ..GroupLimits::default() };
        let inner = Inner {
            groups: Groups::new(limits),
            waiting: BTreeMap::new(),
            tokens: 0,
            holds: false,
            held: Vec::new(),
        };
        FakeGroups { inner: Mutex::new(inner), begun: Instant::now() }
    }
}

impl FakeGroups {
    fn now(&self) -> Now {
        let monotonic_ms = u64::try_from(self.begun.elapsed().as_millis()).expect("fits");
        Now { monotonic_ms, wall: CommitTime(1_700_000_000_000 + i64::try_from(monotonic_ms).expect("fits")) }
    }

    /// Appends are durable at once, or wait until they are let go.
    pub(in crate::tests) fn hold_appends(&self, holds: bool) {
        let mut inner = self.inner.lock().expect("not poisoned");
        inner.holds = holds;
        inner.settle(self.now(), Effects::default());
    }

    /// Requests that wait for an answer, counting those whose connection is gone.
    pub(in crate::tests) fn waiting(&self) -> usize {
        self.inner.lock().expect("not poisoned").waiting.len()
    }

    /// Waits whose connection is gone.
    pub(in crate::tests) fn given_up(&self) -> usize {
        self.inner.lock().expect("not poisoned").waiting.values().filter(|reply| reply.is_closed()).count()
    }

    async fn ask(&self, run: impl FnOnce(&mut Groups<u64>, u64, Now, &mut Effects<u64>)) -> Reply {
        let answer = {
            let mut inner = self.inner.lock().expect("not poisoned");
            inner.tokens += 1;
            let (reply, answer) = oneshot::channel();
            let token = inner.tokens;
            inner.waiting.insert(token, reply);
            let mut effects = Effects::default();
            run(&mut inner.groups, token, self.now(), &mut effects);
            inner.settle(self.now(), effects);
            answer
        };
        answer.await.expect("each token is answered")
    }

    fn step<T>(&self, run: impl FnOnce(&mut Groups<u64>, Now, &mut Effects<u64>) -> T) -> T {
        let mut inner = self.inner.lock().expect("not poisoned");
        let mut effects = Effects::default();
        let result = run(&mut inner.groups, self.now(), &mut effects);
        inner.settle(self.now(), effects);
        result
    }
}

impl Inner {
    fn settle(&mut self, now: Now, mut effects: Effects<u64>) {
        loop {
            for (token, reply) in std::mem::take(&mut effects.replies) {
                // Who asked may have gone.
                drop(self.waiting.remove(&token).expect("answered once").send(reply));
            }
            self.held.extend(std::mem::take(&mut effects.appends).into_iter().map(|append| append.handle));
            let due = self.groups.next_deadline().is_some_and(|at| at <= now.monotonic_ms);
            if due {
                self.groups.tick(&|_| Some("t".into()), now, &mut effects);
            } else if !self.holds && !self.held.is_empty() {
                self.groups.durable(self.held.remove(0), now, &mut effects);
            } else {
                return;
            }
        }
    }
}

#[async_trait]
impl GroupCoordinator for Fake {
    async fn coordinator(&self, _: &GroupId) -> Result<Broker, GroupError> {
        let brokers = self.brokers();
        brokers.into_iter().find(|broker| broker.node == NODE).ok_or(GroupError::CoordinatorNotAvailable)
    }

    async fn join(&self, request: JoinRequest) -> Result<Joined, JoinRefused> {
        match self.groups.ask(|groups, token, now, effects| groups.join(request, token, now, effects)).await {
            Reply::Join(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn sync(&self, request: SyncRequest) -> Result<Synced, GroupError> {
        match self.groups.ask(|groups, token, now, effects| groups.sync(request, token, now, effects)).await {
            Reply::Sync(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn heartbeat(&self, request: HeartbeatRequest) -> Result<(), GroupError> {
        self.groups.step(|groups, now, _| groups.heartbeat(&request, now))
    }

    async fn leave(&self, request: LeaveRequest) -> Result<Vec<LeftMember>, GroupError> {
        self.groups.step(|groups, now, effects| groups.leave(request, now, effects))
    }

    async fn commit(&self, request: CommitRequest) -> Result<Vec<Result<(), GroupError>>, GroupError> {
        match self.groups.ask(|groups, token, now, effects| groups.commit(request, token, now, effects)).await
        {
            Reply::Commit(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn offsets(
        &self,
        group: &GroupId,
        topics: Option<Vec<TopicKey>>,
    ) -> Result<FetchedOffsets, GroupError> {
        self.groups.step(|groups, _, _| {
            let Some(topics) = topics else {
                let found = groups.fetch_all_offsets(group)?;
                return Ok(found.into_iter().map(|(topic, offset)| (topic, Some(offset.clone()))).collect());
            };
            let found = groups.fetch_offsets(group, &topics)?;
            Ok(found.into_iter().map(|(topic, offset)| (topic, offset.cloned())).collect())
        })
    }

    async fn delete_offsets(
        &self,
        group: &GroupId,
        topics: Vec<TopicKey>,
    ) -> Result<Vec<Result<(), GroupError>>, GroupError> {
        let state = self.state();
        let named: Vec<_> = topics
            .into_iter()
            .map(|topic| {
                let name = state.table(topic.table).map_or("", |table| table.path.table.as_str());
                (topic, name.into())
            })
            .collect();
        let asked = self
            .groups
            .ask(|groups, token, now, effects| groups.delete_offsets(group, &named, token, now, effects));
        match asked.await {
            Reply::DeleteOffsets(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn describe(&self, group: &GroupId) -> Result<Description, GroupError> {
        Ok(self.groups.step(|groups, _, _| groups.describe(group)))
    }

    async fn list(&self, states: Vec<GroupState>) -> Result<Vec<Summary>, GroupError> {
        Ok(self.groups.step(|groups, _, _| groups.list(&states)))
    }

    async fn delete(&self, group: &GroupId) -> Result<(), GroupError> {
        match self.groups.ask(|groups, token, now, effects| groups.delete(group, token, now, effects)).await {
            Reply::Delete(answer) => answer,
            other => panic!("{other:?}"),
        }
    }
}
