//! Runs one statement of SQL on databases, tables and partitions.
//!
//! Lives on: the service runtime.
//! Invariants: I19: a statement is checked wholly before anything of it is done; one ALTER is one command of the log, but for its
//! partitions, which follow one by one. The fields of a row stand in the order in which they are to be shown.
use crate::address;
use crate::node::Node;
use crate::status::{OrStatus, advised};
use mink_api::AdminError;
use mink_ddl::{Change, Statement, literal_text, parse, show_create};
use mink_metadata::Table;
use mink_types::schema::{FieldId, Literal, Schema, SchemaChange};
use mink_types::{DatabaseName, LogFormat, OptionError, PartitionId, TableOptions, TablePath};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a new table's buckets may take to open before its creation is answered all the same.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// What is said of what is there already, in the words of SQL and of the commands.
const KEEPS: &str = "IF NOT EXISTS (--if-not-exists) takes it as it is";
/// What is said of what is not there.
const DOES_WITHOUT: &str = "IF EXISTS (--if-exists) does without it";

/// A row of an answer: names and values, in order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row(Vec<(String, Value)>);

impl Row {
    fn of<const N: usize>(fields: [(&str, Value); N]) -> Row {
        Row(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The row as a JSON object. By hand: a map would put the names into another order.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let fields: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
        format!("{{{}}}", fields.join(",")).into_bytes()
    }
}

/// Runs a statement; its rows.
pub(crate) async fn run(node: &Node, text: &str) -> Result<Vec<Row>, Status> {
    match parse(text, None).or_status()? {
        Statement::CreateDatabase { name, if_not_exists } => {
            let made = node.admin.create_database(name.clone()).await;
            Ok(done("created", "database", name.as_str(), unless_exists(made, if_not_exists)?))
        }
        Statement::DropDatabase { name, if_exists } => {
            let dropped = node.admin.drop_database(name.clone()).await;
            let shown = "SHOW DATABASES or `mink db list`";
            Ok(done("dropped", "database", name.as_str(), unless_missing(dropped, if_exists, shown)?))
        }
        Statement::CreateTable { path, if_not_exists, draft, options } => {
            if !draft.primary_key.is_empty() {
                return Err(Status::unimplemented(format!(
                    "table {path}: primary-key tables are not there yet; leave PRIMARY KEY out for a log table"
                )));
            }
            let schema = Arc::new(Schema::create(draft).or_status()?);
            let mut table = TableOptions { format: LogFormat::Arrow, ..TableOptions::default() };
            set(&mut table, &options, node)?;
            let made = node.admin.create_table(path.clone(), table, Some(schema)).await;
            if let Ok(id) = &made {
                node.admin.wait_open(*id, OPEN_PATIENCE).await;
            }
            let made = match made {
                Err(error @ AdminError::NotFound { .. }) => return Err(no_database(error, path.database)),
                made => made,
            };
            Ok(done("created", "table", &path.to_string(), unless_exists(made.map(drop), if_not_exists)?))
        }
        Statement::DropTable { path, if_exists, purge: _ } => {
            let found = node
                .admin
                .state()
                .table_at(&path)
                .filter(|_| !path.database.is_internal())
                .map(|table| table.id);
            let dropped = match found {
                Some(id) => node.admin.drop_table(id).await,
                None => Err(AdminError::NotFound { what: format!("table {path}") }),
            };
            let shown = "SHOW TABLES or `mink table list`";
            Ok(done("dropped", "table", &path.to_string(), unless_missing(dropped, if_exists, shown)?))
        }
        Statement::AlterTable { path, change } => alter(node, &path, change).await,
        Statement::ShowDatabases => {
            let state = node.admin.state();
            let shown = state.databases().filter(|database| !database.name.is_internal());
            Ok(shown.map(|database| Row::of([("database", database.name.as_str().into())])).collect())
        }
        Statement::ShowTables { database } => {
            let state = node.admin.state();
            if let Some(name) = database.as_ref().filter(|name| state.database(name).is_none()) {
                return Err(Status::not_found(format!(
                    "database {name} does not exist; SHOW DATABASES or `mink db list` shows those there are"
                )));
            }
            let shown = state.tables().filter(|table| {
                !table.path.database.is_internal()
                    && database.as_ref().is_none_or(|name| table.path.database == *name)
            });
            let row = |table: &Table| {
                Row::of([
                    ("database", table.path.database.as_str().into()),
                    ("table", table.path.table.as_str().into()),
                    ("format", table.options.format.as_str().into()),
                    ("buckets", table.buckets.into()),
                ])
            };
            Ok(shown.map(row).collect())
        }
        Statement::ShowPartitions { path } => {
            let state = node.admin.state();
            let table = address::find(&state, &path)?;
            if !table.is_partitioned() {
                return Err(Status::failed_precondition(address::not_partitioned(&path)));
            }
            Ok(table.partitions().map(|(id, _)| partition_row(table, id)).collect())
        }
        Statement::ShowCreateTable { path } => {
            let state = node.admin.state();
            let table = address::find(&state, &path)?;
            address::columns_of(table)?;
            Ok(vec![Row::of([("create_statement", create_statement(table).into())])])
        }
        Statement::Describe { path } => {
            let state = node.admin.state();
            let table = address::find(&state, &path)?;
            let schema = table.schema().map_or_else(crate::rows::kafka_columns, Arc::clone);
            Ok(columns(&schema))
        }
        Statement::Use { name } => Err(Status::invalid_argument(format!(
            "USE is for a session, as `mink sql` keeps one; name the database with each table: {name}.TABLE"
        ))),
    }
}

fn done(what: &str, kind: &str, name: &str, happened: bool) -> Vec<Row> {
    let result = if happened { what } else { "unchanged" };
    vec![Row::of([("result", result.into()), (kind, name.into())])]
}

/// Whether it was done; false if it was there and the statement allows for it.
fn unless_exists(made: Result<(), AdminError>, allowed: bool) -> Result<bool, Status> {
    match made {
        Err(AdminError::Exists { .. }) if allowed => Ok(false),
        Err(error @ AdminError::Exists { .. }) => Err(advised(error, KEEPS)),
        made => made.or_status().map(|()| true),
    }
}

/// Whether it was done; false if there was nothing and the statement allows for it. `shown` says by what all that is there is seen.
fn unless_missing(dropped: Result<(), AdminError>, allowed: bool, shown: &str) -> Result<bool, Status> {
    match dropped {
        Err(AdminError::NotFound { .. }) if allowed => Ok(false),
        Err(error @ AdminError::NotFound { .. }) => {
            Err(advised(error, format_args!("{shown} shows those there are, {DOES_WITHOUT}")))
        }
        dropped => dropped.or_status().map(|()| true),
    }
}

/// A table was to be made in a database that is not there.
fn no_database(error: AdminError, name: DatabaseName) -> Status {
    let command = format!("`mink db create {name}`");
    let statement = Statement::CreateDatabase { name, if_not_exists: false };
    advised(error, format_args!("{statement} or {command} makes it"))
}

/// The number of a table's buckets never falls: rows lie in them.
fn check_buckets(table: &Table, options: &TableOptions) -> Result<(), Status> {
    if options.buckets >= table.buckets {
        return Ok(());
    }
    let (path, count) = (&table.path, table.buckets);
    Err(Status::invalid_argument(format!(
        "table {path}: bucket.num is {count} and can only grow; set it to more than {count}, or leave it as it is"
    )))
}

fn set(table: &mut TableOptions, options: &[(String, String)], node: &Node) -> Result<(), Status> {
    for (name, value) in options {
        table.set(name, value, &node.config.limits).or_status()?;
    }
    table.check().or_status()
}

/// The statement that makes the table; none for one that Kafka's clients made.
pub(crate) fn create_statement(table: &Table) -> Option<String> {
    let options: Vec<_> =
        table.options.changed().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Some(show_create(&table.path, table.schema()?, &options))
}

async fn alter(node: &Node, path: &TablePath, changes: Vec<Change>) -> Result<Vec<Row>, Status> {
    let state = node.admin.state();
    let table = address::find(&state, path)?;
    let mut options = table.options.clone();
    let (mut schema_changes, mut partitions): (Vec<SchemaChange>, Vec<Change>) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Schema(change) => schema_changes.push(change),
            Change::SetOptions(set_to) => set(&mut options, &set_to, node)?,
            Change::ResetOptions(names) => {
                for name in names {
                    if !options.reset(&name) {
                        return Err(OptionError::Unknown { name }).or_status();
                    }
                }
            }
            partition => partitions.push(partition),
        }
    }
    options.check().or_status()?;
    check_buckets(table, &options)?;
    // Wrong values are refused before anything is done.
    for change in &partitions {
        if let Change::AddPartition { values, .. } | Change::DropPartition { values, .. } = change {
            address::partition_values(table, values)?;
        }
    }
    let schema = if schema_changes.is_empty() {
        None
    } else {
        let current = address::columns_of(table)?;
        let next = current
            .alter(&schema_changes)
            .map_err(|error| address::quoted(&format!("table {path}"), error))?;
        Some((current.id(), Arc::new(next)))
    };
    let number = schema.as_ref().map(|(_, next)| next.id().0);
    if schema.is_some() || options != table.options {
        let grown = options.buckets > table.buckets;
        node.admin.alter_table(table.id, table.options.clone(), options, schema).await.or_status()?;
        if grown {
            node.admin.wait_open(table.id, OPEN_PATIENCE).await;
        }
    }
    let mut rows = Vec::new();
    for change in partitions {
        rows.extend(partition(node, path, change).await?);
    }
    if rows.is_empty() {
        rows.push(Row::of([
            ("result", "altered".into()),
            ("table", path.to_string().into()),
            ("schema", number.into()),
        ]));
    }
    Ok(rows)
}

