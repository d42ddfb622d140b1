//! Which table, partition and buckets a client means.
//!
//! Lives on: anywhere (pure).
use crate::node::Node;
use crate::status::{IntoStatus, OrStatus};
use arrow_flight::FlightDescriptor;
use arrow_flight::flight_descriptor::DescriptorType;
use mink_api::AdminError;
use mink_ddl::{literal_of, literal_text};
use mink_metadata::{PARTITION_VALUE_BYTES_MAX, State, Table};
use mink_proto::{PartitionValue, command};
use mink_types::schema::{Field, Literal, Schema};
use mink_types::{BucketId, BucketIndex, DatabaseName, PartitionId, TableName, TablePath};
use tonic::Status;

/// The address `database.table`, from its parts.
pub(crate) fn table_path(database: &str, table: &str) -> Result<TablePath, Status> {
    Ok(TablePath {
        database: DatabaseName::new(database).or_status()?,
        table: TableName::new(table).or_status()?,
    })
}

/// The table of this address. Mink's own are nobody's.
pub(crate) fn find<'a>(state: &'a State, path: &TablePath) -> Result<&'a Table, Status> {
    state.table_at(path).filter(|_| !path.database.is_internal()).ok_or_else(|| not_found(path))
}

pub(crate) fn not_found(path: &TablePath) -> Status {
    Status::not_found(format!("table {path} does not exist; create it first, or see `mink table list`"))
}

/// What a descriptor says: a path means the table with nothing else, to append to or to scan as the call is.
pub(crate) enum Meant {
    Table(TablePath),
    Command(command::Command),
}

/// Reads a descriptor.
pub(crate) fn meant(descriptor: &FlightDescriptor) -> Result<Meant, Status> {
    if descriptor.r#type == DescriptorType::Cmd as i32 {
        return Ok(Meant::Command(mink_proto::Command::read(&descriptor.cmd).or_status()?));
    }
    let path = match descriptor.path.as_slice() {
        [database, table] => table_path(database, table)?,
        [address] => TablePath::parse(address).or_status()?,
        _ => {
            return Err(Status::invalid_argument(
                "the descriptor names no table; give the path [database, table], or a mink.v1.Command",
            ));
        }
    };
    Ok(Meant::Table(path))
}

/// The schema of a table with columns.
pub(crate) fn columns_of(table: &Table) -> Result<&std::sync::Arc<Schema>, Status> {
    table.schema().ok_or_else(|| {
        Status::failed_precondition(format!(
            "table {} has the kafka format: its records are written over the Kafka protocol",
            table.path
        ))
    })
}

/// The values of a partition, in the order of the columns that the table is partitioned by.
pub(crate) fn partition_values(table: &Table, named: &[(String, String)]) -> Result<Vec<Literal>, Status> {
    let schema = columns_of(table)?;
    let columns: Vec<_> = schema.partitioned_by().iter().filter_map(|id| schema.column_by_id(*id)).collect();
    let wanted = || columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    if columns.is_empty() {
        return Err(Status::invalid_argument(not_partitioned(&table.path)));
    }
    if let Some((unknown, _)) =
        named.iter().find(|(name, _)| !columns.iter().any(|column| column.name == *name))
    {
        return Err(Status::invalid_argument(format!(
            "table {} is not partitioned by {unknown:?}; its partition columns are {}",
            table.path,
            wanted()
        )));
    }
    columns
        .iter()
        .map(|column| {
            let mut values = named.iter().filter(|(name, _)| *name == column.name);
            match (values.next(), values.next()) {
                (Some((_, text)), None) => literal_of(&column.data_type, text).map_err(|error| {
                    Status::invalid_argument(format!("partition column {:?}: {error}", column.name))
                }),
                _ => Err(Status::invalid_argument(format!(
                    "give each partition column of table {} one value: {}",
                    table.path,
                    wanted()
                ))),
            }
        })
        .collect()
}

/// Makes a partition, or finds it; whether it is new.
pub(crate) async fn make_partition(
    node: &Node,
    table: &Table,
    values: Vec<Literal>,
) -> Result<(PartitionId, bool), Status> {
    let made = node.admin.create_partition(table.id, values.clone()).await;
    made.map_err(|error| match error {
        AdminError::Limit { why } => Status::failed_precondition(format!(
            "partition {} of table {} cannot be made: {why}; its values may have {PARTITION_VALUE_BYTES_MAX} bytes",
            partition_name(table, &values),
            table.path
        )),
        error => error.into_status(),
    })
}

