//! Files in and out of tables with columns: `mink write` and `mink read` against a node, in every form.

mod altered;
mod ends;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mink_testkit::node::{self, Node};
use mink_testkit::{client, skip};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::setup::{self, Folder, until};
use crate::wire::SOON;

const RUN_WITHIN: Duration = Duration::from_mins(5);

/// Columns of every type, and two rows: one of bounds, one of nulls.
const ALL_TYPES: &str = "b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f FLOAT, d DOUBLE, n DECIMAL(38, 10), c CHAR(3), s STRING, \
    x BINARY(2), y BYTES, da DATE, t TIME(9), ts TIMESTAMP(6), tz TIMESTAMP_LTZ(3), a ARRAY<ARRAY<INT>>, m MAP<STRING, DOUBLE>, \
    mi MAP<INT, STRING>, r ROW<p STRING, q ARRAY<DECIMAL(5, 2)>>";
const ROWS: [&str; 3] = [
    r#"{"b":true,"i1":-128,"i2":32767,"i4":-2147483648,"i8":9223372036854775807,"f":1.5,"d":"NaN","n":1234567890123456789012345678.0123456789,"c":"äöü","s":"a,\"b\"\n","x":"AP8=","y":"","da":"0001-01-01","t":"23:59:59.999999999","ts":"2026-01-31T12:34:56.123456","tz":"1969-12-31T23:59:59.999Z","a":[[1,null],[],null],"m":{"k":0.1,"":null},"mi":[{"key":7,"value":null}],"r":{"p":null,"q":[1.25,null]}}"#,
    r#"{"b":null,"i1":null,"i2":null,"i4":null,"i8":null,"f":null,"d":null,"n":null,"c":null,"s":null,"x":null,"y":null,"da":null,"t":null,"ts":null,"tz":null,"a":null,"m":null,"mi":null,"r":null}"#,
    r#"{"b":false,"i1":0,"i2":0,"i4":0,"i8":0,"f":"-Infinity","d":-0.0,"n":0.0000000000,"c":"","s":"","x":"","y":"","da":"1970-01-01","t":"00:00:00.000000000","ts":"1970-01-01T00:00:00.000000","tz":"1970-01-01T00:00:00.000Z","a":[],"m":{},"mi":[],"r":{"p":"","q":null}}"#,
];

/// What a command came to.
struct Said {
    code: Option<i32>,
    out: Vec<u8>,
    err: String,
}

