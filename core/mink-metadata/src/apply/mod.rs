//! Applies rows: checks the chain, sees to it that a request counts once, and hands each command to its judge.
//!
//! Lives on: anywhere (pure).
//! Invariants: I11 (the outcome is a function of the rows alone), I12 (sessions), I13 (the chain of hashes). A row is applied
//! as a whole or not at all.
//!
//! Ids: a database, table or partition gets `row index x 2^16 + place in the row`, so several of one row differ and none comes twice.
mod brokers;
mod columns;
mod commit;
mod nodes;
mod open;
mod retain;
mod rewrite;
mod tables;

pub(crate) use columns::are_values;

use std::collections::BTreeMap;

use mink_types::{LogIndex, RequestId, SessionId, Witness};

use crate::row::{decode, row_hash};
use crate::state::{SESSIONS_MAX, Session};
use crate::{Answer, ApplyError, Command, CommandResult, Refusal, Row, State};

/// Low bits of a database's, table's or partition's id: the place of its command in the row.
pub(crate) const PLACE_BITS: u32 = 16;

/// Longest text of a command (address, version, detail), in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// How a command is judged: an answer once it is applied, or a refusal that has changed nothing.
type Judged = Result<Answer, Refusal>;

/// Where a command stands in the log.
#[derive(Clone, Copy, Debug)]
struct Position {
    index: LogIndex,
    place: usize,
    /// Whether an earlier command of the row registered a node.
    registered: bool,
}

impl Position {
    /// The id of what the command makes.
    fn id(self) -> u64 {
        (self.index.0 << PLACE_BITS) | self.place as u64
    }
}

impl State {
    /// Applies the next row: the results of its commands, in order. On an error the state is as before.
    pub fn apply(&mut self, row: &Row) -> Result<Vec<(RequestId, CommandResult)>, ApplyError> {
        let expected = self.witness.index.next();
        if row.index > expected {
            return Err(ApplyError::Gap { expected, found: row.index });
        }
        if row.index < expected {
            return Err(ApplyError::Old { expected, found: row.index });
        }
        let hash = row_hash(self.witness.hash, row.index, &row.payload);
        if hash != row.hash {
            return Err(ApplyError::Hash { index: row.index, expected: hash, found: row.hash });
        }
        let commands = decode(&row.payload).map_err(|error| error.at(row.index))?;
        let mut next = self.clone();
        let mut results = Vec::with_capacity(commands.len());
        let mut at = Position { index: row.index, place: 0, registered: false };
        let mut spoke = BTreeMap::new();
        for (place, (request, command)) in commands.iter().enumerate() {
            at.place = place;
            if let Command::RaiseFeatureLevel { level } = command
                && *level > crate::FEATURE_LEVEL_MAX
                && next.raise_feature_level(*level).is_ok()
            {
                let what = format!("feature level {level}");
                return Err(ApplyError::Unsupported { index: row.index, what });
            }
            let high = next.sessions.get(&request.session).map(|session| session.high);
            results.push((*request, next.once(at, *request, command)));
            if high.is_none_or(|high| request.counter > high) {
                spoke.entry(request.session).or_insert(high);
            }
            at.registered |= matches!(command, Command::Register(_));
        }
        for (session, high) in spoke {
            next.forget(session, high);
        }
        next.witness = Witness { index: row.index, hash };
        *self = next;
        Ok(results)
    }

    /// The result of a request: the one it had, or that of applying it now.
    fn once(&mut self, at: Position, request: RequestId, command: &Command) -> CommandResult {
        if let Some(session) = self.sessions.get(&request.session)
            && request.counter <= session.high
        {
            let forgotten = CommandResult::Refused(Refusal::Forgotten);
            return session.results.get(&request.counter).cloned().unwrap_or(forgotten);
        }
        let result = match self.execute(at, command) {
            Ok(answer) => CommandResult::Done(answer),
            Err(refusal) => CommandResult::Refused(refusal),
        };
        self.remember(at.index, request, result.clone());
        result
    }

    fn remember(&mut self, row: LogIndex, request: RequestId, result: CommandResult) {
        let id = request.session;
        let mut session = match self.sessions.remove(&id) {
            Some(session) => {
                self.indexes.session_ages.remove(&(session.row, id));
                session
            }
            None => Session { high: 0, row, results: imbl::OrdMap::new() },
        };
        session.high = request.counter;
        session.row = row;
        session.results.insert(request.counter, result);
        if self.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) = self.indexes.session_ages.get_min().copied()
        {
            self.indexes.session_ages.remove(&oldest);
            self.sessions.remove(&oldest.1);
        }
        self.indexes.session_ages.insert((row, id));
        self.sessions.insert(id, session);
    }

    /// Drops the results that a session had before the row in which it spoke again.
    fn forget(&mut self, session: SessionId, high: Option<u64>) {
        if let (Some(session), Some(high)) = (self.sessions.get_mut(&session), high) {
            session.results = session.results.split(&high).1;
        }
    }

    fn execute(&mut self, at: Position, command: &Command) -> Judged {
        match command {
            Command::Register(registration) => self.register(at, registration),
            Command::Fence { incarnation, by } => self.fence(*incarnation, *by),
            Command::Leave { incarnation, trim, seal } => self.leave(*incarnation, *trim, *seal),
            Command::CreateDatabase { name } => self.create_database(at, name),
            Command::DropDatabase { name } => self.drop_database(name),
            Command::CreateTable(table) => self.create_table(at, table),
            Command::AlterTable(change) => self.alter_table(change),
            Command::CreatePartition(partition) => self.create_partition(at, partition),
            Command::DropPartition { table, partition } => self.drop_partition(at, *table, *partition),
            Command::AlterBrokerConfigs(change) => self.alter_broker_configs(change),
            Command::DropTable { id } => self.drop_table(at, *id),
            Command::Commit { by, source, objects, trim } => self.commit(at, *by, *source, objects, *trim),
            Command::Rewrite { by, replaced, objects } => self.rewrite(at, *by, replaced, objects),
            Command::Open { by, buckets, from } => self.open(*by, buckets, *from),
            Command::Release { by, bucket, epoch, end } => self.release(*by, *bucket, *epoch, *end),
            Command::RaiseStart { by, bucket, epoch, start } => {
                self.raise_start(at, *by, *bucket, *epoch, *start)
            }
            Command::ForgetProducers { by, bucket, epoch, end } => {
                self.forget_producers(at, *by, *bucket, *epoch, *end)
            }
            Command::Deleted { objects } => Ok(self.deleted(objects)),
            Command::Swept { incarnation } => self.swept(*incarnation),
            Command::Probed { store, sound, detail } => self.probed(at, store, *sound, detail),
            Command::RaiseFeatureLevel { level } => self.raise_feature_level(*level),
        }
    }
}
