//! `mink group`: consumer groups, how far they have read, and where they go on.
//!
//! Lives on: the command's task.
//! Invariants: offsets are moved, and groups deleted, only while nobody is a member; a dry run changes nothing.
mod reset;

use crate::address::{Kafka, NodeAddress};
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use clap::{Args, Subcommand};
use mink_client::{Client, ClientError, ErrorCode, ErrorKind, GroupDescription, GroupMember, Position};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    #[command(subcommand)]
    verb: Verb,
}

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  mink group describe app
  mink group describe app --output csv        a line per partition: committed offset, end, lag

The lag is the number of records behind the committed offset. A partition that a member has and that nothing was
committed for has none. Members whose assignment is of another protocol than the consumers' are not shown: -.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List groups
    #[command(after_help = "Example:\n  mink group list")]
    List {
        #[command(flatten)]
        node: NodeAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Describe a group: members, and per partition the committed offset, the end and the lag
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe {
        /// The group's id (group.id of its consumers)
        group: String,
        #[command(flatten)]
        node: NodeAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Set from where a group without members goes on
    ResetOffsets(reset::ResetArgs),
    /// Delete a group without members, and its offsets
    #[command(after_help = "Example:\n  mink group delete app")]
    Delete {
        /// The group's id
        group: String,
        #[command(flatten)]
        node: NodeAddress,
    },
}

pub(crate) async fn run(args: GroupArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => {
            let kafka = node.kafka().await?;
            let groups = kafka.client.groups().await.map_err(Failure::kafka(&kafka.address))?;
            let mut printer = printer(output.output, &["group", "state", "protocol_type"])?;
            for group in groups {
                printer.row(vec![group.group.into(), group.state.into(), group.protocol_type.into()])?;
            }
            printer.finish()
        }
        Verb::Describe { group, node, output } => {
            let Kafka { client, address } = node.kafka().await?;
            let failed = Failure::kafka(&address);
            let found = find(&client, &group).await.map_err(&failed)?;
            let found = found.ok_or_else(|| unknown(&group))?;
            if let Err(why) = &found.members {
                eprintln!("the members are not shown, since an assignment cannot be read: {why}");
            }
            let lines = lines(&client, &group, &found).await.map_err(&failed)?;
            describe(&group, &found, &lines, output.output)
        }
        Verb::ResetOffsets(args) => reset::run(args).await,
        Verb::Delete { group, node } => {
            let kafka = node.kafka().await?;
            kafka.client.delete_group(&group).await.map_err(|error| match error.code() {
                Some(ErrorCode::GroupIdNotFound) => unknown(&group),
                Some(ErrorCode::NonEmptyGroup) => occupied(&group),
                _ => Failure::kafka(&kafka.address)(error),
            })?;
            eprintln!("deleted group {group} and its offsets");
            Ok(())
        }
    }
}

fn unknown(group: &str) -> Failure {
    Failure::failed(format!("there is no group {group}; `mink group list` shows those that are"))
}

fn occupied(group: &str) -> Failure {
    Failure::failed(format!(
        "group {group} has members, and offsets are changed only while it has none: stop its consumers first (`mink group describe {group}` names those that can be read), or wait for their sessions to end"
    ))
}

/// A group as far as it can be read.
#[derive(Debug)]
struct Found {
    state: String,
    protocol_type: String,
    /// How the leader assigns; none if the members cannot be read.
    protocol: Option<String>,
    /// Or why they cannot be read: an assignment is bytes between a leader and its members, and need not be what consumers use.
    members: Result<Vec<GroupMember>, String>,
}

impl From<GroupDescription> for Found {
    fn from(found: GroupDescription) -> Found {
        let GroupDescription { state, protocol_type, protocol, members } = found;
        Found { state, protocol_type, protocol: Some(protocol), members: Ok(members) }
    }
}

impl Found {
    /// Those that can be read.
    fn readable(&self) -> &[GroupMember] {
        self.members.as_deref().unwrap_or_default()
    }

    /// Whether somebody is a member. Of members that cannot be read the state tells.
    fn is_occupied(&self) -> bool {
        match &self.members {
            Ok(members) => !members.is_empty(),
            Err(_) => !matches!(self.state.as_str(), "Empty" | "Dead"),
        }
    }
}

