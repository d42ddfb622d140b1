//! The command log: the command that a task sends, what the engine makes of it, and what is added to the log.
//!
//! Lives on: anywhere (pure).
//! Invariants: whether a command is accepted, and what it changes, is `State::apply`'s answer alone. A mutant of a metadata rule alters
//! the command on its way, so that the rule finds nothing to object to.
use crate::change::{Change, Commit};
use crate::config::Mutant::*;
use crate::state::*;
use crate::view::Meta;
use crate::world::World;

impl State {
    /// Adds a record.
    pub(crate) fn push(&mut self, rec: Rec) {
        assert!((self.loglen as usize) < MAXLOG, "log too long for the model");
        self.log[self.loglen as usize] = rec;
        self.loglen += 1;
    }

    /// The record that a task's command becomes when it reaches the log now; `m` is the log's end.
    pub(crate) fn judge(&self, w: &World, m: &Meta, i: usize, task: &Task) -> Rec {
        let (head, by, b) = (self.at(self.loglen), i as u8, task.b as usize);
        let none = Default::default();
        let (rec, (after, outcome)) = match task.kind {
            TAKE_FENCE => {
                let fence = Change::Fence { x: task.x - 1, by };
                (Rec::new(FENCE, i, 0, task.x, 0), w.apply(head, fence, 0, &none))
            }
            FLUSH_COMMIT | TAKE_COMMIT => {
                let (commit, values) = self.commit(w, m, i, task.c as usize);
                // Where two are in flight, their order in the session is part of the run.
                let counter = if w.cfg.tasks == 2 { task.c + 1 } else { 0 };
                (Rec::new(COMMIT, i, task.c, 0, 0), w.apply(head, Change::Commit(commit), counter, &values))
            }
            TAKE_OPEN => {
                let (open, head) = Self::open(w, m, head, i, task);
                (Rec::new(OPEN, i, task.b, task.x, task.n), w.apply(head, open, 0, &none))
            }
            COMPACTING => {
                let replaced = m.lies[b];
                let rewrite =
                    Change::Rewrite { by, b: task.b, epoch: task.ep, end: task.t, c: task.c, replaced };
                (Rec::new(REWRITE, i, task.c, 0, 0), w.apply(head, rewrite, 0, &none))
            }
            LEAVING => {
                let leave = Change::Leave { x: by, at: self.next[i] };
                (Rec::new(LEAVE, i, 0, 0, self.next[i]), w.apply(head, leave, 0, &none))
            }
            _ => {
                let release = Change::Release { by, b: b as u8, epoch: task.ep, end: task.t };
                (Rec::new(RELEASE, i, task.b, 0, 0), w.apply(head, release, 0, &none))
            }
        };
        rec.judged(after, outcome)
    }

    /// The open that a takeover sends, and the metadata that it is applied to.
    fn open(w: &World, m: &Meta, head: u32, i: usize, task: &Task) -> (Change, u32) {
        let (cfg, b) = (&w.cfg, task.b as usize);
        let (mut epoch, mut from) = (task.ep, task.x);
        if cfg.is(NoEpochCheck) {
            (epoch, from) = (m.epoch[b], m.owner[b]);
        }
        let open = Change::Open { by: i as u8, b: task.b, epoch, from, seal: task.n };
        let live = m.owner[b] != NONE && !m.is_fenced(m.owner[b] as usize - 1);
        if !cfg.is(ReleaseForged) || !live || epoch != m.epoch[b] {
            return (open, head);
        }
        let by = m.owner[b] - 1;
        let release = Change::Release { by, b: task.b, epoch, end: m.end[b] };
        let (released, _) = w.apply(head, release, 0, &Default::default());
        (Change::Open { by: i as u8, b: task.b, epoch, from: 0, seal: 0 }, released)
    }

    /// The commit of a stream object, or the adoption that stands in its place, and the values that it adds to each bucket.
    fn commit(&self, w: &World, m: &Meta, i: usize, c: usize) -> (Commit, [Vec<u8>; NB]) {
        let cfg = &w.cfg;
        let so = &self.so[i][c];
        let source = so.src as usize - 1;
        let mut commit = Commit {
            by: i as u8,
            source: source as u8,
            c: c as u8,
            start: [0; NB],
            len: [0; NB],
            epoch: [0; NB],
            trim: (source == i).then_some(so.trim),
            adopts: None,
        };
        let mut values: [Vec<u8>; NB] = Default::default();
        let mut numbers = [[0; MAXO]; NB];
        for b in (0..NB).filter(|&b| so.len(b) > 0) {
            (commit.start[b], commit.len[b], commit.epoch[b]) = (so.start(b), so.len(b), so.ep[b]);
            for (at, off) in (so.start(b)..so.start(b) + so.len(b)).enumerate() {
                let holds = |&n: &usize| matches!(self.entry(source, n, b), Some((e, o, _)) if o == off && (e == so.ep[b] || cfg.is(NoEpochFilter)));
                let n = (0..self.next[source] as usize).find(holds).expect("committed entries were frozen");
                let entry = if source == i { self.entry(source, n, b) } else { self.stored(source, n, b) };
                values[b].push(entry.expect("found above").2);
                numbers[b][at] = n as u8;
            }
            if cfg.is(CommitAnyStart) {
                commit.start[b] = m.end[b];
            }
            if cfg.is(NoEpochCheck) {
                commit.epoch[b] = m.epoch[b];
                commit.source = m.owner[b].max(1) - 1;
            }
        }
        if so.st == SO_ADOPT {
            commit.adopts = Some(numbers);
        }
        (commit, values)
    }
}
