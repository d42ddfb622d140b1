//! The command line against a node: SQL, databases, tables, partitions; addresses of every form, and what is said of wrong ones.

mod shell;

use std::process::Stdio;

use mink_testkit::node::{self, Node};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::setup::{self, Folder};
use crate::wire::SOON;

/// What a command came to.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    /// The results of a command that succeeded.
    #[track_caller]
    fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self.out
    }

    /// The complaint of a command that failed with this code, with all of these words in it.
    #[track_caller]
    fn refused(self, code: i32, words: &[&str]) {
        println!("{}", self.err);
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

/// Runs `mink WORDS` with this on stdin.
async fn with_input(words: &[&str], input: &str) -> Said {
    let mut command = Command::new(node::binary("mink").unwrap());
    command.args(words).env_remove("MINK_ADDR").env_remove("MINK_KAFKA").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let ended = tokio::time::timeout(SOON, child.wait_with_output()).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: ended.status.code(), out: text(ended.stdout), err: text(ended.stderr) }
}

async fn mink(words: &[&str]) -> Said {
    with_input(words, "").await
}

/// `mink sql -e TEXT` as JSON, a value per line.
async fn rows(node: &Node, text: &str) -> Vec<Value> {
    let said = mink(&["sql", "-e", text, "--addr", node.flight(), "--output", "json"]).await;
    said.done().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn start(folder: &Folder) -> Node {
    setup::node(folder).storage("memory://").start().await.unwrap()
}

const ORDERS: &str =
    "CREATE TABLE sales.orders (id BIGINT NOT NULL, customer STRING, dt DATE NOT NULL) PARTITIONED BY (dt)";

#[tokio::test]
async fn sql_comes_from_the_command_line_a_file_or_stdin() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let addr = node.flight().to_owned();
    let created = mink(&["sql", "--addr", &addr, "-e", "CREATE DATABASE sales; CREATE DATABASE stock"]).await;
    assert_eq!(created.done(), "created database sales\ncreated database stock\n");
    let file = folder.join("schema.sql");
    std::fs::write(&file, format!("-- a semicolon; in a comment\n{ORDERS};\n\nDESCRIBE sales.orders;\n"))
        .unwrap();
    let out = mink(&["sql", "--addr", &addr, "-f", file.to_str().unwrap(), "--output", "csv"]).await.done();
    // The columns of a row keep the node's order.
    assert_eq!(
        out.lines().nth(2),
        Some("column,type,nullable,default,comment,partition,bucket_key,id"),
        "{out}"
    );
    assert!(out.contains("\ndt,DATE,false,,,true,false,"), "{out}");
    let piped = with_input(&["sql", "--addr", &addr], "SHOW TABLES FROM sales;\n").await.done();
    assert!(piped.contains("orders") && piped.contains("arrow"), "{piped}");
    let dashed = with_input(&["sql", "--addr", &addr, "-f", "-"], "DROP DATABASE stock").await.done();
    assert_eq!(dashed, "dropped database stock\n");
    let shown = rows(&node, "SHOW TABLES FROM sales; SHOW DATABASES").await;
    assert_eq!(shown[0], json!({ "database": "sales", "table": "orders", "format": "arrow", "buckets": 1 }));
    assert!(
        shown.contains(&json!({ "database": "sales" })) && !shown.contains(&json!({ "database": "stock" }))
    );
    let stream = mink(&["sql", "--addr", &addr, "-e", "SHOW DATABASES", "--output", "arrow"]).await.done();
    assert!(stream.contains("database") && stream.contains("sales"), "an Arrow stream of the rows");
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn a_script_ends_at_the_statement_that_fails_and_says_where_and_what_was_done() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let addr = node.flight().to_owned();
    let script = "CREATE DATABASE a;\nCREATE TABLE a.b (\n  c DECIMALS(1)\n);\nCREATE DATABASE never;\n";
    let file = folder.join("bad.sql");
    std::fs::write(&file, script).unwrap();
    let file = file.to_str().unwrap();
    let refused = mink(&["sql", "--addr", &addr, "-f", file]).await;
    refused.refused(
        1,
        &[
            "bad.sql, line 3, column 5: found \"DECIMALS\"",
            "\n  c DECIMALS(1)\n    ^\n",
            "statement before it was carried out",
        ],
    );
    // What is no fault of the text names its place and shows the statement.
    let refused = mink(&["sql", "--addr", &addr, "-e", "SHOW DATABASES; DROP TABLE a.absent"]).await;
    refused.refused(1, &["line 1, column 17: ", "a.absent", "does not exist", "\n  DROP TABLE a.absent\n"]);
    // A quote that is not closed might hide anything: nothing is done.
    let refused = mink(&["sql", "--addr", &addr, "-e", "CREATE DATABASE never; DROP TABLE \"a.b"]).await;
    refused.refused(1, &["column 35", "no closing \"", "Nothing was done."]);
    mink(&["sql", "--addr", &addr, "-e", " -- nothing"]).await.refused(2, &["no statement"]);
    mink(&["sql", "--addr", &addr, "-f", "/nowhere/at.sql"]).await.refused(1, &["/nowhere/at.sql"]);
    assert!(!rows(&node, "SHOW DATABASES").await.contains(&json!({ "database": "never" })));
    node.stop(SOON).await.unwrap();
}

