//! How a field looks in Rust: its type, its default, and the test for being at its default.
//!
//! Lives on: a developer's machine.
//! Owns: the rule for defaults. They are Kafka's: what a reader assumes at versions without the field.

use super::schema::{Field, Type};

pub(crate) fn element_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int8 => "i8".into(),
        Type::Int16 => "i16".into(),
        Type::Uint16 => "u16".into(),
        Type::Int32 => "i32".into(),
        Type::Int64 => "i64".into(),
        Type::Uuid => "Uuid".into(),
        Type::String => "KafkaString".into(),
        Type::Bytes => "Bytes".into(),
        Type::Records => "Records".into(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", element_type(element)),
    }
}

pub(crate) fn field_type(field: &Field) -> String {
    let plain = element_type(&field.ty);
    if field.nullable.is_empty() { plain } else { format!("Option<{plain}>") }
}

/// Whether an absent value reads as null: an explicit default, and always for records.
pub(crate) fn is_null_by_default(field: &Field) -> bool {
    !field.nullable.is_empty() && (field.default.as_deref() == Some("null") || field.ty == Type::Records)
}

pub(crate) fn has_rust_default(field: &Field) -> bool {
    let expr = default_expr(field);
    ["0", "false", "None", "Vec::new()"].contains(&expr.as_str()) || expr.ends_with("::default()")
}

pub(crate) fn default_expr(field: &Field) -> String {
    if is_null_by_default(field) {
        return "None".to_owned();
    }
    let given = field.default.as_deref().filter(|text| !text.is_empty());
    let plain = match &field.ty {
        Type::Bool => given.unwrap_or("false").to_owned(),
        Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Int64 => number(given.unwrap_or("0")),
        Type::Uuid => "Uuid::default()".to_owned(),
        Type::String => given.map_or_else(
            || "KafkaString::default()".to_owned(),
            |text| format!("KafkaString::from_static({text:?})"),
        ),
        Type::Bytes => "Bytes::default()".to_owned(),
        Type::Records => "Records::default()".to_owned(),
        Type::Struct(name) => format!("{name}::default()"),
        Type::Array(_) => "Vec::new()".to_owned(),
    };
    if field.nullable.is_empty() { plain } else { format!("Some({plain})") }
}

/// Kafka writes some defaults in hexadecimal; long ones get the separators that clippy asks for.
fn number(text: &str) -> String {
    let digits = text.strip_prefix("0x").map_or_else(
        || text.to_owned(),
        |hex| i64::from_str_radix(hex, 16).map_or_else(|_| text.to_owned(), |value| value.to_string()),
    );
    match digits.as_str() {
        "2147483647" => "i32::MAX".to_owned(),
        "-2147483648" => "i32::MIN".to_owned(),
        "9223372036854775807" => "i64::MAX".to_owned(),
        plain => grouped(plain),
    }
}

fn grouped(digits: &str) -> String {
    let (sign, body) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut out = String::new();
    for (at, c) in body.chars().enumerate() {
        if body.len() > 4 && at > 0 && (body.len() - at).is_multiple_of(3) {
            out.push('_');
        }
        out.push(c);
    }
    format!("{sign}{out}")
}

/// An expression that is true when the field differs from its default.
pub(crate) fn differs_from_default(field: &Field) -> String {
    let place = format!("self.{}", field.name);
    if is_null_by_default(field) {
        return format!("{place}.is_some()");
    }
    if !field.nullable.is_empty() {
        return format!("{place}.as_ref().is_none_or(|value| !value.is_empty())");
    }
    match (&field.ty, default_expr(field).as_str()) {
        (Type::Bool, "true") => format!("!{place}"),
        (Type::Bool, _) => place,
        (Type::Bytes | Type::Records | Type::Array(_), _) | (Type::String, "KafkaString::default()") => {
            format!("!{place}.is_empty()")
        }
        (_, default) => format!("{place} != {default}"),
    }
}
