//! `mink group reset-offsets`: from where a group without members goes on.
//!
//! Lives on: the command's task.
//! Invariants: offsets of a partition stay within what its log holds; all of a reset is committed in one request, or nothing is.
use super::{Found, find, occupied, unknown};
use crate::address::{Kafka, NodeAddress};
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use crate::read::{From, from};
use clap::Args;
use mink_client::{Client, ClientError, ErrorCode, GroupOffset, Position};

const EXAMPLES: &str = "\
Examples:
  mink group reset-offsets app --topic events --to earliest
  mink group reset-offsets app --topic events --to 2026-01-31T10:00:00Z --dry-run
  mink group reset-offsets app --topic kafka.events --partition 2 --to 1000

An offset that a partition does not hold becomes the nearest that it does. A group that does not exist is made.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResetArgs {
    /// The group's id
    group: String,
    /// The topic as Kafka clients name it, or its table (DATABASE.TABLE)
    #[arg(long, value_name = "TOPIC")]
    topic: String,
    /// One partition only
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    /// earliest, latest, an offset, a time (2026-01-31T10:00:00Z), or ms since 1970 (@1700000000000)
    #[arg(long, value_name = "WHERE", value_parser = from)]
    to: From,
    /// Show what would be set, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    node: NodeAddress,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: ResetArgs) -> Result<(), Failure> {
    let kafka = args.node.kafka().await?;
    let (client, failed) = (&kafka.client, Failure::kafka(&kafka.address));
    // Told before the work; a member that comes meanwhile makes the server refuse it.
    let found = find(client, &args.group).await.map_err(&failed)?;
    if found.as_ref().is_some_and(Found::is_occupied) {
        return Err(occupied(&args.group));
    }
    let before = client.group_offsets(&args.group).await.map_err(&failed)?;
    let mut offsets = Vec::new();
    let (topic, partitions) = partitions(&kafka, &args).await?;
    for partition in partitions {
        let offset = target(client, &topic, partition, args.to).await.map_err(&failed)?;
        offsets.push(GroupOffset { topic: topic.clone(), partition, offset });
    }
    if !args.dry_run {
        client.set_group_offsets(&args.group, &offsets).await.map_err(|error| match error.code() {
            Some(ErrorCode::UnknownMemberId | ErrorCode::RebalanceInProgress) => occupied(&args.group),
            Some(ErrorCode::GroupIdNotFound) => unknown(&args.group),
            _ => failed(error),
        })?;
    }
    let mut printer = printer(args.output.output, &["topic", "partition", "before", "after"])?;
    for one in &offsets {
        let same = |other: &&GroupOffset| (&other.topic, other.partition) == (&one.topic, one.partition);
        let was = before.iter().find(same).map(|found| found.offset);
        printer.row(vec![one.topic.as_str().into(), one.partition.into(), was.into(), one.offset.into()])?;
    }
    printer.finish()?;
    if args.dry_run {
        eprintln!("nothing was changed; without --dry-run it is");
    }
    Ok(())
}

/// The topic that is meant, by its own name, and the partitions of it.
async fn partitions(kafka: &Kafka, args: &ResetArgs) -> Result<(String, Vec<i32>), Failure> {
    let found = kafka.client.find_topic_or_table(&args.topic).await;
    let found = found.map_err(Failure::kafka(&kafka.address))?;
    let found = found.ok_or_else(|| {
        Failure::failed(format!(
            "there is no topic {}; `mink table list` shows those that are (the table kafka.NAME is the topic NAME)",
            args.topic
        ))
    })?;
    let all = found.partitions.iter().map(|partition| partition.index);
    let chosen: Vec<i32> = all.filter(|index| args.partition.is_none_or(|one| one == *index)).collect();
    if let (Some(partition), true) = (args.partition, chosen.is_empty()) {
        let count = found.partitions.len();
        return Err(Failure::usage(format!(
            "topic {} has no partition {partition}; it has {count}, counted from 0",
            args.topic
        )));
    }
    Ok((found.name, chosen))
}

/// The offset that is meant, within what the partition holds.
async fn target(client: &Client, topic: &str, partition: i32, to: From) -> Result<i64, ClientError> {
    let find = async |position| {
        let found = client.offset(topic, partition, position).await?;
        Ok::<_, ClientError>(found.offset)
    };
    let end = find(Position::Latest).await?.unwrap_or(0);
    match to {
        From::Position(position) => Ok(find(position).await?.unwrap_or(end)),
        From::Offset(offset) => {
            let start = find(Position::Earliest).await?.unwrap_or(0);
            Ok(offset.min(end).max(start))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ResetArgs,
    }

    #[test]
    fn where_a_group_goes_on_is_a_word_an_offset_or_a_time_and_must_be_said() {
        let parse = |words: &[&str]| {
            let all = ["reset", "g", "--topic", "t"].iter().chain(words);
            Line::try_parse_from(all).map(|line| line.args.to)
        };
        assert_eq!(parse(&["--to", "earliest"]).unwrap(), From::Position(Position::Earliest));
        assert_eq!(parse(&["--to", "latest", "--dry-run"]).unwrap(), From::Position(Position::Latest));
        assert_eq!(parse(&["--to", "12", "--partition", "1"]).unwrap(), From::Offset(12));
        let time = parse(&["--to", "2026-01-31T10:00:00Z"]).unwrap();
        assert_eq!(time, From::Position(Position::AtOrAfter(1_769_853_600_000)));
        assert!(parse(&[]).is_err() && parse(&["--to", "soon"]).is_err() && parse(&["--to=-1"]).is_err());
    }
}
