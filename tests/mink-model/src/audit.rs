//! What must hold of every metadata state that a search meets, whatever led to it.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2, I5, I14 of the metadata alone; the properties of the whole world are in `check.rs`.
use std::collections::BTreeMap;

use mink_coordinator::{Facts, Step, garbage, sweep_again};
use mink_metadata::{CommandResult, RefusalKind, State};
use mink_types::{Incarnation, LogIndex, ObjectId};

use crate::change::{Change, Commit, Ids, LEASE_HOLDER};
use crate::engine::{fresh, row};
use crate::state::{NB, NI};
use crate::view::Meta;

/// The first fault of a state.
pub(crate) fn audit(ids: &Ids, state: &State, meta: &Meta) -> Option<&'static str> {
    let mut referred: BTreeMap<ObjectId, u32> = BTreeMap::new();
    for (_, bucket) in state.buckets() {
        let mut next = bucket.start;
        for (start, range) in &bucket.ranges {
            if *start != next || range.end <= *start {
                return Some("I2: committed ranges overlap or leave a gap");
            }
            next = range.end;
            *referred.entry(range.object).or_default() += 1;
        }
        if next != bucket.end {
            return Some("I2: the committed ranges do not reach the committed end");
        }
    }
    let counted = state.objects().map(|(id, object)| (*id, object.ranges)).collect();
    if referred != counted {
        return Some("I14: an object's count of ranges is not what ranges say");
    }
    if state.doomed().any(|(id, _)| referred.contains_key(id)) {
        return Some("I14: an object is doomed and referred to");
    }
    let fenced = (0..NI).filter(|&i| meta.is_fenced(i));
    fenced
        .flat_map(|i| attempts(meta, i))
        .find_map(|change| refused(ids, state, change))
        .or_else(|| sweeping(ids, state, meta))
}

/// What a fenced incarnation may still send, as close to acceptable as can be.
fn attempts(meta: &Meta, i: usize) -> Vec<Change> {
    let by = i as u8;
    let mut all = vec![Change::Leave { x: by, at: 4 }, Change::Fence { x: LEASE_HOLDER as u8, by }];
    for b in (0..NB).filter(|&b| meta.epoch[b] > 0) {
        let (bucket, epoch) = (b as u8, meta.epoch[b]);
        all.push(Change::Open { by, b: bucket, epoch, from: meta.owner[b], seal: 4 });
        all.push(Change::Release { by, b: bucket, epoch, end: meta.end[b] });
        let len = std::array::from_fn(|of| u8::from(of == b));
        let source = meta.owner[b].saturating_sub(1);
        let trim = (source == by).then_some(4);
        let (start, epoch) = (meta.end, meta.epoch);
        all.push(Change::Commit(Commit { by, source, c: 7, start, len, epoch, trim, adopts: None }));
    }
    all
}

/// I5: what a fenced incarnation sends is refused as such.
fn refused(ids: &Ids, state: &State, change: Change) -> Option<&'static str> {
    let mut state = state.clone();
    let request = fresh(&state);
    match row(&mut state, request, &change.command(ids)) {
        CommandResult::Refused(refusal) if refusal.kind() == RefusalKind::Fenced => None,
        _ => Some("I5: a command of a fenced incarnation was not refused as such"),
    }
}

/// `Swept` is taken of the dead alone, and a chain that was cleaned keeps what it kept.
fn sweeping(ids: &Ids, state: &State, meta: &Meta) -> Option<&'static str> {
    let facts = Facts { collect: true, grace_passed: LogIndex(u64::MAX), ..Facts::default() };
    let planned = garbage(state, ids.incarnation(LEASE_HOLDER), &facts);
    for x in 0..NI {
        let mut after = state.clone();
        let request = fresh(&after);
        let swept = row(&mut after, request, &Change::Swept { x: x as u8 }.command(ids));
        if matches!(swept, CommandResult::Done(_)) != meta.dead(x) {
            return Some("I14: a sweep was taken of a chain that is needed, or refused of one that is dead");
        }
        let again = sweep_again(&after, Incarnation(ids.incarnation(x).0 - 1)).map(Step::Sweep);
        if meta.dead(x)
            && meta.sealed[x] > 0
            && meta.swept >> x & 1 == 0
            && !again.is_some_and(|sweep| planned.contains(&sweep))
        {
            return Some("P-4: a cleaned chain that is listed again keeps something else than before");
        }
    }
    None
}
