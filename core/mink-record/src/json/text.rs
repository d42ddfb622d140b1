//! JSON's own grammar, from left to right over one text: what stands next, texts with their escapes, numbers as they are written.
//!
//! Lives on: anywhere (pure).
//! Invariants: it never goes past the end, never recurses, and allocates for a text with escapes alone, less than the text has.
use super::error::{JsonError, JsonErrorKind, quoted};
use std::borrow::Cow;

/// Goes over a text. What was read lies before `at`.
#[derive(Debug)]
pub(super) struct Text<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Text<'a>, JsonError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Text { text, at: 0 }),
            Err(error) => Err(JsonError::new(
                JsonErrorKind::Syntax,
                format!("no UTF-8 at byte {}; send a JSON object in UTF-8", error.valid_up_to()),
            )),
        }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Goes over blanks; gives the byte behind them, 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Goes over so many bytes, which `rest` has shown.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Goes over one byte of the grammar.
    pub(super) fn expect(&mut self, byte: u8, accepted: &str) -> Result<(), JsonError> {
        if self.peek() != byte || self.rest().is_empty() {
            return Err(self.unexpected(accepted));
        }
        self.at += 1;
        Ok(())
    }

    /// Behind an element: whether another follows the comma; else `close` was gone over.
    pub(super) fn more(&mut self, close: u8, accepted: &str) -> Result<bool, JsonError> {
        let found = self.peek();
        if found != b',' && found != close {
            return Err(self.unexpected(accepted));
        }
        self.at += 1;
        Ok(found == b',')
    }

    /// Behind an opening bracket: whether `close` follows, which was gone over.
    pub(super) fn empty(&mut self, close: u8) -> bool {
        let empty = self.peek() == close;
        self.at += usize::from(empty);
        empty
    }

    /// Goes over `true`, `false` or `null`, if it comes next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Nothing but blanks may follow.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        self.peek();
        if self.rest().is_empty() { Ok(()) } else { Err(self.unexpected("nothing behind the object")) }
    }

    /// A number as it is written; none if there is none.
    pub(super) fn number(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let number = rest.get(..number_length(rest.as_bytes()))?;
        self.at += number.len();
        Some(number).filter(|number| !number.is_empty())
    }

    /// A text in its quotes, of which the first comes next.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.expect(b'"', "a text in double quotes")?;
        let plain = self.plain()?;
        if self.rest().first() == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut whole = plain.to_owned();
        while self.rest().first() == Some(&b'\\') {
            whole.push(self.escape()?);
            whole.push_str(self.plain()?);
        }
        self.expect(b'"', "a text in double quotes")?;
        Ok(Cow::Owned(whole))
    }

    /// Up to the next quote or escape.
    fn plain(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        self.at += plain_length(self.rest());
        match self.rest().first() {
            Some(b'"' | b'\\') => Ok(self.text.get(start..self.at).unwrap_or_default()),
            Some(_) => Err(self.unexpected("an escape as \\n or \\u0001 for a control character")),
            None => Err(self.unexpected("a double quote at the text's end")),
        }
    }

    /// The character of an escape, of which the backslash comes next.
    fn escape(&mut self) -> Result<char, JsonError> {
        let simple = match self.rest().get(1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => Some(char::from(*byte)),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            _ => None,
        };
        if let Some(simple) = simple {
            self.at += 2;
            return Ok(simple);
        }
        let (character, length) = unicode_escape(self.rest())
            .ok_or_else(|| self.unexpected("an escape that JSON knows, and surrogates in pairs"))?;
        self.at += length;
        Ok(character)
    }

    /// An error about what comes next.
    pub(super) fn unexpected(&self, accepted: &str) -> JsonError {
        let message = format!("no JSON at byte {}: found {}; use {accepted}", self.at, self.found());
        JsonError::new(JsonErrorKind::Syntax, message)
    }

    /// What comes next, for an error's text.
    pub(super) fn found(&self) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match rest.as_bytes().first() {
            None => "the end".to_owned(),
            Some(b'{') => "an object".to_owned(),
            Some(b'[') => "an array".to_owned(),
            Some(b'"') => {
                let inner = rest.strip_prefix('"').unwrap_or_default();
                let end = inner.find('"').unwrap_or(inner.len());
                format!("the text {}", quoted(inner.get(..end).unwrap_or_default()))
            }
            Some(_) => {
                let stop = |symbol: char| matches!(symbol, ' ' | '\n' | '\r' | '\t' | ',' | ']' | '}');
                // One that stops at once is shown itself.
                let end = rest.char_indices().skip(1).find(|(_, symbol)| stop(*symbol));
                quoted(rest.get(..end.map_or(rest.len(), |(end, _)| end)).unwrap_or_default())
            }
        }
    }

    /// To say what was found where a value begins, after going past it.
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, mark: usize) {
        self.at = mark;
    }
}

/// The character of `\u` with four digits, or of two of them that are a pair, and the bytes it takes.
fn unicode_escape(text: &[u8]) -> Option<(char, usize)> {
    let unit = |text: &[u8]| {
        let digits = text.strip_prefix(b"\\u")?.first_chunk::<4>()?;
        digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
    };
    let first = unit(text)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    // A high surrogate and a low one.
    let second = unit(text.get(6..)?).filter(|second| (0xdc00..0xe000).contains(second))?;
    let high = Some(first).filter(|first| *first < 0xdc00)?;
    let character = char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (second - 0xdc00))?;
    Some((character, 12))
}

/// Bytes before the first quote, backslash or control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The top bit of each byte that is zero, and perhaps of bytes behind such a one: the first is right.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut length = 0;
    let (words, _) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let found = zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c)) | control;
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = bytes.get(length..).unwrap_or_default();
    let stop = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    length + rest.iter().position(stop).unwrap_or(rest.len())
}

/// Bytes of the number that a text begins with; 0 if it begins with none.
pub(super) fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let begin = usize::from(text.first() == Some(&b'-'));
    let mut length = begin
        + match text.get(begin) {
            Some(b'0') => 1,
            Some(b'1'..=b'9') => digits(begin),
            _ => return 0,
        };
    if text.get(length) == Some(&b'.') {
        match digits(length + 1) {
            0 => return 0,
            fraction => length += 1 + fraction,
        }
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        match digits(length + 1 + sign) {
            0 => return 0,
            exponent => length += 1 + sign + exponent,
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_text_ends_where_a_look_at_each_byte_says(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(0x1f), Just(0x20), Just(0x80), Just(0xa2)], 0..40,
        )) {
            let slow = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            prop_assert_eq!(plain_length(&bytes), slow.unwrap_or(bytes.len()));
        }

        #[test]
        fn a_text_is_read_as_serde_json_reads_it(text in "\"([a-z\u{e9}\\\\\"u0-9dDcC/nbrtf]|\\\\u[dD][89a-fA-F][0-9]{2}|\\\\n){0,12}\"?") {
            let ours = Text::new(text.as_bytes()).and_then(|mut text| {
                let string = text.string()?.into_owned();
                text.end()?;
                Ok(string)
            });
            prop_assert_eq!(ours.ok(), serde_json::from_str::<String>(&text).ok());
        }

        #[test]
        fn a_number_is_one_where_serde_json_says_so(text in "-?[0-9]{0,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?") {
            let whole = !text.is_empty() && number_length(text.as_bytes()) == text.len();
            prop_assert_eq!(whole, serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
        }
    }
}
