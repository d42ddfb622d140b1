//! The driver: the one task that appends to the log, follows it, applies it, and answers whoever waits.
//!
//! Lives on: service runtime, one per node.
//! Owns: the state that rows are applied to; the commands that wait for their result.
//! Talks to: the command log; `Metadata` handles (queue in, views out).
//! Invariants: I12 (an append whose answer was lost is looked up and repeated under the same ids, never failed and never
//! renamed), I13 (a row that does not follow ends the driver). One row is in flight at a time; every queue is bounded.
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{Either, select};
use mink_metadata::{ApplyError, Command, CommandResult, Group, GroupError, Row, State};
use mink_rt::mutant;
use mink_types::{Outcome, RequestId, SessionId};
use tokio::sync::{mpsc, watch};

use crate::log::{AppendRefused, LogError};
use crate::metadata::{Home, LoadError, MetadataConfig, MetadataError, Published};
use crate::snapshots::{self, ROWS_PER_READ};

/// A command from a handle.
pub(crate) struct Submission {
    /// A client's own id; without one the driver gives the next of its session.
    pub(crate) request: Option<RequestId>,
    pub(crate) command: Command,
    pub(crate) answer: oneshot::Sender<Result<CommandResult, MetadataError>>,
}

/// A command that waits for its result.
struct Waiting {
    request: RequestId,
    command: Command,
    answer: oneshot::Sender<Result<CommandResult, MetadataError>>,
}

/// What woke the driver.
enum Woken {
    Stop,
    Command(Submission),
    MayHaveRows,
}

/// How a step over the log ended.
enum Step {
    Advanced,
    /// The database did not answer, or took nothing: again after a pause.
    Again(String),
}

pub(crate) struct Driver {
    home: Home,
    config: MetadataConfig,
    state: State,
    session: SessionId,
    counter: u64,
    submissions: mpsc::Receiver<Submission>,
    waiting: VecDeque<Waiting>,
    publish: watch::Sender<Published>,
    stopping: watch::Receiver<bool>,
    /// Rows may have come that were not read: an append was refused or its answer lost.
    stale: bool,
}

impl Driver {
    pub(crate) fn new(
        home: Home,
        config: MetadataConfig,
        state: State,
        session: SessionId,
        submissions: mpsc::Receiver<Submission>,
        publish: watch::Sender<Published>,
        stopping: watch::Receiver<bool>,
    ) -> Driver {
        let (counter, waiting, stale) = (0, VecDeque::new(), false);
        Driver { home, config, state, session, counter, submissions, waiting, publish, stopping, stale }
    }

    /// Runs until it is stopped or the log cannot be followed.
    pub(crate) async fn run(mut self) {
        let ended = self.drive().await;
        if let MetadataError::Failed { reason } = &ended {
            tracing::error!(reason, "the command log cannot be followed");
        }
        self.publish.send_modify(|published| published.ended = Some(ended.clone()));
        self.submissions.close();
        while let Ok(submission) = self.submissions.try_recv() {
            answer(submission.answer, Err(ended.clone()));
        }
        for waiting in self.waiting.drain(..) {
            answer(waiting.answer, Err(ended.clone()));
        }
    }

    async fn drive(&mut self) -> MetadataError {
        let mut pause = self.config.retry_first;
        while !self.is_to_stop() {
            if self.waiting.is_empty() && !self.stale {
                match self.idle().await {
                    Woken::Stop => break,
                    Woken::Command(submission) => self.accept(submission),
                    Woken::MayHaveRows => self.stale = true,
                }
            }
            while self.waiting.len() < self.config.queue_max
                && let Ok(submission) = self.submissions.try_recv()
            {
                self.accept(submission);
            }
            let before = self.state.witness();
            let step = if self.stale { self.read_on().await } else { self.append().await };
            match step {
                Ok(Step::Advanced) => {
                    // A log that can be read but takes no row is not well yet.
                    if self.waiting.is_empty() || self.state.witness() != before {
                        self.trouble(None);
                        pause = self.config.retry_first;
                    }
                }
                Ok(Step::Again(reason)) => {
                    self.trouble(Some(reason));
                    self.rest(pause).await;
                    pause = (pause * 2).min(self.config.retry_max);
                }
                Err(error) => return error,
            }
        }
        MetadataError::Stopped
    }

