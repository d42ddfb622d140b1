//! How writing and following end, or go on: by an interrupt, by a reader of a pipe that has gone, by a node that is away and comes back.

use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::*;

/// Ctrl-C.
fn interrupt(child: &Child) {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap())).expect("it runs");
    kill_process(pid, Signal::INT).unwrap();
}

async fn ended(child: Child) -> Output {
    timeout(RUN_WITHIN, child.wait_with_output()).await.expect("it ends").unwrap()
}

fn words(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

/// The next line of this.
async fn line(lines: &mut tokio::io::Lines<impl AsyncBufReadExt + Unpin>) -> String {
    timeout(RUN_WITHIN, lines.next_line()).await.expect("it comes").unwrap().expect("it goes on")
}

#[tokio::test]
async fn a_writer_that_is_interrupted_says_what_is_written_and_a_follower_ends_well() {
    let mink = Mink::start().await;
    mink.database().await;
    let table = mink.table("interrupted", "n INT").await;
    let mut follower = mink.command(&["read", &table, "--follow"]).spawn().unwrap();
    let mut printed = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let mut writer = mink.command(&["write", &table]).spawn().unwrap();
    let mut stdin = writer.stdin.take().expect("piped");
    stdin.write_all(b"{\"n\":1}\n").await.unwrap();
    assert_eq!(line(&mut printed).await, "{\"n\":1}");
    stdin.write_all(b"{\"n\":2}\n").await.unwrap();
    assert_eq!(line(&mut printed).await, "{\"n\":2}");
    interrupt(&writer);
    let writer = ended(writer).await;
    let said = words(&writer);
    assert_eq!(writer.status.code(), Some(130), "{said}");
    // Both are durable; their acks may be on their way.
    let rows =
        ["0 rows", "1 row", "2 rows"].map(|rows| format!("{rows} written; rows behind them may be stored"));
    assert!(rows.iter().any(|rows| said.contains(rows)), "{said}");
    drop(stdin);
    interrupt(&follower);
    let follower = ended(follower).await;
    assert!(follower.status.success() && follower.stderr.is_empty(), "{follower:?}");
    mink.stop().await;
}

#[tokio::test]
async fn a_writer_and_a_follower_of_records_are_interrupted_alike() {
    let mink = Mink::start().await;
    let mut writer = mink.command(&["write", "kafka.interrupted"]).spawn().unwrap();
    let mut stdin = writer.stdin.take().expect("piped");
    stdin.write_all(b"{\"value\":\"a\"}\n").await.unwrap();
    until("the topic is there", RUN_WITHIN, || async {
        let said = mink.run(&["read", "kafka.interrupted"]).await;
        (said.code == Some(0) && !said.out.is_empty()).then_some(())
    })
    .await;
    let mut follower = mink.command(&["read", "kafka.interrupted", "--follow"]).spawn().unwrap();
    let mut printed = BufReader::new(follower.stdout.take().expect("piped")).lines();
    assert!(line(&mut printed).await.contains("\"value\":\"a\""));
    interrupt(&follower);
    let follower = ended(follower).await;
    assert!(follower.status.success() && follower.stderr.is_empty(), "{follower:?}");
    // Stdin is open: nobody waits for its next line.
    interrupt(&writer);
    let writer = ended(writer).await;
    assert_eq!(writer.status.code(), Some(130), "{}", words(&writer));
    assert!(words(&writer).contains("interrupted: 1 record written"), "{}", words(&writer));
    drop(stdin);
    mink.stop().await;
}

#[tokio::test]
async fn whoever_follows_or_writes_is_told_once_that_the_node_is_away_and_once_that_it_is_back() {
    let folder = Folder::new();
    let node = setup::node(&folder).start_on_fixed_ports().await.unwrap();
    let mut mink = Mink { node, folder };
    mink.database().await;
    let table = mink.table("away", "n INT").await;
    let mut follower = mink.command(&["read", &table, "--follow", "-n", "2"]).spawn().unwrap();
    let mut printed = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let mut said = BufReader::new(follower.stderr.take().expect("piped")).lines();
    let mut writer = mink.command(&["write", &table]).spawn().unwrap();
    let mut stdin = writer.stdin.take().expect("piped");
    let mut writer_said = BufReader::new(writer.stderr.take().expect("piped")).lines();
    stdin.write_all(b"{\"n\":1}\n").await.unwrap();
    assert_eq!(line(&mut printed).await, "{\"n\":1}");
    mink.node.process().kill9().await.unwrap();
    stdin.write_all(b"{\"n\":2}\n").await.unwrap();
    let at = mink.node.flight().to_owned();
    let away = line(&mut said).await;
    assert!(away.starts_with(&format!("the node at {at} is away")), "{away}");
    let away = line(&mut writer_said).await;
    assert!(away.starts_with(&format!("no ack from the node at {at}")), "{away}");
    assert!(away.contains("1 row of the file written so far"), "{away}");
    mink.node.restart().await.unwrap();
    assert_eq!(line(&mut said).await, format!("the node at {at} answers again"));
    assert_eq!(line(&mut writer_said).await, format!("the node at {at} answers again"));
    assert_eq!(line(&mut printed).await, "{\"n\":2}");
    drop(stdin);
    assert!(line(&mut writer_said).await.starts_with("2 rows written to files.away"));
    for child in [follower, writer] {
        assert!(ended(child).await.status.success());
    }
    // Nothing else was said.
    assert_eq!(said.next_line().await.unwrap(), None);
    mink.stop().await;
}

#[tokio::test]
async fn a_reader_of_records_whose_pipe_is_closed_is_no_failure_either() {
    let mink = Mink::start().await;
    let lines = format!("{{\"value\":\"{}\"}}\n", "x".repeat(100)).repeat(20_000);
    mink.with_input(&["write", "kafka.piped"], lines.as_bytes()).await.done();
    for words in [&["read", "kafka.piped"][..], &["read", "kafka.piped", "--follow"]] {
        let mut reader = mink.command(words).spawn().unwrap();
        let mut out = BufReader::new(reader.stdout.take().expect("piped"));
        out.read_line(&mut String::new()).await.unwrap();
        drop(out);
        let ended = ended(reader).await;
        assert!(ended.status.success() && ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
    mink.stop().await;
}

/// A scan that nobody reads on is cut off when its node stops: it has its rows another time.
#[tokio::test]
async fn a_reader_whose_output_nobody_takes_keeps_no_node_from_leaving() {
    let mink = Mink::start().await;
    mink.database().await;
    let made = "CREATE TABLE files.unread (s STRING) WITH ('table.log.arrow.compression' = 'none')";
    mink.run(&["sql", "-e", made]).await.done();
    // More than windows, sockets and pipes hold.
    let row = format!("{{\"s\":\"{}\"}}\n", "x".repeat(1_000_000));
    mink.with_input(&["write", "files.unread"], row.repeat(64).as_bytes()).await.done();
    let mut reader = mink.command(&["read", "files.unread"]).spawn().unwrap();
    let mut printed = reader.stdout.take().expect("piped");
    // It reads; then nobody takes what it prints.
    timeout(RUN_WITHIN, printed.read_u8()).await.expect("it comes").unwrap();
    let Mink { mut node, folder } = mink;
    let begun = std::time::Instant::now();
    node.stop(SOON).await.unwrap();
    // A drain may take 30 s, half of them for what clients have not read.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(node);
    drop((reader, folder));
}
