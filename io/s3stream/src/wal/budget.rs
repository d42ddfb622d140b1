//! How many PUTs of WAL objects may be sent: a rate with a burst, so that the bill is bounded whatever the store's latency.
//!
//! Lives on: service runtime; shared by the WAL writer and the tasks of its PUTs, hence the lock (held for a look).
//! Invariants: within any span of t seconds at most burst + t * rate PUTs are granted: the first of an object, hedges, and
//! repeats alike (the seal alone is beside it). While PUTs are in flight, a cut spends no burst: it comes a turn of the rate
//! after the grant before it at the soonest. So a steady load pays the rate, also one whose speed goes up and down, and the
//! burst is there for what comes after a rest and for hedges.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mink_rt::Instant;

use super::WalConfig;

const SECOND_NANOS: u64 = 1_000_000_000;
/// One in so many of the burst is for hedges and repeats only: a chain that is written at its full rate can then still hedge.
const RESERVE_SHARE: u32 = 5;

/// A budget of `puts_per_second` with a burst of as many; without a rate everything is granted.
#[derive(Debug)]
pub(crate) struct PutBudget {
    rate: Option<Rate>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    interval: Duration,
    burst: u32,
    /// Of the burst, for hedges and repeats only.
    reserve: u32,
    /// What lies between two cuts while PUTs are in flight; a shorter linger asks for more of them.
    turn: Duration,
}

#[derive(Debug)]
struct State {
    /// When the budget will be full again: each PUT moves it one interval on.
    full_at: Instant,
    /// The next cut while PUTs are in flight.
    turn_at: Instant,
}

impl Rate {
    /// When a PUT may be sent that leaves `left` of the burst.
    fn ready_at(&self, state: &State, left: u32) -> Instant {
        let room = self.interval.saturating_mul(self.burst.saturating_sub(1).saturating_sub(left));
        state.full_at.checked_sub(room).unwrap_or(Instant::ZERO)
    }

    fn spend(&self, state: &mut State, at: Instant) {
        state.full_at = state.full_at.max(at) + self.interval;
    }

    /// A PUT beside the cuts: the next cut gives up its turn for it.
    fn skip_turn(&self, state: &mut State, now: Instant) {
        let most = now + self.turn.saturating_mul(self.reserve.saturating_add(1));
        state.turn_at = (state.turn_at.max(now) + self.turn).min(most);
    }
}

impl PutBudget {
    pub(crate) fn new(config: &WalConfig) -> PutBudget {
        let rate = config.puts_per_second.filter(|rate| *rate > 0).map(|rate| {
            let interval = Duration::from_nanos(SECOND_NANOS.div_ceil(u64::from(rate)));
            Rate { interval, burst: rate, reserve: rate / RESERVE_SHARE, turn: interval.min(config.linger) }
        });
        PutBudget { rate, state: Mutex::new(State { full_at: Instant::ZERO, turn_at: Instant::ZERO }) }
    }

    /// The earliest moment at which an object may be cut.
    pub(crate) fn cut_at(&self, in_flight: bool) -> Instant {
        let Some(rate) = &self.rate else {
            return Instant::ZERO;
        };
        let state = self.lock();
        let ready_at = rate.ready_at(&state, rate.reserve);
        if in_flight { ready_at.max(state.turn_at) } else { ready_at }
    }

    /// Pays for the first PUT of an object that is cut now.
    pub(crate) fn cut(&self, now: Instant) {
        if let Some(rate) = &self.rate {
            let mut state = self.lock();
            rate.spend(&mut state, now);
            state.turn_at = now + rate.turn;
        }
    }

    /// Pays for a hedge, if it can be sent now: later it is of no use.
    pub(crate) fn hedge(&self, now: Instant) -> bool {
        let Some(rate) = &self.rate else {
            return true;
        };
        let mut state = self.lock();
        let paid = rate.ready_at(&state, 0) <= now;
        if paid {
            rate.spend(&mut state, now);
            rate.skip_turn(&mut state, now);
        }
        paid
    }

