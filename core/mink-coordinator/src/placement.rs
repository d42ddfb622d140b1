//! Who does what among the live nodes: the same answer at every node with the same view.
//!
//! Lives on: anywhere (pure).
use std::collections::{BTreeMap, BTreeSet};

use mink_metadata::{BucketOpening, State};
use mink_types::{Incarnation, NodeId};

/// The nodes that can take work, with the incarnation that acts for each: its newest, if that is not fenced and its
/// heartbeat has not expired.
pub fn live_nodes(view: &State, expired: &BTreeSet<Incarnation>) -> BTreeMap<NodeId, Incarnation> {
    // Oldest first, so a node's newest life is what stays.
    view.live().filter(|(id, _)| !expired.contains(id)).map(|(id, state)| (state.node(), id)).collect()
}

/// Who takes over, and later sweeps, the chain of `id`: its own node's present life, else one of the live nodes in turn.
pub(crate) fn heir(
    view: &State,
    nodes: &BTreeMap<NodeId, Incarnation>,
    id: Incarnation,
) -> Option<Incarnation> {
    let node = view.incarnation(id)?.node();
    if let Some(heir) = nodes.get(&node).filter(|heir| **heir > id) {
        return Some(*heir);
    }
    let others: Vec<Incarnation> = nodes.values().copied().filter(|other| *other != id).collect();
    let turn = id.0.checked_rem(others.len() as u64)?;
    others.get(usize::try_from(turn).ok()?).copied()
}

/// The free buckets that fall to `me`: each goes to the node with the fewest buckets, the smaller node id first.
pub(crate) fn free_share(
    view: &State,
    nodes: &BTreeMap<NodeId, Incarnation>,
    me: Incarnation,
) -> Vec<BucketOpening> {
    let mut loads: BTreeSet<(usize, NodeId, Incarnation)> =
        nodes.iter().map(|(node, id)| (view.hanging(*id).count(), *node, *id)).collect();
    let mut mine = Vec::new();
    for (id, bucket) in view.buckets().filter(|(_, bucket)| bucket.owner.is_none()) {
        let Some((load, node, least)) = loads.pop_first() else {
            break;
        };
        loads.insert((load + 1, node, least));
        if least == me {
            mine.push(BucketOpening { bucket: *id, epoch: bucket.epoch });
        }
    }
    mine
}
