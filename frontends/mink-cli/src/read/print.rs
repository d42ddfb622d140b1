//! Rows on stdout: as JSON, CSV, a table for people, or Arrow.
//!
//! Lives on: the command's task.
//! Invariants: no value is rounded: numbers are printed as the table's types write them. CSV tells null from an empty text, as `mink write`
//! reads it.
use crate::failure::Failure;
use crate::output::{Form, Printer};
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, FieldRef, Fields, SchemaRef};
use mink_record::arrow::arrow_schema;
use mink_record::json::JsonWriter;
use mink_types::schema::Schema;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::io::Write;

/// Prints batches of some columns.
pub(super) struct RowPrinter<W: Write> {
    /// The columns that rows come with, and those that they came with before or will: a table may be altered while it is followed.
    known: Vec<Columns>,
    /// Those of the header.
    names: Vec<String>,
    out: Out<W>,
    /// One row's text.
    text: Vec<u8>,
}

/// How rows of one schema are written.
struct Columns {
    fields: Fields,
    json: JsonWriter,
}

impl Columns {
    fn new(schema: &Schema) -> Columns {
        Columns { fields: arrow_schema(schema).fields().clone(), json: JsonWriter::new(schema) }
    }

    /// Whether rows with these fields are written by it: whatever their ids, and whether they may be null.
    fn are(&self, fields: &Fields) -> bool {
        let same = |(a, b): (&FieldRef, &FieldRef)| {
            a.name() == b.name() && a.data_type().equals_datatype(b.data_type())
        };
        self.fields.len() == fields.len() && self.fields.iter().zip(fields).all(same)
    }
}

/// A form with its way out.
enum Out<W: Write> {
    Json(W),
    Csv(W),
    Table(Printer<W>),
    /// Begun with the first batch, whose schema it gets.
    Arrow(Box<Stream<W>>),
}

/// An Arrow stream, once its columns are known.
enum Stream<W: Write> {
    Wanted(W, SchemaRef),
    Begun(StreamWriter<W>, SchemaRef),
    Ended,
}

impl<W: Write> Out<W> {
    /// Prints the row whose JSON this is.
    fn row(&mut self, json: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Out::Json(out) => {
                json.push(b'\n');
                Ok(out.write_all(json)?)
            }
            Out::Csv(out) => {
                let fields = values(json, csv_value)?;
                Ok(writeln!(out, "{}", fields.join(","))?)
            }
            Out::Table(printer) => printer.row(values(json, table_value)?),
            Out::Arrow(_) => Ok(()),
        }
    }
}

impl<W: Write> RowPrinter<W> {
    /// For rows with these columns alone, whose Arrow schema is known too.
    pub(super) fn new(
        mut out: W,
        form: Form,
        schema: &Schema,
        arrow: SchemaRef,
    ) -> Result<RowPrinter<W>, Failure> {
        let names: Vec<String> = schema.columns().iter().map(|column| column.name.clone()).collect();
        let out = match form {
            Form::Json => Out::Json(out),
            Form::Csv => {
                let header: Vec<String> = names.iter().map(|name| csv_field(name)).collect();
                writeln!(out, "{}", header.join(","))?;
                Out::Csv(out)
            }
            Form::Table => Out::Table(Printer::new(out, Form::Table, &names)),
            Form::Arrow => Out::Arrow(Box::new(Stream::Wanted(out, arrow))),
        };
        Ok(RowPrinter { known: vec![Columns::new(schema)], names, out, text: Vec::new() })
    }

    /// Whether it knows how rows with such columns are written.
    pub(super) fn knows(&self, rows: &RecordBatch) -> bool {
        self.known.iter().any(|known| known.are(rows.schema_ref().fields()))
    }

    /// Takes note of how the columns are by now.
    pub(super) fn altered(&mut self, schema: &Schema) {
        self.known.push(Columns::new(schema));
    }

