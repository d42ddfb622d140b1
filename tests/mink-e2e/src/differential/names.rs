//! What two servers can't have in common (ids, addresses, names of one run) under names that they can.
//! Lives on: anywhere (pure).
//! Owns: the names given so far in one run of a script.
//! Invariants: a value that is not the server's own stays as it is.

use mink_kafka_wire::Uuid;

use super::tree::Tree;

/// Names of so many letters are not written out.
const LONG: [usize; 2] = [250, 249];
const UUID_LENGTH: usize = 36;
/// Ids that the scripts make up begin so, and stay.
const MADE_UP: &str = "00000000-";

/// No server says an earlier time of its own, in ms since 1970, and no script a later one that is answered.
const SERVER_TIME_MIN: i64 = 1_750_000_000_000;

/// Maps the values of one server in one run.
#[derive(Debug)]
pub(super) struct Names {
    /// The server's node id.
    pub(super) node: i32,
    /// The server's port.
    pub(super) port: i32,
    /// The first epoch of every partition.
    pub(super) epoch: i32,
    /// Ends every name that the script gives in this run, so that no two runs meet.
    pub(super) suffix: String,
    topics: Vec<(String, String)>,
    uuids: Vec<String>,
    producers: Vec<String>,
    sessions: Vec<String>,
}

impl Names {
    pub(super) fn new(node: i32, port: i32, epoch: i32, suffix: String) -> Self {
        Self {
            node,
            port,
            epoch,
            suffix,
            topics: Vec::new(),
            uuids: Vec::new(),
            producers: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// From now on this id is that of the topic `name`.
    pub(super) fn topic(&mut self, name: &str, id: Uuid) {
        self.topics.push((format!("{id:?}"), name.to_owned()));
    }

    /// Maps a whole answer.
    pub(super) fn map(&mut self, tree: &mut Tree, field: &str) {
        match tree {
            Tree::Leaf(text) => {
                let mapped = self.leaf(field, text);
                *text = mapped;
            }
            Tree::List(items) => items.iter_mut().for_each(|item| self.map(item, field)),
            Tree::Fields(fields) => fields.iter_mut().for_each(|(name, value)| self.map(value, name)),
        }
    }

    fn leaf(&mut self, field: &str, text: &str) -> String {
        let is_number = |number: i32| text == number.to_string();
        match field {
            "error_message" | "batch_index_error_message" | "documentation" if text != "\"\"" => {
                "<text>".to_owned()
            }
            "node_id" | "leader_id" | "controller_id" | "broker_id" | "replica_nodes" | "isr_nodes"
            | "offline_replicas"
                if is_number(self.node) =>
            {
                "<node>".to_owned()
            }
            "resource_name" if text == format!("\"{}\"", self.node) => "<node>".to_owned(),
            "port" if is_number(self.port) => "<port>".to_owned(),
            "cluster_id" => "<cluster>".to_owned(),
            "leader_epoch" => match text.parse::<i32>() {
                Ok(epoch) if epoch >= self.epoch => format!("<epoch:{}>", epoch - self.epoch),
                _ => text.to_owned(),
            },
            // The clock of the server; what the scripts send is older.
            "log_append_time_ms" if text.parse().is_ok_and(|time: i64| time >= SERVER_TIME_MIN) => {
                "<now>".to_owned()
            }
            "total_bytes" | "usable_bytes" if !text.starts_with('-') => "<bytes>".to_owned(),
            // Counts what happened in the cluster since it began.
            "finalized_features_epoch" if !text.starts_with('-') => "<number>".to_owned(),
            "log_dir" => "<folder>".to_owned(),
            "producer_id" if !text.starts_with('-') => numbered(&mut self.producers, "producer", text),
            "session_id" => numbered(&mut self.sessions, "session", text),
            _ => self.text(field, text),
        }
    }

    /// Any other value: without the suffix, and with ids mapped wherever they stand.
    fn text(&mut self, field: &str, text: &str) -> String {
        let text = text.replace(&self.suffix, "");
        let text = LONG
            .iter()
            .fold(text, |text, length| text.replace(&"x".repeat(*length), &format!("<x:{length}>")));
        let mut mapped = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            if let Some(id) = rest.get(..UUID_LENGTH).filter(|id| is_uuid(id) && !id.starts_with(MADE_UP)) {
                let topic = self.topics.iter().find(|(other, _)| other == id);
                let name = match topic {
                    Some((_, name)) => format!("<id:{name}>"),
                    None if field == "topic_id" => "<id>".to_owned(),
                    None => numbered(&mut self.uuids, "uuid", id),
                };
                mapped.push_str(&name);
                rest = &rest[UUID_LENGTH..];
            } else {
                let length = rest.chars().next().map_or(0, char::len_utf8);
                mapped.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
        mapped
    }
}

/// Numbers in the order in which the values came.
fn numbered(known: &mut Vec<String>, kind: &str, value: &str) -> String {
    let at = known.iter().position(|other| other == value).unwrap_or_else(|| {
        known.push(value.to_owned());
        known.len() - 1
    });
    format!("<{kind}:{}>", at + 1)
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(names: &mut Names, line: &str) -> String {
        let mut tree = Tree::of_line(line);
        names.map(&mut tree, "");
        tree.line()
    }

    #[test]
    fn ids_are_numbered_as_they_come_and_made_up_ones_stay() {
        let mut names = Names::new(7, 9092, 1, "-run".to_owned());
        let topic = Uuid([0xab; 16]);
        names.topic("a", topic);
        let line = format!(
            r#"{{member_id: "e2e-11111111-2222-3333-4444-555555555555", topic_id: {topic:?}, other: 00000000-0000-0000-0000-0000000000aa}}"#
        );
        let expected =
            r#"{member_id: "e2e-<uuid:1>", topic_id: <id:a>, other: 00000000-0000-0000-0000-0000000000aa}"#;
        assert_eq!(mapped(&mut names, &line), expected);
    }

    #[test]
    fn only_the_servers_own_addresses_and_names_are_hidden() {
        let mut names = Names::new(7, 9092, 1, "-run".to_owned());
        let line = r#"{node_id: 7, leader_id: 8, port: 9092, isr_nodes: [7, 3], name: "a-run", producer_id: -1, leader_epoch: 3}"#;
        let expected = r#"{node_id: <node>, leader_id: 8, port: <port>, isr_nodes: [<node>, 3], name: "a", producer_id: -1, leader_epoch: <epoch:2>}"#;
        assert_eq!(mapped(&mut names, line), expected);
    }
}
