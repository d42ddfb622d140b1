//! An incarnation applies a record, learns an outcome, acks.
//!
//! Lives on: anywhere (pure).
//! Invariants: what a node knows of metadata is the log up to where it has applied it.
use crate::config::{CLAIM_SILENT, Config, Mutant::*};
use crate::state::*;
use crate::step::{ACK_CONFLICT, ACKED_TWICE, FENCED_ACKS, LATE_DURABLE};
use crate::view::Meta;
use crate::world::World;

const FLAGS: u8 = REFORMED | LATE;

pub(crate) fn next_offset(s: &State, i: usize, b: usize, view: &Meta) -> u8 {
    let own = (0..s.next[i] as usize)
        .filter_map(|n| s.entry(i, n, b))
        .filter(|e| e.0 == view.epoch[b])
        .map(|e| e.1 + 1);
    own.max().unwrap_or(0).max(view.end[b])
}

/// Incarnation `i` applies the next record.
pub(crate) fn apply_next(w: &World, s: &mut State, i: usize) {
    let cfg = &w.cfg;
    let r = s.log[s.view[i] as usize];
    s.view[i] += 1;
    if r.kind() == FENCE && r.ok() && r.x() == i + 1 {
        s.flags[i] |= STOPPED;
        return;
    }
    let view = s.view_of(w, i);
    let any_epoch = cfg.is(EpochAtCommand) || cfg.is(NoEpochCheck);
    if r.kind() == LEAVE && r.node() == i && r.ok() {
        s.flags[i] |= STOPPED;
        return;
    }
    if r.node() == i {
        let c = r.low();
        if matches!(r.kind(), COMMIT | REWRITE) && !r.ok() && !r.repeat() && s.so[i][c].st == SO_THERE {
            s.so[i][c].st = SO_GONE; // its own command is refused for good: it deletes the object
        }
        if r.kind() == COMMIT && (r.ok() || r.repeat()) {
            s.so[i][c].believed = u8::from(cfg.is(RepeatIsDone));
        }
        let answers = |k: &Task| match r.kind() {
            FENCE => k.kind == TAKE_FENCE,
            COMMIT => matches!(k.kind, FLUSH_COMMIT | TAKE_COMMIT) && k.c as usize == c,
            OPEN => k.kind == TAKE_OPEN,
            LEAVE => k.kind == LEAVING,
            REWRITE => k.kind == COMPACTING && k.c as usize == c,
            _ => k.kind == RELEASING,
        };
        if let Some(t) = (0..2).find(|&t| s.task[i][t].cmd >= 2 && answers(&s.task[i][t])) {
            let mut k = s.task[i][t];
            k.cmd = 0;
            match k.kind {
                TAKE_FENCE if !r.fenced() => k = Task::default(), // it is fenced itself: it stops
                TAKE_FENCE if cfg.is(FenceAfterWalk) => k.kind = TAKE_SEALED,
                TAKE_FENCE => {
                    let x = k.x as usize - 1;
                    if !cfg.is(StaleTrim) {
                        k.t = view.trim[x];
                    }
                    (k.kind, k.n) = (TAKE_WALK, k.t);
                    if k.t > 0 && !s.is_data(x, k.t as usize - 1) {
                        k = Task::default(); // no anchor: a stale view, stop
                    }
                }
                TAKE_COMMIT => k.kind = TAKE_SEALED,
                _ => k = Task::default(),
            }
            s.task[i][t] = k;
        }
    }
    for t in 0..2 {
        let k = s.task[i][t];
        if k.taking() && k.cmd == 0 && view.epoch[k.b as usize] != k.ep && !any_epoch {
            s.task[i][t] = Task::default(); // somebody else has opened the bucket
        }
    }
}

impl State {
    /// Whether incarnation `i` believes that it owns bucket `b` and takes appends for it.
    pub(crate) fn accepts(&self, i: usize, b: usize, view: &Meta) -> bool {
        let lets_go = |k: &Task| k.kind == RELEASING && k.b as usize == b || k.leaving();
        view.owns(i, b) && !self.task[i].iter().any(lets_go)
    }

    /// The writer learns that number `n` holds its bytes, and acks what is durable without a hole.
    pub(crate) fn learn(&mut self, cfg: &Config, head: &Meta, i: usize, n: usize) {
        let before = self.durable(i);
        self.status[i][n] = self.status[i][n] & FLAGS | DURABLE;
        let acked = if cfg.is(AckOutOfOrder) { n..n + 1 } else { before..self.durable(i) };
        for n in acked {
            if self.status[i][n] & LATE != 0 {
                self.wrong = LATE_DURABLE;
            }
            for b in 0..NB {
                if let Some((_, off, value)) = self.entry(i, n, b) {
                    self.ack(cfg, head, i, b, off as usize, value);
                }
            }
        }
    }

    pub(crate) fn ack(&mut self, cfg: &Config, head: &Meta, i: usize, b: usize, off: usize, value: u8) {
        let old = self.acked[b][off];
        if old != NONE && old != value {
            self.wrong = ACK_CONFLICT;
        }
        if value == P && self.acked[b].iter().enumerate().any(|(o, &v)| v == P && o != off) {
            self.wrong = ACKED_TWICE;
        }
        if cfg.claims & CLAIM_SILENT != 0 && head.is_fenced(i) && !head.owns(i, b) {
            self.wrong = FENCED_ACKS;
        }
        self.acked[b][off] = value;
    }
}
