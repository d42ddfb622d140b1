//! Fetch: reads answered from the tail at once, from objects when they come back, in the order asked.
//!
//! Lives on: the core; object reads on the service runtime.
//! Invariants: I3: nothing at or beyond the high watermark; I5: lease and ownership are looked at again when objects come
//! back; K-14: the first batch is the one that holds the offset; P-14: an object that is gone fails its own range only.
use crate::ObjectReadError;
use crate::bucket::{Bucket, Opening};
use crate::error::{object_error, out_of_range};
use crate::shard::{IoResult, Shard, Ticket};
use bytes::Bytes;
use mink_log::ReadStep;
use mink_router::{Read, ReadAnswer, ReadError, Reads, ReadsAnswer, ReplyTo};
use mink_types::{BucketId, ObjectId, WalChain};
use s3stream::ReadRequest;

/// A fetch that waits for objects.
#[derive(Debug)]
pub(crate) struct Fetch {
    slots: Vec<Slot>,
    replanned: bool,
    /// Bytes that its reads in flight may bring.
    bytes: u64,
    reply: ReplyTo<ReadsAnswer>,
}

#[derive(Debug)]
enum Slot {
    Answered(Result<ReadAnswer, ReadError>),
    Waits(Waits),
}

/// A read that objects will answer.
#[derive(Debug)]
struct Waits {
    read: Read,
    opening: Opening,
    /// Bytes that were set aside for it.
    bytes_max: u64,
    /// Whether it is the one that gets a batch however large (KIP-74).
    at_least_one: bool,
    /// Where it was told to look.
    object: Option<ObjectId>,
}

/// What the reads of a fetch may still take.
struct Allowance {
    bytes: u64,
    nothing_yet: bool,
}

impl Shard {
    pub(crate) async fn reads(&mut self, reads: Reads) {
        let Reads { reads, bytes_max, reply } = reads;
        if reply.is_abandoned() {
            return;
        }
        let core = self.core.clone();
        let mut left =
            Allowance { bytes: u64::from(bytes_max.min(self.config.fetch_bytes_max)), nothing_yet: true };
        let mut asked = Vec::new();
        let mut slots = Vec::with_capacity(reads.len());
        for read in reads {
            let slot = self.read(read, &mut left);
            if let Slot::Waits(waits) = &slot {
                asked.push(slots.len());
                left.bytes = left.bytes.saturating_sub(waits.bytes_max);
                left.nothing_yet = false;
            }
            slots.push(slot);
            // A fetch may name thousands of buckets.
            core.yield_if_due().await;
        }
        let fetch = Fetch { slots, replanned: false, bytes: 0, reply };
        self.ask_objects(fetch, asked);
    }

