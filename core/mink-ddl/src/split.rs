//! The statements of a script. They need not be ours: it looks for semicolons outside quotes and comments, and for nothing else.
//!
//! Lives on: anywhere (pure).
//! Owns: its place in the script. It allocates nothing but an error, so that a script may be of any length.
use crate::error::{ParseError, number};
use crate::lexer::{Kind, Lexer, Token};

/// One statement of a script, without the semicolon and the comments around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    pub text: &'a str,
    /// Where it begins in the script; both from 1.
    pub line: u32,
    pub column: u32,
}

/// The statements of a script, in order; it ends behind a fault.
#[derive(Clone, Debug)]
pub struct Split<'a> {
    script: &'a str,
    lexer: Lexer<'a>,
    /// A byte, and what has been counted up to it: newlines, and the characters behind the last of them.
    counted: usize,
    newlines: usize,
    characters: usize,
}

/// Splits a script into its statements. Empty ones are left out. An open quote or comment is a fault.
///
/// ```
/// let parts: Vec<_> = mink_ddl::split("DROP TABLE a.b; -- gone\nSHOW TABLES;").collect::<Result<_, _>>()?;
/// assert_eq!(parts.iter().map(|part| part.text).collect::<Vec<_>>(), ["DROP TABLE a.b", "SHOW TABLES"]);
/// assert_eq!((parts[1].line, parts[1].column), (2, 1));
/// # Ok::<(), mink_ddl::ParseError>(())
/// ```
pub fn split(script: &str) -> Split<'_> {
    Split { script, lexer: Lexer::new(script), counted: 0, newlines: 0, characters: 0 }
}

impl<'a> Iterator for Split<'a> {
    type Item = Result<Part<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = loop {
            let token = self.lexer.token();
            match token.kind {
                Kind::End => return None,
                Kind::Symbol(';') => {}
                _ => break token,
            }
        };
        let mut last = first;
        let mut token = first;
        loop {
            match token.kind {
                Kind::End | Kind::Symbol(';') => break,
                // Behind it the lexer is at the end.
                Kind::Unclosed(closing) => return Some(Err(unclosed(self.script, token, closing))),
                _ => last = token,
            }
            token = self.lexer.token();
        }
        let text = self.script.get(first.start..last.end).unwrap_or_default();
        let (line, column) = self.place(first.start);
        Some(Ok(Part { text, line, column }))
    }
}

impl Split<'_> {
    /// Line and column of a byte behind all that were asked for. Each character is counted once, however many statements a line has.
    fn place(&mut self, start: usize) -> (u32, u32) {
        let passed = self.script.get(self.counted..start).unwrap_or_default();
        self.counted = start;
        self.newlines += passed.matches('\n').count();
        match passed.rsplit_once('\n') {
            Some((_, head)) => self.characters = head.chars().count(),
            None => self.characters += passed.chars().count(),
        }
        (number(self.newlines + 1), number(self.characters + 1))
    }
}

/// The error of a quote or comment that does not end.
pub(crate) fn unclosed(text: &str, token: Token<'_>, closing: &str) -> ParseError {
    ParseError::at(text, token.start, format_args!("what begins here has no closing {closing}"))
}
