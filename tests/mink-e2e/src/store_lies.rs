//! P-5, K-2: a store that ignores the create condition is refused at the start, in words, and nothing is ever acked on it.

use mink_testkit::parts::SeaweedFs;
use mink_testkit::process::Output;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

#[tokio::test]
async fn p_5_k_2_a_store_that_ignores_conditions_carries_no_cluster() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "lies").await;
    proxy.set_text("put: unconditional").unwrap();
    // Its words are looked at here; an error in its log is part of them.
    let config = config.allow_line("");
    for start in ["first", "second"] {
        let mut process = config.launch().unwrap();
        let status = process.wait(SOON).await.unwrap();
        let said = process.text(Output::Stderr).unwrap();
        println!("{start} start: {status}: {}", said.lines().last().unwrap_or_default());
        assert_eq!(status.code(), Some(1), "{said}");
        // Never ready: no listener, no ack.
        assert!(!said.contains("mink ready") && !said.contains("panicked"), "{said}");
        assert!(said.contains("conditional PUT"), "{said}");
        // What was found is kept: the store is not asked again, and does not get a second chance to look well.
        proxy.set_text("").unwrap();
    }
}

/// A store that is bad in every other way is not taken for a liar.
#[tokio::test]
async fn k_3_k_4_a_store_that_loses_answers_and_conflicts_is_no_liar() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "no-liar").await;
    let plan = "put 15%: lost\nput 15%: undone 409\nput 15%: undone 503\nget,head 15%: lost";
    proxy.set_text(plan).unwrap();
    let config = config.allow_line("not yet created, trying again").allow_line("the store takes no writes");
    let mut node = config.start().await.unwrap();
    println!("ready after {:?}, {} faults", node.ready_after(), proxy.tally().taken());
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic("t", 1).await;
    assert_eq!(wire.produce("t", 0, &batch(["a"], None)).await, 0);
    assert_eq!(wire.read_all("t", 0).await, ["a"]);
    node.stop(SOON).await.unwrap();
}
