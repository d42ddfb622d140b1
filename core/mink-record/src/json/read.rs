//! Values of JSON, each into its column.
//!
//! Lives on: anywhere (pure). Goes as deep as the column's type, at most `SCHEMA_DEPTH_MAX`.
//! Invariants: J3: texts and elements are paid for before they are appended; the width of a row's own columns its reader has paid.
use super::column::{Column, Held, Values, close_list, list_start};
use super::error::JsonError;
use super::fields::{Fields, Named, Part};
use super::moment::{of_milliseconds, read_date, read_time, read_timestamp};
use super::number::{decimal, is_number, not_finite, whole, whole_in_text};
use super::text::Text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mink_types::schema::TimeUnit;
use std::borrow::Cow;

impl Column {
    /// Reads one value and appends it. After an error the column may have part of it.
    pub(super) fn read(&mut self, text: &mut Text<'_>, held: &mut Held) -> Result<(), JsonError> {
        let first = text.peek();
        let mark = text.mark();
        if first == b'n' && text.word("null") {
            if !self.nullable {
                let accepted = self.values.accepted();
                return Err(JsonError::value(format!("null, but it is NOT NULL; use {accepted}")));
            }
            self.append_null();
            return Ok(());
        }
        if self.values.read(text, held, self.nulls.len())? {
            self.nulls.append_non_null();
            return Ok(());
        }
        text.back_to(mark);
        Err(JsonError::value(format!("found {}; use {}", text.found(), self.values.accepted())))
    }
}

impl Values {
    /// Reads a value behind `len` others. False: it is none of the type.
    fn read(&mut self, text: &mut Text<'_>, held: &mut Held, len: usize) -> Result<bool, JsonError> {
        let read = match self {
            Values::Boolean(values) => boolean(text).map(|value| values.append(value)),
            Values::TinyInt(values) => integer(text).map(|value| values.push(value)),
            Values::SmallInt(values) => integer(text).map(|value| values.push(value)),
            Values::Int(values) => integer(text).map(|value| values.push(value)),
            Values::BigInt(values) => match string(text)? {
                Some(digits) => whole_in_text(&digits),
                None => integer(text),
            }
            .map(|value| values.push(value)),
            Values::Float(values) => match string(text)? {
                #[expect(clippy::cast_possible_truncation, reason = "both have infinities and NaN")]
                Some(word) => not_finite(&word).map(|value| value as f32),
                None => text
                    .number()
                    .and_then(|number| number.parse().ok())
                    .filter(|value: &f32| value.is_finite()),
            }
            .map(|value| values.push(value)),
            Values::Double(values) => match string(text)? {
                Some(word) => not_finite(&word),
                None => text
                    .number()
                    .and_then(|number| number.parse().ok())
                    .filter(|value: &f64| value.is_finite()),
            }
            .map(|value| values.push(value)),
            Values::Decimal { precision, scale, values } => match string(text)? {
                Some(number) => Some(number).filter(|number| is_number(number)),
                None => text.number().map(Cow::Borrowed),
            }
            .and_then(|number| decimal(&number, *precision, *scale))
            .map(|value| values.push(value)),
            Values::Date(values) => {
                string(text)?.and_then(|date| read_date(&date)).map(|value| values.push(value))
            }
            Values::Time { precision, units } => {
                string(text)?.and_then(|time| read_time(&time, *precision)).map(|value| units.push(value))
            }
            Values::Timestamp { precision, instant, units } => match string(text)? {
                Some(time) => read_timestamp(&time, *precision, *instant),
                None if *instant => integer(text).and_then(|value| of_milliseconds(value, *precision)),
                None => None,
            }
            .map(|value| units.push(value)),
            _ => return self.read_long(text, held, len),
        };
        Ok(read.is_some())
    }

