//! Results on stdout: a table for people, JSON and CSV for programs.
//!
//! Lives on: the command's task.
//! Invariants: `json` is one value per line; a table is printed in pieces of `TABLE_ROWS` rows, so memory stays bounded (I20).
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// Rows of a table that are held to find the width of its columns.
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
    /// Arrow IPC stream (not in this version)
    Arrow,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArgs {
    /// How results look
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Table)]
    pub(crate) output: Form,
}

/// Writes rows under fixed columns.
pub(crate) struct Printer<W: Write> {
    out: W,
    form: Form,
    columns: &'static [&'static str],
    held: Vec<Vec<Value>>,
    begun: bool,
}

/// Rows on stdout.
pub(crate) fn printer(form: Form, columns: &'static [&'static str]) -> Result<Printer<impl Write>, Failure> {
    Printer::new(io::BufWriter::new(io::stdout().lock()), form, columns)
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, form: Form, columns: &'static [&'static str]) -> Result<Printer<W>, Failure> {
        if form == Form::Arrow {
            return Err(Failure::usage("--output arrow is not in this version; use json, csv or table"));
        }
        Ok(Printer { out, form, columns, held: Vec::new(), begun: false })
    }

    /// Adds a row, a value per column.
    pub(crate) fn row(&mut self, row: Vec<Value>) -> Result<(), Failure> {
        match self.form {
            Form::Table | Form::Arrow => {
                self.held.push(row);
                if self.held.len() >= TABLE_ROWS {
                    self.print_table()?;
                }
            }
            Form::Json => {
                // By hand, so that the names keep the order of the columns.
                let fields: Vec<String> = self
                    .columns
                    .iter()
                    .zip(&row)
                    .map(|(name, value)| format!("\"{name}\":{value}"))
                    .collect();
                writeln!(self.out, "{{{}}}", fields.join(","))?;
            }
            Form::Csv => {
                if !self.begun {
                    writeln!(self.out, "{}", self.columns.join(","))?;
                }
                let fields: Vec<String> = row.iter().map(|value| csv_field(&text(value))).collect();
                writeln!(self.out, "{}", fields.join(","))?;
            }
        }
        self.begun = true;
        Ok(())
    }

    /// Makes what was added visible now.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if !self.held.is_empty() {
            self.print_table()?;
        }
        Ok(self.out.flush()?)
    }

    /// Ends the results.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if !self.begun {
            match self.form {
                Form::Table | Form::Arrow => self.print_table()?,
                Form::Csv => writeln!(self.out, "{}", self.columns.join(","))?,
                Form::Json => {}
            }
        }
        self.flush()
    }

    fn print_table(&mut self) -> Result<(), Failure> {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        if !io::stdout().is_terminal() {
            table.set_width(TABLE_WIDTH);
        }
        table.set_header(self.columns);
        for row in self.held.drain(..) {
            table.add_row(row.iter().map(text));
        }
        Ok(writeln!(self.out, "{table}")?)
    }
}

/// A value as people and CSV see it: text without quotes, nothing for null.
fn text(value: &Value) -> String {
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
        let mut printer = Printer::new(&mut out, form, &["name", "count"]).unwrap();
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
    fn arrow_is_refused_in_words() {
        assert!(
            matches!(Printer::new(Vec::new(), Form::Arrow, &[]), Err(Failure::Usage(words)) if words.contains("json"))
        );
    }
}
