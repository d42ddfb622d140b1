//! I13: a database that has lost acked commands is refused, not served: an older copy of it, put back while the node was down.

use std::path::Path;

use mink_testkit::process::Output;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

/// The database and the files that belong to it.
fn copy_database(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["meta.db", "meta.db-wal", "meta.db-shm"] {
        let (from, to) = (from.join(name), to.join(name));
        if from.exists() {
            std::fs::copy(&from, &to).unwrap();
        } else if to.exists() {
            std::fs::remove_file(&to).unwrap();
        }
    }
}

/// The next start must be refused in words that name the remedy.
async fn is_refused(folder: &Folder) {
    let mut process = setup::node(folder).allow_line("").launch().unwrap();
    let status = process.wait(SOON).await.unwrap();
    let said = process.text(Output::Stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("has lost") && said.contains("mink metadata recover"), "{said}");
}

async fn append(kafka: &str, topic: &str) {
    let mut wire = Wire::connect(kafka).await;
    wire.create_topic(topic, 1).await;
    wire.fetch_open(topic, 0, 0).await;
    wire.produce(topic, 0, &batch(values("r", 0..5), None)).await;
}

#[tokio::test]
async fn i13_a_copy_made_while_the_node_ran_is_refused() {
    let folder = Folder::new();
    let (data, kept) = (folder.join("data"), folder.join("kept"));
    let mut node = setup::node(&folder).flag("--wal-flush-age", "1h").start().await.unwrap();
    append(node.kafka(), "before").await;
    copy_database(&data, &kept);
    append(node.kafka(), "after").await;
    node.process().kill9().await.unwrap();
    drop(node);
    copy_database(&kept, &data);
    is_refused(&folder).await;
}

#[tokio::test]
async fn i13_a_copy_of_an_earlier_life_is_refused() {
    let folder = Folder::new();
    let (data, kept) = (folder.join("data"), folder.join("kept"));
    let mut node = setup::node(&folder).start().await.unwrap();
    append(node.kafka(), "before").await;
    node.stop(SOON).await.unwrap();
    copy_database(&data, &kept);
    let mut node = setup::node(&folder).start().await.unwrap();
    // From the snapshot of this start on the store knows how far the log had got.
    setup::until("a second snapshot", SOON, || async {
        (setup::objects(&data.join("objects/mink/meta")).len() > 1).then_some(())
    })
    .await;
    append(node.kafka(), "after").await;
    node.process().kill9().await.unwrap();
    drop(node);
    copy_database(&kept, &data);
    is_refused(&folder).await;
}