    /// Told to stop, or nobody is left who could tell it or be answered.
    fn is_to_stop(&self) -> bool {
        *self.stopping.borrow() || self.stopping.has_changed().is_err()
    }

    /// Waits for something to do.
    async fn idle(&mut self) -> Woken {
        let shared = self.state.live().nth(1).is_some();
        let poll = if shared { self.config.poll_shared } else { self.config.poll_alone };
        let after = self.state.witness().index;
        let Driver { home, submissions, stopping, .. } = self;
        let changed = std::pin::pin!(home.log.changed(after, poll));
        let submitted = std::pin::pin!(submissions.recv());
        let stop = std::pin::pin!(stopping.wait_for(|stop| *stop));
        // Stop first, commands before rows: a command's append finds out about rows by itself.
        match select(stop, select(submitted, changed)).await {
            Either::Left(_) | Either::Right((Either::Left((None, _)), _)) => Woken::Stop,
            Either::Right((Either::Left((Some(submission), _)), _)) => Woken::Command(submission),
            Either::Right((Either::Right(_), _)) => Woken::MayHaveRows,
        }
    }

    /// Lets time pass, or less when the driver is to stop.
    async fn rest(&mut self, pause: Duration) {
        let sleep = std::pin::pin!(self.home.service.sleep(pause));
        let stop = std::pin::pin!(self.stopping.wait_for(|stop| *stop));
        select(stop, sleep).await;
    }

    fn trouble(&self, trouble: Option<String>) {
        self.publish.send_if_modified(|published| {
            let differs = published.trouble.is_some() != trouble.is_some();
            if differs && let Some(reason) = &trouble {
                tracing::warn!(reason, "the metadata database does not answer, commands wait");
            }
            published.trouble = trouble;
            differs
        });
    }

    fn accept(&mut self, submission: Submission) {
        let Submission { request, command, answer: to } = submission;
        let request = request.unwrap_or_else(|| {
            self.counter += 1;
            RequestId { session: self.session, counter: self.counter }
        });
        if let Some(result) = self.state.result_of(&request) {
            return answer(to, Ok(result.clone()));
        }
        if let Err(error @ GroupError::TooLarge { .. }) = Group::new().push(request, &command) {
            return answer(to, Err(MetadataError::TooLarge(error)));
        }
        self.waiting.push_back(Waiting { request, command, answer: to });
    }

    /// Appends the commands that wait, as many as fit into a row.
    async fn append(&mut self) -> Result<Step, MetadataError> {
        let mut group = Group::new();
        for waiting in &self.waiting {
            // What does not fit now leads the next row.
            if group.push(waiting.request, &waiting.command).is_err() {
                break;
            }
        }
        if group.is_empty() {
            return Ok(Step::Advanced);
        }
        let previous = self.state.witness();
        let row = group.row(previous);
        match self.home.log.append(previous, &row).await {
            Outcome::Done(()) => {
                self.apply(&[row])?;
                Ok(Step::Advanced)
            }
            Outcome::Refused(AppendRefused::Taken) => {
                self.stale = true;
                Ok(Step::Advanced)
            }
            Outcome::Refused(AppendRefused::Behind { last }) => Err(MetadataError::Failed {
                reason: format!(
                    "this node has applied row {} ({}), but the database ends at row {} ({}): it has lost rows; stop all \
                     nodes and run `mink metadata recover`",
                    previous.index, previous.hash, last.index, last.hash
                ),
            }),
            // A handle that is broken refuses every write; reading on tells it from one that will take the next.
            Outcome::Refused(AppendRefused::Write(refusal)) => {
                self.stale = true;
                Ok(Step::Again(refusal.to_string()))
            }
            // It may be in the log, or come later. Reading on shows it; else the same ids go out again.
            Outcome::Unknown(unknown) => {
                if mutant("request-renamed") {
                    for waiting in &mut self.waiting {
                        self.counter += 1;
                        waiting.request.counter = self.counter;
                    }
                }
                self.stale = true;
                Ok(Step::Again(unknown.to_string()))
            }
        }
    }

