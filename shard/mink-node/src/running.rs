//! Which plans this node carries out now, and how old the views are that they were made on.
//!
//! Lives on: the service runtime.
//! Owns: the list.     Talks to: the shards' reads, through [`TrackedReads`].
//! Invariants: P-16: an object that metadata gave up in a later row than a running plan saw stays in the store until that plan has ended,
//! however short the grace time is. Plans end: a read has [`READ_TIME_MAX`], the recovery of a bucket and a compaction have bounds of
//! their own, so garbage never waits for ever (I14). A plan of another node is not known here; the grace time is what it has.
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use mink_rt::Service;
use mink_shard::{ObjectFind, ObjectReadError, ObjectReads};
use mink_types::LogIndex;
use s3stream::{ObjectRange, ReadRequest, Reader};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that one read of objects may take. It is several times what a store takes at its worst: each of its GETs has a bound,
/// too. What takes longer is an error for whoever asked, who asks again.
pub(crate) const READ_TIME_MAX: Duration = Duration::from_mins(5);

/// The plans that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Arc<Mutex<Plans>>);

#[derive(Debug, Default)]
struct Plans {
    next: u64,
    by_id: BTreeMap<u64, LogIndex>,
}

impl Running {
    fn plans(&self) -> MutexGuard<'_, Plans> {
        // Each change is one call on the map: a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A plan begins that was made on the view of this row. It runs until the answer is dropped.
    pub(crate) fn begin(&self, planned: LogIndex) -> RunningPlan {
        let mut plans = self.plans();
        plans.next += 1;
        let id = plans.next;
        plans.by_id.insert(id, planned);
        RunningPlan { running: self.clone(), id }
    }

    /// The row of the oldest view that a running plan goes by; none if nothing runs.
    pub(crate) fn oldest(&self) -> Option<LogIndex> {
        self.plans().by_id.values().min().copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.plans().by_id.len()
    }
}

/// Stands for a plan that runs.
#[derive(Debug)]
pub(crate) struct RunningPlan {
    running: Running,
    id: u64,
}

impl Drop for RunningPlan {
    fn drop(&mut self) {
        self.running.plans().by_id.remove(&self.id);
    }
}

/// Reads of objects that are kept account of.
#[derive(Debug)]
pub(crate) struct TrackedReads {
    pub(crate) reader: Reader,
    pub(crate) running: Running,
    pub(crate) service: Service,
}

impl TrackedReads {
    /// `work` on the objects of which this is the `first`, as a plan of its row, within the time that a read has.
    fn track<T: Send + 'static>(
        &self,
        planned: LogIndex,
        first: Option<ObjectRange>,
        work: BoxFuture<'static, Result<T, ObjectReadError>>,
    ) -> BoxFuture<'static, Result<T, ObjectReadError>> {
        let Some(object) = first.map(|first| first.object) else {
            return work; // it looks at nothing
        };
        let (plan, service) = (self.running.begin(planned), self.service.clone());
        async move {
            let end = service.timeout(READ_TIME_MAX, work).await;
            drop(plan);
            end.unwrap_or_else(|elapsed| {
                Err(ObjectReadError::Unavailable { object, what: elapsed.to_string() })
            })
        }
        .boxed()
    }
}

impl ObjectReads for TrackedReads {
    fn read(
        &self,
        planned: LogIndex,
        read: ReadRequest,
    ) -> BoxFuture<'static, Result<Vec<Bytes>, ObjectReadError>> {
        let first: Option<ObjectRange> = read.objects.first().copied();
        self.track(planned, first, ObjectReads::read(&self.reader, planned, read))
    }

    fn find(
        &self,
        planned: LogIndex,
        find: ObjectFind,
    ) -> BoxFuture<'static, Result<Option<Bytes>, ObjectReadError>> {
        let first: Option<ObjectRange> = find.objects.first().copied();
        self.track(planned, first, ObjectReads::find(&self.reader, planned, find))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_16_the_oldest_plan_counts_until_it_has_ended() {
        let running = Running::default();
        assert_eq!(running.oldest(), None);
        let (young, old) = (running.begin(LogIndex(9)), running.begin(LogIndex(4)));
        let same = running.begin(LogIndex(4));
        assert_eq!((running.oldest(), running.count()), (Some(LogIndex(4)), 3));
        drop(old);
        assert_eq!(running.oldest(), Some(LogIndex(4)), "another one of that view");
        drop(same);
        assert_eq!(running.oldest(), Some(LogIndex(9)));
        drop(young);
        assert_eq!(running.oldest(), None);
    }
}
