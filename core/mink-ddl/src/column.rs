//! Columns as CREATE TABLE and ALTER TABLE name and define them, and the lists of options and partition values.
//!
//! Lives on: anywhere (pure).
use crate::LIST_MAX;
use crate::error::{ParseError, shown};
use crate::parser::Parser;
use crate::value::ValueKind;
use mink_types::schema::{Field, KEY_COLUMNS_MAX, SCHEMA_DEPTH_MAX};
use std::collections::BTreeSet;

/// A column, and whether `PRIMARY KEY` stood behind it.
pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) is_key: bool,
}

/// How an error names the attribute that makes a column the key.
const PRIMARY_KEY: &str = "PRIMARY KEY";

impl Parser<'_> {
    /// What stands behind a column's name. `PRIMARY KEY` is refused unless a table is made.
    pub(crate) fn column(&mut self, name: String, key_accepted: bool) -> Result<Column, ParseError> {
        let mut field = Field::new(name, self.data_type()?);
        let mut seen = BTreeSet::new();
        let mut null_default = None;
        loop {
            let place = self.place();
            let attribute = if let Some(nullable) = self.nullable()? {
                field.nullable = nullable;
                "NOT NULL or NULL"
            } else if self.take_word("DEFAULT") {
                let value_place = self.place();
                field.default = self.value_of(&field.data_type)?;
                null_default = field.default.is_none().then_some(value_place);
                "DEFAULT"
            } else if self.take_word("COMMENT") {
                field.comment = Some(self.comment()?);
                "COMMENT"
            } else if key_accepted && self.take_words(&["PRIMARY", "KEY"])? {
                self.not_enforced()?;
                PRIMARY_KEY
            } else {
                break;
            };
            if !seen.insert(attribute) {
                return Err(self.error(place, format_args!("a column has {attribute} once; leave this out")));
            }
        }
        if let Some(place) = null_default.filter(|_| !field.nullable) {
            return Err(
                self.error(place, "a column that is NOT NULL has no DEFAULT NULL; accepted: another value")
            );
        }
        Ok(Column { field, is_key: seen.contains(PRIMARY_KEY) })
    }

    /// NOT ENFORCED behind a key, as other systems want it: the key is kept either way.
    pub(crate) fn not_enforced(&mut self) -> Result<(), ParseError> {
        // NOT NULL may follow as well.
        if self.at_words("NOT", "ENFORCED") {
            self.take_words(&["NOT", "ENFORCED"])?;
        }
        Ok(())
    }

    /// `(a, b)`: names of columns.
    pub(crate) fn column_names(&mut self) -> Result<Vec<String>, ParseError> {
        self.list(KEY_COLUMNS_MAX, Parser::field_name)
    }

    /// `a.b.element`: a column and the way down from it.
    pub(crate) fn path(&mut self) -> Result<Vec<String>, ParseError> {
        let mut path = vec![self.column_name()?];
        while self.take_symbol('.') {
            if path.len() == SCHEMA_DEPTH_MAX {
                return Err(self.expected(format_args!("a path of at most {SCHEMA_DEPTH_MAX} names")));
            }
            path.push(self.field_name()?);
        }
        Ok(path)
    }

    /// `('name' = 'value', ...)`, each name once.
    pub(crate) fn options(&mut self) -> Result<Vec<(String, String)>, ParseError> {
        let mut names = BTreeSet::new();
        self.list(LIST_MAX, |parser| {
            let place = parser.place();
            let name = parser.text("the name of an option")?;
            parser.symbol('=')?;
            let value = parser.text("the value of the option")?;
            parser.once(&mut names, place, &name)?;
            Ok((name, value))
        })
    }

    /// `(dt = '2026-01-31', n = 5)`, each column once.
    pub(crate) fn partition(&mut self) -> Result<Vec<(String, String)>, ParseError> {
        self.word("PARTITION")?;
        let mut names = BTreeSet::new();
        self.list(KEY_COLUMNS_MAX, |parser| {
            let place = parser.place();
            let name = parser.field_name()?;
            parser.symbol('=')?;
            let value_place = parser.place();
            let value = parser.value()?;
            if value.kind == ValueKind::Null {
                return Err(parser.error(value_place, "a partition has no NULL; accepted: another value"));
            }
            parser.once(&mut names, place, &name)?;
            Ok((name, value.text))
        })
    }

    /// Refuses a name that stood in the list before.
    pub(crate) fn once(
        &self,
        names: &mut BTreeSet<String>,
        place: usize,
        name: &str,
    ) -> Result<(), ParseError> {
        if names.insert(name.to_owned()) {
            return Ok(());
        }
        Err(self.error(place, format_args!("{} stands in the list twice; leave one out", shown(name))))
    }
}
