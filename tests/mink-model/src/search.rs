//! Breadth-first search over all states; a state is remembered by a 64-bit fingerprint.
//!
//! Lives on: anywhere (pure), but for the clock that its report shows.
//! Invariants: every step of every state is taken. Two states in one fingerprint would hide one: at 2^28 states the chance is
//! below 1 in 500.
use crate::act::Act;
use crate::check::{broken, met, stuck};
use crate::config::Config;
use crate::state::*;
use crate::step::*;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Open-addressing set of fingerprints, with the parent's fingerprint when traces are wanted.
struct Seen {
    keys: Vec<u64>,
    parents: Vec<u64>,
    len: usize,
}
impl Seen {
    fn new(traces: bool) -> Seen {
        let n = 1 << 16;
        Seen { keys: vec![0; n], parents: if traces { vec![0; n] } else { vec![] }, len: 0 }
    }
    fn slot(keys: &[u64], key: u64) -> usize {
        let mask = keys.len() - 1;
        let mut at = key as usize & mask;
        while keys[at] != 0 && keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }
    fn insert(&mut self, key: u64, parent: u64) -> bool {
        if self.len * 5 > self.keys.len() * 4 {
            let n = self.keys.len() * 2;
            let (mut keys, mut parents) = (vec![0; n], vec![0; if self.parents.is_empty() { 0 } else { n }]);
            for (i, &k) in self.keys.iter().enumerate().filter(|(_, k)| **k != 0) {
                let at = Seen::slot(&keys, k);
                keys[at] = k;
                if !parents.is_empty() {
                    parents[at] = self.parents[i];
                }
            }
            (self.keys, self.parents) = (keys, parents);
        }
        let at = Seen::slot(&self.keys, key);
        if self.keys[at] != 0 {
            return false;
        }
        self.keys[at] = key;
        if !self.parents.is_empty() {
            self.parents[at] = parent;
        }
        self.len += 1;
        true
    }
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let (mut a, mut b) = (0x9E37_79B9_7F4A_7C15u64 ^ bytes.len() as u64, 0xD1B5_4A32_D192_ED03u64);
    for c in bytes.chunks(16) {
        let mut w = [0u8; 16];
        w[..c.len()].copy_from_slice(c);
        let word = u128::from_le_bytes(w);
        let (x, y) = (word as u64, (word >> 64) as u64);
        let m = u128::from(x ^ a) * u128::from(y ^ b);
        a = a.rotate_left(23) ^ m as u64 ^ 0xA076_1D64_78BD_642F;
        b = b.wrapping_add((m >> 64) as u64 ^ x).rotate_left(41).wrapping_mul(0xE703_7ED1_A0B4_28DB);
    }
    let m = u128::from(a ^ 0x8EBC_6AF0_9C88_C6E3) * u128::from(b ^ 0x5899_65CC_7537_4CC3);
    ((m >> 64) as u64 ^ m as u64).max(1)
}

/// A state without its zero bytes: per eight bytes a mask, then those that are not zero.
fn pack(s: &State, out: &mut Vec<u8>) {
    out.clear();
    for group in s.bytes().chunks(8) {
        let mut word = [0u8; 8];
        word[..group.len()].copy_from_slice(group);
        let (mut w, at) = (u64::from_le_bytes(word), out.len());
        out.push(0);
        while w != 0 {
            let i = w.trailing_zeros() / 8;
            out[at] |= 1 << i;
            out.push((w >> (i * 8)) as u8);
            w &= !(0xFF << (i * 8));
        }
    }
}
fn unpack(bytes: &[u8], at: &mut usize) -> State {
    let mut out = [0u8; SIZE];
    for group in out.chunks_mut(8) {
        let mut mask = bytes[*at];
        *at += 1;
        while mask != 0 {
            group[mask.trailing_zeros() as usize] = bytes[*at];
            mask &= mask - 1;
            *at += 1;
        }
    }
    State::from_bytes(&out)
}

/// States of one level, in blocks that are given back as they are read.
#[derive(Default)]
struct Level {
    blocks: Vec<Vec<u8>>,
    count: usize,
}
impl Level {
    fn push(&mut self, packed: &[u8]) {
        const BLOCK: usize = 1 << 24;
        if self.blocks.last().is_none_or(|b| b.len() + packed.len() > BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        self.blocks.last_mut().expect("pushed").extend_from_slice(packed);
        self.count += 1;
    }
}

pub(crate) fn initial() -> State {
    let mut s = State::default();
    s.flags[0] = BEGUN;
    s
}

/// A property that breaks, and the shortest way there.
#[derive(Debug)]
pub struct Found {
    pub what: &'static str,
    /// Empty unless traces were asked for.
    pub trace: Vec<Act>,
}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Remember where each state came from, for the trace to a fault.
    pub traces: bool,
    /// Stop after so many states.
    pub limit: usize,
    /// From every state whose fingerprint is a multiple of it, let each live incarnation finish (0: never).
    pub drive: u64,
    /// Collect the different metadata that runs lead to: the same with and without reductions.
    pub outcomes: bool,
    /// Tell of each level on stderr.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { traces: false, limit: usize::MAX, drive: 0, outcomes: false, progress: false }
    }
}

