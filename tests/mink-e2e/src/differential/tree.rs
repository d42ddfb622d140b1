//! Answers as trees: read from the `Debug` form of a message or from a recording, written on one line, compared field by field.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: what is left out (null, zero, empty, all -1) is what the type of the field tells anyway, so no difference is lost.

use std::fmt::Write as _;

/// Fields whose zero is written: they say what went wrong, or which of several it is about, or are mapped.
const ALWAYS: [&str; 7] =
    ["error_code", "leader_epoch", "partition_index", "index", "partition", "partition_id", "api_key"];
/// Fields that name an element of a list, the most telling first.
const NAMING: [&str; 12] = [
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "group_id",
    "api_key",
    "key",
    "partition_index",
    "index",
    "partition",
    "partition_id",
    "resource_name",
];
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Fields(Vec<(String, Tree)>),
}

/// One field in which two answers differ; `None` where it is null, zero, empty or not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) kafka: Option<String>,
    pub(super) mink: Option<String>,
}

impl Tree {
    /// Reads what `{:?}` of a message writes.
    pub(super) fn of_debug(text: &str) -> Self {
        Reader { text, at: 0, from_debug: true }.whole()
    }

    /// Reads what [`Tree::line`] wrote.
    pub(super) fn of_line(text: &str) -> Self {
        Reader { text, at: 0, from_debug: false }.whole()
    }

    /// The tree on one line.
    pub(super) fn line(&self) -> String {
        let mut line = String::new();
        self.write(&mut line);
        line
    }

    fn write(&self, line: &mut String) {
        match self {
            Self::Leaf(text) => line.push_str(text),
            Self::List(items) => {
                line.push('[');
                for (at, item) in items.iter().enumerate() {
                    line.push_str(if at == 0 { "" } else { ", " });
                    item.write(line);
                }
                line.push(']');
            }
            Self::Fields(fields) => {
                line.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    let _ = write!(line, "{}{name}: ", if at == 0 { "" } else { ", " });
                    value.write(line);
                }
                line.push('}');
            }
        }
    }

    /// Puts the elements of every list of structures into an order: neither server promises one.
    pub(super) fn sort(&mut self) {
        match self {
            Self::Leaf(_) => {}
            Self::List(items) => {
                items.iter_mut().for_each(Self::sort);
                if items.iter().any(|item| matches!(item, Self::Fields(_))) {
                    items.sort_by_cached_key(Self::line);
                }
            }
            Self::Fields(fields) => fields.iter_mut().for_each(|(_, value)| value.sort()),
        }
    }

    /// Drops those elements of every list whose name does not satisfy `is_own`.
    pub(super) fn keep(&mut self, is_own: &impl Fn(&str) -> bool) {
        match self {
            Self::Leaf(_) => {}
            Self::List(items) => {
                items.retain(|item| {
                    match item.field(&["name", "topic", "topic_name", "group_id", "resource_name", "api_key"])
                    {
                        Some(name) => is_own(name),
                        None => true,
                    }
                });
                for item in items.iter_mut() {
                    item.keep(is_own);
                }
            }
            Self::Fields(fields) => fields.iter_mut().for_each(|(_, value)| value.keep(is_own)),
        }
    }

    /// The first of these fields that is a leaf.
    fn field(&self, names: &[&str]) -> Option<&str> {
        let Self::Fields(fields) = self else { return None };
        names.iter().find_map(|name| {
            fields.iter().find_map(|(field, value)| match value {
                Self::Leaf(text) if field == name => Some(text.as_str()),
                _ => None,
            })
        })
    }

    /// What two answers differ in, in the order of their fields.
    pub(super) fn differences(kafka: &Self, mink: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        compare("", Some(kafka), Some(mink), &mut found);
        found
    }
}

fn compare(path: &str, kafka: Option<&Tree>, mink: Option<&Tree>, found: &mut Vec<Difference>) {
    match (kafka, mink) {
        (kafka, mink) if kafka == mink => {}
        (Some(Tree::Fields(kafka)), Some(Tree::Fields(mink))) => {
            compare_named(kafka, mink, found, |name| {
                if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
            });
        }
        (Some(Tree::List(kafka)), Some(Tree::List(mink))) => {
            compare_named(&named(kafka), &named(mink), found, |name| format!("{path}[{name}]"));
        }
        (kafka, mink) => found.push(Difference {
            path: path.to_owned(),
            kafka: kafka.map(Tree::line),
            mink: mink.map(Tree::line),
        }),
    }
}

fn compare_named(
    kafka: &[(String, Tree)],
    mink: &[(String, Tree)],
    found: &mut Vec<Difference>,
    path: impl Fn(&str) -> String,
) {
    let of = |side: &[(String, Tree)], name: &str| {
        side.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    for (name, value) in kafka {
        compare(&path(name), Some(value), of(mink, name).as_ref(), found);
    }
    for (name, value) in mink.iter().filter(|(name, _)| of(kafka, name).is_none()) {
        compare(&path(name), None, Some(value), found);
    }
}

/// Elements by what names them; a name that comes again gets a number.
fn named(items: &[Tree]) -> Vec<(String, Tree)> {
    let mut found: Vec<(String, Tree)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let name = item.field(&NAMING).map_or_else(|| at.to_string(), str::to_owned);
        let again = found.iter().filter(|(other, _)| other.split('#').next() == Some(&name)).count();
        let name = if again == 0 { name } else { format!("{name}#{}", again + 1) };
        found.push((name, item.clone()));
    }
    found
}