/// The partition that a message names; none if it names none.
pub(crate) fn partition_named(
    table: &Table,
    named: &[PartitionValue],
) -> Result<Option<PartitionId>, Status> {
    if named.is_empty() {
        return Ok(None);
    }
    let pairs: Vec<_> = named.iter().map(|value| (value.column.clone(), value.value.clone())).collect();
    let values = partition_values(table, &pairs)?;
    match table.partition_of(&values) {
        Some(partition) => Ok(Some(partition)),
        None => Err(Status::not_found(format!(
            "{}; `mink partition create` makes it",
            no_such_partition(table, &values)
        ))),
    }
}

/// What is said to whoever asks for the partitions of a table that has none.
pub(crate) fn not_partitioned(path: &TablePath) -> String {
    format!(
        "table {path} is not partitioned: leave the partition out, or make a table that is, by CREATE TABLE ... PARTITIONED BY (column)"
    )
}

/// What is said where a partition is not there.
pub(crate) fn no_such_partition(table: &Table, values: &[Literal]) -> String {
    let (path, name) = (&table.path, partition_name(table, values));
    format!(
        "table {path} has no such partition: {name}; SHOW PARTITIONS or `mink partition list {path}` shows those there are"
    )
}

/// A partition as people name it: `dt=2026-01-31, region=north`. Cut, and with control characters escaped: it may reach a terminal.
pub(crate) fn partition_name(table: &Table, values: &[Literal]) -> String {
    let schema = table.schema();
    let columns = schema.into_iter().flat_map(|schema| schema.partitioned_by());
    let columns = columns.filter_map(|id| schema?.column_by_id(*id));
    let named = columns.zip(values).map(|(column, value)| {
        let (name, value) = (shown(&column.name), shown(&literal_text(&column.data_type, value)));
        format!("{name}={value}")
    });
    named.collect::<Vec<_>>().join(", ")
}

/// A bucket as people name it: `bucket 3`, or `bucket 3 of partition dt=2026-01-31`.
pub(crate) fn bucket_name(table: &Table, bucket: &BucketId) -> String {
    match table.partition(bucket.partition).filter(|values| !values.is_empty()) {
        Some(values) => format!("bucket {} of partition {}", bucket.bucket, partition_name(table, values)),
        None => format!("bucket {}", bucket.bucket),
    }
}

/// Of a name or a value, in words for people, in characters.
const SHOWN_CHARS: usize = 60;

fn shown(text: &str) -> String {
    let printed = text.chars().take(SHOWN_CHARS).flat_map(|found| {
        let is_plain = matches!(found, '\'' | '"' | '\\');
        let escaped = (!is_plain).then(|| found.escape_debug());
        escaped.into_iter().flatten().chain(is_plain.then_some(found))
    });
    let cut = if text.chars().nth(SHOWN_CHARS).is_some() { "..." } else { "" };
    printed.collect::<String>() + cut
}

/// The buckets that a call is about: one, those of a partition, or all.
pub(crate) fn buckets(
    table: &Table,
    partition: Option<PartitionId>,
    bucket: Option<u32>,
) -> Result<Vec<BucketId>, Status> {
    if let Some(index) = bucket.filter(|index| *index >= table.buckets) {
        return Err(Status::invalid_argument(format!(
            "table {} has no bucket {index}; it has {}, numbered from 0",
            table.path, table.buckets
        )));
    }
    let all = table.bucket_ids().filter(|id| partition.is_none_or(|partition| id.partition == partition));
    Ok(all.filter(|id| bucket.is_none_or(|index| id.bucket == BucketIndex(index))).collect())
}

/// A name that the client typed, in an error about it.
pub(crate) fn quoted<E: IntoStatus>(what: &str, error: E) -> Status {
    let status = error.into_status();
    Status::new(status.code(), format!("{what}: {}", status.message()))
}

