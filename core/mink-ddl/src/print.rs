//! Statements and schemas as SQL again.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is printed of a parsed statement parses to the same one; names stand in quotes wherever they could be taken for
//! something else.
use crate::bucket_key::{BUCKET_KEY, bucket_key_text};
use crate::parser::is_reserved;
use crate::statement::{Change, Statement};
use crate::value::sql_literal;
use mink_types::TablePath;
use mink_types::schema::{ColumnPlace, Field, FieldId, Schema, SchemaChange, SchemaDraft};
use std::fmt::{self, Display as _};

/// The statement that makes a table with this schema and these options, over several lines.
pub fn show_create(path: &TablePath, schema: &Schema, options: &[(String, String)]) -> String {
    let names = |ids: &[FieldId]| -> Vec<String> {
        let name = |id: &FieldId| schema.column_by_id(*id).map(|column| column.name.clone());
        ids.iter().filter_map(name).collect()
    };
    let partitioned_by = names(schema.partitioned_by());
    let primary_key = names(schema.primary_key());
    let mut bucket_key = names(schema.bucket_key());
    // What nobody wrote and a table gets all the same is not shown.
    if primary_key.iter().filter(|name| !partitioned_by.contains(name)).eq(&bucket_key) {
        bucket_key.clear();
    }
    let draft = SchemaDraft { columns: schema.columns().to_vec(), primary_key, partitioned_by, bucket_key };
    let options = options.iter().filter(|(name, _)| name != BUCKET_KEY).cloned().collect();
    Statement::CreateTable { path: path.clone(), if_not_exists: false, draft, options }.to_string()
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let if_not_exists = |given: &bool| if *given { "IF NOT EXISTS " } else { "" };
        let if_exists = |given: &bool| if *given { "IF EXISTS " } else { "" };
        match self {
            Statement::CreateDatabase { name, if_not_exists: given } => {
                write!(f, "CREATE DATABASE {}{}", if_not_exists(given), Name(name.as_str()))
            }
            Statement::DropDatabase { name, if_exists: given } => {
                write!(f, "DROP DATABASE {}{}", if_exists(given), Name(name.as_str()))
            }
            Statement::CreateTable { path, if_not_exists: given, draft, options } => {
                write!(f, "CREATE TABLE {}{} ", if_not_exists(given), Address(path))?;
                table(f, draft, options)
            }
            Statement::DropTable { path, if_exists: given, purge } => {
                let purge = if *purge { " PURGE" } else { "" };
                write!(f, "DROP TABLE {}{}{purge}", if_exists(given), Address(path))
            }
            Statement::AlterTable { path, change } => {
                write!(f, "ALTER TABLE {}", Address(path))?;
                change.iter().enumerate().try_for_each(|(place, change)| {
                    f.write_str(if place == 0 { " " } else { ", " })?;
                    change.fmt(f)
                })
            }
            Statement::ShowDatabases => f.write_str("SHOW DATABASES"),
            Statement::ShowTables { database: None } => f.write_str("SHOW TABLES"),
            Statement::ShowTables { database: Some(name) } => {
                write!(f, "SHOW TABLES FROM {}", Name(name.as_str()))
            }
            Statement::ShowPartitions { path } => write!(f, "SHOW PARTITIONS {}", Address(path)),
            Statement::ShowCreateTable { path } => write!(f, "SHOW CREATE TABLE {}", Address(path)),
            Statement::Describe { path } => write!(f, "DESCRIBE {}", Address(path)),
            Statement::Use { name } => write!(f, "USE {}", Name(name.as_str())),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Schema(change) => schema_change(f, change),
            Change::SetOptions(options) => {
                f.write_str("SET (")?;
                listed(f, options, ", ", option_text)?;
                f.write_str(")")
            }
            Change::ResetOptions(names) => {
                f.write_str("RESET (")?;
                listed(f, names, ", ", |f, name| Text(name).fmt(f))?;
                f.write_str(")")
            }
            Change::AddPartition { values, if_not_exists } => {
                f.write_str(if *if_not_exists { "ADD IF NOT EXISTS " } else { "ADD " })?;
                partition(f, values)
            }
            Change::DropPartition { values, if_exists } => {
                f.write_str(if *if_exists { "DROP IF EXISTS " } else { "DROP " })?;
                partition(f, values)
            }
        }
    }
}