async fn partition(node: &Node, path: &TablePath, change: Change) -> Result<Option<Row>, Status> {
    let state = node.admin.state();
    let table = address::find(&state, path)?;
    let (result, values) = match change {
        Change::AddPartition { values, if_not_exists } => {
            let values = address::partition_values(table, &values)?;
            let (_, is_new) = address::make_partition(node, table, values.clone()).await?;
            if !is_new && !if_not_exists {
                let name = address::partition_name(table, &values);
                return Err(Status::already_exists(format!(
                    "table {path} has this partition already: {name}; {KEEPS}"
                )));
            }
            node.admin.wait_open(table.id, OPEN_PATIENCE).await;
            (if is_new { "created" } else { "unchanged" }, values)
        }
        Change::DropPartition { values, if_exists } => {
            let values = address::partition_values(table, &values)?;
            let is_dropped = drop_partition(node, table, &values).await?;
            if !is_dropped && !if_exists {
                let missing = address::no_such_partition(table, &values);
                return Err(Status::not_found(format!("{missing}, {DOES_WITHOUT}")));
            }
            (if is_dropped { "dropped" } else { "unchanged" }, values)
        }
        Change::Schema(_) | Change::SetOptions(_) | Change::ResetOptions(_) => return Ok(None),
    };
    Ok(Some(Row::of([
        ("result", result.into()),
        ("table", path.to_string().into()),
        ("partition", address::partition_name(table, &values).into()),
    ])))
}

