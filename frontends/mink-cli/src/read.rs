//! `mink read`: rows or records of a table by offset or time.
//!
//! Lives on: the command's task, and one task per partition where records are followed.
//! Invariants: without `--follow` it ends at what was there when it began; what is read and not yet printed is bounded.
mod away;
mod condition;
mod print;
mod records;
mod rows;

use crate::address::{NodeAddress, table_path};
use crate::failure::Failure;
use crate::form::Encoding;
use crate::form::columns::{Contents, contents, partition_number, refuse_given};
use crate::output::Form;
use clap::{Args, ValueEnum};
use condition::{Condition, condition};
use mink_client::Position;
use mink_types::TablePath;

const EXAMPLES: &str = "\
Examples:
  mink read sales.orders --output table                   everything
  mink read sales.orders --columns id,amount --where 'id>=1000' --output csv
  mink read sales.orders --output arrow > orders.arrow    an Arrow IPC stream
  mink read kafka.events                                  everything, as JSON lines
  mink read kafka.events --from latest --follow           what comes from now on
  mink read kafka.events --from 1000 --partition 0 -n 10 --output table
  mink read kafka.events --from 2026-01-31T10:00:00Z      from the first record at or after that time
  mink read kafka.events | mink write kafka.copy          byte for byte

A condition is COLUMN = VALUE, also with != < <= > >=, or COLUMN IS NULL, COLUMN IS NOT NULL; of several --where all must hold.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReadArgs {
    /// DATABASE.TABLE; a Kafka topic is kafka.TOPIC
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// What of the table: log (others are not in this version)
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Log)]
    mode: Mode,
    /// earliest, latest, an offset, a time (2026-01-31T10:00:00Z), or ms since 1970 (@1700000000000)
    #[arg(long, value_name = "WHERE", default_value = "earliest", value_parser = from)]
    from: From,
    /// Go on with what is new until interrupted
    #[arg(long)]
    follow: bool,
    /// End after so many rows or records
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<u64>,
    /// Only these columns, in this order
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Only rows that meet this, as 'amount >= 10'; may be given several times
    #[arg(long = "where", value_name = "CONDITION", value_parser = condition)]
    conditions: Vec<Condition>,
    /// One bucket only
    #[arg(long, value_name = "N")]
    bucket: Option<u32>,
    /// One partition only: of rows COLUMN=VALUE, of records a number
    #[arg(long, value_name = "P")]
    partition: Vec<String>,
    /// How keys, values and headers of records stand in the results (text if not given)
    #[arg(long, value_enum, value_name = "FORM")]
    encoding: Option<Encoding>,
    /// How results look
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Json)]
    output: Form,
    #[command(flatten)]
    node: NodeAddress,
}

/// What of a table is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// All rows as they came
    Log,
    /// Rows in the lake
    Snapshot,
    /// Rows in the lake and behind it
    Union,
    /// Changes of a table with a primary key
    Changelog,
}

/// Where to begin, or where a group goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Position(Position),
    Offset(i64),
}

pub(crate) fn from(text: &str) -> Result<From, String> {
    let time = |ms| From::Position(Position::AtOrAfter(ms));
    match text {
        "earliest" => return Ok(From::Position(Position::Earliest)),
        "latest" => return Ok(From::Position(Position::Latest)),
        _ => {}
    }
    if let Ok(offset) = text.parse::<i64>() {
        return if offset < 0 { Err("offsets begin at 0".into()) } else { Ok(From::Offset(offset)) };
    }
    if let Some(ms) = text.strip_prefix('@') {
        let ms = ms.parse::<i64>().ok().filter(|ms| *ms >= 0);
        return ms.map(time).ok_or_else(|| "write @ and ms since 1970".into());
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(time(at.as_millisecond()));
    }
    Err("write earliest, latest, an offset, a time like 2026-01-31T10:00:00Z, or @MILLISECONDS".into())
}

pub(crate) async fn run(args: ReadArgs) -> Result<(), Failure> {
    if args.mode != Mode::Log {
        return Err(Failure::usage(
            "--mode log alone is in this version: tables have a log, and neither a lake nor a primary key yet",
        ));
    }
    match contents(&args.table, &args.node).await? {
        Contents::Records => {
            let partition = partition_number(&args.partition)?;
            let flags = [
                ("--columns", !args.columns.is_empty()),
                ("--where", !args.conditions.is_empty()),
                ("--bucket", args.bucket.is_some()),
            ];
            refuse_given(
                &flags,
                "is for tables with columns; records have a key, a value, headers and a --partition",
            )?;
            records::read(records::RecordsArgs {
                table: args.table,
                from: args.from,
                follow: args.follow,
                limit: args.limit,
                partition,
                encoding: args.encoding.unwrap_or(Encoding::Text),
                output: args.output,
                node: args.node,
            })
            .await
        }
        Contents::Rows(table, client) => {
            let why = "is for tables of Kafka's clients; rows are typed, and docs/json.md says how they are written";
            refuse_given(&[("--encoding", args.encoding.is_some())], why)?;
            rows::read(&table, &client, &args).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_begin_is_a_word_an_offset_or_a_time() {
        assert_eq!(from("earliest"), Ok(From::Position(Position::Earliest)));
        assert_eq!(from("latest"), Ok(From::Position(Position::Latest)));
        assert_eq!(from("1000"), Ok(From::Offset(1000)));
        let time = From::Position(Position::AtOrAfter(1_357_034_400_000));
        assert_eq!((from("2013-01-01T10:00:00Z"), from("@1357034400000")), (Ok(time), Ok(time)));
        assert_eq!(from("2013-01-01T12:00:00+02:00"), Ok(time));
        for wrong in ["", "-1", "@", "@x", "yesterday", "10:00"] {
            from(wrong).expect_err(wrong);
        }
    }
}
