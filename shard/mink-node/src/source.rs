//! The logs of this node's buckets, for the frontends.
//!
//! Lives on: the service runtime; carries each call to the core that owns the bucket.
//! Invariants: I3 (the lease is checked once more when an answer leaves), order of reads is the caller's, the first read that finds
//! anything gives at least one batch and the others keep within the budget.
mod by_time;

use crate::context::Context;
use async_trait::async_trait;
use by_time::{Batches, Look, Search};
use bytes::Bytes;
use futures::future::{join_all, select_all};
use mink_api::{Found, LogSource};
use mink_record::kafka::{BatchHeader, Codec, Keyless, RecordTime, keyless};
use mink_record::{RecordError, RecordErrorKind};
use mink_router::{
    Append, AppendTicket, BatchBytes, BytePermit, EpochEnd, FirstSequence, Located, Lost, Position,
    ProducerState, Read, ReadError, Reads, ReadsAnswer, Request, Watch, WatchedOffset, append_reply, reply,
    shard_of,
};
use mink_rt::{BlockingError, fail_point};
use mink_types::{BucketEpoch, BucketId, ProducerId, TimestampType};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// [`LogSource`] of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeSource(pub(crate) Arc<Context>);

impl NodeSource {
    /// Positions in `items` by the shard of their bucket.
    fn by_shard<T>(&self, items: &[T], bucket: impl Fn(&T) -> BucketId) -> BTreeMap<usize, Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            groups.entry(shard_of(bucket(item), self.0.shards.len()).0).or_default().push(at);
        }
        groups
    }

    async fn ask<T>(
        &self,
        shard: usize,
        request: impl FnOnce(mink_router::ReplyTo<T>) -> Request,
    ) -> Result<T, Lost> {
        let shard = self.0.shards.get(shard).ok_or(Lost)?;
        let (reply, answer) = reply();
        shard.requests.send(request(reply)).await.map_err(|_| Lost)?;
        answer.answer().await
    }
}

/// Keeps the answers within `bytes_max` together, and each but the first that has anything within what its read asked for: they were read
/// shard by shard, each within the whole budget and each with a first of its own (KIP-74).
fn cut(reads: &[Read], answers: &mut ReadsAnswer, bytes_max: u32) {
    let (mut left, mut first) = (u64::from(bytes_max), true);
    for (read, answer) in reads.iter().zip(answers) {
        let Ok(answer) = answer else { continue };
        let mut own = u64::from(read.bytes_max);
        answer.batches.retain(|batch| {
            let bytes = batch.len() as u64;
            let keep = first || bytes <= left.min(own);
            if keep {
                (left, own) = (left.saturating_sub(bytes), own.saturating_sub(bytes));
            } else {
                left = if bytes > left { 0 } else { left };
                own = 0;
            }
            first = false;
            keep
        });
    }
}

#[async_trait]
impl LogSource for NodeSource {
    async fn append(
        &self,
        bucket: BucketId,
        header: BatchHeader,
        batch: BatchBytes,
        timestamps: TimestampType,
        first: FirstSequence,
        permit: BytePermit,
    ) -> Result<AppendTicket, Lost> {
        let (reply, ticket) = append_reply(permit);
        let shard = self.0.shard(bucket).ok_or(Lost)?;
        shard
            .appends
            .send(Append { bucket, header, batch, timestamps, first, reply })
            .await
            .map_err(|_| Lost)?;
        Ok(ticket)
    }

    async fn keyless(
        &self,
        header: BatchHeader,
        batch: Bytes,
        most: usize,
    ) -> Result<Result<Keyless, RecordError>, Lost> {
        // Nothing is inflated, and each byte is looked at once, as for the checksum before.
        if header.attributes.codec() == Codec::None {
            return Ok(keyless(&header, batch, self.0.inflated_bytes_max(), most));
        }
        self.0
            .with_records("search-keys", header, batch, move |header, batch, inflated_max| {
                keyless(header, batch, inflated_max, most)
            })
            .await
            .map_err(|error| {
                tracing::error!(%error, "search for keys in a batch");
                Lost
            })
    }

    async fn inflating(&self, bytes: u64) -> BytePermit {
        self.0.inflating.take(bytes).await
    }