/// Reads both forms. What it can't read is a fault of the test, and panics.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The form that has the names of structures, and everything that can be left out.
    from_debug: bool,
}

impl Reader<'_> {
    fn whole(mut self) -> Tree {
        let (tree, _) = self.value();
        assert_eq!(self.at, self.text.len(), "something is left over: {}", self.rest());
        tree
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self, what: &str) -> bool {
        let is_there = self.rest().starts_with(what);
        self.at += if is_there { what.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, what: &str) {
        assert!(self.skip(what), "no {what:?} at {}", self.rest());
    }

    fn until(&mut self, ends: &[char]) -> String {
        let length = self.rest().find(ends).unwrap_or(self.rest().len());
        let text = self.rest()[..length].to_owned();
        self.at += length;
        text
    }

    /// A value, and whether it stood in `Some`.
    fn value(&mut self) -> (Tree, bool) {
        if self.skip("[") {
            return (Tree::List(self.list()), false);
        }
        if self.skip("{") {
            return (self.fields("}"), false);
        }
        let bare = self.until(&[',', '}', ']', ')', '(', ' ', '"']);
        if self.rest().starts_with('"') {
            let quoted = self.quoted();
            return (Tree::Leaf(bare + &quoted), false);
        }
        if self.skip(" { ") {
            return (self.fields(" }"), false);
        }
        if self.skip("(") {
            if bare == "Some" {
                let (inner, _) = self.value();
                self.expect(")");
                return (inner, true);
            }
            let inner = self.until(&[')']);
            self.expect(")");
            return (Tree::Leaf(format!("{bare}({inner})")), false);
        }
        (Tree::Leaf(bare), false)
    }

    fn quoted(&mut self) -> String {
        let mut escaped = false;
        for (at, char) in self.rest().char_indices().skip(1) {
            match char {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    let text = self.rest()[..=at].to_owned();
                    self.at += text.len();
                    return text;
                }
                _ => escaped = false,
            }
        }
        panic!("a text without an end: {}", self.rest());
    }

    fn list(&mut self) -> Vec<Tree> {
        let mut items = Vec::new();
        while !self.skip("]") {
            items.push(self.value().0);
            let _ = self.skip(", ");
        }
        items
    }

    fn fields(&mut self, end: &str) -> Tree {
        let mut fields = Vec::new();
        while !self.skip(end) {
            let name = self.until(&[':']);
            self.expect(": ");
            let (value, is_some) = self.value();
            if !self.from_debug || is_some || ALWAYS.contains(&name.as_str()) || !is_nothing(&value) {
                fields.push((name, value));
            }
            let _ = self.skip(", ");
        }
        Tree::Fields(fields)
    }
}

fn is_nothing(value: &Tree) -> bool {
    match value {
        Tree::Leaf(text) => ["None", "0", "false", "\"\"", "b\"\"", NIL].contains(&text.as_str()),
        Tree::List(items) => items.is_empty(),
        Tree::Fields(fields) => fields.iter().all(|(_, value)| *value == Tree::Leaf("-1".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_kafka_wire::messages::metadata::{MetadataResponse, MetadataResponseTopic};
    use mink_kafka_wire::messages::produce::PartitionProduceResponse;

    fn topic(name: &str, error_code: i16) -> MetadataResponseTopic {
        MetadataResponseTopic { error_code, name: Some(name.into()), ..MetadataResponseTopic::default() }
    }

    fn tree(topics: Vec<MetadataResponseTopic>) -> Tree {
        Tree::of_debug(&format!("{:?}", MetadataResponse { topics, ..MetadataResponse::default() }))
    }

    #[test]
    fn a_message_is_one_line_without_what_its_type_tells() {
        let partition = PartitionProduceResponse {
            error_message: Some("a \"b\", {c}".into()),
            ..PartitionProduceResponse::default()
        };
        let tree = Tree::of_debug(&format!("{partition:?}"));
        let line = r#"{index: 0, error_code: 0, log_append_time_ms: -1, log_start_offset: -1, error_message: "a \"b\", {c}"}"#;
        assert_eq!(tree.line(), line);
        assert_eq!(Tree::of_line(line), tree);
    }

    #[test]
    fn null_and_empty_are_told_apart() {
        let mut empty = topic("", 0);
        let null = MetadataResponseTopic { name: None, ..empty.clone() };
        empty.topic_authorized_operations = null.topic_authorized_operations;
        assert_ne!(tree(vec![null]), tree(vec![empty]));
    }

    #[test]
    fn differences_name_the_field_whatever_the_order() {
        let kafka = tree(vec![topic("a", 0), topic("b", 3)]);
        let mink = tree(vec![topic("b", 5), topic("a", 0), topic("a", 0)]);
        let found = Tree::differences(&kafka, &mink);
        let found: Vec<_> =
            found.iter().map(|one| (one.path.as_str(), one.kafka.as_deref(), one.mink.is_some())).collect();
        assert_eq!(
            found,
            [(r#"topics["b"].error_code"#, Some("3"), true), (r##"topics["a"#2]"##, None, true)]
        );
    }
}
