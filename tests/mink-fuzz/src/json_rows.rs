//! Rows of JSON, read into columns, written and read again.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: whatever the text, it is answered. A refused row leaves no trace; an accepted one is the same row once it is written.
use mink_record::json::{JsonLimits, JsonWriter, RowsBuilder};
use mink_types::schema::{DataType, Field, Literal, Schema, SchemaDraft};

/// What a builder may hold here.
pub(crate) const HELD_BYTES_MAX: usize = 1 << 20;
/// Longest error: names of the table, and forty characters of the row, escaped.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// A column of each type, and a key.
fn table() -> Schema {
    let pair = DataType::Row(vec![
        Field::new("b", DataType::Boolean).not_null(),
        Field::new("d", DataType::Decimal { precision: 38, scale: 10 }),
    ]);
    let columns = vec![
        Field::new("id", DataType::BigInt),
        Field::new("name", DataType::Char { length: 9 }),
        Field { default: Some(Literal::Integer(7)), ..Field::new("tiny", DataType::TinyInt) },
        Field::new("small", DataType::SmallInt),
        Field::new("int", DataType::Int),
        Field::new("float", DataType::Float),
        Field::new("double", DataType::Double),
        Field::new("bytes", DataType::Binary { length: 40 }),
        Field::new("date", DataType::Date),
        Field::new("time", DataType::Time { precision: 3 }),
        Field::new("stamp", DataType::Timestamp { precision: 9 }),
        Field::new("instant", DataType::TimestampLtz { precision: 2 }),
        Field::new("list", DataType::array(pair)),
        Field::new("labels", DataType::map(DataType::String, DataType::Int)),
        Field::new("pairs", DataType::map(DataType::Float, DataType::array(DataType::Date))),
    ];
    let bucket_key = vec!["id".to_owned(), "name".to_owned()];
    let draft = SchemaDraft { columns, bucket_key, ..SchemaDraft::default() };
    Schema::create(draft).unwrap_or_else(|error| unreachable!("a table of ours: {error}"))
}

/// A row in each line: its value, or its key, a tab and its value.
pub(crate) fn json_rows(input: Vec<u8>) {
    let table = table();
    let limits = JsonLimits { row_bytes_max: input.len(), held_bytes_max: HELD_BYTES_MAX };
    let mut rows = RowsBuilder::with_limits(&table, limits);
    for line in input.split(|byte| *byte == b'\n') {
        let (key, value) = parts(line);
        let before = (rows.len(), rows.bytes());
        if let Err(error) = rows.push_json_parts(key, Some(value)) {
            assert_eq!((rows.len(), rows.bytes()), before, "a refused row left a trace: {error}");
            assert!(error.to_string().len() <= ERROR_BYTES_MAX, "{error}");
        }
    }
    drop(input);
    let rows = rows.finish().unwrap_or_else(|error| panic!("accepted, but {error}"));
    let writer = JsonWriter::new(&table);
    let mut again = RowsBuilder::with_limits(&table, JsonLimits { row_bytes_max: usize::MAX, ..limits });
    let mut text = Vec::new();
    for row in 0..rows.num_rows() {
        text.clear();
        writer.write_row(&rows, row, &mut text).unwrap_or_else(|error| panic!("accepted, but {error}"));
        again.push_json(&text).unwrap_or_else(|error| panic!("written, but {error}"));
    }
    let again = again.finish().unwrap_or_else(|error| panic!("accepted, but {error}"));
    assert_eq!(again, rows, "a row is another once it was written");
}

/// The key of a line, if it has a tab, and its value.
fn parts(line: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let mut parts = line.splitn(2, |byte| *byte == b'\t');
    let first = parts.next().unwrap_or_default();
    parts.next().map_or((None, first), |value| (Some(first), value))
}

/// Rows in the form that is written, in others, with keys, and wrong ones.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let whole = r#"{"id":9007199254740993,"name":"a\"\u00e9","tiny":-128,"small":32767,"int":0,"float":0.1,"double":1e300,"bytes":"AP+/","date":"2026-01-31","time":"12:34:56.789","stamp":"2026-01-31T12:34:56.123456789","instant":"2026-01-31T12:34:56.78Z","list":[{"b":true,"d":-1.5000000000},null,{"b":false,"d":null}],"labels":{"k":1,"":null},"pairs":[{"key":1.5,"value":["1970-01-01",null]},{"key":-0.0,"value":null}]}"#;
    let free = r#" { "instant" : 1769862896780 , "id" : "7" , "float" : "NaN" , "double":"-Infinity", "name":"\ud83d\ude00", "list":[ ], "stamp":"2026-01-31 12:34", "pairs":[{"value":[],"key":1e3}], "int":null } "#;
    let parts = "{\"id\":1,\"name\":\"n\"}\t{\"id\":\"1\",\"date\":\"+10000-01-01\",\"list\":[{\"b\":true,\"d\":\"1e-10\"}]}";
    let wrong = "{\"id\":1,\"name\":\"n\",\"labels\":{\"a\":1,\"a\":2}}\n{\"id\":1.0}\n[]\n\n{\"id\":1,\"name\":\"n\",\"x\":{\"y\":[[[]]]}}";
    let many: Vec<String> =
        (0..30).map(|id| format!("{{\"id\":{id},\"name\":\"{id}\",\"bytes\":\"AA==\"}}")).collect();
    let all = [whole, free, parts, wrong].join("\n");
    [whole, free, parts, wrong, &many.join("\n"), &all].map(|text| text.as_bytes().to_vec()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_seeds_are_rows() {
        let mut rows = RowsBuilder::new(&table());
        for seed in seeds().iter().take(3) {
            let (key, value) = parts(seed);
            rows.push_json_parts(key, Some(value)).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(rows.len(), 3);
    }
}