/// A partition as a message names it; nothing for the one partition of a table that is not partitioned.
pub(crate) fn partition_text(table: &Table, partition: PartitionId) -> Vec<PartitionValue> {
    let (Some(values), Some(schema)) = (table.partition(partition), table.schema()) else {
        return Vec::new();
    };
    let columns = schema.partitioned_by().iter().filter_map(|id| schema.column_by_id(*id));
    let text = |(column, value): (&Field, &Literal)| PartitionValue {
        column: column.name.clone(),
        value: literal_text(&column.data_type, value),
    };
    columns.zip(values).map(text).collect()
}

/// The columns that a table is partitioned by, for an error.
pub(crate) fn partition_columns(table: &Table) -> String {
    let schema = table.schema();
    let ids = schema.into_iter().flat_map(|schema| schema.partitioned_by());
    let names = ids.filter_map(|id| schema?.column_by_id(*id)).map(|column| column.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use mink_ddl::Statement;
    use mink_metadata::{Command, FEATURE_LEVEL_MAX, Group, NewTable};
    use mink_types::{ClusterUuid, LogFormat, RequestId, SessionId, TableOptions, TableUuid, Witness};
    use std::sync::Arc;

    const ORDERS: &str = "CREATE TABLE sales.orders (id BIGINT, dt DATE NOT NULL, region STRING NOT NULL) \
         PARTITIONED BY (dt, region)";

    /// Metadata with the table `sales.orders` of four buckets, partitioned by `dt` and `region`.
    pub(crate) fn state() -> State {
        let Ok(Statement::CreateTable { path, draft, .. }) = mink_ddl::parse(ORDERS, None) else {
            panic!("{ORDERS}")
        };
        let database = Command::CreateDatabase { name: path.database.clone() };
        let levels = (2..=FEATURE_LEVEL_MAX).map(|level| Command::RaiseFeatureLevel { level });
        let table = Command::CreateTable(NewTable {
            path,
            uuid: TableUuid([5; 16]),
            options: TableOptions { format: LogFormat::Arrow, buckets: 4, ..TableOptions::default() },
            schema: Some(Arc::new(Schema::create(draft).expect("a schema"))),
            kafka_database: DatabaseName::new("kafka").expect("a name"),
            buckets_max: 100,
        });
        let mut group = Group::new();
        for (counter, command) in (1_u64..).zip([database].into_iter().chain(levels).chain([table])) {
            let request = RequestId { session: SessionId([1; 16]), counter };
            group.push(request, &command).expect("room in the row");
        }
        let mut state = State::new(ClusterUuid([7; 16]));
        drop(state.apply(&group.row(Witness::default())).expect("a row that follows"));
        state
    }

    fn value(column: &str, value: &str) -> (String, String) {
        (column.to_owned(), value.to_owned())
    }

    #[test]
    fn a_partition_is_called_by_its_values_cut_and_without_control_characters() {
        let state = state();
        let table = find(&state, &TablePath::parse("sales.orders").expect("a path")).expect("the table");
        let name = |region: &str| {
            let values = [value("region", region), value("dt", "2026-01-31")];
            partition_name(table, &partition_values(table, &values).expect("values"))
        };
        assert_eq!(name("north's \"sea\" ä"), "dt=2026-01-31, region=north's \"sea\" ä");
        assert_eq!(name("\u{1b}[2J\n"), "dt=2026-01-31, region=\\u{1b}[2J\\n");
        assert!(name(&"x".repeat(500)).ends_with("xxx...") && name(&"x".repeat(500)).len() < 100);
    }

    #[test]
    fn a_partition_that_is_not_there_is_named_and_the_way_to_it_said() {
        let state = state();
        let table = find(&state, &TablePath::parse("sales.orders").expect("a path")).expect("the table");
        let named = [("dt", "2026-01-31"), ("region", "north")]
            .map(|(column, value)| PartitionValue { column: column.into(), value: value.into() });
        let refused = partition_named(table, &named).expect_err("there is none");
        for words in ["no such partition: dt=2026-01-31, region=north;", "`mink partition list sales.orders`"]
        {
            assert!(refused.message().contains(words), "{refused}");
        }
        let flat = not_partitioned(&table.path);
        assert!(flat.contains("is not partitioned") && flat.contains("PARTITIONED BY"), "{flat}");
    }
}
