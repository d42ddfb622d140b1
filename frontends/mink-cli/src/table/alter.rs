//! `mink table alter`: columns, options and partitions of a table, by SQL text.
//!
//! Lives on: the command's task.
use super::{Meant, meant};
use crate::address::AdminAddress;
use crate::failure::Failure;
use crate::sql::{self, Source};
use clap::Args;
use mink_types::TablePath;

const EXAMPLES: &str = "\
Examples:
  mink table alter sales.orders 'ADD COLUMN note STRING AFTER customer, RENAME COLUMN amount TO total'
  mink table alter 'ALTER TABLE sales.orders ALTER COLUMN total TYPE DECIMAL(18, 2)'
  mink table alter kafka.events \"SET ('table.log.ttl' = '3600000', 'bucket.num' = '8')\"

One ALTER is done wholly or not at all; docs/sql.md has all actions. Of a table for Kafka's clients the options can be
altered, here or with Kafka's own tools, which know it as a topic (kafka.events is `events`):
  kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type topics --entity-name events \\
    --add-config retention.ms=3600000";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AlterArgs {
    /// DATABASE.TABLE, or a whole statement: ALTER TABLE ...
    #[arg(value_name = "TABLE|SQL", value_parser = meant)]
    what: Meant,
    /// What to do with the table, as SQL has it behind ALTER TABLE
    #[arg(value_name = "ACTIONS")]
    actions: Option<String>,
    #[command(flatten)]
    node: AdminAddress,
}

pub(super) async fn run(args: AlterArgs) -> Result<(), Failure> {
    let statement = statement(&args.what, args.actions.as_deref())?;
    let source = source(&args.what);
    sql::starts_with(source, &statement, &["ALTER", "TABLE"])?;
    sql::run_script(&args.node.flight().await?, source, &statement, sql::tell).await
}

/// Whether the user has typed the whole statement, so that a place in it means something.
fn source(what: &Meant) -> Source<'static> {
    match what {
        Meant::Sql(_) => Source::Typed,
        Meant::Table(_) => Source::Made,
    }
}

fn statement(what: &Meant, actions: Option<&str>) -> Result<String, Failure> {
    match (what, actions) {
        (Meant::Sql(text), None) => Ok(text.clone()),
        (Meant::Table(table), Some(actions)) => Ok(format!("ALTER TABLE {} {actions}", quoted(table))),
        (Meant::Sql(_), Some(_)) => {
            Err(Failure::usage("give one statement, ALTER TABLE ..., or a table and what to do with it"))
        }
        (Meant::Table(table), None) => Err(Failure::usage(format!(
            "say what to do with {table}: mink table alter {table} 'ADD COLUMN note STRING'"
        ))),
    }
}

/// The table's address as SQL. No name holds a quote.
fn quoted(table: &TablePath) -> String {
    format!("\"{}\".\"{}\"", table.database, table.table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_actions_are_one_statement_whatever_the_table_is_called() {
        let table = meant("kafka.a-b.c").expect("a table");
        let text = statement(&table, Some("SET ('table.log.ttl' = '1h')")).expect("a statement");
        let parsed = mink_ddl::parse(&text, None).expect("SQL").to_string();
        assert_eq!(parsed, "ALTER TABLE kafka.\"a-b.c\" SET ('table.log.ttl' = '1h')");
        let whole = meant("ALTER TABLE a.b DROP COLUMN c").expect("a statement");
        assert_eq!((source(&table), source(&whole)), (Source::Made, Source::Typed));
        assert_eq!(statement(&whole, None), Ok("ALTER TABLE a.b DROP COLUMN c".into()));
    }

    #[test]
    fn half_a_statement_is_refused_with_a_whole_one() {
        let table = meant("a.b").expect("a table");
        assert!(
            matches!(statement(&table, None), Err(Failure::Usage(words)) if words.contains("ADD COLUMN"))
        );
        let whole = meant("ALTER TABLE a.b DROP COLUMN c").expect("a statement");
        assert!(matches!(statement(&whole, Some("x")), Err(Failure::Usage(_))));
    }
}
