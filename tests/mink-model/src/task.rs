//! What an incarnation does beside its WAL: flush, compact, take over, release, leave.
//!
//! Lives on: anywhere (pure).
//! Invariants: a stream object's PUT is one step with the command that commits it: nobody reads an object that is not committed,
//! and the command may be as late as the PUT.
use crate::act::Act;
use crate::apply::next_offset;
use crate::config::Mutant::*;
use crate::state::*;
use crate::step::{GAP_READ, Steps};
use crate::view::Meta;

impl Steps<'_> {
    pub(crate) fn task(&mut self, s: &State, i: usize, t: usize, view: &Meta) {
        let cfg = self.cfg;
        let k = s.task[i][t];
        match k.kind {
            IDLE => {
                self.start_flush(s, i, t, view);
                if t == 0 {
                    (0..cfg.buckets).for_each(|b| self.start_bucket(s, i, b, view));
                    self.start_leaving(s, i, view);
                }
            }
            FLUSH_PUT => {
                let mut n = *s;
                self.send_flush(&mut n, i, t, view);
                self.emit(Act::Sent(i, k.c as usize), n);
            }
            FLUSH_COMMIT | TAKE_COMMIT
                if cfg.is(DeleteUndecided) && k.cmd == 1 && s.so[i][k.c as usize].st == SO_THERE =>
            {
                let mut n = *s;
                n.so[i][k.c as usize].st = SO_GONE;
                self.emit(Act::GiveUp(i), n);
            }
            LEAVE_SEAL if s.wal[i][s.next[i] as usize] == SEAL => {
                let mut n = *s;
                (n.task[i][t].kind, n.task[i][t].cmd) = (LEAVING, 1);
                self.emit(Act::Decide(i, "has ended its chain with its own seal, sends its leave"), n);
            }
            TAKE_WALK => self.walk(s, i, t, view),
            TAKE_SEALED => self.sealed(s, i, t, view),
            _ => {}
        }
    }

    /// Flush durable entries of one bucket or of both.
    fn start_flush(&mut self, s: &State, i: usize, t: usize, view: &Meta) {
        let cfg = self.cfg;
        let Some(c) = free_object(s, i, cfg.objects[i]) else { return };
        let mut range = [0u8; NB];
        let upto = if cfg.is(FlushUndurable) { s.next[i] as usize } else { s.durable(i) };
        for b in (0..cfg.buckets).filter(|&b| view.owns(i, b)) {
            let end = (0..upto)
                .filter_map(|n| s.entry(i, n, b))
                .filter(|e| e.0 == view.epoch[b])
                .map(|e| e.1 + 1)
                .max();
            let busy = s.task[i]
                .iter()
                .any(|k| matches!(k.kind, FLUSH_PUT | FLUSH_COMMIT) && s.so[i][k.c as usize].len(b) > 0);
            if let Some(end) = end.filter(|&e| e > view.end[b] && !busy) {
                range[b] = view.end[b] | (end - view.end[b]) << 4;
            }
        }
        for mask in 1..1u8 << cfg.buckets {
            if (0..NB).any(|b| mask >> b & 1 == 1 && range[b] == 0) {
                continue;
            }
            let mut n = *s;
            let so = &mut n.so[i][c];
            (so.st, so.src) = (SO_THERE, i as u8 + 1);
            for b in (0..NB).filter(|b| mask >> b & 1 == 1) {
                (so.range[b], so.ep[b]) = (range[b], view.epoch[b]);
            }
            n.task[i][t] = Task { kind: FLUSH_PUT, c: c as u8, ..Task::default() };
            if cfg.tasks == 1 {
                self.send_flush(&mut n, i, t, view);
            }
            self.emit(Act::Flush(i, c, mask), n);
        }
    }

    fn send_flush(&self, s: &mut State, i: usize, t: usize, view: &Meta) {
        let c = s.task[i][t].c as usize;
        s.so[i][c].trim = self.trim(s, i, c, view);
        (s.task[i][t].kind, s.task[i][t].cmd) = (FLUSH_COMMIT, 1);
    }

    fn start_bucket(&mut self, s: &State, i: usize, b: usize, view: &Meta) {
        let cfg = self.cfg;
        let ep = view.epoch[b];
        if ep >= cfg.epochs {
            return;
        }
        let mut n = *s;
        let take = Task { b: b as u8, ep, ..Task::default() };
        if view.owner[b] == NONE {
            n.task[i][0] = Task { kind: TAKE_OPEN, cmd: 1, ..take };
            return self.emit(Act::OpenFree(i, b), n);
        }
        if view.owns(i, b) {
            // all that was ordered is durable and committed
            let idle = next_offset(s, i, b, view) == view.end[b];
            let flying = cfg.is(ReleaseUndurable)
                && (0..s.next[i] as usize).all(|n| {
                    s.status[i][n] & 3 != DURABLE || s.entry(i, n, b).is_none_or(|e| e.1 < view.end[b])
                });
            if b < cfg.release && (idle || flying) {
                n.task[i][0] = Task { kind: RELEASING, cmd: 1, t: view.end[b], ..take };
                self.emit(Act::Release(i, b), n);
            }
            self.start_compacting(s, i, b, view);
            return;
        }
        let x = view.owner[b] as usize - 1;
        let k = &mut n.task[i][0];
        *k = Task { x: x as u8 + 1, t: view.trim[x], n: view.trim[x], ..take };
        if view.is_fenced(x) || cfg.is(FenceAfterWalk) {
            if k.t > 0 && !s.is_data(x, k.t as usize - 1) {
                return; // no anchor: a stale view, stop
            }
            k.kind = TAKE_WALK;
        } else if cfg.is(MoveWithoutRelease) || cfg.is(ReleaseForged) {
            (k.kind, k.cmd) = (TAKE_OPEN, 1);
        } else {
            (k.kind, k.cmd) = (TAKE_FENCE, 1);
        }
        self.emit(Act::Take(i, b, x), n);
    }

    /// Drain: all that was ordered is durable and committed; nothing more is accepted, and the chain is ended by its own node.
    fn start_leaving(&mut self, s: &State, i: usize, view: &Meta) {
        let at = s.next[i] as usize;
        let idle = s.task[i].iter().all(|k| k.kind == IDLE);
        let owned = |b: &usize| view.owns(i, *b);
        let committed = |b: usize| next_offset(s, i, b, view) == view.end[b];
        if i < self.cfg.leave
            && idle
            && s.durable(i) == at
            && (0..self.cfg.buckets).filter(owned).all(committed)
        {
            let mut n = *s;
            n.task[i][0] = Task { kind: LEAVE_SEAL, ..Task::default() };
            n.sealput[i] |= 1 << at;
            self.emit(Act::Decide(i, "leaves: accepts nothing more, sends the seal of its own chain"), n);
        }
    }

    /// Begins to move what the bucket adopted into a stream object.
    fn start_compacting(&mut self, s: &State, i: usize, b: usize, view: &Meta) {
        let Some(c) = free_object(s, i, self.cfg.objects[i]) else { return };
        if self.cfg.tidy && view.lies[b].wal != [0; NI] {
            let mut n = *s;
            n.so[i][c] = StreamObject { st: SO_THERE, src: i as u8 + 1, ..StreamObject::default() };
            let (b, ep, t, c) = (b as u8, view.epoch[b], view.end[b], c as u8);
            n.task[i][0] = Task { kind: COMPACTING, b, ep, t, c, cmd: 1, ..Task::default() };
            self.emit(Act::Decide(i, "rewrites what it adopted, and sends the rewrite"), n);
        }
    }

    /// The walk meets the seal: commit what is not committed, then open.
    pub(crate) fn sealed(&mut self, s: &State, i: usize, t: usize, view: &Meta) {
        let cfg = self.cfg;
        let mut n = *s;
        let k = &mut n.task[i][t];
        let (b, x) = (k.b as usize, k.x as usize - 1);
        if cfg.is(FenceAfterWalk) && !view.is_fenced(x) {
            (k.kind, k.cmd) = (TAKE_FENCE, 1);
            return self.emit(Act::Decide(i, "meets the seal and sends the fence only now"), n);
        }
        let mut end = view.end[b];
        for at in k.t as usize..(k.n as usize).min(s.next[x] as usize) {
            match s.entry(x, at, b) {
                _ if cfg.is(HolesSkipped) && !s.is_data(x, at) => {}
                Some((ep, off, _)) if ep == k.ep || cfg.is(NoEpochFilter) => match off.cmp(&end) {
                    std::cmp::Ordering::Equal => end += 1,
                    std::cmp::Ordering::Greater => n.wrong = GAP_READ,
                    std::cmp::Ordering::Less => {}
                },
                _ => {}
            }
        }
        if end == view.end[b] || cfg.is(OpenBeforeCommit) {
            (k.kind, k.cmd) = (TAKE_OPEN, 1);
            if cfg.is(EpochAtCommand) {
                k.ep = view.epoch[b];
            }
            return self.emit(Act::Decide(i, "meets the seal, has nothing uncommitted, sends its open"), n);
        }
        let Some(c) = free_object(s, i, cfg.objects[i]) else { return };
        (k.kind, k.cmd, k.c) = (TAKE_COMMIT, 1, c as u8);
        let so = &mut n.so[i][c];
        (so.src, so.ep[b]) = (k.x, k.ep);
        so.range[b] = view.end[b] | (end - view.end[b]) << 4;
        if cfg.rewrite {
            n.so[i][c].st = SO_THERE;
            self.emit(Act::Decide(i, "meets the seal, rewrites what it recovered, sends the commit"), n);
        }
        if cfg.adopt {
            n.so[i][c].st = SO_ADOPT;
            self.emit(Act::Decide(i, "meets the seal, sends the adoption of what it recovered"), n);
        }
    }

    /// The lowest number with bytes that neither the view nor this very commit holds.
    fn trim(&self, s: &State, i: usize, c: usize, view: &Meta) -> u8 {
        let cfg = self.cfg;
        let so = &s.so[i][c];
        let also = |b: usize, off: u8| {
            (0..NC).any(|d| {
                let o = &s.so[i][d];
                let in_flight = cfg.is(TrimCountsInFlight)
                    && s.task[i].iter().any(|k| k.kind == FLUSH_COMMIT && k.c as usize == d);
                d != c
                    && o.src == i as u8 + 1
                    && (o.believed == 1 || in_flight)
                    && off >= o.start(b)
                    && off < o.start(b) + o.len(b)
            })
        };
        let held = |b: usize, off: u8| {
            off < view.end[b] || off < so.start(b) + so.len(b) && so.len(b) > 0 || also(b, off)
        };
        let needed = |n: usize, b: usize| s.entry(i, n, b).is_some_and(|e| !held(b, e.1));
        let counts = |b: &usize| !cfg.is(TrimPerBucket) || so.len(*b) > 0;
        (0..s.next[i]).find(|&n| (0..NB).filter(counts).any(|b| needed(n as usize, b))).unwrap_or(s.next[i])
    }
}

fn free_object(s: &State, i: usize, objects: u8) -> Option<usize> {
    (0..objects as usize).find(|&c| s.so[i][c].st == SO_FREE)
}
