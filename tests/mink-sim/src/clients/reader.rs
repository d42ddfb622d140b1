//! Readers: at the tail, from the start, by time.
//!
//! Lives on: the simulation's thread.
//! Invariants checked: I3, I4 (by the history), P-14 (nothing is told to be damaged but what was).
use crate::clients::Clients;
use crate::machine::Serving;
use mink_router::{Position, Read, ReadError, WatchedOffset};
use mink_types::{BucketId, Offset, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// A client hangs up when an answer takes longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest wait at the end of a log.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// How a read ended.
pub(crate) enum Got {
    /// The log goes on at this offset; the high watermark is that.
    Upto(Offset, Offset),
    /// The log begins later.
    From(Offset),
    /// What lies here is lost with an object that was damaged; the log goes on there.
    Beyond(Offset),
    /// Not now.
    Nothing,
}

/// One read.
pub(crate) async fn read(clients: &Clients, serving: &Serving, bucket: BucketId, from: Offset) -> Got {
    let history = &clients.site.history;
    let bytes_max = clients.site.dice.pick(&[1, 2_000, 100_000]).unwrap_or(2_000);
    let reads = vec![Read { bucket, from, bytes_max, leader_epoch: None }];
    let mark = history.mark(bucket);
    let source = Arc::clone(&serving.source);
    let answer = serving.call(async move { source.read(reads, bytes_max).await });
    let answer = clients.site.service.timeout(REQUEST_TIMEOUT, answer).await;
    let Some(answer) = answer.ok().flatten().and_then(|answers| answers.into_iter().next()) else {
        return Got::Nothing;
    };
    history.count(|counts| counts.reads += 1);
    match answer {
        Ok(answer) => {
            clients.know_start(bucket, answer.log_start).await;
            let next = history.answer(mark, from, &answer);
            Got::Upto(next, answer.high_watermark)
        }
        Err(ReadError::OutOfRange { start, end, .. }) => {
            clients.know_start(bucket, start).await;
            history.ends(mark, start, end);
            Got::From(start)
        }
        Err(ref error @ ReadError::Damaged { object, .. }) => {
            if let Some(next) = history.refused_read(bucket, from, object) {
                return Got::Beyond(next);
            }
            history.violated(format!("P-14: a read from {from}: {error}"));
            Got::Nothing
        }
        Err(error @ (ReadError::EpochDiffers { .. } | ReadError::SearchGaveUp { .. })) => {
            history.violated(format!("I1: a read from {from}: {error}"));
            Got::Nothing
        }
        Err(
            ReadError::NotOwner { .. }
            | ReadError::Opening { .. }
            | ReadError::StoreUnavailable { .. }
            | ReadError::LeaseExpired,
        ) => {
            history.count(|counts| counts.read_errors += 1);
            Got::Nothing
        }
    }
}

/// Reads random buckets until the clients stop: some from the start, some at the end, some by time.
pub(crate) async fn wander(clients: Clients) {
    let site = &clients.site;
    while !clients.stopping() {
        let Some(bucket) = clients.some_bucket() else {
            site.service.sleep(WAIT_MAX).await;
            continue;
        };
        match site.dice.below(4) {
            0 => by_time(&clients, bucket).await,
            1 => follow(&clients, bucket, Offset(0), 40).await,
            _ => {
                let end = site.history.mark(bucket);
                follow(&clients, bucket, end.high_watermark(), 60).await;
            }
        }
    }
}

/// Reads on from an offset for some steps.
async fn follow(clients: &Clients, bucket: BucketId, from: Offset, steps: u32) {
    let (site, mut at) = (&clients.site, from);
    for _ in 0..steps {
        if clients.stopping() || !clients.lives(bucket) {
            return;
        }
        let Some(serving) = site.pick() else {
            site.service.sleep(WAIT_MAX).await;
            continue;
        };
        match read(clients, &serving, bucket, at).await {
            Got::Upto(next, high_watermark) if next == at => {
                let source = Arc::clone(&serving.source);
                let seen = vec![WatchedOffset { bucket, seen: high_watermark }];
                let watch = serving.call(async move { source.watch(seen).await });
                // Whether it was woken or not, it looks.
                let _ = site.service.timeout(WAIT_MAX, watch).await;
            }
            Got::Upto(next, _) | Got::Beyond(next) => at = next,
            Got::From(start) => at = start,
            Got::Nothing => site.service.sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Looks for a record by its time: what is acked is found, and nothing before it is passed over.
async fn by_time(clients: &Clients, bucket: BucketId) {
    let site = &clients.site;
    // Rows have the time of their commit, which nobody but the node knows.
    if site.history.is_of_rows(bucket) {
        return;
    }
    let Some(serving) = site.pick() else { return };
    let time = site.history.some_time(site.dice.below(u64::MAX));
    let known = site.history.first_at(bucket, time);
    let source = Arc::clone(&serving.source);
    let position = Position::at_or_after(Timestamp(time));
    let found = serving.call(async move { source.locate(bucket, position, None).await });
    let Ok(Some(Ok(found))) = site.service.timeout(REQUEST_TIMEOUT, found).await else { return };
    let passed = match (known, found.offset) {
        (Some(known), Some(found)) => found.0 > known,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if !passed {
        return;
    }
    // The record may have been given up while it was looked for.
    site.ledger.catch_up().await;
    let given_up = || site.history.first_at(bucket, time).is_none_or(|now| Some(now) > known);
    if clients.lives(bucket) && !given_up() {
        let found = found.offset;
        site.history
            .violated(format!("I4: {bucket}: time {time} lies at {known:?}, the search found {found:?}"));
    }
}
