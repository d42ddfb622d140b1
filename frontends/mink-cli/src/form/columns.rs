//! What a table holds: records of Kafka's, or rows with columns, and which those are.
//!
//! Lives on: the command's task.
//! Owns: nothing.     Talks to: the node's Flight listener, once, to ask what the table is.
//! Invariants: columns are those of the table's newest schema, in its order, or those that were asked for, in that order.
use crate::address::{NodeAddress, topic};
use crate::failure::Failure;
use mink_client::flight::{FlightClient, FlightErrorKind, TableDescription};
use mink_ddl::Statement;
use mink_types::TablePath;
use mink_types::schema::{Field, Schema, SchemaDraft};
use std::collections::BTreeMap;

/// What stands in a table.
#[derive(Debug)]
pub(crate) enum Contents {
    /// Records of Kafka's clients: keys, values and headers.
    Records,
    /// Rows with columns, and the way to them.
    Rows(RowTable, FlightClient),
}

/// A table with columns.
#[derive(Clone, Debug)]
pub(crate) struct RowTable {
    pub(crate) path: TablePath,
    pub(crate) schema: Schema,
    pub(crate) buckets: u32,
    pub(crate) partitioned_by: Vec<String>,
    /// Its options, by name.
    pub(crate) options: BTreeMap<String, String>,
}

/// Asks the node what the table is. Tables of the database of Kafka's clients are known without: nobody is asked.
pub(crate) async fn contents(path: &TablePath, node: &NodeAddress) -> Result<Contents, Failure> {
    // Those alone are topics by their bare name.
    if topic(path) == path.table.as_str() {
        return Ok(Contents::Records);
    }
    let client = node.flight().await?;
    let described = match client.describe(&path.to_string()).await {
        Ok(described) => described,
        Err(error) if error.kind() == FlightErrorKind::NotFound => return Err(missing(path, &client).await),
        Err(error) => return Err(Failure::failed(format!("table {path}: {error}"))),
    };
    // Tables in the kafka format have no schema of their own.
    if described.schema == 0 {
        return Ok(Contents::Records);
    }
    let table = row_table(path, described).map_err(|why| {
        Failure::failed(format!(
            "table {path}: the node describes its columns in words that this mink does not understand ({why}); use the mink of the \
             node's version"
        ))
    })?;
    Ok(Contents::Rows(table, client))
}

fn row_table(path: &TablePath, described: TableDescription) -> Result<RowTable, String> {
    let schema = schema_of(&described)?;
    let TableDescription { buckets, partitioned_by, options, .. } = described;
    let options = options.into_iter().map(|option| (option.name, option.value)).collect();
    Ok(RowTable { path: path.clone(), schema, buckets, partitioned_by, options })
}

/// What there is not: what to do about it depends on which of the two is missing.
async fn missing(path: &TablePath, client: &FlightClient) -> Failure {
    let TablePath { database, .. } = path;
    // A node that does not tell its databases is asked for no more.
    let databases = client.sql("SHOW DATABASES").await.unwrap_or_default();
    let is_there = |row: &serde_json::Value| {
        row.get("database").and_then(serde_json::Value::as_str) == Some(database.as_str())
    };
    Failure::failed(if databases.is_empty() || databases.iter().any(is_there) {
        format!(
            "there is no table {path}; `mink table list` shows those there are, `mink sql -e 'CREATE TABLE {path} (...)'` makes one with \
             columns, `mink table create {path}` one for Kafka's clients"
        )
    } else {
        format!(
            "there is no database {database}, so no table {path} either; `mink db list` shows those there are, `mink db create \
             {database}` makes it"
        )
    })
}

/// The columns, of the statement that makes such a table.
fn schema_of(described: &TableDescription) -> Result<Schema, String> {
    match mink_ddl::parse(&described.create_statement, None) {
        Ok(Statement::CreateTable { draft, .. }) => Schema::create(draft).map_err(|error| error.to_string()),
        Ok(other) => Err(format!("found {other}")),
        Err(error) => Err(error.to_string()),
    }
}

/// These columns of a table alone, in this order; all of them if none is named.
pub(crate) fn chosen(schema: &Schema, path: &TablePath, names: &[String]) -> Result<Schema, Failure> {
    if names.is_empty() {
        return Ok(schema.clone());
    }
    let mut columns: Vec<Field> = Vec::with_capacity(names.len().min(schema.columns().len()));
    for name in names {
        let column = schema.column(name).ok_or_else(|| {
            Failure::usage(format!("table {path} has no column {name:?}; it has {}", listed(schema)))
        })?;
        if columns.iter().any(|known| known.name == *name) {
            return Err(Failure::usage(format!("column {name:?} is named twice")));
        }
        columns.push(column.clone());
    }
    let draft = SchemaDraft { columns, ..SchemaDraft::default() };
    Schema::create(draft).map_err(|error| Failure::failed(format!("table {path}: {error}")))
}

