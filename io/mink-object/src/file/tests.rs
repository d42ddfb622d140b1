//! What the disk may do to us, and what a put does to the disk.
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use mink_types::Outcome;
use rustix::io::Errno;

use super::{DiskFaults, DiskStep, FileStore, scratch};
use crate::conformance::conformance;
use crate::tests::{key, service};
use crate::{Existing, GetError, ObjectStore, Payload, PutRefused, Span, StoreHealth, decide_exists};

/// Writes down every step and fails those that were planned.
#[derive(Debug, Default)]
struct Recorder {
    steps: Mutex<Vec<(DiskStep, String)>>,
    failures: Mutex<Vec<(DiskStep, String, Errno)>>,
}

impl Recorder {
    /// The next `step` on a path that ends in `path` fails.
    fn fail(&self, step: DiskStep, path: &str, errno: Errno) {
        self.failures.lock().unwrap().push((step, path.into(), errno));
    }

    fn take(&self) -> Vec<(DiskStep, String)> {
        std::mem::take(&mut *self.steps.lock().unwrap())
    }

    fn take_of(&self, wanted: DiskStep) -> Vec<String> {
        self.take().into_iter().filter(|(step, _)| *step == wanted).map(|(_, path)| path).collect()
    }
}

impl DiskFaults for Recorder {
    fn before(&self, step: DiskStep, path: &str) -> Option<i32> {
        self.steps.lock().unwrap().push((step, path.into()));
        let mut failures = self.failures.lock().unwrap();
        let planned = failures.iter().position(|(s, p, _)| *s == step && path.ends_with(p.as_str()))?;
        Some(failures.remove(planned).2.raw_os_error())
    }
}

fn store(dir: &Path) -> (FileStore, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let faults = Arc::clone(&recorder) as Arc<dyn DiskFaults>;
    (FileStore::open(dir, &service(), Some(faults)).expect("the store opens"), recorder)
}

fn payload() -> Payload {
    Payload::from(&b"some bytes"[..])
}

fn is_unknown(outcome: &Outcome<(), PutRefused>) -> bool {
    matches!(outcome, Outcome::Unknown(_))
}

/// Files in the folders for temporaries, locks aside.
fn temporaries(dir: &Path) -> usize {
    let folders = std::fs::read_dir(dir.join(scratch::FOLDER)).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|path| path.is_dir()).map(|path| std::fs::read_dir(path).unwrap().count()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passes_conformance_where_openat2_is_forbidden() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(dir.path(), &service(), None).expect("the store opens");
    Arc::get_mut(&mut store.disk).expect("not shared yet").root.forbid_openat2();
    conformance(Arc::new(store), service()).await;
}

#[tokio::test]
async fn i1_every_entry_on_the_way_is_synced_before_the_answer() {
    use DiskStep::{CreateTemporary, Link, MakeDirectory, SyncDirectory, SyncFile, Write};
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    let object = key("a/b/object");
    assert!(store.put(&object, &payload()).await.is_done());
    let step = |step, path: &str| (step, path.to_owned());
    let first = [
        step(CreateTemporary, "a/b/object"),
        step(Write, "a/b/object"),
        step(SyncFile, "a/b/object"),
        step(MakeDirectory, "a"),
        step(SyncDirectory, ""),
        step(MakeDirectory, "a/b"),
        step(SyncDirectory, "a"),
        step(Link, "a/b/object"),
        step(SyncDirectory, "a/b"),
    ];
    assert_eq!(recorder.take(), first);
    // The same directory again costs one sync; an object that is there is made durable before it is told of.
    let (made, linked) = first.split_at(7);
    for want in [Outcome::Refused(PutRefused::Exists), Outcome::Refused(PutRefused::Exists)] {
        assert_eq!(store.put(&object, &payload()).await, want);
        assert_eq!(recorder.take(), [&made[..3], linked].concat());
    }
    // Another process cannot know that the directories are durable: it syncs them all.
    let (other, recorder) = self::store(dir.path());
    assert_eq!(other.put(&object, &payload()).await, Outcome::Refused(PutRefused::Exists));
    assert_eq!(recorder.take(), first);
}