    async fn read(&self, reads: Vec<Read>, bytes_max: u32) -> ReadsAnswer {
        let groups = self.by_shard(&reads, |read| read.bucket);
        let asked = groups.iter().map(|(shard, places)| {
            let reads = places.iter().filter_map(|at| reads.get(*at).cloned()).collect();
            self.ask(*shard, move |reply| Request::Reads(Reads { reads, bytes_max, reply }))
        });
        let mut answers: Vec<Option<_>> = reads.iter().map(|_| None).collect();
        for (places, answer) in groups.values().zip(join_all(asked).await) {
            // A shard that is gone answers nothing, and neither do its buckets.
            for (at, answer) in places.iter().zip(answer.unwrap_or_default()) {
                if let Some(place) = answers.get_mut(*at) {
                    *place = Some(answer);
                }
            }
        }
        fail_point("read.answer");
        let holds = self.0.lease_holds();
        let mut in_order: ReadsAnswer = reads
            .iter()
            .zip(answers)
            .map(|(read, answer)| match answer {
                Some(Ok(_)) if !holds => Err(ReadError::LeaseExpired),
                Some(answer) => answer,
                None => Err(ReadError::NotOwner { bucket: read.bucket }),
            })
            .collect();
        cut(&reads, &mut in_order, bytes_max);
        in_order
    }

    async fn watch(&self, offsets: Vec<WatchedOffset>) {
        let groups = self.by_shard(&offsets, |watched| watched.bucket);
        let waits = groups.into_iter().map(|(shard, places)| {
            let offsets = places.into_iter().filter_map(|at| offsets.get(at).copied()).collect();
            Box::pin(self.ask(shard, move |reply| Request::Watch(Watch { offsets, reply })))
        });
        let waits: Vec<_> = waits.collect();
        if !waits.is_empty() {
            // A shard that is gone ends the watch, too: the next read tells why.
            drop(select_all(waits).await);
        }
    }

    async fn locate(
        &self,
        bucket: BucketId,
        position: Position,
        leader_epoch: Option<i32>,
    ) -> Result<Found, ReadError> {
        let located = InBucket { source: self, bucket, leader_epoch };
        let found = Search::new(bucket, &located).run(position).await?;
        if self.0.lease_holds() { Ok(found) } else { Err(ReadError::LeaseExpired) }
    }

    async fn epoch_end(
        &self,
        bucket: BucketId,
        epoch: BucketEpoch,
        leader_epoch: Option<i32>,
    ) -> Result<Option<EpochEnd>, ReadError> {
        let shard = shard_of(bucket, self.0.shards.len()).0;
        let asked = move |reply| Request::EpochEnd { bucket, epoch, leader_epoch, reply };
        let found = self.ask(shard, asked).await.map_err(|Lost| ReadError::NotOwner { bucket })??;
        if self.0.lease_holds() { Ok(found) } else { Err(ReadError::LeaseExpired) }
    }

    async fn producers(
        &self,
        bucket: BucketId,
        from: ProducerId,
        most: usize,
    ) -> Result<Vec<ProducerState>, ReadError> {
        let shard = shard_of(bucket, self.0.shards.len()).0;
        let asked = move |reply| Request::Producers { bucket, from, most, reply };
        let found = self.ask(shard, asked).await.map_err(|Lost| ReadError::NotOwner { bucket })??;
        if self.0.lease_holds() { Ok(found) } else { Err(ReadError::LeaseExpired) }
    }
}

impl Context {
    fn inflated_bytes_max(&self) -> usize {
        usize::try_from(self.config.limits.inflated_bytes_max).unwrap_or(usize::MAX)
    }

