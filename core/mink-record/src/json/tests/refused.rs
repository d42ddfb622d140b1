//! Rows that are refused as a whole: no JSON, unknown fields, missing ones.

use super::*;
use mink_types::schema::Literal;

fn table() -> Schema {
    let item = vec![
        Field::new("sku", DataType::String).not_null(),
        Field::new("price", DataType::Decimal { precision: 4, scale: 2 }),
    ];
    schema(vec![
        Field::new("id", DataType::Int).not_null(),
        Field {
            default: Some(Literal::Text("none".into())),
            ..Field::new("note", DataType::String).not_null()
        },
        Field { default: Some(Literal::Integer(31)), ..Field::new("day", DataType::Date) },
        Field::new("items", DataType::array(DataType::Row(item))),
    ])
}

#[test]
fn fields_come_in_any_order_and_missing_ones_have_their_default() {
    let table = table();
    assert_eq!(
        again(&table, "\t{ \"items\" : [ ] ,\r\n \"id\":1}").as_deref(),
        Ok(r#"{"id":1,"note":"none","day":"1970-02-01","items":[]}"#)
    );
    assert_eq!(
        again(&table, r#"{"i\u0064":1,"day":null,"note":"\u0000"}"#).as_deref(),
        Ok(r#"{"id":1,"note":"\u0000","day":null,"items":null}"#)
    );
}

#[test]
fn every_refusal_names_its_place() {
    for (text, refusal) in [
        ("", "no JSON at byte 0: found the end; use an object"),
        ("  [1]", "no JSON at byte 2: found an array; use an object"),
        ("null", "no JSON at byte 0: found `null`; use an object"),
        ("{\"id\":1", "no JSON at byte 7: found the end; use a comma or the object's end"),
        ("{\"id\":1}x", "no JSON at byte 8: found `x`; use nothing behind the object"),
        ("{\"id\":1,}", "no JSON at byte 8: found `}`; use a text in double quotes"),
        ("{id:1}", "no JSON at byte 1: found `id:1`; use a text in double quotes"),
        ("{\"id\" 1}", "no JSON at byte 6: found `1`; use a colon"),
        ("{\"id\":01}", "no JSON at byte 7: found `1`; use a comma or the object's end"),
        (
            "{\"id\":1,\"note\":\"a\nb\"}",
            "note: no JSON at byte 17: found `\\nb\\\"`; use an escape as \\n or \\u0001 for a control character",
        ),
        (
            "{\"id\":1,\"note\":\"\\uD800\"}",
            "note: no JSON at byte 16: found `\\\\uD800\\\"`; use an escape that JSON knows, and surrogates in pairs",
        ),
        ("{\"ID\":1}", "there is no field `ID`; use `id`, `note`, `day`, `items`"),
        ("{\"id\":1,\"id\":1}", "id: named twice; use each name once"),
        (
            "{\"note\":\"\"}",
            "id: missing, but it is NOT NULL and has no default; use a whole number from -2147483648 to 2147483647",
        ),
        ("{\"id\":null}", "id: null, but it is NOT NULL; use a whole number from -2147483648 to 2147483647"),
        ("{\"id\":1,\"note\":null}", "note: null, but it is NOT NULL; use a text"),
        (
            "{\"id\":1,\"items\":[{\"sku\":\"a\"},{\"price\":1}]}",
            "items[1].sku: missing, but it is NOT NULL and has no default; use a text",
        ),
        (
            "{\"id\":1,\"items\":[{\"sku\":\"a\",\"sku\":\"a\"}]}",
            "items[0].sku: named twice; use each name once",
        ),
        (
            "{\"id\":1,\"items\":[{\"sku\":\"a\",\"x\":[]}]}",
            "items[0]: there is no field `x`; use `sku`, `price`",
        ),
        (
            "{\"id\":1,\"items\":[null,{\"sku\":\"a\",\"price\":123}]}",
            "items[1].price: found `123`; use a number with at most 2 digits before the point and 2 behind it, or a text with one",
        ),
    ] {
        assert_eq!(refused(again(&table(), text)), refusal, "{text}");
    }
    let error = RowsBuilder::new(&table()).push_json(b"{\"id\":1,\"note\":\"\xff\"}").expect_err("no text");
    assert_eq!((error.kind(), error.path()), (JsonErrorKind::Syntax, ""));
    assert_eq!(error.message(), "no UTF-8 at byte 16; send a JSON object in UTF-8");
}

#[test]
fn no_error_repeats_more_than_forty_characters_of_a_row() {
    let long = "\u{1f600}".repeat(1_000);
    for text in [
        format!("{{\"id\":\"{long}\"}}"),
        format!("{{\"id\":{long}}}"),
        format!("{{\"{long}\":1}}"),
        format!("{{\"id\":1}}{long}"),
        format!("{{\"id\":1,\"items\":[{{\"sku\":\"a\",\"price\":\"{long}\"}}]}}"),
    ] {
        let message = refused(again(&table(), &text));
        assert_eq!(message.chars().filter(|symbol| *symbol == '\u{1f600}').count(), SHOWN_CHARS_MAX);
        assert!(message.contains('…'), "{message}");
    }
}