#[tokio::test]
async fn i1_a_failed_write_or_sync_is_unknown_and_its_file_is_never_synced_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    for (attempt, step) in
        [DiskStep::CreateTemporary, DiskStep::Write, DiskStep::SyncFile].into_iter().enumerate()
    {
        let object = key(&format!("a/{attempt}"));
        recorder.fail(step, "", Errno::IO);
        assert!(is_unknown(&store.put(&object, &payload()).await), "{step:?}");
        assert_eq!(store.head(&object).await, Err(GetError::NotFound), "{step:?}");
        assert_eq!(temporaries(dir.path()), 0, "{step:?}");
        recorder.take();
        // The repeat has a temporary of its own.
        assert!(store.put(&object, &payload()).await.is_done());
        assert_eq!(recorder.take_of(DiskStep::CreateTemporary).len(), 1);
        assert_eq!(store.get(&object, Span::Whole { max: 99 }).await, Ok(payload().to_bytes()));
    }
    assert_eq!(store.health(), StoreHealth::Well);
}

#[tokio::test]
async fn i1_a_directory_whose_sync_failed_is_never_synced_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    let object = key("a/object");
    recorder.fail(DiskStep::SyncDirectory, "a", Errno::IO);
    assert!(is_unknown(&store.put(&object, &payload()).await));
    recorder.take();
    for _ in 0..2 {
        assert!(is_unknown(&store.put(&object, &payload()).await), "not even `Exists` can be told");
    }
    assert_eq!(recorder.take_of(DiskStep::SyncDirectory), Vec::<String>::new());
    assert!(matches!(store.health(), StoreHealth::SyncFailed { .. }));
    // Other places go on.
    assert!(store.put(&key("b/object"), &payload()).await.is_done());
    // After a restart the object is decided: it was linked.
    let (store, _) = self::store(dir.path());
    assert_eq!(store.put(&object, &payload()).await, Outcome::Refused(PutRefused::Exists));
    assert_eq!(decide_exists(&store, &object, &payload()).await, Ok(Existing::Ours));
    assert_eq!(store.health(), StoreHealth::Well);
}

#[tokio::test]
async fn a_directory_entry_that_may_be_lost_is_not_built_upon() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    recorder.fail(DiskStep::SyncDirectory, "", Errno::IO);
    let object = key("a/object");
    for _ in 0..2 {
        assert!(is_unknown(&store.put(&object, &payload()).await));
        assert_eq!(store.head(&object).await, Err(GetError::NotFound));
    }
}

#[tokio::test]
async fn a_full_quota_is_refused_and_shown_until_a_write_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    let steps = [DiskStep::CreateTemporary, DiskStep::Write, DiskStep::SyncFile, DiskStep::Link];
    for (attempt, step) in steps.into_iter().enumerate() {
        let object = key(&format!("a/{attempt}"));
        recorder.fail(step, "", Errno::DQUOT);
        let outcome = store.put(&object, &payload()).await;
        assert!(matches!(outcome, Outcome::Refused(PutRefused::Full { .. })), "{step:?}: {outcome:?}");
        assert!(matches!(store.health(), StoreHealth::Full { .. }));
        assert_eq!(store.head(&object).await, Err(GetError::NotFound));
        assert_eq!(temporaries(dir.path()), 0);
        assert!(store.put(&object, &payload()).await.is_done());
        assert_eq!(store.health(), StoreHealth::Well);
    }
}

#[tokio::test]
async fn a_full_disk_is_refused_and_heals_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    recorder.fail(DiskStep::SyncFile, "", Errno::NOSPC);
    let outcome = store.put(&key("a/1"), &payload()).await;
    assert!(matches!(outcome, Outcome::Refused(PutRefused::Full { .. })), "{outcome:?}");
    // The file system says that there is room (again): no write is needed to see that.
    assert_eq!(store.health(), StoreHealth::Well);
}

