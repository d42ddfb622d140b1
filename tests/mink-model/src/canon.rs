//! Brings worlds that can no longer be told apart to one form.
//!
//! Lives on: anywhere (pure).
//! Invariants: each rule says why nothing is lost by it; `cfg.full` switches all but the folding of the log off, to compare.
use crate::apply::apply_next;
use crate::config::{Config, Mutant::*};
use crate::state::*;
use crate::view::Meta;
use crate::world::World;

impl State {
    pub(crate) fn canon(&mut self, w: &World, head: &Meta) {
        let cfg = &w.cfg;
        if !cfg.full {
            self.learn_at_once(cfg, head);
            self.apply_what_only_enables(w);
            self.stop_the_harmless(w, head);
        }
        for i in 0..NI {
            if !self.has(i, STOPPED) {
                continue;
            }
            self.view[i] = 0;
            if head.is_fenced(i) {
                // its commands would all be refused
                let sends = |k: &Task| cfg.is(FencedMayOpen) && k.kind == TAKE_OPEN;
                self.task[i].iter_mut().filter(|k| !sends(k)).for_each(|k| *k = Task::default());
            }
        }
        self.fold_log(cfg);
        if !cfg.full {
            self.forget(w, head);
        }
    }

    /// A live writer learns at once that its PUT was applied: an earlier ack binds more, and "durable" only
    /// enables. (That answers may be lost or late is explored with `full`.)
    fn learn_at_once(&mut self, cfg: &Config, head: &Meta) {
        for i in 0..NI {
            for n in 0..self.next[i] as usize {
                if self.live(i) && self.status[i][n] & 3 != DURABLE && self.is_data(i, n) {
                    self.learn(cfg, head, i, n);
                }
            }
        }
    }

    /// A fenced writer whose chain is sealed acks nothing more; if it also takes nothing over it is as good as
    /// stopped.
    fn stop_the_harmless(&mut self, w: &World, head: &Meta) {
        let cfg = &w.cfg;
        for i in 0..NI {
            if !self.live(i) || !head.is_fenced(i) {
                continue;
            }
            let idle = self.task[i].iter().all(|k| k.kind < TAKE_FENCE || k.kind >= RELEASING);
            if idle
                && self.seal(cfg, i) < SLOTS
                && self.view_of(w, i).owner[..cfg.buckets].iter().all(|&o| o == i as u8 + 1)
            {
                self.flags[i] |= STOPPED;
            }
        }
    }

    /// Where the chain ends for its readers and, as acks go in order, for its writer; SLOTS while it is open.
    pub(crate) fn seal(&self, cfg: &Config, i: usize) -> usize {
        if cfg.full || matches!(cfg.mutant, SealCollected | ForeignIsOurs | AckOutOfOrder | HolesSkipped) {
            return SLOTS;
        }
        (0..SLOTS).find(|&n| self.wal[i][n] == SEAL).unwrap_or(SLOTS)
    }

    /// Applied at once: results of the node's own commands (what follows may still wait as long as it likes), and
    /// records about nothing that the node owns or is taking over (a takeover that starts from an older view is
    /// the same takeover started earlier). Lazy stay: its own fence, and others' records on what it works at.
    fn apply_what_only_enables(&mut self, w: &World) {
        let cfg = &w.cfg;
        for i in 0..cfg.incarnations {
            while self.live(i) && self.view[i] < self.loglen {
                let r = self.log[self.view[i] as usize];
                let view = self.view_of(w, i);
                let works_at = |b: usize| {
                    view.owns(i, b)
                        || self.task[i]
                            .iter()
                            .any(|k| k.kind >= TAKE_FENCE && !k.leaving() && k.b as usize == b)
                };
                let lazy = match r.kind() {
                    _ if r.node() == i => cfg.is(RequestIdIgnored),
                    FENCE => {
                        r.x() == i + 1
                            || self.task[i].iter().any(|k| k.kind >= TAKE_FENCE && k.x as usize == r.x())
                    }
                    COMMIT => (0..NB).any(|b| self.so[r.node()][r.low()].len(b) > 0 && works_at(b)),
                    REWRITE | TIDIED => false, // ends and epochs are as before
                    LEAVE => (0..cfg.buckets).any(works_at),
                    _ => works_at(r.low()),
                };
                if lazy {
                    break;
                }
                apply_next(w, self, i);
            }
        }
    }

