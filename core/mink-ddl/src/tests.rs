//! Texts and what becomes of them.
//!
//! Lives on: anywhere (pure).
mod altering;
mod creating;
mod errors;
mod generated;
mod hostile;
mod literals;
mod manual;
mod round_trip;
mod short;
mod splitting;

use crate::{ParseError, Statement, parse};
use mink_types::{DatabaseName, TablePath};

/// A statement that must be one.
fn parsed(text: &str) -> Statement {
    parse(text, None).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Why a text is none.
fn refused(text: &str) -> ParseError {
    match parse(text, None) {
        Ok(statement) => panic!("{text}\nwas taken for\n{statement}"),
        Err(error) => error,
    }
}

/// Each text is refused with a message that has this piece, at this column of line 1.
fn all_refused(cases: &[(&str, u32, &str)]) {
    for (text, column, piece) in cases {
        let error = refused(text);
        assert!(error.message.contains(piece), "{text}\n{error}\nlacks {piece:?}");
        assert_eq!((error.line, error.column), (1, *column), "{text}\n{error}");
    }
}

fn database(name: &str) -> DatabaseName {
    DatabaseName::new(name).expect("a name")
}

fn path(address: &str) -> TablePath {
    TablePath::parse(address).expect("an address")
}
