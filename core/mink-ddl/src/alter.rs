//! ALTER TABLE.
//!
//! Lives on: anywhere (pure).
use crate::bucket_key::BUCKET_KEY;
use crate::error::ParseError;
use crate::parser::Parser;
use crate::statement::{Change, Statement};
use crate::{ACTIONS_MAX, LIST_MAX};
use mink_types::schema::{ColumnPlace, SchemaChange};
use std::collections::BTreeSet;

/// What may stand behind `ALTER [COLUMN] c`.
const COLUMN_CHANGES: &str =
    "TYPE or SET DATA TYPE and a type, DROP NOT NULL, FIRST, LAST, AFTER a column, or COMMENT";

impl Parser<'_> {
    /// What stands behind ALTER TABLE.
    pub(crate) fn alter_table(&mut self) -> Result<Statement, ParseError> {
        let path = self.table_path()?;
        let mut change = Vec::new();
        loop {
            self.action(&mut change)?;
            if !self.take_symbol(',') {
                break;
            }
        }
        self.end("',' and one more action, or the end of the statement")?;
        Ok(Statement::AlterTable { path, change })
    }

    fn action(&mut self, changes: &mut Vec<Change>) -> Result<(), ParseError> {
        let change = if self.take_word("ADD") {
            return self.add(changes);
        } else if self.take_word("DROP") {
            self.drop_column_or_partition()?
        } else if self.take_word("RENAME") {
            self.take_word("COLUMN");
            let path = self.path()?;
            self.word("TO")?;
            Change::Schema(SchemaChange::RenameColumn { path, name: self.field_name()? })
        } else if self.take_word("ALTER") {
            self.take_word("COLUMN");
            Change::Schema(self.alter_column()?)
        } else if self.take_word("SET") {
            let place = self.place();
            let options = self.options()?;
            self.no_bucket_key(place, options.iter().map(|(name, _)| name))?;
            Change::SetOptions(options)
        } else if self.take_word("RESET") {
            self.reset()?
        } else {
            return Err(self.expected("an action: ADD, DROP, RENAME, ALTER, SET or RESET"));
        };
        self.push(changes, change)
    }

    fn push(&self, changes: &mut Vec<Change>, change: Change) -> Result<(), ParseError> {
        if changes.len() == ACTIONS_MAX {
            return Err(self.expected(format_args!("at most {ACTIONS_MAX} actions in one statement")));
        }
        changes.push(change);
        Ok(())
    }

    /// Behind ADD: a partition, a column, or columns in parentheses.
    fn add(&mut self, changes: &mut Vec<Change>) -> Result<(), ParseError> {
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"])?;
        if if_not_exists || self.at_word("PARTITION") {
            let values = self.partition()?;
            return self.push(changes, Change::AddPartition { values, if_not_exists });
        }
        self.take_word("COLUMN");
        if !self.take_symbol('(') {
            let change = self.add_column()?;
            return self.push(changes, change);
        }
        for change in self.list_until(')', ACTIONS_MAX, Parser::add_column)? {
            self.push(changes, change)?;
        }
        Ok(())
    }

    fn add_column(&mut self) -> Result<Change, ParseError> {
        let mut parent = self.path()?;
        // A path has at least one name.
        let name = parent.pop().unwrap_or_default();
        let column = self.column(name, false)?.field;
        if self.at_word("PRIMARY") {
            let message = "a table gets its PRIMARY KEY when it is made; leave it out here";
            return Err(self.error(self.place(), message));
        }
        let place = self.column_place()?.unwrap_or_default();
        Ok(Change::Schema(SchemaChange::AddColumn { parent, column, place }))
    }

    /// `FIRST`, `LAST` or `AFTER x`, if one of them comes next.
    fn column_place(&mut self) -> Result<Option<ColumnPlace>, ParseError> {
        Ok(if self.take_word("FIRST") {
            Some(ColumnPlace::First)
        } else if self.take_word("LAST") {
            Some(ColumnPlace::Last)
        } else if self.take_word("AFTER") {
            Some(ColumnPlace::After(self.field_name()?))
        } else {
            None
        })
    }

    fn drop_column_or_partition(&mut self) -> Result<Change, ParseError> {
        let if_exists = self.take_words(&["IF", "EXISTS"])?;
        if if_exists || self.at_word("PARTITION") {
            return Ok(Change::DropPartition { values: self.partition()?, if_exists });
        }
        self.take_word("COLUMN");
        Ok(Change::Schema(SchemaChange::DropColumn { path: self.path()? }))
    }

    fn alter_column(&mut self) -> Result<SchemaChange, ParseError> {
        let path = self.path()?;
        if let Some(place) = self.column_place()? {
            return Ok(SchemaChange::Move { path, place });
        }
        if self.take_words(&["DROP", "NOT", "NULL"])? {
            return Ok(SchemaChange::DropNotNull { path });
        }
        if self.take_word("COMMENT") {
            let comment = if self.take_word("NULL") { None } else { Some(self.comment()?) };
            return Ok(SchemaChange::SetComment { path, comment });
        }
        if self.at_words("SET", "DATA") {
            self.take_words(&["SET", "DATA"])?;
            self.word("TYPE")?;
        } else if !self.take_word("TYPE") {
            return Err(self.expected(COLUMN_CHANGES));
        }
        Ok(SchemaChange::ChangeType { path, data_type: self.data_type()? })
    }

    /// `('name', ...)`, each once.
    fn reset(&mut self) -> Result<Change, ParseError> {
        let start = self.place();
        let mut names = BTreeSet::new();
        let options = self.list(LIST_MAX, |parser| {
            let place = parser.place();
            let name = parser.text("the name of an option")?;
            parser.once(&mut names, place, &name)?;
            Ok(name)
        })?;
        self.no_bucket_key(start, options.iter())?;
        Ok(Change::ResetOptions(options))
    }

    fn no_bucket_key<'n>(
        &self,
        place: usize,
        mut names: impl Iterator<Item = &'n String>,
    ) -> Result<(), ParseError> {
        if names.any(|name| name == BUCKET_KEY) {
            let message =
                format_args!("'{BUCKET_KEY}' stays as it was when the table was made; leave it out");
            return Err(self.error(place, message));
        }
        Ok(())
    }
}