    /// Reads and applies all rows that there are.
    async fn read_on(&mut self) -> Result<Step, MetadataError> {
        loop {
            let rows = match self.home.log.read_after(self.state.witness().index, ROWS_PER_READ).await {
                Ok(rows) => rows,
                Err(LogError::Unavailable { reason }) => return Ok(Step::Again(reason)),
                // No wait mends either: the process ends, and its successor begins with what is on the disk.
                Err(error @ (LogError::Broken { .. } | LogError::Damaged { .. })) => {
                    return Err(MetadataError::Failed { reason: error.to_string() });
                }
            };
            if rows.first().is_some_and(|row| row.index > self.state.witness().index.next()) {
                return self.reload().await;
            }
            self.apply(&rows)?;
            if rows.len() < ROWS_PER_READ {
                self.stale = false;
                return Ok(Step::Advanced);
            }
        }
    }

    /// Rows were truncated before this node had read them: a snapshot covers them.
    async fn reload(&mut self) -> Result<Step, MetadataError> {
        match snapshots::load(&self.home, self.state.cluster()).await {
            Ok(state) if state.witness().index > self.state.witness().index => {
                self.state = state;
                self.show();
                let Driver { waiting, state, .. } = self;
                settle(waiting, |request| state.result_of(request).cloned());
                self.stale = false;
                Ok(Step::Advanced)
            }
            Ok(_) => {
                Ok(Step::Again("rows are missing in the database, and no snapshot covers them yet".into()))
            }
            Err(LoadError::Log(LogError::Unavailable { reason }) | LoadError::Store { reason }) => {
                Ok(Step::Again(reason))
            }
            Err(error) => Err(MetadataError::Failed { reason: error.to_string() }),
        }
    }

    /// Applies rows, shows the state, then answers: whoever is answered finds its command in the view.
    fn apply(&mut self, rows: &[Row]) -> Result<(), MetadataError> {
        let before = self.state.witness();
        let mut results: BTreeMap<RequestId, CommandResult> = BTreeMap::new();
        let mut end = Ok(());
        for row in rows {
            match self.state.apply(row) {
                Ok(new) => results.extend(new),
                // A repeated read; nothing new.
                Err(ApplyError::Old { .. }) => {}
                Err(error) => {
                    end = Err(MetadataError::Failed { reason: error.to_string() });
                    break;
                }
            }
        }
        if self.state.witness() != before {
            self.show();
        }
        settle(&mut self.waiting, |request| results.remove(request));
        end
    }

    fn show(&self) {
        self.publish.send_modify(|published| published.state = self.state.clone());
    }
}

/// Answers those whose result is known, and keeps the rest in order.
fn settle(waiting: &mut VecDeque<Waiting>, mut result_of: impl FnMut(&RequestId) -> Option<CommandResult>) {
    for _ in 0..waiting.len() {
        let Some(one) = waiting.pop_front() else { return };
        match result_of(&one.request) {
            Some(result) => answer(one.answer, Ok(result)),
            None => waiting.push_back(one),
        }
    }
}

/// Answers; whoever asked may have gone, which takes nothing back.
fn answer(
    to: oneshot::Sender<Result<CommandResult, MetadataError>>,
    result: Result<CommandResult, MetadataError>,
) {
    drop(to.send(result));
}
