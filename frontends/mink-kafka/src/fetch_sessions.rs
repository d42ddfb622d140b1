//! Fetch sessions (KIP-227): a consumer names its partitions once, then only what changes, and is answered only what changed.
//!
//! Lives on: the service runtime, one cache per listener: a client that connects anew may go on with its session.
//! Owns: the sessions, by id.
//! Invariants: I20: sessions are bounded by number and by bytes. What finds no room is answered without a session, which every
//! client understands. A session goes when it was idle for long, or for a larger one when it is old; never while a younger or an
//! idle one could go.
use crate::topic::TopicRef;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchTopic, ForgottenTopic};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Sessions of one node, as many as Kafka's brokers keep.
const SESSIONS_MAX: usize = 1_000;
/// Memory of all sessions, as estimated by [`PARTITION_BYTES`].
const BYTES_MAX: usize = 16 << 20;
/// What one partition of a session takes: two entries of ordered maps with what they point to.
const PARTITION_BYTES: usize = 256;
/// A session that was not used, or has existed, for so long may give its place to another.
const EVICTABLE_AFTER: Duration = Duration::from_mins(2);
/// Draws of an id before a client is answered without a session.
const ID_DRAWS_MAX: usize = 8;

/// Session epoch of a request that wants no session, or ends one.
const FINAL: i32 = -1;
/// Session epoch of a request that begins a session.
const INITIAL: i32 = 0;
/// What stands for no session.
pub(crate) const NO_SESSION: i32 = 0;

/// A partition to be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) topic: TopicRef,
    pub(crate) partition: FetchPartition,
}

/// What a client was told about a partition last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) high_watermark: i64,
    pub(crate) log_start: i64,
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    /// None until the first answer, and behind an error, so that the next answer names the partition.
    told: Option<Told>,
}

#[derive(Debug)]
struct Session {
    by_id: bool,
    /// The epoch that the next request must have.
    next_epoch: i32,
    /// In the order in which partitions are served: who got records goes to the end.
    served: BTreeMap<u64, Entry>,
    places: BTreeMap<(TopicRef, i32), u64>,
    next_place: u64,
    created: Instant,
    used: Instant,
    bytes: usize,
}

impl Session {
    fn new(by_id: bool, now: Instant) -> Session {
        Session {
            by_id,
            next_epoch: 1,
            served: BTreeMap::new(),
            places: BTreeMap::new(),
            next_place: 0,
            created: now,
            used: now,
            bytes: 0,
        }
    }

    fn set(&mut self, wanted: Wanted) {
        let key = (wanted.topic.clone(), wanted.partition.partition);
        if let Some(entry) = self.places.get(&key).and_then(|place| self.served.get_mut(place)) {
            entry.wanted.partition = wanted.partition;
            return;
        }
        self.bytes += cost(&wanted);
        self.places.insert(key, self.next_place);
        self.served.insert(self.next_place, Entry { wanted, told: None });
        self.next_place += 1;
    }