/// A group, without its members if what they were assigned cannot be read; none if there is no such group.
async fn find(client: &Client, group: &str) -> Result<Option<Found>, ClientError> {
    match client.describe_group(group).await {
        Err(error) if error.kind() == ErrorKind::Protocol => {
            let listed = client.groups().await?.into_iter().find(|listed| listed.group == group);
            Ok(listed.map(|listed| Found {
                state: listed.state,
                protocol_type: listed.protocol_type,
                protocol: None,
                members: Err(error.to_string()),
            }))
        }
        ended => Ok(ended?.map(Found::from)),
    }
}

/// One partition of a group.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    topic: String,
    partition: i32,
    committed: Option<i64>,
    end: Option<i64>,
    member: Option<usize>,
}

impl Line {
    /// Records between what was committed and the end.
    fn lag(&self) -> Option<i64> {
        Some(self.end?.saturating_sub(self.committed?).max(0))
    }
}

/// Every partition that has an offset or a member, in order.
fn partitions(committed: BTreeMap<(String, i32), i64>, members: &[GroupMember]) -> Vec<Line> {
    let mut lines: BTreeMap<(String, i32), (Option<i64>, Option<usize>)> =
        committed.into_iter().map(|(key, offset)| (key, (Some(offset), None))).collect();
    for (at, member) in members.iter().enumerate() {
        for key in &member.assigned {
            lines.entry(key.clone()).or_default().1 = Some(at);
        }
    }
    let line =
        |((topic, partition), (committed, member))| Line { topic, partition, committed, end: None, member };
    lines.into_iter().map(line).collect()
}

async fn lines(client: &Client, group: &str, found: &Found) -> Result<Vec<Line>, ClientError> {
    let offsets = client.group_offsets(group).await?;
    let committed = offsets.into_iter().map(|one| ((one.topic, one.partition), one.offset)).collect();
    let mut lines = partitions(committed, found.readable());
    for line in &mut lines {
        // A member may have a topic that is gone by now.
        line.end = match client.find_topic(&line.topic).await? {
            Some(_) => client.offset(&line.topic, line.partition, Position::Latest).await?.offset,
            None => None,
        };
    }
    Ok(lines)
}

const COLUMNS: &[&str] = &["topic", "partition", "committed", "end", "lag", "member", "client", "host"];

fn row(line: &Line, members: &[GroupMember]) -> Vec<Value> {
    let member = line.member.and_then(|at| members.get(at));
    vec![
        line.topic.as_str().into(),
        line.partition.into(),
        line.committed.into(),
        line.end.into(),
        line.lag().into(),
        member.map(|member| member.member.as_str()).into(),
        member.map(|member| member.client.as_str()).into(),
        member.map(|member| member.host.as_str()).into(),
    ]
}

fn describe(group: &str, found: &Found, lines: &[Line], form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return Ok(writeln!(std::io::stdout(), "{}", whole(group, found, lines))?);
    }
    if form == Form::Table {
        let mut out = std::io::stdout().lock();
        let lag: i64 = lines.iter().filter_map(Line::lag).sum();
        let count =
            found.members.as_ref().map_or_else(|_| "-".to_owned(), |members| members.len().to_string());
        let unknown = lines.iter().filter(|line| line.committed.is_none()).count();
        let lag = match (unknown, lines.len()) {
            (0, _) => lag.to_string(),
            (unknown, all) if unknown == all => "not known, nothing is committed".to_owned(),
            (unknown, all) => {
                format!("{lag}, and not known for {unknown} of {all} partitions, which have no commit")
            }
        };
        writeln!(out, "group {group}: {}, {count} members, lag {lag}", found.state)?;
        for member in found.readable() {
            let instance = member.instance.as_ref().map(|id| format!(", instance {id}")).unwrap_or_default();
            let GroupMember { member, client, host, assigned, .. } = member;
            writeln!(out, "  {member}: client {client} at {host}{instance}, {} partitions", assigned.len())?;
        }
    }
    let mut printer = printer(form, COLUMNS)?;
    for line in lines {
        printer.row(row(line, found.readable()))?;
    }
    printer.finish()
}

