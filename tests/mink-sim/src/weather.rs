//! How requests to the store and the database fare: delays, the two coins, outages, storms.
//!
//! Lives on: the simulation's thread; a request is a task of the world, so it outlives the process that sent it.
//! Owns: what is broken now.
//! Invariants: all four ends of a request can be drawn (happened or not, reported or not), and a request may happen long after its
//! sender has given it up.
use crate::dice::Dice;
use mink_object::FaultAnswer;
use mink_rt::{Service, SimWorld};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What can be asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    Store,
    Database,
}

/// How one place behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Climate {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
    /// Of 100 requests so many get an error and did not happen.
    pub(crate) refused: u64,
    /// Of 100 so many happened and the answer is lost or an error.
    pub(crate) unreported: u64,
    /// Of 1,000 so many happen late.
    pub(crate) late_permille: u64,
    /// No request arrives.
    pub(crate) down: bool,
    /// Everything is answered 503.
    pub(crate) storm: bool,
}

impl Climate {
    fn calm(least_ms: u64, most_ms: u64) -> Climate {
        Climate {
            least: Duration::from_millis(least_ms),
            most: Duration::from_millis(most_ms),
            refused: 0,
            unreported: 0,
            late_permille: 0,
            down: false,
            storm: false,
        }
    }
}

/// Whether one node is cut off from a place. Requests that are under way arrive all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    pub(crate) fn set(&self, cut: bool) {
        self.0.store(cut, Ordering::Relaxed);
    }

    pub(crate) fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A late request arrives at most so much later: within the grace after which a dead process's prefixes are listed. What comes after
/// that is found by the next listing, a day later.
const LATE_MAX: Duration = Duration::from_secs(12);

/// The faults that are in force.
#[derive(Debug)]
pub(crate) struct Weather {
    dice: Dice,
    service: Service,
    world: SimWorld,
    state: Mutex<(Climate, Climate)>,
}

impl Weather {
    pub(crate) fn new(world: &SimWorld, dice: &Dice) -> Weather {
        let service = world.runtime().service();
        let state = Mutex::new((Climate::calm(1, 5), Climate::calm(0, 1)));
        Weather { dice: dice.clone(), service, world: world.clone(), state }
    }

    fn state(&self) -> MutexGuard<'_, (Climate, Climate)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, place: Place, change: impl FnOnce(&mut Climate)) {
        let mut state = self.state();
        match place {
            Place::Store => change(&mut state.0),
            Place::Database => change(&mut state.1),
        }
    }

    /// Nothing is lost or refused any more, and answers are quick.
    pub(crate) fn clear_up(&self) {
        *self.state() = (Climate::calm(1, 5), Climate::calm(0, 1));
    }

    fn climate(&self, place: Place) -> Climate {
        let state = self.state();
        if place == Place::Store { state.0 } else { state.1 }
    }

    /// What its sender is told when a request that did not happen, or may not be known to have, ends badly. A conflict is told to
    /// conditional writes alone.
    fn answer(&self, conditional: bool) -> FaultAnswer {
        match self.dice.below(8) {
            0..=3 => FaultAnswer::Lost,
            4 => FaultAnswer::Status(500),
            5 if conditional => FaultAnswer::Status(409),
            _ => FaultAnswer::Status(503),
        }
    }

    /// A request is on its way: passes the time until it arrives. What the sender is told if it does not.
    pub(crate) async fn arrive(&self, place: Place, what: u64, conditional: bool) -> Option<FaultAnswer> {
        self.world.note(what);
        let climate = self.climate(place);
        let mut there = self.dice.between(climate.least, climate.most);
        if self.dice.below(1_000) < climate.late_permille {
            there += self.dice.between(Duration::from_millis(500), LATE_MAX);
        }
        self.service.sleep(there).await;
        let climate = self.climate(place);
        if climate.down {
            return Some(FaultAnswer::Lost);
        }
        if climate.storm && self.dice.percent(70) {
            return Some(FaultAnswer::Status(503));
        }
        self.dice.percent(climate.refused).then(|| self.answer(conditional))
    }

    /// A request has happened: passes the time of its answer. What the sender is told instead of it.
    pub(crate) async fn answer_back(&self, place: Place, conditional: bool) -> Option<FaultAnswer> {
        let climate = self.climate(place);
        self.service.sleep(self.dice.between(climate.least, climate.most) / 4).await;
        if self.climate(place).down {
            return Some(FaultAnswer::Lost);
        }
        // A gateway may say 503 after it has passed a request on.
        if climate.storm && self.dice.percent(40) {
            return Some(FaultAnswer::Status(503));
        }
        self.dice.percent(climate.unreported).then(|| self.answer(conditional))
    }
}

/// FNV-1a, to note requests in the trace.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