/// A file system that is really full. Needs the right to mount one.
#[tokio::test]
async fn a_disk_that_is_really_full_heals_when_room_is_made() {
    struct Mounted(tempfile::TempDir);
    impl Drop for Mounted {
        fn drop(&mut self) {
            Command::new("umount").arg(self.0.path()).status().expect("umount runs");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "mink-test"]).arg(dir.path()).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this process may not mount a file system");
        return;
    }
    let mounted = Mounted(dir);
    let (store, _) = store(mounted.0.path());
    let large = Payload::from(bytes::Bytes::from(vec![7_u8; 600 << 10]));
    assert!(store.put(&key("a/1"), &large).await.is_done());
    for _ in 0..3 {
        let outcome = store.put(&key("a/2"), &large).await;
        assert!(matches!(outcome, Outcome::Refused(PutRefused::Full { .. })), "{outcome:?}");
        assert!(matches!(store.health(), StoreHealth::Full { .. }));
        assert_eq!(temporaries(mounted.0.path()), 0, "what did not fit is given back");
    }
    assert!(store.delete(&[key("a/1")]).await.iter().all(|(_, outcome)| outcome.is_done()));
    assert!(store.put(&key("a/2"), &large).await.is_done());
    assert_eq!(store.health(), StoreHealth::Well);
}

#[tokio::test]
async fn deletes_are_synced_once_per_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (store, recorder) = store(dir.path());
    let keys = ["a/1", "a/2", "b/1", "c/none"].map(key);
    for object in keys.iter().take(3) {
        assert!(store.put(object, &payload()).await.is_done());
    }
    recorder.take();
    recorder.fail(DiskStep::SyncDirectory, "b", Errno::IO);
    let outcomes = store.delete(&keys).await;
    let done: Vec<bool> = outcomes.iter().map(|(_, outcome)| outcome.is_done()).collect();
    assert_eq!(done, [true, true, false, true]);
    assert!(matches!(outcomes.get(2), Some((_, Outcome::Unknown(_)))));
    assert_eq!(recorder.take_of(DiskStep::SyncDirectory), ["a", "b"]);
}

#[tokio::test]
async fn no_symbolic_link_below_the_root_is_followed() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), b"secret").unwrap();
    let root = dir.path().join("root");
    let (mut store, _) = store(&root);
    std::os::unix::fs::symlink(outside.path(), root.join("dir")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), root.join("leaf")).unwrap();
    for openat2 in [true, false] {
        if !openat2 {
            Arc::get_mut(&mut store.disk).expect("not shared now").root.forbid_openat2();
        }
        for object in ["dir/secret", "leaf"] {
            let read = store.get(&key(object), Span::Whole { max: 99 }).await;
            assert!(read.is_err(), "{object}: {read:?}");
            assert!(store.head(&key(object)).await.is_err());
        }
        let outcome = store.put(&key("dir/new"), &payload()).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        let deleted = store.delete(&[key("dir/secret")]).await;
        assert!(matches!(deleted.first(), Some((_, Outcome::Refused(_)))), "{deleted:?}");
        for prefix in ["dir", "leaf"] {
            let page = store.list(&key(prefix), None, 10).await.expect("a page");
            assert_eq!(page.entries, []);
        }
        assert!(store.list(&key("dir/s"), None, 10).await.is_err());
        // A link in the place of an object is there, so it is not replaced either.
        assert_eq!(store.put(&key("leaf"), &payload()).await, Outcome::Refused(PutRefused::Exists));
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn temporaries_are_hidden_and_out_of_reach() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = store(dir.path());
    let hidden = key(&format!("{}/x", scratch::FOLDER));
    assert!(matches!(store.put(&hidden, &payload()).await, Outcome::Refused(PutRefused::Other { .. })));
    assert_eq!(store.head(&hidden).await, Err(GetError::NotFound));
    let temporary = store.disk.scratch.create().expect("a temporary");
    for prefix in [scratch::FOLDER.to_owned(), format!("{}/x", scratch::FOLDER)] {
        let page = store.list(&key(&prefix), None, 10).await.expect("a page");
        assert_eq!((page.entries, page.foreign), (Vec::new(), 0));
    }
    drop(temporary);
    assert_eq!(temporaries(dir.path()), 0);
}