fn schema_change(f: &mut fmt::Formatter<'_>, change: &SchemaChange) -> fmt::Result {
    match change {
        SchemaChange::AddColumn { parent, column: added, place } => {
            f.write_str("ADD COLUMN ")?;
            parent.iter().try_for_each(|name| write!(f, "{}.", Name(name)))?;
            column(f, added)?;
            match place {
                ColumnPlace::Last => Ok(()),
                place => write!(f, " {}", Place(place)),
            }
        }
        SchemaChange::DropColumn { path } => write!(f, "DROP COLUMN {}", Path(path)),
        SchemaChange::RenameColumn { path, name } => {
            write!(f, "RENAME COLUMN {} TO {}", Path(path), Name(name))
        }
        SchemaChange::ChangeType { path, data_type } => {
            write!(f, "ALTER COLUMN {} TYPE {data_type}", Path(path))
        }
        SchemaChange::Move { path, place } => write!(f, "ALTER COLUMN {} {}", Path(path), Place(place)),
        SchemaChange::DropNotNull { path } => write!(f, "ALTER COLUMN {} DROP NOT NULL", Path(path)),
        SchemaChange::SetComment { path, comment: Some(comment) } => {
            write!(f, "ALTER COLUMN {} COMMENT {}", Path(path), Text(comment))
        }
        SchemaChange::SetComment { path, comment: None } => {
            write!(f, "ALTER COLUMN {} COMMENT NULL", Path(path))
        }
    }
}

/// What stands behind a new table's name.
fn table(f: &mut fmt::Formatter<'_>, draft: &SchemaDraft, options: &[(String, String)]) -> fmt::Result {
    f.write_str("(\n  ")?;
    listed(f, &draft.columns, ",\n  ", column)?;
    if !draft.primary_key.is_empty() {
        f.write_str(if draft.columns.is_empty() { "PRIMARY KEY (" } else { ",\n  PRIMARY KEY (" })?;
        listed(f, &draft.primary_key, ", ", |f, name| Name(name).fmt(f))?;
        f.write_str(")")?;
    }
    f.write_str("\n)")?;
    if !draft.partitioned_by.is_empty() {
        f.write_str("\nPARTITIONED BY (")?;
        listed(f, &draft.partitioned_by, ", ", |f, name| Name(name).fmt(f))?;
        f.write_str(")")?;
    }
    let bucket_key =
        (!draft.bucket_key.is_empty()).then(|| (BUCKET_KEY.to_owned(), bucket_key_text(&draft.bucket_key)));
    if bucket_key.is_some() || !options.is_empty() {
        let all: Vec<_> = bucket_key.iter().chain(options).collect();
        f.write_str("\nWITH (\n  ")?;
        listed(f, &all, ",\n  ", |f, option| option_text(f, option))?;
        f.write_str("\n)")?;
    }
    Ok(())
}

/// A column as it is defined.
fn column(f: &mut fmt::Formatter<'_>, field: &Field) -> fmt::Result {
    write!(f, "{} {}", Name(&field.name), field.data_type)?;
    if !field.nullable {
        f.write_str(" NOT NULL")?;
    }
    if let Some(default) = &field.default {
        write!(f, " DEFAULT {}", sql_literal(&field.data_type, default))?;
    }
    field.comment.iter().try_for_each(|comment| write!(f, " COMMENT {}", Text(comment)))
}

fn partition(f: &mut fmt::Formatter<'_>, values: &[(String, String)]) -> fmt::Result {
    f.write_str("PARTITION (")?;
    listed(f, values, ", ", |f, (name, value)| write!(f, "{} = {}", Name(name), Text(value)))?;
    f.write_str(")")
}

fn option_text(f: &mut fmt::Formatter<'_>, (name, value): &(String, String)) -> fmt::Result {
    write!(f, "{} = {}", Text(name), Text(value))
}

fn listed<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    between: &str,
    print: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(place, item)| {
        f.write_str(if place == 0 { "" } else { between })?;
        print(f, item)
    })
}

/// A name, in double quotes if it is none without them.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = |found: char| found == '_' || found.is_ascii_alphanumeric();
        let begins = |found: char| inside(found) && !found.is_ascii_digit();
        if self.0.starts_with(begins) && self.0.chars().all(inside) && !is_reserved(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

/// A text in single quotes.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

struct Address<'a>(&'a TablePath);

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", Name(self.0.database.as_str()), Name(self.0.table.as_str()))
    }
}

struct Path<'a>(&'a [String]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        listed(f, self.0, ".", |f, name| Name(name).fmt(f))
    }
}

struct Place<'a>(&'a ColumnPlace);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ColumnPlace::First => f.write_str("FIRST"),
            ColumnPlace::Last => f.write_str("LAST"),
            ColumnPlace::After(name) => write!(f, "AFTER {}", Name(name)),
        }
    }
}
