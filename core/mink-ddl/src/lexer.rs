//! A text's words, one after the other.
//!
//! Lives on: anywhere (pure).
//! Owns: its place in the text. It allocates nothing.
//! Invariants: every token but the end takes at least one byte, so that a loop over tokens ends. Any text has tokens: what is no
//! SQL comes as a symbol or as something that is not closed, and the parser refuses it.

/// A piece of the text. Quoted ones come without their outer quotes, and with the inner ones still doubled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind<'a> {
    /// A keyword, or a name without quotes.
    Word(&'a str),
    /// A name in double quotes or backticks.
    Quoted {
        body: &'a str,
        quote: char,
    },
    /// `'text'`
    Text(&'a str),
    /// `X'00ff'`
    Hex(&'a str),
    /// Digits, with fraction and exponent if they are there. The sign is a symbol of its own.
    Number(&'a str),
    Symbol(char),
    /// A quote or comment that the text ends in: what it lacks.
    Unclosed(&'static str),
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    /// Its first byte, and the one behind its last.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads tokens; a copy of it looks ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token; the end again and again once it is reached.
    pub(crate) fn token(&mut self) -> Token<'a> {
        let unclosed_at = self.skip_blanks();
        let start = unclosed_at.unwrap_or(self.at);
        let kind = if unclosed_at.is_some() { Kind::Unclosed("*/") } else { self.kind() };
        if matches!(kind, Kind::Unclosed(_)) {
            self.at = self.text.len();
        }
        Token { kind, start, end: self.at }
    }

    fn kind(&mut self) -> Kind<'a> {
        let rest = self.rest();
        let mut characters = rest.chars();
        let Some(first) = characters.next() else { return Kind::End };
        match first {
            '\'' => self.quoted(first).map_or(Kind::Unclosed("'"), Kind::Text),
            '"' => self.quoted(first).map_or(Kind::Unclosed("\""), |body| Kind::Quoted { body, quote: '"' }),
            '`' => self.quoted(first).map_or(Kind::Unclosed("`"), |body| Kind::Quoted { body, quote: '`' }),
            'x' | 'X' if characters.next() == Some('\'') => {
                self.at += 1;
                self.quoted('\'').map_or(Kind::Unclosed("'"), Kind::Hex)
            }
            '0'..='9' => Kind::Number(self.take(number_length(rest))),
            '_' => Kind::Word(self.word()),
            first if first.is_alphabetic() => Kind::Word(self.word()),
            first => {
                self.at += first.len_utf8();
                Kind::Symbol(first)
            }
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let inside = |found: char| found == '_' || found.is_alphanumeric();
        self.take(rest.find(|found| !inside(found)).unwrap_or(rest.len()))
    }

    /// What stands between this quote and the one that closes it; a doubled one is part of it.
    fn quoted(&mut self, quote: char) -> Option<&'a str> {
        let body = self.text.get(self.at + 1..)?;
        let mut end = 0;
        loop {
            end += body.get(end..)?.find(quote)?;
            if !body.get(end + 1..)?.starts_with(quote) {
                break;
            }
            end += 2;
        }
        self.at += end + 2;
        body.get(..end)
    }

    /// Goes over blanks and comments; gives where a comment begins that is not closed.
    fn skip_blanks(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest();
            // Editors of some systems put the second one at a file's beginning.
            let blank = |found: char| found.is_whitespace() || found == '\u{feff}';
            let trimmed = rest.trim_start_matches(blank);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("--") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                match comment_length(trimmed) {
                    Some(length) => self.at += length,
                    None => return Some(self.at),
                }
            } else {
                return None;
            }
        }
    }
}

/// Bytes of the comment that `text` begins with, inner comments included; none if it is not closed.
fn comment_length(text: &str) -> Option<usize> {
    let (mut open, mut at) = (0_usize, 0);
    // One pass: looking for both marks anew from each would take the square of a hostile text's length.
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => open += 1,
            b"*/" => open = open.saturating_sub(1),
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Bytes of the number that `text` begins with.
pub(crate) fn number_length(text: &str) -> usize {
    let digits =
        |from: usize| text.get(from..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
    let starts = |from: usize, with: &[char]| text.get(from..).is_some_and(|rest| rest.starts_with(with));
    let mut length = digits(0);
    if starts(length, &['.']) && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if starts(length, &['e', 'E']) {
        let sign = usize::from(starts(length + 1, &['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// A quoted body with its doubled quotes made single.
pub(crate) fn undoubled(body: &str, quote: char) -> String {
    let mut out = String::with_capacity(body.len());
    let mut characters = body.chars();
    while let Some(found) = characters.next() {
        out.push(found);
        if found == quote {
            // A body holds quotes in pairs alone.
            characters.next();
        }
    }
    out
}
