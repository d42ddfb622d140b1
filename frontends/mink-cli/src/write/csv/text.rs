//! CSV's own rules: fields between commas, records between line ends, quotes around what has either. RFC 4180.
//!
//! Lives on: the reading thread.
//! Owns: the record that is being read.
//! Invariants: I20: a record has at most `RECORD_BYTES_MAX` bytes and `FIELDS_MAX` fields. A field in quotes is told apart from one without.
use super::super::input::{Bytes, LINE_BYTES_MAX, cannot_read};
use super::super::portion::Stop;
use crate::numbers;
use std::io::BufRead;
use std::ops::Range;

/// Longest record, in bytes.
const RECORD_BYTES_MAX: usize = LINE_BYTES_MAX;
/// Fields of one record.
const FIELDS_MAX: usize = 1 << 16;

/// One record.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The line that it begins in, from 1.
    pub(super) line: u64,
    text: Vec<u8>,
    fields: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    within: Range<usize>,
    is_quoted: bool,
}

/// A field as it was written, without its quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field<'a> {
    pub(super) text: &'a [u8],
    pub(super) is_quoted: bool,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|piece| Field {
            text: self.text.get(piece.within.clone()).unwrap_or_default(),
            is_quoted: piece.is_quoted,
        })
    }

    /// Whether nothing stands in it: a blank line.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty() && self.fields.len() == 1 && self.fields.iter().all(|piece| !piece.is_quoted)
    }

    fn clear(&mut self, line: u64) {
        self.line = line;
        self.text.clear();
        self.fields.clear();
    }
}

/// Goes from record to record.
pub(super) struct Records {
    bytes: Bytes,
    /// The line that comes next, from 1.
    line: u64,
}

/// Where in a record the reader is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Before the first byte of a field.
    Begin,
    /// In a field without quotes.
    Plain,
    /// Behind a carriage return there: of the line's end, if that comes next.
    PlainReturn,
    /// Between quotes.
    Quoted,
    /// Behind a quote there: the last one, or half of one that is part of the field.
    Quote,
    /// Behind a carriage return behind the last quote.
    QuoteReturn,
}

impl Records {
    pub(super) fn new(bytes: Bytes) -> Records {
        Records { bytes, line: 1 }
    }

    /// Whether the next record may be long in coming.
    pub(super) fn may_wait(&self) -> bool {
        self.bytes.buffer().is_empty()
    }

    /// Reads the next record; false at the end of the input.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<bool, Stop> {
        record.clear(self.line);
        let mut reader = Reader { record, at: At::Begin, field: 0, line: self.line, bytes: 0 };
        loop {
            let buffer = self.bytes.fill_buf().map_err(|error| cannot_read(&error))?;
            if buffer.is_empty() {
                return reader.end();
            }
            let (taken, is_whole) = reader.take(buffer)?;
            self.bytes.consume(taken);
            self.line = reader.line;
            if is_whole {
                return Ok(true);
            }
        }
    }
}

/// One record while it is read.
struct Reader<'a> {
    record: &'a mut Record,
    at: At,
    /// Where the field began in the record's text.
    field: usize,
    line: u64,
    /// Bytes of the record so far, quotes and commas too.
    bytes: usize,
}

