//! JSON lines into rows: one object per line, read by the rules of docs/json.md.
//!
//! Lives on: the reading thread.
//! Invariants: an error names the line and the field; rows before it are handed on.
use super::FileForm;
use super::input::{Bytes, begin_text, next_line};
use super::portion::{Collector, Sink, Stop};
use super::target::Target;
use crate::form::day::{has_days, no_such_day};
use mink_record::json::{JsonError, JsonErrorKind};
use mink_types::schema::Schema;
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Reads all lines. One that is blank is passed over.
pub(super) fn read(mut bytes: Bytes, target: &Target, sink: &Sink) -> Result<(), Stop> {
    let mut rows = Collector::new(target);
    let ended = read_lines(&mut bytes, target, &mut rows, sink);
    if !matches!(ended, Err(Stop::Nobody)) {
        rows.flush(sink)?;
    }
    ended
}

fn read_lines(bytes: &mut Bytes, target: &Target, rows: &mut Collector<'_>, sink: &Sink) -> Result<(), Stop> {
    begin_text(bytes, FileForm::Json)?;
    let (mut line, mut object, mut number) = (Vec::new(), Vec::new(), 0);
    loop {
        // The next one may be long in coming.
        if bytes.buffer().is_empty() {
            rows.flush(sink)?;
        }
        number += 1;
        if !next_line(bytes, &mut line, number)? {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if target.is_chosen {
            only_chosen(&line, target, &mut object)
                .map_err(|what| format!("line {number}: {what}{}", other_layout(&line)))?;
            rows.push(number, &object, sink)?;
        } else {
            rows.push(number, &line, sink)?;
        }
    }
}

/// What is wrong with a row.
pub(super) fn explained(error: &JsonError, object: &[u8], schema: &Schema) -> String {
    match error.kind() {
        JsonErrorKind::Syntax => format!("{error}{}", other_layout(object)),
        JsonErrorKind::Value => match no_day(error.path(), object, schema) {
            Some(no_day) => format!("{}: {no_day}", error.path()),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

/// That a column's text names a day that there is not.
fn no_day(column: &str, object: &[u8], schema: &Schema) -> Option<String> {
    if !has_days(&schema.column(column)?.data_type) {
        return None;
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(object).ok()?;
    let text: String = serde_json::from_str(fields.get(column)?.get()).ok()?;
    no_such_day(&text)
}

/// How JSON that is laid out otherwise becomes a line per row.
pub(super) fn other_layout(line: &[u8]) -> &'static str {
    let line = line.trim_ascii();
    match line.first() {
        Some(b'[') => {
            "; each row is an object in a line of its own: `jq -c '.[]' FILE` makes lines of an array"
        }
        Some(b'{') if serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof()) => {
            "; each row is an object in a line of its own: `jq -c . FILE` makes a line of an object over several"
        }
        _ => "",
    }
}

/// The object with the fields alone that are written; each as its text was.
fn only_chosen(line: &[u8], target: &Target, object: &mut Vec<u8>) -> Result<(), String> {
    object.clear();
    object.push(b'{');
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let kept = deserializer.deserialize_map(Chosen { target, object: &mut *object });
    let ended = kept.and_then(|()| deserializer.end());
    ended
        .map_err(|error| format!("no JSON object at column {}: {}", error.column(), without_place(&error)))?;
    object.push(b'}');
    Ok(())
}

/// The error's text without the place, which counts lines of its own.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

/// Goes over an object and keeps the fields that are columns.
struct Chosen<'a> {
    target: &'a Target,
    object: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for Chosen<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a field for each column")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value::<&RawValue>()?;
            if self.target.schema.column(&name).is_none() {
                continue;
            }
            if self.object.last() != Some(&b'{') {
                self.object.push(b',');
            }
            serde_json::to_writer(&mut *self.object, &name).map_err(M::Error::custom)?;
            self.object.push(b':');
            self.object.extend_from_slice(value.get().as_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::tests::bytes;
    use super::super::portion::Portion;
    use super::super::target::tests::{target, target_of_x};
    use super::*;
    use mink_record::json::JsonWriter;

    /// What was read, as JSON, and how it ended.
    fn read_all(text: &str, target: &Target) -> (Vec<(String, String)>, Result<(), Stop>) {
        let (sink, mut receiver) = Sink::collecting(64);
        let ended = read(bytes(text.as_bytes()), target, &sink);
        drop(sink);
        let mut found = Vec::new();
        while let Ok(portion) = receiver.try_recv() {
            let Portion { rows, place } = portion.expect("rows");
            for row in 0..rows.num_rows() {
                let mut text = Vec::new();
                JsonWriter::new(&target.schema).write_row(&rows, row, &mut text).expect("a row");
                found.push((place.to_string(), String::from_utf8(text).expect("text")));
            }
        }
        (found, ended)
    }

    fn rows(found: &[(String, String)]) -> Vec<&str> {
        found.iter().map(|(_, row)| row.as_str()).collect()
    }

    #[test]
    fn each_line_is_a_row_and_blank_ones_are_passed_over() {
        let (found, ended) =
            read_all("{\"a\":1}\n\n \r\n{\"b\":\"x\"}\r\n{\"a\":null}", &target("a INT, b STRING"));
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(rows(&found), [r#"{"a":1,"b":null}"#, r#"{"a":null,"b":"x"}"#, r#"{"a":null,"b":null}"#]);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_field_and_rows_before_it_are_there() {
        let (found, ended) = read_all("{\"a\":1}\n\n{\"a\":\"x\"}\n{\"a\":2}\n", &target("a INT"));
        assert_eq!(rows(&found), [r#"{"a":1}"#]);
        let Err(Stop::Wrong(what)) = ended else { panic!("line 3 is no row") };
        assert!(what.starts_with("line 3: a: found"), "{what}");
    }

    #[test]
    fn json_that_is_no_lines_is_told_with_what_makes_lines_of_it() {
        for target in [target("a INT"), Target { is_chosen: true, ..target("a INT") }] {
            for (text, word) in [
                ("[{\"a\":1},{\"a\":2}]\n", "`jq -c '.[]' FILE`"),
                (" [\n  {\"a\":1}\n]\n", "`jq -c '.[]' FILE`"),
                ("{\n  \"a\": 1\n}\n", "`jq -c . FILE`"),
            ] {
                let Err(Stop::Wrong(what)) = read_all(text, &target).1 else { panic!("{text} is no lines") };
                assert!(what.starts_with("line 1: ") && what.contains(word), "{what}");
            }
            let Err(Stop::Wrong(what)) = read_all("{\"a\":}\n", &target).1 else { panic!("no JSON") };
            assert!(!what.contains("jq"), "{what}");
        }
    }

    #[test]
    fn a_mark_at_the_beginning_is_passed_over() {
        let (found, ended) = read_all("\u{feff}{\"a\":1}\n", &target("a INT"));
        assert!(ended.is_ok() && rows(&found) == [r#"{"a":1}"#], "{ended:?}");
    }

    #[test]
    fn a_day_that_there_is_not_is_told_as_that_and_not_as_a_wrong_form() {
        let target = target("d DATE, t TIMESTAMP_LTZ(3), s STRING");
        for (line, expected) in [
            (r#"{"d":"2026-02-31"}"#, "line 1: d: there is no day 2026-02-31"),
            (r#"{"d":null,"t":"2025-02-29T10:00:00Z"}"#, "line 1: t: there is no day 2025-02-29"),
        ] {
            let Err(Stop::Wrong(what)) = read_all(line, &target).1 else { panic!("{line} has no such day") };
            assert_eq!(what, expected);
        }
        let Err(Stop::Wrong(what)) = read_all(r#"{"d":"31.1.2026"}"#, &target).1 else { panic!("no day") };
        assert!(what.contains("use a text as"), "{what}");
    }

    #[test]
    fn rows_get_the_partition_that_is_named_and_one_of_another_is_refused() {
        let of_x = target_of_x("a INT, p STRING NOT NULL");
        let (found, ended) = read_all("{\"a\":1}\n{\"p\":\"x\"}\n{\"p\":\"y\"}\n", &of_x);
        let Err(Stop::Wrong(what)) = ended else { panic!("y is not x") };
        assert!(what.starts_with("line 3: p: the row has \"y\", and --partition says \"x\""), "{what}");
        assert_eq!(rows(&found), [r#"{"a":1,"p":"x"}"#, r#"{"a":null,"p":"x"}"#]);
    }

    #[test]
    fn of_chosen_columns_alone_are_values_taken_as_they_are_written() {
        let chosen = Target { is_chosen: true, ..target("n DECIMAL(38, 10), s STRING") };
        let line = "{\"x\":[1,{\"s\":2}],\"s\":\"a\\u0062\",\"n\":12345678901234567890.0123456789}\n{}\n";
        let (found, ended) = read_all(line, &chosen);
        assert!(ended.is_ok(), "{ended:?}");
        let expected = [r#"{"n":12345678901234567890.0123456789,"s":"ab"}"#, r#"{"n":null,"s":null}"#];
        assert_eq!(rows(&found), expected);
    }

    #[test]
    fn of_chosen_columns_too_a_line_is_one_object_and_names_no_field_twice() {
        let chosen = Target { is_chosen: true, ..target("a INT") };
        for (line, word) in [
            ("[1]", "an object"),
            ("{\"a\":1} {}", "trailing"),
            ("{\"a\":1", "EOF"),
            ("{\"a\":1,\"a\":2}", "a"),
            ("{\"a\":1,\"x\":}", "expected value"),
        ] {
            let (_, ended) = read_all(line, &chosen);
            let Err(Stop::Wrong(what)) = ended else { panic!("{line} is taken") };
            assert!(what.starts_with("line 1: ") && what.contains(word), "{what}");
        }
    }

    #[test]
    fn a_row_comes_as_soon_as_its_line_has_come() {
        // A pipe that holds one line: what comes after it would wait for ever.
        let (sink, mut receiver) = Sink::collecting(4);
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let target = target("a INT");
        let thread = std::thread::spawn(move || {
            let input: Bytes = std::io::BufReader::new(Box::new(reader));
            read(input, &target, &sink)
        });
        std::io::Write::write_all(&mut writer, b"{\"a\":1}\n").expect("room");
        let portion = receiver.blocking_recv().expect("it does not wait for the next").expect("rows");
        assert_eq!(portion.rows.num_rows(), 1);
        drop(writer);
        thread.join().expect("it ends").expect("at the end of the pipe");
    }
}
