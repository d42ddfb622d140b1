//! Opening buckets: the command, the recovery of each one's rules from its newest footers, and the word to its shard.
//!
//! Lives on: the service runtime.
//! Invariants: I13 (appends start when this node has applied its `Open`), T-3 and I6 (producers come from the newest snapshot and every
//! entry after it), P-14 (an object that is gone or damaged keeps no bucket closed: it is told of, and costs what it held; decision 0016).
use crate::context::Context;
use crate::error::{NodeEnd, StartError};
use crate::opened::Claim;
use futures::StreamExt;
use mink_coordinator::{Facts, Step, plan};
use mink_log::Recovered;
use mink_metadata::{Answer, BucketOpening, Command, CommandResult, RefusalKind, State, Table, TakenOver};
use mink_object::ObjectKey;
use mink_router::reply;
use mink_rt::mutant;
use mink_shard::{BucketOptions, Control, OpenBucket, opened, recovered};
use mink_types::{BucketEpoch, BucketId};
use s3stream::{ErrorKind, ObjectRange, Unreadable};
use std::sync::PoisonError;
use std::time::Duration;

/// Buckets of one `Open`: so many fit a row with room to spare.
const OPENINGS_PER_COMMAND: usize = 4_096;
/// Buckets that are recovered at a time.
const RECOVERIES_MAX: usize = 64;
/// Tries to read the footers of one bucket, and the pause between them.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
/// What is lost is told in the status up to so many pieces; the log tells of all.
const LOST_TOLD_MAX: usize = 1_000;

impl Context {
    /// Opens buckets on this node's chain; those that somebody else opened meanwhile are left alone.
    pub(crate) async fn open(
        &self,
        buckets: &[BucketOpening],
        from: Option<TakenOver>,
    ) -> Result<(), StartError> {
        let chunks: Vec<&[BucketOpening]> = match buckets {
            // The seal must be recorded also when no bucket hangs on the chain any more.
            [] => vec![&[]],
            some => some.chunks(OPENINGS_PER_COMMAND).collect(),
        };
        for chunk in chunks {
            let command = Command::Open { by: self.me(), buckets: chunk.to_vec(), from };
            let result = self
                .metadata
                .submit(command)
                .await
                .map_err(|error| StartError::Metadata(error.to_string()))?;
            match result {
                CommandResult::Done(Answer::Opened { refused }) => {
                    for (bucket, why) in refused {
                        tracing::info!(%bucket, %why, "bucket not opened");
                    }
                }
                CommandResult::Refused(refusal) if refusal.kind() == RefusalKind::Fenced => {
                    return Err(StartError::Fenced);
                }
                other => tracing::warn!(?other, "open refused"),
            }
        }
        self.serve_owned().await;
        Ok(())
    }

    /// Opens the free buckets that fall to this node.
    pub(crate) async fn open_planned(&self, state: &State) -> Result<(), StartError> {
        for step in plan(state, self.me(), &Facts::default()) {
            if let Step::Open { buckets } = step {
                self.open(&buckets, None).await?;
            }
        }
        Ok(())
    }

    /// Recovers and serves every bucket that hangs on this node's chain and is not served yet.
    pub(crate) async fn serve_owned(&self) {
        if self.is_draining() {
            return;
        }
        let state = self.state();
        // Tasks that open at the same time each open what nobody else is at.
        let waiting: Vec<Claim> =
            state.hanging(self.me()).filter_map(|bucket| self.opened.claim(bucket)).collect();
        if waiting.is_empty() {
            return;
        }
        // A shard looks ranges up in its view, so the view that shows the `Open` goes first.
        self.send_view().await;
        let recoveries = waiting.into_iter().map(|claim| self.serve(claim));
        futures::stream::iter(recoveries).buffer_unordered(RECOVERIES_MAX).collect::<Vec<()>>().await;
    }

    async fn serve(&self, claim: Claim) {
        let id = claim.bucket;
        for attempt in 1..=TRIES_MAX {
            match self.try_serve(id).await {
                Ok(()) => return,
                Err(Failure::Again(what)) => {
                    tracing::warn!(bucket = %id, %what, attempt, "bucket not open yet");
                    self.service.sleep(PAUSE).await;
                }
                Err(Failure::Moved) => tracing::debug!(bucket = %id, "it moved while it was opened"),
                Err(Failure::Final(what)) => {
                    tracing::error!(bucket = %id, %what, "bucket cannot be opened; a person must look");
                    return;
                }
            }
        }
        tracing::error!(bucket = %id, "bucket not opened, the store does not answer");
    }