    /// Pays for a repeat, and says when it may be sent. A frozen number cannot be given up, so it waits for its grant: for
    /// the grants before it at most, of which each PUT in flight has one.
    pub(crate) fn repeat_at(&self, now: Instant) -> Instant {
        let Some(rate) = &self.rate else {
            return now;
        };
        let mut state = self.lock();
        let at = rate.ready_at(&state, 0).max(now);
        rate.spend(&mut state, at);
        rate.skip_turn(&mut state, now);
        at
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change leaves both moments whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn budget(rate: Option<u32>) -> PutBudget {
        PutBudget::new(&WalConfig { puts_per_second: rate, ..WalConfig::default() })
    }

    fn cuts(budget: &PutBudget, from: u64, to: u64, in_flight: bool) -> u32 {
        let mut count = 0;
        for now in (from..to).map(ms) {
            while budget.cut_at(in_flight) <= now && count < 10_000 {
                budget.cut(now);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_burst_then_the_rate_then_a_burst_after_a_rest() {
        let budget = budget(Some(20));
        assert_eq!(cuts(&budget, 10_000, 10_001, false), 16);
        assert_eq!(cuts(&budget, 10_001, 11_001, false), 20);
        assert_eq!(cuts(&budget, 20_000, 20_001, false), 16);
    }

    #[test]
    fn while_puts_are_in_flight_the_burst_is_not_spent() {
        let cutting = budget(Some(20));
        assert_eq!(cuts(&cutting, 10_000, 20_000, true), 200);
        // It is all there.
        assert_eq!(cuts(&cutting, 20_000, 20_001, false), 16);
        // A hedge takes the turn of a cut.
        let hedged = budget(Some(20));
        hedged.cut(ms(10_000));
        assert!(hedged.hedge(ms(10_010)));
        assert_eq!((hedged.cut_at(true), hedged.cut_at(false)), (ms(10_100), ms(9_350)));
    }

    #[test]
    fn a_hedge_that_cannot_be_paid_is_not_sent_and_a_repeat_waits_for_its_grant() {
        let budget = budget(Some(20));
        assert_eq!(cuts(&budget, 10_000, 10_001, false), 16);
        assert!((0..4).all(|_| budget.hedge(ms(10_000))), "the reserve is theirs");
        assert!(!budget.hedge(ms(10_000)) && !budget.hedge(ms(10_049)));
        assert!(budget.hedge(ms(10_050)));
        let repeats: Vec<_> = (0..3).map(|_| budget.repeat_at(ms(10_060))).collect();
        assert_eq!(repeats, [ms(10_100), ms(10_150), ms(10_200)]);
    }

    #[test]
    fn without_a_rate_nothing_is_held_back() {
        let budget = budget(None);
        assert_eq!(cuts(&budget, 0, 1, true), 10_000);
        assert!(budget.hedge(ms(0)) && budget.repeat_at(ms(7)) == ms(7));
    }

    proptest! {
        #[test]
        fn i20_no_span_has_more_grants_than_burst_and_rate(
            rate in 1u32..50,
            asks in proptest::collection::vec((0u64..200, 0u8..8), 1..300),
        ) {
            let budget = budget(Some(rate));
            let (mut now, mut grants) = (5_000u64, Vec::new());
            for (pause, what) in asks {
                now += pause;
                let at = ms(now);
                match what {
                    0 => grants.push(budget.repeat_at(at)),
                    1 | 2 if budget.hedge(at) => grants.push(at),
                    3.. if budget.cut_at(what > 4) <= at => {
                        budget.cut(at);
                        grants.push(at);
                    }
                    _ => {}
                }
            }
            grants.sort();
            for (first, from) in grants.iter().enumerate() {
                for (last, to) in grants.iter().enumerate().skip(first) {
                    let most = f64::from(rate) * (1.0 + (*to - *from).as_secs_f64());
                    let count = u32::try_from(last - first + 1).unwrap();
                    prop_assert!(f64::from(count) <= most + 1e-6, "{count} grants in {:?}", *to - *from);
                }
            }
        }
    }
}
