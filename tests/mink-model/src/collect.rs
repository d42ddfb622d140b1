//! Garbage: what the plans of mink-coordinator let go, and its deletion at any later time.
//!
//! Lives on: anywhere (pure).
//! Invariants: I14. What may go is the plans' answer (`view.rs`); a mutant does not ask them.
use crate::act::Act;
use crate::change::{Change, LEASE_HOLDER};
use crate::config::Mutant::*;
use crate::state::*;
use crate::step::Steps;
use crate::view::Meta;

impl Steps<'_> {
    /// WAL and stream objects that the plans alone let go: bits inc * SLOTS + number, then objects. That this set only grows is
    /// checked at every append; so a late DELETE, or one decided on an old view, does no harm, and deleting stream orphans needs
    /// no steps of its own. Where a seal was recorded no data was or will be, so that number does not count.
    pub(crate) fn garbage(&self, m: &Meta, sealed: &[u8; NI]) -> u64 {
        let mut g = 0;
        for (x, seal) in sealed.iter().enumerate().take(self.cfg.incarnations) {
            for n in (0..SLOTS).filter(|&n| self.wal_garbage(m, x, n) && *seal != n as u8 + 1) {
                g |= 1 << (x * SLOTS + n);
            }
            g |= u64::from(m.stream_free[x] | m.doomed.stream[x]) << (NI * SLOTS + x * NC);
        }
        g
    }

    /// Whether number `n` of `x` may go if it holds data: the plans' answer, but for the mutants.
    fn wal_garbage(&self, m: &Meta, x: usize, n: usize) -> bool {
        let cfg = self.cfg;
        let anchorless = cfg.is(NoAnchor) || cfg.is(AnchorBelowDead) && m.is_fenced(x);
        let floor = if anchorless { m.trim[x] } else { m.floor[x] };
        let orphan = cfg.is(OrphanRuleOnWal) && m.is_fenced(x) && m.adopted[x] >> n & 1 == 0;
        (n as u8) < floor || (m.data_free[x] | m.doomed.wal[x]) >> n & 1 == 1 || orphan
    }

    pub(crate) fn collect(&mut self, s: &State) {
        let (cfg, head) = (self.cfg, self.head);
        for x in 0..cfg.incarnations {
            if s.wal[x] == [ABSENT; SLOTS]
                || !cfg.full
                    && head.dead(x)
                    && !cfg.resurrect
                    && !s.walked(self.w, x)
                    && !cfg.is(SealCollected)
            {
                continue;
            }
            for n in 0..SLOTS {
                let mut may = self.wal_garbage(&head, x, n);
                if cfg.is(TrimBeforeCommit) {
                    may |= s.task[x]
                        .iter()
                        .any(|k| k.kind == FLUSH_COMMIT && (n as u8 + 1) < s.so[x][k.c as usize].trim);
                }
                if cfg.is(DeadByCommittedEnd) && head.is_fenced(x) && n < MAXN {
                    may |= (0..NB).all(|b| s.entry(x, n, b).is_none_or(|e| e.1 < head.end[b]));
                }
                if cfg.is(ReplacedTooSoon) {
                    let rewrites =
                        |k: &Task| k.kind == COMPACTING && head.lies[k.b as usize].wal[x] >> n & 1 == 1;
                    may |= s.task.as_flattened().iter().any(rewrites);
                }
                let mut next = *s;
                next.wal[x][n] = ABSENT;
                match s.wal[x][n] {
                    DATA | DATA2 if may => self.emit(Act::Collect(x, n, "WAL"), next),
                    SEAL if cfg.is(SealCollected) && head.dead(x) => {
                        self.emit(Act::Collect(x, n, "seal"), next);
                    }
                    SEAL if cfg.strays && head.seal_free[x] >> n & 1 == 1 => {
                        self.emit(Act::Collect(x, n, "stray seal"), next);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The lease holder tells the log what has been deleted, and which chain has been cleaned.
    pub(crate) fn tell(&mut self, s: &State) {
        let doomed = self.head.doomed;
        let gone = |x: usize| (0..SLOTS).all(|n| doomed.wal[x] >> n & 1 == 0 || s.wal[x][n] == ABSENT);
        let mut told = Vec::new();
        if !doomed.is_empty() && (0..NI).all(gone) {
            told.push(Change::Deleted { objects: doomed });
        }
        for x in 0..self.cfg.incarnations {
            let head = &self.head;
            let clean = |n: usize| !s.is_data(x, n) || head.data_free[x] >> n & 1 == 0;
            if head.dead(x) && head.sealed[x] > 0 && head.swept >> x & 1 == 0 && (0..SLOTS).all(clean) {
                told.push(Change::Swept { x: x as u8 });
            }
        }
        for change in told {
            let mut n = *s;
            let (after, outcome) = self.w.apply(s.at(s.loglen), change, 0, &Default::default());
            n.push(Rec::new(TIDIED, LEASE_HOLDER, 0, 0, 0).judged(after, outcome));
            self.emit(Act::Append(LEASE_HOLDER, TIDIED, 0, outcome.accepted), n);
        }
    }
}
