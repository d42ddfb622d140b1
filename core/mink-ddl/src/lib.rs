//! SQL text to commands on databases and tables, and commands to SQL text. What is accepted, docs/sql.md says.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing. Talks to: nobody: whether a table exists or a change is allowed, others know.
//! Invariants: I19: whatever the text, a function here returns; text, nesting and every list are bounded, and no number in a text
//! sizes an allocation. What [`Statement`]'s `Display` prints parses to the same statement.
#![forbid(unsafe_code)]

mod alter;
mod bucket_key;
mod column;
mod create;
mod data_type;
mod error;
mod lexer;
mod literal;
mod moment;
mod parse;
mod parser;
mod print;
mod split;
mod statement;
mod value;

pub use error::{LiteralError, ParseError};
pub use literal::{literal_of, literal_text};
pub use parse::parse;
pub use print::show_create;
pub use split::{Part, Split, split};
pub use statement::{Change, Statement};

/// Longest statement, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Actions of one ALTER TABLE.
pub const ACTIONS_MAX: usize = 1_024;
/// Options of one statement, and names of one list of columns.
pub const LIST_MAX: usize = 1_024;

#[cfg(test)]
mod tests;
