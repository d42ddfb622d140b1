//! Runs one statement of SQL on databases, tables and partitions.
//!
//! Lives on: the service runtime.
//! Invariants: I19: a statement is checked wholly before anything of it is done; one ALTER is one command of the log, but for its
//! partitions, which follow one by one. The fields of a row stand in the order in which they are to be shown.
use crate::address;
use crate::node::Node;
use crate::status::OrStatus;
use mink_api::AdminError;
use mink_ddl::{Change, Statement, literal_text, parse, show_create};
use mink_metadata::Table;
use mink_types::schema::{FieldId, Schema, SchemaChange};
use mink_types::{LogFormat, OptionError, PartitionId, TableOptions, TablePath};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a new table's buckets may take to open before its creation is answered all the same.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

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
            Ok(done("dropped", "database", name.as_str(), unless_missing(dropped, if_exists)?))
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
            Ok(done("dropped", "table", &path.to_string(), unless_missing(dropped, if_exists)?))
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
                return Err(Status::not_found(format!("database {name} does not exist; see SHOW DATABASES")));
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
                return Err(Status::failed_precondition(format!("table {path} is not partitioned")));
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
        made => made.or_status().map(|()| true),
    }
}

/// Whether it was done; false if there was nothing and the statement allows for it.
fn unless_missing(dropped: Result<(), AdminError>, allowed: bool) -> Result<bool, Status> {
    match dropped {
        Err(AdminError::NotFound { .. }) if allowed => Ok(false),
        dropped => dropped.or_status().map(|()| true),
    }
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
    let (result, partition) = match change {
        Change::AddPartition { values, if_not_exists } => {
            let values = address::partition_values(table, &values)?;
            let (partition, is_new) = node.admin.create_partition(table.id, values).await.or_status()?;
            if !is_new && !if_not_exists {
                return Err(Status::already_exists(format!("table {path} has this partition already")));
            }
            node.admin.wait_open(table.id, OPEN_PATIENCE).await;
            (if is_new { "created" } else { "unchanged" }, partition)
        }
        Change::DropPartition { values, if_exists } => {
            let values = address::partition_values(table, &values)?;
            match table.partition_of(&values) {
                Some(partition) => node.admin.drop_partition(table.id, partition).await.or_status()?,
                None if if_exists => {
                    return Ok(Some(of_partition("unchanged", path, None)));
                }
                None => {
                    return Err(Status::not_found(format!(
                        "table {path} has no such partition; see SHOW PARTITIONS {path}"
                    )));
                }
            }
            return Ok(Some(of_partition("dropped", path, None)));
        }
        Change::Schema(_) | Change::SetOptions(_) | Change::ResetOptions(_) => return Ok(None),
    };
    Ok(Some(of_partition(result, path, Some(partition))))
}

/// What became of a partition; one that is gone has no number.
fn of_partition(result: &str, path: &TablePath, partition: Option<PartitionId>) -> Row {
    let number = partition.map(|partition| partition.0);
    Row::of([("result", result.into()), ("table", path.to_string().into()), ("partition", number.into())])
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

    #[test]
    fn a_row_keeps_its_order_and_is_json_whatever_a_column_is_called() {
        let row = Row(vec![("z\"\n".into(), Value::from("a\"b")), ("a".into(), Value::Null)]);
        let text = String::from_utf8(row.to_json()).expect("text");
        assert_eq!(text, r#"{"z\"\n":"a\"b","a":null}"#);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read.get("z\"\n"), Some(&Value::from("a\"b")));
    }
}