/// The verbs of databases and tables, over Flight or over `/api/v1` as the address says.
async fn verbs(addr: &str, database: &str) {
    let topic = format!("kafka.{database}");
    mink(&["db", "create", database, "--addr", addr]).await.done();
    mink(&["db", "create", database, "--addr", addr]).await.refused(1, &[database, "exists already"]);
    let listed = mink(&["db", "list", "--addr", addr, "--output", "csv"]).await.done();
    assert!(listed.starts_with("database\n") && listed.lines().any(|line| line == database), "{listed}");
    mink(&["table", "create", &topic, "--partitions", "4", "--option", "table.log.ttl=-1", "--addr", addr])
        .await
        .done();
    let listed = mink(&["table", "list", "--addr", addr, "--output", "csv"]).await.done();
    assert!(listed.contains(&format!("{topic},log,kafka,4,0\n")), "{listed}");
    let described = mink(&["table", "describe", &topic, "--addr", addr, "--output", "json"]).await.done();
    let described: Value = serde_json::from_str(&described).unwrap();
    assert_eq!((&described["table"], described["buckets"].as_array().unwrap().len()), (&json!(topic), 4));
    assert!(
        described["options"].as_array().unwrap().contains(&json!(["table.log.ttl", "-1"])),
        "{described}"
    );
    mink(&["table", "drop", &topic, "--addr", addr]).await.done();
    mink(&["table", "drop", &topic, "--addr", addr]).await.refused(1, &[&topic, "does not exist"]);
    mink(&["db", "drop", database, "--addr", addr]).await.done();
    mink(&["db", "drop", database, "--addr", addr]).await.refused(1, &[database, "does not exist"]);
    mink(&["db", "create", "no such name", "--addr", addr]).await.refused(2, &["no such name"]);
}

