//! Append: a batch gets its offset, is copied once into the arena, and goes into tail and chunk.
//!
//! Lives on: the core.
//! Invariants: I1: the reply is kept until the chunk is durable; I7: a refusal changes nothing, and after `ordered` there is
//! none; I19: what the tablet took is always stored, so what can fail is looked at before the tablet is asked.
use crate::bucket::Pending;
use crate::durable::{ChunkPlace, Flight, Mark};
use crate::error::append_error;
use crate::shard::{Aging, Shard};
use crate::tail::TailBatch;
use mink_log::{AppendStep, Stamp};
use mink_record::kafka::{BatchHeader, HEADER_BYTES, stated_checksum};
use mink_router::{Append, AppendError, AppendReply, Appended, BatchBytes, FirstSequence};
use mink_types::{BucketId, CommitTime, Offset, Timestamp, TimestampType};
use s3stream::{Entry, EntryKind, KnownChecksum, ProducerStamp};
use std::time::Duration;

/// A turn takes appends up to this many bytes: their chunk then waits for no more.
pub(crate) const TURN_BYTES: usize = 1 << 20;

// A chunk is a turn's appends, the last of which may be the largest batch there is.
const _: () = assert!(TURN_BYTES + s3stream::ENTRY_BYTES_MAX <= s3stream::CHUNK_BYTES_MAX);

/// What this turn has ordered.
#[derive(Debug, Default)]
pub(crate) struct OpenChunk {
    pub(crate) number: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    /// How far each bucket in it will be durable.
    pub(crate) marks: Vec<Mark>,
}

/// An ordered batch.
struct Ordered {
    base_offset: Offset,
    end: Offset,
    commit_time: CommitTime,
    timestamps: TimestampType,
    stamp: Option<Stamp>,
}

impl Shard {
    /// The commit time of this turn's appends.
    pub(crate) fn commit_time(&mut self) -> CommitTime {
        self.turn_began = self.core.now();
        let uptime = Duration::from_nanos(self.turn_began.as_nanos());
        let (time, jump) = self.clock.read(self.core.wall().as_millis(), uptime);
        if let Some(jump) = jump {
            if self.stats.clock_jumps == 0 {
                let ahead_ms = jump.ahead_ms;
                tracing::error!(ahead_ms, "wall clock jumped ahead, commit times follow the monotonic clock");
            }
            self.stats.clock_jumps += 1;
        }
        time
    }

    pub(crate) fn append(&mut self, append: Append, now: CommitTime) {
        let Append { bucket: id, header, batch, timestamps, first, reply } = append;
        if batch.len() < HEADER_BYTES || batch.len() != header.total_bytes() {
            // A fault of ours, not of the client: nothing true can be answered, so the connection closes.
            tracing::error!(bucket = %id, bytes = batch.len(), "append whose header is not that of its batch");
            self.stats.malformed += 1;
            return;
        }
        let ordered_at = self.turn_began;
        let leased = self.turn_began < self.lease_until;
        let Some(bucket) = self.buckets.get_mut(&id) else {
            let error = self.append_absent(id);
            return self.refuse(reply, error);
        };
        if bucket.draining {
            return self.refuse(reply, AppendError::Draining);
        }
        let step = match first {
            FirstSequence::Any => bucket.tablet.append(&header, now),
            FirstSequence::Zero => bucket.tablet.append_counted(&header, now),
        };
        match step {
            // Without the lease a successor may have taken over, and what this shard remembers of producers may be out of date: the
            // client is sent to look for the owner, since the true refusals would end it (I7).
            Err(_) if !leased => self.refuse(reply, AppendError::NotOwner { bucket: id }),
            Err(refused) => self.refuse(reply, append_error(id, refused)),
            Ok(AppendStep::Ordered { base_offset, end, commit_time, stamp, expired }) => {
                self.stats.producers_expired += expired as u64;
                let ordered = Ordered { base_offset, end, commit_time, timestamps, stamp };
                self.store(id, &header, batch, &ordered, reply);
            }
            Ok(AppendStep::DuplicateDurable { base_offset, commit_time }) => {
                let log_start = bucket.tablet.log_start();
                self.stats.duplicates += 1;
                reply.ordered(base_offset).durable(Appended {
                    base_offset,
                    commit_time,
                    log_start,
                    duplicate: true,
                });
            }
            Ok(AppendStep::DuplicateInFlight { base_offset, end, commit_time }) => {
                self.stats.duplicates += 1;
                let reply = reply.ordered(base_offset);
                let pending = Pending { base_offset, end, commit_time, ordered_at, duplicate: true, reply };
                bucket.flow().wait(pending);
            }
        }
    }

