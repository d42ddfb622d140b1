//! Messages of results, which snapshots keep with their request ids (I12).
//!
//! Lives on: anywhere (pure).
use mink_types::schema::SchemaId;
use mink_types::{BucketEpoch, BucketId, DatabaseId, Incarnation, ObjectId, Offset, PartitionId, TableId};

use super::WireError;
use super::parts::{Bucket, ObjectName, Path, bucket_id, database_name, needed, object_id};
use crate::{Answer, CommandResult, Invalid, LimitKind, ObjectFault, Refusal, Stale};

/// A result: `kind` says which (below 100 answers, from 100 on refusals), the other fields are its parts as each kind uses
/// them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResultMessage {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint64, tag = "2")]
    number: u64,
    #[prost(uint32, tag = "3")]
    code: u32,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(message, optional, tag = "5")]
    path: Option<Path>,
    #[prost(message, optional, tag = "6")]
    object: Option<ObjectName>,
    #[prost(message, repeated, tag = "7")]
    stale: Vec<StaleMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StaleMessage {
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(uint64, tag = "3")]
    number: u64,
}

fn stale_message((bucket, why): (BucketId, Stale)) -> StaleMessage {
    let (kind, number) = match why {
        Stale::Gone => (1, 0),
        Stale::Epoch { current } => (2, u64::from(current.0)),
        Stale::Hangs { on: None } => (3, 0),
        Stale::Hangs { on: Some(incarnation) } => (4, incarnation.0),
        Stale::End { committed } => (5, committed.0),
        Stale::EpochsUsedUp => (6, 0),
        Stale::Ranges { at } => (7, at.0),
    };
    StaleMessage { bucket: Some(bucket.into()), kind, number }
}

fn stale(wire: StaleMessage) -> Result<(BucketId, Stale), WireError> {
    let why = match wire.kind {
        1 => Stale::Gone,
        2 => Stale::Epoch {
            current: BucketEpoch(
                u32::try_from(wire.number).map_err(|_| WireError::Malformed("an epoch is too large"))?,
            ),
        },
        3 => Stale::Hangs { on: None },
        4 => Stale::Hangs { on: Some(Incarnation(wire.number)) },
        5 => Stale::End { committed: Offset(wire.number) },
        6 => Stale::EpochsUsedUp,
        7 => Stale::Ranges { at: Offset(wire.number) },
        kind => return Err(WireError::Unsupported(format!("stale kind {kind}"))),
    };
    Ok((bucket_id(wire.bucket)?, why))
}

/// The codes of closed enums, in one place for both directions. Codes are never used again.
macro_rules! codes {
    ($to:ident, $from:ident, $type:ident { $($code:literal => $variant:ident),* $(,)? }) => {
        fn $to(value: $type) -> u32 {
            match value { $($type::$variant => $code),* }
        }
        fn $from(code: u32) -> Result<$type, WireError> {
            match code {
                $($code => Ok($type::$variant),)*
                _ => Err(WireError::Unsupported(format!("{} {code}", stringify!($type)))),
            }
        }
    };
}

codes!(invalid_code, invalid, Invalid {
    1 => SecondRegistration, 2 => ZeroUuid, 3 => UuidTaken, 4 => NoBuckets, 5 => EmptyRange, 6 => ForeignTrim,
    7 => SealBelowTrim, 8 => StartOutOfRange, 9 => FeatureLevel, 10 => FixedForTable, 11 => UnknownNode, 12 => EmptyName,
    13 => SchemaAndFormat, 14 => SchemaNotFirst, 15 => SchemaDoesNotFollow, 16 => NotPartitioned, 17 => PartitionValues,
});
codes!(fault_code, fault, ObjectFault { 1 => Known, 2 => Foreign, 3 => Differs, 4 => Lengths, 5 => Lost });
codes!(limit_code, limit, LimitKind {
    1 => Buckets, 2 => BucketsPerTable, 3 => Databases, 4 => TextBytes, 5 => Listeners, 6 => Stores, 7 => BrokerConfigs,
    8 => KeptConfigs, 9 => Schemas, 10 => SchemaBytes, 11 => Partitions,
});