/// What a search has met.
#[derive(Debug, Default)]
pub struct Report {
    pub states: usize,
    pub steps: u64,
    pub depth: usize,
    /// States from which no step leads on.
    pub ends: u64,
    pub driven: u64,
    /// How many states show each of [`crate::MET`].
    pub met: [u64; 6],
    pub outcomes: BTreeSet<Vec<u8>>,
    /// All states were met, the limit was not.
    pub complete: bool,
    /// Metadata states and transitions met.
    pub metadata: (usize, usize),
    /// Transitions of the metadata by what was asked, and how `apply` judged it.
    pub judged: BTreeMap<(&'static str, &'static str), usize>,
    pub seconds: f64,
    pub found: Option<Found>,
}

/// Searches a scope to its end, to the first fault or to the limit.
pub fn search(cfg: &Config, options: Options) -> Report {
    let w = &World::new(cfg);
    let clock = Instant::now();
    let mut seen = Seen::new(options.traces);
    let mut level = Level::default();
    let mut packed = Vec::new();
    pack(&initial(), &mut packed);
    seen.insert(fingerprint(&packed), 0);
    level.push(&packed);
    let mut steps = Steps::new(w);
    let mut r = Report { complete: true, ..Report::default() };
    'all: while level.count > 0 {
        let mut next = Level::default();
        for block in std::mem::take(&mut level.blocks) {
            let mut at = 0;
            while at < block.len() {
                let begin = at;
                let s = unpack(&block, &mut at);
                let from = fingerprint(&block[begin..at]);
                steps.all(&s);
                r.steps += steps.out.len() as u64;
                r.ends += u64::from(steps.out.is_empty());
                for (_, n) in &steps.out {
                    pack(n, &mut packed);
                    let key = fingerprint(&packed);
                    if !seen.insert(key, from) {
                        continue;
                    }
                    let mut what = w.fault().or_else(|| broken(w, n));
                    if what.is_none() && options.drive > 0 && key.is_multiple_of(options.drive) {
                        r.driven += 1;
                        what = (0..cfg.incarnations)
                            .any(|j| stuck(w, n, j))
                            .then_some("dead end: a live incarnation cannot open the buckets");
                    }
                    if let Some(what) = what {
                        let trace = if options.traces { trace(w, &seen, key) } else { vec![] };
                        r.found = Some(Found { what, trace });
                        r.depth += 1;
                        break 'all;
                    }
                    for (count, yes) in r.met.iter_mut().zip(met(w, n)) {
                        *count += u64::from(yes);
                    }
                    if options.outcomes {
                        r.outcomes.insert(n.head(w).outcome());
                    }
                    next.push(&packed);
                }
                if seen.len > options.limit {
                    r.complete = false;
                    break 'all;
                }
            }
        }
        level = next;
        r.depth += usize::from(level.count > 0);
        if options.progress && clock.elapsed().as_secs() > 20 {
            let megabytes = level.blocks.len() * 16;
            eprintln!(
                "  depth {} level {} states {} steps {} level-MB {megabytes} {:.0}s",
                r.depth,
                level.count,
                seen.len,
                r.steps,
                clock.elapsed().as_secs_f64()
            );
        }
    }
    r.states = seen.len;
    r.metadata = w.counts();
    r.judged = w.judgements();
    r.seconds = clock.elapsed().as_secs_f64();
    r
}

fn trace(w: &World, seen: &Seen, last: u64) -> Vec<Act> {
    let mut keys = vec![last];
    while let Some(&k) = keys.last().filter(|&&k| k != 0) {
        keys.push(seen.parents[Seen::slot(&seen.keys, k)]);
    }
    keys.reverse();
    let mut steps = Steps::new(w);
    let mut s = initial();
    let mut acts = Vec::new();
    for &key in &keys[2..] {
        steps.all(&s);
        let mut packed = Vec::new();
        let mut leads = |n: &State| {
            pack(n, &mut packed);
            fingerprint(&packed) == key
        };
        let (act, n) = steps.out.iter().find(|(_, n)| leads(n)).expect("the parent leads to it");
        acts.push(*act);
        s = *n;
    }
    acts
}
