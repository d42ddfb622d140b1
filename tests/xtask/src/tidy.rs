//! Habits that a machine can check: each file opens with what it is for, files stay readable in one sitting, and nothing in the
//! repository leans on the place where it was written.
//!
//! Lives on: a developer's machine and CI.

use std::fs;
use std::path::{Path, PathBuf};

/// The line that files keep below, and how many are above it today. The number only ever falls.
const LINES: usize = 500;
const LONGER_THAN_LINES: usize = 2;

/// No file is longer than this.
const LINES_MAX: usize = 800;

/// Folders whose files are generated or hold data.
const GENERATED: &[&str] = &["core/mink-kafka-wire/src/messages", "core/mink-kafka-wire/tests/samples"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in
        fs::read_dir(folder).expect("a folder of the repository").map(|entry| entry.expect("an entry"))
    {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Path relative to the root, and text, of each hand-written Rust file.
fn sources() -> Vec<(String, String)> {
    let root = root().canonicalize().expect("the root exists");
    let mut files = Vec::new();
    for folder in ["core", "io", "shard", "frontends", "benches", "tests"] {
        rust_files(&root.join(folder), &mut files);
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("text"))
        })
        .filter(|(name, _)| !GENERATED.iter().any(|folder| name.starts_with(folder)))
        .collect()
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let bare: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(name, _)| name).collect();
    assert!(bare.is_empty(), "files without a //! header: {bare:#?}");
}

#[test]
fn files_stay_readable_in_one_sitting() {
    let lines: Vec<_> = sources().into_iter().map(|(name, text)| (text.lines().count(), name)).collect();
    let above = |bound| lines.iter().filter(|(count, _)| *count > bound).collect::<Vec<_>>();
    assert!(above(LINES_MAX).is_empty(), "split these: {:#?}", above(LINES_MAX));
    let long = above(LINES);
    assert!(long.len() <= LONGER_THAN_LINES, "split one of these: {long:#?}");
    assert!(
        long.len() == LONGER_THAN_LINES,
        "fewer than {LONGER_THAN_LINES} now: lower the number: {long:#?}"
    );
}

#[test]
fn nothing_is_left_unfinished_in_words() {
    let marks = [
        "TO".to_string() + "DO",
        "FIX".to_string() + "ME",
        "X".repeat(3),
        "unimple".to_string() + "mented!(",
    ];
    let mut faults = Vec::new();
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                faults.push(format!("{name}:{}: {line}", number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