impl Said {
    #[track_caller]
    fn done(self) -> Vec<u8> {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    #[track_caller]
    fn text(self) -> String {
        String::from_utf8(self.done()).expect("text")
    }

    /// The complaint of a command that failed, with all of these words in it.
    #[track_caller]
    fn refused(self, code: i32, words: &[&str]) {
        println!("{}", self.err);
        assert_eq!(self.code, Some(code), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

/// A node, and the command line that asks it.
struct Mink {
    node: Node,
    folder: Folder,
}

impl Mink {
    async fn start() -> Mink {
        let folder = Folder::new();
        let node = setup::node(&folder).storage("memory://").start().await.unwrap();
        Mink { node, folder }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(node::binary("mink").unwrap());
        command
            .args(words)
            .args(["--addr", self.node.flight()])
            .env_remove("MINK_ADDR")
            .env_remove("MINK_KAFKA");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn with_input(&self, words: &[&str], input: &[u8]) -> Said {
        let mut child = self.command(words).spawn().unwrap();
        let mut stdin = child.stdin.take().expect("piped");
        let feed = async move {
            // One that has refused its input reads no further.
            drop(stdin.write_all(input).await);
            drop(stdin);
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let ended = timeout(RUN_WITHIN, both).await.expect("it ends").unwrap();
        let err = String::from_utf8_lossy(&ended.stderr).into_owned();
        Said { code: ended.status.code(), out: ended.stdout, err }
    }

    async fn run(&self, words: &[&str]) -> Said {
        self.with_input(words, b"").await
    }

    /// Makes `files.NAME`.
    async fn table(&self, name: &str, columns: &str) -> String {
        let made = format!("CREATE TABLE files.{name} ({columns})");
        self.run(&["sql", "-e", &made]).await.done();
        format!("files.{name}")
    }

    async fn database(&self) {
        self.run(&["sql", "-e", "CREATE DATABASE files"]).await.done();
    }

    /// All rows as JSON lines, in order.
    async fn rows(&self, table: &str) -> Vec<String> {
        let out = self.run(&["read", table]).await.text();
        let mut rows: Vec<String> = out.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn stop(mut self) {
        self.node.stop(SOON).await.unwrap();
    }
}

fn sorted(rows: &[&str]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn what_is_printed_in_any_form_is_written_again_as_the_same_rows() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("all", ALL_TYPES).await;
    let said = mink.with_input(&["write", &table], ROWS.join("\n").as_bytes()).await;
    assert!(said.err.contains("3 rows written to files.all in "), "{}", said.err);
    said.done();
    assert_eq!(mink.rows(&table).await, sorted(&ROWS));
    for form in ["json", "csv", "arrow"] {
        let printed = mink.run(&["read", &table, "--output", form]).await.done();
        // From stdin, and from a file by its ending.
        let piped = mink.table(&format!("piped_{form}"), ALL_TYPES).await;
        mink.with_input(&["write", &piped, "--format", form], &printed).await.done();
        assert_eq!(mink.rows(&piped).await, sorted(&ROWS), "{form} from stdin");
        let filed = mink.table(&format!("filed_{form}"), ALL_TYPES).await;
        let file = mink.file(&format!("rows.{form}"), &printed);
        mink.run(&["write", &filed, &file]).await.done();
        assert_eq!(mink.rows(&filed).await, sorted(&ROWS), "{form} from a file");
    }
    let shown = mink.run(&["read", &table, "--columns", "n,c", "--output", "table"]).await.text();
    assert!(shown.contains("1234567890123456789012345678.0123456789"), "{shown}");
    mink.stop().await;
}

#[tokio::test]
async fn a_line_that_is_no_row_is_named_and_rows_before_it_are_written() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("bad", "id BIGINT NOT NULL, price DECIMAL(12, 2)").await;
    let lines = "{\"id\":1}\n\n{\"id\":2,\"price\":1.505}\n{\"id\":3}\n";
    let said = mink.with_input(&["write", &table], lines.as_bytes()).await;
    said.refused(1, &["line 3: price: found `1.505`", "2 behind it", "1 row before it written"]);
    let csv = mink.file("bad.csv", "id,price\n5,1.5\n,2\n");
    mink.run(&["write", &table, &csv])
        .await
        .refused(1, &["bad.csv: line 3: id: null", "NOT NULL", "1 row before it"]);
    mink.with_input(&["write", &table, "--format", "csv"], b"id,colour\n")
        .await
        .refused(1, &["line 1", "\"colour\"", "--columns"]);
    mink.with_input(&["write", &table, "--format", "arrow"], b"{}")
        .await
        .refused(1, &["no Arrow file or stream"]);
    mink.with_input(&["write", &table, "--format", "parquet"], b"{}").await.refused(1, &["no Parquet file"]);
    assert_eq!(mink.rows(&table).await, [r#"{"id":1,"price":null}"#, r#"{"id":5,"price":1.50}"#]);
    mink.stop().await;
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_in_words() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("t", "id BIGINT, s STRING NOT NULL").await;
    let t = table.as_str();
    mink.run(&["write", "files.absent"])
        .await
        .refused(1, &["no table files.absent", "CREATE TABLE files.absent"]);
    mink.run(&["read", "files.absent"]).await.refused(1, &["no table files.absent", "`mink table list`"]);
    mink.run(&["read", "absent.t"])
        .await
        .refused(1, &["no database absent", "`mink db list`", "`mink db create absent`"]);
    mink.run(&["write", t, "--delete"]).await.refused(2, &["--delete", "primary key"]);
    mink.run(&["write", t, "rows.txt"]).await.refused(2, &["--format json, csv, parquet or arrow"]);
    mink.run(&["write", t, "/nowhere/rows.csv"]).await.refused(1, &["/nowhere/rows.csv"]);
    mink.run(&["write", t, "--columns", "id"]).await.refused(2, &["\"s\"", "NOT NULL"]);
    mink.run(&["write", t, "--columns", "x"]).await.refused(2, &["no column \"x\"", "id, s"]);
    mink.run(&["write", t, "--encoding", "base64"]).await.refused(2, &["--encoding", "Kafka"]);
    mink.run(&["read", t, "--mode", "snapshot"]).await.refused(2, &["--mode log"]);
    mink.run(&["read", t, "--where", "id like 1"]).await.refused(2, &["COLUMN = VALUE"]);
    mink.run(&["read", t, "--where", "id = x"]).await.refused(2, &["id", "a whole number"]);
    mink.run(&["read", t, "--where", "x = 1"]).await.refused(2, &["--where", "no column \"x\"", "id, s"]);
    for command in ["read", "write"] {
        mink.run(&[command, t, "--bucket", "1"]).await.refused(2, &["--bucket 1", "it has 0 alone"]);
        mink.run(&[command, t, "--partition", "id=1"])
            .await
            .refused(2, &["--partition id=1", "not partitioned"]);
        mink.run(&[command, t, "--partition", "x=1"])
            .await
            .refused(2, &["--partition x=1", "no column \"x\""]);
    }
    mink.run(&["read", t, "--from", "7"]).await.refused(1, &["7", "earliest or latest"]);
    mink.run(&["write", "kafka.t", "--columns", "id"])
        .await
        .refused(2, &["--columns", "tables with columns"]);
    mink.run(&["read", "kafka.t", "--where", "id = 1"]).await.refused(2, &["--where", "tables with columns"]);
    mink.stop().await;
}

#[tokio::test]
async fn columns_are_chosen_on_the_way_in_and_on_the_way_out() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("chosen", "a INT, b STRING DEFAULT 'none', c DECIMAL(10, 1)").await;
    let lines = "{\"a\":1,\"b\":\"x\",\"c\":1.5,\"other\":[{}]}\n{\"c\":2,\"a\":2}\n";
    mink.with_input(&["write", &table, "--columns", "c,a"], lines.as_bytes()).await.done();
    let csv = mink.file("chosen.csv", "z,c,a\n\"q\",3.5,3\n");
    mink.run(&["write", &table, &csv, "--columns", "a"]).await.done();
    let expected =
        [r#"{"a":1,"b":"none","c":1.5}"#, r#"{"a":2,"b":"none","c":2.0}"#, r#"{"a":3,"b":"none","c":null}"#];
    assert_eq!(mink.rows(&table).await, expected);
    let some = mink
        .run(&["read", &table, "--columns", "c,a", "--where", "a >= 2", "--where", "c is not null"])
        .await;
    assert_eq!(some.text(), "{\"c\":2.0,\"a\":2}\n");
    let csv = mink.run(&["read", &table, "--columns", "b", "-n", "2", "--output", "csv"]).await;
    assert_eq!(csv.text(), "b\nnone\nnone\n");
    let arrow = mink.run(&["read", &table, "--columns", "c", "--output", "arrow", "-n", "0"]).await.done();
    assert!(!arrow.is_empty(), "a stream without rows has its columns");
    mink.stop().await;
}

/// Bucket keys and partitions are told from the rows.
#[tokio::test]
async fn rows_of_a_table_with_keys_and_partitions_come_back_from_all_buckets_and_from_one() {
    let mink = Mink::start().await;
    mink.database().await;
    let keyed =
        mink.table("keyed", "k STRING NOT NULL, n INT) WITH ('bucket.num' = '4', 'bucket.key' = 'k'").await;
    let parts = mink.table("parts", "day DATE NOT NULL, n INT) PARTITIONED BY (day").await;
    let lines: Vec<String> = (0..100).map(|n| format!("{{\"k\":\"k{}\",\"n\":{n}}}", n % 10)).collect();
    mink.with_input(&["write", &keyed], lines.join("\n").as_bytes()).await.done();
    let mut expected = lines.clone();
    expected.sort();
    assert_eq!(mink.rows(&keyed).await, expected);
    mink.run(&["read", &keyed, "--from", "0"]).await.refused(2, &["--bucket 0 to 3"]);
    let mut by_bucket = Vec::new();
    for bucket in ["0", "1", "2", "3"] {
        let out = mink.run(&["read", &keyed, "--bucket", bucket, "--from", "0"]).await.text();
        by_bucket.extend(out.lines().map(str::to_owned));
    }
    by_bucket.sort();
    assert_eq!(by_bucket, expected);
    let days = "day,n\n2026-01-30,1\n2026-01-31,2\n2026-01-30,3\n";
    mink.with_input(&["write", &parts, "--format", "csv"], days.as_bytes()).await.done();
    let one = mink.run(&["read", &parts, "--partition", "day=2026-01-30", "--from", "1"]).await.text();
    assert_eq!(one, "{\"day\":\"2026-01-30\",\"n\":3}\n");
    mink.run(&["read", &parts, "--from", "1"]).await.refused(2, &["--partition day=VALUE"]);
    mink.run(&["read", &parts, "--partition", "day=2026-02-31"]).await.refused(2, &["no day 2026-02-31"]);
    mink.run(&["read", &parts, "--partition", "day=1999-01-01"]).await.refused(2, &["no such partition"]);
    mink.stop().await;
}

#[tokio::test]
async fn rows_that_do_not_say_their_partition_get_the_one_that_is_named() {
    let mink = Mink::start().await;
    mink.database().await;
    let parts = mink.table("filled", "day DATE NOT NULL, n INT) PARTITIONED BY (day").await;
    let named = ["write", &parts, "--partition", "day=2026-01-30"];
    mink.with_input(&named, b"{\"n\":1}\n{\"n\":2,\"day\":\"2026-01-30\"}\n").await.done();
    let csv = [&named[..], &["--format", "csv", "--columns", "n"]].concat();
    mink.with_input(&csv, b"n,other\n3,x\n").await.done();
    let other = mink.with_input(&named, b"{\"n\":4}\n\n{\"n\":5,\"day\":\"2026-01-31\"}\n{\"n\":6}\n").await;
    other.refused(1, &["line 3: day: the row has \"2026-01-31\"", "1 row before it written"]);
    let rows = (1..=4).map(|n| format!("{{\"day\":\"2026-01-30\",\"n\":{n}}}"));
    assert_eq!(mink.rows(&parts).await, rows.collect::<Vec<_>>());
    // What is named is looked at before a row is read: this stdin never ends.
    let mut waiting = mink.command(&["write", &parts, "--partition", "day=2026-02-31"]).spawn().unwrap();
    let stdin = waiting.stdin.take().expect("piped");
    let ended = timeout(RUN_WITHIN, waiting.wait_with_output()).await.expect("it does not wait").unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    drop(stdin);
    mink.stop().await;
}

/// Writes one row and reads until the reader has what it wants.
#[tokio::test]
async fn a_follower_prints_rows_as_they_come_and_ends_with_its_number() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("followed", "n INT").await;
    let mut reader = mink.command(&["read", &table, "--follow", "-n", "3"]).spawn().unwrap();
    let mut lines = BufReader::new(reader.stdout.take().expect("piped")).lines();
    // A writer whose stdin stays open: each row must come through at once.
    let mut writer = mink.command(&["write", &table]).spawn().unwrap();
    let mut stdin = writer.stdin.take().expect("piped");
    for n in 1..=3 {
        stdin.write_all(format!("{{\"n\":{n}}}\n").as_bytes()).await.unwrap();
        let line = timeout(RUN_WITHIN, lines.next_line()).await.expect("it comes").unwrap();
        assert_eq!(line, Some(format!("{{\"n\":{n}}}")));
    }
    let ended = timeout(RUN_WITHIN, reader.wait()).await.expect("it has its rows").unwrap();
    assert!(ended.success(), "{ended}");
    drop(stdin);
    let ended = timeout(RUN_WITHIN, writer.wait_with_output()).await.expect("its input has ended").unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("3 rows written to files.followed"));
    mink.stop().await;
}

#[tokio::test]
async fn a_reader_that_stops_in_the_middle_is_no_failure() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("many", "n INT, s STRING").await;
    let lines: Vec<String> =
        (0..50_000).map(|n| format!("{{\"n\":{n},\"s\":\"{}\"}}", "x".repeat(40))).collect();
    mink.with_input(&["write", &table], lines.join("\n").as_bytes()).await.done();
    for form in ["json", "csv", "arrow", "table"] {
        let mut reader = mink.command(&["read", &table, "--output", form]).spawn().unwrap();
        let mut out = BufReader::new(reader.stdout.take().expect("piped"));
        let mut first = Vec::new();
        out.read_until(b'\n', &mut first).await.unwrap();
        assert!(!first.is_empty(), "{form}");
        drop(out);
        let ended = timeout(RUN_WITHIN, reader.wait_with_output()).await.expect("it ends").unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{form}: {ended:?}");
    }
    mink.stop().await;
}

/// Over a pipe, as users copy.
#[tokio::test]
async fn one_table_is_copied_into_another_by_a_pipe() {
    let mink = Mink::start().await;
    mink.database().await;
    let (from, to) =
        (mink.table("from", "n INT, s STRING").await, mink.table("to", "s STRING, n BIGINT").await);
    let lines: Vec<String> = (0..20_000).map(|n| format!("{{\"n\":{n},\"s\":\"row {n}\"}}")).collect();
    mink.with_input(&["write", &from], lines.join("\n").as_bytes()).await.done();
    let binary = node::binary("mink").unwrap();
    for form in ["json", "arrow"] {
        let script = format!(
            "set -e; \"$0\" read {from} --output {form} --addr \"$1\" | \"$0\" write {to} --format {form} --addr \"$1\""
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(&binary).arg(mink.node.flight()).kill_on_drop(true);
        let ended = timeout(RUN_WITHIN, shell.output()).await.expect("it ends").unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let mut numbers: Vec<i64> = mink.rows(&to).await.iter().map(|row| number(row)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20_000).flat_map(|n| [n, n]).collect::<Vec<_>>());
    mink.stop().await;
}

fn number(row: &str) -> i64 {
    let row: Value = serde_json::from_str(row).unwrap();
    row["n"].as_i64().expect("a number")
}

/// I7: what is told as written is there, and nothing else is told as written.
#[tokio::test]
async fn a_row_that_the_node_refuses_is_told_with_its_place() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("dropped", "s STRING").await;
    let mut writer = mink.command(&["write", &table]).spawn().unwrap();
    let mut stdin = writer.stdin.take().expect("piped");
    stdin.write_all(b"{\"s\":\"a\"}\n").await.unwrap();
    until("the first row is there", RUN_WITHIN, || async {
        (mink.rows(&table).await.len() == 1).then_some(())
    })
    .await;
    mink.run(&["sql", "-e", "DROP TABLE files.dropped"]).await.done();
    stdin.write_all(b"{\"s\":\"b\"}\n").await.unwrap();
    // It stays open: the writer ends by what it was told, not by the end of its input.
    let ended = timeout(RUN_WITHIN, writer.wait_with_output()).await.expect("it was refused").unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{err}");
    assert!(err.contains("line 2 not stored: table files.dropped was dropped while it was written"), "{err}");
    assert!(err.contains("1 row of the file written"), "{err}");
    drop(stdin);
    mink.stop().await;
}

/// Of many rows that travel together the one is told.
#[tokio::test]
async fn a_row_that_no_batch_holds_is_told_with_its_line_and_the_option_to_raise() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink
        .table(
            "small",
            "s STRING) WITH ('max.message.bytes' = '10000', 'table.log.arrow.compression' = 'none'",
        )
        .await;
    let lines = format!("{{\"s\":\"a\"}}\n\n{{\"s\":\"{}\"}}\n{{\"s\":\"c\"}}\n", "x".repeat(100_000));
    mink.with_input(&["write", &table], lines.as_bytes()).await.refused(
        1,
        &["line 3: the row is too large", "at most 10,000", "max.message.bytes", "1 row before it written"],
    );
    assert_eq!(mink.rows(&table).await, [r#"{"s":"a"}"#]);
    // What is said helps.
    mink.run(&["sql", "-e", "ALTER TABLE files.small SET ('max.message.bytes' = '200000')"]).await.done();
    mink.with_input(&["write", &table], lines.as_bytes()).await.done();
    assert_eq!(mink.rows(&table).await.len(), 4);
    mink.stop().await;
}

#[tokio::test]
async fn a_file_of_another_form_than_is_said_is_told_with_what_makes_it_one() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("forms", "n INT").await;
    let write =
        async |form: &str, input: &[u8]| mink.with_input(&["write", &table, "--format", form], input).await;
    write("json", b"[{\"n\":1}]").await.refused(1, &["line 1", "`jq -c '.[]' FILE`", "0 rows before"]);
    write("json", b"{\n\"n\":1}").await.refused(1, &["line 1", "`jq -c . FILE`"]);
    write("csv", b"n;m\n1;2\n").await.refused(1, &["line 1", "mlr --icsv --ifs ';'"]);
    write("csv", b"PAR1\x15\x00\x15\x00").await.refused(1, &["Parquet", "--format parquet"]);
    let arrow = mink.run(&["read", &table, "--output", "arrow"]).await.done();
    write("json", &arrow).await.refused(1, &["--format arrow"]);
    write("parquet", &arrow).await.refused(1, &["--format arrow"]);
    write("json", "\u{feff}{\"n\":1}".as_bytes()).await.done();
    write("csv", "\u{feff}n\n2".as_bytes()).await.done();
    assert_eq!(mink.rows(&table).await, [r#"{"n":1}"#, r#"{"n":2}"#]);
    mink.stop().await;
}

#[tokio::test]
async fn files_that_pyarrow_makes_are_read_in_and_streams_come_out_for_it() {
    if skip::available("clients-python", client::install("flight").await).is_none() {
        return;
    }
    let mink = Mink::start().await;
    let binary = node::binary("mink").unwrap();
    let folder = mink.folder.join("pyarrow");
    std::fs::create_dir(&folder).unwrap();
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    let (binary, folder) = (path(&binary), path(&folder));
    let args = ["files", "--flight", mink.node.flight(), "--mink", &binary, "--folder", &folder];
    let summary = client::run("flight", &args, RUN_WITHIN).await.unwrap();
    println!("{summary}");
    assert_eq!(summary["case"], "files");
    assert_eq!(summary["parquet_rows"], json!(100_000));
    mink.stop().await;
}
