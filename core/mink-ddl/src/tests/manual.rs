//! The examples of docs/sql.md: what it shows is accepted.
//!
//! Lives on: anywhere (pure); the page is compiled in.
use crate::{parse, split};

const PAGE: &str = include_str!("../../../../docs/sql.md");

/// The script under a heading.
fn script(heading: &str) -> &'static str {
    let (_, section) = PAGE.split_once(heading).expect("the heading");
    let (_, script) = section.split_once("```sql\n").expect("a script");
    script.split_once("```").expect("its end").0
}

#[test]
fn the_examples_are_accepted() {
    for (heading, statements) in [("Nested columns are reached", 1), ("## Example", 3)] {
        let mut count = 0;
        for part in split(script(heading)) {
            let part = part.expect("a script");
            parse(part.text, None).unwrap_or_else(|error| panic!("{}", error.within(&part)));
            count += 1;
        }
        assert_eq!(count, statements, "{heading}");
    }
}

#[test]
fn the_error_is_shown_as_it_comes() {
    let error = parse("CREATE TABLE d.t (\n  amount DECIMALS(12, 2),", None).expect_err("no type");
    let shown = error.to_string();
    let (head, _) = shown.split_once("INT,").expect("the types");
    assert!(PAGE.contains(head), "{shown}");
    assert!(
        PAGE.contains("\n  amount DECIMALS(12, 2),\n         ^\n")
            && shown.ends_with("\n  amount DECIMALS(12, 2),\n         ^"),
        "{shown}"
    );
}