    /// As [`Values::read`], of types whose values have no bound.
    fn read_long(&mut self, text: &mut Text<'_>, held: &mut Held, len: usize) -> Result<bool, JsonError> {
        match self {
            Values::Text { .. } => {
                let Some(value) = string(text)? else { return Ok(false) };
                self.append_text(&value, held)
            }
            Values::Bytes { length, bytes } => {
                let Some(value) = string(text)? else { return Ok(false) };
                // Four characters have three bytes; decoding makes room for the last three before it knows.
                held.pay(value.len() / 4 * 3)?;
                let start = bytes.data.len();
                let decoded = STANDARD.decode_vec(value.as_bytes(), &mut bytes.data);
                let count = bytes.data.len() - start;
                bytes.close()?;
                Ok(decoded.is_ok() && length.is_none_or(|length| count <= length as usize))
            }
            Values::Array { offsets, element } => {
                if text.peek() != b'[' {
                    return Ok(false);
                }
                let start = list_start(offsets);
                each(text, b']', |text, place| {
                    debug_assert_eq!(element.len(), start + place, "an element is one entry");
                    held.pay(element.width)?;
                    element.read(text, held)
                })?;
                close_list(offsets, element.len())?;
                Ok(true)
            }
            Values::Map { offsets, entries } => {
                let by_text = is_by_text(entries);
                if text.peek() != if by_text { b'{' } else { b'[' } {
                    return Ok(false);
                }
                let start = list_start(offsets);
                let close = if by_text { b'}' } else { b']' };
                each(text, close, |text, place| {
                    held.pay(entries.width())?;
                    if by_text {
                        entry(entries, text, held)
                    } else {
                        pair(entries, text, held, start + place)
                    }
                })?;
                let Some(key) = entries.columns.first().map(|named| &named.column) else { return Ok(false) };
                if key.has_twice(start..key.len()) {
                    return Err(JsonError::value("a key stands in it twice; use each key once"));
                }
                close_list(offsets, key.len())?;
                Ok(true)
            }
            Values::Row(fields) => {
                if text.peek() != b'{' {
                    return Ok(false);
                }
                fields.read(text, held, Part::whole(len))?;
                fields.fill(len, held)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// False: it is too long, or this is no column of texts.
    fn append_text(&mut self, value: &str, held: &mut Held) -> Result<bool, JsonError> {
        let Values::Text { length, bytes } = self else { return Ok(false) };
        // A character has at least one byte.
        let long = |most: u32| value.len() > most as usize && value.chars().count() > most as usize;
        if length.is_some_and(long) {
            return Ok(false);
        }
        held.pay(value.len())?;
        bytes.data.extend_from_slice(value.as_bytes());
        bytes.close()?;
        Ok(true)
    }

    /// What stands for a value in JSON, for an error's text.
    pub(super) fn accepted(&self) -> String {
        match self {
            Values::Boolean(_) => "true or false".to_owned(),
            Values::TinyInt(_) => "a whole number from -128 to 127".to_owned(),
            Values::SmallInt(_) => "a whole number from -32768 to 32767".to_owned(),
            Values::Int(_) => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
            Values::BigInt(_) => {
                format!("a whole number from {} to {}, or a text with its digits", i64::MIN, i64::MAX)
            }
            Values::Float(_) | Values::Double(_) => {
                "a number in its range, \"NaN\", \"Infinity\" or \"-Infinity\"".to_owned()
            }
            Values::Decimal { precision, scale, .. } => {
                let before = precision.saturating_sub(*scale);
                format!(
                    "a number with at most {before} digits before the point and {scale} behind it, or a text with one"
                )
            }
            Values::Text { length: None, .. } => "a text".to_owned(),
            Values::Text { length: Some(length), .. } => format!("a text of at most {length} characters"),
            Values::Bytes { length: None, .. } => "a text in base64 with its padding".to_owned(),
            Values::Bytes { length: Some(length), .. } => {
                format!("a text in base64 with its padding, of at most {length} bytes")
            }
            Values::Date(_) => "a text as \"2026-01-31\"".to_owned(),
            Values::Time { precision, .. } => format!("a text as \"12:34:56\"{}", fraction(*precision)),
            Values::Timestamp { precision, instant: false, .. } => {
                let fraction = fraction(*precision);
                format!(
                    "a text as \"2026-01-31T12:34:56\"{fraction}, without a time zone{}",
                    years(*precision)
                )
            }
            Values::Timestamp { precision, instant: true, .. } => {
                let fraction = fraction(*precision);
                format!(
                    "a text as \"2026-01-31T12:34:56Z\"{fraction}, with Z or an offset as +02:00, or milliseconds since 1970{}",
                    years(*precision)
                )
            }
            Values::Array { .. } => "an array".to_owned(),
            Values::Map { entries, .. } if is_by_text(entries) => "an object".to_owned(),
            Values::Map { .. } => "an array of {\"key\": .., \"value\": ..}".to_owned(),
            Values::Row(_) => "an object".to_owned(),
        }
    }
}

fn fraction(precision: u8) -> String {
    if precision == 0 {
        String::new()
    } else {
        format!(", with at most {precision} digits behind the second")
    }
}

fn years(precision: u8) -> &'static str {
    match TimeUnit::of_precision(precision) {
        TimeUnit::Nanoseconds => ", from 1677-09-21 to 2262-04-11",
        _ => "",
    }
}

/// Whether the keys of a map are texts: then it is an object.
fn is_by_text(entries: &Fields) -> bool {
    matches!(entries.columns.first(), Some(Named { column: Column { values: Values::Text { .. }, .. }, .. }))
}

/// Reads what stands between the bracket that comes next and `close`, element by element.
fn each<'a>(
    text: &mut Text<'a>,
    close: u8,
    mut element: impl FnMut(&mut Text<'a>, usize) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    // The caller has seen the bracket.
    text.skip(1);
    if text.empty(close) {
        return Ok(());
    }
    let mut place = 0;
    loop {
        element(text, place).map_err(|error| error.at(place))?;
        if !text.more(close, "a comma or its end")? {
            return Ok(());
        }
        place += 1;
    }
}

/// An entry of a map as a field of an object.
fn entry(entries: &mut Fields, text: &mut Text<'_>, held: &mut Held) -> Result<(), JsonError> {
    let [key, value] = entries.columns.as_mut_slice() else { return Err(text.unexpected("an object's end")) };
    text.peek();
    let mark = text.mark();
    let name = text.string()?;
    if !key.column.values.append_text(&name, held)? {
        text.back_to(mark);
        let message = format!("found {}; use {}", text.found(), key.column.values.accepted());
        return Err(JsonError::value(message).below(&key.name));
    }
    key.column.nulls.append_non_null();
    text.expect(b':', "a colon")?;
    value.column.read(text, held).map_err(|error| error.below(&value.name))
}

/// An entry of a map as an object of its own, behind `len` others.
fn pair(entries: &mut Fields, text: &mut Text<'_>, held: &mut Held, len: usize) -> Result<(), JsonError> {
    if text.peek() != b'{' {
        return Err(JsonError::value(format!("found {}; use {{\"key\": .., \"value\": ..}}", text.found())));
    }
    entries.read(text, held, Part::whole(len))?;
    entries.fill(len, held)
}

fn boolean(text: &mut Text<'_>) -> Option<bool> {
    if text.word("true") {
        Some(true)
    } else if text.word("false") {
        Some(false)
    } else {
        None
    }
}

/// A number without a point or an exponent, in the range of its type.
fn integer<T: TryFrom<i64>>(text: &mut Text<'_>) -> Option<T> {
    text.number().and_then(whole).and_then(|value| T::try_from(value).ok())
}

/// None if what comes next is no text.
fn string<'a>(text: &mut Text<'a>) -> Result<Option<Cow<'a, str>>, JsonError> {
    if text.peek() == b'"' { text.string().map(Some) } else { Ok(None) }
}