    /// Prints all rows of a batch.
    pub(super) fn print(&mut self, rows: &RecordBatch) -> Result<(), Failure> {
        let fields = rows.schema_ref().fields();
        let Some(Columns { json, .. }) = self.known.iter().find(|known| known.are(fields)) else {
            return Err(altered("read again"));
        };
        match &mut self.out {
            Out::Arrow(stream) => return stream.write(rows),
            Out::Csv(_) | Out::Table(_) if !fields.iter().map(|field| field.name()).eq(&self.names) => {
                return Err(altered(
                    "read on with --output json, whose rows name their columns, or read again",
                ));
            }
            Out::Json(_) | Out::Csv(_) | Out::Table(_) => {}
        }
        for row in 0..rows.num_rows() {
            self.text.clear();
            let written = json.write_row(rows, row, &mut self.text);
            written.map_err(|error| Failure::failed(format!("a stored row cannot be shown: {error}")))?;
            self.out.row(&mut self.text)?;
        }
        Ok(())
    }

    /// Makes what was printed visible now.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.out {
            Out::Json(out) | Out::Csv(out) => Ok(out.flush()?),
            Out::Table(printer) => printer.flush(),
            Out::Arrow(stream) => stream.flush(),
        }
    }

    /// Ends the results.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.out {
            Out::Json(mut out) | Out::Csv(mut out) => Ok(out.flush()?),
            Out::Table(printer) => printer.finish(),
            Out::Arrow(mut stream) => stream.finish(),
        }
    }
}

impl<W: Write> Stream<W> {
    fn begun(&mut self, rows: Option<&RecordBatch>) -> Result<Option<&mut StreamWriter<W>>, Failure> {
        if let Stream::Wanted(..) = self
            && let Stream::Wanted(out, schema) = std::mem::replace(self, Stream::Ended)
        {
            let schema = rows.map_or(schema, RecordBatch::schema);
            *self = Stream::Begun(StreamWriter::try_new(out, &schema).map_err(arrow_failure)?, schema);
        }
        match self {
            Stream::Begun(_, schema)
                if rows.is_some_and(|rows| rows.schema_ref().fields() != schema.fields()) =>
            {
                Err(altered("an Arrow stream has one schema: read again, or with --output json"))
            }
            Stream::Begun(writer, _) => Ok(Some(writer)),
            Stream::Wanted(..) | Stream::Ended => Ok(None),
        }
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<(), Failure> {
        self.begun(Some(rows))?.map_or(Ok(()), |writer| writer.write(rows).map_err(arrow_failure))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.begun(None)?.map_or(Ok(()), |writer| writer.flush().map_err(arrow_failure))
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if let Some(writer) = self.begun(None)? {
            writer.finish().map_err(arrow_failure)?;
            writer.flush().map_err(arrow_failure)?;
        }
        Ok(())
    }
}

/// Rows with other columns than those before.
fn altered(remedy: &str) -> Failure {
    Failure::failed(format!("the columns were altered while they were read; {remedy}"))
}

/// What keeps Arrow from being written.
fn arrow_failure(error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => Failure::from(error),
        error => Failure::failed(format!("cannot write results as Arrow: {error}")),
    }
}

/// The values of a row, each made of its JSON.
fn values<T>(row: &[u8], make: fn(&RawValue) -> Result<T, serde_json::Error>) -> Result<Vec<T>, Failure> {
    let read = serde_json::Deserializer::from_slice(row).deserialize_map(Values { make });
    read.map_err(|error| Failure::failed(format!("a stored row cannot be shown: {error}")))
}

struct Values<T> {
    make: fn(&RawValue) -> Result<T, serde_json::Error>,
}

impl<'de, T> Visitor<'de> for Values<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<Vec<T>, M::Error> {
        let mut found = Vec::new();
        while fields.next_key::<serde::de::IgnoredAny>()?.is_some() {
            let value = fields.next_value::<&RawValue>()?;
            found.push((self.make)(value).map_err(serde::de::Error::custom)?);
        }
        Ok(found)
    }
}

/// A value as CSV has it: null is nothing, an empty text has quotes.
fn csv_value(value: &RawValue) -> Result<String, serde_json::Error> {
    match value.get() {
        "null" => Ok(String::new()),
        text if text.starts_with('"') => Ok(csv_field(&serde_json::from_str::<String>(text)?)),
        other => Ok(csv_field(other)),
    }
}

