//! The plan of one node: what it should do next, as the view has it.
//!
//! Lives on: anywhere (pure).
//! Invariants: I13 (a takeover carries each bucket's epoch as it was before the walk). A step that comes too late is refused
//! by the log, so plans need no lock; they are made anew from each new view.
use std::collections::BTreeSet;

use mink_metadata::{BucketOpening, IncarnationState, State};
use mink_types::{Incarnation, LogIndex, NodeId, ObjectId, WalChain, WalNumber};

use crate::garbage::{Sweep, sweep};
use crate::placement::{free_share, heir, live_nodes};

/// Most buckets of one `Open`, so that the command and its answer fit into a row.
pub const OPEN_BUCKETS_MAX: usize = 4_096;
/// Most objects of one deletion.
pub const DELETE_OBJECTS_MAX: usize = 1_000;

/// What a plan needs to know beside the view.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Incarnations whose heartbeat has not changed for longer than the lease, by this node's own clock.
    pub expired: BTreeSet<Incarnation>,
    /// Whether this node holds the lease of deletion. Off while a witness is in doubt (I13, I14).
    pub collect: bool,
    /// Objects doomed at or before this row have been so for longer than the grace time.
    pub grace_passed: LogIndex,
}

/// One thing to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Take a chain over: fence if asked to, walk, adopt, open.
    TakeOver(Takeover),
    /// Open these free buckets; at most [`OPEN_BUCKETS_MAX`].
    Open { buckets: Vec<BucketOpening> },
    /// Delete these doomed objects, then say so; at most [`DELETE_OBJECTS_MAX`].
    Delete { objects: Vec<ObjectId> },
    /// Clean the prefixes of a dead incarnation, then say so.
    Sweep(Sweep),
}

/// A chain to take over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Takeover {
    pub incarnation: Incarnation,
    pub chain: WalChain,
    /// Where its WAL objects lie.
    pub wal_storage: String,
    /// It is not fenced yet: fence it, apply the log up to there, and plan this takeover again with [`takeover`], for only
    /// then is the trim frozen.
    pub fence: bool,
    /// Where the walk begins. Frozen once it is fenced.
    pub trim: WalNumber,
    /// It left by itself: nobody need wait for its lease.
    pub drained: bool,
    /// The buckets that hang on it, with their epochs from before the walk.
    pub buckets: Vec<BucketOpening>,
}

/// What `me` should do now. Empty for an incarnation that may not act.
pub fn plan(view: &State, me: Incarnation, facts: &Facts) -> Vec<Step> {
    if view.incarnation(me).is_none_or(|own| own.fenced) {
        return Vec::new();
    }
    let mut steps: Vec<Step> = takeovers(view, me, facts).into_iter().map(Step::TakeOver).collect();
    let nodes = live_nodes(view, &facts.expired);
    let free = free_share(view, &nodes, me);
    steps.extend(free.chunks(OPEN_BUCKETS_MAX).map(|buckets| Step::Open { buckets: buckets.to_vec() }));
    steps.extend(garbage(view, me, facts));
    steps
}

/// The part of [`plan`] that takes chains over: its own node's earlier lives, and those that fall to `me` of the others that have
/// expired, or are fenced and still have buckets.
pub fn takeovers(view: &State, me: Incarnation, facts: &Facts) -> Vec<Takeover> {
    let Some(own) = view.incarnation(me).filter(|own| !own.fenced) else {
        return Vec::new();
    };
    let nodes = live_nodes(view, &facts.expired);
    let mut chains = Vec::new();
    for (id, state) in view.incarnations().filter(|(id, _)| *id != me) {
        let due = due(id, state, me, own.node(), facts) || (state.fenced && view.hangs(id));
        if due && (heir(view, &nodes, id) == Some(me) || predecessor(id, state, me, own.node())) {
            chains.extend(takeover(view, id));
        }
    }
    chains
}

/// The part of [`plan`] that deletes: what the collector goes by, who need not look at every bucket.
pub fn garbage(view: &State, me: Incarnation, facts: &Facts) -> Vec<Step> {
    if !facts.collect || view.incarnation(me).is_none_or(|own| own.fenced) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let ripe: Vec<ObjectId> =
        view.doomed().filter(|(_, at)| *at <= facts.grace_passed).map(|(id, _)| *id).collect();
    steps.extend(ripe.chunks(DELETE_OBJECTS_MAX).map(|objects| Step::Delete { objects: objects.to_vec() }));
    let dead = view.incarnations().filter(|(id, state)| !state.swept && view.dead(*id));
    steps.extend(dead.filter_map(|(id, _)| sweep(view, id)).map(Step::Sweep));
    steps
}

/// The chain after `after`, in turn, whose prefixes were cleaned once and are to be listed again: a PUT of a writer that stood still for
/// long may have landed since (P-4, K-1: behind the seal, so nobody ever reads it). None if no chain was cleaned yet.
pub fn sweep_again(view: &State, after: Incarnation) -> Option<Sweep> {
    let cleaned = |from| view.incarnations_from(from).find(|(_, state)| state.swept).map(|(id, _)| id);
    let next = cleaned(Incarnation(after.0.saturating_add(1))).or_else(|| cleaned(Incarnation(0)))?;
    // Its seal is recorded, or its first sweep would have recorded it.
    sweep(view, next).filter(|sweep| !sweep.keep.must_look())
}

/// An earlier life of my own node: two processes never act for one node, so it goes, whatever its heartbeat says.
fn predecessor(id: Incarnation, state: &IncarnationState, me: Incarnation, node: NodeId) -> bool {
    state.node() == node && id < me
}

/// Whether an incarnation that is not fenced must be.
fn due(id: Incarnation, state: &IncarnationState, me: Incarnation, node: NodeId, facts: &Facts) -> bool {
    !state.fenced && (predecessor(id, state, me, node) || facts.expired.contains(&id))
}

/// The takeover of one chain, as the view has it.
pub fn takeover(view: &State, id: Incarnation) -> Option<Takeover> {
    let state = view.incarnation(id)?;
    let opening = |bucket| {
        let epoch = view.bucket(&bucket)?.epoch;
        Some(BucketOpening { bucket, epoch })
    };
    Some(Takeover {
        incarnation: id,
        chain: state.chain,
        wal_storage: state.wal_storage.clone(),
        fence: !state.fenced,
        trim: state.trim,
        drained: state.drained,
        buckets: view.hanging(id).filter_map(opening).collect(),
    })
}
