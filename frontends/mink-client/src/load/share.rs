//! Records one by one: as they are due, or as fast as it goes to the partitions of their keys.
//!
//! Lives on: one task per connection.
//! Invariants: the clock is read once for a record.
use super::acks::{Group, Offered};
use super::batches::FRAMING_MAX;
use super::contents::Contents;
use super::ending::{DRAIN_MAX, Ending};
use super::pace::{Clock, Schedule};
use super::tally::{Lateness, Tally};
use crate::error::ClientError;
use crate::partition::partition_of_key;
use crate::producer::{Gathering, Producer, Record};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// What one connection produces.
pub(super) struct Share {
    pub(super) producer: Arc<Producer>,
    pub(super) partitions: Vec<i32>,
    /// The partition, by its place among them, whose batch is being filled; records without keys go there.
    pub(super) at: usize,
    pub(super) records: u64,
    /// Age at which a batch is sent, in an open loop.
    pub(super) linger: Option<Duration>,
    pub(super) batch_bytes: usize,
    pub(super) ending: Ending,
    pub(super) is_keyless: bool,
    /// Batches that are being gathered, by partition.
    pub(super) gathering: BTreeMap<i32, Group>,
    /// Batches that get no more records.
    pub(super) gathered: Vec<Group>,
}

/// What is to be offered next.
pub(super) enum Due {
    /// A record, whose latency counts from `since`.
    Now { since: Instant, now: Instant },
    /// Nothing more is due: the load was over then.
    Never { over: Instant },
    /// A record that is so late that the load does not wait for it.
    TooLate { since: Instant, over: Instant },
}

impl Share {
    pub(super) async fn offer(
        mut self,
        mut contents: Contents,
        mut schedule: Option<Schedule>,
        groups: &mpsc::Sender<Group>,
        tally: &Tally,
    ) -> Result<(), ClientError> {
        let (clock, mut late, mut unsent) = (Clock::now(), Lateness::new()?, Vec::new());
        let ending = self.ending.clone();
        while self.records > 0 {
            let (since, now) = match next_due(&ending, &mut schedule).await {
                Due::Now { since, now } => (since, now),
                Due::Never { over } => {
                    tally.over(over);
                    break;
                }
                Due::TooLate { since, over } => {
                    tally.over(over);
                    unsent = self::unsent(self.records, schedule.as_ref(), (since, over), tally);
                    break;
                }
            };
            let counts = tally.counts(since);
            let (key, value) = contents.next();
            let partition = self.partition(key, now);
            let record = Record { timestamp: Some(clock.ms(now)), ..Record::new(key, Some(value)) };
            let gathering = tokio::select! {
                biased;
                gathering = self.producer.gather(partition, record) => gathering?,
                over = out_of_room(&ending, schedule.is_some()) => {
                    tally.over(over);
                    unsent = self::unsent(self.records, schedule.as_ref(), (since, over), tally);
                    break;
                }
            };
            if counts && schedule.is_some() {
                late.note(now - since);
            }
            self.records -= u64::from(counts);
            let bytes = (key.map_or(0, <[u8]>::len) + value.len()) as u64;
            self.note(partition, &gathering, now, Offered { since, records: 1, bytes, counts });
            while let Some(group) = self.gathered.pop() {
                // It ends early only by a fault, which whoever waits for it tells.
                drop(groups.send(group).await);
            }
        }
        let gathering = std::mem::take(&mut self.gathering).into_values();
        for group in gathering.chain(std::mem::take(&mut self.gathered)) {
            drop(groups.send(group).await);
        }
        if schedule.is_some() {
            tally.paced(&late.0, &unsent);
        }
        Ok(())
    }

    /// Where the next record goes.
    fn partition(&mut self, key: Option<&[u8]>, now: Instant) -> i32 {
        let count = self.partitions.len().max(1);
        let named = |at: usize| self.partitions.get(at % count).copied().unwrap_or(0);
        if let Some(key) = key {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            return named(usize::try_from(partition_of_key(key, count)).unwrap_or(0));
        }
        let partition = named(self.at);
        let has_lingered = |group: &Group| self.linger.is_some_and(|linger| group.opened + linger <= now);
        if count == 1 || !self.gathering.get(&partition).is_some_and(has_lingered) {
            return partition;
        }
        let next = named(self.at + 1);
        self.at += 1;
        self.gathered.extend(self.gathering.remove(&partition));
        next
    }

    /// Keeps a record with its batch.
    fn note(&mut self, partition: i32, gathering: &Gathering, now: Instant, offered: Offered) {
        let new = || Group::new(gathering.delivery.clone(), now);
        let group = self.gathering.entry(partition).or_insert_with(new);
        if !group.delivery.is_with(&gathering.delivery) {
            self.gathered.push(std::mem::replace(group, new()));
        }
        group.add(offered);
        // Without keys, a batch of one partition is filled after that of the other, as other clients do it.
        let next_bytes = usize::try_from(offered.bytes).unwrap_or(0) + FRAMING_MAX;
        if self.is_keyless && gathering.batch_bytes + next_bytes > self.batch_bytes {
            self.producer.seal(partition);
            self.at += 1;
            self.gathered.extend(self.gathering.remove(&partition));
        }
    }
}

/// Waits until the next record is due.
pub(super) async fn next_due(ending: &Ending, schedule: &mut Option<Schedule>) -> Due {
    let mut now = Instant::now();
    let since = schedule.as_mut().map_or(now, Schedule::next);
    if since > now {
        tokio::select! {
            // Due first: timers of one ms end together, and the last record is due before the end.
            biased;
            () = sleep_until(since) => now = Instant::now(),
            over = ending.over() => return Due::Never { over },
        }
    }
    match ending.over_since(now) {
        Some(over) if since >= over => Due::Never { over },
        // What was due before is still offered, but not for ever.
        Some(over) if now >= over + DRAIN_MAX => Due::TooLate { since, over },
        _ => Due::Now { since, now },
    }
}

/// What was due from `since` to the end of an open loop, `most` of it.
pub(super) fn unsent(
    mut most: u64,
    schedule: Option<&Schedule>,
    (since, over): (Instant, Instant),
    tally: &Tally,
) -> Vec<(Instant, u64)> {
    let all = schedule.into_iter().flat_map(|schedule| [(since, 1)].into_iter().chain(schedule.left(over)));
    let all = all.filter(|(since, _)| tally.counts(*since)).map_while(|(since, count)| {
        let count = count.min(most);
        most -= count;
        (count > 0).then_some((since, count))
    });
    all.collect()
}

/// Resolves when no room is waited for any more: in a closed loop when the load is over, in an open one, which still offers then what was
/// due before, so much later.
pub(super) async fn out_of_room(ending: &Ending, is_open: bool) -> Instant {
    let over = ending.over().await;
    if is_open {
        sleep_until(over + DRAIN_MAX).await;
    }
    over
}