    /// Lets `work` look at the records of a batch, which may have to be inflated: off the runtime's own threads. Counts a batch that
    /// inflates to more than it may.
    async fn with_records<T: Send + 'static>(
        &self,
        name: &'static str,
        header: BatchHeader,
        batch: Bytes,
        work: impl FnOnce(&BatchHeader, Bytes, usize) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<Result<T, RecordError>, BlockingError> {
        let inflated_max = self.inflated_bytes_max();
        // What it inflates to is not known before; the header's count of records bounds only their number. So a compressed batch takes
        // the whole budget, and one that is not takes what it is.
        let compressed = header.attributes.codec() != Codec::None;
        let bytes = if compressed { self.inflating.total_bytes() } else { batch.len() as u64 };
        let permit = self.inflating.take(bytes).await;
        let work = move || {
            let _permit = permit;
            work(&header, batch, inflated_max)
        };
        let looked = self.service.blocking(name, work).await?;
        if looked.as_ref().is_err_and(|error| error.kind() == RecordErrorKind::InflatedTooLarge) {
            self.inflated_refused.fetch_add(1, Ordering::Relaxed);
        }
        Ok(looked)
    }
}

/// One bucket as a search sees it.
struct InBucket<'a> {
    source: &'a NodeSource,
    bucket: BucketId,
    leader_epoch: Option<i32>,
}

#[async_trait]
impl Batches for InBucket<'_> {
    async fn ask(&self, position: Position) -> Result<Located, ReadError> {
        let (bucket, leader_epoch) = (self.bucket, self.leader_epoch);
        let shard = shard_of(bucket, self.source.0.shards.len()).0;
        let locate = move |reply| Request::Locate { bucket, position, leader_epoch, reply };
        self.source.ask(shard, locate).await.map_err(|Lost| ReadError::NotOwner { bucket })?
    }

    async fn look(&self, header: BatchHeader, batch: Bytes, look: Look) -> Option<RecordTime> {
        let search =
            move |header: &BatchHeader, batch, inflated_max| by_time::find(header, batch, look, inflated_max);
        let bucket = self.bucket;
        match self.source.0.with_records("search-batch", header, batch, search).await {
            Ok(Ok(record)) => record,
            // The producer lied about what it compressed; its batch has no record that anybody could read. Whoever searches again and again
            // must not fill the log with it.
            Ok(Err(error)) => {
                tracing::debug!(%bucket, %error, "a batch cannot be searched by time");
                None
            }
            Err(error) => {
                tracing::error!(%bucket, %error, "search of a batch");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_router::ReadAnswer;
    use mink_types::Offset;

    fn answer(sizes: &[usize]) -> ReadAnswer {
        ReadAnswer {
            batches: sizes.iter().map(|size| Bytes::from(vec![0; *size])).collect(),
            high_watermark: Offset(9),
            log_start: Offset(0),
            epoch: BucketEpoch(1),
        }
    }

    fn reads(bytes_max: &[u32]) -> Vec<Read> {
        let bucket = BucketId::unpartitioned(mink_types::TableId(1), mink_types::BucketIndex(0));
        let read =
            |bytes_max: &u32| Read { bucket, from: Offset(0), bytes_max: *bytes_max, leader_epoch: None };
        bytes_max.iter().map(read).collect()
    }

    fn sizes(answers: &ReadsAnswer) -> Vec<usize> {
        answers.iter().map(|answer| answer.as_ref().map_or(0, ReadAnswer::bytes)).collect()
    }

    #[test]
    fn answers_of_several_shards_keep_within_one_budget() {
        let mut answers = vec![Ok(answer(&[])), Ok(answer(&[60, 30])), Ok(answer(&[20])), Ok(answer(&[5]))];
        cut(&reads(&[1_000; 4]), &mut answers, 100);
        assert_eq!(
            sizes(&answers),
            [0, 90, 0, 0],
            "what comes after a cut would overtake nothing, but stays fair"
        );
    }

    #[test]
    fn the_first_batch_is_given_however_large() {
        let mut answers = vec![Ok(answer(&[500, 1])), Ok(answer(&[1]))];
        cut(&reads(&[1_000; 2]), &mut answers, 100);
        assert_eq!(sizes(&answers), [500, 0]);
    }

    #[test]
    fn p_25_only_the_first_that_has_anything_goes_beyond_its_own_limit() {
        let mut answers =
            vec![Ok(answer(&[])), Ok(answer(&[60])), Ok(answer(&[60, 5])), Ok(answer(&[30, 40, 1]))];
        cut(&reads(&[1, 1, 1, 50]), &mut answers, 1_000);
        assert_eq!(
            sizes(&answers),
            [0, 60, 0, 30],
            "whole batches in order, none behind one that does not fit"
        );
    }
}
