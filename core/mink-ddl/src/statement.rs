//! What a text may ask for.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; a statement is a value. Its `Display` (in `print`) is SQL again.
use mink_types::schema::{SchemaChange, SchemaDraft};
use mink_types::{DatabaseName, TablePath};

/// One statement on databases and tables. Names are checked, all else only as far as the text alone tells: whoever runs it checks
/// the draft with `Schema::create`, changes with `Schema::alter`, options with `TableOptions`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    CreateDatabase {
        name: DatabaseName,
        if_not_exists: bool,
    },
    DropDatabase {
        name: DatabaseName,
        if_exists: bool,
    },
    CreateTable {
        path: TablePath,
        if_not_exists: bool,
        /// `bucket.key` of the options is part of it.
        draft: SchemaDraft,
        /// The others, as written and in that order; no name stands there twice.
        options: Vec<(String, String)>,
    },
    DropTable {
        path: TablePath,
        if_exists: bool,
        /// Whether the table in the lake goes too.
        purge: bool,
    },
    /// All changes or none, in this order; never none.
    AlterTable {
        path: TablePath,
        change: Vec<Change>,
    },
    ShowDatabases,
    /// Of one database, or of the one that the asker works with.
    ShowTables {
        database: Option<DatabaseName>,
    },
    ShowPartitions {
        path: TablePath,
    },
    ShowCreateTable {
        path: TablePath,
    },
    Describe {
        path: TablePath,
    },
    /// Names without a database are of this one from here on. For whoever keeps a session: a node keeps none.
    Use {
        name: DatabaseName,
    },
}

/// One action of an ALTER TABLE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Schema(SchemaChange),
    /// Options and their new values; no name stands there twice.
    SetOptions(Vec<(String, String)>),
    /// Options that go back to their defaults.
    ResetOptions(Vec<String>),
    AddPartition {
        values: Vec<(String, String)>,
        if_not_exists: bool,
    },
    /// Columns and the text of their values: [`crate::literal_of`] reads it, once the columns' types are known. In AddPartition too.
    DropPartition {
        values: Vec<(String, String)>,
        if_exists: bool,
    },
}
