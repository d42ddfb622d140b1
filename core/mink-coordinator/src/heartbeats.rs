//! Which lives have stopped beating, by what one observer saw on its own clock.
//!
//! Lives on: anywhere (pure); time comes in as this process's boot-time clock has it.
//! Owns: the last counter seen of each life, and since when.
//! Invariants: no wall clock and no clock of another machine counts; an observer that stood still or had no database for long has seen
//! nothing, and begins anew. What is found here only makes somebody fence: I3, I5 and I13 rest on the fence, the seal and the wait that
//! follow it, so a wrong suspicion costs a life, never a record.
use std::collections::BTreeMap;
use std::time::Duration;

use mink_types::Incarnation;

/// One reading of the heartbeats, in time since boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// When the database was asked: what it says is not older.
    pub asked: Duration,
    /// When the answer was here: what it says is not newer.
    pub answered: Duration,
    /// Looks this far apart and further do not tell what happened between them, nor does one that took so long tell what it saw.
    pub apart_max: Duration,
}

/// What is known of one life at a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beating {
    pub incarnation: Incarnation,
    /// None before its first beat.
    pub counter: Option<u64>,
    /// For how long it must have been silent to count as dead: a lease of its own, and a margin.
    pub silence: Duration,
}

/// A heartbeat that stood still for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// The counter all that time; none if there was no beat at all.
    pub counter: Option<u64>,
    /// Since when, in time since boot. No lease that was renewed by this beat counts from later.
    pub since: Duration,
}

/// Watches the heartbeats of others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heartbeats {
    /// The last counter of each life, and when it was seen first.
    seen: BTreeMap<Incarnation, Silence>,
    answered: Option<Duration>,
}

impl Heartbeats {
    /// Takes a look at all lives that are to be watched; those that have been silent for too long.
    pub fn look(
        &mut self,
        look: Look,
        lives: impl IntoIterator<Item = Beating>,
    ) -> BTreeMap<Incarnation, Silence> {
        let apart = self.answered.map(|before| look.asked.saturating_sub(before));
        // It may also have stood still between the question and the answer.
        let within = look.answered.saturating_sub(look.asked);
        if within >= look.apart_max || apart.is_none_or(|apart| apart >= look.apart_max) {
            self.seen.clear();
        }
        self.answered = Some(look.answered);
        let before = std::mem::take(&mut self.seen);
        let mut expired = BTreeMap::new();
        for life in lives {
            let same = before.get(&life.incarnation).filter(|seen| seen.counter == life.counter);
            let since = same.map_or(look.answered, |seen| seen.since);
            let silence = Silence { counter: life.counter, since };
            if look.asked.saturating_sub(since) > life.silence {
                expired.insert(life.incarnation, silence);
            }
            self.seen.insert(life.incarnation, silence);
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lives that have expired.
    fn expired<const N: usize>(heartbeats: &mut Heartbeats, look: Look, lives: [Beating; N]) -> Vec<u64> {
        heartbeats.look(look, lives).into_keys().map(|id| id.0).collect()
    }

    const SILENCE: Duration = Duration::from_secs(11);

    fn at(seconds: u64) -> Look {
        Look {
            asked: Duration::from_secs(seconds),
            answered: Duration::from_millis(seconds * 1_000 + 200),
            apart_max: Duration::from_secs(7),
        }
    }

    fn life(incarnation: u64, counter: impl Into<Option<u64>>) -> Beating {
        Beating { incarnation: Incarnation(incarnation), counter: counter.into(), silence: SILENCE }
    }

    #[test]
    fn a_life_whose_counter_stands_still_for_longer_than_its_lease_has_expired() {
        let mut heartbeats = Heartbeats::default();
        let mut found = Vec::new();
        for second in (0..30).step_by(3) {
            let lives = [life(4, second), life(7, 1), life(9, None)];
            found.push((second, expired(&mut heartbeats, at(second), lives)));
        }
        let first = found.iter().find(|(_, found)| !found.is_empty());
        assert_eq!(first, Some(&(12, vec![7, 9])), "seen first at 0.2 s, and silent for 11 s at 12 s");
        assert!(found.iter().all(|(_, found)| !found.contains(&4)), "one that beats lives");
    }

    #[test]
    fn any_change_of_the_counter_is_a_sign_of_life() {
        let mut heartbeats = Heartbeats::default();
        for (second, counter) in [(0, None), (6, Some(1)), (12, Some(2)), (18, Some(1)), (24, Some(1))] {
            assert_eq!(expired(&mut heartbeats, at(second), [life(7, counter)]), [0; 0], "at {second} s");
        }
        let silent = Silence { counter: Some(1), since: Duration::from_millis(18_200) };
        assert_eq!(heartbeats.look(at(30), [life(7, 1)]), BTreeMap::from([(Incarnation(7), silent)]));
    }

    #[test]
    fn i5_an_observer_that_stood_still_suspects_nobody() {
        let mut heartbeats = Heartbeats::default();
        heartbeats.look(at(0), [life(7, 1)]);
        heartbeats.look(at(5), [life(7, 1)]);
        assert_eq!(expired(&mut heartbeats, at(1_000), [life(7, 1)]), [0; 0], "it slept, or had no database");
        assert_eq!(expired(&mut heartbeats, at(1_006), [life(7, 1)]), [0; 0]);
        assert_eq!(expired(&mut heartbeats, at(1_012), [life(7, 1)]), [7]);
    }

    #[test]
    fn i5_an_observer_that_stood_still_within_a_look_suspects_nobody() {
        let mut heartbeats = Heartbeats::default();
        for second in [0, 6] {
            heartbeats.look(at(second), [life(7, 1)]);
        }
        // The question was out in time, and its answer lay there until the observer went on.
        let long = Look { answered: Duration::from_secs(1_000), ..at(12) };
        assert_eq!(expired(&mut heartbeats.clone(), at(12), [life(7, 1)]), [7], "else it would be");
        assert_eq!(expired(&mut heartbeats, long, [life(7, 1)]), [0; 0]);
        for second in [1_001, 1_006, 1_011] {
            assert_eq!(expired(&mut heartbeats, at(second), [life(7, 1)]), [0; 0], "at {second} s");
        }
        assert_eq!(expired(&mut heartbeats, at(1_012), [life(7, 1)]), [7]);
    }

    #[test]
    fn a_life_that_is_not_watched_any_more_is_forgotten() {
        let mut heartbeats = Heartbeats::default();
        heartbeats.look(at(0), [life(7, 1)]);
        heartbeats.look(at(6), []);
        for second in [12, 18] {
            assert_eq!(expired(&mut heartbeats, at(second), [life(7, 1)]), [0; 0]);
        }
        assert_eq!(expired(&mut heartbeats, at(24), [life(7, 1)]), [7]);
    }
}
