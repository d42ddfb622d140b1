//! Stream objects of any shape, made without a WAL, and readers who read them.
use std::collections::BTreeMap;

use mink_object::{ObjectStore as _, Op};
use mink_types::{LogIndex, Witness};

use super::*;
use crate::entry::Entry;
use crate::format::{Header, Nonce, ObjectKind, build, by_bucket};
use crate::testing::{entry, uuid};

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Objects in a store, and what metadata would say of them.
pub(super) struct Shelf {
    pub(super) world: World,
    pub(super) ranges: BTreeMap<u64, Vec<ObjectRange>>,
    objects: u64,
    batch: Bytes,
}

impl Shelf {
    /// An empty one, whose batches will be `batch_bytes` long.
    pub(super) fn new(world: &World, batch_bytes: usize) -> Shelf {
        let batch: Vec<u8> = (0..batch_bytes).map(|n| u8::try_from(n % 251).unwrap()).collect();
        Shelf { world: world.clone(), ranges: BTreeMap::new(), objects: 0, batch: batch.into() }
    }

    /// Puts one object with so many batches (of one record each) of each bucket.
    pub(super) async fn object(&mut self, parts: &[(u64, usize)]) -> ObjectId {
        self.objects += 1;
        let id = ObjectId::Stream { chain: chain(1), counter: self.objects };
        let mut entries: Vec<Entry> = Vec::new();
        for (n, batches) in parts {
            let end = self.ranges.get(n).and_then(|ranges| ranges.last()).map_or(0, |last| last.range.end.0);
            entries.extend((0..*batches as u64).map(|batch| {
                let mut entry = entry(*n, 1, end + batch, 1, b"");
                entry.bytes = self.batch.clone();
                entry
            }));
        }
        let header = Header {
            kind: ObjectKind::Stream,
            cluster: uuid(),
            chain: chain(1),
            number: self.objects,
            nonce: Nonce::of(0, self.objects),
            witness: Witness { index: LogIndex(1), hash: mink_types::RowHash([0; 32]) },
            durable_through: None,
        };
        let built = build(&header, by_bucket(entries.iter()));
        assert!(self.world.memory.put(&ObjectKey::object(&cluster(), id), &built.payload).await.is_done());
        for (n, batches) in parts {
            let ranges = self.ranges.entry(*n).or_default();
            let start = ranges.last().map_or(Offset(0), |last| last.range.end);
            ranges.push(ObjectRange {
                object: id,
                range: OffsetRange { start, end: start.plus(*batches as u64) },
                max_timestamp: Timestamp(0),
                bytes: (*batches * self.batch.len()) as u64,
                length: built.payload.len(),
                footer_length: built.footer_length,
                checksum: built.checksum,
            });
        }
        id
    }

    /// A reader with so much room for blocks, and enough for all footers.
    pub(super) fn reader(&self, block_cache_bytes: usize) -> Reader {
        self.reader_with(block_cache_bytes, 8 * MIB)
    }

    pub(super) fn reader_with(&self, block_cache_bytes: usize, footer_cache_bytes: usize) -> Reader {
        Reader::new(ReaderParts {
            service: self.world.service.clone(),
            wal_store: self.world.object_store(),
            stream_store: self.world.object_store(),
            cluster: cluster(),
            footer_cache_bytes,
            block_cache_bytes,
            get_timeout: Duration::from_secs(10),
        })
    }

    pub(super) fn end(&self, n: u64) -> Offset {
        self.ranges[&n].last().unwrap().range.end
    }

    /// What a shard would ask: the ranges from the one that holds `from` on.
    pub(super) fn request(&self, n: u64, from: Offset, bytes_max: usize) -> ReadRequest {
        let objects = self.ranges[&n].iter().filter(|object| object.range.end > from).take(3).copied();
        ReadRequest { bucket: bucket(n), objects: objects.collect(), from, bytes_max }
    }

    /// Reads on from `from`, whole batches of the right bytes; gives where to go on.
    pub(super) async fn read(&self, reader: &Reader, n: u64, from: Offset, bytes_max: usize) -> Offset {
        let answer = reader.read(&self.request(n, from, bytes_max)).await.unwrap();
        for (at, batch) in answer.batches.iter().enumerate() {
            assert_eq!(batch.base_offset, from.plus(at as u64), "offsets are dense");
            assert!(batch.bytes == self.batch, "the bytes are those that were written");
        }
        answer.next().unwrap()
    }

    /// Reads a bucket to its end.
    pub(super) async fn read_all(&self, reader: &Reader, n: u64, bytes_max: usize) {
        let mut from = Offset(0);
        while from < self.end(n) {
            from = self.read(reader, n, from, bytes_max).await;
        }
    }

    pub(super) fn gets(&self) -> u64 {
        assert_eq!(self.world.store.stats().requests_of(Op::List), 0, "a reader lists nothing");
        self.world.store.stats().requests_of(Op::Get)
    }

    pub(super) fn stored(&self) -> u64 {
        self.ranges.values().flatten().map(|range| range.bytes).sum()
    }

    /// GETs so far for each GiB that was stored; the figure that docs/performance.md gives.
    pub(super) fn gets_per_gib(&self, what: &str) -> u64 {
        let per_gib = self.gets() * (1 << 30) / self.stored();
        println!("{what}: {} GETs for {} MiB, {per_gib} per GiB", self.gets(), self.stored() >> 20);
        per_gib
    }
}
