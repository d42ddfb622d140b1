//! What an error says, and where.
//!
//! Lives on: anywhere (pure).
use super::refused;
use crate::TEXT_BYTES_MAX;

#[test]
fn an_error_has_line_and_column_in_characters_and_a_caret_below_them() {
    let error = refused("CREATE TABLE d.t (\n  \"größe\" INTT,\n  b INT)");
    assert_eq!((error.line, error.column), (2, 11));
    let shown = error.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("line 2, column 11: found \"INTT\"; accepted: a type"), "{shown}");
    assert_eq!(lines[1..], ["  \"größe\" INTT,", "          ^"]);
}

#[test]
fn an_error_at_the_end_points_behind_the_text() {
    let shown = refused("DROP TABLE ").to_string();
    assert!(shown.ends_with("\nDROP TABLE \n           ^"), "{shown}");
}

#[test]
fn an_excerpt_of_a_long_line_is_cut_on_both_sides() {
    let blanks = " ".repeat(300);
    for text in [
        format!("SHOW {blanks}VIEWS{blanks}"),
        format!("SHOW /*{}*/ VIEWS {}", "\u{1}".repeat(300), "\u{202e}".repeat(300)),
        format!("SHOW /*{}*/ {}", "ä".repeat(300), "VIEWS".repeat(300)),
        format!("SHOW {}", "v".repeat(300)),
        format!("{}!", " ".repeat(36)),
        format!("{}!{}", " ".repeat(37), "x".repeat(40)),
    ] {
        let shown = refused(&text).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let [_, excerpt, caret] = lines[..] else { panic!("three lines: {shown}") };
        assert!(excerpt.chars().count() <= 80, "{shown}");
        assert!(!excerpt.chars().any(|found| found.is_control() || found == '\u{202e}'), "{shown}");
        let under = excerpt.chars().nth(caret.chars().count() - 1).expect("the caret stands below the line");
        assert!("Vv!".contains(under), "{shown}");
    }
}

#[test]
fn what_is_not_closed_is_shown_where_it_begins() {
    for (text, column, closing) in [
        ("DROP TABLE \"a.b", 12, "closing \""),
        ("DROP TABLE a.`b", 14, "closing `"),
        ("CREATE TABLE d.t (c STRING DEFAULT 'x)", 36, "closing '"),
        ("CREATE TABLE d.t (c STRING DEFAULT 'x'')", 36, "closing '"),
        ("CREATE TABLE d.t (c BYTES DEFAULT X'00)", 35, "closing '"),
        ("DROP TABLE a.b /* gone", 16, "closing */"),
        ("/* a /* b */ DROP TABLE a.b", 1, "closing */"),
    ] {
        let error = refused(text);
        assert!(error.message.contains(closing), "{error}");
        assert_eq!(error.column, column, "{error}");
    }
}

#[test]
fn a_message_shows_little_of_a_long_text_and_no_control_characters() {
    let text = format!("CREATE TABLE d.t (\"{}\u{1b}[31m\" INT)", "x".repeat(100_000));
    let error = refused(&text);
    assert!(error.message.len() < 200, "{error}");
    let error = refused("CREATE TABLE d.t (\"\u{1b}[31m\" INT)");
    assert!(error.message.starts_with("\"\\u{1b}[31m\" is no name"), "{error}");
}

#[test]
fn a_text_beyond_the_bound_is_refused_unread() {
    let text = " ".repeat(TEXT_BYTES_MAX - "SHOW TABLES".len()) + "SHOW TABLES";
    super::parsed(&text);
    let error = refused(&(text + " "));
    assert_eq!(error.message, "a statement of 1048577 bytes; accepted: at most 1048576");
    assert_eq!((error.line, error.column), (1, 1));
}
