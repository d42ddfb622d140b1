//! Texts that want a parser's stack, memory or time.
//!
//! Lives on: anywhere (pure).
use super::generated::statement;
use super::{parsed, refused};
use crate::{ACTIONS_MAX, LIST_MAX, ParseError, Statement, TEXT_BYTES_MAX, parse, split};
use mink_types::DatabaseName;
use mink_types::schema::{SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX};
use proptest::prelude::*;

/// A type so deep, the column's own at 1.
fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("CREATE TABLE d.t (c {}INT{})", open.repeat(depth - 1), close.repeat(depth - 1))
}

/// Refused: with a place in the text, and a message that stays short.
fn sound(text: &str, error: &ParseError) {
    assert!(
        usize::try_from(error.line).is_ok_and(|line| line >= 1 && line <= text.matches('\n').count() + 1)
    );
    assert!(error.column >= 1);
    assert!(error.message.len() < 1_200 && !error.message.chars().any(char::is_control), "{error}");
    let shown = error.to_string();
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 81), "{shown}");
}

#[test]
fn i19_nesting_is_bounded_however_deep_a_text_goes() {
    for (open, close) in
        [("ARRAY<", ">"), ("ROW<a ", ">"), ("ROW(a ", ")"), ("MAP<INT, ", ">"), ("MAP<", ", INT>")]
    {
        parsed(&nested(SCHEMA_DEPTH_MAX, open, close));
        for depth in [SCHEMA_DEPTH_MAX + 1, 100_000] {
            let error = refused(&nested(depth, open, close));
            assert!(error.message.contains("at most 32 deep"), "{error}");
        }
    }
    let path = |names: usize| format!("ALTER TABLE d.t DROP a{}", ".a".repeat(names - 1));
    parsed(&path(SCHEMA_DEPTH_MAX));
    assert!(refused(&path(SCHEMA_DEPTH_MAX + 1)).message.contains("at most 32 names"));
    parsed(&format!("{}{}SHOW TABLES", "/*".repeat(100_000), "*/".repeat(100_000)));
    let error = refused(&format!("SHOW {}", "(".repeat(500_000)));
    assert!(error.message.contains("DATABASES"), "{error}");
}

/// A list: what stands before it, an item, what stands behind it, how many are accepted, and what the refusal says.
type List<'a> = (&'a str, &'a dyn Fn(usize) -> String, &'a str, usize, &'a str);

#[test]
fn i19_every_list_is_bounded() {
    let repeated =
        |item: &dyn Fn(usize) -> String, count: usize| (0..count).map(item).collect::<Vec<_>>().join(",");
    let cases: [List<'_>; 8] = [
        ("CREATE TABLE d.t (", &|n| format!("c{n} INT"), ")", SCHEMA_FIELDS_MAX, "4096 columns"),
        ("CREATE TABLE d.t (c ROW<", &|n| format!("c{n} INT"), ">)", SCHEMA_FIELDS_MAX - 1, "4096 columns"),
        ("CREATE TABLE d.t (c INT) PARTITIONED BY (", &|n| format!("c{n}"), ")", 32, "at most 32"),
        ("CREATE TABLE d.t (c INT) WITH (", &|n| format!("'{n}'=''"), ")", LIST_MAX, "at most 1024"),
        ("ALTER TABLE d.t ", &|n| format!("DROP c{n}"), "", ACTIONS_MAX, "at most 1024"),
        ("ALTER TABLE d.t ADD (", &|n| format!("c{n} INT"), ")", ACTIONS_MAX, "at most 1024"),
        ("ALTER TABLE d.t RESET (", &|n| format!("'{n}'"), ")", LIST_MAX, "at most 1024"),
        ("ALTER TABLE d.t ADD PARTITION (", &|n| format!("c{n}=1"), ")", 32, "at most 32"),
    ];
    for (before, item, behind, most, piece) in cases {
        parsed(&format!("{before}{}{behind}", repeated(item, most)));
        let error = refused(&format!("{before}{}{behind}", repeated(item, most + 1)));
        assert!(error.message.contains(piece), "{error}");
    }
    let names = repeated(&|n| format!("c{n}"), 33);
    let error = refused(&format!("CREATE TABLE d.t (c INT) WITH ('bucket.key' = '{names}')"));
    assert!(error.message.contains("at most 32 columns"), "{error}");
}

