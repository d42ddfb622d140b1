//! Tells the rows of one `write` apart: which partition and bucket each belongs to, as the table's nodes would.
//!
//! Lives on: anywhere (pure); whoever writes. Looks once at each value of the keys.
//! Invariants: a row's place follows from its values and the table's statement alone, so it is the same in every client and node; rows keep
//! their order within a place. Rows are refused whole, before any of them is sent.
use crate::flight::FlightError;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use arrow_select::take::take;
use mink_ddl::{Statement, literal_of, literal_text, parse};
use mink_proto::{PartitionValue, TableDescription};
use mink_record::arrow::{Buckets, Intake, arrow_schema, literal_array, partition_values, rows_at};
use mink_types::schema::{Field, Literal, Schema, SchemaDraft};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The values of a partition as text, each with its column, in the table's order; empty where nobody names one.
pub(super) type Partition = Vec<(String, String)>;

/// Where rows go, as far as it is said.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Place {
    pub(super) partition: Partition,
    pub(super) bucket: Option<u32>,
}

/// What the writer's owner has named already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) partition: bool,
    pub(super) bucket: bool,
}

/// How the rows of a table are told apart.
#[derive(Debug)]
pub(super) struct Route {
    /// The columns by which they are, and no others.
    keys: Schema,
    strict: SchemaRef,
    /// None: rows of a partition may go to any of its buckets.
    buckets: Option<Buckets>,
    by_partition: bool,
}

impl Route {
    /// None if no row needs to be looked at.
    pub(super) fn of(table: &TableDescription, named: Named) -> Result<Option<Route>, FlightError> {
        let by_partition = !table.partitioned_by.is_empty() && !named.partition;
        let by_key = !table.bucket_key.is_empty() && table.buckets > 1 && !named.bucket;
        if !by_partition && !by_key {
            return Ok(None);
        }
        let columns_if = |wanted: bool, names: &[String]| if wanted { names.to_vec() } else { Vec::new() };
        let partitioned_by = columns_if(by_partition, &table.partitioned_by);
        let bucket_key = columns_if(by_key, &table.bucket_key);
        let is_key =
            |column: &Field| partitioned_by.contains(&column.name) || bucket_key.contains(&column.name);
        let columns = columns_of(table)?.into_iter().filter(is_key).collect();
        let draft = SchemaDraft { columns, partitioned_by, bucket_key, ..SchemaDraft::default() };
        let keys = Schema::create(draft).map_err(FlightError::protocol)?;
        let (strict, buckets) = (arrow_schema(&keys), Buckets::new(&keys, table.buckets));
        Ok(Some(Route { keys, strict, buckets, by_partition }))
    }

    /// Whether a row's bucket follows from its values.
    pub(super) fn chooses_buckets(&self) -> bool {
        self.buckets.is_some()
    }

    /// The rows of each place, in the order of places.
    pub(super) fn parts(&self, rows: &RecordBatch) -> Result<Vec<(Place, RecordBatch)>, FlightError> {
        let keys = self.keys_of(rows)?;
        let buckets = self.buckets.as_ref().map(|buckets| buckets.of(&keys)).transpose().map_err(refused)?;
        let mut found: BTreeMap<(Vec<Literal>, Option<u32>), Vec<u32>> = BTreeMap::new();
        for row in 0..keys.num_rows() {
            let values =
                if self.by_partition { partition_values(&self.keys, &keys, row) } else { Ok(Vec::new()) };
            let bucket = buckets.as_ref().and_then(|buckets| buckets.get(row).copied());
            let place = (values.map_err(refused)?, bucket);
            found.entry(place).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
        }
        let parts = found.into_iter().map(|((values, bucket), places)| {
            let place = Place { partition: self.partition(&values), bucket };
            let all = places.len() == rows.num_rows();
            let part = if all { rows.clone() } else { rows_at(rows, places).map_err(refused)? };
            Ok((place, part))
        });
        parts.collect()
    }

