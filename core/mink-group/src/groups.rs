//! All groups of one coordinator bucket: what a caller drives.
//!
//! Lives on: the owner of a coordinator bucket (pure).
//! Owns: the groups by id, their deadlines in one order, the appends in flight, the count of bytes.
//! Invariants: I20 groups, members, bytes and appends are bounded; a group that has nothing stored and nobody in it is forgotten;
//! each token comes out once.
use crate::close::refuse;
use crate::durable::group_error;
use crate::flights::{Flight, Flights};
use crate::group::{Group, Step};
use crate::join::{Joining, refused};
use crate::{
    AppendRefused, CommitRequest, Effects, GroupError, GroupId, GroupLimits, Handle, HeartbeatRequest,
    JoinRequest, LeaveRequest, LeftMember, Now, Reply, SyncRequest, TopicKey,
};
use mink_types::TableId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The groups of one coordinator bucket. `T` names a request that waits for its answer, as the caller likes.
#[derive(Debug)]
pub struct Groups<T> {
    limits: GroupLimits,
    pub(crate) by_id: BTreeMap<GroupId, Group<T>>,
    pub(crate) flights: Flights<T>,
    /// When to look at which group; never later than its next deadline.
    wakes: BTreeSet<(u64, GroupId)>,
    bytes: usize,
}

