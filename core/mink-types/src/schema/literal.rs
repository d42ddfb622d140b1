//! Constants: what a column has where nobody wrote a value.
//!
//! Lives on: anywhere (pure).

/// A constant of a scalar type, as it is stored: what it means, the column's type says. Floats are compared by their bits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Literal {
    Boolean(bool),
    /// TINYINT to BIGINT; days for DATE; units of the type's precision for times and timestamps.
    Integer(i64),
    /// The bits of a FLOAT, widened to DOUBLE, or of a DOUBLE.
    Double(u64),
    /// Unscaled: at the column's scale.
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
}
