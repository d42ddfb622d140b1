//! Follows buckets, those among them that come to be and go meanwhile.
//!
//! Lives on: the task of the call.
//! Invariants: a bucket that comes to be while a scan follows its table is read from its first row, wherever the scan began in the others;
//! one whose partition is dropped leaves, and those that stay go on.
use super::{Ended, Place, Scan, stopping};
use crate::scan::From;
use mink_router::WatchedOffset;
use mink_types::BucketId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Code, Status};

/// How often it is looked for buckets that are new.
const DISCOVER_EVERY: Duration = Duration::from_secs(1);
/// The same for one that is known and not open yet.
const OPENING_EVERY: Duration = Duration::from_millis(100);
/// How long a new bucket may take until it can be read here.
const OPENING_PATIENCE: Duration = Duration::from_secs(30);

/// When to look for new buckets.
struct Discovery {
    at: Instant,
    /// Since when there is one that cannot be read yet.
    opening: Option<Instant>,
}

impl Scan {
    /// Reads on in all buckets, by turns, until there are rows enough, or the node stops.
    pub(super) async fn follow(&mut self, mut places: Vec<Place>) -> Result<Result<(), Ended>, Status> {
        let node = Arc::clone(&self.watched.node);
        let mut stopped = std::pin::pin!(node.stopped());
        let mut discovery = Discovery { at: Instant::now() + DISCOVER_EVERY, opening: None };
        while self.left > 0 {
            if Instant::now() >= discovery.at {
                self.discover(&mut places, &mut discovery).await?;
            }
            let mut found = false;
            for place in &mut places {
                if self.left == 0 {
                    break;
                }
                match self.read(place).await {
                    Ok(Ok(more)) => found |= more,
                    Ok(Err(ended)) => return Ok(Err(ended)),
                    // A bucket that is gone is found out about at once.
                    Err(_) if self.has_gone(place.bucket)? => discovery.at = Instant::now(),
                    Err(status) => return Err(status),
                }
            }
            if found || Instant::now() >= discovery.at {
                continue;
            }
            let seen = places.iter().map(|place| WatchedOffset { bucket: place.bucket, seen: place.seen });
            let watching = node.source.watch(seen.collect());
            let more = async {
                tokio::select! {
                    () = watching, if !places.is_empty() => true,
                    () = tokio::time::sleep_until(discovery.at) => true,
                    () = &mut stopped => false,
                }
            };
            match self.watched.during(more, 0).await {
                Ok(true) => {}
                Ok(false) => return Err(stopping()),
                Err(ended) => return Ok(Err(ended)),
            }
        }
        Ok(Ok(()))
    }

    /// Whether a bucket is none of the table any more. An error if there is nothing left that this scan could follow.
    fn has_gone(&self, bucket: BucketId) -> Result<bool, Status> {
        Ok(!self.plan.buckets_of(&self.watched.node.admin.state())?.contains(&bucket))
    }

    /// Lets go of buckets that are gone, and adds those that are new.
    async fn discover(&self, places: &mut Vec<Place>, discovery: &mut Discovery) -> Result<(), Status> {
        let now = Instant::now();
        let buckets = self.plan.buckets_of(&self.watched.node.admin.state())?;
        let current: BTreeSet<BucketId> = buckets.iter().copied().collect();
        places.retain(|place| current.contains(&place.bucket));
        let known: BTreeSet<BucketId> = places.iter().map(|place| place.bucket).collect();
        let from = match self.plan.from {
            // Rows from a time on are those of every bucket.
            From::Time(time) => From::Time(time),
            // Whatever it holds has come since the scan began; an offset was a place in another bucket.
            From::Earliest | From::Latest | From::Offset(_) => From::Earliest,
        };
        let mut opening = None;
        for bucket in buckets.into_iter().filter(|bucket| !known.contains(bucket)) {
            match self.place(bucket, from).await {
                Ok(place) => places.push(place),
                Err(status) if status.code() == Code::Unavailable => {
                    let since = *opening.get_or_insert(discovery.opening.unwrap_or(now));
                    if now >= since + OPENING_PATIENCE {
                        return Err(status);
                    }
                }
                Err(status) => return Err(status),
            }
        }
        let pause = if opening.is_some() { OPENING_EVERY } else { DISCOVER_EVERY };
        *discovery = Discovery { at: now + pause, opening };
        Ok(())
    }
}
