//! Conditions on rows as they are typed: `amount >= 10`, `customer IS NOT NULL`.
//!
//! Lives on: anywhere (pure).
//! Invariants: what a constant means is for the node to say, which knows the column's type.
use mink_client::flight::Operator;

/// A column against a constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Condition {
    pub(super) column: String,
    pub(super) operator: Operator,
    /// Text of the column's type; empty where the operator takes none.
    pub(super) value: String,
}

/// Operators between column and constant, those that begin as another one first.
const OPERATORS: [(&str, Operator); 8] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!=", Operator::NotEqual),
    ("<>", Operator::NotEqual),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

const ACCEPTED: &str = "write COLUMN = VALUE (also != < <= > >=), COLUMN IS NULL or COLUMN IS NOT NULL; a column with blanks or signs \
                        in its name stands in \"double quotes\"";

/// Reads a condition.
pub(super) fn condition(text: &str) -> Result<Condition, String> {
    let refused = |what: &str| format!("{what}; {ACCEPTED}");
    let (column, rest) = column(text.trim_start()).map_err(refused)?;
    let rest = rest.trim();
    if let Some(operator) = null_test(rest) {
        return Ok(Condition { column, operator, value: String::new() });
    }
    let found = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, rest.strip_prefix(sign)?)));
    let Some((operator, value)) = found else {
        return Err(refused(&format!("found no operator behind {column:?}")));
    };
    Ok(Condition { column, operator, value: constant(value.trim()).map_err(refused)? })
}

/// The column's name, and what is behind it.
fn column(text: &str) -> Result<(String, &str), &'static str> {
    for quote in ['"', '`'] {
        if let Some(rest) = text.strip_prefix(quote) {
            return quoted(rest, quote).ok_or("the quote around the column's name does not end");
        }
    }
    let end = text.find(|found: char| found.is_whitespace() || "<>=!".contains(found)).unwrap_or(text.len());
    match text.split_at(end) {
        ("", _) => Err("found no column"),
        (name, rest) => Ok((name.to_owned(), rest)),
    }
}

/// What stands before the quote that ends it, one in it written twice, and what is behind.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut found, mut rest) = (String::new(), text);
    loop {
        let (before, behind) = rest.split_once(quote)?;
        found.push_str(before);
        match behind.strip_prefix(quote) {
            Some(behind) => {
                found.push(quote);
                rest = behind;
            }
            None => return Some((found, behind)),
        }
    }
}

fn null_test(text: &str) -> Option<Operator> {
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["IS", "NULL"] => Some(Operator::IsNull),
        ["IS", "NOT", "NULL"] => Some(Operator::IsNotNull),
        _ => None,
    }
}

/// A constant, with or without single quotes.
fn constant(text: &str) -> Result<String, &'static str> {
    let Some(rest) = text.strip_prefix('\'') else {
        return if text.is_empty() {
            Err("found no value; an empty text is ''")
        } else {
            Ok(text.to_owned())
        };
    };
    match quoted(rest, '\'') {
        Some((value, "")) => Ok(value),
        Some(_) => {
            Err("something stands behind the quoted value; for several conditions give --where several times")
        }
        None => Err("the quote around the value does not end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_column_an_operator_and_a_constant() {
        for (text, column, operator, value) in [
            ("amount >= 10", "amount", Operator::GreaterOrEqual, "10"),
            ("amount<10.5", "amount", Operator::Less, "10.5"),
            ("a=b=c", "a", Operator::Equal, "b=c"),
            ("a == -1", "a", Operator::Equal, "-1"),
            ("a<>'x'", "a", Operator::NotEqual, "x"),
            ("a != ''", "a", Operator::NotEqual, ""),
            ("name = 'O''Neil, Jr.'", "name", Operator::Equal, "O'Neil, Jr."),
            ("name = two words", "name", Operator::Equal, "two words"),
            ("\"a \"\"b\"\"\">1", "a \"b\"", Operator::Greater, "1"),
            ("`größe` is null", "größe", Operator::IsNull, ""),
            (" a  IS  not NULL ", "a", Operator::IsNotNull, ""),
            ("at > 2026-01-31T10:00:00Z", "at", Operator::Greater, "2026-01-31T10:00:00Z"),
        ] {
            let expected = Condition { column: column.into(), operator, value: value.into() };
            assert_eq!(condition(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_what_is_accepted() {
        for text in ["", "a", "= 1", "a is", "a =", "\"a = 1", "a = 'x", "a = 'x' and b = 1", "a like 'x'"] {
            let words = condition(text).expect_err(text);
            assert!(words.contains("write COLUMN = VALUE"), "{words}");
        }
    }
}