#[tokio::test]
async fn only_temporaries_of_dead_processes_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(scratch::FOLDER);
    std::fs::create_dir_all(folder.join("dead")).unwrap();
    std::fs::write(folder.join("dead.lock"), b"").unwrap();
    std::fs::write(folder.join("dead/1"), b"half").unwrap();
    let (living, _) = store(dir.path());
    assert!(!folder.join("dead").exists() && !folder.join("dead.lock").exists());
    let (other, _) = store(dir.path());
    assert!(living.put(&key("a/1"), &payload()).await.is_done());
    assert_eq!(other.put(&key("a/1"), &payload()).await, Outcome::Refused(PutRefused::Exists));
    drop((living, other));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "an orderly end leaves nothing");
}

#[tokio::test]
async fn a_directory_that_vanished_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = store(dir.path());
    assert!(store.put(&key("a/b/1"), &payload()).await.is_done());
    std::fs::remove_dir_all(dir.path().join("a")).unwrap();
    assert!(store.put(&key("a/b/1"), &payload()).await.is_done());
}

/// The child of the next test: one put between two marks on stdout.
#[tokio::test]
#[ignore = "run by i1_strace_shows_fdatasync_link_directory_sync_answer"]
async fn strace_child() {
    let dir = std::env::var("MINK_TEST_STRACE_DIR").expect("the parent names the directory");
    let store = FileStore::open(Path::new(&dir), &service(), None).expect("the store opens");
    println!("mark-begin");
    assert!(store.put(&key("a/object"), &payload()).await.is_done());
    println!("mark-answer");
}

#[test]
fn i1_strace_shows_fdatasync_link_directory_sync_answer() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let run = Command::new("strace")
        .args(["-f", "-y", "-s", "64", "-e", "trace=write,writev,fdatasync,fsync,linkat,link,unlinkat", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "file::tests::strace_child", "--ignored", "--nocapture", "--test-threads=1"])
        .env("MINK_TEST_STRACE_DIR", dir.path().join("store"))
        .output();
    let strict = std::env::var("MINK_TEST_STRICT").is_ok_and(|strict| strict == "1");
    let output = match run {
        Ok(output) => output,
        Err(error) if strict => panic!("strace does not run: {error}"),
        Err(error) => {
            eprintln!("skipped: strace does not run: {error}");
            return;
        }
    };
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("Operation not permitted") && !strict {
        eprintln!("skipped: strace may not trace here: {words}");
        return;
    }
    assert!(output.status.success(), "{words}\n{}", String::from_utf8_lossy(&output.stdout));
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str, from: usize| {
        let found = lines.iter().skip(from).position(|line| line.contains(what));
        from + found.unwrap_or_else(|| panic!("no {what} after line {from} of\n{text}"))
    };
    let begin = at("mark-begin", 0);
    let write = at("some bytes", begin);
    let sync_file = at("fdatasync(", write);
    let link = at("linkat(", sync_file);
    let sync_dir = at("fsync(", link);
    let answer = at("mark-answer", sync_dir);
    // A call that another thread interrupted in the trace ends on a line of its own.
    let end = if lines[sync_dir].contains("<unfinished") { at("fsync resumed", sync_dir) } else { sync_dir };
    assert!(end < answer, "{text}");
    assert!(lines[sync_file].contains(scratch::FOLDER), "{}", lines[sync_file]);
    assert!(lines[link].contains("\"object\""), "{}", lines[link]);
    assert!(lines[sync_dir].contains("/store/a>"), "{}", lines[sync_dir]);
}
