//! Kafka's answers as they were recorded: one file per API, one line for all versions that are answered alike.
//! Lives on: anywhere; reads and writes `golden/kafka-4.4`.
//! Owns: those files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::asker::Answers;

const HEADER: &str =
    "Apache Kafka 4.4. Left out: what is null, zero, empty or all -1. Recorded with MINK_E2E_RECORD=1.";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/kafka-4.4")
}

/// The versions that are answered with one line.
type Alike<'a> = Vec<(Vec<i16>, &'a str)>;

/// The text of each file, by API.
pub(super) fn files(answers: &Answers) -> BTreeMap<String, String> {
    let mut lines: BTreeMap<(&str, &str), Alike<'_>> = BTreeMap::new();
    for ((api, case, version), line) in answers {
        let alike = lines.entry((api, case)).or_default();
        match alike.iter_mut().find(|(_, other)| other == line) {
            Some((versions, _)) => versions.push(*version),
            None => alike.push((vec![*version], line)),
        }
    }
    let mut files = BTreeMap::new();
    for ((api, case), alike) in lines {
        let file: &mut String =
            files.entry(api.to_owned()).or_insert_with(|| format!("# {api} of {HEADER}\n"));
        let _ = writeln!(file, "== {case}");
        for (versions, line) in alike {
            let _ = writeln!(file, "{} {line}", versions_text(&versions));
        }
    }
    files
}

/// `3-7,9`.
fn versions_text(versions: &[i16]) -> String {
    let mut text = String::new();
    let mut first = 0;
    for (at, version) in versions.iter().enumerate() {
        if versions.get(at + 1) == Some(&(version + 1)) {
            continue;
        }
        let comma = if first == 0 { "" } else { "," };
        let _ = match versions[first] {
            from if from == *version => write!(text, "{comma}{version}"),
            from => write!(text, "{comma}{from}-{version}"),
        };
        first = at + 1;
    }
    text
}

fn parse_versions(text: &str) -> Vec<i16> {
    let number = |text: &str| text.parse::<i16>().expect("a version");
    text.split(',')
        .flat_map(|range| match range.split_once('-') {
            Some((from, to)) => number(from)..=number(to),
            None => number(range)..=number(range),
        })
        .collect()
}

/// Reads one file.
fn parse(api: &str, text: &str, answers: &mut Answers) {
    let mut case = "";
    for line in text.lines().skip(1) {
        if let Some(name) = line.strip_prefix("== ") {
            case = name;
            continue;
        }
        let (versions, line) = line.split_once(' ').expect("versions and an answer");
        for version in parse_versions(versions) {
            answers.insert((api.to_owned(), case.to_owned(), version), line.to_owned());
        }
    }
}

/// All that is recorded for these APIs.
pub(super) fn read(is_asked: impl Fn(&str) -> bool) -> Answers {
    let mut answers = Answers::new();
    for entry in fs::read_dir(folder()).expect("the recording is part of the repository") {
        let path = entry.unwrap().path();
        let api = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if is_asked(&api) {
            parse(&api, &fs::read_to_string(&path).unwrap(), &mut answers);
        }
    }
    answers
}

/// Replaces the files of the APIs that were asked.
pub(super) fn write(answers: &Answers) {
    fs::create_dir_all(folder()).unwrap();
    for (api, text) in files(answers) {
        fs::write(folder().join(format!("{api}.txt")), text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_reads_back() {
        let lines = [(3, "a"), (4, "a"), (5, "b"), (6, "a"), (7, "a"), (8, "a")];
        let answers: Answers = lines
            .iter()
            .map(|(version, line)| (("X".into(), "c d".into(), *version), (*line).into()))
            .collect();
        let text = &files(&answers)["X"];
        assert!(text.ends_with("== c d\n3-4,6-8 a\n5 b\n"), "{text}");
        let mut read = Answers::new();
        parse("X", text, &mut read);
        assert_eq!(read, answers);
    }
}
