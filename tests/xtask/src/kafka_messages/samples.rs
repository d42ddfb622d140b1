//! Writes how to fill each message with drawn values, for the tests of mink-kafka-wire.
//!
//! Lives on: a developer's machine.
//! Owns: the generated half of `tests/samples` there. A field is drawn only at versions that have it, so that a
//! sample survives a round trip unchanged.

use std::fmt::Write as _;

use super::Pair;
use super::emit::{header, method, uses_word};
use super::schema::{Field, Struct, Type, Versions, snake_case};
use super::types::default_expr;

pub(crate) fn samples_file(pairs: &[Pair], kafka_version: &str) -> Result<String, String> {
    let mut body = String::new();
    for pair in pairs {
        let module = snake_case(&pair.name);
        for one in pair.request.structs.iter().chain(pair.own_structs_of_response()) {
            write_sample(&mut body, &module, one)?;
        }
    }
    let mut file = header("How to draw each message.", kafka_version);
    file.push_str("\nuse mink_kafka_wire::messages;\n");
    for name in ["Bytes", "KafkaString", "Records", "Uuid"] {
        if body.contains(&format!("{name}::")) {
            let path = if name == "Bytes" { "bytes" } else { "mink_kafka_wire" };
            let _ = writeln!(file, "use {path}::{name};");
        }
    }
    file.push_str("\nuse super::{Sample, Source};\n\n");
    file.push_str(&body);
    file.push_str(
        "/// Calls the macro it is given once per API: its name, its module, its request and its response.\n",
    );
    file.push_str("macro_rules! with_each_api {\n($call:ident) => {\n");
    for pair in pairs {
        let module = snake_case(&pair.name);
        let _ =
            writeln!(file, "$call!({}, {module}, {}, {});", pair.name, pair.request.name, pair.response.name);
    }
    file.push_str("};\n}\npub(crate) use with_each_api;\n");
    Ok(file)
}

fn write_sample(out: &mut String, module: &str, one: &Struct) -> Result<(), String> {
    let mut fields = String::new();
    for field in &one.fields {
        let drawn = draw_nullable(module, field)?;
        let qualified = |expr: String| match &field.ty {
            Type::Struct(name) => expr.replace(name.as_str(), &format!("messages::{module}::{name}")),
            _ => expr,
        };
        let value = match condition(field.versions, one.versions) {
            None => drawn,
            Some(test) => format!("if {test} {{ {drawn} }} else {{ {} }}", qualified(default_expr(field))),
        };
        let _ = writeln!(fields, "{}: {value},", field.name);
    }
    // A plain search would take the field `min_version` for the parameter.
    let used = |word, unused| if uses_word(&fields, word) { word } else { unused };
    let _ = write!(
        out,
        "impl Sample for messages::{module}::{} {{\nfn sample({}: &mut Source, {}: i16) -> Self {{\nSelf {{\n{fields}}}\n}}\n}}\n\n",
        one.name,
        used("source", "_source"),
        used("version", "_version"),
    );
    Ok(())
}

/// None when `wanted` covers all of `known`.
fn condition(wanted: Versions, known: Versions) -> Option<String> {
    let within = wanted.intersect(known);
    (within != known).then(|| format!("({}..={}).contains(&version)", within.min, within.max))
}

fn draw_nullable(module: &str, field: &Field) -> Result<String, String> {
    let plain = draw(module, &field.ty)?;
    if field.nullable.is_empty() {
        return Ok(plain);
    }
    let optional = format!("source.optional({})", drawer(module, &field.ty)?);
    Ok(match condition(field.nullable, field.versions) {
        None => optional,
        Some(test) => format!("if {test} {{ {optional} }} else {{ Some({plain}) }}"),
    })
}

/// The expression that draws one value.
fn draw(module: &str, ty: &Type) -> Result<String, String> {
    Ok(match ty {
        Type::Struct(name) => format!("messages::{module}::{name}::sample(source, version)"),
        Type::Array(element) => format!("source.array({})", drawer(module, element)?),
        plain => format!("source.{}()", method(plain)?),
    })
}

/// What draws one value when it is called with a source.
fn drawer(module: &str, ty: &Type) -> Result<String, String> {
    Ok(match ty {
        Type::Struct(_) | Type::Array(_) => format!("|source| {}", draw(module, ty)?),
        plain => format!("Source::{}", method(plain)?),
    })
}
