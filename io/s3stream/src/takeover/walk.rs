//! The rules of a walk over a dead chain, as a state machine without I/O.
//!
//! Lives on: anywhere (pure).
//! Owns: where the walk is, what it has found lost.
//! Invariants: I1: the walk ends only at a seal, so nothing can be written behind its back; a number is called lost only on
//! proof: another object says that it was durable, *and* a read that began after that was seen finds it absent (a read from
//! before proves nothing while the old writer may still live).
use mink_types::WalNumber;

/// What a read of a number found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Data,
    /// An object whose bytes are not what was written. The number is taken; its data is lost.
    Damaged,
    Seal,
    Absent,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Read this number. `fresh`: by a request that begins now.
    Read { number: WalNumber, fresh: bool },
    /// Read the headers of the numbers `after + 1` to `last`; see what the highest `durable_through` in them is.
    Probe { after: WalNumber, last: WalNumber },
    /// Create the seal here, create-only.
    WriteSeal { number: WalNumber },
    /// The seal lies here; the walk is over.
    Done { seal: WalNumber },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Reading,
    Probing,
    Proven,
    Sealing,
    Done,
}

/// A walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    at: WalNumber,
    window: u64,
    state: State,
    lost: Vec<WalNumber>,
    damaged: Vec<WalNumber>,
}

impl Walk {
    /// A walk from the chain's frozen trim. `window` is the most numbers that a writer has in flight.
    pub fn new(trim: WalNumber, window: u64) -> Walk {
        Walk { at: trim, window, state: State::Reading, lost: Vec::new(), damaged: Vec::new() }
    }

    /// What to do next.
    pub fn step(&self) -> Step {
        let number = self.at;
        match self.state {
            State::Reading => Step::Read { number, fresh: false },
            State::Probing => {
                Step::Probe { after: number, last: WalNumber(number.0.saturating_add(self.window)) }
            }
            State::Proven => Step::Read { number, fresh: true },
            State::Sealing => Step::WriteSeal { number },
            State::Done => Step::Done { seal: number },
        }
    }

    /// Numbers that were durable once and are gone.
    pub fn lost(&self) -> &[WalNumber] {
        &self.lost
    }

    /// Numbers whose objects cannot be read.
    pub fn damaged(&self) -> &[WalNumber] {
        &self.damaged
    }

    /// The answer to [`Step::Read`].
    pub fn read(&mut self, found: Found) {
        match (self.state, found) {
            (State::Reading | State::Proven, Found::Data) => self.go_on(),
            (State::Reading | State::Proven, Found::Damaged) => {
                self.damaged.push(self.at);
                self.go_on();
            }
            (State::Reading | State::Proven, Found::Seal) => self.state = State::Done,
            (State::Reading, Found::Absent) => self.state = State::Probing,
            (State::Proven, Found::Absent) => {
                self.lost.push(self.at);
                self.go_on();
            }
            (State::Probing | State::Sealing | State::Done, _) => {}
        }
    }

    /// The answer to [`Step::Probe`]: the highest `durable_through` in the headers found, none without headers.
    pub fn probed(&mut self, durable_through: Option<WalNumber>) {
        if self.state == State::Probing {
            let proven = durable_through.is_some_and(|through| through >= self.at);
            self.state = if proven { State::Proven } else { State::Sealing };
        }
    }

    /// The answer to [`Step::WriteSeal`]: whether our seal is there; otherwise something else is, and is read.
    pub fn sealed(&mut self, ours: bool) {
        if self.state == State::Sealing {
            self.state = if ours { State::Done } else { State::Reading };
        }
    }

    fn go_on(&mut self) {
        self.at = self.at.next();
        self.state = State::Reading;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(walk: &Walk) -> Step {
        walk.step()
    }

    #[test]
    fn a_clean_chain_is_sealed_at_its_first_free_number() {
        let mut walk = Walk::new(WalNumber(4), 16);
        assert_eq!(at(&walk), Step::Read { number: WalNumber(4), fresh: false });
        walk.read(Found::Data);
        walk.read(Found::Absent);
        assert_eq!(at(&walk), Step::Probe { after: WalNumber(5), last: WalNumber(21) });
        walk.probed(None);
        assert_eq!(at(&walk), Step::WriteSeal { number: WalNumber(5) });
        walk.sealed(true);
        assert_eq!(at(&walk), Step::Done { seal: WalNumber(5) });
    }

    #[test]
    fn a_put_that_comes_before_the_seal_is_read_and_the_walk_goes_on() {
        let mut walk = Walk::new(WalNumber(0), 16);
        walk.read(Found::Absent);
        walk.probed(None);
        walk.sealed(false);
        assert_eq!(at(&walk), Step::Read { number: WalNumber(0), fresh: false });
        walk.read(Found::Data);
        walk.read(Found::Seal);
        assert_eq!(at(&walk), Step::Done { seal: WalNumber(1) });
    }

    #[test]
    fn an_object_ahead_that_does_not_vouch_for_the_hole_is_cut_off_by_the_seal() {
        let mut walk = Walk::new(WalNumber(7), 16);
        walk.read(Found::Absent);
        walk.probed(Some(WalNumber(6)));
        assert_eq!(at(&walk), Step::WriteSeal { number: WalNumber(7) });
    }

    #[test]
    fn a_hole_that_was_durable_is_lost_only_if_a_later_read_misses_it_too() {
        let mut walk = Walk::new(WalNumber(7), 16);
        walk.read(Found::Absent);
        walk.probed(Some(WalNumber(7)));
        assert_eq!(at(&walk), Step::Read { number: WalNumber(7), fresh: true });
        let mut late = walk.clone();
        walk.read(Found::Absent);
        assert_eq!(walk.lost(), [WalNumber(7)]);
        assert_eq!(at(&walk), Step::Read { number: WalNumber(8), fresh: false });
        // The old writer's PUT came between the two reads: nothing is lost.
        late.read(Found::Data);
        assert_eq!((late.lost().len(), late.step()), (0, Step::Read { number: WalNumber(8), fresh: false }));
    }

    #[test]
    fn p_1_a_damaged_object_holds_its_number_and_is_named() {
        let mut walk = Walk::new(WalNumber(0), 16);
        walk.read(Found::Damaged);
        assert_eq!(walk.damaged(), [WalNumber(0)]);
        assert_eq!(at(&walk), Step::Read { number: WalNumber(1), fresh: false });
    }
}
