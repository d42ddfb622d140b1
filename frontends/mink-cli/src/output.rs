//! Results on stdout: a table for people, JSON, CSV and Arrow for programs.
//!
//! Lives on: the command's task.
//! Invariants: `json` is one value per line; a table is printed in pieces of `TABLE_ROWS` rows, so memory stays bounded (I20), and so are
//! the batches of Arrow.
mod arrow;

use crate::failure::Failure;
use arrow::Batches;
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// Rows of a table that are held to find the width of its columns, or for a batch of Arrow.
const TABLE_ROWS: usize = 1000;
/// Width of a table where there is no terminal to ask.
const TABLE_WIDTH: u16 = 160;

/// How results look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Form {
    /// Columns for people
    Table,
    /// One JSON value per line
    Json,
    /// Comma-separated, with a line of names
    Csv,
    /// Arrow IPC stream
    Arrow,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArgs {
    /// How results look
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Table)]
    pub(crate) output: Form,
}

/// Where results go.
pub(crate) type Stdout = io::BufWriter<io::StdoutLock<'static>>;

/// Writes rows under fixed columns.
pub(crate) struct Printer<W: Write> {
    out: Out<W>,
    columns: Vec<String>,
    held: Vec<Vec<Value>>,
    begun: bool,
}

/// A form with its way out.
enum Out<W: Write> {
    Table(W),
    Json(W),
    Csv(W),
    Arrow(Batches<W>),
}

/// Rows on stdout.
pub(crate) fn printer(form: Form, columns: &[impl AsRef<str>]) -> Result<Printer<Stdout>, Failure> {
    check_terminal(form, io::stdout().is_terminal())?;
    Ok(Printer::new(io::BufWriter::new(io::stdout().lock()), form, columns))
}

/// Bytes are not for a terminal.
pub(crate) fn check_terminal(form: Form, is_terminal: bool) -> Result<(), Failure> {
    if form == Form::Arrow && is_terminal {
        return Err(Failure::usage(
            "--output arrow writes bytes, and stdout is a terminal; send them to a file or a program, or use json, csv or table",
        ));
    }
    Ok(())
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, form: Form, columns: &[impl AsRef<str>]) -> Printer<W> {
        let columns: Vec<String> = columns.iter().map(|name| name.as_ref().to_owned()).collect();
        let out = match form {
            Form::Table => Out::Table(out),
            Form::Json => Out::Json(out),
            Form::Csv => Out::Csv(out),
            Form::Arrow => Out::Arrow(Batches::new(out)),
        };
        Printer { out, columns, held: Vec::new(), begun: false }
    }

    /// Adds a row, a value per column.
    pub(crate) fn row(&mut self, row: Vec<Value>) -> Result<(), Failure> {
        match &mut self.out {
            Out::Table(_) | Out::Arrow(_) => {
                self.held.push(row);
                if self.held.len() >= TABLE_ROWS {
                    self.print_held()?;
                }
            }
            Out::Json(out) => {
                // By hand, so that the names keep the order of the columns.
                let fields: Vec<String> = self
                    .columns
                    .iter()
                    .zip(&row)
                    .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
                    .collect();
                writeln!(out, "{{{}}}", fields.join(","))?;
            }
            Out::Csv(out) => {
                if !self.begun {
                    csv_names(out, &self.columns)?;
                }
                let fields: Vec<String> = row.iter().map(|value| csv_field(&text(value))).collect();
                writeln!(out, "{}", fields.join(","))?;
            }
        }
        self.begun = true;
        Ok(())
    }

    /// Makes what was added visible now.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if !self.held.is_empty() {
            self.print_held()?;
        }
        match &mut self.out {
            Out::Table(out) | Out::Json(out) | Out::Csv(out) => Ok(out.flush()?),
            Out::Arrow(batches) => batches.flush(),
        }
    }

    /// Ends the results.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if !self.begun {
            match &mut self.out {
                Out::Table(_) | Out::Arrow(_) => self.print_held()?,
                Out::Csv(out) => csv_names(out, &self.columns)?,
                Out::Json(_) => {}
            }
        }
        self.flush()?;
        match self.out {
            Out::Arrow(batches) => batches.finish(),
            _ => Ok(()),
        }
    }

    fn print_held(&mut self) -> Result<(), Failure> {
        let rows = std::mem::take(&mut self.held);
        match &mut self.out {
            Out::Arrow(batches) => batches.write(&self.columns, &rows),
            Out::Table(out) | Out::Json(out) | Out::Csv(out) => {
                let mut table = Table::new();
                table
                    .load_preset(presets::UTF8_BORDERS_ONLY)
                    .set_content_arrangement(ContentArrangement::Dynamic);
                if !io::stdout().is_terminal() {
                    table.set_width(TABLE_WIDTH);
                }
                table.set_header(&self.columns);
                for row in rows {
                    table.add_row(row.iter().map(text));
                }
                Ok(writeln!(out, "{table}")?)
            }
        }
    }
}

fn csv_names(out: &mut impl Write, names: &[String]) -> Result<(), Failure> {
    let names: Vec<String> = names.iter().map(|name| csv_field(name)).collect();
    Ok(writeln!(out, "{}", names.join(","))?)
}

/// A value as people and CSV see it: text without quotes, nothing for null.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// RFC 4180.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(form: Form, rows: &[Vec<Value>]) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, form, &["name", "count"]);
        for row in rows {
            printer.row(row.clone()).unwrap();
        }
        printer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_is_one_value_per_line() {
        let rows = [vec![json!("a\nb"), json!(1)], vec![json!(null), json!(2)]];
        assert_eq!(
            printed(Form::Json, &rows),
            "{\"name\":\"a\\nb\",\"count\":1}\n{\"name\":null,\"count\":2}\n"
        );
        assert_eq!(printed(Form::Json, &[]), "");
    }

    #[test]
    fn csv_quotes_what_would_break_a_line() {
        let rows = [vec![json!("a,\"b\"\n"), json!(1)], vec![json!("plain"), json!(null)]];
        assert_eq!(printed(Form::Csv, &rows), "name,count\n\"a,\"\"b\"\"\n\",1\nplain,\n");
        assert_eq!(printed(Form::Csv, &[]), "name,count\n");
    }

    #[test]
    fn a_table_has_its_names_even_without_rows() {
        assert!(printed(Form::Table, &[]).contains("name"));
        let rows = vec![vec![json!("x"), json!(1)]; TABLE_ROWS + 1];
        assert_eq!(printed(Form::Table, &rows).matches("name").count(), 2, "printed in pieces");
    }

    #[test]
    fn a_name_that_is_no_word_does_not_break_a_line() {
        let print = |form| {
            let mut out = Vec::new();
            let mut printer = Printer::new(&mut out, form, &["a \"b\",\n".to_owned()]);
            printer.row(vec![json!(1)]).unwrap();
            printer.finish().unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(print(Form::Json), "{\"a \\\"b\\\",\\n\":1}\n");
        assert_eq!(print(Form::Csv), "\"a \"\"b\"\",\n\"\n1\n");
    }

    #[test]
    fn bytes_are_not_written_to_a_terminal() {
        let refused = check_terminal(Form::Arrow, true);
        assert!(matches!(refused, Err(Failure::Usage(words)) if words.contains("json")));
        assert_eq!((check_terminal(Form::Arrow, false), check_terminal(Form::Table, true)), (Ok(()), Ok(())));
    }
}
