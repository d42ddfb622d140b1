//! CREATE TABLE.
//!
//! Lives on: anywhere (pure).
use crate::bucket_key::{BUCKET_KEY, bucket_key};
use crate::error::ParseError;
use crate::parser::Parser;
use crate::statement::Statement;
use mink_types::schema::{SCHEMA_FIELDS_MAX, SchemaDraft};

impl Parser<'_> {
    /// What stands behind CREATE TABLE.
    pub(crate) fn create_table(&mut self) -> Result<Statement, ParseError> {
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"])?;
        let path = self.table_path()?;
        let mut draft = SchemaDraft::default();
        // One more, for the key may stand behind as many columns as there may be.
        self.list(SCHEMA_FIELDS_MAX + 1, |parser| parser.column_or_key(&mut draft))?;
        let mut options = None;
        loop {
            if draft.partitioned_by.is_empty() && self.take_words(&["PARTITIONED", "BY"])? {
                draft.partitioned_by = self.column_names()?;
            } else if options.is_none() && self.take_word("WITH") {
                options = Some(self.table_options(&mut draft)?);
            } else {
                break;
            }
        }
        self.end(match (draft.partitioned_by.is_empty(), options.is_none()) {
            (true, true) => "PARTITIONED BY, WITH or the end of the statement",
            (true, false) => "PARTITIONED BY or the end of the statement",
            (false, true) => "WITH or the end of the statement",
            (false, false) => "the end of the statement",
        })?;
        Ok(Statement::CreateTable { path, if_not_exists, draft, options: options.unwrap_or_default() })
    }

    /// A column, or `[CONSTRAINT name] PRIMARY KEY (a, b) [NOT ENFORCED]`.
    fn column_or_key(&mut self, draft: &mut SchemaDraft) -> Result<(), ParseError> {
        if self.take_word("CONSTRAINT") {
            // It has no name here.
            self.field_name()?;
            if !self.at_word("PRIMARY") {
                return Err(self.expected("PRIMARY KEY"));
            }
        }
        let place = self.place();
        let key = if self.take_words(&["PRIMARY", "KEY"])? {
            let key = self.column_names()?;
            self.not_enforced()?;
            key
        } else {
            let name = self.column_name()?;
            let column = self.column(name, true)?;
            let key = if column.is_key { vec![column.field.name.clone()] } else { Vec::new() };
            draft.columns.push(column.field);
            key
        };
        if !key.is_empty() {
            if !draft.primary_key.is_empty() {
                let message = "a table has one PRIMARY KEY; name all its columns there: PRIMARY KEY (a, b)";
                return Err(self.error(place, message));
            }
            draft.primary_key = key;
        }
        Ok(())
    }

    /// The options but for `bucket.key`, which becomes part of the draft.
    fn table_options(&mut self, draft: &mut SchemaDraft) -> Result<Vec<(String, String)>, ParseError> {
        let place = self.place();
        let mut options = self.options()?;
        if let Some(at) = options.iter().position(|(name, _)| name == BUCKET_KEY) {
            let (_, value) = options.remove(at);
            draft.bucket_key = bucket_key(&value)
                .map_err(|problem| self.error(place, format_args!("'{BUCKET_KEY}': {problem}")))?;
        }
        Ok(options)
    }
}
