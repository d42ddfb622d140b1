//! The differences that stay, each with the key of its reason in `docs/compatibility.md`.
//! Lives on: anywhere; reads `golden/differences.txt`.
//! Owns: nothing.
//! Invariants: every entry is met by a difference, or the comparison fails: the list stays true.

use super::asker::Asked;
use super::tree::Difference;

const ABSENT: &str = "absent";
const LIST: &str = include_str!("../../golden/differences.txt");

/// Differences of one kind: a line `reason | API | case | path | Kafka | Mink` of the list, in which `*` stands for any text and
/// `absent` for null, zero, empty or not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    /// Stands in `docs/compatibility.md`, in square brackets.
    pub(super) reason: String,
    pub(super) api: String,
    case: String,
    path: String,
    kafka: String,
    mink: String,
}

/// The list, without its comments.
pub(super) fn list() -> Vec<Expected> {
    let text = std::env::var_os("MINK_E2E_DIFFERENCES").map_or_else(
        || LIST.to_owned(),
        |path| std::fs::read_to_string(path).expect("a list of differences"),
    );
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse).collect()
}

fn parse(line: &str) -> Expected {
    let mut fields = line.split(" | ").map(str::to_owned);
    let mut next = || fields.next().unwrap_or_else(|| panic!("too few fields: {line}"));
    let [reason, api, case, path, kafka, mink] = [next(), next(), next(), next(), next(), next()];
    assert_eq!(fields.next(), None, "too many fields: {line}");
    Expected { reason, api, case, path, kafka, mink }
}

impl Expected {
    pub(super) fn is_met_by(&self, (api, case, _): &Asked, difference: &Difference) -> bool {
        let of = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.to_owned());
        fits(&self.api, api)
            && fits(&self.case, case)
            && fits(&self.path, &difference.path)
            && fits(&self.kafka, &of(&difference.kafka))
            && fits(&self.mink, &of(&difference.mink))
    }
}

/// Whether a text fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| fits(rest, &text[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_the_whole_text() {
        for (pattern, text) in [("a*c", "abbc"), ("*", ""), ("a", "a"), ("*[*].x", "t[1].x"), ("a*", "a")] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abb"), ("a", "ab"), ("", "a"), ("*b", "abc")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
