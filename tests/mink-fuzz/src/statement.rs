//! SQL on databases and tables, read, printed and read again; scripts; constants.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: whatever the text, it is answered. What was accepted means the same once it is printed.
use mink_ddl::{Statement, literal_of, literal_text, parse, show_create, split};
use mink_types::DatabaseName;
use mink_types::schema::{DataType, Schema};

/// A text as a statement, as a script and as a constant of every scalar type.
pub(crate) fn statement(input: Vec<u8>) {
    let Ok(text) = String::from_utf8(input) else { return };
    let default = DatabaseName::new("d").ok();
    match parse(&text, default.as_ref()) {
        Ok(statement) => again(&statement),
        Err(error) => drop(std::hint::black_box(error.to_string())),
    }
    for part in split(&text) {
        let Ok(part) = part else { break };
        assert!(!part.text.is_empty(), "a script has a statement without a text");
    }
    for data_type in scalars() {
        if let Ok(literal) = literal_of(&data_type, &text) {
            let printed = literal_text(&data_type, &literal);
            assert_eq!(literal_of(&data_type, &printed), Ok(literal), "{data_type}: {printed}");
        }
    }
}

/// Prints a statement and reads it again; for a table that may be made, its schema too.
fn again(statement: &Statement) {
    let printed = statement.to_string();
    assert_eq!(parse(&printed, None).as_ref(), Ok(statement), "{printed}");
    let Statement::CreateTable { path, draft, options, .. } = statement else { return };
    let Ok(schema) = Schema::create(draft.clone()) else { return };
    let shown = show_create(path, &schema, options);
    let Ok(Statement::CreateTable { draft, .. }) = parse(&shown, None) else { panic!("{shown}") };
    assert_eq!(Schema::create(draft), Ok(schema), "{shown}");
}

fn scalars() -> [DataType; 13] {
    [
        DataType::Boolean,
        DataType::TinyInt,
        DataType::BigInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal { precision: 12, scale: 4 },
        DataType::Char { length: 9 },
        DataType::String,
        DataType::Bytes,
        DataType::Date,
        DataType::Time { precision: 4 },
        DataType::Timestamp { precision: 9 },
        DataType::TimestampLtz { precision: 0 },
    ]
}
