//! The table "cases and tests" of docs/faults.md names tests that exist, and a test for each case that it must hold.
//!
//! Lives on: a developer's machine and CI.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The cases that concern one node.
const CASES: &[(&str, &[u32])] = &[
    ("T", &[1, 2, 3, 4, 7, 9, 17, 18, 20]),
    ("P", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 27]),
    ("K", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 28, 29, 30]),
];

/// Rows of the table: the case, and the names of its tests.
fn rows() -> Vec<(String, Vec<String>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    let page = fs::read_to_string(page).expect("docs/faults.md");
    let table = page.split("## Cases and tests").nth(1).expect("the table's heading");
    table
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.strip_prefix("| ")?.split('|').map(str::trim).collect();
            let (case, tests) =
                (cells.first()?, cells.last().filter(|last| !last.is_empty()).or(cells.get(2))?);
            let number = case.split_once('-')?.1;
            number.parse::<u32>().ok()?;
            // Every second piece stands between backticks; those with a slash or a dot are files.
            let names = tests.split('`').skip(1).step_by(2).filter(|name| !name.contains(['/', '.']));
            Some(((*case).to_owned(), names.map(str::to_owned).collect()))
        })
        .collect()
}

/// Names of all functions of the project's Rust files.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let names = text.lines().filter_map(|line| {
                let (before, name) = line.split_once("fn ")?;
                let is_defined =
                    before.split_whitespace().all(|word| word.starts_with("pub") || word == "async");
                name.split(['(', '<']).next().filter(|_| is_defined).map(str::to_owned)
            });
            found.extend(names);
        }
    }
}

#[test]
fn the_table_of_faults_names_tests_that_exist() {
    let mut found = BTreeSet::new();
    for folder in ["core", "io", "shard", "frontends", "tests"] {
        functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut found);
    }
    let rows = rows();
    let mut faults = Vec::new();
    for (case, names) in &rows {
        if names.is_empty() {
            faults.push(format!("{case} has no test"));
        }
        faults.extend(
            names.iter().filter(|name| !found.contains(*name)).map(|name| format!("{case}: no test {name}")),
        );
    }
    for (letter, numbers) in CASES {
        for number in *numbers {
            let case = format!("{letter}-{number}");
            if !rows.iter().any(|(row, _)| *row == case) {
                faults.push(format!("{case} is not in the table"));
            }
        }
    }
    assert!(faults.is_empty(), "docs/faults.md: {}", faults.join("; "));
}
