//! Types of columns, under their own names and those of other systems.
//!
//! Lives on: anywhere (pure).
//! Invariants: it goes down at most as deep as a schema may be nested, and gives at most as many fields as one may have.
use crate::error::ParseError;
use crate::lexer::Kind;
use crate::parser::Parser;
use mink_types::schema::{
    COMMENT_BYTES_MAX, DECIMAL_PRECISION_MAX, DataType, Field, LENGTH_MAX, SCHEMA_DEPTH_MAX,
    SCHEMA_FIELDS_MAX, TIME_PRECISION_MAX,
};

/// What a column without a precision gets, as in the standard.
const TIME_PRECISION_DEFAULT: u8 = 0;
const TIMESTAMP_PRECISION_DEFAULT: u8 = 6;

const TYPES: &str = "a type: BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), CHAR(n), STRING, BINARY(n), \
                     BYTES, DATE, TIME(p), TIMESTAMP(p), TIMESTAMP_LTZ(p), ARRAY<T>, MAP<K, V> or ROW<name T, ...>";

impl Parser<'_> {
    /// The type of a column.
    pub(crate) fn data_type(&mut self) -> Result<DataType, ParseError> {
        self.data_type_at(1)
    }

    /// A type at a depth, columns being at 1.
    fn data_type_at(&mut self, depth: usize) -> Result<DataType, ParseError> {
        let Kind::Word(word) = self.kind() else { return Err(self.expected(TYPES)) };
        if depth > SCHEMA_DEPTH_MAX {
            return Err(self.expected(format_args!("types nested at most {SCHEMA_DEPTH_MAX} deep")));
        }
        self.count_field()?;
        let name = word.to_ascii_uppercase();
        if let Some(remedy) = not_there_yet(&name) {
            return Err(self.expected(format_args!("{remedy}; this type is not there yet")));
        }
        let known = is_type(&name);
        if !known {
            return Err(self.expected(TYPES));
        }
        self.advance();
        match name.as_str() {
            "ARRAY" => self.array(depth),
            "MAP" => self.map(depth),
            "ROW" => self.row(depth),
            name => self.scalar(name),
        }
    }

    /// One more column or nested field.
    fn count_field(&mut self) -> Result<(), ParseError> {
        self.fields += 1;
        if self.fields > SCHEMA_FIELDS_MAX {
            return Err(self.expected(format_args!("at most {SCHEMA_FIELDS_MAX} columns and nested fields")));
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<DataType, ParseError> {
        self.symbol('<')?;
        let data_type = self.data_type_at(depth + 1)?;
        let nullable = self.nullable()?.unwrap_or(true);
        self.symbol('>')?;
        Ok(DataType::Array(Box::new(Field { nullable, ..Field::new("element", data_type) })))
    }

    fn map(&mut self, depth: usize) -> Result<DataType, ParseError> {
        self.symbol('<')?;
        let key = self.data_type_at(depth + 1)?;
        if self.at_word("NULL") {
            return Err(self.expected("',': the keys of a MAP are never null"));
        }
        self.nullable()?;
        self.symbol(',')?;
        let value = self.data_type_at(depth + 1)?;
        let nullable = self.nullable()?.unwrap_or(true);
        self.symbol('>')?;
        let key = Box::new(Field::new("key", key).not_null());
        Ok(DataType::Map { key, value: Box::new(Field { nullable, ..Field::new("value", value) }) })
    }

    /// `<a INT, ...>` or `(a INT, ...)`.
    fn row(&mut self, depth: usize) -> Result<DataType, ParseError> {
        let closing = match self.kind() {
            Kind::Symbol('<') => '>',
            Kind::Symbol('(') => ')',
            _ => return Err(self.expected("'<' or '('")),
        };
        self.advance();
        let fields = self.list_until(closing, SCHEMA_FIELDS_MAX, |parser| {
            let name = parser.field_name()?;
            let data_type = parser.data_type_at(depth + 1)?;
            let nullable = parser.nullable()?.unwrap_or(true);
            let comment = if parser.take_word("COMMENT") { Some(parser.comment()?) } else { None };
            Ok(Field { nullable, comment, ..Field::new(name, data_type) })
        })?;
        Ok(DataType::Row(fields))
    }

    /// `NOT NULL` or `NULL`, if one of them comes next.
    pub(crate) fn nullable(&mut self) -> Result<Option<bool>, ParseError> {
        if self.take_words(&["NOT", "NULL"])? {
            return Ok(Some(false));
        }
        Ok(self.take_word("NULL").then_some(true))
    }

    /// The text behind COMMENT.
    pub(crate) fn comment(&mut self) -> Result<String, ParseError> {
        let place = self.place();
        let comment = self.text("the comment")?;
        if comment.len() > COMMENT_BYTES_MAX {
            let bytes = comment.len();
            let message = format_args!("a comment of {bytes} bytes; accepted: at most {COMMENT_BYTES_MAX}");
            return Err(self.error(place, message));
        }
        Ok(comment)
    }

    /// What stands behind the name of a type that has no fields.
    fn scalar(&mut self, name: &str) -> Result<DataType, ParseError> {
        Ok(match name {
            "BOOLEAN" | "BOOL" => DataType::Boolean,
            "TINYINT" => DataType::TinyInt,
            "SMALLINT" => DataType::SmallInt,
            "INT" | "INTEGER" => DataType::Int,
            "BIGINT" => DataType::BigInt,
            "FLOAT" | "REAL" => DataType::Float,
            "DOUBLE" => {
                self.take_word("PRECISION");
                DataType::Double
            }
            "DECIMAL" | "NUMERIC" => self.decimal()?,
            "CHAR" => DataType::Char { length: self.length()? },
            "BINARY" => DataType::Binary { length: self.length()? },
            // A CHAR here is as long as its text, which elsewhere is called a VARCHAR.
            "VARCHAR" if self.at_symbol('(') => DataType::Char { length: self.length()? },
            "VARBINARY" if self.at_symbol('(') => DataType::Binary { length: self.length()? },
            "BYTES" | "VARBINARY" => DataType::Bytes,
            "DATE" => DataType::Date,
            "TIME" => DataType::Time { precision: self.precision(TIME_PRECISION_DEFAULT)? },
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" | "TIMESTAMPTZ" => {
                DataType::TimestampLtz { precision: self.precision(TIMESTAMP_PRECISION_DEFAULT)? }
            }
            // STRING, TEXT, VARCHAR: `is_type` knows no others.
            _ => DataType::String,
        })
    }

    /// `(p, s)` or `(p)`. Systems differ in what a DECIMAL without them is, so it is refused.
    fn decimal(&mut self) -> Result<DataType, ParseError> {
        let accepted = format!("(precision, scale) with a precision from 1 to {DECIMAL_PRECISION_MAX}");
        if !self.take_symbol('(') {
            return Err(self.expected(accepted));
        }
        let precision = self.number_within(1, DECIMAL_PRECISION_MAX, "a precision")?;
        let scale = if self.take_symbol(',') { self.number_within(0, precision, "a scale")? } else { 0 };
        self.symbol(')')?;
        Ok(DataType::Decimal { precision, scale })
    }

    /// `(n)`
    fn length(&mut self) -> Result<u32, ParseError> {
        let accepted = format!("(length) with a length from 1 to {LENGTH_MAX}");
        if !self.take_symbol('(') {
            return Err(self.expected(accepted));
        }
        let place = self.place();
        let length = self.whole_number(format_args!("a length from 1 to {LENGTH_MAX}"))?;
        if !(1..=LENGTH_MAX).contains(&length) {
            return Err(
                self.error(place, format_args!("found {length}; accepted: a length from 1 to {LENGTH_MAX}"))
            );
        }
        self.symbol(')')?;
        Ok(length)
    }

    /// `(p)` of a time, or nothing.
    fn precision(&mut self, default: u8) -> Result<u8, ParseError> {
        if !self.take_symbol('(') {
            return Ok(default);
        }
        let precision = self.number_within(0, TIME_PRECISION_MAX, "a precision")?;
        self.symbol(')')?;
        Ok(precision)
    }

    fn number_within(&mut self, least: u8, most: u8, what: &str) -> Result<u8, ParseError> {
        let place = self.place();
        let accepted = format!("{what} from {least} to {most}");
        let number = self.whole_number(&accepted)?;
        let fits = u8::try_from(number).ok().filter(|number| (least..=most).contains(number));
        fits.ok_or_else(|| self.error(place, format_args!("found {number}; accepted: {accepted}")))
    }

    /// `TIMESTAMP [(p)] [WITHOUT TIME ZONE | WITH [LOCAL] TIME ZONE]`
    fn timestamp(&mut self) -> Result<DataType, ParseError> {
        let precision = self.precision(TIMESTAMP_PRECISION_DEFAULT)?;
        if self.take_word("WITH") {
            self.take_word("LOCAL");
            self.word("TIME")?;
            self.word("ZONE")?;
            return Ok(DataType::TimestampLtz { precision });
        }
        self.take_words(&["WITHOUT", "TIME", "ZONE"])?;
        Ok(DataType::Timestamp { precision })
    }
}

/// Whether this is a type's name, in capitals.
fn is_type(name: &str) -> bool {
    matches!(
        name,
        "BOOLEAN"
            | "BOOL"
            | "TINYINT"
            | "SMALLINT"
            | "INT"
            | "INTEGER"
            | "BIGINT"
            | "FLOAT"
            | "REAL"
            | "DOUBLE"
            | "DECIMAL"
            | "NUMERIC"
            | "CHAR"
            | "VARCHAR"
            | "STRING"
            | "TEXT"
            | "BINARY"
            | "VARBINARY"
            | "BYTES"
            | "DATE"
            | "TIME"
            | "TIMESTAMP"
            | "TIMESTAMP_LTZ"
            | "TIMESTAMPTZ"
            | "ARRAY"
            | "MAP"
            | "ROW"
    )
}

/// What to use for a type that is planned.
fn not_there_yet(name: &str) -> Option<&'static str> {
    match name {
        "UUID" => Some("STRING or BINARY(16)"),
        "VARIANT" => Some("STRING or BYTES"),
        _ => None,
    }
}
