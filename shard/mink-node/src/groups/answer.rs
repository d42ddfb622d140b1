//! Answers to what the task that coordinates is asked.
//!
//! Lives on: within that task.
//! Invariants: each question is answered once: at once, or by the step that its token waits for.
use super::Ask;
use super::actor::Actor;
use super::ask::Token;
use super::coordinator::Coordinator;
use super::lag::Levels;
use mink_api::FetchedOffsets;
use mink_group::{
    Effects, GroupError, GroupId, Groups, JoinRefused, MemberId, Now, Reply, TopicKey, coordinator_bucket,
};
use mink_rt::mutant;
use mink_types::BucketIndex;
use std::sync::Arc;

impl Actor {
    pub(super) fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Join(request, token) => {
                let refused = |error| Reply::Join(Err(JoinRefused { error, member: MemberId::new("") }));
                self.step_with(&request.group.clone(), token, refused, |groups, token, now, effects| {
                    groups.join(*request, token, now, effects);
                });
            }
            Ask::Sync(request, token) => {
                let refused = |error| Reply::Sync(Err(error));
                self.step_with(&request.group.clone(), token, refused, |groups, token, now, effects| {
                    groups.sync(*request, token, now, effects);
                });
            }
            Ask::Commit(mut request, token) => {
                let refused = |error| Reply::Commit(Err(error));
                self.step_with(&request.group.clone(), token, refused, |groups, token, now, effects| {
                    if mutant("group-generation-unchecked") && request.generation >= 0 {
                        request.generation = groups.describe(&request.group).generation;
                    }
                    groups.commit(*request, token, now, effects);
                });
            }
            Ask::DeleteOffsets { group, topics, reply } => {
                let topics = self.with_names(topics);
                let refused = |error| Reply::DeleteOffsets(Err(error));
                self.step_with(&group, reply, refused, |groups, token, now, effects| {
                    groups.delete_offsets(&group, &topics, token, now, effects);
                });
            }
            Ask::Delete(group, token) => {
                let refused = |error| Reply::Delete(Err(error));
                self.step_with(&group, token, refused, |groups, token, now, effects| {
                    groups.delete(&group, token, now, effects);
                });
            }
            Ask::Heartbeat(request, reply) => {
                let group = request.group.clone();
                reply.send(self.step(&group, |groups, now, _| groups.heartbeat(&request, now)));
            }
            Ask::Leave(request, reply) => {
                let group = request.group.clone();
                reply.send(self.step(&group, |groups, now, effects| groups.leave(request, now, effects)));
            }
            Ask::Offsets { group, topics, reply } => {
                reply.send(self.step(&group, |groups, _, _| fetch(groups, &group, topics.as_deref())));
            }
            Ask::Describe(group, reply) => {
                reply.send(self.step(&group, |groups, _, _| Ok(groups.describe(&group))));
            }
            Ask::List(states, reply) => {
                let mut refusals = self.coordinators.values().filter_map(Coordinator::refusal);
                reply.send(if let Some(error) = refusals.next() {
                    Err(error)
                } else {
                    let groups = self.coordinators.values().filter_map(Coordinator::groups);
                    let mut all: Vec<_> = groups.flat_map(|groups| groups.list(&states)).collect();
                    all.sort_unstable_by(|a, b| a.group.cmp(&b.group));
                    Ok(all)
                });
            }
            Ask::Levels(reply) => {
                let mut levels = Levels::default();
                self.coordinators
                    .values()
                    .filter_map(Coordinator::groups)
                    .for_each(|groups| levels.add(groups));
                reply.send(levels);
            }
            Ask::Drain(reply) => {
                self.close_all();
                reply.send(());
            }
        }
    }

    /// The coordinator of a group, if it is here and serves.
    fn place(&self, group: &GroupId) -> Result<BucketIndex, GroupError> {
        if self.context.is_draining() {
            return Err(GroupError::NotCoordinator);
        }
        let (_, buckets) = self.table.ok_or(GroupError::NotCoordinator)?;
        let bucket = BucketIndex(coordinator_bucket(group, buckets));
        let coordinator = self.coordinators.get(&bucket).ok_or(GroupError::NotCoordinator)?;
        coordinator.refusal().map_or(Ok(bucket), Err)
    }

    fn step<R>(
        &mut self,
        group: &GroupId,
        run: impl FnOnce(&mut Groups<Token>, Now, &mut Effects<Token>) -> Result<R, GroupError>,
    ) -> Result<R, GroupError> {
        let (bucket, now) = (self.place(group)?, self.now());
        let (bytes_max, others) =
            (self.context.config.groups.coordinator_bytes_max, self.bytes_beside(bucket));
        let coordinator = self.coordinators.get_mut(&bucket).ok_or(GroupError::NotCoordinator)?;
        let (result, bytes) = coordinator
            .step(now, |groups, effects| {
                groups.may_take(bytes_max.saturating_sub(others));
                let result = run(groups, now, effects);
                (result, groups.bytes())
            })
            .map_or((None, 0), |(result, bytes)| (Some(result), bytes));
        if coordinator.is_lost() {
            self.reopen(bucket);
        }
        self.fullness.note(others + bytes, bytes_max);
        result.unwrap_or(Err(GroupError::NotCoordinator))
    }

    /// A step that answers its token itself.
    fn step_with(
        &mut self,
        group: &GroupId,
        token: Token,
        refused: impl FnOnce(GroupError) -> Reply,
        run: impl FnOnce(&mut Groups<Token>, Token, Now, &mut Effects<Token>),
    ) {
        if let Err(error) = self.place(group) {
            token.send(refused(error));
            return;
        }
        let stepped = self.step(group, |groups, now, effects| {
            run(groups, token, now, effects);
            Ok(())
        });
        debug_assert!(stepped.is_ok(), "its place was looked up");
    }

    fn with_names(&self, topics: Vec<TopicKey>) -> Vec<(TopicKey, Arc<str>)> {
        let (state, kafka) = (self.context.state(), &self.context.config.kafka_database);
        let name = |topic: &TopicKey| state.table(topic.table).map(|table| table.topic_name(kafka));
        topics.into_iter().map(|topic| (topic, name(&topic).unwrap_or_default().into())).collect()
    }
}

fn fetch(
    groups: &Groups<Token>,
    group: &GroupId,
    topics: Option<&[TopicKey]>,
) -> Result<FetchedOffsets, GroupError> {
    Ok(if let Some(topics) = topics {
        let found = groups.fetch_offsets(group, topics)?;
        found.into_iter().map(|(topic, offset)| (topic, offset.cloned())).collect()
    } else {
        let found = groups.fetch_all_offsets(group)?;
        found.into_iter().map(|(topic, offset)| (topic, Some(offset.clone()))).collect()
    })
}
