//! The value of the option `bucket.key`: names of columns in a text.
//!
//! Lives on: anywhere (pure).
//! Invariants: what [`bucket_key_text`] prints, [`bucket_key`] reads as the same names.
use crate::lexer::{Kind, Lexer, undoubled};
use mink_types::schema::{COLUMN_NAME_BYTES_MAX, KEY_COLUMNS_MAX};

/// The option's name. It is a part of the schema, and stays as it is.
pub(crate) const BUCKET_KEY: &str = "bucket.key";

/// The names in `a, b`. A name that holds a comma or a quote, or has a blank at its ends, stands in quotes.
pub(crate) fn bucket_key(value: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = value.trim_start();
    loop {
        let (name, behind) = name(rest).ok_or("a quote in it is not closed")?;
        if name.is_empty() || name.len() > COLUMN_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err("accepted: names of columns with commas between them".to_owned());
        }
        if names.len() == KEY_COLUMNS_MAX {
            return Err(format!("accepted: at most {KEY_COLUMNS_MAX} columns"));
        }
        names.push(name);
        let behind = behind.trim_start();
        if behind.is_empty() {
            return Ok(names);
        }
        let next = behind.strip_prefix(',').ok_or("accepted: a comma between the names of two columns")?;
        rest = next.trim_start();
    }
}

/// The name that a text begins with, and what is behind it.
fn name(text: &str) -> Option<(String, &str)> {
    if !text.starts_with(['"', '`']) {
        let end = text.find(',').unwrap_or(text.len());
        let (name, behind) = text.split_at_checked(end)?;
        return Some((name.trim_end().to_owned(), behind));
    }
    let token = Lexer::new(text).token();
    let Kind::Quoted { body, quote } = token.kind else { return None };
    Some((undoubled(body, quote), text.get(token.end..)?))
}

pub(crate) fn bucket_key_text(names: &[String]) -> String {
    let plain = |name: &str| {
        let odd = |found: char| matches!(found, ',' | '"' | '`');
        !name.is_empty() && name.trim() == name && !name.contains(odd)
    };
    let quoted = |name: &String| {
        if plain(name) { name.clone() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_quotes_get_them_and_come_back() {
        let names = ["a", " b ", "c\u{a0}", "d,e", "\"", "`f`", "g h", "'"].map(str::to_owned);
        let text = bucket_key_text(&names);
        assert_eq!(text, "a,\" b \",\"c\u{a0}\",\"d,e\",\"\"\"\",\"`f`\",g h,'");
        assert_eq!(bucket_key(&text), Ok(names.to_vec()));
    }
}
