//! What must still fail on a connection because something before it failed (I6, I7): if a batch of a partition is
//! refused for a reason that a retry can cure, the batches that the client had sent behind it must not be ordered before the
//! retry arrives, or the client's order is lost.
//!
//! Lives on: the service runtime, one per connection.
//! Owns: the partitions that are held back, and until when.
//!
//! A client may send more until it sees the answer. So the writing half notes, before it writes the answer, how many bytes of
//! the connection had arrived: what begins within them is refused too, and what begins behind them is a retry, or as far from
//! one as a server can tell.
use crate::topic::TopicRef;
use mink_kafka_wire::ErrorCode;
use std::collections::BTreeMap;

/// Partitions held back at once; beyond it the connection's every partition is.
const PARTITIONS_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug)]
struct Hold {
    code: ErrorCode,
    /// Number of the last request that was refused.
    request: u64,
    /// The position in the connection's bytes that ends the hold; none until the answer is about to be written.
    ends_at: Option<u64>,
}

impl Hold {
    fn is_over(&self, position: u64) -> bool {
        self.ends_at.is_some_and(|ends_at| position >= ends_at)
    }

    fn note_written(&mut self, answered: u64, arrived: u64) {
        if self.request <= answered {
            self.ends_at.get_or_insert(arrived);
        }
    }
}

/// The partitions of one connection that are held back.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    partitions: BTreeMap<(TopicRef, i32), Hold>,
    /// Holds everything back: more partitions were refused than are remembered one by one.
    all: Option<Hold>,
}

impl Refusals {
    /// Whether nothing is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.all.is_none()
    }

    /// The answers to requests up to number `answered` are about to be written, and `arrived` bytes have come in so far.
    pub(crate) fn note_written(&mut self, answered: u64, arrived: u64) {
        let holds = self.partitions.values_mut().chain(&mut self.all);
        holds.for_each(|hold| hold.note_written(answered, arrived));
    }

    /// Lets go of what is over for a request that begins at `position` in the connection's bytes.
    pub(crate) fn advance(&mut self, position: u64) {
        if !self.partitions.is_empty() {
            self.partitions.retain(|_, hold| !hold.is_over(position));
        }
        self.all = self.all.filter(|hold| !hold.is_over(position));
    }

    /// The code that a batch of this partition must be refused with, if it is held back.
    pub(crate) fn held(&self, topic: &TopicRef, partition: i32) -> Option<ErrorCode> {
        if self.is_empty() {
            return None;
        }
        let hold = self.partitions.get(&(topic.clone(), partition)).or(self.all.as_ref());
        hold.map(|hold| hold.code)
    }

    /// Notes that request number `request` had a batch of this partition refused. Requests settle in another order than they came in:
    /// the hold is that of the last one that came.
    pub(crate) fn note(&mut self, topic: &TopicRef, partition: i32, code: ErrorCode, request: u64) {
        let hold = Hold { code, request, ends_at: None };
        let key = (topic.detached(), partition);
        if self.partitions.get(&key).is_some_and(|held| held.request > request) {
            return;
        }
        if self.partitions.len() >= PARTITIONS_MAX && !self.partitions.contains_key(&key) {
            self.all = Some(hold);
        } else {
            self.partitions.insert(key, hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_ends_with_the_bytes_that_had_arrived_when_its_answer_was_written() {
        let topic = TopicRef::from("t");
        let mut refusals = Refusals::default();
        refusals.note(&topic, 0, ErrorCode::NotLeaderOrFollower, 5);
        refusals.note_written(4, 100);
        refusals.advance(1_000);
        assert_eq!(refusals.held(&topic, 0), Some(ErrorCode::NotLeaderOrFollower));
        assert_eq!(refusals.held(&topic, 1), None);
        refusals.note_written(5, 1_200);
        // A later write changes nothing: the client has seen the answer.
        refusals.note_written(9, 5_000);
        refusals.advance(1_199);
        assert!(refusals.held(&topic, 0).is_some());
        refusals.advance(1_200);
        assert_eq!(refusals.held(&topic, 0), None);
    }

    #[test]
    fn a_refusal_behind_a_refusal_holds_on() {
        let topic = TopicRef::from("t");
        let mut refusals = Refusals::default();
        refusals.note(&topic, 0, ErrorCode::NotLeaderOrFollower, 1);
        refusals.note_written(1, 100);
        refusals.note(&topic, 0, ErrorCode::NotLeaderOrFollower, 2);
        refusals.advance(200);
        assert!(refusals.held(&topic, 0).is_some());
    }

    #[test]
    fn an_older_request_that_settles_later_ends_no_hold_of_a_newer_one() {
        let topic = TopicRef::from("t");
        let mut refusals = Refusals::default();
        refusals.note(&topic, 0, ErrorCode::UnknownTopicOrPartition, 6);
        refusals.note(&topic, 0, ErrorCode::UnknownTopicOrPartition, 5);
        refusals.note_written(5, 100);
        refusals.advance(200);
        assert!(refusals.held(&topic, 0).is_some(), "answer 6 has not been written");
        refusals.note_written(6, 300);
        refusals.advance(300);
        assert_eq!(refusals.held(&topic, 0), None);
    }

    #[test]
    fn i20_more_partitions_than_are_remembered_hold_everything_back() {
        let topic = TopicRef::from("t");
        let mut refusals = Refusals::default();
        for partition in 0..=1_000 {
            refusals.note(&topic, partition, ErrorCode::RequestTimedOut, 1);
        }
        assert_eq!(refusals.partitions.len(), PARTITIONS_MAX);
        assert!(refusals.held(&"other".into(), 7).is_some());
        refusals.note_written(1, 10);
        refusals.advance(10);
        assert!(refusals.held(&"other".into(), 7).is_none());
    }
}
