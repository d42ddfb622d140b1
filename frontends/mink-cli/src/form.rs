//! A record as JSON, the same for `mink read` and `mink write`.
//!
//! Lives on: anywhere (pure).
//! Invariants: what `mink read --output json` prints, `mink write` takes back byte for byte.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mink_client::ReadRecord;
use serde_json::{Map, Value, json};

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

/// Bytes that JSON stands for. Any value but text, null and `{"base64": ...}` stands for its own JSON text.
pub(crate) fn from_json(value: &Value, encoding: Encoding) -> Result<Option<Vec<u8>>, String> {
    let decode = |text: &str| STANDARD.decode(text).map(Some).map_err(|error| format!("not base64: {error}"));
    match value {
        Value::Null => Ok(None),
        Value::String(text) if encoding == Encoding::Base64 => decode(text),
        Value::String(text) => Ok(Some(text.clone().into_bytes())),
        Value::Object(object) if object.len() == 1 && object.contains_key("base64") => {
            let text = object.get("base64").and_then(Value::as_str).ok_or("base64 is not text")?;
            decode(text)
        }
        other => Ok(Some(other.to_string().into_bytes())),
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
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let Value::Object(fields) = value else {
        return Err(
            "a line is one JSON object with key, value, headers, timestamp; or use --format value".into()
        );
    };
    let mut record = NewRecord::default();
    for (name, value) in &fields {
        let named = |error: String| format!("{name}: {error}");
        match name.as_str() {
            "key" => record.key = from_json(value, encoding).map_err(named)?,
            "value" => record.value = from_json(value, encoding).map_err(named)?,
            "headers" => record.headers = headers(value, encoding).map_err(named)?,
            "timestamp" if value.is_null() => {}
            "timestamp" => record.timestamp = Some(timestamp(value).map_err(named)?),
            "partition" => record.partition = partition(value).map_err(named)?,
            "offset" => {}
            _ => {
                return Err(format!(
                    "{name} is no part of a record; use key, value, headers, timestamp, partition"
                ));
            }
        }
    }
    Ok(record)
}

fn timestamp(value: &Value) -> Result<i64, String> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let text = value.as_str().ok_or("write ms since 1970, or a time like 2026-01-31T10:00:00Z")?;
    let time: jiff::Timestamp = text.parse().map_err(|error| format!("{error}"))?;
    Ok(time.as_millisecond())
}

fn partition(value: &Value) -> Result<Option<i32>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    number.filter(|number| *number >= 0).map(Some).ok_or_else(|| "write a number from 0".into())
}

/// `[["name", value], ...]`, as they are read, or `{"name": value}`.
fn headers(value: &Value, encoding: Encoding) -> Result<NewHeaders, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(object) => named_headers(object, encoding),
        Value::Array(list) => list
            .iter()
            .map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([Value::String(name), value]) => Ok((name.clone(), from_json(value, encoding)?)),
                _ => Err("a header is [\"name\", value]".into()),
            })
            .collect(),
        _ => Err("write [[\"name\", value], ...] or {\"name\": value}".into()),
    }
}

fn named_headers(object: &Map<String, Value>, encoding: Encoding) -> Result<NewHeaders, String> {
    object.iter().map(|(name, value)| Ok((name.clone(), from_json(value, encoding)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
