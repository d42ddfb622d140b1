//! `mink sql`: statements on databases, tables and partitions, given on the command line, in a file, on stdin, or typed.
//!
//! Lives on: the command's task.
//! Invariants: a script is split wholly before anything of it is done; it ends at the first statement that fails, with exit code 1.
mod row;
mod script;
mod session;
mod shell;

pub(crate) use row::Row;
pub(crate) use script::{Source, read_script, run as run_script, starts_with};

use session::Session;

use crate::address::AdminAddress;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, check_terminal, printer};
use clap::Args;
use mink_client::flight::FlightClient;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mink sql                                             a shell; \\q leaves it
  mink sql -e 'CREATE DATABASE sales'
  mink sql -e 'CREATE TABLE sales.orders (id BIGINT NOT NULL, customer STRING); SHOW TABLES FROM sales'
  mink sql -f schema.sql                               statements end with ;
  mink sql -e 'USE sales; DESCRIBE orders' --output json
  mink sql -e 'SHOW CREATE TABLE sales.orders' | mink sql --addr other:9123

Statements: CREATE and DROP DATABASE; CREATE, ALTER and DROP TABLE; SHOW DATABASES, TABLES, PARTITIONS and CREATE TABLE; DESCRIBE;
USE, which names the database of names without one.
Rows go in and out with `mink write` and `mink read`. docs/sql.md has all types and options.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SqlArgs {
    /// Run these statements, separated by ;
    #[arg(short = 'e', long, value_name = "STATEMENTS", conflicts_with = "file")]
    execute: Option<String>,
    /// Run the statements of a file; - is stdin
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    node: AdminAddress,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(args: SqlArgs) -> Result<(), Failure> {
    let form = args.output.output;
    check_terminal(form, std::io::stdout().is_terminal())?;
    let (source, text) = match (args.execute, args.file) {
        (Some(text), _) => (None, text),
        (None, Some(file)) => (Some(file.display().to_string()), read_script(&file)?),
        (None, None) if std::io::stdin().is_terminal() => return shell::run(&args.node, form).await,
        (None, None) => (Some("stdin".to_owned()), read_script(Path::new("-"))?),
    };
    let client = args.node.flight().await?;
    let source = source.as_deref().map_or(Source::Typed, Source::Named);
    run_script(&client, source, &text, |rows| print(form, rows)).await
}

/// Runs one statement that was made here; its rows.
pub(crate) async fn rows(client: &FlightClient, statement: &str) -> Result<Vec<Row>, Failure> {
    let rows = client.sql_json(statement).await.map_err(|error| Failure::flight(&error))?;
    row::read(&rows)
}

/// Tells on stderr what statements did.
pub(crate) fn tell(rows: &[Row]) -> Result<(), Failure> {
    for told in rows.iter().filter_map(row::told) {
        writeln!(std::io::stderr(), "{told}")?;
    }
    Ok(())
}

/// The statements that SHOW CREATE TABLE has answered, whole: `mink sql` takes them again. None for other rows.
fn statements(rows: &[Row]) -> Option<String> {
    let columns = row::columns(rows);
    let is_statement = matches!(columns.as_slice(), [only] if only == "create_statement");
    is_statement.then(|| {
        let texts = rows.iter().flat_map(|row| row.values(&columns));
        texts.map(|text| crate::output::text(&text) + ";\n").collect()
    })
}

/// Prints what a statement has answered: for people a result in words, statements as they are, and rows as a table.
fn print(form: Form, rows: &[Row]) -> Result<(), Failure> {
    if form == Form::Table {
        if rows.is_empty() {
            eprintln!("no rows");
            return Ok(());
        }
        if let Some(results) = rows.iter().map(row::told).collect::<Option<Vec<_>>>() {
            return Ok(writeln!(std::io::stdout(), "{}", results.join("\n"))?);
        }
        if let Some(statements) = statements(rows) {
            return Ok(write!(std::io::stdout(), "{statements}")?);
        }
    }
    let columns = row::columns(rows);
    let mut printer = printer(form, &columns)?;
    if !rows.is_empty() || form == Form::Arrow {
        for row in rows {
            printer.row(row.values(&columns))?;
        }
        printer.finish()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SqlArgs,
    }

    #[test]
    fn a_statement_that_makes_a_table_is_shown_so_that_it_can_be_run_again() {
        let text = "CREATE TABLE a.b (\n  c STRING COMMENT 'it''s; -- so'\n)";
        let rows = vec![Row::of([("create_statement", text.into())]); 2];
        let shown = statements(&rows).expect("statements");
        assert_eq!(shown, format!("{text};\n{text};\n"));
        let parts: Vec<_> = mink_ddl::split(&shown).collect::<Result<_, _>>().expect("whole");
        assert_eq!(parts.iter().map(|part| part.text).collect::<Vec<_>>(), [text, text]);
        assert_eq!(statements(&[Row::of([("partition", 5.into()), ("create_statement", "x".into())])]), None);
        assert_eq!(statements(&[]), None);
    }

    #[test]
    fn statements_come_from_one_place() {
        let parse = |words: &[&str]| Line::try_parse_from(["sql"].iter().chain(words));
        assert_eq!(parse(&["-e", "SHOW TABLES"]).unwrap().args.execute.as_deref(), Some("SHOW TABLES"));
        assert_eq!(parse(&["-f", "-"]).unwrap().args.file, Some(PathBuf::from("-")));
        assert!(parse(&["-e", "x", "-f", "y"]).is_err() && parse(&["SHOW"]).is_err());
    }
}
