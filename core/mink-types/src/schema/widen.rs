//! Which type may take the place of which: one that holds every value of the other, and nothing that was stored is rewritten.
//!
//! Lives on: anywhere (pure).
use super::{DECIMAL_PRECISION_MAX, DataType, Literal, TIME_PRECISION_MAX, TimeUnit};

impl DataType {
    /// Whether a column of this scalar type may become one of `to`. Not to itself, and not for nested types: their fields are
    /// looked at one by one.
    pub fn widens_to(&self, to: &DataType) -> bool {
        if let (Some(from), Some(to)) = (self.whole_number_bits(), to.whole_number_bits()) {
            return from < to;
        }
        match (self, to) {
            (DataType::Float, DataType::Double)
            | (DataType::Char { .. }, DataType::String)
            | (DataType::Binary { .. }, DataType::Bytes) => true,
            (
                DataType::Decimal { precision, scale },
                DataType::Decimal { precision: to_precision, scale: to_scale },
            ) => precision < to_precision && scale == to_scale,
            (DataType::Char { length }, DataType::Char { length: to })
            | (DataType::Binary { length }, DataType::Binary { length: to }) => length < to,
            (DataType::Time { precision }, DataType::Time { precision: to })
            | (DataType::Timestamp { precision }, DataType::Timestamp { precision: to })
            | (DataType::TimestampLtz { precision }, DataType::TimestampLtz { precision: to }) => {
                precision < to
            }
            _ => false,
        }
    }

    /// A constant of this type as one of `to`, which this type is or widens to. None if that holds no such value: 64 bits of
    /// nanoseconds end in 2262.
    pub fn widen_literal(&self, to: &DataType, literal: &Literal) -> Option<Literal> {
        let widened = match (self.time_unit(), to.time_unit(), literal) {
            (Some(from), Some(to), Literal::Integer(value)) => {
                Literal::Integer(value.checked_mul(to.per_second() / from.per_second())?)
            }
            _ => literal.clone(),
        };
        to.check_literal(&widened).ok().map(|()| widened)
    }

    /// What this type may become, for an error's text.
    pub(super) fn wider(&self) -> String {
        let precision = |name: &str, precision: u8| {
            if precision < TIME_PRECISION_MAX {
                format!("{name}(p) with p from {} to {TIME_PRECISION_MAX}", precision + 1)
            } else {
                NOTHING.to_owned()
            }
        };
        match self {
            DataType::TinyInt => "SMALLINT, INT or BIGINT".to_owned(),
            DataType::SmallInt => "INT or BIGINT".to_owned(),
            DataType::Int => "BIGINT".to_owned(),
            DataType::Float => "DOUBLE".to_owned(),
            DataType::Decimal { precision, scale } if *precision < DECIMAL_PRECISION_MAX => {
                let from = precision + 1;
                format!("DECIMAL(p, {scale}) with p from {from} to {DECIMAL_PRECISION_MAX}")
            }
            DataType::Char { length } => format!("STRING, or CHAR(n) with n above {length}"),
            DataType::Binary { length } => format!("BYTES, or BINARY(n) with n above {length}"),
            DataType::Time { precision: p } => precision("TIME", *p),
            DataType::Timestamp { precision: p } => precision("TIMESTAMP", *p),
            DataType::TimestampLtz { precision: p } => precision("TIMESTAMP_LTZ", *p),
            DataType::Array(_) => "an ARRAY with an element of the same or a wider type".to_owned(),
            DataType::Map { .. } => "a MAP with a key and a value of the same or wider types".to_owned(),
            DataType::Row(_) => "a ROW with the same fields, of the same or wider types".to_owned(),
            _ => NOTHING.to_owned(),
        }
    }

    fn whole_number_bits(&self) -> Option<u8> {
        match self {
            DataType::TinyInt => Some(8),
            DataType::SmallInt => Some(16),
            DataType::Int => Some(32),
            DataType::BigInt => Some(64),
            _ => None,
        }
    }

    /// What its values count, if it has a precision behind the second.
    fn time_unit(&self) -> Option<TimeUnit> {
        match self {
            DataType::Time { precision }
            | DataType::Timestamp { precision }
            | DataType::TimestampLtz { precision } => Some(TimeUnit::of_precision(*precision)),
            _ => None,
        }
    }
}

const NOTHING: &str = "the type it has; none is wider";
