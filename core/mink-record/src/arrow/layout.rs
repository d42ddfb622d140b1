//! How many nodes and buffers a column has in an IPC message.
//!
//! Lives on: anywhere (pure).

use arrow_schema::{DataType as ArrowType, FieldRef};
use std::iter::Sum;
use std::ops::Add;

/// Of one column or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) nodes: usize,
    /// Without the ones that views bring along.
    pub(super) buffers: usize,
    /// Columns of a view type, each with a number of buffers of its own. Never stored.
    pub(super) views: usize,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            nodes: self.nodes + other.nodes,
            buffers: self.buffers + other.buffers,
            views: self.views + other.views,
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(all: I) -> Counts {
        all.fold(Counts::default(), Add::add)
    }
}

/// What columns of these fields have; the types are those of [`arrow_type`](super::types::arrow_type) and those that
/// [`Intake`](super::Intake) takes for them.
pub(super) fn counts_of<'a>(fields: impl IntoIterator<Item = &'a FieldRef>) -> Counts {
    fields.into_iter().map(|field| counts(field.data_type())).sum()
}

/// What one column of this type has.
pub(super) fn counts(data_type: &ArrowType) -> Counts {
    let own = |buffers| Counts { nodes: 1, buffers, views: 0 };
    match data_type {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Binary | ArrowType::LargeBinary => own(3),
        ArrowType::Utf8View | ArrowType::BinaryView => Counts { views: 1, ..own(2) },
        ArrowType::List(child) | ArrowType::LargeList(child) | ArrowType::Map(child, _) => {
            own(2) + counts(child.data_type())
        }
        ArrowType::Struct(fields) => own(1) + counts_of(fields),
        _ => own(2),
    }
}
