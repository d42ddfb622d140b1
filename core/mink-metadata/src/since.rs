//! What one view of the log has that an earlier one had not, or had otherwise.
//!
//! Lives on: anywhere (pure).
//! Invariants: what two views share is passed over unseen, so a question costs what changed between them, not what there is.
use imbl::ordmap::DiffItem;
use mink_types::{BucketId, TableId};

use crate::Table;
use crate::state::{Bucket, State};

impl State {
    /// The buckets that are new or other than in `before`, by id.
    pub fn buckets_since<'a>(
        &'a self,
        before: &'a State,
    ) -> impl Iterator<Item = (&'a BucketId, &'a Bucket)> {
        before.buckets.diff(&self.buckets).filter_map(|change| match change {
            DiffItem::Add(id, bucket) | DiffItem::Update { new: (id, bucket), .. } => Some((id, bucket)),
            DiffItem::Remove(..) => None,
        })
    }

    /// The tables of `before` that are gone, by id.
    pub fn tables_gone_since<'a>(&'a self, before: &'a State) -> impl Iterator<Item = TableId> {
        before.tables.diff(&self.tables).filter_map(|change| match change {
            DiffItem::Remove(id, _) => Some(*id),
            DiffItem::Add(..) | DiffItem::Update { .. } => None,
        })
    }

    /// The tables that `before` had with other options, by id: as they were and as they are. Their buckets need not have changed.
    pub fn tables_altered_since<'a>(
        &'a self,
        before: &'a State,
    ) -> impl Iterator<Item = (&'a Table, &'a Table)> {
        before.tables.diff(&self.tables).filter_map(|change| match change {
            DiffItem::Update { old: (_, old), new: (_, new) } if old.options != new.options => {
                Some((old.as_ref(), new.as_ref()))
            }
            DiffItem::Add(..) | DiffItem::Update { .. } | DiffItem::Remove(..) => None,
        })
    }
}
