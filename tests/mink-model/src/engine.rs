//! The engine's metadata as a table: states by what tells them apart, and what each change makes of each.
//!
//! Lives on: anywhere (pure).
//! Owns: every metadata state that a search has met, as its snapshot.
//! Invariants: a transition is `State::apply` of a real row on a restored snapshot, made once and remembered; two states share a
//! place only if they cannot be told apart by any later command of the model or by any plan.
use std::collections::{BTreeMap, HashMap};

use mink_metadata::{
    Answer, Command, CommandResult, Group, NewTable, Refusal, RefusalKind, Registration, State,
};
use mink_types::{
    BucketIndex, ClusterUuid, DatabaseName, NodeId, RequestId, SessionId, TableOptions, TablePath, TableUuid,
    WalChain,
};

use crate::audit::audit;
use crate::change::{Change, Ids};
use crate::state::NI;
use crate::view::{Meta, see};

/// How a transition that was made is counted.
pub(crate) const ACCEPTED: &str = "accepted";

/// The session of commands that are never in flight together. Those of a pipeline have one for each node.
const SESSION: SessionId = SessionId([0xFF; 16]);

/// How a command ended, as far as the model cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) accepted: bool,
    /// Taken for a repeat, and not carried out.
    pub(crate) repeat: bool,
    /// Of a fence: the incarnation is fenced now, by this command or by an earlier one.
    pub(crate) fenced: bool,
}

/// Metadata states and their transitions.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) ids: Ids,
    kept: Vec<(Box<[u8]>, Meta)>,
    places: HashMap<Vec<u8>, u32>,
    made: HashMap<(u32, Change, u8), (u32, Outcome)>,
    /// How many different transitions there were, by what was asked and how it ended.
    pub(crate) judged: BTreeMap<(&'static str, &'static str), usize>,
    /// What an audit of a state or a transition has found.
    pub(crate) fault: Option<&'static str>,
}

impl Engine {
    /// A cluster of so many buckets: all on W's chain, at epoch 1.
    pub(crate) fn new(buckets: usize) -> Engine {
        let mut state = State::new(ClusterUuid([1; 16]));
        let kafka = DatabaseName::new("kafka").expect("a name");
        done(&mut state, &Command::CreateDatabase { name: kafka.clone() });
        let table = NewTable {
            path: TablePath::parse("kafka.t").expect("a path"),
            uuid: TableUuid([2; 16]),
            options: TableOptions { buckets: buckets as u32, ..TableOptions::default() },
            schema: None,
            kafka_database: kafka,
            buckets_max: 100,
        };
        let Answer::TableCreated(table) = done(&mut state, &Command::CreateTable(table)) else {
            panic!("a created table has an id");
        };
        let chains = std::array::from_fn(|i| register(&mut state, i));
        // Each by one, as a coordinator does.
        for level in state.feature_level() + 1..=mink_metadata::FEATURE_LEVEL_PRODUCERS_KEPT {
            done(&mut state, &Command::RaiseFeatureLevel { level });
        }
        let bucket = |at| mink_types::BucketId::unpartitioned(table, BucketIndex(at as u32));
        let ids = Ids { chains, buckets: (0..buckets).map(bucket).collect() };
        for b in 0..buckets as u8 {
            done(&mut state, &Change::Open { by: 0, b, epoch: 0, from: 0, seal: 0 }.command(&ids));
        }
        let mut engine = Engine {
            ids,
            kept: Vec::new(),
            places: HashMap::new(),
            made: HashMap::new(),
            judged: BTreeMap::new(),
            fault: None,
        };
        engine.keep(&state, [0; NI]);
        engine
    }