    fn forget(&mut self, topic: &TopicRef, partition: i32) {
        let place = self.places.remove(&(topic.clone(), partition));
        if let Some(entry) = place.and_then(|place| self.served.remove(&place)) {
            self.bytes = self.bytes.saturating_sub(cost(&entry.wanted));
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        self.served.values().map(|entry| entry.wanted.clone()).collect()
    }

    fn advance(&mut self, now: Instant) {
        self.next_epoch = self.next_epoch.checked_add(1).unwrap_or(1);
        self.used = now;
    }

    /// Notes what is answered about a partition, and tells whether an incremental answer must name it.
    fn note(&mut self, topic: &TopicRef, partition: i32, told: Option<Told>, has_records: bool) -> bool {
        let key = (topic.clone(), partition);
        let Some(place) = self.places.get(&key).copied() else {
            // Forgotten by a request that came meanwhile.
            return has_records || told.is_none();
        };
        let Some(entry) = self.served.get_mut(&place) else {
            return true;
        };
        let news = has_records || told.is_none() || entry.told != told;
        entry.told = told;
        if has_records && let Some(entry) = self.served.remove(&place) {
            self.places.insert(key, self.next_place);
            self.served.insert(self.next_place, entry);
            self.next_place += 1;
        }
        news
    }
}

fn cost(wanted: &Wanted) -> usize {
    PARTITION_BYTES
        + match &wanted.topic {
            TopicRef::Name(name) => name.len(),
            TopicRef::Id(_) => 0,
        }
}

/// How one request is answered.
#[derive(Debug)]
pub(crate) enum FetchContext {
    /// Everything asked for is answered, and nothing is remembered.
    Sessionless,
    /// Everything is answered, and the next request of session `id` may be incremental.
    Full { id: i32, session: FetchSession },
    /// Only what changed is answered.
    Incremental { id: i32, session: FetchSession },
}

/// A handle on a session; what it holds lives as long as a request uses it.
#[derive(Clone, Debug)]
pub(crate) struct FetchSession(Arc<Mutex<Session>>);

impl FetchSession {
    fn lock(&self) -> MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FetchContext {
    /// The session that the answer names.
    pub(crate) fn session_id(&self) -> i32 {
        match self {
            FetchContext::Sessionless => NO_SESSION,
            FetchContext::Full { id, .. } | FetchContext::Incremental { id, .. } => *id,
        }
    }

    /// Whether the answer names the partition. `told` is none for an error.
    pub(crate) fn answers(
        &self,
        topic: &TopicRef,
        index: i32,
        told: Option<Told>,
        has_records: bool,
    ) -> bool {
        match self {
            FetchContext::Sessionless => true,
            FetchContext::Full { session, .. } => {
                session.lock().note(topic, index, told, has_records);
                true
            }
            FetchContext::Incremental { session, .. } => session.lock().note(topic, index, told, has_records),
        }
    }
}

/// What a request says about sessions.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) by_id: bool,
    pub(crate) session_id: i32,
    pub(crate) session_epoch: i32,
    pub(crate) topics: Vec<FetchTopic>,
    pub(crate) forgotten: Vec<ForgottenTopic>,
}

/// A session with the bytes that the cache counts for it.
#[derive(Debug)]
struct Held {
    session: FetchSession,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Cache {
    sessions: BTreeMap<i32, Held>,
    bytes: usize,
}

/// Counts of the cache, for metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SessionCounts {
    pub(crate) sessions: u64,
    pub(crate) bytes: u64,
}

/// The sessions of one listener.
#[derive(Debug, Default)]
pub(crate) struct FetchSessions(Mutex<Cache>);

impl FetchSessions {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> SessionCounts {
        let cache = self.lock();
        SessionCounts { sessions: cache.sessions.len() as u64, bytes: cache.bytes as u64 }
    }

    /// Decides how a request is answered, and what is fetched for it. `draw` gives random numbers.
    pub(crate) fn begin(
        &self,
        asking: Asking,
        draw: impl FnMut() -> u64,
    ) -> Result<(FetchContext, Vec<Wanted>), ErrorCode> {
        let now = Instant::now();
        match asking.session_epoch {
            FINAL | INITIAL => {
                self.remove(asking.session_id);
                let begins = asking.session_epoch == INITIAL;
                let wanted = wanted(asking.by_id, asking.topics);
                let context = if begins { self.create(asking.by_id, &wanted, now, draw) } else { None };
                Ok((context.unwrap_or(FetchContext::Sessionless), wanted))
            }
            _ => self.go_on(asking, now),
        }
    }

    fn remove(&self, id: i32) {
        self.lock().remove(id);
    }

    fn create(
        &self,
        by_id: bool,
        wanted: &[Wanted],
        now: Instant,
        draw: impl FnMut() -> u64,
    ) -> Option<FetchContext> {
        let bytes = wanted.iter().fold(PARTITION_BYTES, |sum, wanted| sum + cost(wanted));
        let mut cache = self.lock();
        cache.make_room(bytes, now)?;
        let id = cache.draw_id(draw)?;
        let mut session = Session::new(by_id, now);
        session.bytes = PARTITION_BYTES;
        for wanted in wanted {
            // The request's frame must not live as long as the session.
            session.set(Wanted { topic: wanted.topic.detached(), partition: wanted.partition.clone() });
        }
        let bytes = session.bytes;
        cache.bytes += bytes;
        let session = FetchSession(Arc::new(Mutex::new(session)));
        cache.sessions.insert(id, Held { session: session.clone(), bytes });
        Some(FetchContext::Full { id, session })
    }

