//! Renews the read lease by the node's heartbeat.
//!
//! Lives on: one task on the service runtime.
//! Owns: the heartbeat's counter.
//! Invariants: I3 (a renewal counts from before it was sent; an unknown one counts nothing), I5 (a refused one ends the node).
use crate::context::Context;
use crate::error::NodeEnd;
use crate::lease::LeaseTimes;
use mink_rt::{Instant, Service};
use mink_shard::Control;
use mink_sql::{Beat, BeatRefused, CommandLog};
use mink_types::{Incarnation, Outcome};
use std::sync::Arc;
use std::time::Duration;

/// One heartbeat: until when the lease holds, none when nothing is known, an error when no renewal can succeed any more. It is given up
/// when the next is due: an unknown one renews nothing, and one that hangs must not cost the time in which others could succeed.
pub(crate) async fn beat(
    log: &Arc<dyn CommandLog>,
    service: &Service,
    incarnation: Incarnation,
    counter: u64,
    ttl: Duration,
) -> Result<Option<Instant>, String> {
    let (sent, patience) = (service.now(), LeaseTimes { ttl }.renew_every());
    match service.timeout(patience, log.beat(Beat { incarnation, counter, ttl })).await {
        Ok(Outcome::Done(())) => Ok(Some(sent + ttl)),
        Ok(Outcome::Refused(BeatRefused::Closed)) => Err(BeatRefused::Closed.to_string()),
        Ok(Outcome::Refused(BeatRefused::Write(refused))) => {
            tracing::warn!(%refused, "heartbeat");
            Ok(None)
        }
        Ok(Outcome::Unknown(unknown)) => {
            tracing::warn!(%unknown, "heartbeat");
            Ok(None)
        }
        Err(elapsed) => {
            tracing::warn!(%elapsed, "heartbeat: the database does not answer");
            Ok(None)
        }
    }
}

/// Runs until the node ends.
pub(crate) async fn renew(context: Arc<Context>, mut counter: u64) {
    let times = context.lease_times();
    let mut next = context.service.now() + times.renew_every();
    loop {
        context.service.sleep_until(next).await;
        // From one sending to the next, however long the answer took.
        next = context.service.now() + times.renew_every();
        counter += 1;
        match beat(&context.config.log, &context.service, context.me(), counter, times.ttl).await {
            Ok(Some(until)) => {
                context.lease.renewed(until);
                context.tell_shards(|| Control::Lease(until)).await;
            }
            Ok(None) => {}
            Err(how) => {
                context.lease.end();
                context.end(NodeEnd::Fenced { how });
                return;
            }
        }
    }
}
