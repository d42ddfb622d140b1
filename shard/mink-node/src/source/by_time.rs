//! Searches by time: a shard names batches by what their headers state, and here is looked whether they hold it.
//!
//! Lives on: the service runtime; batches are decoded off it.
//! Invariants: K-15: the first record at or after a time, or the one with the largest time, also behind batches whose header states
//! a later timestamp than their records have, that nobody can inflate, or that the start of the log cuts; I20: asks and looks of one search are bounded.
use async_trait::async_trait;
use bytes::Bytes;
use mink_api::Found;
use mink_record::RecordError;
use mink_record::kafka::{
    BatchFormat, BatchHeader, RecordTime, first_at_or_after, max_timestamp_record, records,
};
use mink_router::{Located, Position, ReadError};
use mink_types::{BucketEpoch, BucketId, Offset, Timestamp};
use std::collections::BTreeMap;

/// Batches that one search decodes. A producer that states the right timestamps costs one; more than a few are a broken client, or
/// somebody who wants the node to inflate without an end.
const LOOKS_MAX: u32 = 64;

/// Questions that one search puts to its shard. The largest timestamp is halved down to behind a header that states too large a one: 64
/// steps at most, each of which may pass the same few batches.
const ASKS_MAX: u32 = 256;

/// What a search needs: the shard, and eyes for batches.
#[async_trait]
pub(super) trait Batches: Sync {
    /// What the shard finds, which goes by headers.
    async fn ask(&self, position: Position) -> Result<Located, ReadError>;

    /// The record looked for in a batch, by [`find`]; none if it holds no such record or cannot be read.
    async fn look(&self, header: BatchHeader, batch: Bytes, look: Look) -> Option<RecordTime>;
}

/// Which record of a batch is looked for, of those that the log still has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    record: Wanted,
    log_start: Offset,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// The first at or after a time.
    AtOrAfter(Timestamp),
    /// The one with the largest timestamp.
    Largest,
}

/// Looks into a batch. It may be inflated, to `inflated_max` bytes at most: not for a core, nor for a runtime's own threads.
pub(super) fn find(
    header: &BatchHeader,
    batch: Bytes,
    look: Look,
    inflated_max: usize,
) -> Result<Option<RecordTime>, RecordError> {
    let start = look.log_start.kafka();
    if header.base_offset >= start || header.format == BatchFormat::Arrow {
        let found = match look.record {
            Wanted::AtOrAfter(time) => first_at_or_after(header, batch, time.0, inflated_max),
            Wanted::Largest => max_timestamp_record(header, batch, inflated_max),
        };
        // Rows of Arrow have the time of their batch, so the first that the log still has has it, too.
        let left = |record: RecordTime| RecordTime { offset: record.offset.max(start), ..record };
        return Ok(found?.map(left).filter(|record| record.offset <= header.last_offset()));
    }
    // The log begins inside of it: the records before its start are deleted.
    let mut largest: Option<RecordTime> = None;
    for record in records(header, batch, inflated_max)? {
        let record = record?;
        let record = RecordTime { offset: record.offset, timestamp: record.timestamp };
        if record.offset < start {
            continue;
        }
        match look.record {
            Wanted::AtOrAfter(time) if record.timestamp >= time.0 => return Ok(Some(record)),
            Wanted::Largest if largest.is_none_or(|before| record.timestamp > before.timestamp) => {
                largest = Some(record);
            }
            Wanted::AtOrAfter(_) | Wanted::Largest => {}
        }
    }
    Ok(largest)
}

/// A batch that a header's word led to.
struct Candidate {
    header: BatchHeader,
    batch: Bytes,
    log_start: Offset,
    epoch: BucketEpoch,
}

