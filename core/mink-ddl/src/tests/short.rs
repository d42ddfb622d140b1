//! The short statements, names and addresses.
//!
//! Lives on: anywhere (pure).
use super::{all_refused, database, parsed, path};
use crate::{Statement, parse};
use mink_types::{TableName, TablePath};

#[test]
fn each_short_statement_is_read_in_any_case() {
    let cases = [
        (
            "CREATE DATABASE sales",
            Statement::CreateDatabase { name: database("sales"), if_not_exists: false },
        ),
        (
            "create database if not exists sales;",
            Statement::CreateDatabase { name: database("sales"), if_not_exists: true },
        ),
        ("DROP DATABASE sales", Statement::DropDatabase { name: database("sales"), if_exists: false }),
        (
            "Drop Database If Exists sales ;",
            Statement::DropDatabase { name: database("sales"), if_exists: true },
        ),
        ("DROP TABLE a.b", Statement::DropTable { path: path("a.b"), if_exists: false, purge: false }),
        (
            "DROP TABLE IF EXISTS a.b PURGE",
            Statement::DropTable { path: path("a.b"), if_exists: true, purge: true },
        ),
        ("SHOW DATABASES", Statement::ShowDatabases),
        ("SHOW TABLES", Statement::ShowTables { database: None }),
        ("SHOW TABLES FROM a", Statement::ShowTables { database: Some(database("a")) }),
        ("show tables in a", Statement::ShowTables { database: Some(database("a")) }),
        ("SHOW PARTITIONS a.b", Statement::ShowPartitions { path: path("a.b") }),
        ("SHOW CREATE TABLE a.b", Statement::ShowCreateTable { path: path("a.b") }),
        ("DESCRIBE a.b", Statement::Describe { path: path("a.b") }),
        ("desc table a.b", Statement::Describe { path: path("a.b") }),
        ("USE sales", Statement::Use { name: database("sales") }),
        ("use \"my-db\";", Statement::Use { name: database("my-db") }),
    ];
    for (text, statement) in cases {
        assert_eq!(parsed(text), statement, "{text}");
    }
}

#[test]
fn names_keep_their_case_and_quotes_allow_what_a_name_may_hold() {
    let cases = [
        ("DROP TABLE Sales.Orders", "Sales.Orders"),
        ("DROP TABLE \"my-db\".`my-table`", "my-db.my-table"),
        ("DROP TABLE kafka.\"a.b.c\"", "kafka.a.b.c"),
        ("DROP TABLE \"1\".\"2\"", "1.2"),
        ("DROP TABLE \"table\".table", "table.table"),
        ("DROP TABLE a . b", "a.b"),
        ("DROP TABLE __mink.x", "__mink.x"),
    ];
    for (text, address) in cases {
        let (database, table) = address.split_once('.').expect("two parts");
        let expected =
            TablePath { database: super::database(database), table: TableName::new(table).expect("a name") };
        assert_eq!(
            parsed(text),
            Statement::DropTable { path: expected, if_exists: false, purge: false },
            "{text}"
        );
    }
}

#[test]
fn a_table_without_a_database_is_of_the_default_one_or_refused_with_the_remedy() {
    let sales = database("sales");
    let found = parse("DESCRIBE \"a.b\"", Some(&sales)).expect("the default database");
    assert_eq!(found, Statement::Describe { path: path("sales.a.b") });
    let found = parse("DESCRIBE other.b", Some(&sales)).expect("a database is given");
    assert_eq!(found, Statement::Describe { path: path("other.b") });
    all_refused(&[
        ("DESCRIBE orders", 10, "write DATABASE.TABLE"),
        ("DESCRIBE \"a.b\"", 10, "write DATABASE.TABLE"),
    ]);
}

#[test]
fn nasty_names_are_refused_where_they_stand() {
    let long = "x".repeat(250);
    let cases = [
        ("DROP TABLE a.\"\"".to_owned(), 14, "empty"),
        ("DROP TABLE a.\"b;c\"".to_owned(), 14, "';'"),
        ("DROP TABLE a.\"b\"\"c\"".to_owned(), 14, "'\"'"),
        ("DROP TABLE a.`b'c`".to_owned(), 14, "'\\''"),
        ("DROP TABLE a.\"b\0c\"".to_owned(), 14, "'\\0'"),
        ("DROP TABLE a.\"\u{202e}c\"".to_owned(), 14, "\\u{202e}"),
        ("DROP TABLE a.ä".to_owned(), 14, "accepted are letters"),
        ("DROP TABLE a.\"..\"".to_owned(), 14, "reserved"),
        (format!("DROP TABLE a.{long}"), 14, "250 bytes"),
        ("DROP TABLE \"a.b\".c".to_owned(), 12, "'.'"),
        ("DROP TABLE mink.c".to_owned(), 12, "reserved"),
        ("CREATE DATABASE information_schema".to_owned(), 17, "reserved"),
        ("CREATE DATABASE a.b".to_owned(), 18, "end of the statement"),
        ("DROP TABLE a.b.c".to_owned(), 15, "double quotes: kafka.\"a.b\""),
        ("DROP TABLE a.my-table".to_owned(), 14, "double quotes"),
        ("CREATE DATABASE my-db".to_owned(), 17, "double quotes"),
        ("DROP TABLE 1a.b".to_owned(), 12, "a table: DATABASE.TABLE"),
        ("DROP TABLE 'a'.b".to_owned(), 12, "a table: DATABASE.TABLE"),
        ("DROP TABLE table.b".to_owned(), 12, "double quotes only"),
    ];
    for (text, column, piece) in &cases {
        all_refused(&[(text.as_str(), *column, *piece)]);
    }
}

#[test]
fn what_is_no_statement_is_told_what_one_is() {
    all_refused(&[
        ("", 1, "the text ends here; accepted: CREATE, DROP or ALTER"),
        (";", 1, "CREATE, DROP or ALTER"),
        ("SELECT 1", 1, "found \"SELECT\"; accepted: CREATE"),
        ("INSERT INTO t", 1, "written by `mink write`"),
        ("USE", 4, "the name of a database"),
        ("USE sales.orders", 10, "the end of the statement"),
        ("-- nothing", 11, "the text ends here"),
        ("CREATE", 7, "DATABASE or TABLE"),
        ("CREATE VIEW v", 8, "DATABASE or TABLE"),
        ("DROP VIEW v", 6, "DATABASE or TABLE"),
        ("ALTER DATABASE v", 7, "TABLE"),
        ("SHOW VIEWS", 6, "DATABASES, TABLES"),
        ("SHOW CREATE DATABASE a", 13, "TABLE"),
        ("SHOW TABLES a", 13, "FROM"),
        ("DROP TABLE IF a.b", 15, "EXISTS"),
        ("CREATE DATABASE IF EXISTS a", 20, "NOT"),
        ("DROP TABLE a.b CASCADE", 16, "PURGE"),
        ("DROP TABLE a.b PURGE PURGE", 22, "the end of the statement"),
        ("SHOW DATABASES; SHOW DATABASES", 17, "one statement at a time"),
        ("SHOW DATABASES;;", 16, "one statement at a time"),
    ]);
}

#[test]
fn comments_and_blanks_stand_anywhere_between_words() {
    let text =
        "\u{feff}-- a table\nDROP/* in /* every */ way */TABLE\u{a0}a /**/ . -- its database\r\n b;-- gone";
    assert_eq!(parsed(text), Statement::DropTable { path: path("a.b"), if_exists: false, purge: false });
}
