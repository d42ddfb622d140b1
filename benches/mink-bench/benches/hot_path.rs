//! Times of the two hot paths, by what they bound: plumbing, porcelain, speed of light.
//!
//! Lives on: a developer's machine, best a quiet one: `cargo bench -p mink-bench`.
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mink_bench::batch::{SIZES, batch};
use mink_bench::light::{Echo, checksum, copy};
use mink_bench::node::BenchNode;
use mink_bench::plumbing;
use mink_bench::porcelain::{BUCKETS, in_flight};
use mink_bench::shard::BenchShard;
use mink_bench::wal::BenchWal;
use mink_rt::{EpollRuntime, Runtime, ServiceConfig};
use s3stream::WalConfig;
use std::sync::Arc;

fn light(c: &mut Criterion) {
    let mut group = c.benchmark_group("light");
    for (size, bytes) in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("copy/{size}"), |b| b.iter(copy(bytes)));
        group.bench_function(format!("crc32c/{size}"), |b| b.iter(checksum(bytes)));
    }
    group.throughput(Throughput::Elements(1));
    let mut echo = Echo::start();
    group.bench_function("round-trip", |b| b.iter(|| echo.round_trip()));
}

fn pieces(c: &mut Criterion) {
    let mut group = c.benchmark_group("plumbing");
    for (size, bytes) in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("check/{size}"), |b| b.iter(plumbing::check(bytes)));
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("offset-and-epoch", |b| b.iter(plumbing::place(16 << 10)));
    group.bench_function("append-time/128KiB", |b| b.iter(plumbing::stamp(128 << 10)));
    group.bench_function("tablet-append", |b| b.iter(plumbing::tablet()));
    for partitions in [1_i32, 64] {
        group.throughput(Throughput::Elements(partitions.unsigned_abs().into()));
        let name = |what: &str| format!("{what}/x{partitions}");
        group.bench_function(name("decode-produce"), |b| {
            b.iter(plumbing::decode_produce(partitions, 1 << 10));
        });
        group.bench_function(name("encode-produce"), |b| b.iter(plumbing::encode_produce(partitions)));
        group.bench_function(name("decode-fetch"), |b| b.iter(plumbing::decode_fetch(partitions)));
        group.bench_function(name("encode-fetch-of-8"), |b| {
            b.iter(plumbing::encode_fetch(partitions, 8, 1 << 10));
        });
    }
}

/// A service runtime and cores, as a server has them.
fn real() -> (Arc<EpollRuntime>, Arc<dyn Runtime>) {
    let runtime = EpollRuntime::start(ServiceConfig::default())
        .unwrap_or_else(|error| unreachable!("a runtime starts: {error}"));
    (Arc::clone(&runtime), runtime)
}

fn running(c: &mut Criterion) {
    let (runtime, seam) = real();
    let mut group = c.benchmark_group("plumbing");
    for buckets in BUCKETS {
        group.throughput(Throughput::Elements(buckets.into()));
        group.bench_function(format!("shard-append/16KiBx{buckets}"), |b| {
            let batch = batch(16 << 10);
            // A tail that has grown for seconds is not what is measured, nor is freeing it.
            b.iter_batched(
                || runtime.block_on(BenchShard::start(&seam, buckets)),
                |shard| {
                    runtime.block_on(async {
                        for _ in 0..16 {
                            shard.append(&batch).await;
                        }
                    });
                    shard
                },
                BatchSize::PerIteration,
            );
        });
        let shard = runtime.block_on(BenchShard::start(&seam, buckets));
        runtime.block_on(async {
            for _ in 0..8 {
                shard.append(&batch(16 << 10)).await;
            }
        });
        group.bench_function(format!("tail-read/4x16KiBx{buckets}"), |b| {
            b.iter(|| runtime.block_on(shard.read(64 << 10)));
        });
    }
    for (size, bytes) in SIZES {
        group.throughput(Throughput::Bytes(8 * bytes as u64));
        let mut wal = BenchWal::start(&seam.service(), 8);
        let batch = batch(bytes);
        group.bench_function(format!("wal-object/{size}"), |b| {
            b.iter(|| runtime.block_on(wal.chunk(&batch)));
        });
    }
}

fn whole(c: &mut Criterion) {
    let (runtime, seam) = real();
    let mut group = c.benchmark_group("porcelain");
    for (size, bytes) in SIZES {
        for buckets in BUCKETS {
            let config = WalConfig { puts_per_second: None, ..WalConfig::default() };
            let node = runtime.block_on(BenchNode::start(&seam, buckets, config));
            let (batch, batches) = (batch(bytes), in_flight(bytes));
            group.throughput(Throughput::Bytes((batches * batch.bytes.len()) as u64));
            group.bench_function(format!("append/{size}x{buckets}"), |b| {
                b.iter(|| runtime.block_on(node.append(&batch, batches)));
            });
            let node = runtime.block_on(BenchNode::start(&seam, buckets, mink_bench::wal::never_flushed()));
            runtime.block_on(node.append(&batch, batches));
            let bytes_max = u32::try_from(bytes.max(1 << 20)).unwrap_or(u32::MAX);
            group.throughput(Throughput::Bytes(runtime.block_on(node.read(bytes_max)) as u64));
            group.bench_function(format!("fetch/{size}x{buckets}"), |b| {
                b.iter(|| runtime.block_on(node.read(bytes_max)));
            });
        }
    }
}

criterion_group!(hot_path, light, pieces, running, whole);
criterion_main!(hot_path);
