//! I1 on `file://`, as the kernel sees it: the bytes are synced, then named, then the directory is synced, then the ack is sent.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use mink_testkit::{Error, ErrorKind, node, skip};

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch, values};

/// One system call: the lines of the trace on which it began and ended.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    arguments: String,
    began: usize,
    ended: usize,
}

fn strace() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("strace")).find(|path| path.is_file());
    let missing = || Error::new(ErrorKind::Unavailable, "no strace on this machine");
    skip::available("strace", found.ok_or_else(missing))
}

/// A program that runs `mink` under strace.
fn traced_mink(folder: &Folder, strace: &Path, trace: &Path) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nexec {} -f -yy -s 8 -e trace=fdatasync,fsync,link,linkat,rename,renameat,renameat2,sendto,sendmsg,write,writev \
         -o {} {} \"$@\"\n",
        strace.display(),
        trace.display(),
        node::binary("mink").unwrap().display()
    );
    let path = folder.join("mink-traced");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The calls of a trace that succeeded, in the order of their ends. A call that another thread's interrupts takes two lines.
fn calls(trace: &str) -> Vec<Call> {
    let (mut begun, mut done) = (BTreeMap::new(), Vec::new());
    for (at, line) in trace.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let (call, result) = match (rest.strip_prefix("<... "), rest.strip_suffix("<unfinished ...>")) {
            (Some(resumed), _) => {
                let Some(begun) = begun.remove(thread) else {
                    continue;
                };
                (begun, resumed)
            }
            (None, Some(unfinished)) => {
                begun.extend(call(unfinished, at).map(|call| (thread.to_owned(), call)));
                continue;
            }
            (None, None) => {
                let Some(call) = call(rest, at) else { continue };
                (call, rest)
            }
        };
        let failed = result.rsplit_once(" = ").is_none_or(|(_, result)| result.starts_with('-'));
        if !failed {
            done.push(Call { ended: at, ..call });
        }
    }
    done
}

fn call(text: &str, at: usize) -> Option<Call> {
    let (name, arguments) = text.split_once('(')?;
    Some(Call { name: name.to_owned(), arguments: arguments.to_owned(), began: at, ended: at })
}

#[tokio::test]
async fn i_1_sync_link_sync_the_directory_then_answer() {
    let Some(strace) = strace() else { return };
    let folder = Folder::new();
    let trace_path = folder.join("trace");
    // Each traced call costs two stops.
    let config =
        setup::often_stopped(setup::node(&folder)).program(traced_mink(&folder, &strace, &trace_path));
    let node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic("t", 1).await;
    wire.produce("t", 0, &batch(values("first", 0..10), None)).await;
    let client = format!("->127.0.0.1:{}]", wire.local_port());
    let is_send = |call: &Call| {
        ["sendto", "sendmsg", "write", "writev"].contains(&call.name.as_str())
            && call.arguments.contains(&client)
    };
    // The client may have an answer before the trace shows it.
    let before = until("the trace shows all answers so far", SOON, || async {
        let trace = std::fs::read_to_string(&trace_path).unwrap();
        let sends = calls(&trace).iter().filter(|call| is_send(call)).count();
        (sends >= wire.requests()).then(|| trace.lines().count())
    })
    .await;
    assert_eq!(wire.produce("t", 0, &batch(values("second", 0..10), None)).await, 10);

    let is_answer = |call: &Call| call.began >= before && is_send(call);
    let seen = until("the trace shows the answer", SOON, || async {
        let calls = calls(&std::fs::read_to_string(&trace_path).unwrap());
        calls.iter().any(is_answer).then_some(calls)
    })
    .await;
    let answer = seen.iter().find(|call| is_answer(call)).unwrap();
    let link = seen.iter().rfind(|call| {
        call.began >= before && call.name.starts_with("link") && call.arguments.contains("/mink/wal/")
    });
    let link = link.expect("the object got its name by a link");
    // linkat(DIR</...tmp>, "NAME", DIR</...wal/...>, "NUMBER", 0): which temporary, and which directory.
    let paths: Vec<&str> = link.arguments.split(['<', '>']).skip(1).step_by(2).collect();
    let names: Vec<&str> = link.arguments.split('"').skip(1).step_by(2).collect();
    let (temporary, directory) = (format!("<{}/{}>", paths[0], names[0]), format!("<{}>", paths[1]));
    let sync = seen.iter().find(|call| call.name == "fdatasync" && call.arguments.contains(&temporary));
    let sync = sync.expect("the temporary was synced");
    let directory_sync = seen
        .iter()
        .find(|call| call.name == "fsync" && call.began > link.ended && call.arguments.contains(&directory));
    let directory_sync = directory_sync.expect("the directory was synced after the link");
    for call in [sync, link, directory_sync, answer] {
        println!("{:>6}-{:<6} {}({}", call.began, call.ended, call.name, call.arguments);
    }
    assert!(sync.ended < link.began, "named before it was durable");
    assert!(directory_sync.ended < answer.began, "answered before the name was durable");
}

#[test]
fn interrupted_calls_are_put_together() {
    let trace = "\
7 fdatasync(3</a>) = 0
8 linkat(4</t>, \"1\", 5</w>, \"2\", 0 <unfinished ...>
7 fsync(5</w>) = -1 EIO
8 <... linkat resumed>) = 0
";
    let found: Vec<_> = calls(trace).into_iter().map(|call| (call.name, call.began, call.ended)).collect();
    assert_eq!(found, [("fdatasync".to_owned(), 0, 0), ("linkat".to_owned(), 1, 3)]);
}
