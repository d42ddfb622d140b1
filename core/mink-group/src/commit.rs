//! OffsetCommit: a member, or a consumer without a group, stores how far it has read.
//!
//! Lives on: within a group.
//! Invariants: I18 no commit of another generation than the group's is accepted; an accepted one is seen when it is durable.
use crate::flights::Written;
use crate::group::{Group, GroupState, Step};
use crate::offsets::offset_bytes;
use crate::record::offset_key;
use crate::{CommitRequest, CommittedOffset, GroupError, KeyedRecord, Reply};
use mink_types::CommitTime;
use std::sync::Arc;

impl<T> Group<T> {
    pub(crate) fn commit(&mut self, request: CommitRequest, token: T, step: &mut Step<'_, T>) {
        if let Err(error) = self.check_commit(&request, step) {
            step.reply(token, Reply::Commit(Err(error)));
            return;
        }
        if matches!(self.state, GroupState::Stable | GroupState::PreparingRebalance) {
            self.sign_of_life(&request.member, step.now);
        }
        let wall = step.now.wall;
        let expires = request
            .retention_ms
            .map(|ms| CommitTime(wall.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))));
        let (mut offsets, mut records) = (Vec::with_capacity(request.offsets.len()), Vec::new());
        let mut results = Vec::with_capacity(request.offsets.len());
        for wanted in request.offsets {
            if wanted.metadata.len() > step.limits.commit_metadata_bytes_max {
                results.push(Err(GroupError::OffsetMetadataTooLarge));
                continue;
            }
            let offset = CommittedOffset {
                offset: wanted.offset,
                leader_epoch: wanted.leader_epoch.max(-1),
                metadata: Arc::clone(&wanted.metadata),
                commit_time: wall,
                expires,
            };
            let value = Some(offset.encode());
            records.push(KeyedRecord { key: offset_key(&self.id, wanted.topic), value });
            self.offsets.begin(wanted.topic, &offset.metadata);
            offsets.push((wanted.topic, offset));
            results.push(Ok(()));
        }
        if records.is_empty() {
            step.reply(token, Reply::Commit(Ok(results)));
        } else {
            self.append(records, Written::Offsets { token, offsets, results }, step);
        }
    }

    fn check_commit(&self, request: &CommitRequest, step: &Step<'_, T>) -> Result<(), GroupError> {
        self.check_committer(request)?;
        let bytes: usize = request.offsets.iter().map(|offset| offset_bytes(&offset.metadata)).sum();
        if self.bytes().saturating_add(bytes) > step.room_bytes {
            return Err(GroupError::InvalidCommitOffsetSize);
        }
        if step.is_full() {
            return Err(GroupError::CoordinatorLoadInProgress);
        }
        Ok(())
    }

    /// Whether it may commit now (K-23).
    fn check_committer(&self, request: &CommitRequest) -> Result<(), GroupError> {
        let is_empty = self.state == GroupState::Empty;
        if self.state == GroupState::Dead {
            return Err(GroupError::CoordinatorNotAvailable);
        }
        if request.generation < 0 && is_empty {
            return Ok(());
        }
        if request.generation >= 0 || !request.member.is_empty() || request.instance.is_some() {
            self.check_member(&request.member, request.instance.as_ref())?;
            if request.generation != self.generation {
                return Err(GroupError::IllegalGeneration);
            }
        } else {
            return Err(GroupError::UnknownMemberId);
        }
        match self.state {
            // It has the generation from its join, and does not know its assignment yet.
            GroupState::CompletingRebalance => Err(GroupError::RebalanceInProgress),
            _ => Ok(()),
        }
    }
}