#[tokio::test]
async fn databases_and_topics_are_made_listed_described_and_dropped_by_every_form_of_address() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    verbs(node.flight(), "one").await;
    verbs(&format!("grpc://{}", node.flight()), "two").await;
    verbs(&format!("http://{}/", node.http()), "three").await;
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn a_table_with_columns_is_made_altered_and_described_by_sql() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let addr = node.flight().to_owned();
    mink(&["db", "create", "sales", "--addr", &addr]).await.done();
    let file = folder.join("orders.sql");
    std::fs::write(&file, ORDERS).unwrap();
    mink(&["table", "create", "--file", file.to_str().unwrap(), "--addr", &addr]).await.done();
    let other = "CREATE TABLE sales.items (id BIGINT, name STRING) WITH ('bucket.num' = '2')";
    let created = mink(&["table", "create", other, "--addr", &addr]).await;
    assert_eq!((created.code, created.err.as_str()), (Some(0), "created table sales.items\n"));
    mink(&[
        "table",
        "alter",
        "sales.items",
        "ADD COLUMN note STRING, SET ('table.log.ttl' = '3600000')",
        "--addr",
        &addr,
    ])
    .await
    .done();
    mink(&["table", "alter", "ALTER TABLE sales.items DROP COLUMN name", "--addr", &addr]).await.done();
    let described =
        mink(&["table", "describe", "sales.items", "--addr", &addr, "--output", "json"]).await.done();
    let described: Value = serde_json::from_str(&described).unwrap();
    let columns: Vec<&Value> =
        described["columns"].as_array().unwrap().iter().map(|column| &column["column"]).collect();
    assert_eq!(columns, ["id", "note"]);
    assert_eq!((&described["schema"], described["buckets"].as_array().unwrap().len()), (&json!(3), 2));
    let people = mink(&["table", "describe", "sales.orders", "--addr", &addr]).await.done();
    for word in ["table sales.orders, schema 1", "partitioned by dt", "BIGINT", "log_start"] {
        assert!(people.contains(word), "{word} is not in: {people}");
    }
    // Found by way of the HTTP listener, Flight tells the columns all the same.
    let http = format!("http://{}", node.http());
    let people = mink(&["table", "describe", "sales.items", "--addr", &http]).await.done();
    assert!(people.contains("BIGINT"), "{people}");
    // A topic's options are altered in the same way.
    mink(&["table", "create", "kafka.events", "--addr", &addr]).await.done();
    mink(&[
        "table",
        "alter",
        "kafka.events",
        "SET ('table.log.ttl' = '3600000', 'bucket.num' = '3')",
        "--addr",
        &addr,
    ])
    .await
    .done();
    let listed = mink(&["table", "list", "--addr", &addr, "--output", "csv"]).await.done();
    assert!(listed.contains("kafka.events,log,kafka,3,"), "{listed}");
    mink(&["table", "alter", "kafka.events", "ADD COLUMN c INT", "--addr", &addr])
        .await
        .refused(1, &["kafka format"]);
    mink(&["table", "create", "DROP TABLE sales.items", "--addr", &addr])
        .await
        .refused(2, &["CREATE TABLE is accepted"]);
    mink(&["table", "alter", "sales.items", "--addr", &addr]).await.refused(2, &["ADD COLUMN"]);
    mink(&["table", "drop", "sales.items", "--addr", &addr]).await.done();
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn partitions_are_made_listed_and_dropped() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let addr = node.flight().to_owned();
    rows(&node, &format!("CREATE DATABASE sales; {ORDERS}; CREATE TABLE sales.flat (id BIGINT)")).await;
    let partition = async |words: &[&str]| {
        let words: Vec<&str> = ["partition"].iter().chain(words).copied().chain(["--addr", &addr]).collect();
        mink(&words).await
    };
    let empty = partition(&["list", "sales.orders", "--output", "csv"]).await.done();
    assert_eq!(empty, "partition,dt\n");
    partition(&["create", "sales.orders", "dt=2026-01-31"]).await.done();
    partition(&["create", "sales.orders", "dt=2026-02-01"]).await.done();
    partition(&["create", "sales.orders", "dt=2026-01-31"]).await.refused(1, &["has this partition already"]);
    let again = partition(&["create", "sales.orders", "dt=2026-01-31", "--if-not-exists"]).await;
    assert!(again.code == Some(0) && again.err.contains("unchanged"), "{}", again.err);
    let listed = partition(&["list", "sales.orders", "--output", "csv"]).await.done();
    let days: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(days, ["2026-01-31", "2026-02-01"]);
    let described =
        mink(&["table", "describe", "sales.orders", "--addr", &addr, "--output", "json"]).await.done();
    let described: Value = serde_json::from_str(&described).unwrap();
    let buckets = described["buckets"].as_array().unwrap();
    assert!(buckets.len() == 2 && buckets[0]["partition"] != buckets[1]["partition"], "{described}");
    partition(&["drop", "sales.orders", "dt=2026-01-31"]).await.done();
    partition(&["drop", "sales.orders", "dt=2026-01-31"]).await.refused(1, &["no such partition"]);
    partition(&["drop", "sales.orders", "dt=2026-01-31", "--if-exists"]).await.done();
    partition(&["create", "sales.orders", "dt=soon"]).await.refused(1, &["dt", "DATE"]);
    partition(&["create", "sales.orders", "day=2026-01-31"])
        .await
        .refused(1, &["its partition columns are dt"]);
    partition(&["create", "sales.orders", "dt"]).await.refused(2, &["COLUMN=VALUE"]);
    partition(&["list", "sales.flat"]).await.refused(1, &["is not partitioned"]);
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn from_one_listener_the_others_are_found() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let line = "{\"value\":\"a\"}\n";
    for (number, addr) in [node.flight().to_owned(), format!("http://{}", node.http())].iter().enumerate() {
        with_input(&["write", "kafka.found", "--addr", addr], line).await.done();
        let read = mink(&["read", "kafka.found", "--addr", addr]).await.done();
        assert_eq!(read.lines().count(), number + 1, "{read}");
        mink(&["group", "list", "--addr", addr]).await.done();
        let status = mink(&["metadata", "status", "--addr", addr, "--output", "json"]).await.done();
        assert!(status.contains("\"cluster\":\"mink\""), "{status}");
        let doctor = mink(&["doctor", "--addr", addr, "--output", "csv"]).await.done();
        for check in
            ["node,ok", "http listener,ok", "flight listener,ok", "kafka listener,ok", "write and read,ok"]
        {
            assert!(doctor.contains(check), "{check} is not in: {doctor}");
        }
        let bench =
            ["bench", "produce", "kafka.found", "--records", "10", "--addr", addr, "--output", "json"];
        let result: Value = serde_json::from_str(&mink(&bench).await.done()).unwrap();
        assert_eq!((&result["records"], &result["settings"]["kafka"]), (&json!(10), &json!(node.kafka())));
        assert!(result["store_requests"].is_object(), "{result}");
        mink(&["table", "drop", "kafka.found", "--addr", addr]).await.done();
        with_input(&["write", "kafka.found", "--kafka", node.kafka()], line).await.done();
    }
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn a_wrong_port_is_told_by_what_answers_there() {
    let folder = Folder::new();
    // The node says that somebody spoke another protocol to it.
    let config = setup::node(&folder).storage("memory://").allow_line("kafka connection closed");
    let mut node = config.start().await.unwrap();
    let (kafka, flight, http) = (node.kafka(), node.flight(), node.http());
    let remedy = |flag: &str, address: &str| format!("write {flag}{address}");
    let list = ["db", "list", "--addr"];
    for (words, address, said) in [
        (&list[..], http.to_owned(), ["HTTP listener".to_owned(), remedy("--addr http://", http)]),
        (&list, kafka.to_owned(), ["Kafka listener".to_owned(), remedy("--kafka ", kafka)]),
        (&list, format!("http://{flight}"), ["Flight listener".to_owned(), remedy("--addr ", flight)]),
        (&list, format!("http://{kafka}"), ["Kafka listener".to_owned(), remedy("--kafka ", kafka)]),
        (
            &["group", "list", "--kafka"],
            flight.to_owned(),
            ["Flight listener".to_owned(), remedy("--addr ", flight)],
        ),
        (
            &["group", "list", "--kafka"],
            http.to_owned(),
            ["HTTP listener".to_owned(), remedy("--addr http://", http)],
        ),
    ] {
        let all: Vec<&str> = words.iter().copied().chain([address.as_str()]).collect();
        mink(&all).await.refused(1, &[&said[0], &said[1]]);
    }
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn nobody_there_and_a_listener_that_is_off_are_told_with_what_to_do() {
    let folder = Folder::new();
    let config = setup::node(&folder).storage("memory://").flag("--kafka-listen", "none");
    let mut node = config.flag("--http-listen", "none").start().await.unwrap();
    let addr = node.flight().to_owned();
    mink(&["group", "list", "--addr", &addr])
        .await
        .refused(1, &[&addr, "no Kafka listener", "--kafka-listen"]);
    mink(&["metadata", "status", "--addr", &addr]).await.refused(1, &["no HTTP listener", "--http-listen"]);
    // What SQL says needs no other listener; records and buckets are told as not shown.
    rows(&node, "CREATE DATABASE sales; CREATE TABLE sales.flat (id BIGINT)").await;
    let listed = mink(&["table", "list", "--addr", &addr, "--output", "csv"]).await;
    assert!(listed.err.contains("records are not shown"), "{}", listed.err);
    assert!(listed.done().contains("sales.flat,log,arrow,1,\n"));
    let described = mink(&["table", "describe", "sales.flat", "--addr", &addr]).await;
    assert!(described.err.contains("buckets are not shown"), "{}", described.err);
    assert!(described.done().contains("BIGINT"));
    node.stop(SOON).await.unwrap();
    for (words, said) in [
        (["db", "list", "--addr", &addr], "Flight listener"),
        (["db", "list", "--addr", &format!("http://{addr}")], "HTTP listener"),
        (["group", "list", "--kafka", &addr], "Kafka listener"),
    ] {
        mink(&words).await.refused(1, &[said, &addr, "`mink serve` starts one"]);
    }
    mink(&["db", "list", "--addr", "https://box:1"]).await.refused(2, &["without TLS", "HOST:PORT"]);
    mink(&["db", "list", "--addr", "box"]).await.refused(2, &["HOST:PORT"]);
}