/// One search in one bucket.
pub(super) struct Search<'a> {
    bucket: BucketId,
    batches: &'a dyn Batches,
    asks: u32,
    looks: u32,
    /// The largest timestamps of the batches that were looked into for them, by base offset: halving comes by the same ones again.
    largest: BTreeMap<i64, Option<RecordTime>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(bucket: BucketId, batches: &'a dyn Batches) -> Search<'a> {
        Search { bucket, batches, asks: 0, looks: 0, largest: BTreeMap::new() }
    }

    /// Answers any position. A search that its bounds end is an error, and not "nothing": a consumer that seeks by time takes "nothing"
    /// for the end of the log and would pass over the very records it looks for, while Kafka's clients ask again on an error and, when
    /// their time is up, show it.
    pub(super) async fn run(mut self, position: Position) -> Result<Found, ReadError> {
        match position {
            Position::Earliest | Position::Latest => match self.ask(position, Offset(0)).await? {
                Located::Offset { offset, epoch } => {
                    Ok(Found { offset: Some(offset), timestamp: None, epoch })
                }
                Located::Nothing { epoch } | Located::Batch { epoch, .. } => Ok(nothing(epoch)),
            },
            Position::AtOrAfter { time, from } => self.first(time, from, Wanted::AtOrAfter(time)).await,
            Position::MaxTimestamp => self.max_timestamp().await,
        }
    }

    /// Goes to the first batch from `from` on that holds a record at or after `time`, for the record of it that is `wanted`.
    async fn first(&mut self, time: Timestamp, mut from: Offset, wanted: Wanted) -> Result<Found, ReadError> {
        loop {
            let located = self.ask(Position::AtOrAfter { time, from }, from).await?;
            let candidate = match self.candidate(located, from)? {
                Ok(candidate) => candidate,
                Err(found) => return Ok(found),
            };
            let record = self.look(&candidate, wanted).await?;
            if let Some(record) = record.filter(|record| record.timestamp >= time.0) {
                return Ok(candidate.found(record));
            }
            let stated = candidate.header.max_timestamp;
            tracing::debug!(bucket = %self.bucket, base = candidate.header.base_offset, stated, "no record of the stated time");
            from = candidate.end();
        }
    }

    /// The shard goes by the largest timestamp that any header states, and finds no batch if that one lies below the log's start: what it
    /// knows of a flushed range is of all its batches. If its batch does not hold that time, or there is none, the largest that a record
    /// has is found by halving: "is there a record at or after this time" can be answered in spite of such headers.
    async fn max_timestamp(&mut self) -> Result<Found, ReadError> {
        let located = self.ask(Position::MaxTimestamp, Offset(0)).await?;
        // There is no record after `high`.
        let (at_once, mut high) = match self.candidate(located, Offset(0))? {
            Ok(stated) => {
                let record = self.look(&stated, Wanted::Largest).await?;
                (record.map(|record| stated.found(record)), stated.header.max_timestamp)
            }
            Err(_) => (None, i64::MAX),
        };
        let mut best = match at_once {
            Some(found) => found,
            None => self.first(Timestamp(i64::MIN), Offset(0), Wanted::Largest).await?,
        };
        // There is a record of the time `low`; without one there is none at all.
        let Some(Timestamp(mut low)) = best.timestamp else {
            return Ok(best);
        };
        while low < high {
            let middle = low.saturating_add_unsigned(high.abs_diff(low).div_ceil(2));
            let there = self.first(Timestamp(middle), Offset(0), Wanted::Largest).await?;
            match there.timestamp {
                Some(timestamp) => (low, best) = (timestamp.0, there),
                None => high = middle - 1,
            }
        }
        Ok(best)
    }

    async fn ask(&mut self, position: Position, from: Offset) -> Result<Located, ReadError> {
        if self.asks == ASKS_MAX {
            return Err(self.gave_up(from));
        }
        self.asks += 1;
        self.batches.ask(position).await
    }

    async fn look(&mut self, candidate: &Candidate, record: Wanted) -> Result<Option<RecordTime>, ReadError> {
        let base = candidate.header.base_offset;
        if record == Wanted::Largest
            && let Some(known) = self.largest.get(&base)
        {
            return Ok(*known);
        }
        if self.looks == LOOKS_MAX {
            return Err(self.gave_up(candidate.start()));
        }
        self.looks += 1;
        let look = Look { record, log_start: candidate.log_start };
        let found = self.batches.look(candidate.header, candidate.batch.clone(), look).await;
        if record == Wanted::Largest {
            self.largest.insert(base, found);
        }
        Ok(found)
    }

    /// The batch to look into, or what the answer is without one.
    fn candidate(&self, located: Located, from: Offset) -> Result<Result<Candidate, Found>, ReadError> {
        let (batch, log_start, epoch) = match located {
            Located::Batch { batch, log_start, epoch } => (batch, log_start, epoch),
            Located::Offset { epoch, .. } | Located::Nothing { epoch } => return Ok(Err(nothing(epoch))),
        };
        match BatchHeader::parse(&batch) {
            Ok(header) => Ok(Ok(Candidate { header, batch, log_start, epoch })),
            Err(error) => {
                tracing::error!(bucket = %self.bucket, %from, %error, "a stored batch has no header");
                Err(self.gave_up(from))
            }
        }
    }

    fn gave_up(&self, from: Offset) -> ReadError {
        let error = ReadError::SearchGaveUp { bucket: self.bucket, batches: self.looks, from };
        tracing::warn!(%error, asks = self.asks, "search by time");
        error
    }
}