    fn partition(&self, values: &[Literal]) -> Partition {
        let columns = self.keys.partitioned_by().iter().filter_map(|id| self.keys.column_by_id(*id));
        let text = |(column, value): (&Field, &Literal)| {
            (column.name.clone(), literal_text(&column.data_type, value))
        };
        columns.zip(values).map(text).collect()
    }

    /// The columns of the keys, as the table has them.
    fn keys_of(&self, rows: &RecordBatch) -> Result<RecordBatch, FlightError> {
        let is_key = |field: &&FieldRef| self.keys.column(field.name()).is_some();
        let sent: Vec<FieldRef> =
            rows.schema_ref().fields().iter().filter(is_key).map(FieldRef::clone).collect();
        // Whether they are taken for the table's is decided where nodes decide it.
        Intake::new(&self.keys, &Arc::new(ArrowSchema::new(sent))).map_err(refused)?;
        let columns = self.keys.columns().iter().zip(self.strict.fields()).map(|(column, strict)| match rows
            .column_by_name(&column.name)
        {
            Some(found) if found.data_type() == strict.data_type() => Ok(ArrayRef::clone(found)),
            Some(found) => cast(found, strict.data_type()).map_err(refused),
            None => default_column(column, rows.num_rows()),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(SchemaRef::clone(&self.strict), columns).map_err(refused)
    }
}

fn default_column(column: &Field, rows: usize) -> Result<ArrayRef, FlightError> {
    let only = column.default.as_ref().and_then(|default| literal_array(&column.data_type, default));
    let only = only.ok_or_else(|| FlightError::protocol("a default is not of its column's type"))?;
    take(only.as_ref(), &UInt32Array::from(vec![0; rows]), None).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> FlightError {
    FlightError::refused(error.to_string())
}

/// The partition that is named, as a table's nodes write its values; none if none is.
pub(super) fn partition_of(
    table: &TableDescription,
    named: &[PartitionValue],
) -> Result<Option<Partition>, FlightError> {
    if named.is_empty() {
        return Ok(None);
    }
    let columns = columns_of(table)?;
    let values = table.partitioned_by.iter().map(|name| {
        let column = columns.iter().find(|column| column.name == *name);
        let column =
            column.ok_or_else(|| FlightError::protocol("a partition column that the table lacks"))?;
        let value = named.iter().find(|value| value.column == *name).ok_or_else(|| {
            FlightError::refused(format!("the partition is named without a value of its column {name:?}"))
        })?;
        let literal = literal_of(&column.data_type, &value.value).map_err(refused)?;
        Ok((name.clone(), literal_text(&column.data_type, &literal)))
    });
    values.collect::<Result<Partition, FlightError>>().map(Some)
}

/// The columns of a table.
fn columns_of(table: &TableDescription) -> Result<Vec<Field>, FlightError> {
    match parse(&table.create_statement, None).map_err(FlightError::protocol)? {
        Statement::CreateTable { draft, .. } => Ok(draft.columns),
        _ => Err(FlightError::protocol("a table's statement is no CREATE TABLE")),
    }
}

/// As messages name a partition.
pub(super) fn partition_named(partition: &Partition) -> Vec<PartitionValue> {
    partition.iter().cloned().map(|(column, value)| PartitionValue { column, value }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::FlightErrorKind;
    use arrow_array::{Int32Array, Int64Array, StringArray, StringViewArray};
    use mink_types::schema::DataType;

    fn table(statement: &str, bucket_key: &[&str], partitioned_by: &[&str]) -> TableDescription {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TableDescription {
            create_statement: statement.into(),
            buckets: 8,
            bucket_key: names(bucket_key),
            partitioned_by: names(partitioned_by),
            ..TableDescription::default()
        }
    }

    const UNNAMED: Named = Named { partition: false, bucket: false };
    const ORDERS: &str = "CREATE TABLE sales.orders (id BIGINT, region STRING DEFAULT 'eu', day DATE, n INT) PARTITIONED BY (day, region) WITH ('bucket.num' = '8', 'bucket.key' = 'id')";

    fn orders() -> Route {
        let table = table(ORDERS, &["id"], &["day", "region"]);
        Route::of(&table, UNNAMED).expect("a sound statement").expect("it tells rows apart")
    }

    fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn ids(values: Vec<i64>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    fn days(values: Vec<i32>) -> ArrayRef {
        Arc::new(arrow_array::Date32Array::from(values))
    }

    #[test]
    fn every_row_goes_to_one_place_and_rows_keep_their_order_there() {
        let count = 1_000_i32;
        let n = Arc::new(Int32Array::from_iter_values(0..count)) as ArrayRef;
        let id = ids((0..count).map(|row| i64::from(row % 37)).collect());
        let region =
            StringViewArray::from_iter_values((0..count).map(|row| if row % 2 == 0 { "eu" } else { "us" }));
        let all = rows(vec![
            ("n", n),
            ("region", Arc::new(region)),
            ("day", days((0..count).map(|row| row % 3).collect())),
            ("id", id),
        ]);
        let parts = orders().parts(&all).expect("sound rows");
        let mut seen = Vec::new();
        for (place, part) in &parts {
            let n = part.column_by_name("n").expect("it was sent");
            let n = n.as_any().downcast_ref::<Int32Array>().expect("as it was sent").values();
            assert!(n.is_sorted(), "{place:?}");
            seen.extend(n.iter().copied());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..count).collect::<Vec<_>>());
        let keys = Schema::create(SchemaDraft {
            columns: vec![Field::new("id", DataType::BigInt)],
            bucket_key: vec!["id".into()],
            ..SchemaDraft::default()
        });
        let buckets = Buckets::new(&keys.expect("sound"), 8).expect("a key");
        for (place, part) in parts {
            let id = ArrayRef::clone(part.column_by_name("id").expect("it was sent"));
            let expected = buckets.of(&rows(vec![("id", id)])).expect("sound");
            assert!(expected.iter().all(|bucket| Some(*bucket) == place.bucket), "{place:?}");
        }
    }

    #[test]
    fn partitions_are_named_in_the_tables_order_and_defaults_count() {
        let parts =
            orders().parts(&rows(vec![("id", ids(vec![1, 1])), ("day", days(vec![0, 20_484]))])).expect("ok");
        let named: Vec<_> = parts.iter().map(|(place, _)| place.partition.clone()).collect();
        let of = |day: &str| vec![("day".to_owned(), day.to_owned()), ("region".to_owned(), "eu".to_owned())];
        assert_eq!(named, [of("1970-01-01"), of("2026-01-31")]);
    }

    #[test]
    fn rows_without_a_key_or_with_another_type_are_refused_by_the_columns_name() {
        let words = |columns| {
            let error = orders().parts(&rows(columns)).expect_err("it is refused");
            assert_eq!(error.kind(), FlightErrorKind::Refused);
            error.message().to_owned()
        };
        assert!(words(vec![("day", days(vec![1]))]).contains("id"));
        let text = Arc::new(StringArray::from(vec!["1"])) as ArrayRef;
        assert!(words(vec![("id", text), ("day", days(vec![1]))]).contains("BIGINT"));
        let null = Arc::new(Int64Array::from(vec![None])) as ArrayRef;
        assert!(words(vec![("id", null), ("day", days(vec![1]))]).contains("id"));
    }

    #[test]
    fn what_is_named_or_need_not_be_told_is_not_looked_at() {
        let both = table(ORDERS, &["id"], &["day", "region"]);
        let of = |table: &TableDescription, partition, bucket| {
            Route::of(table, Named { partition, bucket }).expect("a sound statement")
        };
        assert!(of(&both, true, true).is_none());
        assert!(of(&both, true, false).is_some_and(|route| route.chooses_buckets() && !route.by_partition));
        assert!(of(&both, false, true).is_some_and(|route| !route.chooses_buckets() && route.by_partition));
        assert!(of(&TableDescription { buckets: 1, ..both }, true, false).is_none(), "there is but one");
        assert!(of(&table("", &[], &[]), false, false).is_none());
        let broken = Route::of(&table("DROP TABLE a.b", &["id"], &[]), UNNAMED).expect_err("no table");
        assert_eq!(broken.kind(), FlightErrorKind::Protocol);
    }
}