impl Reader<'_> {
    /// Takes bytes up to the end of the record: how many, and whether that was there.
    fn take(&mut self, buffer: &[u8]) -> Result<(usize, bool), Stop> {
        for (place, byte) in buffer.iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
            }
            if self.step(*byte)? {
                return Ok((place + 1, true));
            }
        }
        self.bytes = self.bytes.saturating_add(buffer.len());
        if self.bytes > RECORD_BYTES_MAX {
            return Err(self.wrong(&format!(
                "the row is longer than {}; does a quote not end?",
                numbers::bytes(RECORD_BYTES_MAX as u64)
            )));
        }
        Ok((buffer.len(), false))
    }

    /// Takes one byte; true if the record ends with it.
    fn step(&mut self, byte: u8) -> Result<bool, Stop> {
        self.at = match (self.at, byte) {
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, byte) => {
                self.record.text.push(byte);
                At::Quoted
            }
            (At::Quote, b'"') => {
                self.record.text.push(b'"');
                At::Quoted
            }
            (_, b'\n') => {
                self.close()?;
                return Ok(true);
            }
            (At::PlainReturn, byte) => {
                // It was part of the field.
                self.record.text.push(b'\r');
                self.at = At::Plain;
                return self.step(byte);
            }
            (At::QuoteReturn, _) => return Err(self.behind_quote()),
            (_, b',') => {
                self.close()?;
                At::Begin
            }
            (At::Quote, b'\r') => At::QuoteReturn,
            (At::Quote, _) => return Err(self.behind_quote()),
            (At::Begin | At::Plain, b'\r') => At::PlainReturn,
            (At::Begin, b'"') => At::Quoted,
            (At::Plain, b'"') => {
                return Err(self.wrong(
                    "a quote stands in a field that does not begin with one; put the field in quotes, and write the quote twice",
                ));
            }
            (At::Begin | At::Plain, byte) => {
                self.record.text.push(byte);
                At::Plain
            }
        };
        Ok(false)
    }

    /// Ends a field.
    fn close(&mut self) -> Result<(), Stop> {
        if self.record.fields.len() >= FIELDS_MAX {
            return Err(self.wrong(&format!("more than {} fields", numbers::count(FIELDS_MAX as u64))));
        }
        let end = self.record.text.len();
        let is_quoted = matches!(self.at, At::Quote | At::QuoteReturn);
        self.record.fields.push(Piece { within: self.field..end, is_quoted });
        self.field = end;
        Ok(())
    }

    /// What the end of the input means here.
    fn end(mut self) -> Result<bool, Stop> {
        match self.at {
            At::Begin if self.record.fields.is_empty() => return Ok(false),
            At::Quoted => return Err(self.wrong("a quote does not end")),
            At::PlainReturn => self.record.text.push(b'\r'),
            At::Begin | At::Plain | At::Quote | At::QuoteReturn => {}
        }
        self.close()?;
        Ok(true)
    }

    fn behind_quote(&self) -> Stop {
        self.wrong("something stands between the end of a quote and the next comma; write a quote that is part of the field twice")
    }

    fn wrong(&self, what: &str) -> Stop {
        Stop::Wrong(format!("line {}: {what}", self.record.line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::input::tests::bytes;
    use super::*;

    /// Fields of all records; one in quotes has them on.
    fn read(text: &[u8]) -> Result<Vec<(u64, Vec<String>)>, String> {
        let (mut records, mut record, mut found) = (Records::new(bytes(text)), Record::default(), Vec::new());
        loop {
            match records.next(&mut record) {
                Ok(true) => {}
                Ok(false) => return Ok(found),
                Err(Stop::Wrong(what)) => return Err(what),
                Err(Stop::Nobody) => panic!("nobody listens to a tokenizer"),
            }
            let shown = record.fields().map(|field| {
                let text = String::from_utf8_lossy(field.text).into_owned();
                if field.is_quoted { format!("<{text}>") } else { text }
            });
            found.push((record.line, shown.collect()));
        }
    }

    fn fields(text: &str) -> Vec<Vec<String>> {
        read(text.as_bytes()).expect("sound").into_iter().map(|(_, fields)| fields).collect()
    }

    #[test]
    fn fields_lie_between_commas_and_records_between_line_ends() {
        for end in ["", "\n", "\r\n"] {
            assert_eq!(fields(&format!("a,b\nc,{end}")), [["a", "b"], ["c", ""]]);
        }
        assert_eq!(fields("a\r\nb\r\n"), [["a"], ["b"]]);
        assert_eq!(fields(""), Vec::<Vec<String>>::new());
        assert_eq!(fields("\n\n"), [[""], [""]]);
        assert_eq!(fields(",,"), [["", "", ""]]);
    }

    #[test]
    fn quotes_hold_commas_line_ends_and_quotes_and_are_told_apart_from_none() {
        assert_eq!(fields("\"a,\"\"b\"\"\nc\",d\r\n"), [["<a,\"b\"\nc>", "d"]]);
        assert_eq!(fields("\"\",\n"), [["<>", ""]]);
        assert_eq!(fields("\"a\"\r\n\"b\""), [["<a>"], ["<b>"]]);
        // A carriage return that ends no line is part of its field.
        assert_eq!(fields("a\rb,\"c\rd\""), [["a\rb", "<c\rd>"]]);
        assert_eq!(fields("a\r"), [["a\r"]]);
    }

    #[test]
    fn a_record_knows_the_line_it_begins_in() {
        let found = read(b"a\n\"b\n\n\"\nc").expect("sound");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 5]);
    }

    #[test]
    fn quotes_in_wrong_places_are_refused_with_the_line() {
        for (text, line, word) in [
            ("a\nb\"c\n", 2, "put the field in quotes"),
            ("\"a\"b\n", 1, "between the end of a quote"),
            ("\"a\"\rb\n", 1, "between the end of a quote"),
            ("a\n\"b\n\n", 2, "does not end"),
        ] {
            let what = read(text.as_bytes()).expect_err(text);
            assert!(what.starts_with(&format!("line {line}: ")) && what.contains(word), "{what}");
        }
    }

    #[test]
    fn a_quote_without_end_and_fields_without_number_are_refused_before_they_fill_the_memory() {
        let endless: Box<dyn std::io::Read + Send> =
            Box::new(std::io::Read::chain(&b"\""[..], std::io::repeat(b'x')));
        let mut records = Records::new(std::io::BufReader::with_capacity(1 << 20, endless));
        let Err(Stop::Wrong(what)) = records.next(&mut Record::default()) else { panic!("it has no end") };
        assert!(what.contains("longer than 64.0 MiB"), "{what}");
        let what = read(&b",".repeat(FIELDS_MAX)).expect_err("too many");
        assert!(what.contains("more than 65,536 fields"), "{what}");
    }
}
