//! s3stream's commits as commands of the log.
//!
//! Lives on: the service runtime.
//! Invariants: I12: a commit is one request id, and is answered only when it is decided; `Unknown` does not reach s3stream.
use crate::compaction;
use async_trait::async_trait;
use mink_metadata::{
    Command, CommandResult, CommittedObject, CommittedRange, RefusalKind, RewrittenObject, RewrittenRange,
};
use mink_rt::fail_point;
use mink_sql::Metadata;
use mink_types::Incarnation;
use s3stream::{CommitEnd, Commits, CommitsStopped, StreamCommit, StreamRewrite};

/// Commits in the name of one incarnation.
#[derive(Debug)]
pub(crate) struct NodeCommits {
    pub(crate) metadata: Metadata,
    pub(crate) me: Incarnation,
}

/// The command that a commit becomes.
pub(crate) fn command(by: Incarnation, commit: StreamCommit) -> Command {
    let objects = commit.objects.into_iter().map(|object| CommittedObject {
        id: object.id,
        length: object.length,
        footer_length: object.footer_length,
        checksum: object.checksum,
        ranges: object
            .ranges
            .into_iter()
            .map(|range| CommittedRange {
                bucket: range.bucket,
                epoch: range.epoch,
                start: range.start,
                end: range.end,
                max_timestamp: range.max_timestamp,
                last_commit_time: range.last_commit_time,
                bytes: range.bytes,
            })
            .collect(),
    });
    Command::Commit { by, source: commit.source.incarnation, objects: objects.collect(), trim: commit.trim }
}

#[async_trait]
impl Commits for NodeCommits {
    async fn commit(&self, commit: StreamCommit) -> Result<CommitEnd, CommitsStopped> {
        fail_point("commit.before");
        self.submit(command(self.me, commit)).await
    }

    async fn rewrite(&self, rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped> {
        self.submit(compaction::command(self.me, rewrite)).await
    }
}

impl NodeCommits {
    async fn submit(&self, command: Command) -> Result<CommitEnd, CommitsStopped> {
        match self.metadata.submit(command).await {
            Ok(CommandResult::Done(_)) => Ok(CommitEnd::Applied),
            Ok(CommandResult::Refused(refusal)) => Ok(CommitEnd::Refused {
                fenced: refusal.kind() == RefusalKind::Fenced,
                reason: refusal.to_string(),
            }),
            Err(_) => Err(CommitsStopped),
        }
    }
}

/// An object of a rewrite. Times and bytes of its ranges follow from those that they replace.
pub(crate) fn rewritten(object: s3stream::CommittedObject) -> RewrittenObject {
    let moved = |range: s3stream::CommittedRange| RewrittenRange {
        bucket: range.bucket,
        epoch: range.epoch,
        start: range.start,
        end: range.end,
    };
    RewrittenObject {
        id: object.id,
        length: object.length,
        footer_length: object.footer_length,
        checksum: object.checksum,
        ranges: object.ranges.into_iter().map(moved).collect(),
    }
}