/// A time that grows with the square of a text would be minutes here.
#[test]
fn i19_the_longest_texts_take_a_moment() {
    let fill = |piece: &str| piece.repeat(TEXT_BYTES_MAX / piece.len());
    let halves = |open: &str, close: &str| {
        let count = TEXT_BYTES_MAX / (open.len() + close.len());
        open.repeat(count) + &close.repeat(count)
    };
    let texts = [
        fill("("),
        fill("'"),
        fill("\""),
        fill("/*"),
        fill("*/"),
        fill("-"),
        fill("--\n"),
        fill("\n"),
        fill("x"),
        fill("9"),
        fill("''"),
        fill(";"),
        fill("a;"),
        fill("1."),
        fill("1e"),
        fill("ä"),
        fill("/**/"),
        halves("/*", "*/ "),
        halves("/* ", "*/"),
        "CREATE TABLE d.t (c STRING DEFAULT ".to_owned() + &"''".repeat(500_000) + ")",
        "CREATE TABLE d.t (c DOUBLE DEFAULT ".to_owned() + &"9".repeat(1_000_000) + ")",
        "CREATE TABLE d.t (c INT COMMENT '".to_owned() + &"x".repeat(1_000_000) + "')",
        "ALTER TABLE d.t ADD PARTITION (c = '".to_owned() + &"''".repeat(500_000) + "')",
        "DROP TABLE d.\"".to_owned() + &"\"\"".repeat(500_000) + "\"",
    ];
    for text in texts {
        if let Err(error) = parse(&text, None) {
            sound(&text, &error);
        }
        for part in split(&text) {
            let Ok(part) = part else { break };
            assert!(!part.text.is_empty());
        }
    }
}

#[test]
fn a_text_that_is_not_sql_is_refused_with_a_place_in_it() {
    for text in [
        "\0",
        "\u{feff}",
        "💥",
        "CREATE\u{0}TABLE",
        "SHOW TABLES\u{0}",
        "DROP TABLE a.b\u{202e}",
        "\u{2028}x",
        "$$",
        "\\",
        "CREATE TABLE d.t (a INT))",
    ] {
        sound(text, &refused(text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn i19_any_text_is_answered(text in any::<String>()) {
        let default = DatabaseName::new("d").ok();
        if let Err(error) = parse(&text, default.as_ref()) {
            sound(&text, &error);
        }
        prop_assert!(split(&text).count() <= text.len());
    }

    #[test]
    fn i19_words_of_sql_in_any_order_are_answered(
        words in proptest::collection::vec(prop::sample::select(vec![
            "CREATE", "TABLE", "ALTER", "DROP", "ADD", "COLUMN", "IF", "NOT", "EXISTS", "NULL", "DEFAULT", "d.t", "a", "INT", "ROW", "<", ">",
            "(", ")", ",", ".", "'", "''", "'x'", "\"", "X'0", "5", "-", "PRIMARY", "KEY", "PARTITION", "=", "WITH", "SET", "TYPE", ";", "--", "/*", "\n",
        ]), 0..40),
        glue in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(glue);
        if let Err(error) = parse(&text, None) {
            sound(&text, &error);
        }
    }

    /// What is taken at all is taken again in its own words.
    #[test]
    fn i19_a_statement_with_a_fault_is_refused_or_means_something(
        statement in statement(),
        at in any::<prop::sample::Index>(),
        put in prop_oneof![Just(String::new()), any::<char>().prop_map(String::from), "[-'\"`;,.()<>/* A-Z0-9]{1,3}"],
        gone in 0..3_usize,
    ) {
        let mut characters: Vec<char> = statement.to_string().chars().collect();
        let at = at.index(characters.len());
        let end = (at + gone).min(characters.len());
        characters.splice(at..end, put.chars());
        let text: String = characters.into_iter().collect();
        match parse(&text, None) {
            Ok(found) => prop_assert_eq!(parse(&found.to_string(), None), Ok(found)),
            Err(error) => sound(&text, &error),
        }
    }
}

#[test]
fn a_statement_is_small_beside_what_it_names() {
    // It is moved about by value.
    assert!(size_of::<Statement>() <= 256, "{}", size_of::<Statement>());
}