    /// How many metadata states and how many transitions between them were met.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.kept.len(), self.made.len())
    }

    /// What the engine and its plans say of a state.
    pub(crate) fn meta(&self, id: u32) -> Meta {
        self.kept[id as usize].1
    }

    /// What a change makes of a state. `counter` is its number in its author's session, 0 for one that was never used.
    pub(crate) fn apply(&mut self, id: u32, change: Change, counter: u8) -> (u32, Outcome) {
        if let Some(made) = self.made.get(&(id, change, counter)) {
            return *made;
        }
        let (snapshot, before) = &self.kept[id as usize];
        let (mut state, mut high) =
            (State::restore(snapshot).expect("P-8: a snapshot is whole"), before.high);
        let request = match (counter, &change) {
            (1.., Change::Commit(commit)) => {
                high[commit.by as usize] = high[commit.by as usize].max(counter);
                RequestId { session: SessionId([commit.by + 1; 16]), counter: counter.into() }
            }
            _ => fresh(&state),
        };
        let command = change.command(&self.ids);
        let result = row(&mut state, request, &command);
        *self.judged.entry((change.name(), label(&result))).or_default() += 1;
        let after = self.keep(&state, high);
        self.audit_repeat(&state, request, &command, &result, after);
        let outcome = Outcome {
            accepted: accepted(&result),
            repeat: matches!(&result, CommandResult::Refused(Refusal::Forgotten)),
            fenced: result.is_fenced(),
        };
        self.made.insert((id, change, counter), (after, outcome));
        (after, outcome)
    }

    /// I12: the same request again has the same result, and changes nothing.
    fn audit_repeat(
        &mut self,
        state: &State,
        request: RequestId,
        command: &Command,
        result: &CommandResult,
        after: u32,
    ) {
        let mut again = state.clone();
        let same = row(&mut again, request, command) == *result;
        let meta = self.meta(after);
        if !same || see(&self.ids, &again, meta.high) != meta {
            self.fault = Some("I12: a repeated request had another result, or changed something");
        }
    }

    /// The place of a state.
    fn keep(&mut self, state: &State, high: [u8; NI]) -> u32 {
        let meta = see(&self.ids, state, high);
        let key = meta.told_apart();
        if let Some(id) = self.places.get(&key) {
            return *id;
        }
        if let Some(what) = audit(&self.ids, state, &meta) {
            self.fault = Some(what);
        }
        let id = self.kept.len() as u32;
        self.kept.push((state.snapshot().into(), meta));
        self.places.insert(key, id);
        id
    }

    /// A state like `id`, but for how far the chain of `x` is trimmed: nobody can look at that any more.
    pub(crate) fn forget_trim(&mut self, id: u32, x: usize) -> u32 {
        let key = self.meta(id).told_apart_without_trim(x);
        *self.places.entry(key).or_insert(id)
    }
}

fn register(state: &mut State, i: usize) -> WalChain {
    let registration = Registration {
        node: NodeId(i as u32 + 1),
        tag: 5,
        storage: "memory://data".into(),
        wal_storage: "memory://wal".into(),
        listeners: vec![],
        version: "0".into(),
        feature_level_max: mink_metadata::FEATURE_LEVEL_MAX,
    };
    match done(state, &Command::Register(registration)) {
        Answer::Registered(id) => state.incarnation(id).expect("registered").chain,
        other => panic!("{other:?}"),
    }
}

/// A request that no session has made before.
pub(crate) fn fresh(state: &State) -> RequestId {
    RequestId { session: SESSION, counter: state.witness().index.0 + 1 }
}

/// Appends a row of one command and applies it.
pub(crate) fn row(state: &mut State, request: RequestId, command: &Command) -> CommandResult {
    let mut group = Group::new();
    group.push(request, command).expect("a small command fits");
    let row = group.row(state.witness());
    let mut results = state.apply(&row).expect("the row follows");
    results.remove(0).1
}

fn done(state: &mut State, command: &Command) -> Answer {
    let request = fresh(state);
    row(state, request, command).into_result().expect("accepted")
}

/// Whether the command did what it is for. An open names one bucket.
fn accepted(result: &CommandResult) -> bool {
    match result {
        CommandResult::Done(Answer::Opened { refused }) => refused.is_empty(),
        CommandResult::Done(_) => true,
        CommandResult::Refused(_) => false,
    }
}

fn label(result: &CommandResult) -> &'static str {
    match result {
        CommandResult::Done(Answer::Opened { refused }) if !refused.is_empty() => "stale open",
        CommandResult::Done(_) => ACCEPTED,
        CommandResult::Refused(refusal) => match refusal.kind() {
            RefusalKind::Already => "already so",
            RefusalKind::Fenced => "fenced",
            RefusalKind::Stale => "stale",
            RefusalKind::NotFound | RefusalKind::Exists | RefusalKind::Limit | RefusalKind::Invalid => {
                "invalid"
            }
        },
    }
}