impl<T> Groups<T> {
    /// No groups: of a bucket that never held a record.
    pub fn new(limits: GroupLimits) -> Groups<T> {
        Groups {
            limits,
            by_id: BTreeMap::new(),
            flights: Flights::default(),
            wakes: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// JoinGroup. Answered with [`Reply::Join`], at once or when the join phase ends.
    pub fn join(&mut self, request: JoinRequest, token: T, now: Now, effects: &mut Effects<T>) {
        let member = request.member.clone();
        let joining = match Joining::check(request, &self.limits) {
            Ok(joining) => joining,
            Err(error) => return effects.reply(token, refused(error, member)),
        };
        let id = joining.request.group.clone();
        if !self.by_id.contains_key(&id) {
            if !member.is_empty() {
                return effects.reply(token, refused(GroupError::UnknownMemberId, member));
            }
            if !self.create(&id) {
                return effects.reply(token, refused(GroupError::GroupMaxSizeReached, member));
            }
        }
        self.step(&id, now, effects, |group, step| group.join(joining, token, step));
    }

    /// SyncGroup. Answered with [`Reply::Sync`], at once or when the leader's assignments are durable.
    pub fn sync(&mut self, request: SyncRequest, token: T, now: Now, effects: &mut Effects<T>) {
        let id = request.group.clone();
        self.step_or(
            &id,
            now,
            effects,
            token,
            Reply::Sync(Err(GroupError::UnknownMemberId)),
            |group, token, step| {
                group.sync(request, token, step);
            },
        );
    }

    /// Heartbeat.
    ///
    /// # Errors
    /// [`GroupError::RebalanceInProgress`] tells a member to join again; it has extended its session all the same.
    pub fn heartbeat(&mut self, request: &HeartbeatRequest, now: Now) -> Result<(), GroupError> {
        let group = self.by_id.get_mut(&request.group).ok_or(GroupError::UnknownMemberId)?;
        let result = group.heartbeat(request, now);
        self.settle(&request.group);
        result
    }

    /// LeaveGroup: one result per member, in the request's order.
    ///
    /// # Errors
    /// When the group is being deleted.
    pub fn leave(
        &mut self,
        request: LeaveRequest,
        now: Now,
        effects: &mut Effects<T>,
    ) -> Result<Vec<LeftMember>, GroupError> {
        let id = request.group.clone();
        if !self.by_id.contains_key(&id) {
            let result = Err(GroupError::UnknownMemberId);
            let unknown = |leaving: crate::Leaving| LeftMember {
                member: leaving.member,
                instance: leaving.instance,
                result,
            };
            return Ok(request.members.into_iter().map(unknown).collect());
        }
        self.step(&id, now, effects, |group, step| group.leave(request, step)).unwrap_or(Ok(Vec::new()))
    }

    /// OffsetCommit. Answered with [`Reply::Commit`] when the offsets are durable, or at once when it is refused.
    pub fn commit(&mut self, request: CommitRequest, token: T, now: Now, effects: &mut Effects<T>) {
        let id = request.group.clone();
        if !self.by_id.contains_key(&id) {
            if request.generation >= 0 {
                return effects.reply(token, Reply::Commit(Err(GroupError::IllegalGeneration)));
            }
            if !self.create(&id) {
                return effects.reply(token, Reply::Commit(Err(GroupError::InvalidCommitOffsetSize)));
            }
        }
        self.step(&id, now, effects, |group, step| group.commit(request, token, step));
    }

    /// OffsetDelete, of partitions with the names of their topics. Answered with [`Reply::DeleteOffsets`] when their tombstones
    /// are durable.
    pub fn delete_offsets(
        &mut self,
        group: &GroupId,
        topics: &[(TopicKey, Arc<str>)],
        token: T,
        now: Now,
        effects: &mut Effects<T>,
    ) {
        let unknown = Reply::DeleteOffsets(Err(GroupError::GroupIdNotFound));
        self.step_or(group, now, effects, token, unknown, |group, token, step| {
            if step.is_full() {
                let error = GroupError::CoordinatorLoadInProgress;
                step.reply(token, Reply::DeleteOffsets(Err(error)));
            } else {
                group.delete_offsets(topics, token, step);
            }
        });
    }

    /// DeleteGroups, of one group. Answered with [`Reply::Delete`] when its tombstones are durable.
    pub fn delete(&mut self, group: &GroupId, token: T, now: Now, effects: &mut Effects<T>) {
        let unknown = Reply::Delete(Err(GroupError::GroupIdNotFound));
        self.step_or(group, now, effects, token, unknown, |group, token, step| {
            if step.is_full() {
                step.reply(token, Reply::Delete(Err(GroupError::CoordinatorLoadInProgress)));
            } else {
                group.delete(token, step);
            }
        });
    }

    /// Writes tombstones of all offsets of tables that are gone.
    pub fn forget_tables(&mut self, is_gone: &dyn Fn(TableId) -> bool, now: Now, effects: &mut Effects<T>) {
        let ids: Vec<_> = self.by_id.keys().cloned().collect();
        for id in ids {
            self.step(&id, now, effects, |group, step| group.forget_tables(is_gone, step));
        }
    }

    /// When [`Groups::tick`] is to be called, on the monotonic clock in ms. None when nothing is waited for.
    pub fn next_deadline(&self) -> Option<u64> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Does what has come to its deadline. `name` gives the topic that a table is, none when the table is gone.
    pub fn tick(&mut self, name: &dyn Fn(TableId) -> Option<Arc<str>>, now: Now, effects: &mut Effects<T>) {
        let due = self.wakes.iter().take_while(|(at, _)| *at <= now.monotonic_ms);
        let due: Vec<_> = due.map(|(_, id)| id.clone()).collect();
        for id in due {
            self.step(&id, now, effects, |group, step| group.tick(name, step));
        }
    }

    /// This append is durable, and, as a log acks in order, so is each before it that was not reported refused. What waits for
    /// them is answered; a handle that is not in flight any more is let be.
    pub fn durable(&mut self, handle: Handle, now: Now, effects: &mut Effects<T>) {
        while let Some(Flight { group: id, what }) = self.flights.pop_up_to(handle) {
            if !self.by_id.contains_key(&id) {
                debug_assert!(false, "a group with an append in flight is not forgotten");
                refuse(what, GroupError::CoordinatorNotAvailable, effects);
            } else if self.step(&id, now, effects, |group, step| group.durable(what, step)) == Some(true) {
                self.forget(&id);
            }
        }
    }

    /// This append certainly did not happen, nor will it. To be reported before any append behind it is reported durable.
    pub fn failed(&mut self, handle: Handle, why: AppendRefused, now: Now, effects: &mut Effects<T>) {
        let Some(Flight { group: id, what }) = self.flights.remove(handle) else { return };
        if self.by_id.contains_key(&id) {
            self.step(&id, now, effects, |group, step| group.refused(what, why, step));
        } else {
            debug_assert!(false, "a group with an append in flight is not forgotten");
            refuse(what, group_error(why), effects);
        }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// What all groups cost, about, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on all groups may cost so many bytes ([`GroupLimits::coordinator_bytes_max`]); what is there stays.
    pub fn may_take(&mut self, bytes: usize) {
        self.limits.coordinator_bytes_max = bytes;
    }

    /// Appends whose outcome has not been reported.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Members of all groups.
    pub fn members(&self) -> usize {
        self.iter().map(|group| group.members.len()).sum()
    }

    pub(crate) fn get(&self, id: &GroupId) -> Option<&Group<T>> {
        self.by_id.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group<T>> {
        self.by_id.values()
    }

    /// Makes room for a new group; false when there is none.
    fn create(&mut self, id: &GroupId) -> bool {
        let fits =
            self.by_id.len() < self.limits.groups_max && self.bytes < self.limits.coordinator_bytes_max;
        if fits {
            self.insert(Group::new(id.clone()));
        }
        fits
    }

    pub(crate) fn insert(&mut self, group: Group<T>) {
        let id = group.id.clone();
        self.by_id.insert(id.clone(), group);
        self.settle(&id);
    }

    /// One step of one group, or `unknown` when there is no such group.
    fn step_or(
        &mut self,
        id: &GroupId,
        now: Now,
        effects: &mut Effects<T>,
        token: T,
        unknown: Reply,
        run: impl FnOnce(&mut Group<T>, T, &mut Step<'_, T>),
    ) {
        if self.by_id.contains_key(id) {
            self.step(id, now, effects, |group, step| run(group, token, step));
        } else {
            effects.reply(token, unknown);
        }
    }

    pub(crate) fn step<R>(
        &mut self,
        id: &GroupId,
        now: Now,
        effects: &mut Effects<T>,
        run: impl FnOnce(&mut Group<T>, &mut Step<'_, T>) -> R,
    ) -> Option<R> {
        let group = self.by_id.get_mut(id)?;
        let others = self.bytes - group.counted_bytes;
        let room_bytes = self.limits.coordinator_bytes_max.saturating_sub(others);
        let mut step = Step { now, limits: &self.limits, room_bytes, effects, flights: &mut self.flights };
        let result = run(group, &mut step);
        if group.is_vacant() {
            self.forget(id);
        } else {
            group.schedule_expiry(&step);
            self.settle(id);
        }
        Some(result)
    }

    /// Counts a group as it is now, and notes when to look at it.
    fn settle(&mut self, id: &GroupId) {
        let Some(group) = self.by_id.get_mut(id) else { return };
        let bytes = group.bytes();
        self.bytes = self.bytes - group.counted_bytes + bytes;
        group.counted_bytes = bytes;
        let wake_ms = group.deadlines.next();
        if group.wake_ms != wake_ms {
            if let Some(before) = group.wake_ms {
                self.wakes.remove(&(before, id.clone()));
            }
            if let Some(at) = wake_ms {
                self.wakes.insert((at, id.clone()));
            }
            group.wake_ms = wake_ms;
        }
    }

    fn forget(&mut self, id: &GroupId) {
        let Some(group) = self.by_id.remove(id) else { return };
        debug_assert!(group.members.is_empty());
        self.bytes -= group.counted_bytes;
        if let Some(at) = group.wake_ms {
            self.wakes.remove(&(at, id.clone()));
        }
    }
}
