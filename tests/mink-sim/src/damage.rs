//! Objects that somebody removes or cuts in two by hand.
//!
//! Lives on: the simulation's thread.
//! Owns: nothing; the history is told which offsets may be refused from here on.
//! Invariants: what P-14 and P-1 promise needs a witness of the loss. Of a committed object metadata are the witness, so any is taken, the
//! newest of a bucket, too; one of a living chain only if a later one proves that it was durable, and goes on with each of its buckets.
//! Seals, anchors and the metadata's snapshots are left alone.
use crate::ledger::object_id;
use crate::machine::Site;
use mink_metadata::State;
use mink_object::{MemoryStore, ObjectKey, ObjectStore as _, Payload, Span, list_all};
use mink_types::{BucketId, Incarnation, ObjectId, OffsetRange, WalNumber};
use s3stream::format::{HEADER_BYTES, TAIL_BYTES, Tail};
use s3stream::{Header, ObjectKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often somebody looks whether what was removed is missed.
const LOOK: Duration = Duration::from_millis(50);

/// An object that may be damaged, and what lies in it.
struct Target {
    id: ObjectId,
    ranges: Vec<(BucketId, OffsetRange)>,
}

/// Removes an object, or leaves the first half of it.
pub(crate) async fn strike(site: Site, memory: Arc<MemoryStore>) {
    site.ledger.catch_up().await;
    let Some(state) = site.ledger.state() else { return };
    let targets =
        if site.dice.one_in(2) { in_chain(&site, &memory, &state).await } else { committed(&site, &state) };
    let at = site.dice.index(targets.len());
    let Some(Target { id, ranges }) = targets.into_iter().nth(at) else { return };
    let key = ObjectKey::object(&site.cluster, id);
    // Nothing waits in here: the memory store answers at once.
    let Ok(whole) = memory.get(&key, Span::Whole { max: u64::MAX }).await else { return };
    let half = site.dice.one_in(2);
    tracing::info!(object = %id, half, ?ranges, "an object is damaged by hand");
    site.history.hurt(id, ranges);
    drop(memory.delete(std::slice::from_ref(&key)).await);
    if half {
        let half = Payload::from(whole.slice(..whole.len() / 2));
        drop(memory.put(&key, &half).await);
    } else if let ObjectId::Wal { chain, number } = id {
        while !is_anchor(&site, chain.incarnation, number) {
            site.service.sleep(LOOK).await;
        }
        // Whoever takes the chain over stops without its anchor, and says that somebody must put it back.
        tracing::info!(object = %id, "an object is put back by hand");
        drop(memory.put(&key, &Payload::from(whole)).await);
    }
}

fn is_anchor(site: &Site, incarnation: Incarnation, number: WalNumber) -> bool {
    let state = site.ledger.state();
    let trim = state.and_then(|state| state.incarnation(incarnation).map(|life| life.trim));
    trim == Some(number.next())
}

/// Objects that metadata names.
fn committed(site: &Site, state: &State) -> Vec<Target> {
    let sound = |id: &ObjectId| !site.history.is_hurt(*id);
    let found = state.objects().filter(|(id, object)| object.length > 0 && sound(id));
    found.map(|(id, _)| Target { id: *id, ranges: ranges(state, *id) }).collect()
}

/// What metadata says lies in an object.
fn ranges(state: &State, id: ObjectId) -> Vec<(BucketId, OffsetRange)> {
    let all = state.buckets().flat_map(|(bucket, _)| {
        state.objects_of(bucket).map(|(range, place, _)| (*bucket, range, place.object))
    });
    all.filter(|(_, _, object)| *object == id).map(|(bucket, range, _)| (bucket, range)).collect()
}

/// What a WAL object says of itself.
struct Written {
    durable_through: Option<WalNumber>,
    ranges: Vec<(BucketId, OffsetRange)>,
}

/// Objects of the youngest living chain, at or above its trim.
async fn in_chain(site: &Site, memory: &MemoryStore, state: &State) -> Vec<Target> {
    let Some((_, life)) = state.live().last() else { return Vec::new() };
    // One loss a chain: two could take away each other's proof, and what is missing is booked on the first.
    if site.history.hurts_chain(life.chain, life.trim) {
        return Vec::new();
    }
    let Ok(prefix) = ObjectKey::parse(site.cluster.as_str()) else { return Vec::new() };
    let Ok((all, _)) = list_all(memory, &prefix, usize::MAX).await else { return Vec::new() };
    let mut written: BTreeMap<WalNumber, Written> = BTreeMap::new();
    for entry in all {
        let Some(ObjectId::Wal { chain, number }) = object_id(&site.cluster, &entry.key) else {
            continue;
        };
        if chain != life.chain || number < life.trim {
            continue;
        }
        if let Some(read) = read(memory, &entry.key).await {
            written.insert(number, read);
        }
    }
    // A walk comes as far as this without another proof.
    let run: Vec<(WalNumber, Written)> = written
        .into_iter()
        .zip(life.trim.0..)
        .take_while(|((n, _), at)| n.0 == *at)
        .map(|(one, _)| one)
        .collect();
    let mut targets = Vec::new();
    for (at, (number, object)) in run.iter().enumerate() {
        let later = || run.iter().skip(at + 1).map(|(_, later)| later);
        let window = site.plan.wal.puts_in_flight_max;
        let proven = later().take(window).any(|later| later.durable_through >= Some(*number));
        let goes_on =
            |bucket: &BucketId| later().any(|later| later.ranges.iter().any(|(of, _)| of == bucket));
        if proven && object.ranges.iter().all(|(bucket, _)| goes_on(bucket)) {
            let id = ObjectId::Wal { chain: life.chain, number: *number };
            targets.push(Target { id, ranges: object.ranges.clone() });
        }
    }
    targets
}

async fn read(memory: &MemoryStore, key: &ObjectKey) -> Option<Written> {
    let whole = memory.get(key, Span::Whole { max: u64::MAX }).await.ok()?;
    let header = Header::decode(whole.get(..HEADER_BYTES)?).ok()?;
    let ObjectKind::Data = header.kind else { return None };
    let end = whole.len().checked_sub(TAIL_BYTES)?;
    let tail = Tail::decode(whole.get(end..)?, whole.len() as u64).ok()?;
    let footer = tail.footer(whole.get(usize::try_from(tail.footer_position).ok()?..end)?).ok()?;
    let ranges = footer.buckets.iter().map(|part| (part.bucket, part.range())).collect();
    Some(Written { durable_through: header.durable_through, ranges })
}