impl Candidate {
    fn start(&self) -> Offset {
        Offset::from_kafka(self.header.base_offset).unwrap_or(self.log_start)
    }

    /// Where the log goes on. Should a header say nonsense, the search stays where it is until its bounds end it.
    fn end(&self) -> Offset {
        Offset::from_kafka(self.header.last_offset().saturating_add(1)).unwrap_or(self.log_start)
    }

    fn found(&self, record: RecordTime) -> Found {
        let offset = Offset::from_kafka(record.offset);
        Found { offset, timestamp: Some(Timestamp(record.timestamp)), epoch: self.epoch }
    }
}

fn nothing(epoch: BucketEpoch) -> Found {
    Found { offset: None, timestamp: None, epoch }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use mink_record::arrow::{EncodeOptions, encode};
    use mink_record::json::RowsBuilder;
    use mink_record::kafka::{BatchBuilder, Codec, RecordRef, set_append_time, set_offset_and_epoch};
    use mink_types::schema::{DataType, Field, Schema, SchemaDraft};
    use mink_types::{ArrowCompression, BucketIndex, TableId};
    use std::sync::atomic::{AtomicU32, Ordering};

    const MAX_TIMESTAMP_AT: usize = 35;

    /// A log whose shard goes by headers alone, as a real one does.
    #[derive(Default)]
    struct Log {
        batches: Vec<(BatchHeader, Bytes)>,
        start: u64,
        end: i64,
        /// Like a flushed log: all batches lie in one range, whose largest timestamp is known and may be of a deleted record.
        one_range: bool,
        asks: AtomicU32,
        looks: AtomicU32,
    }

    impl Log {
        fn push(&mut self, times: &[i64], codec: Codec, change: impl FnOnce(&mut [u8])) {
            let mut builder = BatchBuilder::new();
            for timestamp in times {
                let record = RecordRef { timestamp: *timestamp, value: Some(b"v"), ..RecordRef::default() };
                builder.push(record).expect("a record");
            }
            let mut batch = builder.build(codec, None).expect("a batch").to_vec();
            set_offset_and_epoch(&mut batch, self.end, 1).expect("long enough");
            change(&mut batch);
            self.end += i64::try_from(times.len()).expect("few");
            self.batches.push((BatchHeader::parse(&batch).expect("a header"), batch.into()));
        }

        fn honest(&mut self, times: &[i64]) {
            self.push(times, Codec::None, |_| ());
        }

        fn lying(&mut self, times: &[i64], stated: i64) {
            self.push(times, Codec::None, |batch| {
                batch[MAX_TIMESTAMP_AT..][..8].copy_from_slice(&stated.to_be_bytes());
            });
        }

        /// States its times truly, but what it calls gzip is none.
        fn unreadable(&mut self, times: &[i64]) {
            self.push(times, Codec::Gzip, |batch| batch[61..].fill(0xff));
        }

        fn search(&self, position: Position) -> Result<Option<(u64, i64)>, ReadError> {
            let bucket = BucketId::unpartitioned(TableId(1), BucketIndex(0));
            let found =
                Search::new(bucket, self).run(position).now_or_never().expect("nothing to wait for")?;
            assert_eq!(found.offset.is_some(), found.timestamp.is_some());
            Ok(found.offset.zip(found.timestamp).map(|(offset, time)| (offset.0, time.0)))
        }

        fn at(&self, time: i64) -> Option<(u64, i64)> {
            self.search(Position::at_or_after(Timestamp(time))).expect("within bounds")
        }

        fn largest(&self) -> Option<(u64, i64)> {
            self.search(Position::MaxTimestamp).expect("within bounds")
        }
    }

    #[async_trait]
    impl Batches for Log {
        async fn ask(&self, position: Position) -> Result<Located, ReadError> {
            self.asks.fetch_add(1, Ordering::Relaxed);
            let start = Offset(self.start);
            let (time, from) = if let Position::AtOrAfter { time, from } = position {
                (time.0, from.max(start).kafka())
            } else {
                let headers = self.batches.iter().map(|(header, _)| header);
                let kept = headers.filter(|header| self.one_range || header.last_offset() >= start.kafka());
                (kept.map(|header| header.max_timestamp).max().unwrap_or(0), start.kafka())
            };
            let mut batches = self.batches.iter();
            let found =
                batches.find(|(header, _)| header.last_offset() >= from && header.max_timestamp >= time);
            let epoch = BucketEpoch(1);
            Ok(found.map_or(Located::Nothing { epoch }, |(_, batch)| Located::Batch {
                batch: batch.clone(),
                log_start: Offset(self.start),
                epoch,
            }))
        }

        async fn look(&self, header: BatchHeader, batch: Bytes, look: Look) -> Option<RecordTime> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            find(&header, batch, look, 1 << 20).ok().flatten()
        }
    }

    #[test]
    fn k_15_an_honest_log_costs_one_question_and_one_look() {
        let mut log = Log::default();
        log.honest(&[20, 10]);
        log.honest(&[40, 30]);
        assert_eq!((log.at(15), log.at(25)), (Some((0, 20)), Some((2, 40))));
        assert_eq!((log.asks.swap(0, Ordering::Relaxed), log.looks.swap(0, Ordering::Relaxed)), (2, 2));
        assert_eq!(log.largest(), Some((2, 40)));
        assert_eq!((log.asks.load(Ordering::Relaxed), log.looks.load(Ordering::Relaxed)), (1, 1));
        assert_eq!((log.at(41), Log::default().at(0), Log::default().largest()), (None, None, None));
    }

    #[test]
    fn k_15_a_search_goes_on_behind_a_batch_that_states_too_large_a_time() {
        let mut log = Log::default();
        log.honest(&[10]);
        log.lying(&[20, 25], i64::MAX);
        log.honest(&[30, 40]);
        for (time, expected) in
            [(10, Some((0, 10))), (21, Some((2, 25))), (26, Some((3, 30))), (40, Some((4, 40))), (41, None)]
        {
            assert_eq!(log.at(time), expected, "at {time}");
        }
    }

    #[test]
    fn k_15_a_search_goes_on_behind_a_batch_that_nobody_can_inflate() {
        let mut log = Log::default();
        log.unreadable(&[50]);
        log.honest(&[30, 40]);
        log.unreadable(&[60]);
        assert_eq!((log.at(0), log.at(35), log.at(41)), (Some((1, 30)), Some((2, 40)), None));
    }

    #[test]
    fn k_15_the_largest_time_is_that_of_a_record_before_or_behind_the_batch_that_states_a_larger_one() {
        for (first, last, expected) in [(100, 60, (0, 100)), (60, 100, (2, 100)), (20, 30, (1, 50))] {
            let mut log = Log::default();
            log.honest(&[first]);
            log.lying(&[50], i64::MAX);
            log.honest(&[last]);
            assert_eq!(log.largest(), Some(expected), "{first} {last}");
        }
        let mut log = Log::default();
        log.honest(&[1_700_000_000_000]);
        log.unreadable(&[1_800_000_000_000]);
        log.lying(&[5], 1_900_000_000_000);
        assert_eq!(log.largest(), Some((0, 1_700_000_000_000)));
        let mut unreadable = Log::default();
        unreadable.unreadable(&[7]);
        assert_eq!(unreadable.largest(), None);
    }

    #[test]
    fn k_15_records_before_the_start_of_the_log_are_not_found() {
        let mut log = Log::default();
        log.honest(&[50, 90, 20, 30]);
        log.honest(&[40, 35]);
        log.start = 2;
        assert_eq!((log.at(0), log.at(25), log.at(31)), (Some((2, 20)), Some((3, 30)), Some((4, 40))));
        assert_eq!((log.at(41), log.largest()), (None, Some((4, 40))), "90 is deleted");
        log.start = 6;
        assert_eq!((log.at(0), log.largest()), (None, None));
    }

    #[test]
    fn k_15_rows_of_arrow_are_found_behind_a_start_of_the_log_within_their_batch() {
        let mut log = Log::default();
        for (rows, time) in [(4, 50), (2, 60)] {
            let base = log.end;
            let mut batch = arrow_of(rows);
            set_offset_and_epoch(&mut batch, base, 1).expect("long enough");
            set_append_time(&mut batch, time).expect("a batch");
            log.end += i64::from(rows);
            log.batches.push((BatchHeader::parse(&batch).expect("a header"), batch.into()));
        }
        assert_eq!((log.at(0), log.at(51), log.largest()), (Some((0, 50)), Some((4, 60)), Some((4, 60))));
        log.start = 3;
        assert_eq!((log.at(0), log.at(50), log.at(55)), (Some((3, 50)), Some((3, 50)), Some((4, 60))));
        log.start = 5;
        assert_eq!((log.at(0), log.largest(), log.at(61)), (Some((5, 60)), Some((5, 60)), None));
    }

    /// A stored batch of so many rows.
    fn arrow_of(rows: i32) -> Vec<u8> {
        let columns = vec![Field::new("n", DataType::Int)];
        let schema = Schema::create(SchemaDraft { columns, ..SchemaDraft::default() }).expect("a schema");
        let mut builder = RowsBuilder::new(&schema);
        (0..rows).for_each(|_| builder.push_json(b"{}").expect("a row of nulls"));
        let options = EncodeOptions { compression: ArrowCompression::None };
        encode(&builder.finish().expect("sound"), &schema, options, None).expect("fits").to_vec()
    }

    #[test]
    fn k_15_the_largest_time_is_of_a_record_that_remains_when_its_range_states_that_of_a_deleted_one() {
        for times in
            [[1_000, 900, 800], [1_000, 800, 900], [1_000, -1, -1], [i64::MAX, 0, 7], [5, i64::MIN, -7]]
        {
            let [first, second, third] = times;
            let mut log = Log { one_range: true, ..Log::default() };
            log.honest(&[first; 3]);
            log.honest(&[second; 3]);
            log.honest(&[third; 3]);
            assert_eq!(log.largest(), Some((0, first)));
            let of_both = if third > second { (6, third) } else { (3, second) };
            for (start, expected) in [(2, (2, first)), (3, of_both), (4, of_both), (6, (6, third))] {
                log.start = start;
                log.asks.store(0, Ordering::Relaxed);
                let expected = (expected.0.max(start), expected.1);
                assert_eq!(log.largest(), Some(expected), "{times:?} from {start}");
                assert!(log.asks.load(Ordering::Relaxed) <= 2 + 64, "i20: one step a bit");
            }
            log.start = 9;
            log.asks.store(0, Ordering::Relaxed);
            assert_eq!(log.largest(), None);
            assert_eq!(log.asks.load(Ordering::Relaxed), 2, "an empty log is not halved");
        }
    }

    #[test]
    fn i20_a_search_gives_up_with_an_error_that_says_where() {
        let mut log = Log::default();
        for _ in 0..LOOKS_MAX {
            log.lying(&[1], 100);
        }
        assert_eq!(log.at(50), None, "as many as are looked into");
        log.lying(&[1], 100);
        log.honest(&[50]);
        log.looks.store(0, Ordering::Relaxed);
        let error = log.search(Position::at_or_after(Timestamp(50))).expect_err("too many");
        assert!(
            matches!(error, ReadError::SearchGaveUp { batches: LOOKS_MAX, from: Offset(64), .. }),
            "{error}"
        );
        assert_eq!(log.looks.load(Ordering::Relaxed), LOOKS_MAX);
        log.asks.store(0, Ordering::Relaxed);
        assert!(matches!(log.search(Position::MaxTimestamp), Err(ReadError::SearchGaveUp { .. })));
        assert!(log.asks.load(Ordering::Relaxed) <= ASKS_MAX);
    }
}
