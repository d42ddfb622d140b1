//! Appends whose outcome is not known yet, with what happens when they are durable.
//!
//! Lives on: within a coordinator.
//! Invariants: a handle is in flight until it was reported durable or refused; handles grow.
use crate::{CommittedOffset, GroupError, GroupId, Handle, MemberId, TopicKey};
use bytes::Bytes;
use std::collections::BTreeMap;

/// One append.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    pub(crate) group: GroupId,
    pub(crate) what: Written<T>,
}

/// What was written.
#[derive(Debug)]
pub(crate) enum Written<T> {
    Offsets {
        token: T,
        offsets: Vec<(TopicKey, CommittedOffset)>,
        results: Vec<Result<(), GroupError>>,
    },
    /// Tombstones of offsets; with a token when someone asked for them.
    OffsetsGone {
        topics: Vec<TopicKey>,
        answer: Option<(T, Vec<Result<(), GroupError>>)>,
    },
    Group {
        value: Bytes,
        generation: i32,
        then: Then,
    },
    /// Tombstones of a group and of the last of its offsets.
    GroupGone {
        topics: Vec<TopicKey>,
        token: Option<T>,
    },
}

/// What a durable group record sets free.
#[derive(Debug)]
pub(crate) enum Then {
    Nothing,
    /// Assignments that may be handed out.
    Assign(Vec<(MemberId, Bytes)>),
    /// The join of a static member that goes on in its predecessor's place.
    Replace {
        member: MemberId,
        can_skip_assignment: bool,
        leader_before: Option<MemberId>,
    },
}

#[derive(Debug)]
pub(crate) struct Flights<T> {
    next: u64,
    by_handle: BTreeMap<Handle, Flight<T>>,
}

impl<T> Default for Flights<T> {
    fn default() -> Flights<T> {
        Flights { next: 1, by_handle: BTreeMap::new() }
    }
}

impl<T> Flights<T> {
    pub(crate) fn begin(&mut self, group: GroupId, what: Written<T>) -> Handle {
        let handle = Handle(self.next);
        self.next += 1;
        self.by_handle.insert(handle, Flight { group, what });
        handle
    }

    /// The oldest of those up to `last`.
    pub(crate) fn pop_up_to(&mut self, last: Handle) -> Option<Flight<T>> {
        let (first, _) = self.by_handle.first_key_value()?;
        if *first > last { None } else { self.by_handle.pop_first().map(|(_, flight)| flight) }
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Flight<T>> {
        self.by_handle.remove(&handle)
    }

    pub(crate) fn pop(&mut self) -> Option<Flight<T>> {
        self.by_handle.pop_first().map(|(_, flight)| flight)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_handle.len()
    }
}
