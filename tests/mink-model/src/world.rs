//! What a run shares: its scope, and the metadata states with what the committed offsets hold.
//!
//! Lives on: anywhere (pure).
//! Owns: the tables behind the numbers that a model state has for metadata.
//! Invariants: one number means one thing for the whole run, and equal things have one number.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use crate::change::Change;
use crate::config::Config;
use crate::engine::{Engine, Outcome};
use crate::state::{MAXO, NB};
use crate::view::Meta;

type Content = [[u8; MAXO]; NB];

/// Metadata and content, by number.
#[derive(Debug)]
struct Places {
    engine: Engine,
    all: Vec<(u32, Meta)>,
    numbers: HashMap<(u32, Content), u32>,
}

/// A run's surroundings.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) cfg: Config,
    places: RefCell<Places>,
}

impl World {
    pub(crate) fn new(cfg: &Config) -> World {
        let mut places =
            Places { engine: Engine::new(cfg.buckets), all: Vec::new(), numbers: HashMap::new() };
        places.number(0, Content::default());
        World { cfg: *cfg, places: RefCell::new(places) }
    }

    /// The metadata of a number. 0 is the beginning.
    pub(crate) fn meta(&self, id: u32) -> Meta {
        self.places.borrow().all[id as usize].1
    }

    /// What a change makes of it; `values` are those that a commit adds to each bucket.
    pub(crate) fn apply(
        &self,
        id: u32,
        change: Change,
        counter: u8,
        values: &[Vec<u8>; NB],
    ) -> (u32, Outcome) {
        let mut places = self.places.borrow_mut();
        let (engine, before) = places.all[id as usize];
        let (after, outcome) = places.engine.apply(engine, change, counter);
        let mut content = before.content;
        if outcome.accepted {
            for b in 0..NB {
                for (at, value) in values[b].iter().enumerate() {
                    // A mutant may pass the scope's end.
                    if let Some(place) = content[b].get_mut(before.end[b] as usize + at) {
                        *place = *value;
                    }
                }
            }
        }
        (places.number(after, content), outcome)
    }

    /// A number like `id`, but for the trim of `x`.
    pub(crate) fn forget_trim(&self, id: u32, x: usize) -> u32 {
        let mut places = self.places.borrow_mut();
        let (engine, meta) = places.all[id as usize];
        let engine = places.engine.forget_trim(engine, x);
        places.number(engine, meta.content)
    }

    /// What an audit has found so far.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        self.places.borrow().engine.fault
    }

    /// Metadata states and transitions met.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.places.borrow().engine.counts()
    }

    /// Transitions by how the engine judged them.
    pub(crate) fn judgements(&self) -> BTreeMap<(&'static str, &'static str), usize> {
        self.places.borrow().engine.judged.clone()
    }
}

impl Places {
    fn number(&mut self, engine: u32, content: Content) -> u32 {
        let next = self.all.len() as u32;
        let meta = Meta { content, ..self.engine.meta(engine) };
        let number = *self.numbers.entry((engine, content)).or_insert(next);
        if number == next {
            self.all.push((engine, meta));
        }
        number
    }
}
