//! A record as JSON, the same for `mink read` and `mink write`.
//!
//! Lives on: anywhere (pure).
//! Invariants: what `mink read --output json` prints, `mink write` takes back byte for byte.
pub(crate) mod columns;
pub(crate) mod day;
pub(crate) mod named;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mink_client::ReadRecord;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How bytes stand in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Encoding {
    /// Text where it is UTF-8, else {"base64": "..."}
    Text,
    /// Always base64
    Base64,
}

/// Bytes as JSON.
pub(crate) fn to_json(bytes: Option<&[u8]>, encoding: Encoding) -> Value {
    match (bytes, encoding) {
        (None, _) => Value::Null,
        (Some(bytes), Encoding::Base64) => Value::String(STANDARD.encode(bytes)),
        (Some(bytes), Encoding::Text) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::String(text.into()),
            Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
        },
    }
}

/// Bytes that JSON stands for. Any value but text, null and `{"base64": ...}` stands for its own JSON text, as it was written.
pub(crate) fn from_json(raw: &RawValue, encoding: Encoding) -> Result<Option<Vec<u8>>, String> {
    let decode = |text: &str| STANDARD.decode(text).map(Some).map_err(|error| format!("not base64: {error}"));
    match &value(raw)? {
        Value::Null => Ok(None),
        Value::String(text) if encoding == Encoding::Base64 => decode(text),
        Value::String(text) => Ok(Some(text.clone().into_bytes())),
        Value::Object(object) if object.len() == 1 && object.contains_key("base64") => {
            let text = object.get("base64").and_then(Value::as_str).ok_or("base64 is not text")?;
            decode(text)
        }
        _ => Ok(Some(raw.get().as_bytes().to_vec())),
    }
}

/// Columns of a record that is read.
pub(crate) const COLUMNS: &[&str] = &["partition", "offset", "timestamp", "key", "value", "headers"];

/// A record that was read, a value per column.
pub(crate) fn row(partition: i32, record: &ReadRecord, encoding: Encoding) -> Vec<Value> {
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| {
            json!([to_json(Some(name), Encoding::Text), to_json(value.as_deref(), encoding)])
        })
        .collect();
    vec![
        partition.into(),
        record.offset.into(),
        record.timestamp.into(),
        to_json(record.key.as_deref(), encoding),
        to_json(record.value.as_deref(), encoding),
        headers.into(),
    ]
}

/// Names and values, in order.
pub(crate) type NewHeaders = Vec<(String, Option<Vec<u8>>)>;

/// A record to be written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NewRecord {
    pub(crate) partition: Option<i32>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: NewHeaders,
}

/// Reads a line `{"key":..,"value":..,"headers":..,"timestamp":..,"partition":..}`; `offset` is passed over.
pub(crate) fn parse(line: &str, encoding: Encoding) -> Result<NewRecord, String> {
    if !line.trim_start().starts_with('{') {
        return Err("a line is one JSON object with key, value, headers, timestamp; to store each line as it is, use --format value".into());
    }
    let fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(line).map_err(|error| not_json(&error))?;
    let mut record = NewRecord::default();
    for (name, raw) in &fields {
        let named = |error: String| format!("{name}: {error}");
        match name.as_str() {
            "key" => record.key = from_json(raw, encoding).map_err(named)?,
            "value" => record.value = from_json(raw, encoding).map_err(named)?,
            "headers" => record.headers = headers(raw, encoding).map_err(named)?,
            "timestamp" => record.timestamp = timestamp(&value(raw)?).map_err(named)?,
            "partition" => record.partition = partition(&value(raw)?).map_err(named)?,
            "offset" => {}
            _ => {
                return Err(format!(
                    "{name} is no part of a record; use key, value, headers, timestamp, partition; to store each line whole, use --format value"
                ));
            }
        }
    }
    Ok(record)
}

/// A line has one line: the column says where.
fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("no JSON at column {}: {what}", error.column())
}

fn value(raw: &RawValue) -> Result<Value, String> {
    serde_json::from_str(raw.get()).map_err(|error| not_json(&error))
}

