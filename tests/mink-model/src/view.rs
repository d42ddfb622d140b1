//! What the engine says of a metadata state, in the model's small numbers: ownership and ends from the state itself, what may be
//! taken over and deleted from the coordinator's plans.
//!
//! Lives on: anywhere (pure).
//! Invariants: no rule is decided here; every field is read from mink-metadata or is an answer of mink-coordinator.
use std::collections::BTreeSet;

use mink_coordinator::{Facts, Step, garbage, sweep_again, takeover, wal_floor};
use mink_metadata::State;
use mink_types::{Incarnation, LogIndex, ObjectId};

use crate::change::{Ids, LEASE_HOLDER, Objects};
use crate::state::{MAXO, NB, NC, NI, SLOTS};

/// Metadata as the model reads it. Sets of numbers are bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Meta {
    pub(crate) fenced: u8,
    pub(crate) drained: u8,
    pub(crate) swept: u8,
    /// Committed stream objects.
    pub(crate) refs: [u8; NI],
    pub(crate) trim: [u8; NI],
    /// Adopted WAL numbers.
    pub(crate) adopted: [u8; NI],
    /// The recorded seal's number, plus one.
    pub(crate) sealed: [u8; NI],
    /// Highest counter of the author's session, where that matters.
    pub(crate) high: [u8; NI],
    pub(crate) epoch: [u8; NB],
    /// The incarnation on whose chain the bucket hangs, plus one.
    pub(crate) owner: [u8; NB],
    pub(crate) end: [u8; NB],
    /// The objects that the bucket's ranges lie in.
    pub(crate) lies: [Objects; NB],
    /// Objects that the lease holder's plan deletes as doomed, their grace being over.
    pub(crate) doomed: Objects,
    // What follows is planned from the rest.
    /// WAL numbers below go although the chain lives.
    pub(crate) floor: [u8; NI],
    /// What a sweep deletes: WAL numbers if they hold data, if they hold a seal, and stream objects.
    pub(crate) data_free: [u8; NI],
    pub(crate) seal_free: [u8; NI],
    pub(crate) stream_free: [u8; NI],
    /// Kept by the model: what the committed offsets hold.
    pub(crate) content: [[u8; MAXO]; NB],
}

impl Meta {
    pub(crate) fn is_fenced(&self, i: usize) -> bool {
        self.fenced >> i & 1 == 1
    }

    pub(crate) fn hangs(&self, i: usize) -> bool {
        self.owner.contains(&(i as u8 + 1))
    }

    /// Fenced, and no bucket needs its chain any more.
    pub(crate) fn dead(&self, i: usize) -> bool {
        self.is_fenced(i) && !self.hangs(i)
    }

    pub(crate) fn owns(&self, i: usize, b: usize) -> bool {
        self.owner[b] == i as u8 + 1
    }

    /// What later commands and plans can depend on.
    pub(crate) fn told_apart(&self) -> Vec<u8> {
        let flags = [self.fenced, self.drained, self.swept];
        let [a, b] = self.lies.map(|lies| lies.bytes());
        let doomed = self.doomed.bytes();
        let parts: [&[u8]; 12] = [
            &flags,
            &self.refs,
            &self.trim,
            &self.adopted,
            &self.sealed,
            &self.high,
            &self.epoch,
            &self.owner,
            &self.end,
            &a,
            &b,
            &doomed,
        ];
        parts.concat()
    }

    /// The same where nobody can look at the trim of `x` any more; never equal to a whole one.
    pub(crate) fn told_apart_without_trim(&self, x: usize) -> Vec<u8> {
        let trim = std::array::from_fn(|i| if i == x { 0 } else { self.trim[i] });
        let mut key = Meta { trim, ..*self }.told_apart();
        key.push(x as u8);
        key
    }

    /// What a run ends with, whichever way it went: all but what `canon.rs` may forget of dead chains.
    pub(crate) fn outcome(&self) -> Vec<u8> {
        let [a, b] = &self.content;
        let parts: [&[u8]; 8] =
            [&[self.fenced], &self.refs, &self.adopted, &self.epoch, &self.owner, &self.end, a, b];
        parts.concat()
    }
}

/// What the engine says of `state`.
pub(crate) fn see(ids: &Ids, state: &State, high: [u8; NI]) -> Meta {
    let mut meta = Meta { high, ..Meta::default() };
    for i in 0..NI {
        let id = ids.incarnation(i);
        let life = state.incarnation(id).expect("registered");
        let plan = takeover(state, id).expect("registered");
        meta.fenced |= u8::from(!plan.fence) << i;
        meta.drained |= u8::from(plan.drained) << i;
        meta.swept |= u8::from(life.swept) << i;
        meta.trim[i] = small(plan.trim.0);
        meta.sealed[i] = life.seal.map_or(0, |seal| small(seal.0) + 1);
        meta.floor[i] = small(wal_floor(state, id).0);
        meta.adopted[i] = state.adopted(ids.chains[i]).fold(0, |set, number| set | 1 << number.0);
        for c in (0..NC).filter(|&c| state.object(&ids.stream(i, c)).is_some()) {
            meta.refs[i] |= 1 << c;
        }
        // What hangs on the chain, and at which epoch, is what a takeover of it would carry.
        for opening in plan.buckets {
            let b = ids
                .buckets
                .iter()
                .position(|bucket| *bucket == opening.bucket)
                .expect("a bucket of the model");
            meta.owner[b] = i as u8 + 1;
            meta.epoch[b] = small(opening.epoch.0.into());
        }
    }
    for (b, id) in ids.buckets.iter().enumerate() {
        let bucket = state.bucket(id).expect("a bucket of the model");
        meta.end[b] = small(bucket.end.0);
        bucket.ranges.values().for_each(|range| meta.lies[b].add(ids, range.object));
        if bucket.owner.is_none() {
            meta.epoch[b] = small(bucket.epoch.0.into());
        }
    }
    sweeps(ids, state, &mut meta);
    meta
}

/// What the lease holder's plan deletes.
fn sweeps(ids: &Ids, state: &State, meta: &mut Meta) {
    let facts = Facts { expired: BTreeSet::new(), collect: true, grace_passed: LogIndex(u64::MAX) };
    let mut keeps = Vec::new();
    for step in garbage(state, ids.incarnation(LEASE_HOLDER), &facts) {
        match step {
            Step::Sweep(sweep) => keeps.push((sweep.incarnation, sweep.keep)),
            Step::Delete { objects } => objects.iter().for_each(|id| meta.doomed.add(ids, *id)),
            Step::TakeOver(_) | Step::Open { .. } => {}
        }
    }
    // Chains that were cleaned are listed again, each in its turn.
    for i in (0..NI).filter(|i| meta.swept >> i & 1 == 1) {
        let before = Incarnation(ids.incarnation(i).0 - 1);
        keeps.extend(sweep_again(state, before).map(|sweep| (sweep.incarnation, sweep.keep)));
    }
    for i in 0..NI {
        for (_, keep) in keeps.iter().filter(|(id, _)| *id == ids.incarnation(i)) {
            let free = |count, object: &dyn Fn(usize) -> ObjectId, is_seal| {
                (0..count).filter(|&n| !keep.keeps(object(n), is_seal)).fold(0, |set, n| set | 1 << n)
            };
            meta.data_free[i] |= free(SLOTS, &|n| ids.wal(i, n), false);
            meta.seal_free[i] |= free(SLOTS, &|n| ids.wal(i, n), true);
            meta.stream_free[i] |= free(NC, &|c| ids.stream(i, c), false);
        }
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).expect("the model's numbers are small")
}
