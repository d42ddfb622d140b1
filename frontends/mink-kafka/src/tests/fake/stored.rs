//! What lies in the fake's logs.
//!
//! Lives on: tests only.
use super::Fake;
use bytes::Bytes;
use mink_types::{BucketId, BucketIndex, TableId};

impl Fake {
    /// The stored batches of a bucket.
    pub(in crate::tests) fn stored(&self, table: TableId, bucket: u32) -> Vec<Bytes> {
        let inner = self.inner.lock().expect("not poisoned");
        let log = &inner.logs[&BucketId::unpartitioned(table, BucketIndex(bucket))];
        log.batches.iter().map(|(_, batch)| batch.clone()).collect()
    }
}
