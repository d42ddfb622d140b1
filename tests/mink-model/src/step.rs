//! Every step that the world can take from a state.
//!
//! Lives on: anywhere (pure).
//! Invariants: a crash needs no step of its own: it is an incarnation that takes none any more, while its requests may still arrive.
use crate::act::Act;
use crate::apply::{apply_next, next_offset};
use crate::change::{Change, LEASE_HOLDER};
use crate::config::{CLAIM_FIRST_PUT, CLAIM_PUT_PROVES, Config, Mutant::*};
use crate::state::*;
use crate::view::Meta;
use crate::world::World;

pub(crate) const ACK_CONFLICT: u8 = 1;
pub(crate) const ACKED_TWICE: u8 = 2;
pub(crate) const GAP_READ: u8 = 3;
pub(crate) const PUT_PROVES_NOTHING: u8 = 4;
pub(crate) const FENCED_ACKS: u8 = 5;
pub(crate) const GARBAGE_CAME_BACK: u8 = 6;
pub(crate) const LATE_DURABLE: u8 = 7;
pub(crate) const CALLED_LOST: u8 = 8;
const FLAGS: u8 = REFORMED | LATE;

pub(crate) struct Steps<'a> {
    pub(crate) w: &'a World,
    pub(crate) cfg: &'a Config,
    pub(crate) out: Vec<(Act, State)>,
    pub(crate) head: Meta,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(w: &'a World) -> Steps<'a> {
        Steps { w, cfg: &w.cfg, out: Vec::new(), head: Meta::default() }
    }

    pub(crate) fn emit(&mut self, act: Act, mut s: State) {
        if matches!(act, Act::Append(..)) {
            let head = s.head(self.w);
            s.canon(self.w, &head);
        } else {
            s.canon(self.w, &self.head);
        }
        self.out.push((act, s));
    }

    pub(crate) fn all(&mut self, s: &State) {
        self.out.clear();
        self.head = s.head(self.w);
        for i in 0..self.cfg.incarnations {
            self.store(s, i);
            for t in 0..self.cfg.tasks {
                self.append(s, i, t);
            }
            if s.live(i) {
                if s.view[i] < s.loglen {
                    let mut n = *s;
                    let r = s.log[s.view[i] as usize];
                    apply_next(self.w, &mut n, i);
                    self.emit(Act::Apply(i, r.kind(), r.node(), r.ok()), n);
                }
                let view = s.view_of(self.w, i);
                self.writer(s, i, &view);
                for t in 0..self.cfg.tasks {
                    self.task(s, i, t, &view);
                }
            } else if s.flags[i] == 0 && (i < 2 || s.flags[i - 1] != 0) {
                // not begun: it starts with what the log holds now (1 and 2 are alike, so 1 begins first)
                let mut n = *s;
                n.flags[i] = BEGUN;
                n.view[i] = n.loglen;
                let head = self.head;
                self.task(&n, i, 0, &head);
            }
        }
        if self.cfg.collect {
            self.collect(s);
        }
        if self.cfg.tidy {
            self.tell(s);
        }
        if self.cfg.coordinator {
            for x in 0..self.cfg.incarnations {
                if s.flags[x] != 0 && !self.head.is_fenced(x) {
                    let mut n = *s;
                    let fence = Change::Fence { x: x as u8, by: LEASE_HOLDER as u8 };
                    let (after, outcome) = self.w.apply(s.at(s.loglen), fence, 0, &Default::default());
                    n.push(Rec::new(FENCE, LEASE_HOLDER, 0, x as u8 + 1, 0).judged(after, outcome));
                    self.emit(Act::Append(LEASE_HOLDER, FENCE, 0, true), n);
                }
            }
        }
    }

    /// The store applies a request of (or about) incarnation `i`, now or long after it was sent.
    fn store(&mut self, s: &State, i: usize) {
        let cfg = self.cfg;
        if s.next[i] == 0 && s.sealput[i] == 0 || !s.watched(self.w, &self.head, i) {
            return;
        }
        let seal = s.seal(cfg, i);
        for n in 0..(s.next[i] as usize).min(seal) {
            let st = s.status[i][n] & 3;
            if s.wal[i][n] != ABSENT || (st == DURABLE && !cfg.resurrect) {
                continue;
            }
            let mut next = *s;
            if st == TRYING {
                next.status[i][n] = s.status[i][n] & FLAGS | CREATED;
            }
            for body in [DATA, DATA2] {
                if body == DATA2 && s.status[i][n] & REFORMED == 0 {
                    continue;
                }
                next.wal[i][n] = body;
                self.emit(Act::Put(i, n, if body == DATA { "" } else { " (new bytes)" }), next);
            }
            // a 200 at once is the same as a read-back at once: only this claim looks at it
            let view = s.view_of(self.w, i);
            let moved = (0..NB).any(|b| view.owns(i, b) && !self.head.owns(i, b));
            if cfg.claims & CLAIM_PUT_PROVES != 0 && st != DURABLE && s.live(i) && moved && s.durable(i) == n
            {
                next.wrong = PUT_PROVES_NOTHING;
                self.emit(Act::Put(i, n, ", answered 200"), next);
            }
        }
        for n in 0..SLOTS {
            if s.sealput[i] >> n & 1 == 1 && s.wal[i][n] == ABSENT {
                let mut next = *s;
                next.wal[i][n] = SEAL;
                self.emit(Act::SealPut(i, n), next);
            }
        }
    }

    /// A command reaches the log, now or long after it was sent.
    fn append(&mut self, s: &State, i: usize, t: usize) {
        let cfg = self.cfg;
        let task = s.task[i][t];
        let again = task.cmd == 2 && cfg.is(RequestIdIgnored);
        if task.cmd != 1 && !again {
            return; // with request ids a repeat changes nothing
        }
        let rec = s.judge(self.w, &self.head, i, &task);
        let mut next = *s;
        next.push(rec);
        next.task[i][t].cmd += 1;
        let after = next.head(self.w);
        if rec.ok() && self.garbage(&self.head, &after.sealed) & !self.garbage(&after, &after.sealed) != 0 {
            next.wrong = GARBAGE_CAME_BACK;
        }
        self.emit(Act::Append(i, rec.kind(), u8::from(again), rec.ok()), next);
    }

    /// The WAL writer: freeze a number and send it, learn outcomes, ack.
    fn writer(&mut self, s: &State, i: usize, view: &Meta) {
        let cfg = self.cfg;
        let n = s.next[i] as usize;
        let flying = (0..n).filter(|&n| s.status[i][n] & 3 != DURABLE).count();
        if n < cfg.numbers[i] as usize && flying < cfg.in_flight && n < s.seal(cfg, i) {
            let mut may = [false; NB];
            let mut bits = [0u8; NB];
            for b in 0..cfg.buckets {
                let off = next_offset(s, i, b, view);
                may[b] = s.accepts(i, b, view) && off < cfg.offsets;
                bits[b] = view.epoch[b] << 2 | off << 5;
            }
            let p = may[0] && cfg.producer && !self.knows_p(s, i, view);
            for (ka, kb) in [(2, 0), (P, 0), (0, 2), (2, 2), (P, 2)] {
                let fits = (ka == 0 || may[0])
                    && (ka != P || p)
                    && (kb == 0 || may[1])
                    && (ka == 0 || kb == 0 || cfg.both);
                if !fits {
                    continue;
                }
                let mut next = *s;
                next.next[i] += 1;
                next.status[i][n] = TRYING;
                if cfg.probe {
                    next.through[i][n] = s.durable(i) as u8;
                }
                if cfg.claims & CLAIM_FIRST_PUT != 0
                    && (0..NB).any(|b| view.owns(i, b) && !self.head.owns(i, b))
                {
                    next.status[i][n] |= LATE;
                }
                for (b, k) in [ka, kb].into_iter().enumerate() {
                    if k > 0 {
                        next.chunk[i][n][b] = k | bits[b];
                    }
                }
                self.emit(Act::Form(i, n, [ka, kb]), next);
            }
        }
        for n in 0..n {
            let st = s.status[i][n] & 3;
            let mut next = *s;
            if st != DURABLE && s.wal[i][n] == SEAL && !cfg.is(ForeignIsOurs) {
                next.flags[i] |= STOPPED;
                self.emit(Act::ReadBack(i, n, "the seal"), next);
            } else if st != DURABLE && s.wal[i][n] != ABSENT {
                next.learn(cfg, &self.head, i, n);
                self.emit(Act::ReadBack(i, n, "taken as its own"), next);
            } else if st == CREATED {
                next.learn(cfg, &self.head, i, n);
                self.emit(Act::Answer(i, n), next);
            }
            if cfg.is(NewBytesOnRetry)
                && s.status[i][n] & 3 != DURABLE
                && s.status[i][n] & REFORMED == 0
                && s.chunk[i][n][0] & 3 == 2
                && !self.knows_p(s, i, view)
            {
                let mut next = *s;
                next.status[i][n] |= REFORMED;
                next.chunk[i][n][0] = s.chunk[i][n][0] & !3 | P;
                self.emit(Act::Reform(i, n), next);
            }
        }
        // the retried batch is known already and durable: it is acked at its old offset
        for off in 0..MAXO.min(view.end[0] as usize) {
            if cfg.producer && s.accepts(i, 0, view) && view.content[0][off] == P && s.acked[0][off] != P {
                let mut next = *s;
                next.ack(cfg, &self.head, i, 0, off, P);
                self.emit(Act::Decide(i, "acks the repeated batch P at its old offset"), next);
            }
        }
    }

    fn knows_p(&self, s: &State, i: usize, view: &Meta) -> bool {
        let mine = (0..s.next[i] as usize)
            .any(|n| matches!(s.entry(i, n, 0), Some((e, _, P)) if e == view.epoch[0]));
        let committed = view.content[0][..MAXO.min(view.end[0] as usize)].contains(&P);
        mine || committed && !self.cfg.is(ProducersForgotten)
    }
}
