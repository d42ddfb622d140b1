//! Scripts and their statements.
//!
//! Lives on: anywhere (pure).
use crate::{parse, split};

/// The statements of a script, with their places.
fn parts(script: &str) -> Vec<(&str, u32, u32)> {
    split(script)
        .map(|part| part.expect("a script"))
        .map(|part| (part.text, part.line, part.column))
        .collect()
}

#[test]
fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
    let script = "-- first; not here\n  A 'x;''y' ;; B \"a;b\" /* ; /* ; */ */ `c;d`;\nINSERT INTO t VALUES ($1::INT -> 'ä');é\n;\n";
    assert_eq!(
        parts(script),
        [
            ("A 'x;''y'", 2, 3),
            ("B \"a;b\" /* ; /* ; */ */ `c;d`", 2, 16),
            ("INSERT INTO t VALUES ($1::INT -> 'ä')", 3, 1),
            ("é", 3, 39),
        ]
    );
}

#[test]
fn a_script_without_statements_has_none() {
    for script in ["", " ;; \n;", "-- x", "/* x */"] {
        assert_eq!(parts(script), [], "{script:?}");
    }
}

#[test]
fn an_open_quote_ends_the_script_with_an_error_at_its_place() {
    let mut found = split("A;\nB 'x;\nC;");
    assert_eq!(found.next().expect("one").expect("sound").text, "A");
    let error = found.next().expect("two").expect_err("open");
    assert_eq!((error.line, error.column), (2, 3));
    assert_eq!(found.next(), None);
}

#[test]
fn an_error_of_a_statement_is_moved_to_its_place_in_the_script() {
    let script = "SHOW TABLES;\n SHOW TABLES; SHOW\n VIEWS; SHOW VIEWS";
    let places: Vec<(u32, u32)> = split(script)
        .map(|part| part.expect("a script"))
        .filter_map(|part| parse(part.text, None).err().map(|error| error.within(&part)))
        .map(|error| (error.line, error.column))
        .collect();
    assert_eq!(places, [(3, 2), (3, 14)]);
}
