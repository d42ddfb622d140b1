//! A table that is altered while `mink read --follow` prints it.

use super::*;

/// Follows a table in a form; the lines it prints.
struct Follower {
    child: tokio::process::Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Follower {
    fn start(mink: &Mink, table: &str, more: &[&str]) -> Follower {
        let mut child = mink.command(&[&["read", table, "--follow"], more].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Follower { child, lines }
    }

    async fn line(&mut self) -> String {
        timeout(RUN_WITHIN, self.lines.next_line()).await.expect("it comes").unwrap().expect("it goes on")
    }

    /// What it says when it fails.
    async fn fails(self) -> String {
        let ended = timeout(RUN_WITHIN, self.child.wait_with_output()).await.expect("it ends").unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        String::from_utf8_lossy(&ended.stderr).into_owned()
    }
}

#[tokio::test]
async fn a_follower_goes_on_over_a_wider_type_and_a_column_more() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("altered", "n INT NOT NULL").await;
    let write = async |row: &str| {
        mink.with_input(&["write", &table], row.as_bytes()).await.done();
    };
    write("{\"n\":1}").await;
    let mut json = Follower::start(&mink, &table, &[]);
    let mut csv = Follower::start(&mink, &table, &["--output", "csv"]);
    assert_eq!(json.line().await, "{\"n\":1}");
    assert_eq!((csv.line().await, csv.line().await), ("n".into(), "1".into()));
    let wider = format!("ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT");
    mink.run(&["sql", "-e", &wider]).await.done();
    write("{\"n\":1099511627776}").await;
    assert_eq!(json.line().await, "{\"n\":1099511627776}");
    assert_eq!(csv.line().await, "1099511627776");
    // Rows that say more are printed whole where each names its columns.
    for change in ["ADD COLUMN note STRING", "ALTER COLUMN n DROP NOT NULL"] {
        mink.run(&["sql", "-e", &format!("ALTER TABLE {table} {change}")]).await.done();
    }
    write("{\"n\":null,\"note\":\"x\"}").await;
    assert_eq!(json.line().await, "{\"n\":null,\"note\":\"x\"}");
    let said = csv.fails().await;
    assert!(said.contains("altered while they were read") && said.contains("--output json"), "{said}");
    drop(json);
    mink.stop().await;
}

/// T-37
#[tokio::test]
async fn t_37_a_follower_of_a_table_without_partitions_waits_for_them() {
    let mink = Mink::start().await;
    mink.database().await;
    let made = "CREATE TABLE files.days (n INT, day INT NOT NULL) PARTITIONED BY (day)";
    mink.run(&["sql", "-e", made]).await.done();
    let mut follower = Follower::start(&mink, "files.days", &[]);
    let write = async |row: &str| {
        mink.with_input(&["write", "files.days"], row.as_bytes()).await.done();
    };
    write("{\"n\":1,\"day\":1}").await;
    assert_eq!(follower.line().await, "{\"n\":1,\"day\":1}");
    mink.run(&["sql", "-e", "ALTER TABLE files.days DROP PARTITION (day = 1)"]).await.done();
    write("{\"n\":2,\"day\":2}").await;
    assert_eq!(follower.line().await, "{\"n\":2,\"day\":2}");
    mink.run(&["sql", "-e", "DROP TABLE files.days"]).await.done();
    let said = follower.fails().await;
    assert!(said.contains("files.days"), "{said}");
    mink.stop().await;
}

/// T-37: a partition that is made while a topic is followed is read from its first record.
#[tokio::test]
async fn t_37_a_follower_of_records_sees_partitions_that_are_made_meanwhile() {
    let mink = Mink::start().await;
    mink.run(&["table", "create", "kafka.grows", "--buckets", "1"]).await.done();
    let mut follower = Follower::start(&mink, "kafka.grows", &["--from", "latest"]);
    let write = async |partition: &str| {
        mink.with_input(&["write", "kafka.grows", "--partition", partition], b"{\"value\":\"x\"}\n")
            .await
            .done();
    };
    // It has begun once a record has come that was written behind its begin.
    let first = async {
        loop {
            write("0").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        line = follower.line() => assert!(line.contains("\"partition\":0"), "{line}"),
        () = first => {}
    }
    mink.run(&["sql", "-e", "ALTER TABLE kafka.grows SET ('bucket.num' = '2')"]).await.done();
    write("1").await;
    loop {
        let line = follower.line().await;
        if line.contains("\"partition\":1") {
            assert!(line.contains("\"offset\":0"), "{line}");
            break;
        }
    }
    drop(follower);
    mink.stop().await;
}