/// All of it as one value; members that cannot be read are null.
fn whole(group: &str, found: &Found, lines: &[Line]) -> Value {
    let member = |member: &GroupMember| {
        json!({
            "member": member.member, "instance": member.instance, "client": member.client,
            "host": member.host, "partitions": member.assigned.len(),
        })
    };
    let members: Option<Vec<Value>> =
        found.members.as_ref().ok().map(|members| members.iter().map(member).collect());
    let partitions: Vec<Value> = lines
        .iter()
        .map(|line| {
            let values = COLUMNS.iter().map(|name| (*name).to_owned()).zip(row(line, found.readable()));
            Value::Object(values.collect())
        })
        .collect();
    json!({
        "group": group, "state": found.state, "protocol_type": found.protocol_type,
        "protocol": found.protocol, "members": members, "partitions": partitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(assigned: &[(&str, i32)]) -> GroupMember {
        GroupMember {
            member: "c-1".into(),
            instance: None,
            client: "c".into(),
            host: "127.0.0.1".into(),
            assigned: assigned.iter().map(|(topic, partition)| ((*topic).to_owned(), *partition)).collect(),
        }
    }

    #[test]
    fn every_partition_with_an_offset_or_a_member_is_shown_once_and_in_order() {
        let committed = BTreeMap::from([(("t".to_owned(), 1), 7), (("a".to_owned(), 0), 3)]);
        let members = [member(&[("t", 0), ("t", 1)])];
        let mut lines = partitions(committed, &members);
        let seen: Vec<_> = lines.iter().map(|line| (&*line.topic, line.partition, line.committed)).collect();
        assert_eq!(seen, [("a", 0, Some(3)), ("t", 0, None), ("t", 1, Some(7))]);
        assert_eq!(lines.iter().map(|line| line.member).collect::<Vec<_>>(), [None, Some(0), Some(0)]);
        lines[0].end = Some(10);
        lines[1].end = Some(10);
        lines[2].end = Some(5);
        // Records may have been deleted behind the end: no lag is below 0.
        assert_eq!(lines.iter().map(Line::lag).collect::<Vec<_>>(), [Some(7), None, Some(0)]);
    }

    #[test]
    fn a_description_as_json_has_members_and_partitions() {
        let found = Found {
            state: "Stable".into(),
            protocol_type: "consumer".into(),
            protocol: Some("range".into()),
            members: Ok(vec![member(&[("t", 0)])]),
        };
        let mut lines = partitions(BTreeMap::from([(("t".to_owned(), 0), 4)]), found.readable());
        lines[0].end = Some(6);
        let value = whole("g", &found, &lines);
        assert_eq!(value["partitions"][0]["lag"], 2);
        assert_eq!(value["partitions"][0]["client"], "c");
        assert_eq!(value["members"][0]["partitions"], 1);
        assert_eq!((&value["group"], &value["state"]), (&json!("g"), &json!("Stable")));
    }

    #[test]
    fn members_that_cannot_be_read_are_none_that_are_shown_and_occupy_the_group() {
        let mut found = Found {
            state: "Stable".into(),
            protocol_type: "consumer".into(),
            protocol: None,
            members: Err("1 byte, and no version".into()),
        };
        let lines = partitions(BTreeMap::from([(("t".to_owned(), 0), 4)]), found.readable());
        let value = whole("g", &found, &lines);
        assert_eq!((&value["members"], &value["protocol"]), (&Value::Null, &Value::Null));
        assert_eq!(value["partitions"][0]["committed"], 4);
        assert_eq!(value["partitions"][0]["member"], Value::Null);
        for (state, occupied) in
            [("Stable", true), ("PreparingRebalance", true), ("Empty", false), ("Dead", false)]
        {
            found.state = state.into();
            assert_eq!(found.is_occupied(), occupied, "{state}");
        }
        found.members = Ok(Vec::new());
        assert!(!found.is_occupied());
        found.members = Ok(vec![member(&[])]);
        assert!(found.is_occupied());
    }

    #[test]
    fn refusals_name_the_remedy() {
        assert!(unknown("g").words().contains("mink group list"));
        assert!(occupied("g").words().contains("stop its consumers"));
    }
}