/// The names of columns, for an error's text.
pub(crate) fn listed(schema: &Schema) -> String {
    let names: Vec<&str> = schema.columns().iter().map(|column| column.name.as_str()).collect();
    match names.get(NAMES_SHOWN_MAX..).map(<[&str]>::len) {
        Some(more) if more > 0 => {
            format!("{} and {more} more", names.get(..NAMES_SHOWN_MAX).unwrap_or_default().join(", "))
        }
        _ => names.join(", "),
    }
}

/// Names of columns that an error lists.
const NAMES_SHOWN_MAX: usize = 20;

/// The partition of a Kafka topic.
pub(crate) fn partition_number(given: &[String]) -> Result<Option<i32>, Failure> {
    match given {
        [] => Ok(None),
        [only] => only.parse().ok().filter(|number| *number >= 0).map(Some).ok_or_else(|| {
            Failure::usage(format!("--partition {only}: a partition of records is a number from 0"))
        }),
        _ => Err(Failure::usage("--partition is given twice; records have one partition")),
    }
}

/// Refuses the first flag that was given and has no meaning here: `why` says where it has one.
pub(crate) fn refuse_given(flags: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag} {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The columns of a table that such a statement makes.
    pub(crate) fn schema(columns: &str) -> Schema {
        table(columns, &[]).schema
    }

    /// A table that such a statement makes, with one bucket.
    pub(crate) fn table(columns: &str, partitioned_by: &[&str]) -> RowTable {
        let described = TableDescription {
            create_statement: format!("CREATE TABLE sales.orders ({columns})"),
            buckets: 1,
            partitioned_by: partitioned_by.iter().map(|name| (*name).to_owned()).collect(),
            ..TableDescription::default()
        };
        row_table(&path(), described).expect("a statement that makes a table")
    }

    pub(crate) fn path() -> TablePath {
        TablePath::parse("sales.orders").expect("a path")
    }

    #[test]
    fn columns_are_all_or_those_that_are_named_in_that_order() {
        let table = schema("a INT, b STRING NOT NULL, c ARRAY<INT>");
        assert_eq!(chosen(&table, &path(), &[]), Ok(table.clone()));
        let some = chosen(&table, &path(), &["c".into(), "b".into()]).expect("it has both");
        let found: Vec<_> = some.columns().iter().map(|column| (&*column.name, column.nullable)).collect();
        assert_eq!(found, [("c", true), ("b", false)]);
    }

    #[test]
    fn a_column_that_is_not_there_or_stands_twice_is_refused_by_name() {
        let table = schema("a INT, b STRING");
        let words = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&table, &path(), &names).expect_err("refused").words().to_owned()
        };
        assert_eq!(words(&["A"]), "table sales.orders has no column \"A\"; it has a, b");
        assert_eq!(words(&["a", "a"]), "column \"a\" is named twice");
    }

    #[test]
    fn a_wide_table_is_not_listed_whole() {
        let columns: Vec<String> = (0..25).map(|number| format!("c{number} INT")).collect();
        assert!(listed(&schema(&columns.join(", "))).ends_with("c19 and 5 more"));
    }

    #[test]
    fn a_partition_of_records_is_one_number() {
        assert_eq!(partition_number(&[]), Ok(None));
        assert_eq!(partition_number(&["3".into()]), Ok(Some(3)));
        for wrong in [&["-1".to_owned()][..], &["dt=1".to_owned()], &["1".to_owned(), "2".to_owned()]] {
            partition_number(wrong).expect_err("no number");
        }
    }

    #[test]
    fn what_a_node_says_of_a_table_is_read_with_its_types_and_defaults() {
        let table = schema(
            "id BIGINT NOT NULL, price DECIMAL(12, 2) DEFAULT 0, at TIMESTAMP_LTZ(3)) PARTITIONED BY (id",
        );
        let types: Vec<String> = table.columns().iter().map(|column| column.data_type.to_string()).collect();
        assert_eq!(types, ["BIGINT", "DECIMAL(12, 2)", "TIMESTAMP_LTZ(3)"]);
        assert!(table.columns()[1].default.is_some());
        let other =
            TableDescription { create_statement: "SHOW TABLES".into(), ..TableDescription::default() };
        schema_of(&other).expect_err("no table");
    }
}
