//! `mink demo`: the README's first command. It takes less than a minute and leaves nothing behind; `--keep` leaves a node.

use std::time::{Duration, Instant};

use mink_testkit::process::{Launch, Output, Process};
use mink_testkit::{client, node, skip};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::setup::Folder;
use crate::wire::{SOON, Wire};

const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// The demo with a temporary folder of its own, so that what it leaves there is seen.
fn demo(folder: &Folder, args: &[&str]) -> Process {
    let temporary = folder.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    Launch::new("mink-demo", node::binary("mink").unwrap())
        .arg("demo")
        .args(args.iter().copied())
        .env("TMPDIR", temporary)
        .log_dir(folder.join("logs"))
        .fail_on_loud_lines(vec!["core gets no time from the system".to_owned()])
        .start()
        .unwrap()
}

/// Waits for the end of a demo, after which neither its node nor its files may be left; gives its exit code.
async fn ends_clean(folder: &Folder, mut process: Process) -> Option<i32> {
    let status = process.wait(ENDS_WITHIN).await.unwrap();
    println!("{status}\n{}", process.text(Output::Stdout).unwrap());
    let left: Vec<_> = std::fs::read_dir(folder.join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // Its node has a process group of its own, and is told by its data directory.
    let folder = folder.path().to_str().unwrap();
    let of_the_demo = |command: Vec<u8>| String::from_utf8_lossy(&command).contains(folder);
    let running = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    assert!(!running.into_iter().any(of_the_demo), "a process of the demo still runs");
    status.code()
}

#[tokio::test]
async fn the_demo_shows_the_whole_path_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let begun = Instant::now();
    let process = demo(&folder, &[]);
    assert_eq!(ends_clean(&folder, process).await, Some(0));
    println!("{:.1} s", begun.elapsed().as_secs_f64());
}

#[tokio::test]
async fn an_interrupted_demo_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut process = demo(&folder, &[]);
    process.wait_for_text(Output::Stdout, ENDS_WITHIN, "kill -9").await.unwrap();
    process.interrupt().unwrap();
    assert_eq!(ends_clean(&folder, process).await, Some(1));
}

#[tokio::test]
async fn a_kept_demo_is_read_with_kcat() {
    if skip::available("kcat", client::install("kcat").await).is_none() {
        return;
    }
    let folder = Folder::new();
    let mut process = demo(&folder, &["--keep"]);
    let (address, topic) = process.wait_for_line(Output::Stdout, ENDS_WITHIN, kcat_arguments).await.unwrap();
    let mut kcat = Launch::new("kcat", "kcat")
        .args(["-C", "-b", &address, "-t", &topic, "-o", "beginning", "-c", "10", "-f", "%o\n"])
        .start()
        .unwrap();
    assert!(kcat.wait(SOON).await.unwrap().success());
    assert_eq!(kcat.text(Output::Stdout).unwrap().lines().count(), 10);
    assert!(!Wire::connect(&address).await.read_all(&topic, 0).await.is_empty());
    // As Ctrl-C at a terminal, which signals the whole group.
    let group = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    assert_eq!(ends_clean(&folder, process).await, Some(0));
}

/// `-b ADDRESS` and `-t TOPIC` of a line that shows how to call kcat.
fn kcat_arguments(line: &str) -> Option<(String, String)> {
    if !line.contains("kcat") {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).map(|word| (*word).to_owned())
    };
    Some((after("-b")?, after("-t")?))
}
