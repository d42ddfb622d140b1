//! `mink write`: a file or stdin becomes rows of a table, or records of a topic.
//!
//! Lives on: the command's task; files of rows are read on a thread of their own, lines of records on the blocking pool.
//! Invariants: what is read and not yet acked is bounded; it reports success only when everything was acked.
mod columnar;
mod convert;
mod csv;
mod input;
mod json;
mod magic;
mod partition;
mod portion;
mod records;
mod row_bytes;
mod rows;
mod target;

use crate::address::{NodeAddress, table_path};
use crate::failure::Failure;
use crate::form::Encoding;
use crate::form::columns::{Contents, contents, partition_number, refuse_given};
use clap::{Args, ValueEnum};
use mink_client::Codec;
use mink_types::TablePath;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mink write sales.orders orders.parquet
  mink write sales.orders orders.csv --columns id,amount
  mink write sales.days day.csv --partition dt=2026-01-31     rows that do not say their dt get this one
  mink write kafka.events events.jsonl
  mink read sales.orders | mink write sales.copy
  mink read sales.orders --output arrow | mink write sales.copy --format arrow
  mink write kafka.lines --format value /var/log/syslog

A table with columns takes JSON (one object per line), CSV (with a line of names), Parquet, and Arrow's files and streams.
What a file may hold, and which types are converted: docs/files.md.

A table of Kafka's clients takes JSON lines with any of key, value, headers, timestamp, partition:
  {\"key\":\"a\",\"value\":\"text\",\"headers\":[[\"name\",\"x\"]],\"timestamp\":\"2026-01-31T10:00:00Z\"}
A value that is no text, such as {\"amount\":1}, is stored as its JSON text. Bytes are {\"base64\":\"...\"}.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WriteArgs {
    /// DATABASE.TABLE; a Kafka topic is kafka.TOPIC
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// What to write; - is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// What the file is; if not given, its name's ending tells, and stdin is JSON lines
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<FileForm>,
    /// Write only these columns; others of the file are passed over
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Take the rows out again (for tables with a primary key; not in this version)
    #[arg(long)]
    delete: bool,
    /// All rows to this bucket; else the table's bucket key tells, or they go in turn
    #[arg(long, value_name = "N")]
    bucket: Option<u32>,
    /// Of rows COLUMN=VALUE, which rows that do not say it get, else each row tells its partition. Of records a number, else
    /// their own, their key's as Kafka's clients choose it, or in turn
    #[arg(long, value_name = "P")]
    partition: Vec<String>,
    /// How keys, values and headers of records stand in JSON lines (text if not given)
    #[arg(long, value_enum, value_name = "FORM")]
    encoding: Option<Encoding>,
    /// Compression of records: none, gzip, snappy, lz4, zstd
    #[arg(long, value_name = "NAME", value_parser = codec)]
    compression: Option<Codec>,
    #[command(flatten)]
    node: NodeAddress,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FileForm {
    /// One row or record as a JSON object per line
    Json,
    /// Comma-separated rows below a line of names
    Csv,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file (Feather) or stream
    Arrow,
    /// Records: each line is a value
    Value,
}

/// A codec by Kafka's name for it.
pub(crate) fn codec(name: &str) -> Result<Codec, String> {
    let found = Codec::ALL.into_iter().find(|codec| codec.name() == name);
    found.ok_or_else(|| "use none, gzip, snappy, lz4 or zstd".into())
}

pub(crate) async fn run(args: WriteArgs) -> Result<(), Failure> {
    if args.delete {
        return Err(Failure::usage(
            "--delete takes rows out of a table with a primary key, and there are none in this version; a log only grows, until its rows \
             go by table.log.ttl",
        ));
    }
    match contents(&args.table, &args.node).await? {
        Contents::Records => {
            let partition = partition_number(&args.partition)?;
            let flags = [("--columns", !args.columns.is_empty()), ("--bucket", args.bucket.is_some())];
            refuse_given(
                &flags,
                "is for tables with columns; records have a key, a value, headers and a --partition",
            )?;
            let line = match args.format {
                None | Some(FileForm::Json) => records::LineForm::Json,
                Some(FileForm::Value) => records::LineForm::Value,
                Some(FileForm::Csv | FileForm::Parquet | FileForm::Arrow) => {
                    return Err(Failure::usage(format!(
                        "--format: {} holds records of Kafka's clients; use json or value, or a table with columns (`mink sql -e 'CREATE \
                         TABLE ...'`)",
                        args.table
                    )));
                }
            };
            records::write(records::RecordsArgs {
                table: args.table,
                file: args.file,
                line,
                encoding: args.encoding.unwrap_or(Encoding::Text),
                partition,
                codec: args.compression.unwrap_or(Codec::None),
                node: args.node,
            })
            .await
        }
        Contents::Rows(table, client) => {
            let flags =
                [("--encoding", args.encoding.is_some()), ("--compression", args.compression.is_some())];
            refuse_given(
                &flags,
                "is for tables of Kafka's clients; rows are typed, and the table's options say how they are stored",
            )?;
            let form = file_form(&args.file, args.format)?;
            rows::write(&table, &client, form, &args).await
        }
    }
}

/// What the file is: as it is said, else by its name's ending.
fn file_form(file: &Path, said: Option<FileForm>) -> Result<FileForm, Failure> {
    let form = said.or_else(|| form_of_name(file)).ok_or_else(|| {
        Failure::usage(format!(
            "{}: its ending does not tell what it is; say --format json, csv, parquet or arrow (a compressed file: inflate it into stdin)",
            file.display()
        ))
    })?;
    if form == FileForm::Value {
        return Err(Failure::usage(
            "--format value is for tables of Kafka's clients; rows are json, csv, parquet or arrow",
        ));
    }
    Ok(form)
}

fn form_of_name(file: &Path) -> Option<FileForm> {
    if input::is_stdin(file) {
        return Some(FileForm::Json);
    }
    match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "json" | "jsonl" | "ndjson" => Some(FileForm::Json),
        "csv" => Some(FileForm::Csv),
        "parquet" | "pq" => Some(FileForm::Parquet),
        "arrow" | "arrows" | "ipc" | "feather" => Some(FileForm::Arrow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_kafkas_names() {
        assert_eq!(codec("zstd"), Ok(Codec::Zstd));
        assert!(codec("brotli").unwrap_err().contains("lz4"));
    }

    #[test]
    fn a_files_ending_tells_what_it_is_unless_that_is_said() {
        for (name, form) in [
            ("a.jsonl", FileForm::Json),
            ("a.b.NDJSON", FileForm::Json),
            ("a.csv", FileForm::Csv),
            ("/tmp/x.parquet", FileForm::Parquet),
            ("a.feather", FileForm::Arrow),
            ("-", FileForm::Json),
        ] {
            assert_eq!(file_form(Path::new(name), None), Ok(form), "{name}");
        }
        assert_eq!(file_form(Path::new("a.csv"), Some(FileForm::Json)), Ok(FileForm::Json));
        assert_eq!(file_form(Path::new("a.txt"), Some(FileForm::Csv)), Ok(FileForm::Csv));
        for name in ["a.txt", "a", "a.csv.gz"] {
            let words = file_form(Path::new(name), None).expect_err(name);
            assert!(words.words().contains("--format json"), "{words:?}");
        }
        file_form(Path::new("a.csv"), Some(FileForm::Value)).expect_err("rows are no values");
    }
}