    fn fold_log(&mut self, cfg: &Config) {
        // refused records matter only to a live node that sent them and has not read them
        let mut kept = 0;
        for k in 0..self.loglen as usize {
            let (r, at) = (self.log[k], kept as u8);
            if r.ok() || r.node() < NI && self.live(r.node()) && self.view[r.node()] <= at {
                self.log[kept] = r;
                kept += 1;
            } else {
                // It may have moved its session's counter, which only the log's end looks at.
                match kept {
                    0 => self.base = r.after,
                    _ => self.log[kept - 1].after = r.after,
                }
                self.view.iter_mut().filter(|v| **v > at).for_each(|v| *v -= 1);
            }
        }
        // fold what every live node has applied
        let cut = (0..NI).filter(|&i| self.live(i)).map(|i| self.view[i] as usize).min().unwrap_or(kept);
        for k in 0..cut {
            let r = self.log[k];
            self.base = r.after;
            if matches!(r.kind(), COMMIT | REWRITE) && !cfg.full && cfg.tasks == 1 {
                let so = &mut self.so[r.node()][r.low()];
                *so = StreamObject { st: so.st, ..Default::default() }; // the fold holds the rest
            }
        }
        self.log.copy_within(cut..kept, 0);
        self.log[kept - cut..].fill(Rec::default());
        self.loglen = (kept - cut) as u8;
        for i in 0..NI {
            self.view[i] -= if self.live(i) { cut as u8 } else { 0 };
        }
    }

    /// Whether some takeover reads the chain of `x`, or may begin to.
    pub(crate) fn walked(&self, w: &World, x: usize) -> bool {
        let o = x as u8 + 1;
        (0..NI).any(|j| {
            self.live(j)
                && (self.task[j].iter().any(|k| k.x == o) || j != x && self.view_of(w, j).owner.contains(&o))
        })
    }

    /// Whether what lies in the chain of `x` can still matter to anybody.
    pub(crate) fn watched(&self, w: &World, head: &Meta, x: usize) -> bool {
        w.cfg.full
            || !head.dead(x)
            || !self.has(x, STOPPED)
            || self.walked(w, x)
            || self.log[..self.loglen as usize]
                .iter()
                .any(|r| r.kind() == COMMIT && self.so[r.node()][r.low()].src as usize == x + 1)
    }

    fn forget(&mut self, w: &World, head: &Meta) {
        let cfg = &w.cfg;
        for x in 0..NI {
            let so = &mut self.so[x];
            for o in so.iter_mut().filter(|o| o.st == SO_GONE && cfg.tasks == 1 && !cfg.is(DeleteUndecided)) {
                let c = StreamObject { st: SO_GONE, ..Default::default() };
                *o = c;
            }
            if self.next[x] > 0 && !self.watched(w, head, x) {
                let adopted = head.adopted[x];
                for n in 0..SLOTS {
                    if n >= MAXN || adopted >> n & 1 == 0 {
                        self.wal[x][n] = ABSENT;
                    }
                }
                self.sealput[x] = 0;
                self.next[x] = 0;
                self.status[x] = [0; MAXN];
                self.through[x] = [0; MAXN];
                self.chunk[x] = [[0; NB]; MAXN];
                self.forget_trim(w, x);
            }
        }
    }

    fn forget_trim(&mut self, w: &World, x: usize) {
        let forgotten = |after: [u8; 4]| match u32::from_le_bytes(after) {
            id if w.meta(id).dead(x) => w.forget_trim(id, x).to_le_bytes(),
            _ => after,
        };
        self.base = forgotten(self.base);
        for record in &mut self.log[..self.loglen as usize] {
            record.after = forgotten(record.after);
        }
    }
}
