//! Why a text is no statement, and where; why a text is no constant of a type.
//!
//! Lives on: anywhere (pure).
//! Invariants: what an error shows of a text is bounded, and its control characters are escaped: it may reach a terminal.
use crate::split::Part;
use std::fmt;

/// Widest line of an excerpt, in characters.
const EXCERPT_WIDTH: usize = 80;
/// What an excerpt shows before the fault, in characters.
const EXCERPT_BEFORE: usize = 36;
/// What stands for text that is left out.
const LEFT_OUT: &str = "...";
/// What a message shows of one word of a text, in characters.
const SHOWN_WIDTH: usize = 40;

/// A text that is no statement: where, what was found there, and what is accepted. `Display` adds the line with a caret below.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    pub message: String,
    /// The line it is about, cut, and the caret's place in it.
    excerpt: String,
    caret: usize,
}

impl ParseError {
    /// An error at a byte of `text`.
    pub(crate) fn at(text: &str, offset: usize, message: impl fmt::Display) -> ParseError {
        let (before, behind) = text.split_at_checked(offset).unwrap_or((text, ""));
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let head = before.get(line_start..).unwrap_or_default();
        let tail = behind.split('\n').next().unwrap_or_default();
        let (excerpt, caret) = excerpt(head, tail);
        ParseError {
            line: number(before.matches('\n').count() + 1),
            column: number(head.chars().count() + 1),
            message: message.to_string(),
            excerpt,
            caret,
        }
    }

    /// What is wrong and where, without numbers: for a text of which the user wrote only a part.
    pub fn without_numbers(&self) -> String {
        let ParseError { message, excerpt, caret, .. } = self;
        format!("{message}\n{excerpt}\n{:caret$}^", "")
    }

    /// The same error in the terms of the script that the statement is a part of.
    #[must_use]
    pub fn within(mut self, part: &Part<'_>) -> ParseError {
        if self.line == 1 {
            self.column = self.column.saturating_add(part.column.saturating_sub(1));
        }
        self.line = self.line.saturating_add(part.line.saturating_sub(1));
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { line, column, .. } = self;
        write!(f, "line {line}, column {column}: {}", self.without_numbers())
    }
}

impl std::error::Error for ParseError {}

/// A text that is no constant of a type; says what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct LiteralError {
    pub message: String,
}

/// A place in a text, for people.
pub(crate) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// What stands around the end of `head`, and how far from the left `tail` begins in it.
fn excerpt(head: &str, tail: &str) -> (String, usize) {
    let mut kept = head.len();
    let mut width = 0;
    for (at, found) in head.char_indices().rev() {
        width += escaped(found).chars().count();
        if width > EXCERPT_BEFORE {
            break;
        }
        kept = at;
    }
    let mut line = String::from(if kept == 0 { "" } else { LEFT_OUT });
    line.extend(head.get(kept..).unwrap_or_default().chars().map(escaped));
    let caret = line.chars().count();
    let room = EXCERPT_WIDTH.saturating_sub(caret);
    push_cut(&mut line, tail, room);
    (line, caret)
}

/// A piece of a text in double quotes, cut and with its control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    push_cut(&mut out, text, SHOWN_WIDTH);
    out.push('"');
    out
}

/// Adds as much of `text` as has room, and a sign where something is left out.
fn push_cut(out: &mut String, text: &str, room: usize) {
    let mut width = 0;
    // What is cut off again when the text does not fit.
    let mut fits = out.len();
    for found in text.chars() {
        let cell = escaped(found);
        width += cell.chars().count();
        if width > room {
            out.truncate(fits);
            out.push_str(LEFT_OUT);
            return;
        }
        out.push_str(&cell);
        if width + LEFT_OUT.len() <= room {
            fits = out.len();
        }
    }
}

/// One character as it may be printed anywhere: quotes stay, what does not print is escaped.
fn escaped(found: char) -> String {
    match found {
        '\'' | '"' | '\\' => found.to_string(),
        found => found.escape_debug().to_string(),
    }
}
