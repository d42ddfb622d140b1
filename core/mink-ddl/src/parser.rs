//! The place in a text, and what every statement is made of: keywords, names, texts, lists.
//!
//! Lives on: anywhere (pure).
//! Owns: its place; one token is read ahead.
//! Invariants: a method that gives an error may have gone on, so nothing is tried twice: what comes next is decided by looking.
use crate::TEXT_BYTES_MAX;
use crate::error::{ParseError, shown};
use crate::lexer::{Kind, Lexer, Token, undoubled};
use crate::split::unclosed;
use mink_types::schema::COLUMN_NAME_BYTES_MAX;
use mink_types::{DatabaseName, TableName, TablePath};
use std::fmt;

/// Words that are no names unless they are quoted: where they stand, a name could stand as well.
const RESERVED: [&str; 9] =
    ["COLUMN", "CONSTRAINT", "IF", "NOT", "NULL", "PARTITION", "PRIMARY", "TABLE", "TO"];

/// Whether a word is a name only in quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    token: Token<'a>,
    default_database: Option<&'a DatabaseName>,
    /// Columns and nested fields so far.
    pub(crate) fields: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(
        text: &'a str,
        default_database: Option<&'a DatabaseName>,
    ) -> Result<Parser<'a>, ParseError> {
        if text.len() > TEXT_BYTES_MAX {
            let bytes = text.len();
            let message = format_args!("a statement of {bytes} bytes; accepted: at most {TEXT_BYTES_MAX}");
            return Err(ParseError::at("", 0, message));
        }
        let mut lexer = Lexer::new(text);
        let token = lexer.token();
        Ok(Parser { text, lexer, token, default_database, fields: 0 })
    }

    /// What comes next.
    pub(crate) fn kind(&self) -> Kind<'a> {
        self.token.kind
    }

    /// What comes behind that.
    fn second(&self) -> Kind<'a> {
        let mut ahead = self.lexer;
        ahead.token().kind
    }

    /// Where the next token begins: for [`Parser::error`].
    pub(crate) fn place(&self) -> usize {
        self.token.start
    }

    pub(crate) fn advance(&mut self) {
        self.token = self.lexer.token();
    }

    pub(crate) fn error(&self, place: usize, message: impl fmt::Display) -> ParseError {
        ParseError::at(self.text, place, message)
    }

    /// The next token is not what could stand here.
    pub(crate) fn expected(&self, accepted: impl fmt::Display) -> ParseError {
        match self.kind() {
            Kind::Unclosed(closing) => unclosed(self.text, self.token, closing),
            Kind::End => self.error(self.place(), format_args!("the text ends here; accepted: {accepted}")),
            _ => {
                let found = shown(self.text.get(self.token.start..self.token.end).unwrap_or_default());
                self.error(self.place(), format_args!("found {found}; accepted: {accepted}"))
            }
        }
    }

    pub(crate) fn at_word(&self, keyword: &str) -> bool {
        matches!(self.kind(), Kind::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Whether these two come next.
    pub(crate) fn at_words(&self, first: &str, second: &str) -> bool {
        let is_second = |kind| matches!(kind, Kind::Word(word) if word.eq_ignore_ascii_case(second));
        self.at_word(first) && is_second(self.second())
    }

    /// Goes over a keyword if it comes next.
    pub(crate) fn take_word(&mut self, keyword: &str) -> bool {
        let taken = self.at_word(keyword);
        if taken {
            self.advance();
        }
        taken
    }

    pub(crate) fn word(&mut self, keyword: &str) -> Result<(), ParseError> {
        if self.take_word(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    /// Goes over all of these if the first comes next; then the others must follow.
    pub(crate) fn take_words(&mut self, keywords: &[&str]) -> Result<bool, ParseError> {
        let mut keywords = keywords.iter();
        if !keywords.next().is_some_and(|first| self.take_word(first)) {
            return Ok(false);
        }
        keywords.try_for_each(|keyword| self.word(keyword))?;
        Ok(true)
    }

    pub(crate) fn at_symbol(&self, symbol: char) -> bool {
        self.kind() == Kind::Symbol(symbol)
    }

    pub(crate) fn take_symbol(&mut self, symbol: char) -> bool {
        let taken = self.at_symbol(symbol);
        if taken {
            self.advance();
        }
        taken
    }

    pub(crate) fn symbol(&mut self, symbol: char) -> Result<(), ParseError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(format_args!("'{symbol}'"))) }
    }

    /// `item, item, ...` up to a closing symbol.
    pub(crate) fn list_until<T>(
        &mut self,
        closing: char,
        most: usize,
        mut item: impl FnMut(&mut Parser<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = Vec::new();
        loop {
            if items.len() == most {
                return Err(self.expected(format_args!("at most {most} of them in one list")));
            }
            items.push(item(self)?);
            if self.take_symbol(closing) {
                return Ok(items);
            }
            if !self.take_symbol(',') {
                return Err(self.expected(format_args!("',' or '{closing}'")));
            }
        }
    }

    /// `(item, item, ...)`
    pub(crate) fn list<T>(
        &mut self,
        most: usize,
        item: impl FnMut(&mut Parser<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.symbol('(')?;
        self.list_until(')', most, item)
    }

    /// A name of any kind; where `reserved_too`, nothing but a name can stand here.
    fn name(&mut self, what: &str, reserved_too: bool) -> Result<String, ParseError> {
        let name = match self.kind() {
            Kind::Word(word) if reserved_too || !is_reserved(word) => word.to_owned(),
            Kind::Quoted { body, quote } => undoubled(body, quote),
            Kind::Word(_) => {
                return Err(self.expected(format_args!("{what}; this word is one in double quotes only")));
            }
            _ => return Err(self.expected(what)),
        };
        self.advance();
        Ok(name)
    }

    /// The name of a column.
    pub(crate) fn column_name(&mut self) -> Result<String, ParseError> {
        self.checked_column_name(false)
    }

    /// The name of a nested field, or of a column where nothing else can stand.
    pub(crate) fn field_name(&mut self) -> Result<String, ParseError> {
        self.checked_column_name(true)
    }

    fn checked_column_name(&mut self, reserved_too: bool) -> Result<String, ParseError> {
        let place = self.place();
        let name = self.name("the name of a column", reserved_too)?;
        if name.is_empty() || name.len() > COLUMN_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let accepted = format!("1 to {COLUMN_NAME_BYTES_MAX} bytes without control characters");
            return Err(self.error(
                place,
                format_args!("{} is no name of a column; accepted: {accepted}", shown(&name)),
            ));
        }
        Ok(name)
    }

    pub(crate) fn database_name(&mut self) -> Result<DatabaseName, ParseError> {
        let place = self.place();
        let name = self.name("the name of a database", false)?;
        self.no_hyphen(place)?;
        DatabaseName::new(&name).map_err(|error| self.error(place, error))
    }

    /// `database.table`, or `table` of the database that the asker works with.
    pub(crate) fn table_path(&mut self) -> Result<TablePath, ParseError> {
        let place = self.place();
        let first = self.name("a table: DATABASE.TABLE", false)?;
        self.no_hyphen(place)?;
        let (database, table, table_place) = if self.take_symbol('.') {
            let table_place = self.place();
            let table = self.name("the name of a table", true)?;
            self.no_hyphen(table_place)?;
            let database = DatabaseName::new(&first).map_err(|error| self.error(place, error))?;
            (database, table, table_place)
        } else if let Some(database) = self.default_database {
            (database.clone(), first, place)
        } else {
            let message = format_args!(
                "{} has no database; write DATABASE.TABLE, each in its own quotes if it needs any; in `mink sql`, USE \
                 names a database for what follows",
                shown(&first)
            );
            return Err(self.error(place, message));
        };
        if self.at_symbol('.') {
            let accepted =
                "DATABASE.TABLE; the name of a table that holds dots stands in double quotes: kafka.\"a.b\"";
            return Err(self.expected(accepted));
        }
        let table = TableName::new(&table).map_err(|error| self.error(table_place, error))?;
        Ok(TablePath { database, table })
    }

    /// What ends an unquoted name too early most often.
    fn no_hyphen(&self, place: usize) -> Result<(), ParseError> {
        if self.at_symbol('-') {
            return Err(self.error(place, "a name with '-' stands in double quotes: \"my-table\""));
        }
        Ok(())
    }

    /// `'text'`
    pub(crate) fn text(&mut self, what: &str) -> Result<String, ParseError> {
        let Kind::Text(body) = self.kind() else {
            return Err(self.expected(format_args!("{what} in single quotes")));
        };
        self.advance();
        Ok(undoubled(body, '\''))
    }

    /// A whole number, as of a precision.
    pub(crate) fn whole_number(&mut self, accepted: impl fmt::Display) -> Result<u32, ParseError> {
        let number = match self.kind() {
            Kind::Number(digits) => digits.parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return Err(self.expected(accepted)) };
        self.advance();
        Ok(number)
    }

    /// The end, behind one `;` or none.
    pub(crate) fn end(&mut self, accepted: &str) -> Result<(), ParseError> {
        let ended = self.take_symbol(';');
        match self.kind() {
            Kind::End => Ok(()),
            _ if ended => Err(self.expected("one statement at a time, so the end of the text")),
            _ => Err(self.expected(accepted)),
        }
    }
}
