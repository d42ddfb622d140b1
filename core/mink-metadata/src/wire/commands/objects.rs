//! Committed and rewritten objects, to and from their messages.
//!
//! Lives on: anywhere (pure).
use super::{Committed, Moved, Rewritten};
use crate::wire::WireError;
use crate::wire::parts::{bucket_id, object_id};
use mink_types::{BucketEpoch, Offset};

impl From<&crate::CommittedObject> for Committed {
    fn from(object: &crate::CommittedObject) -> Committed {
        Committed {
            id: Some(object.id.into()),
            length: object.length,
            footer_length: object.footer_length,
            checksum: object.checksum,
            ranges: object.ranges.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<Committed> for crate::CommittedObject {
    type Error = WireError;
    fn try_from(wire: Committed) -> Result<crate::CommittedObject, WireError> {
        Ok(crate::CommittedObject {
            id: object_id(wire.id)?,
            length: wire.length,
            footer_length: wire.footer_length,
            checksum: wire.checksum,
            ranges: wire.ranges.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&crate::RewrittenObject> for Rewritten {
    fn from(object: &crate::RewrittenObject) -> Rewritten {
        let moved = |range: &crate::RewrittenRange| Moved {
            bucket: Some(range.bucket.into()),
            epoch: range.epoch.0,
            start: range.start.0,
            end: range.end.0,
        };
        Rewritten {
            id: Some(object.id.into()),
            length: object.length,
            footer_length: object.footer_length,
            checksum: object.checksum,
            ranges: object.ranges.iter().map(moved).collect(),
        }
    }
}

impl TryFrom<Rewritten> for crate::RewrittenObject {
    type Error = WireError;
    fn try_from(wire: Rewritten) -> Result<crate::RewrittenObject, WireError> {
        let moved = |wire: Moved| {
            Ok(crate::RewrittenRange {
                bucket: bucket_id(wire.bucket)?,
                epoch: BucketEpoch(wire.epoch),
                start: Offset(wire.start),
                end: Offset(wire.end),
            })
        };
        Ok(crate::RewrittenObject {
            id: object_id(wire.id)?,
            length: wire.length,
            footer_length: wire.footer_length,
            checksum: wire.checksum,
            ranges: wire.ranges.into_iter().map(moved).collect::<Result<_, WireError>>()?,
        })
    }
}