    async fn try_serve(&self, id: BucketId) -> Result<(), Failure> {
        let state = self.state();
        let (Some(bucket), Some(table)) = (state.bucket(&id), state.table(id.table)) else {
            return Ok(()); // dropped meanwhile
        };
        if bucket.owner != Some(self.me()) {
            return Ok(());
        }
        let objects: Vec<ObjectRange> = state
            .objects_of(&id)
            .map(|(range, place, object)| ObjectRange {
                object: place.object,
                range,
                max_timestamp: place.max_timestamp,
                bytes: place.bytes,
                length: object.length,
                footer_length: object.footer_length,
                checksum: object.checksum,
            })
            .collect();
        // The footers that this view names must not go meanwhile (P-16); each has its bound of attempts.
        let _plan = self.running.begin(state.witness().index);
        let log = self.reader.recover_bucket(id, &objects, bucket.end).await.map_err(|error| match error
            .kind()
        {
            ErrorKind::Retry => Failure::Again(error.to_string()),
            _ => Failure::Final(error.to_string()),
        })?;
        self.tell_damaged(id, table, &log.unreadable)?;
        let recovered = recovered(bucket.epoch, bucket.start, &log);
        let mut recovered = recovered.map_err(|error| Failure::Final(error.to_string()))?;
        // Metadata know the commit times of what cannot be read, too: they never go back.
        let committed = state.objects_of(&id).map(|(_, place, _)| place.last_commit_time).max();
        recovered.last_commit_time = committed
            .map_or(recovered.last_commit_time, |committed| committed.max(recovered.last_commit_time));
        if mutant("producers-dropped") {
            recovered.producers.clear();
            recovered.batches.clear();
        }
        let opened = opened(id, &recovered, (&self.config.limits).into());
        self.wal.open_bucket(opened.map_err(|error| Failure::Final(error.to_string()))?);
        // The node's own bound: the table's may change while the bucket is open, and is checked before a batch is sent here.
        let options = BucketOptions { batch_bytes_max: self.config.limits.batch_bytes_max };
        self.hand_over(id, bucket.epoch, recovered, options).await
    }

    /// The alarm for what a recovery could not read: an ERROR for each object, a WARN for each further bucket that it concerns.
    fn tell_damaged(&self, id: BucketId, table: &Table, unreadable: &[Unreadable]) -> Result<(), Failure> {
        let Some(first) = unreadable.first() else { return Ok(()) };
        // What an old view names may have been rewritten and deleted.
        let state = self.state();
        let named = |lost: &Unreadable| {
            let mut ranges = state.objects_of(&id);
            ranges.any(|(range, place, _)| place.object == lost.object && range == lost.range)
        };
        if !unreadable.iter().all(named) {
            return Err(Failure::Again(first.error.to_string()));
        }
        let mut words = Vec::new();
        for Unreadable { object, range, error } in unreadable {
            let (table, offsets) = (&table.path, format!("{}..{}", range.start, range.end));
            let key = ObjectKey::object(&self.config.cluster, *object);
            words.push(format!(
                "{id} of {table}: offsets {offsets} lie in {object}, which is lost or damaged ({key})"
            ));
            if self.reader.tell_damaged(*object) {
                let ranges = state.object(object).map_or(0, |object| object.ranges);
                tracing::error!(
                    bucket = %id, %table, offsets, %object, %key, ranges, %error,
                    "acknowledged data is lost: an object is gone or damaged; its buckets open without it"
                );
            } else {
                tracing::warn!(bucket = %id, %table, offsets, %object, "a part of the log is lost with an object");
            }
        }
        let told = self.lost.lock().unwrap_or_else(PoisonError::into_inner).len();
        words.truncate(LOST_TOLD_MAX.saturating_sub(told));
        self.note_lost(words);
        Ok(())
    }

    async fn hand_over(
        &self,
        id: BucketId,
        epoch: BucketEpoch,
        recovered: Recovered,
        options: BucketOptions,
    ) -> Result<(), Failure> {
        let Some(shard) = self.shard(id) else {
            return Ok(());
        };
        let (reply, answer) = reply();
        let open = OpenBucket { bucket: id, recovered, options, reply };
        drop(shard.controls.send(Control::Open(Box::new(open))).await);
        match answer.answer().await {
            Ok(Ok(())) => {
                self.opened.insert(id, epoch);
                // Whoever follows the log closes what is on the list; what was taken away before it came there is closed here.
                if !self.owns(&self.state(), id, epoch) {
                    self.close(id, epoch).await;
                    return Err(Failure::Moved);
                }
                tracing::debug!(bucket = %id, %epoch, "bucket open");
                Ok(())
            }
            Ok(Err(error)) => Err(Failure::Final(error.to_string())),
            // The shards of a draining node have been told to stop; the next owner opens the bucket.
            Err(_) if self.is_draining() => Ok(()),
            Err(lost) => {
                self.end(NodeEnd::Failed { what: format!("shard {}: {lost}", shard.index) });
                Err(Failure::Final(lost.to_string()))
            }
        }
    }
}

/// Why a bucket is not served yet.
enum Failure {
    Again(String),
    /// The log has changed meanwhile.
    Moved,
    Final(String),
}
