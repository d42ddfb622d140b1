//! A `file://` store that runs full: writes wait in their sockets and get no error, `/readyz` says why, and it heals.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mink_testkit::{Error, ErrorKind, Result, http, skip};

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch};

const DISK: &str = "size=24m";
const BALLAST_BYTES: usize = 10 << 20;
const VALUE_BYTES: usize = 500_000;
/// More batches than the disk has room for.
const BATCHES_MAX: usize = 100;
const STALLED_AFTER: Duration = Duration::from_secs(3);
const TOPIC: &str = "t";

/// A small file system of its own.
#[derive(Debug)]
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path) -> Result<Self> {
        let unavailable = |why: String| Error::new(ErrorKind::Unavailable, why);
        std::fs::create_dir(path).map_err(|error| unavailable(error.to_string()))?;
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "mink-e2e"]).arg(path).output();
        let mounted = mounted.map_err(|error| unavailable(format!("mount: {error}")))?;
        if !mounted.status.success() {
            return Err(unavailable(String::from_utf8_lossy(&mounted.stderr).trim().to_owned()));
        }
        Ok(Self(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still hold it.
        let ended = Command::new("umount").arg("-l").arg(&self.0).status();
        if !ended.as_ref().is_ok_and(std::process::ExitStatus::success) {
            eprintln!("umount {}: {ended:?}", self.0.display());
        }
    }
}

#[tokio::test]
async fn a_full_disk_stops_writes_without_an_error_and_heals() {
    let folder = Folder::new();
    let Some(disk) = skip::available("a small disk (root, mount)", SmallDisk::mount(&folder.join("disk")))
    else {
        return;
    };
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![0; BALLAST_BYTES]).unwrap();
    let config = setup::node(&folder)
        .storage(&format!("file://{}", disk.0.join("objects").display()))
        .flag("--wal-flush-age", "1h")
        .allow_line("disk is full")
        .allow_line("not yet created, trying again");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let records = batch(["x".repeat(VALUE_BYTES)], None);
    let mut acked = 0;
    let stalled = loop {
        let sent = wire.send_produce(TOPIC, &[(0, records.clone())]).await.unwrap();
        if !wire.stirs_within(STALLED_AFTER).await {
            break sent;
        }
        let answers = wire.receive_produce(sent, SOON).await.unwrap();
        assert_eq!((answers[0].code, answers[0].offset), (0, acked), "{answers:?}");
        acked += 1;
        assert!(acked < i64::try_from(BATCHES_MAX).unwrap(), "the disk does not fill");
    };
    println!("full after {acked} batches");
    assert!(acked > 0);
    let answer = until("/readyz names the full disk", SOON, || async {
        let answer = http::get(node.http(), "/readyz").await.unwrap();
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert!(answer.body.contains("no room"), "{}", answer.body);
    // What is acked is still read, and a second writer waits as the first one does.
    let mut other = Wire::connect(node.kafka()).await;
    let read = other.fetch(TOPIC, 0, acked - 1).await.unwrap();
    assert_eq!((read.code, read.high_watermark), (0, acked));
    let second = other.send_produce(TOPIC, &[(0, batch(["small"], None))]).await.unwrap();
    assert!(!other.stirs_within(STALLED_AFTER).await, "a write was answered on a full disk");
    assert!(!wire.stirs_within(Duration::ZERO).await, "a write was answered on a full disk");

    std::fs::remove_file(&ballast).unwrap();
    let answers = wire.receive_produce(stalled, SOON).await.unwrap();
    assert_eq!((answers[0].code, answers[0].offset), (0, acked), "{answers:?}");
    let answers = other.receive_produce(second, SOON).await.unwrap();
    assert_eq!((answers[0].code, answers[0].offset), (0, acked + 1), "{answers:?}");
    until("/readyz is well again", SOON, || async {
        (http::get(node.http(), "/readyz").await.unwrap().status == 200).then_some(())
    })
    .await;
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let read = wire.read_all(TOPIC, 0).await;
    assert_eq!(
        (i64::try_from(read.len()).unwrap(), read.last().map(String::as_str)),
        (acked + 2, Some("small"))
    );
}

#[tokio::test]
async fn a_full_disk_below_the_database_heals_without_a_restart() {
    let folder = Folder::new();
    let Some(disk) = skip::available("a small disk (root, mount)", SmallDisk::mount(&folder.join("disk")))
    else {
        return;
    };
    let config = setup::node(&folder)
        .flag("--metadata", &format!("sqlite://{}", disk.0.join("meta.db").display()))
        .allow_line("disk is full")
        .allow_line("heartbeat")
        .allow_line("the metadata database does not answer");
    let node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch(["before"], None)).await, 0);

    let ballast = disk.0.join("ballast");
    let full = fill(&ballast).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
    until("/readyz tells of the database", SOON, || async {
        (http::get(node.http(), "/readyz").await.unwrap().status == 503).then_some(())
    })
    .await;
    std::fs::remove_file(&ballast).unwrap();
    until("/readyz is well again", SOON, || async {
        (http::get(node.http(), "/readyz").await.unwrap().status == 200).then_some(())
    })
    .await;
    wire.create_topic("after", 1).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch(["after"], None)).await, 1);
    assert_eq!(wire.read_all(TOPIC, 0).await, ["before", "after"]);
}

/// Writes until there is no room.
fn fill(path: &Path) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    loop {
        std::io::Write::write_all(&mut file, &[0; 4096])?;
    }
}