    /// One read: its answer, or what to read of the objects.
    fn read(&mut self, read: Read, left: &mut Allowance) -> Slot {
        let (until, opening) = match self.look(&read) {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.stats.reads_empty += 1;
                return Slot::Answered(self.answer(&read, Vec::new(), None));
            }
            Err(error) => {
                self.stats.reads_refused += 1;
                return Slot::Answered(Err(error));
            }
        };
        let bytes_max = u64::from(read.bytes_max).min(left.bytes);
        let bucket = self.buckets.get(&read.bucket);
        let Some(bucket) = bucket.filter(|bucket| bucket.tail_start() <= read.from) else {
            if bytes_max == 0 && !left.nothing_yet {
                return Slot::Answered(self.answer(&read, Vec::new(), Some(opening)));
            }
            return Slot::Waits(Waits {
                read,
                opening,
                bytes_max,
                at_least_one: left.nothing_yet,
                object: None,
            });
        };
        let batches = bucket.tail().slice(read.from, until, bytes_max, left.nothing_yet);
        let bytes: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
        self.stats.reads_tail += 1;
        self.stats.read_bytes_tail += bytes;
        if bytes > 0 {
            self.touch(read.bucket);
        }
        left.bytes = left.bytes.saturating_sub(bytes);
        left.nothing_yet &= batches.is_empty();
        Slot::Answered(self.answer(&read, batches, Some(opening)))
    }

    /// Until where the read may see, and in which opening of the bucket; none if it is at the end.
    fn look(&mut self, read: &Read) -> Result<Option<(mink_types::Offset, Opening)>, ReadError> {
        let bucket = self.readable(read.bucket, read.leader_epoch)?;
        match bucket.tablet.read(read.from).map_err(|error| out_of_range(read.bucket, error))? {
            ReadStep::AtEnd => Ok(None),
            ReadStep::Records { until } => Ok(Some((until, bucket.opening))),
        }
    }

    /// An answer with these batches, if the bucket may still be read, in the same opening if one is given.
    fn answer(
        &mut self,
        read: &Read,
        batches: Vec<Bytes>,
        opening: Option<Opening>,
    ) -> Result<ReadAnswer, ReadError> {
        let bucket: &Bucket = self.readable(read.bucket, read.leader_epoch)?;
        if opening.is_some_and(|opening| opening != bucket.opening) {
            return Err(ReadError::NotOwner { bucket: read.bucket });
        }
        Ok(ReadAnswer {
            batches,
            high_watermark: bucket.tablet.high_watermark(),
            log_start: bucket.tablet.log_start(),
            epoch: bucket.tablet.epoch(),
        })
    }

    /// Sends the reads of these slots to the objects, or answers when there is none to wait for.
    fn ask_objects(&mut self, mut fetch: Fetch, asked: Vec<usize>) {
        let mut requests = Vec::with_capacity(asked.len());
        fetch.bytes = 0;
        for at in asked {
            let Some(slot) = fetch.slots.get_mut(at) else {
                continue;
            };
            let Slot::Waits(waits) = slot else { continue };
            let objects = self.object_ranges(waits.read.bucket, waits.read.from, waits.bytes_max);
            let first = objects.first().filter(|first| first.range.start <= waits.read.from);
            waits.object = first.map(|first| first.object);
            if waits.object.is_none() {
                // Neither in the tail nor in the view: the view is behind, or knows first that the log begins further on. It will come.
                let (bucket, from) = (waits.read.bucket, waits.read.from);
                let error = ReadError::Opening { bucket };
                *slot = Slot::Answered(Err(error.clone()));
                self.object_failed(from, &error);
                continue;
            }
            let request = ReadRequest {
                bucket: waits.read.bucket,
                objects,
                from: waits.read.from,
                bytes_max: usize::try_from(waits.bytes_max).unwrap_or(usize::MAX),
            };
            fetch.bytes = fetch.bytes.saturating_add(waits.bytes_max);
            requests.push((at, request));
        }
        if requests.is_empty() {
            return fetch.finish();
        }
        self.stats.reads_object += requests.len() as u64;
        let ticket: Ticket = self.ticket();
        self.fetching_bytes = self.fetching_bytes.saturating_add(fetch.bytes);
        self.fetches.insert(ticket, fetch);
        self.read_objects(ticket, requests);
    }

    /// The objects have answered.
    pub(crate) fn fetch_done(&mut self, mut fetch: Fetch, result: Option<IoResult>) {
        self.fetching_bytes = self.fetching_bytes.saturating_sub(fetch.bytes);
        let results = match result {
            Some(IoResult::Reads(results)) => results,
            // The task died; the log has its panic.
            Some(IoResult::Found(_)) | None => Vec::new(),
        };
        let mut again = Vec::new();
        for (at, result) in results {
            let Some(slot) = fetch.slots.get_mut(at) else {
                continue;
            };
            let Slot::Waits(waits) = slot else { continue };
            if matches!(result, Err(ObjectReadError::Missing { .. })) && !fetch.replanned {
                // Retention deletes, too: where the log begins further on by now, no view has the place.
                match self.look(&waits.read) {
                    Ok(_) => again.push(at),
                    Err(error) => *slot = Slot::Answered(Err(error)),
                }
                continue;
            }
            let answer = self.read_done(waits, result);
            *slot = Slot::Answered(answer);
        }
        if again.is_empty() {
            return fetch.finish();
        }
        // Compaction deletes what it replaced: the view of now says where the data went. Once; then it is an error.
        self.stats.reads_replanned += again.len() as u64;
        fetch.replanned = true;
        self.ask_objects(fetch, again);
    }

    fn read_done(
        &mut self,
        waits: &Waits,
        result: Result<Vec<Bytes>, ObjectReadError>,
    ) -> Result<ReadAnswer, ReadError> {
        match result {
            Ok(batches) => {
                let batches = cut(batches, waits.bytes_max, waits.at_least_one);
                let batches = self.visible(waits.read.bucket, batches);
                self.stats.read_bytes_object += batches.iter().map(|batch| batch.len() as u64).sum::<u64>();
                self.answer(&waits.read, batches, Some(waits.opening))
            }
            Err(error) => {
                self.stats.reads_refused += 1;
                // Who may not read any more must not be told of damage.
                self.answer(&waits.read, Vec::new(), Some(waits.opening))?;
                let error = object_error(waits.read.bucket, waits.read.from, error);
                self.object_failed(waits.read.from, &error);
                Err(error)
            }
        }
    }
}

impl Shard {
    /// The batches below the high watermark. A view may show a commit before the word that its chunks are durable has come, which
    /// goes by another lane: a reader who got ahead would be told next that its place is out of range (I3).
    fn visible(&self, bucket: BucketId, mut batches: Vec<Bytes>) -> Vec<Bytes> {
        let until = self.buckets.get(&bucket).map_or(0, |bucket| bucket.tablet.high_watermark().0);
        let base = |batch: &Bytes| batch.first_chunk().map(|base| u64::from_be_bytes(*base));
        let count = batches.iter().take_while(|batch| base(batch).is_some_and(|base| base < until)).count();
        batches.truncate(count);
        batches
    }
}

/// As many whole batches as fit.
fn cut(mut batches: Vec<Bytes>, bytes_max: u64, at_least_one: bool) -> Vec<Bytes> {
    let mut bytes = 0_u64;
    let fits = batches.iter().take_while(|batch| {
        bytes += batch.len() as u64;
        bytes <= bytes_max
    });
    let count = fits.count();
    batches.truncate(count.max(usize::from(at_least_one)));
    batches
}

impl Fetch {
    fn finish(self) {
        let answers = self.slots.into_iter().map(|slot| match slot {
            Slot::Answered(answer) => answer,
            Slot::Waits(waits) => Err(waits.lost()),
        });
        self.reply.send(answers.collect());
    }
}

impl Waits {
    /// The read's task ended without a result.
    fn lost(self) -> ReadError {
        lost(self.read.bucket, self.object)
    }
}

/// A read whose task ended without a result: the store may be asked again.
pub(crate) fn lost(bucket: BucketId, object: Option<ObjectId>) -> ReadError {
    let nobody = WalChain { node: mink_types::NodeId(0), incarnation: mink_types::Incarnation(0), tag: 0 };
    ReadError::StoreUnavailable {
        bucket,
        object: object.unwrap_or(ObjectId::Stream { chain: nobody, counter: 0 }),
        what: "the read ended without a result".into(),
    }
}