/// Whether the partition was there.
async fn drop_partition(node: &Node, table: &Table, values: &[Literal]) -> Result<bool, Status> {
    let Some(partition) = table.partition_of(values) else { return Ok(false) };
    match node.admin.drop_partition(table.id, partition).await {
        // Somebody else was faster.
        Err(AdminError::NotFound { .. }) => Ok(false),
        dropped => dropped.or_status().map(|()| true),
    }
}

fn partition_row(table: &Table, partition: PartitionId) -> Row {
    let values = address::partition_text(table, partition);
    // A column of this name hides the number.
    let hidden = values.iter().any(|value| value.column == "partition");
    let number = (!hidden).then(|| ("partition".to_owned(), Value::from(partition.0)));
    Row(number
        .into_iter()
        .chain(values.into_iter().map(|value| (value.column, Value::from(value.value))))
        .collect())
}

fn columns(schema: &Schema) -> Vec<Row> {
    let within = |ids: &[FieldId], id: FieldId| Value::from(ids.contains(&id));
    let row = |column: &mink_types::schema::Field| {
        let default = column.default.as_ref().map(|default| literal_text(&column.data_type, default));
        Row::of([
            ("column", column.name.as_str().into()),
            ("type", column.data_type.to_string().into()),
            ("nullable", column.nullable.into()),
            ("default", default.into()),
            ("comment", column.comment.clone().into()),
            ("partition", within(schema.partitioned_by(), column.id)),
            ("bucket_key", within(schema.bucket_key(), column.id)),
            ("id", column.id.0.into()),
        ])
    };
    schema.columns().iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::tests::state;

    #[test]
    fn the_number_of_buckets_only_grows_and_the_refusal_says_what_it_is() {
        let state = state();
        let path = TablePath::parse("sales.orders").expect("a path");
        let table = state.table_at(&path).expect("the table");
        let buckets = |buckets| TableOptions { buckets, ..table.options.clone() };
        assert!(check_buckets(table, &buckets(4)).is_ok() && check_buckets(table, &buckets(5)).is_ok());
        let refused = check_buckets(table, &buckets(3)).expect_err("fewer than there are");
        assert!(
            refused.message().starts_with("table sales.orders: bucket.num is 4 and can only grow"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_there_already_or_not_there_is_told_with_what_to_do() {
        let exists = || Err(AdminError::Exists { what: "database sales".into() });
        assert!(!unless_exists(exists(), true).expect("allowed"));
        let words = unless_exists(exists(), false).expect_err("refused").message().to_owned();
        assert_eq!(words, "database sales exists already; IF NOT EXISTS (--if-not-exists) takes it as it is");
        let missing = || Err(AdminError::NotFound { what: "table a.b".into() });
        assert!(!unless_missing(missing(), true, "SHOW TABLES").expect("allowed"));
        let words =
            unless_missing(missing(), false, "SHOW TABLES").expect_err("refused").message().to_owned();
        let expected = "table a.b does not exist; SHOW TABLES shows those there are, IF EXISTS (--if-exists) does without it";
        assert_eq!(words, expected);
        let name = DatabaseName::new("my-db").expect("a name");
        let words = no_database(AdminError::NotFound { what: "database my-db".into() }, name);
        let words = words.message();
        assert!(words.ends_with("CREATE DATABASE \"my-db\" or `mink db create my-db` makes it"), "{words}");
    }

    #[test]
    fn a_row_keeps_its_order_and_is_json_whatever_a_column_is_called() {
        let row = Row(vec![("z\"\n".into(), Value::from("a\"b")), ("a".into(), Value::Null)]);
        let text = String::from_utf8(row.to_json()).expect("text");
        assert_eq!(text, r#"{"z\"\n":"a\"b","a":null}"#);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read.get("z\"\n"), Some(&Value::from("a\"b")));
    }
}
