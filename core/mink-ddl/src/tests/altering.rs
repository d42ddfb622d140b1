//! ALTER TABLE, action by action.
//!
//! Lives on: anywhere (pure).
use super::{all_refused, parsed, path};
use crate::{Change, Statement};
use mink_types::schema::{ColumnPlace, DataType, Field, Literal, SchemaChange};

fn changes(actions: &str) -> Vec<Change> {
    match parsed(&format!("ALTER TABLE d.t {actions}")) {
        Statement::AlterTable { path: found, change } => {
            assert_eq!(found, path("d.t"));
            change
        }
        other => panic!("{other}"),
    }
}

fn names(path: &[&str]) -> Vec<String> {
    path.iter().map(ToString::to_string).collect()
}

fn pairs(values: &[(&str, &str)]) -> Vec<(String, String)> {
    values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn each_change_of_a_column_is_read() {
    let c = || names(&["c"]);
    let to_bigint = SchemaChange::ChangeType { path: c(), data_type: DataType::BigInt };
    let cases = [
        ("DROP COLUMN c", SchemaChange::DropColumn { path: c() }),
        ("DROP a.b.element", SchemaChange::DropColumn { path: names(&["a", "b", "element"]) }),
        ("RENAME COLUMN c TO d", SchemaChange::RenameColumn { path: c(), name: "d".into() }),
        (
            "RENAME a.\"x.y\" TO \"z.w\"",
            SchemaChange::RenameColumn { path: names(&["a", "x.y"]), name: "z.w".into() },
        ),
        ("ALTER c TYPE BIGINT", to_bigint.clone()),
        ("ALTER COLUMN c SET DATA TYPE BIGINT", to_bigint),
        ("ALTER c DROP NOT NULL", SchemaChange::DropNotNull { path: c() }),
        ("ALTER c FIRST", SchemaChange::Move { path: c(), place: ColumnPlace::First }),
        ("ALTER c LAST", SchemaChange::Move { path: c(), place: ColumnPlace::Last }),
        (
            "ALTER c AFTER column",
            SchemaChange::Move { path: c(), place: ColumnPlace::After("column".into()) },
        ),
        ("ALTER c COMMENT 'x'", SchemaChange::SetComment { path: c(), comment: Some("x".into()) }),
        ("ALTER c COMMENT NULL", SchemaChange::SetComment { path: c(), comment: None }),
    ];
    for (text, change) in cases {
        assert_eq!(changes(text), [Change::Schema(change)], "{text}");
    }
}

#[test]
fn columns_are_added_alone_in_a_list_and_below_others() {
    let add = |parent: &[&str], column: Field, place: ColumnPlace| {
        Change::Schema(SchemaChange::AddColumn { parent: names(parent), column, place })
    };
    let c = Field::new("c", DataType::Int);
    for text in ["ADD c INT", "ADD COLUMN c INT", "ADD (c INT)", "ADD COLUMN (c INT)"] {
        assert_eq!(changes(text), [add(&[], c.clone(), ColumnPlace::Last)], "{text}");
    }
    let (default, comment) = (Some(Literal::Integer(-5)), Some("five".to_owned()));
    let full = Field { default, comment, ..c.clone() };
    assert_eq!(changes("ADD c INT DEFAULT -5 COMMENT 'five' FIRST"), [add(&[], full, ColumnPlace::First)]);
    let expected = [
        add(&["a", "element"], c.clone(), ColumnPlace::After("d".into())),
        add(&[], Field::new("first", DataType::String), ColumnPlace::Last),
        add(&[], c.not_null(), ColumnPlace::Last),
    ];
    assert_eq!(changes("ADD (a.element.c INT AFTER d, first STRING), ADD c INT NOT NULL"), expected);
}

#[test]
fn options_are_set_and_reset() {
    assert_eq!(changes("SET ('k' = 'v', 'l' = '')"), [Change::SetOptions(pairs(&[("k", "v"), ("l", "")]))]);
    assert_eq!(changes("RESET ('k', 'l')"), [Change::ResetOptions(names(&["k", "l"]))]);
}

#[test]
fn partitions_keep_the_plain_text_of_their_values() {
    let values = pairs(&[
        ("dt", "2026-01-01"),
        ("n", "-5"),
        ("b", "00ff"),
        ("ok", "true"),
        ("s", "it's"),
        ("x", "1.50"),
    ]);
    let written = "(dt = DATE '2026-01-01', n = -5, b = X'00FF', ok = TRUE, s = 'it''s', x = +1.50)";
    let cases = [
        ("ADD PARTITION", Change::AddPartition { values: values.clone(), if_not_exists: false }),
        ("ADD IF NOT EXISTS PARTITION", Change::AddPartition { values: values.clone(), if_not_exists: true }),
        ("DROP PARTITION", Change::DropPartition { values: values.clone(), if_exists: false }),
        ("DROP IF EXISTS PARTITION", Change::DropPartition { values, if_exists: true }),
    ];
    for (text, change) in cases {
        assert_eq!(changes(&format!("{text} {written}")), [change], "{text}");
    }
}

#[test]
fn several_actions_stay_in_their_order() {
    let found = changes(
        "ADD a INT, DROP b, SET ('k' = 'v'), RENAME c TO d, ALTER e FIRST, RESET ('l'), ADD PARTITION (p = 1)",
    );
    let kinds: Vec<bool> = found.iter().map(|change| matches!(change, Change::Schema(_))).collect();
    assert_eq!(kinds, [true, true, false, true, true, false, false]);
}

#[test]
fn actions_that_are_wrong_are_refused_where_they_stand() {
    all_refused(&[
        ("ALTER TABLE d.t", 16, "an action: ADD"),
        ("ALTER TABLE d.t FROB", 17, "an action: ADD"),
        ("ALTER TABLE d.t DROP c,", 24, "an action: ADD"),
        ("ALTER TABLE d.t DROP c DROP d", 24, "',' and one more action"),
        ("ALTER TABLE d.t ADD", 20, "the name of a column"),
        ("ALTER TABLE d.t ADD c", 22, "a type"),
        ("ALTER TABLE d.t ADD c INT PRIMARY KEY", 27, "when it is made"),
        ("ALTER TABLE d.t ADD IF NOT EXISTS c INT", 35, "PARTITION"),
        ("ALTER TABLE d.t DROP IF EXISTS c", 32, "PARTITION"),
        ("ALTER TABLE d.t RENAME TO e", 24, "the name of a column"),
        ("ALTER TABLE d.t RENAME a b", 26, "TO"),
        ("ALTER TABLE d.t ALTER c INT", 25, "TYPE or SET DATA TYPE"),
        ("ALTER TABLE d.t ALTER c SET NOT NULL", 25, "TYPE or SET DATA TYPE"),
        ("ALTER TABLE d.t ALTER c SET DATA INT", 34, "TYPE"),
        ("ALTER TABLE d.t ALTER c DROP DEFAULT", 30, "NOT"),
        ("ALTER TABLE d.t ALTER c AFTER a.b", 32, "',' and one more action"),
        ("ALTER TABLE d.t SET 'k' = 'v'", 21, "'('"),
        ("ALTER TABLE d.t SET ('k' = 'v', 'k' = 'w')", 33, "twice"),
        ("ALTER TABLE d.t RESET ('k', 'k')", 29, "twice"),
        ("ALTER TABLE d.t SET ('bucket.key' = 'a')", 21, "stays as it was"),
        ("ALTER TABLE d.t RESET ('k', 'bucket.key')", 23, "stays as it was"),
        ("ALTER TABLE d.t ADD PARTITION ()", 32, "the name of a column"),
        ("ALTER TABLE d.t ADD PARTITION (a = NULL)", 36, "a partition has no NULL"),
        ("ALTER TABLE d.t ADD PARTITION (a = b)", 36, "a value: a number"),
        ("ALTER TABLE d.t ADD PARTITION (a = 1, a = 2)", 39, "twice"),
        ("ALTER TABLE d.t ADD PARTITION (a > 1)", 34, "'='"),
        ("ALTER TABLE d.t ADD PARTITION (a = X'0')", 36, "two hexadecimal digits"),
        ("ALTER TABLE d.t ADD PARTITION (a = - - 1)", 38, "a number"),
    ]);
}
