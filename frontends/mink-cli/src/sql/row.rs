//! Rows as the node sends them: JSON objects whose fields keep their order.
//!
//! Lives on: anywhere (pure).
use crate::failure::Failure;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Names and values, in the node's order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Row(Vec<(String, Value)>);

impl Row {
    /// A row that is made here.
    pub(super) fn of<const N: usize>(fields: [(&str, Value); N]) -> Row {
        Row(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The value of a field; null if it is not there.
    pub(crate) fn value(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map_or(Value::Null, |(_, value)| value.clone())
    }

    /// The values of these fields.
    pub(crate) fn values(&self, names: &[String]) -> Vec<Value> {
        names.iter().map(|name| self.value(name)).collect()
    }

    /// As a JSON object, whose fields have an order of their own.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.iter().cloned().collect())
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row, which is a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Row, M::Error> {
                let mut row = Row::default();
                while let Some(field) = map.next_entry()? {
                    row.0.push(field);
                }
                Ok(row)
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// Reads rows.
pub(super) fn read(rows: &[impl AsRef<[u8]>]) -> Result<Vec<Row>, Failure> {
    let read = rows.iter().map(|row| serde_json::from_slice(row.as_ref()));
    read.collect::<Result<_, _>>()
        .map_err(|error| Failure::failed(format!("the node's answer makes no sense: {error}")))
}

/// The names of all fields, in the order in which they come.
pub(super) fn columns(rows: &[Row]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.0) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    columns
}

/// A result in words, as `created table sales.orders`; none for a row of data.
pub(super) fn told(row: &Row) -> Option<String> {
    let (result, about) = row.0.split_first().filter(|((name, _), _)| name == "result")?;
    let result = crate::output::text(&result.1);
    if let [(table, of), (partition, named)] = about
        && (table.as_str(), partition.as_str()) == ("table", "partition")
        && !named.is_null()
    {
        let (named, of) = (crate::output::text(named), crate::output::text(of));
        return Some(format!("{result} partition {named} of {of}"));
    }
    let about = about.iter().filter(|(_, value)| !value.is_null());
    let about: Vec<String> =
        about.map(|(name, value)| format!("{name} {}", crate::output::text(value))).collect();
    Some(format!("{result} {}", about.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(texts: &[&str]) -> Vec<Row> {
        read(texts).expect("rows")
    }

    #[test]
    fn fields_keep_the_order_in_which_the_node_sends_them() {
        let rows = rows(&[r#"{"z":1,"a":"x"}"#, r#"{"z":2,"m":null}"#]);
        assert_eq!(columns(&rows), ["z", "a", "m"]);
        assert_eq!(rows[1].values(&columns(&rows)), [json!(2), json!(null), json!(null)]);
        assert_eq!(rows[0].to_value(), json!({ "a": "x", "z": 1 }));
    }

    #[test]
    fn a_result_is_told_in_words_and_data_is_not() {
        let told = |text: &str| told(&rows(&[text])[0]);
        assert_eq!(told(r#"{"result":"created","table":"a.b"}"#).as_deref(), Some("created table a.b"));
        let altered = told(r#"{"result":"altered","table":"a.b","schema":2}"#);
        assert_eq!(altered.as_deref(), Some("altered table a.b, schema 2"));
        let made = told(r#"{"result":"created","table":"a.b","partition":"dt=2026-01-31"}"#);
        assert_eq!(made.as_deref(), Some("created partition dt=2026-01-31 of a.b"));
        // As an older node tells it.
        let gone = told(r#"{"result":"dropped","table":"a.b","partition":null}"#);
        assert_eq!(gone.as_deref(), Some("dropped table a.b"));
        assert_eq!(told(r#"{"database":"sales"}"#), None);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(read(&["[1]"]).is_err() && read(&["{"]).is_err());
    }
}
