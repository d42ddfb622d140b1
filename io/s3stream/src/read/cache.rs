//! Footers that were read, bounded by bytes; the least recently used go first.
//!
//! Lives on: service runtime; shared by all readers of a node, hence the lock (held for a look-up).
//! Owns: the footers.
//! Invariants: I20. A footer never changes: objects are immutable and no key is used twice.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mink_types::ObjectId;

use crate::format::Footer;

#[derive(Debug)]
pub(super) struct FooterCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    footers: BTreeMap<ObjectId, (Arc<Footer>, u64)>,
    by_use: BTreeMap<u64, ObjectId>,
    clock: u64,
    bytes: usize,
}

impl FooterCache {
    pub(super) fn new(bytes_max: usize) -> FooterCache {
        FooterCache { bytes_max, inner: Mutex::new(Inner::default()) }
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<Arc<Footer>> {
        self.lock().touch(id)
    }

    pub(super) fn put(&self, id: ObjectId, footer: Arc<Footer>) {
        let bytes = footer.memory_bytes();
        if bytes > self.bytes_max {
            return;
        }
        let mut inner = self.lock();
        inner.remove(&id);
        inner.clock += 1;
        let clock = inner.clock;
        inner.bytes += bytes;
        inner.by_use.insert(clock, id);
        inner.footers.insert(id, (footer, clock));
        while inner.bytes > self.bytes_max {
            let Some(oldest) = inner.by_use.first_key_value().map(|(_, id)| *id) else {
                return;
            };
            inner.remove(&oldest);
        }
    }

    pub(super) fn forget(&self, id: &ObjectId) {
        self.lock().remove(id);
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn touch(&mut self, id: &ObjectId) -> Option<Arc<Footer>> {
        self.clock += 1;
        let (footer, used) = self.footers.get_mut(id)?;
        let before = std::mem::replace(used, self.clock);
        let footer = Arc::clone(footer);
        self.by_use.remove(&before);
        self.by_use.insert(self.clock, *id);
        Some(footer)
    }

    fn remove(&mut self, id: &ObjectId) {
        if let Some((footer, used)) = self.footers.remove(id) {
            self.by_use.remove(&used);
            self.bytes -= footer.memory_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chain;

    #[test]
    fn i20_the_least_recently_used_footer_goes_first() {
        let id = |counter| ObjectId::Stream { chain: chain(1), counter };
        let footer = Arc::new(Footer::default());
        let cache = FooterCache::new(2 * footer.memory_bytes());
        cache.put(id(1), Arc::clone(&footer));
        cache.put(id(2), Arc::clone(&footer));
        assert!(cache.get(&id(1)).is_some());
        cache.put(id(3), Arc::clone(&footer));
        assert!(cache.get(&id(2)).is_none() && cache.get(&id(1)).is_some() && cache.get(&id(3)).is_some());
        cache.put(id(3), Arc::clone(&footer));
        assert_eq!(cache.bytes(), 2 * footer.memory_bytes());
        cache.forget(&id(3));
        cache.forget(&id(1));
        assert_eq!(cache.bytes(), 0);
    }
}