    fn refuse(&mut self, reply: AppendReply, error: AppendError) {
        self.stats.refused.count(&error);
        reply.refuse(error);
    }

    /// Stores what the tablet has ordered.
    fn store(
        &mut self,
        id: BucketId,
        header: &BatchHeader,
        batch: BatchBytes,
        ordered: &Ordered,
        reply: AppendReply,
    ) {
        let Ordered { base_offset, end, commit_time, timestamps, stamp } = *ordered;
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return;
        };
        let epoch = bucket.tablet.epoch();
        // Commit times never go back within a bucket, and are remembered with its producers: a repeat is told the same one.
        let append_time = (timestamps == TimestampType::LogAppendTime).then_some(Timestamp(commit_time.0));
        let (bytes, chunk) = match self.arena.place(batch, base_offset, epoch, append_time) {
            Ok(placed) => placed,
            // The length was looked at before. Going on would leave a hole in the log (I2): the process ends instead.
            Err(error) => panic!("I2: {id}: the batch at {base_offset} cannot be stored: {error}"),
        };
        bucket.touched = self.turn_began;
        let max_timestamp = append_time.unwrap_or(Timestamp(header.max_timestamp));
        let opening = bucket.opening;
        let flow = bucket.flow();
        flow.tail.push(TailBatch { base: base_offset, end, max_timestamp, chunk, bytes: bytes.clone() });
        flow.wait(Pending {
            base_offset,
            end,
            commit_time,
            ordered_at: self.turn_began,
            duplicate: false,
            reply: reply.ordered(base_offset),
        });
        self.aging.push_back(Aging { bucket: id, opening, end });
        match flow.noted {
            Some((number, at)) if number == self.chunk.number => {
                if let Some(mark) = self.chunk.marks.get_mut(at) {
                    mark.end = end;
                }
            }
            _ => {
                flow.noted = Some((self.chunk.number, self.chunk.marks.len()));
                self.uncommitted.insert(id);
                self.chunk.marks.push(Mark { bucket: id, opening, end });
            }
        }
        self.stats.appended_batches += 1;
        self.stats.appended_records += end.0 - base_offset.0;
        self.stats.appended_bytes += bytes.len() as u64;
        self.chunk.bytes += bytes.len();
        self.chunk.entries.push(Entry {
            bucket: id,
            epoch,
            base_offset,
            count: u32::try_from(end.0 - base_offset.0).unwrap_or(u32::MAX),
            kind: EntryKind::Batch,
            commit_time,
            max_timestamp,
            producer: stamp.map(|stamp| ProducerStamp {
                id: stamp.producer,
                epoch: stamp.epoch,
                base_sequence: stamp.base_sequence,
            }),
            known: stated_checksum(&bytes).map(|(from, crc)| KnownChecksum { from, crc }),
            bytes,
        });
    }

    /// Hands this turn's chunk to the WAL. The room for it and for its end was there before its first append was taken.
    pub(crate) fn push_chunk(&mut self) {
        if self.chunk.entries.is_empty() {
            return;
        }
        let next = OpenChunk { number: self.chunk.number + 1, ..OpenChunk::default() };
        let OpenChunk { number, entries, marks, .. } = std::mem::replace(&mut self.chunk, next);
        let place = self.chunk_place.take().or_else(|| self.chunks_told.try_reserve());
        debug_assert!(place.is_some(), "no append is taken without a place for its chunk's end");
        self.flights.push_back(Flight { number, marks, durable: false });
        self.stats.chunks_pushed += 1;
        let mut place = ChunkPlace { number, place };
        self.sink.push(entries, Box::new(move |end| place.tell(end)));
    }
}