impl From<&CommandResult> for ResultMessage {
    fn from(result: &CommandResult) -> ResultMessage {
        let numbered = |kind, number| ResultMessage { kind, number, ..ResultMessage::default() };
        match result {
            CommandResult::Done(answer) => match answer {
                Answer::Done => numbered(1, 0),
                Answer::Registered(incarnation) => numbered(2, incarnation.0),
                Answer::DatabaseCreated(id) => numbered(3, id.0),
                Answer::TableCreated(id) => numbered(4, id.0),
                Answer::PartitionCreated(id) => numbered(6, id.0),
                Answer::Opened { refused } => {
                    let stale = refused.iter().copied().map(stale_message).collect();
                    ResultMessage { stale, ..numbered(5, 0) }
                }
            },
            CommandResult::Refused(refusal) => match refusal {
                Refusal::Forgotten => numbered(100, 0),
                Refusal::AlreadyFenced { incarnation } => numbered(101, incarnation.0),
                Refusal::Fenced { incarnation } => numbered(102, incarnation.0),
                Refusal::NotRegistered { incarnation } => numbered(103, incarnation.0),
                Refusal::NotFenced { incarnation } => numbered(104, incarnation.0),
                Refusal::StillNeeded { incarnation } => numbered(105, incarnation.0),
                Refusal::DatabaseNotFound { name } => {
                    ResultMessage { name: name.as_str().into(), ..numbered(106, 0) }
                }
                Refusal::DatabaseExists { id } => numbered(107, id.0),
                Refusal::DatabaseNotEmpty { name } => {
                    ResultMessage { name: name.as_str().into(), ..numbered(108, 0) }
                }
                Refusal::TableNotFound { id } => numbered(109, id.0),
                Refusal::TableExists { id } => numbered(110, id.0),
                Refusal::TopicCollision { other } => {
                    ResultMessage { path: Some(other.into()), ..numbered(111, 0) }
                }
                Refusal::Stale { bucket, why } => {
                    ResultMessage { stale: vec![stale_message((*bucket, *why))], ..numbered(112, 0) }
                }
                Refusal::Object { id, why } => {
                    ResultMessage { object: Some((*id).into()), code: fault_code(*why), ..numbered(113, 0) }
                }
                Refusal::Limit { limit, max } => {
                    ResultMessage { code: limit_code(*limit), ..numbered(114, *max) }
                }
                Refusal::TableChanged { id } => numbered(116, id.0),
                Refusal::BrokerConfigsChanged => numbered(117, 0),
                Refusal::SchemaChanged { id, newest } => {
                    ResultMessage { code: newest.0, ..numbered(118, id.0) }
                }
                Refusal::PartitionExists { id } => numbered(119, id.0),
                Refusal::PartitionNotFound { id } => numbered(120, id.0),
                Refusal::Invalid(what) => ResultMessage { code: invalid_code(*what), ..numbered(115, 0) },
            },
        }
    }
}

impl TryFrom<ResultMessage> for CommandResult {
    type Error = WireError;
    fn try_from(wire: ResultMessage) -> Result<CommandResult, WireError> {
        let number = wire.number;
        let incarnation = Incarnation(number);
        let refusal = match wire.kind {
            1 => return Ok(CommandResult::Done(Answer::Done)),
            2 => return Ok(CommandResult::Done(Answer::Registered(incarnation))),
            3 => return Ok(CommandResult::Done(Answer::DatabaseCreated(DatabaseId(number)))),
            4 => return Ok(CommandResult::Done(Answer::TableCreated(TableId(number)))),
            5 => {
                let refused = wire.stale.into_iter().map(stale).collect::<Result<_, _>>()?;
                return Ok(CommandResult::Done(Answer::Opened { refused }));
            }
            6 => return Ok(CommandResult::Done(Answer::PartitionCreated(PartitionId(number)))),
            100 => Refusal::Forgotten,
            101 => Refusal::AlreadyFenced { incarnation },
            102 => Refusal::Fenced { incarnation },
            103 => Refusal::NotRegistered { incarnation },
            104 => Refusal::NotFenced { incarnation },
            105 => Refusal::StillNeeded { incarnation },
            106 => Refusal::DatabaseNotFound { name: database_name(&wire.name)? },
            107 => Refusal::DatabaseExists { id: DatabaseId(number) },
            108 => Refusal::DatabaseNotEmpty { name: database_name(&wire.name)? },
            109 => Refusal::TableNotFound { id: TableId(number) },
            110 => Refusal::TableExists { id: TableId(number) },
            111 => Refusal::TopicCollision {
                other: needed(wire.path, "a collision without a table")?.try_into()?,
            },
            112 => {
                let first = wire.stale.into_iter().next();
                let (bucket, why) = stale(needed(first, "a stale bucket is missing")?)?;
                Refusal::Stale { bucket, why }
            }
            113 => {
                let id: ObjectId = object_id(wire.object)?;
                Refusal::Object { id, why: fault(wire.code)? }
            }
            114 => Refusal::Limit { limit: limit(wire.code)?, max: number },
            115 => Refusal::Invalid(invalid(wire.code)?),
            116 => Refusal::TableChanged { id: TableId(number) },
            117 => Refusal::BrokerConfigsChanged,
            118 => Refusal::SchemaChanged { id: TableId(number), newest: SchemaId(wire.code) },
            119 => Refusal::PartitionExists { id: PartitionId(number) },
            120 => Refusal::PartitionNotFound { id: PartitionId(number) },
            kind => return Err(WireError::Unsupported(format!("result kind {kind}"))),
        };
        Ok(CommandResult::Refused(refusal))
    }
}
