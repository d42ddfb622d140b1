//! A takeover's walk over a chain, by the engine's own walk machine.
//!
//! Lives on: anywhere (pure).
//! Invariants: what to do next, and when a number counts as lost, is `Walk`'s answer; the model brings it what the store holds.
use mink_types::WalNumber;

use crate::act::Act;
use crate::config::Mutant::*;
use crate::engine_walk::{Found, Step, Walk};
use crate::state::*;
use crate::step::{CALLED_LOST, Steps};
use crate::view::Meta;

/// What a walk does next at its number: `Task::c`.
const READING: u8 = 0;
const PROBING: u8 = 1;
const PROVEN: u8 = 2;
const SEALING: u8 = 3;

impl Steps<'_> {
    pub(crate) fn walk(&mut self, s: &State, i: usize, t: usize, view: &Meta) {
        let k = s.task[i][t];
        let (x, at) = (k.x as usize - 1, k.n as usize);
        if self.cfg.is(HolesSkipped) && s.wal[x][at] == ABSENT && (at..MAXN).any(|n| s.is_data(x, n)) {
            return self.walked(s, i, t, at + 1, READING, "is absent: skipped, a later one is there");
        }
        let mut walk = self.walk_at(at, k.c);
        match walk.step() {
            Step::Read { .. } if k.c == PROVEN && self.cfg.is(StaleProof) => walk.read(Found::Absent),
            Step::Read { .. } => walk.read(found(s, x, at)),
            Step::Probe { .. } => walk.probed(self.through(s, x, at)),
            Step::WriteSeal { .. } if s.wal[x][at] == ABSENT => return self.send_seal(s, i, x, at),
            Step::WriteSeal { .. } => walk.sealed(s.wal[x][at] == SEAL),
            Step::Done { .. } => {}
        }
        if matches!(walk.step(), Step::Probe { .. }) && !self.cfg.probe {
            walk.probed(self.through(s, x, at));
        }
        if !walk.lost().is_empty() && self.head.epoch[k.b as usize] == k.ep {
            let mut n = *s;
            n.wrong = CALLED_LOST;
            return self.emit(Act::Walk(i, at, "is called lost"), n);
        }
        match walk.step() {
            Step::Done { .. } => self.sealed(s, i, t, view),
            Step::Read { number, .. } if number.0 as usize > at => {
                self.walked(s, i, t, number.0 as usize, READING, "holds data");
            }
            Step::Read { fresh, .. } => {
                let phase = if fresh { PROVEN } else { READING };
                self.walked(s, i, t, at, phase, "is absent, and is read again");
            }
            Step::Probe { .. } => self.walked(s, i, t, at, PROBING, "is absent"),
            Step::WriteSeal { .. } if self.cfg.is(NoSeal) => self.sealed(s, i, t, view),
            Step::WriteSeal { .. } if self.cfg.probe => {
                self.walked(s, i, t, at, SEALING, "was not durable by any later one");
            }
            Step::WriteSeal { .. } => self.send_seal(s, i, x, at),
        }
    }

    /// The walk machine as it is at this number.
    fn walk_at(&self, at: usize, phase: u8) -> Walk {
        let number = WalNumber(at as u64);
        let mut walk = Walk::new(number, self.cfg.in_flight as u64);
        if phase != READING {
            walk.read(Found::Absent);
        }
        match phase {
            PROVEN => walk.probed(Some(number)),
            SEALING => walk.probed(None),
            _ => {}
        }
        walk
    }

    /// The highest `durable_through` in the headers behind `at`, as far as the writer may have got.
    fn through(&self, s: &State, x: usize, at: usize) -> Option<WalNumber> {
        let last = (at + self.cfg.in_flight).min(MAXN - 1);
        let durable = (at + 1..=last).filter(|&n| s.is_data(x, n)).map(|n| s.through[x][n]).max()?;
        durable.checked_sub(1).map(|through| WalNumber(through.into()))
    }

    fn walked(&mut self, s: &State, i: usize, t: usize, to: usize, phase: u8, what: &'static str) {
        let mut n = *s;
        let at = n.task[i][t].n as usize;
        (n.task[i][t].n, n.task[i][t].c) = (to as u8, phase);
        self.emit(Act::Walk(i, at, what), n);
    }

    fn send_seal(&mut self, s: &State, i: usize, x: usize, at: usize) {
        if s.sealput[x] >> at & 1 == 0 {
            let mut n = *s;
            n.sealput[x] |= 1 << at;
            self.emit(Act::Walk(i, at, "is absent: sends the seal"), n);
        }
    }
}

fn found(s: &State, x: usize, at: usize) -> Found {
    match s.wal[x][at] {
        ABSENT => Found::Absent,
        SEAL => Found::Seal,
        _ => Found::Data,
    }
}