    fn go_on(&self, asking: Asking, now: Instant) -> Result<(FetchContext, Vec<Wanted>), ErrorCode> {
        let id = asking.session_id;
        let held = self.lock().sessions.get(&id).map(|held| held.session.clone());
        let session = held.ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let mut inner = session.lock();
        if asking.session_epoch != inner.next_epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if asking.by_id != inner.by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        let before = inner.bytes;
        for wanted in wanted(asking.by_id, asking.topics) {
            let topic = wanted.topic.detached();
            inner.set(Wanted { topic, ..wanted });
        }
        for topic in asking.forgotten {
            let named = TopicRef::new(asking.by_id, topic.topic, topic.topic_id);
            topic.partitions.iter().for_each(|partition| inner.forget(&named, *partition));
        }
        inner.advance(now);
        let (after, wanted) = (inner.bytes, inner.wanted());
        drop(inner);
        if wanted.is_empty() {
            self.remove(id);
            return Ok((FetchContext::Sessionless, wanted));
        }
        if after != before && !self.lock().resize(id, after) {
            // It has outgrown the room: the client begins anew, and may be answered without a session then.
            self.remove(id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        Ok((FetchContext::Incremental { id, session }, wanted))
    }
}

impl Cache {
    fn remove(&mut self, id: i32) {
        if let Some(held) = self.sessions.remove(&id) {
            self.bytes = self.bytes.saturating_sub(held.bytes);
        }
    }

    /// Counts `bytes` for a session; false if there is no room for what it has grown by.
    fn resize(&mut self, id: i32, bytes: usize) -> bool {
        let Some(held) = self.sessions.get_mut(&id) else {
            return true;
        };
        let before = std::mem::replace(&mut held.bytes, bytes);
        self.bytes = (self.bytes + bytes).saturating_sub(before);
        bytes <= before || self.bytes <= BYTES_MAX
    }

    /// Sees to it that a session of `bytes` finds room; none if nothing may go for it.
    fn make_room(&mut self, bytes: usize, now: Instant) -> Option<()> {
        if bytes > BYTES_MAX {
            return None;
        }
        // Each round takes one session away.
        while self.sessions.len() >= SESSIONS_MAX || self.bytes + bytes > BYTES_MAX {
            let evicted = self.evictable(bytes, now)?;
            self.remove(evicted);
        }
        Some(())
    }

    /// The session that may go for one of `bytes`: the one idle longest, if it was for long; else the smallest of the old ones that
    /// are smaller.
    fn evictable(&self, bytes: usize, now: Instant) -> Option<i32> {
        let old = |since: Instant| now.saturating_duration_since(since) > EVICTABLE_AFTER;
        let idle = self.sessions.iter().map(|(id, held)| (held.session.lock().used, *id)).min()?;
        if old(idle.0) {
            return Some(idle.1);
        }
        let smaller = self.sessions.iter().filter_map(|(id, held)| {
            (held.bytes < bytes && old(held.session.lock().created)).then_some((held.bytes, *id))
        });
        smaller.min().map(|(_, id)| id)
    }

    fn draw_id(&self, mut draw: impl FnMut() -> u64) -> Option<i32> {
        let drawn = (0..ID_DRAWS_MAX).map(|_| i32::try_from(draw() >> 33).unwrap_or(NO_SESSION));
        drawn.into_iter().find(|id| *id != NO_SESSION && !self.sessions.contains_key(id))
    }
}

fn wanted(by_id: bool, topics: Vec<FetchTopic>) -> Vec<Wanted> {
    let mut wanted = Vec::with_capacity(topics.iter().map(|topic| topic.partitions.len()).sum());
    for topic in topics {
        let named = TopicRef::new(by_id, topic.topic, topic.topic_id);
        wanted
            .extend(topic.partitions.into_iter().map(|partition| Wanted { topic: named.clone(), partition }));
    }
    each_once(wanted)
}

/// Of a partition that is named again the last mention counts, at the place of the first: a session keeps it so, and without one it is
/// answered so. Nobody does it, so finding out is all that it costs.
fn each_once(wanted: Vec<Wanted>) -> Vec<Wanted> {
    fn key(wanted: &Wanted) -> (&TopicRef, i32) {
        (&wanted.topic, wanted.partition.partition)
    }
    let mut keys: Vec<_> = wanted.iter().map(key).collect();
    keys.sort_unstable();
    if keys.is_sorted_by(|one, next| one < next) {
        return wanted;
    }
    let mut places: BTreeMap<(TopicRef, i32), usize> = BTreeMap::new();
    let mut once: Vec<Wanted> = Vec::new();
    for wanted in wanted {
        let place = *places.entry((wanted.topic.clone(), wanted.partition.partition)).or_insert(once.len());
        match once.get_mut(place) {
            Some(known) => *known = wanted,
            None => once.push(wanted),
        }
    }
    once
}

#[cfg(test)]
mod tests;
