//! The numbers of a chain between their freezing and their being durable in order.
//!
//! Lives on: the WAL writer (pure).
//! Owns: the next number, what hangs on each number in flight.
//! Invariants: I1, I5: nothing becomes durable while a number before it is not. A number that was once frozen is never
//! given again. At most `window` numbers are in flight, so the object `window` numbers on was frozen after this one was
//! durable: that is how far a takeover must look for the proof of a lost object.
use std::collections::VecDeque;

use mink_rt::mutant;
use mink_types::WalNumber;

/// The writer's end of a chain; `T` is what waits for a number to be durable.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    /// The lowest number that is not durable; `slots` begins with it.
    durable_below: u64,
    slots: VecDeque<Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    created: bool,
    held: T,
}

impl<T> Chain<T> {
    /// A new chain: its first number is 0.
    pub(crate) fn new() -> Chain<T> {
        Chain { durable_below: 0, slots: VecDeque::new() }
    }

    /// The number that the next object gets.
    pub(crate) fn next(&self) -> WalNumber {
        WalNumber(self.durable_below + self.slots.len() as u64)
    }

    /// All numbers below this one are durable.
    pub(crate) fn durable_below(&self) -> WalNumber {
        WalNumber(self.durable_below)
    }

    /// The last number of the contiguous durable ones.
    pub(crate) fn durable_through(&self) -> Option<WalNumber> {
        self.durable_below.checked_sub(1).map(WalNumber)
    }

    /// Numbers that are frozen and not durable in order.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// Gives a number away.
    pub(crate) fn freeze(&mut self, held: T) -> WalNumber {
        let number = self.next();
        self.slots.push_back(Slot { created: false, held });
        number
    }

    /// The object of `number` is known to hold its bytes. Gives what became durable by it, in order.
    pub(crate) fn created(&mut self, number: WalNumber) -> Vec<(WalNumber, T)> {
        let slot = number.0.checked_sub(self.durable_below).and_then(|at| usize::try_from(at).ok());
        if let Some(slot) = slot.and_then(|at| self.slots.get_mut(at)) {
            slot.created = true;
        }
        if mutant("ack-out-of-order") {
            self.slots.iter_mut().take(slot.map_or(0, |at| at + 1)).for_each(|slot| slot.created = true);
        }
        let mut durable = Vec::new();
        while self.slots.front().is_some_and(|slot| slot.created) {
            if let Some(slot) = self.slots.pop_front() {
                durable.push((WalNumber(self.durable_below), slot.held));
                self.durable_below += 1;
            }
        }
        durable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn i1_whatever_the_order_of_answers_numbers_become_durable_in_order(
            order in Just((0..16u64).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let mut chain = Chain::new();
            for n in 0..16u64 {
                prop_assert_eq!(chain.freeze(n), WalNumber(n));
            }
            let (mut answered, mut seen) = (vec![false; 16], Vec::new());
            for n in order {
                answered[usize::try_from(n).unwrap()] = true;
                seen.extend(chain.created(WalNumber(n)).into_iter().map(|(number, held)| {
                    assert_eq!(number.0, held);
                    held
                }));
                let contiguous = answered.iter().take_while(|done| **done).count() as u64;
                prop_assert_eq!(chain.durable_below(), WalNumber(contiguous));
                prop_assert_eq!(&seen, &(0..contiguous).collect::<Vec<_>>());
            }
            prop_assert_eq!(chain.in_flight(), 0);
            prop_assert_eq!(chain.next(), WalNumber(16));
        }
    }

    #[test]
    fn an_answer_for_a_number_that_is_durable_already_changes_nothing() {
        let mut chain = Chain::new();
        chain.freeze(());
        assert_eq!(chain.durable_through(), None);
        assert_eq!(chain.created(WalNumber(0)).len(), 1);
        assert!(chain.created(WalNumber(0)).is_empty() && chain.created(WalNumber(9)).is_empty());
        assert_eq!(chain.durable_through(), Some(WalNumber(0)));
    }
}
