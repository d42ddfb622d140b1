//! Locate: the offsets that a reader asks for by name or by time.
//!
//! Lives on: the core; searches of objects on the service runtime.
//! Invariants: I3: nothing at or beyond the high watermark is found; K-15: by time, the first batch in offset order that says
//! it holds a record of that time or later; who asked decodes it off the core, and asks again from behind it if it said wrong.
use crate::bucket::{Bucket, Opening};
use crate::error::object_error;
use crate::fetch::lost;
use crate::shard::{IoResult, Shard};
use crate::{ObjectFind, ObjectReadError};
use bytes::Bytes;
use mink_router::{Located, Position, ReadError, ReplyTo};
use mink_types::{BucketId, ObjectId, Offset, Timestamp};
use s3stream::ObjectRange;

/// Ranges searched by one call to the objects. A search that finds nothing in them goes on behind them.
const OBJECTS_PER_SEARCH: usize = 8;

/// A search that waits for objects.
#[derive(Debug)]
pub(crate) struct Search {
    asked: Asked,
    opening: Opening,
    at_or_after: Timestamp,
    /// Where the search goes on if these objects hold nothing.
    then_from: Offset,
    first: Option<ObjectId>,
    replanned: bool,
    from: Offset,
}

/// Who asked, and what for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) bucket: BucketId,
    pub(crate) leader_epoch: Option<i32>,
    pub(crate) reply: ReplyTo<Result<Located, ReadError>>,
}

impl Shard {
    pub(crate) fn locate(&mut self, asked: Asked, position: Position) {
        self.stats.locates += 1;
        let bucket = match self.readable(asked.bucket, asked.leader_epoch) {
            Ok(bucket) => bucket,
            Err(error) => return asked.reply.send(Err(error)),
        };
        let epoch = bucket.tablet.epoch();
        let log_start = bucket.tablet.log_start();
        match position {
            Position::Earliest => asked.reply.send(Ok(Located::Offset { offset: log_start, epoch })),
            Position::Latest => {
                let offset = bucket.tablet.high_watermark();
                asked.reply.send(Ok(Located::Offset { offset, epoch }));
            }
            Position::AtOrAfter { time, from } => self.search(asked, time, from.max(log_start), false),
            Position::MaxTimestamp => {
                let in_tail = bucket.tail().max_timestamp(log_start, bucket.tablet.high_watermark());
                let tail_start = bucket.tail_start();
                let ranges = self.all_object_ranges(asked.bucket, log_start);
                let in_objects = ranges
                    .take_while(|(range, _)| range.range.start < tail_start)
                    .filter(|(range, _)| range.length > 0)
                    .map(|(range, _)| range.max_timestamp)
                    .max();
                match in_tail.max(in_objects) {
                    // The first batch that reaches the largest time holds it.
                    Some(time) => self.search(asked, time, log_start, false),
                    None => asked.reply.send(Ok(Located::Nothing { epoch })),
                }
            }
        }
    }

    /// Searches from `from` on: the objects below the tail first, then the tail.
    fn search(&mut self, asked: Asked, at_or_after: Timestamp, from: Offset, replanned: bool) {
        let bucket = match self.readable(asked.bucket, asked.leader_epoch) {
            Ok(bucket) => bucket,
            Err(error) => return asked.reply.send(Err(error)),
        };
        let (opening, tail_start) = (bucket.opening, bucket.tail_start());
        let objects: Vec<ObjectRange> = self
            .all_object_ranges(asked.bucket, from)
            .map(|(range, _)| range)
            .take_while(|range| range.range.start < tail_start)
            // What is lost (length 0) holds no record that anybody could find any more.
            .filter(|range| range.length > 0 && range.max_timestamp >= at_or_after)
            .take(OBJECTS_PER_SEARCH)
            .collect();
        let Some(last) = objects.last() else {
            let answer = self.search_tail(&asked, at_or_after, from);
            return asked.reply.send(answer);
        };
        let search = Search {
            opening,
            at_or_after,
            then_from: last.range.end,
            first: objects.first().map(|first| first.object),
            replanned,
            from,
            asked,
        };
        let find = ObjectFind { bucket: search.asked.bucket, objects, from, at_or_after };
        let ticket = self.ticket();
        self.searches.insert(ticket, search);
        self.search_objects(ticket, find);
    }

    fn search_tail(
        &mut self,
        asked: &Asked,
        at_or_after: Timestamp,
        from: Offset,
    ) -> Result<Located, ReadError> {
        let bucket = self.readable(asked.bucket, asked.leader_epoch)?;
        let found = bucket.tail().first_at_or_after(at_or_after, from, bucket.tablet.high_watermark());
        Ok(located(bucket, found.map(|batch| batch.bytes.clone())))
    }

    /// The objects have answered.
    pub(crate) fn search_done(&mut self, search: Search, result: Option<IoResult>) {
        let Search { asked, opening, at_or_after, then_from, first, replanned, from } = search;
        let bucket = match self.readable(asked.bucket, asked.leader_epoch) {
            Ok(bucket) if bucket.opening == opening => bucket,
            Ok(_) => {
                return asked.reply.send(Err(ReadError::NotOwner { bucket: asked.bucket }));
            }
            Err(error) => return asked.reply.send(Err(error)),
        };
        match result {
            Some(IoResult::Found(Ok(Some(batch)))) => asked.reply.send(Ok(located(bucket, Some(batch)))),
            // The largest times in the metadata are of whole ranges; those of batches below the log's start may be meant.
            Some(IoResult::Found(Ok(None))) => self.search(asked, at_or_after, then_from, replanned),
            Some(IoResult::Found(Err(ObjectReadError::Missing { .. }))) if !replanned => {
                self.stats.reads_replanned += 1;
                self.search(asked, at_or_after, from, true);
            }
            Some(IoResult::Found(Err(error))) => {
                let error = object_error(asked.bucket, from, error);
                self.object_failed(from, &error);
                asked.reply.send(Err(error));
            }
            Some(IoResult::Reads(_)) | None => asked.reply.send(Err(lost(asked.bucket, first))),
        }
    }
}

fn located(bucket: &Bucket, batch: Option<Bytes>) -> Located {
    let epoch = bucket.tablet.epoch();
    match batch {
        Some(batch) => Located::Batch { batch, log_start: bucket.tablet.log_start(), epoch },
        None => Located::Nothing { epoch },
    }
}