/// A value as a table shows it. Numbers stay as they are written.
fn table_value(value: &RawValue) -> Result<Value, serde_json::Error> {
    match value.get() {
        "null" => Ok(Value::Null),
        text if text.starts_with('"') => serde_json::from_str(text),
        other => Ok(Value::String(other.to_owned())),
    }
}

/// RFC 4180.
fn csv_field(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::columns::tests::schema;
    use arrow_ipc::reader::StreamReader;
    use mink_record::arrow::arrow_schema;
    use mink_record::json::RowsBuilder;

    const COLUMNS: &str = "s STRING, n DECIMAL(38, 10), l ARRAY<STRING>";

    /// What is printed of rows that are given as JSON.
    fn printed(form: Form, rows: &[&str]) -> Vec<u8> {
        let schema = schema(COLUMNS);
        let mut builder = RowsBuilder::new(&schema);
        for row in rows {
            builder.push_json(row.as_bytes()).expect(row);
        }
        let batch = builder.finish().expect("rows");
        let mut out = Vec::new();
        let mut printer = RowPrinter::new(&mut out, form, &schema, arrow_schema(&schema)).expect("a form");
        if batch.num_rows() > 0 {
            printer.print(&batch).expect("printed");
            printer.flush().expect("shown");
        }
        printer.finish().expect("ended");
        out
    }

    fn text(form: Form, rows: &[&str]) -> String {
        String::from_utf8(printed(form, rows)).expect("text")
    }

    const ROW: &str = r#"{"s":"a,\"b\"","n":1234567890123456789012345678.0123456789,"l":["x",null]}"#;

    #[test]
    fn json_is_a_row_per_line_with_every_digit() {
        assert_eq!(text(Form::Json, &[ROW, ROW]), format!("{ROW}\n{ROW}\n"));
        assert_eq!(text(Form::Json, &[]), "");
    }

    #[test]
    fn csv_tells_null_from_an_empty_text_and_quotes_what_would_break_a_line() {
        let rows = [ROW, r#"{"s":"","n":null,"l":null}"#, r#"{"s":null,"n":-0.5,"l":[]}"#];
        let expected = "s,n,l\n\"a,\"\"b\"\"\",1234567890123456789012345678.0123456789,\"[\"\"x\"\",null]\"\n\"\",,\n,-0.5000000000,[]\n";
        assert_eq!(text(Form::Csv, &rows), expected);
        assert_eq!(text(Form::Csv, &[]), "s,n,l\n");
    }

    #[test]
    fn a_table_shows_every_digit_and_has_its_names_without_rows_too() {
        assert!(text(Form::Table, &[ROW]).contains("1234567890123456789012345678.0123456789"));
        assert!(text(Form::Table, &[]).contains('s'));
    }

    #[test]
    fn arrow_is_a_whole_stream_without_rows_too() {
        for rows in [&[ROW][..], &[]] {
            let bytes = printed(Form::Arrow, rows);
            let reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
            assert_eq!(reader.schema().fields().len(), 3);
            let found: usize = reader.map(|batch| batch.expect("rows").num_rows()).sum();
            assert_eq!(found, rows.len());
            assert!(bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "its end is marked");
        }
    }

    #[test]
    fn rows_with_other_columns_are_refused() {
        let (told, other) = (schema("a INT"), schema("b INT"));
        let mut builder = RowsBuilder::new(&other);
        builder.push_json(b"{}").expect("a row");
        let mut printer =
            RowPrinter::new(Vec::new(), Form::Json, &told, arrow_schema(&told)).expect("a form");
        let refused = printer.print(&builder.finish().expect("rows")).expect_err("another table");
        assert!(refused.words().contains("altered"), "{refused:?}");
    }

    /// Takes nothing.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_reads_no_more_is_no_failure_in_any_form() {
        let schema = schema("a INT");
        let mut builder = RowsBuilder::new(&schema);
        builder.push_json(b"{\"a\":1}").expect("a row");
        let rows = builder.finish().expect("rows");
        for form in [Form::Json, Form::Csv, Form::Table, Form::Arrow] {
            let ended =
                RowPrinter::new(Closed, form, &schema, arrow_schema(&schema)).and_then(|mut printer| {
                    printer.print(&rows)?;
                    printer.finish()
                });
            assert_eq!(ended, Err(Failure::Unheard), "{form:?}");
        }
    }
}
