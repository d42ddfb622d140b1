//! Random histories against the plainest model: a log is the list of what was ordered, and its durable part is what the WAL
//! said is durable, in chain order.
use super::rig::*;
use mink_router::{AppendTicket, ReadError};
use mink_types::{BucketId, Offset};
use s3stream::{ChunkEnd, Entry};
use std::collections::VecDeque;

/// Steps of one history.
const STEPS: usize = 300;

#[derive(Default)]
struct Log {
    /// Base and end of each batch that was ordered.
    batches: Vec<(u64, u64)>,
    tickets: VecDeque<(u64, u64, AppendTicket)>,
    /// Entries that are durable and not committed.
    durable: Vec<Entry>,
    /// What the WAL said is durable.
    durable_end: u64,
    /// What was acked, and the highest watermark that was seen.
    acked_end: u64,
    seen: u64,
    sequence: i32,
}

impl Log {
    fn end(&self) -> u64 {
        self.batches.last().map_or(0, |last| last.1)
    }
}

fn below(rig: &Rig, bound: u64) -> u64 {
    rig.runtime.service().random_u64() % bound
}

async fn append(rig: &Rig, bucket: BucketId, log: &mut Log) {
    let count = 1 + u32::try_from(below(rig, 4)).expect("small");
    // Every third batch is repeated at once; the repeat must not be stored.
    let (base, ticket) = rig.ordered(bucket, stamped(count, 7, log.sequence)).await;
    assert_eq!(base, log.end(), "I2: dense");
    let end = base + u64::from(count);
    log.batches.push((base, end));
    log.tickets.push_back((base, end, ticket));
    if below(rig, 3) == 0 {
        let (again, ticket) = rig.ordered(bucket, stamped(count, 7, log.sequence)).await;
        assert_eq!(again, base, "I6");
        log.tickets.push_back((base, end, ticket));
    }
    log.sequence += i32::try_from(count).expect("small");
}

/// The acks that are there, which must be those of what is durable, in order (I1).
async fn collect_acks(log: &mut Log) {
    while let Some((base, end, ticket)) = log.tickets.pop_front() {
        if end > log.durable_end {
            log.tickets.push_front((base, end, ticket));
            return;
        }
        assert_eq!(ticket.durable().await.expect("durable").base_offset, Offset(base));
        log.acked_end = log.acked_end.max(end);
    }
}

async fn check_read(rig: &Rig, bucket: BucketId, log: &mut Log) {
    let from = below(rig, log.end() + 2);
    let bytes_max = 100 * (1 + u32::try_from(below(rig, 8)).expect("small"));
    let answer = match rig.read_all(&[(bucket, from, bytes_max)], bytes_max).await.remove(0) {
        Ok(answer) => answer,
        Err(ReadError::OutOfRange { end, .. }) => {
            assert!(from > end.0 && end.0 >= log.acked_end);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let high_watermark = answer.high_watermark.0;
    assert!(high_watermark >= log.acked_end, "I4: what is acked is readable");
    assert!(high_watermark <= log.durable_end, "I3: nothing else is");
    assert!(high_watermark >= log.seen, "I3: it never goes back");
    log.seen = high_watermark;
    let visible = log.batches.iter().filter(|(_, end)| *end > from && *end <= high_watermark);
    let expected: Vec<i64> = visible.map(|(base, _)| i64::try_from(*base).expect("small")).collect();
    let found = bases(&answer.batches);
    assert!(expected.starts_with(&found), "I2: {found:?} of {expected:?}");
    assert_eq!(found.is_empty(), expected.is_empty());
}

#[test]
fn i1_to_i6_random_histories_agree_with_the_model() {
    sim_with(
        |mut config| {
            config.tail_bytes = 0;
            config.lanes.chunks = 8;
            config.lanes.reads = 2;
            config
        },
        |rig| async move {
            let buckets = [rig.open(0).await, rig.open(1).await];
            let mut logs = [Log::default(), Log::default()];
            let mut flying = VecDeque::new();
            for _ in 0..STEPS {
                let at = usize::try_from(below(&rig, 2)).expect("small");
                let (bucket, log) = (buckets[at], &mut logs[at]);
                match below(&rig, 8) {
                    0..3 if flying.len() < 6 => append(&rig, bucket, log).await,
                    3 | 4 => check_read(&rig, bucket, log).await,
                    5 if !log.durable.is_empty() => {
                        rig.committed(&std::mem::take(&mut log.durable)).await;
                    }
                    _ => {
                        if let Some((entries, told)) = flying.pop_front() {
                            let entries: Vec<Entry> = entries;
                            let told: crate::Told = told;
                            for entry in entries {
                                let of = usize::from(entry.bucket == buckets[1]);
                                logs[of].durable_end = entry.end().0;
                                logs[of].durable.push(entry);
                            }
                            told(ChunkEnd::Durable);
                        }
                    }
                }
                while let Some(chunk) = rig.sink.take() {
                    flying.push_back(chunk);
                }
                for log in &mut logs {
                    collect_acks(log).await;
                }
            }
            let stats = rig.stats().await;
            assert!(stats.reads_object > 0 && stats.reads_tail > 0 && stats.duplicates > 0, "{stats:?}");
            assert!(logs.iter().all(|log| log.acked_end > 0));
        },
    );
}
