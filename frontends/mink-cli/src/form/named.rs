//! What a command line names of a table with columns beside the columns it wants: buckets, partitions, constants.
//!
//! Lives on: anywhere (pure).
//! Invariants: what the table has not is wrong usage, whichever flag names it, and is told before a row is read.
use super::columns::{RowTable, listed};
use super::day::{has_days, no_such_day};
use crate::failure::Failure;
use mink_ddl::literal_of;
use mink_types::schema::{Field, Literal};

/// Refuses a bucket that the table has not.
pub(crate) fn check_bucket(table: &RowTable, bucket: Option<u32>) -> Result<(), Failure> {
    match bucket.filter(|bucket| *bucket >= table.buckets) {
        Some(bucket) => Err(Failure::usage(format!(
            "--bucket {bucket}: {} has no such bucket; it has {}",
            table.path,
            counted(table.buckets as usize)
        ))),
        None => Ok(()),
    }
}

/// The column of this name, which `flag` names.
pub(crate) fn column<'a>(table: &'a RowTable, flag: &str, name: &str) -> Result<&'a Field, Failure> {
    table.schema.column(name).ok_or_else(|| {
        let RowTable { path, schema, .. } = table;
        Failure::usage(format!("{flag}: table {path} has no column {name:?}; it has {}", listed(schema)))
    })
}

/// The partition that `--partition COLUMN=VALUE` names: columns that the table is partitioned by, each with its value.
pub(crate) fn partition(table: &RowTable, given: &[String]) -> Result<Vec<(Field, Literal)>, Failure> {
    let mut named: Vec<(Field, Literal)> = Vec::with_capacity(given.len());
    for given in given {
        let (name, value) = partition_value(given).map_err(Failure::Usage)?;
        let flag = format!("--partition {given}");
        let field = column(table, &flag, &name)?;
        if !table.partitioned_by.contains(&name) {
            return Err(Failure::usage(format!(
                "{flag}: table {} is {}",
                table.path,
                match table.partitioned_by.as_slice() {
                    [] => "not partitioned".to_owned(),
                    columns => format!("partitioned by {}, not by {name:?}", columns.join(", ")),
                }
            )));
        }
        if named.iter().any(|(known, _)| known.name == name) {
            return Err(Failure::usage(format!("{flag}: column {name:?} is named twice")));
        }
        let value = constant(field, &value).map_err(|why| Failure::usage(format!("{flag}: {why}")))?;
        named.push((field.clone(), value));
    }
    Ok(named)
}

/// `COLUMN=VALUE`, of a partition.
pub(crate) fn partition_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, value)) if !column.is_empty() => Ok((column.to_owned(), value.to_owned())),
        _ => Err(format!(
            "--partition {text}: a partition of rows is COLUMN=VALUE, once for each column that the table is partitioned by"
        )),
    }
}

/// The constant of a column's type that a text means.
pub(crate) fn constant(column: &Field, text: &str) -> Result<Literal, String> {
    if !column.data_type.is_scalar() {
        return Err(format!(
            "column {:?} is {}; only scalar columns have constants",
            column.name, column.data_type
        ));
    }
    literal_of(&column.data_type, text).map_err(|error| {
        let no_day = if has_days(&column.data_type) { no_such_day(text) } else { None };
        no_day.unwrap_or_else(|| error.to_string())
    })
}

/// Refuses a partition that a topic of so many has not.
pub(crate) fn check_partition_number(
    table: &impl std::fmt::Display,
    count: usize,
    number: Option<i32>,
) -> Result<(), Failure> {
    let is_there = |number: &i32| usize::try_from(*number).is_ok_and(|number| number < count);
    match number.filter(|number| !is_there(number)) {
        Some(number) => Err(Failure::usage(format!(
            "--partition {number}: {table} has no such partition; it has {}",
            counted(count)
        ))),
        None => Ok(()),
    }
}

/// The numbers that there are, of so many.
fn counted(count: usize) -> String {
    match count {
        0 => "none".to_owned(),
        1 => "0 alone".to_owned(),
        _ => format!("0 to {}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::table;
    use super::*;

    #[track_caller]
    fn usage<T: std::fmt::Debug>(refused: Result<T, Failure>, words: &[&str]) {
        let Err(Failure::Usage(said)) = refused else { panic!("{refused:?} is no wrong usage") };
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }

    fn named(given: &[&str]) -> Result<Vec<(Field, Literal)>, Failure> {
        let given: Vec<String> = given.iter().map(|given| (*given).to_owned()).collect();
        partition(&table("a INT, dt DATE, region STRING", &["dt", "region"]), &given)
    }

    #[test]
    fn a_partition_is_read_as_its_columns_types_say() {
        let found = named(&["region=eu=x", "dt=1970-01-02"]).expect("both are partition columns");
        let found: Vec<_> =
            found.iter().map(|(column, value)| (column.name.as_str(), value.clone())).collect();
        assert_eq!(found, [("region", Literal::Text("eu=x".into())), ("dt", Literal::Integer(1))]);
    }

    #[test]
    fn what_the_table_has_not_is_wrong_usage_whichever_flag_names_it() {
        usage(named(&["nope=1"]), &["no column \"nope\"", "a, dt, region"]);
        usage(named(&["a=1"]), &["partitioned by dt, region, not by \"a\""]);
        usage(named(&["dt=1970-01-01", "dt=1970-01-02"]), &["twice"]);
        usage(named(&["dt=2026-02-31"]), &["--partition dt=2026-02-31: there is no day 2026-02-31"]);
        usage(named(&["dt=soon"]), &["soon", "YYYY-MM-DD"]);
        usage(named(&["dt"]), &["COLUMN=VALUE"]);
        let plain = table("a INT, l ARRAY<INT>", &[]);
        usage(partition(&plain, &["a=1".into()]), &["not partitioned"]);
        usage(check_bucket(&plain, Some(1)), &["sales.orders has no such bucket; it has 0 alone"]);
        assert_eq!(check_bucket(&plain, Some(0)), Ok(()));
        usage(
            column(&plain, "--where", "b"),
            &["--where: table sales.orders has no column \"b\"; it has a, l"],
        );
        let words = constant(column(&plain, "--where", "l").expect("it has one"), "1").expect_err("nested");
        assert!(words.contains("only scalar"), "{words}");
        usage(
            check_partition_number(&"kafka.t", 3, Some(3)),
            &["kafka.t has no such partition; it has 0 to 2"],
        );
        assert_eq!(check_partition_number(&"kafka.t", 3, Some(2)), Ok(()));
    }
}
