//! Constants as SQL writes them: with quotes, and a word in front that says what they are.
//!
//! Lives on: anywhere (pure).
use crate::error::{LiteralError, ParseError, shown};
use crate::lexer::Kind;
use crate::literal::{accepted, bytes, hex, literal_of, literal_text};
use crate::parser::Parser;
use mink_types::schema::{DataType, Literal};

/// What kind of constant was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    Null,
    Boolean,
    Number,
    Text,
    Hex,
    Date,
    Time,
    Timestamp,
}

/// A constant before the type of its column is looked at: its plain text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) kind: ValueKind,
    pub(crate) text: String,
}

/// What a value may be, for errors.
const VALUES: &str =
    "a value: a number, 'text', X'hex', TRUE, FALSE, NULL, DATE '...', TIME '...' or TIMESTAMP '...'";

impl Parser<'_> {
    /// Any constant.
    pub(crate) fn value(&mut self) -> Result<Value, ParseError> {
        let (kind, text) = match self.kind() {
            Kind::Symbol('-') => {
                self.advance();
                let Kind::Number(digits) = self.kind() else { return Err(self.expected("a number")) };
                (ValueKind::Number, format!("-{digits}"))
            }
            Kind::Symbol('+') => {
                self.advance();
                let Kind::Number(digits) = self.kind() else { return Err(self.expected("a number")) };
                (ValueKind::Number, digits.to_owned())
            }
            Kind::Number(digits) => (ValueKind::Number, digits.to_owned()),
            Kind::Hex(digits) => match bytes(digits) {
                Some(bytes) => (ValueKind::Hex, hex(&bytes)),
                None => return Err(self.expected("X'...' with two hexadecimal digits for each byte")),
            },
            Kind::Text(_) => return Ok(Value { kind: ValueKind::Text, text: self.text("text")? }),
            Kind::Word(word) => match constant_word(word) {
                Some((kind, text)) => (kind, text.to_owned()),
                None => return self.value_of_word(word),
            },
            _ => return Err(self.expected(VALUES)),
        };
        self.advance();
        Ok(Value { kind, text })
    }

    /// `DATE '2026-01-31'` and the like.
    fn value_of_word(&mut self, word: &str) -> Result<Value, ParseError> {
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        let kind = if is(&["DATE"]) {
            ValueKind::Date
        } else if is(&["TIME"]) {
            ValueKind::Time
        } else if is(&["TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMPTZ"]) {
            ValueKind::Timestamp
        } else {
            return Err(self.expected(VALUES));
        };
        self.advance();
        Ok(Value { kind, text: self.text("its text")? })
    }

    /// A constant for a column of this type; none for NULL.
    pub(crate) fn value_of(&mut self, data_type: &DataType) -> Result<Option<Literal>, ParseError> {
        let place = self.place();
        let value = self.value()?;
        typed(data_type, &value).map_err(|error| self.error(place, error))
    }
}

/// TRUE, FALSE and NULL, with their plain text.
fn constant_word(word: &str) -> Option<(ValueKind, &'static str)> {
    let words = [
        ("TRUE", ValueKind::Boolean, "true"),
        ("FALSE", ValueKind::Boolean, "false"),
        ("NULL", ValueKind::Null, ""),
    ];
    words.iter().find(|(known, ..)| word.eq_ignore_ascii_case(known)).map(|(_, kind, text)| (*kind, *text))
}

/// The constant that a value is in a column of this type.
fn typed(data_type: &DataType, value: &Value) -> Result<Option<Literal>, LiteralError> {
    let (fits, way) = match data_type {
        _ if value.kind == ValueKind::Null => return Ok(None),
        DataType::Boolean => (value.kind == ValueKind::Boolean, ""),
        DataType::TinyInt
        | DataType::SmallInt
        | DataType::Int
        | DataType::BigInt
        | DataType::Float
        | DataType::Double
        | DataType::Decimal { .. } => (value.kind == ValueKind::Number, ""),
        DataType::Char { .. } | DataType::String => (value.kind == ValueKind::Text, " in single quotes"),
        DataType::Binary { .. } | DataType::Bytes => (value.kind == ValueKind::Hex, ", as X'00ff'"),
        DataType::Date => (matches!(value.kind, ValueKind::Date | ValueKind::Text), ", as DATE '...'"),
        DataType::Time { .. } => (matches!(value.kind, ValueKind::Time | ValueKind::Text), ", as TIME '...'"),
        DataType::Timestamp { .. } | DataType::TimestampLtz { .. } => {
            (matches!(value.kind, ValueKind::Timestamp | ValueKind::Text), ", as TIMESTAMP '...'")
        }
        DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => (true, ""),
    };
    if !fits {
        let (text, accepted) = (shown(&value.text), accepted(data_type));
        let kind = match value.kind {
            ValueKind::Null => "NULL",
            ValueKind::Boolean => "the truth value",
            ValueKind::Number => "the number",
            ValueKind::Text => "the text",
            ValueKind::Hex => "the bytes",
            ValueKind::Date => "the date",
            ValueKind::Time => "the time",
            ValueKind::Timestamp => "the timestamp",
        };
        let message = format!("{kind} {text} is no {data_type}; accepted: {accepted}{way}, or NULL");
        return Err(LiteralError { message });
    }
    literal_of(data_type, &value.text).map(Some)
}

/// A constant as SQL writes it, for a column of this type.
pub(crate) fn sql_literal(data_type: &DataType, literal: &Literal) -> String {
    let text = literal_text(data_type, literal);
    match (data_type, literal) {
        (_, Literal::Boolean(value)) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        (_, Literal::Bytes(_)) => format!("X'{text}'"),
        (DataType::Date, Literal::Integer(_)) => format!("DATE '{text}'"),
        (DataType::Time { .. }, Literal::Integer(_)) => format!("TIME '{text}'"),
        (DataType::Timestamp { .. } | DataType::TimestampLtz { .. }, Literal::Integer(_)) => {
            format!("TIMESTAMP '{text}'")
        }
        (_, Literal::Text(_)) => format!("'{}'", text.replace('\'', "''")),
        (_, Literal::Integer(_) | Literal::Double(_) | Literal::Decimal(_)) => text,
    }
}
