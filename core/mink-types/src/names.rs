//! Names of databases, tables and clusters, checked when made (FEATURES section 1).
//!
//! Lives on: anywhere (pure).
//! Invariants: a name that exists keeps the rules; names never become object keys or SQL text. Clones share their bytes.
use std::fmt;
use std::sync::Arc;

/// Longest name of a database or table, in bytes: Kafka's limit for topics.
pub const NAME_BYTES_MAX: usize = 249;

/// The database of tables that Mink keeps for itself. It keeps the rules for names, as rows of the metadata log must be read back;
/// a node takes no change of it from anybody.
const INTERNAL_DATABASE: &str = "__mink";

/// Databases that a user cannot create.
const RESERVED_DATABASES: [&str; 2] = ["mink", "information_schema"];

/// A name that breaks the rules; says which, and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    #[error("{kind} name is empty; use 1 to {NAME_BYTES_MAX} letters, digits, '_' or '-'")]
    Empty { kind: &'static str },
    #[error("{kind} name has {bytes} bytes; at most {NAME_BYTES_MAX} are accepted")]
    TooLong { kind: &'static str, bytes: usize },
    #[error("{kind} name {name:?} holds {found:?}; accepted are letters, digits, {accepted}")]
    Character { kind: &'static str, name: String, found: char, accepted: &'static str },
    #[error("{kind} name {name:?} is not accepted; '.' and '..' are reserved")]
    Dots { kind: &'static str, name: String },
    #[error("database name {name:?} is reserved; choose another")]
    Reserved { name: String },
    #[error("{address:?} is not an address; write DATABASE.TABLE")]
    Address { address: String },
}

fn check(kind: &'static str, name: &str, dot: bool) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { kind });
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { kind, bytes: name.len() });
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || (dot && c == '.');
    if let Some(found) = name.chars().find(|&c| !fits(c)) {
        let accepted = if dot { "'_', '-' and '.'" } else { "'_' and '-'" };
        return Err(NameError::Character { kind, name: name.into(), found, accepted });
    }
    if name == "." || name == ".." {
        return Err(NameError::Dots { kind, name: name.into() });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a database: letters, digits, `_`, `-`.
    DatabaseName
}
name! {
    /// The name of a table within its database: letters, digits, `_`, `-`, `.`. A Kafka topic's name.
    TableName
}
name! {
    /// The id of a cluster, part of every object key and every row: letters, digits, `_`, `-`.
    ClusterName
}

impl DatabaseName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<DatabaseName, NameError> {
        check("database", name, false)?;
        if RESERVED_DATABASES.contains(&name) {
            return Err(NameError::Reserved { name: name.into() });
        }
        Ok(DatabaseName(name.into()))
    }

    /// The database of tables that Mink keeps for itself.
    pub fn internal() -> DatabaseName {
        DatabaseName(INTERNAL_DATABASE.into())
    }

    /// Whether it is the database of Mink's own tables: no client creates, changes, reads, writes or lists what is in it.
    pub fn is_internal(&self) -> bool {
        self.as_str() == INTERNAL_DATABASE
    }
}

impl TableName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<TableName, NameError> {
        check("table", name, true)?;
        Ok(TableName(name.into()))
    }

    /// Kafka takes two topics whose names differ only in `.` and `_` for one (its metric names collide): this is what they share.
    pub fn collision_key(&self) -> Arc<str> {
        // Most names have no dot, and are their own key.
        if self.0.contains('.') { self.0.replace('.', "_").into() } else { Arc::clone(&self.0) }
    }
}

impl ClusterName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<ClusterName, NameError> {
        check("cluster", name, false)?;
        Ok(ClusterName(name.into()))
    }
}

/// `database.table`: the database ends at the first dot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TablePath {
    pub database: DatabaseName,
    pub table: TableName,
}

impl TablePath {
    /// Parses `database.table`.
    pub fn parse(address: &str) -> Result<TablePath, NameError> {
        let (database, table) =
            address.split_once('.').ok_or_else(|| NameError::Address { address: address.into() })?;
        Ok(TablePath { database: DatabaseName::new(database)?, table: TableName::new(table)? })
    }
}

impl fmt::Display for TablePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nasty_names_are_refused_in_words() {
        let long = "x".repeat(250);
        for bad in ["", ".", "..", "a/b", "a b", "a\0b", "a;b", "'", "ä", "\u{202e}x", long.as_str()] {
            assert!(TableName::new(bad).is_err(), "{bad:?}");
        }
        assert!(TableName::new(&"x".repeat(249)).is_ok());
        assert!(TableName::new("a.b_c-1").is_ok());
    }

    #[test]
    fn a_database_has_no_dot_and_is_not_reserved() {
        for bad in ["a.b", "mink", "information_schema", ""] {
            assert!(DatabaseName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_internal_database_is_a_name_like_any_other() {
        let internal = DatabaseName::internal();
        assert!(internal.is_internal());
        assert_eq!(DatabaseName::new(internal.as_str()), Ok(internal));
        assert!(!DatabaseName::new("mink__").expect("valid").is_internal());
    }

    #[test]
    fn the_database_ends_at_the_first_dot() {
        let path = TablePath::parse("kafka.a.b").expect("valid");
        assert_eq!((path.database.as_str(), path.table.as_str()), ("kafka", "a.b"));
        assert!(TablePath::parse("orders").is_err());
    }

    #[test]
    fn names_that_differ_in_dot_and_underscore_collide() {
        let key = |name: &str| TableName::new(name).expect("valid").collision_key();
        assert_eq!(key("a.b"), key("a_b"));
        assert_ne!(key("a.b"), key("a-b"));
    }
}