fn timestamp(value: &Value) -> Result<Option<i64>, String> {
    if value.is_null() {
        return Ok(None);
    }
    if let Some(number) = value.as_i64() {
        return Ok(Some(number));
    }
    let text = value.as_str().ok_or("write ms since 1970, or a time like 2026-01-31T10:00:00Z")?;
    let time: jiff::Timestamp = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Some(time.as_millisecond()))
}

fn partition(value: &Value) -> Result<Option<i32>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    number.filter(|number| *number >= 0).map(Some).ok_or_else(|| "write a number from 0".into())
}

/// `[["name", value], ...]`, as they are read, or `{"name": value}`.
fn headers(raw: &RawValue, encoding: Encoding) -> Result<NewHeaders, String> {
    let named = |(name, raw): (String, Box<RawValue>)| Ok((name, from_json(&raw, encoding)?));
    let text = raw.get();
    if text == "null" {
        return Ok(Vec::new());
    }
    if text.starts_with('[') {
        let pairs: Result<Vec<(String, Box<RawValue>)>, _> = serde_json::from_str(text);
        return pairs.map_err(|_| "a header is [\"name\", value]")?.into_iter().map(named).collect();
    }
    let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_str(text);
    let fields = fields.map_err(|_| "write [[\"name\", value], ...] or {\"name\": value}")?;
    fields.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn what_is_read_can_be_written_back_byte_for_byte() {
        for encoding in [Encoding::Text, Encoding::Base64] {
            for bytes in [
                None,
                Some(&b""[..]),
                Some(b"text \xf0\x9f\xa6\xa6"),
                Some(b"\xff\x00"),
                Some(b"{\"base64\":\"\"}"),
            ] {
                let read = ReadRecord {
                    offset: 7,
                    timestamp: 1_357_034_400_000,
                    key: bytes.map(Vec::from).map(Into::into),
                    value: bytes.map(Vec::from).map(Into::into),
                    headers: vec![("a".into(), bytes.map(Vec::from).map(Into::into)), ("a".into(), None)],
                };
                let object: Map<String, Value> =
                    COLUMNS.iter().map(|name| (*name).to_owned()).zip(row(2, &read, encoding)).collect();
                let written = parse(&Value::Object(object).to_string(), encoding).unwrap();
                assert_eq!((written.partition, written.timestamp), (Some(2), Some(read.timestamp)));
                assert_eq!((written.key.as_deref(), written.value.as_deref()), (bytes, bytes));
                assert_eq!(written.headers, [("a".into(), bytes.map(Vec::from)), ("a".into(), None)]);
            }
        }
    }

    #[test]
    fn a_line_may_say_little() {
        let record = parse(
            r#"{"value":{"a":1},"timestamp":"2013-01-01T10:00:00Z","headers":{"h":"x"}}"#,
            Encoding::Text,
        );
        let expected = NewRecord {
            timestamp: Some(1_357_034_400_000),
            value: Some(br#"{"a":1}"#.to_vec()),
            headers: vec![("h".into(), Some(b"x".to_vec()))],
            ..NewRecord::default()
        };
        assert_eq!(record, Ok(expected));
        assert_eq!(parse("{}", Encoding::Text), Ok(NewRecord::default()));
    }

    #[test]
    fn json_is_stored_as_it_was_written() {
        let text = r#"{"z":1, "a":12345678901234567890123,"p":1.10,"e":1e2}"#;
        let record = parse(&format!(r#"{{"value":{text},"key": [2.50] }}"#), Encoding::Text).unwrap();
        assert_eq!(record.value.as_deref(), Some(text.as_bytes()));
        assert_eq!(record.key.as_deref(), Some(&b"[2.50]"[..]));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_in_words() {
        for line in [
            "",
            "[]",
            "text",
            r#"{"vlaue":1}"#,
            r#"{"timestamp":"yesterday"}"#,
            r#"{"partition":-1}"#,
            r#"{"headers":[["a"]]}"#,
            r#"{"key":{"base64":"%"}}"#,
        ] {
            parse(line, Encoding::Text).expect_err(line);
        }
        parse(r#"{"key":"%"}"#, Encoding::Base64).expect_err("not base64");
    }
}
