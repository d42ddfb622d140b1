//! The cases that need a runtime, in virtual time: one thread, the same steps in every run, so that counts are exact.
//!
//! Lives on: the thread that measures.
//! Invariants: all that a node does for the operations is counted, on whatever core or task; the simulator's own steps are in it too, as a
//! real executor's would be.
use crate::batch::{SIZES, batch};
use crate::meter::Meter;
use crate::node::BenchNode;
use crate::shard::BenchShard;
use crate::wal::{BenchWal, never_flushed};
use mink_rt::{Runtime, SimConfig, simulate};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Buckets of a case.
pub const BUCKETS: [u32; 2] = [1, 64];

/// Rounds before the counted ones, and those: of many operations, and of few.
const WARM_UP: u64 = 2;
const ROUNDS: u64 = 4;
const SHORT_ROUNDS: u64 = 64;

/// Batches that are on their way at once, by their size: an answer to 64 is what a client with five requests in flight sees, and 16 of
/// 1 MiB fill two objects.
#[must_use]
pub fn in_flight(bytes: usize) -> usize {
    if bytes >= 1 << 20 { 16 } else { 64 }
}

/// Runs `tell` in virtual time with the meter.
fn in_virtual_time<F: Future<Output = Meter> + 'static>(
    meter: Meter,
    tell: impl FnOnce(Arc<dyn Runtime>, Meter) -> F,
) -> Meter {
    let config = SimConfig { steps_max: u64::MAX, ..SimConfig::seeded(7) };
    match simulate(config, |runtime| tell(runtime, meter)) {
        Ok(outcome) => outcome.value,
        Err(failure) => unreachable!("{failure}"),
    }
}

/// Counts rounds of `round`, each of so many operations.
async fn rounds(meter: &mut Meter, name: &str, operations: u64, mut round: impl AsyncFnMut()) {
    let rounds = if operations < 16 { SHORT_ROUNDS } else { ROUNDS };
    for _ in 0..WARM_UP {
        round().await;
    }
    meter.begin();
    for _ in 0..rounds {
        round().await;
    }
    meter.end(name, operations * rounds);
}

/// A shard without WAL: an operation is a batch, or a read of one bucket.
#[must_use]
pub fn shards(mut meter: Meter) -> Meter {
    for buckets in BUCKETS {
        let appends = format!("plumbing/shard-append/16KiBx{buckets}");
        let reads = format!("plumbing/tail-read/4x16KiBx{buckets}");
        if meter.wants(&appends) || meter.wants(&reads) {
            meter = in_virtual_time(meter, |runtime, mut meter| async move {
                let shard = BenchShard::start(&runtime, buckets).await;
                let batch = batch(16 << 10);
                rounds(&mut meter, &appends, buckets.into(), async || shard.append(&batch).await).await;
                rounds(&mut meter, &reads, buckets.into(), async || {
                    let answers = shard.read(64 << 10).await;
                    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|a| a.batches.len() >= 3)));
                })
                .await;
                meter
            });
        }
    }
    meter
}

/// The WAL alone: an operation is a batch; a chunk of 8 is an object.
#[must_use]
pub fn wals(mut meter: Meter) -> Meter {
    const PER_CHUNK: usize = 8;
    for (size, bytes) in SIZES {
        let name = format!("plumbing/wal-object/{size}");
        if meter.wants(&name) {
            meter = in_virtual_time(meter, |runtime, mut meter| async move {
                let wal = Rc::new(RefCell::new(Some(BenchWal::start(&runtime.service(), PER_CHUNK))));
                let batch = batch(bytes);
                rounds(&mut meter, &name, PER_CHUNK as u64, async || {
                    let Some(mut taken) = wal.take() else { return };
                    taken.chunk(&batch).await;
                    wal.replace(Some(taken));
                })
                .await;
                meter
            });
        }
    }
    meter
}

/// A whole node: an operation is a batch appended until it is durable, or fetched from the tail.
#[must_use]
pub fn nodes(mut meter: Meter) -> Meter {
    for (size, bytes) in SIZES {
        for buckets in BUCKETS {
            let appends = format!("porcelain/append/{size}x{buckets}");
            let fetches = format!("porcelain/fetch/{size}x{buckets}");
            if meter.wants(&appends) || meter.wants(&fetches) {
                meter = in_virtual_time(meter, |runtime, mut meter| async move {
                    let node = BenchNode::start(&runtime, buckets, never_flushed()).await;
                    let (batch, batches) = (batch(bytes), in_flight(bytes));
                    let round = async || node.append(&batch, batches).await;
                    rounds(&mut meter, &appends, batches as u64, round).await;
                    let bytes_max = u32::try_from(bytes.max(1 << 20)).unwrap_or(u32::MAX);
                    let found = node.read(bytes_max).await / batch.bytes.len();
                    rounds(&mut meter, &fetches, found as u64, async || {
                        node.read(bytes_max).await;
                    })
                    .await;
                    meter
                });
            }
        }
    }
    meter
}

/// A node that flushes as it goes: an operation is a batch that is durable, and lies in a stream object soon after.
#[must_use]
pub fn flushed(meter: Meter) -> Meter {
    let name = "porcelain/append-flushed/128KiBx1";
    if !meter.wants(name) {
        return meter;
    }
    in_virtual_time(meter, |runtime, mut meter| async move {
        let config = s3stream::WalConfig { flush_bytes: 8 << 20, ..s3stream::WalConfig::default() };
        let node = BenchNode::start(&runtime, 1, config).await;
        let batch = batch(128 << 10);
        // A round is one flush.
        rounds(&mut meter, name, 64, async || node.append(&batch, 64).await).await;
        meter
    })
}
