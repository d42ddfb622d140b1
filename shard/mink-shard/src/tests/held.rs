//! A WAL and objects that a test holds in its hands.
use crate::*;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mink_rt::Runtime;
use mink_types::{LogIndex, ObjectId};
use s3stream::{Entry, LaneClosed, ReadRequest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A WAL in the test's hands.
#[derive(Clone, Default)]
pub(super) struct Sink(Arc<Mutex<SinkState>>);

#[derive(Default)]
struct SinkState {
    room: usize,
    pushed: VecDeque<(Vec<Entry>, Told)>,
    waker: Option<Waker>,
    closed: bool,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

impl ChunkSink for Sink {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LaneClosed>> {
        let mut state = self.0.lock().expect("one thread");
        if state.closed {
            Poll::Ready(Err(LaneClosed))
        } else if state.pushed.len() < state.room {
            Poll::Ready(Ok(()))
        } else {
            state.waker = Some(context.waker().clone());
            Poll::Pending
        }
    }

    fn push(&mut self, entries: Vec<Entry>, told: Told) {
        let mut state = self.0.lock().expect("one thread");
        assert!(state.closed || state.pushed.len() < state.room, "a chunk is pushed into room that was seen");
        state.pushed.push_back((entries, told));
    }
}

impl Sink {
    fn change(&self, change: impl FnOnce(&mut SinkState)) {
        let mut state = self.0.lock().expect("one thread");
        change(&mut state);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn set_room(&self, room: usize) {
        self.change(|state| state.room = room);
    }

    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    pub(super) fn take(&self) -> Option<(Vec<Entry>, Told)> {
        let mut taken = None;
        self.change(|state| taken = state.pushed.pop_front());
        taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.lock().expect("one thread").pushed.len()
    }
}

/// Objects in the test's hands.
#[derive(Clone)]
pub(super) struct Objects {
    state: Arc<Mutex<ObjectsState>>,
    runtime: Arc<dyn Runtime>,
}

#[derive(Default)]
struct ObjectsState {
    objects: BTreeMap<ObjectId, Vec<Entry>>,
    /// Missing at the next read only.
    missing_once: BTreeSet<ObjectId>,
    delay: Duration,
    reads: usize,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Objects")
    }
}

impl Objects {
    pub(super) fn new(runtime: &Arc<dyn Runtime>) -> Objects {
        Objects { state: Arc::default(), runtime: Arc::clone(runtime) }
    }

    pub(super) fn put(&self, id: ObjectId, entries: &[Entry]) {
        self.state.lock().expect("one thread").objects.insert(id, entries.to_vec());
    }

    pub(super) fn delete(&self, id: ObjectId) {
        self.state.lock().expect("one thread").objects.remove(&id);
    }

    pub(super) fn miss_once(&self, id: ObjectId) {
        self.state.lock().expect("one thread").missing_once.insert(id);
    }

    pub(super) fn set_delay(&self, delay: Duration) {
        self.state.lock().expect("one thread").delay = delay;
    }

    pub(super) fn reads(&self) -> usize {
        self.state.lock().expect("one thread").reads
    }

    fn entries(&self, id: ObjectId) -> Result<Vec<Entry>, ObjectReadError> {
        let mut state = self.state.lock().expect("one thread");
        if state.missing_once.remove(&id) {
            return Err(ObjectReadError::Missing { object: id });
        }
        state.objects.get(&id).cloned().ok_or(ObjectReadError::Missing { object: id })
    }

    async fn wait(&self) {
        let delay = {
            let mut state = self.state.lock().expect("one thread");
            state.reads += 1;
            state.delay
        };
        self.runtime.service().sleep(delay).await;
    }
}

impl ObjectReads for Objects {
    fn read(
        &self,
        _: LogIndex,
        read: ReadRequest,
    ) -> BoxFuture<'static, Result<Vec<Bytes>, ObjectReadError>> {
        let objects = self.clone();
        async move {
            objects.wait().await;
            let (mut out, mut bytes) = (Vec::new(), 0);
            for object in &read.objects {
                let entries = match objects.entries(object.object) {
                    Ok(entries) => entries,
                    Err(error) if out.is_empty() => return Err(error),
                    Err(_) => break,
                };
                for entry in
                    entries.iter().filter(|entry| entry.bucket == read.bucket && entry.end() > read.from)
                {
                    bytes += entry.bytes.len();
                    if bytes > read.bytes_max && !out.is_empty() {
                        return Ok(out);
                    }
                    out.push(entry.bytes.clone());
                }
            }
            Ok(out)
        }
        .boxed()
    }

    fn find(
        &self,
        _: LogIndex,
        find: ObjectFind,
    ) -> BoxFuture<'static, Result<Option<Bytes>, ObjectReadError>> {
        let objects = self.clone();
        async move {
            objects.wait().await;
            for object in &find.objects {
                let entries = objects.entries(object.object)?;
                let of_bucket =
                    entries.iter().filter(|entry| entry.bucket == find.bucket && entry.end() > find.from);
                if let Some(found) =
                    of_bucket.into_iter().find(|entry| entry.max_timestamp >= find.at_or_after)
                {
                    return Ok(Some(found.bytes.clone()));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
