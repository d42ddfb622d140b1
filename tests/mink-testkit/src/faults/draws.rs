//! Throws the coins: what becomes of each request, and how often each rule was met.
//! Lives on: anywhere (pure); its owner keeps it behind a lock and tells it the time.
//! Owns: the coins, the counts, the attempts per key.
//! Invariants: the same plan, the same requests at the same times in the same order: the same faults.

use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::{Chance, Delay, Effect, Happens, Op, Plan, Rule, Select, Told};

/// Keys whose attempts are counted; beyond it a rule with `attempt=` takes no new key.
const KEYS_MAX: usize = 1 << 16;

/// Which rules are asked. A seam that is called before and after a request cannot know at the second call what it decided at the first
/// one, so each of its calls has rules of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// All.
    Whole,
    /// Those whose requests do not happen (yet), and delays.
    Before,
    /// Those whose requests have happened and are told otherwise.
    After,
}

/// What becomes of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How long it waits first.
    pub delay: Duration,
    /// How long after the answer it happens, if it is [`Happens::Late`].
    pub late_by: Duration,
    /// The first coin.
    pub happens: Happens,
    /// The second coin.
    pub told: Told,
}

/// How often a rule was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallyLine {
    /// The rule as its text.
    pub rule: String,
    /// Requests that it was asked about and that met all but its counts and its coin.
    pub seen: u64,
    /// Requests that it took.
    pub taken: u64,
}

/// What was met since the plan began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// By rule, in their order.
    pub rules: Vec<TallyLine>,
    /// Requests by what they asked for.
    pub requests: BTreeMap<Op, u64>,
    /// The most requests of one kind for one key; 0 unless a rule has `attempt=`.
    pub attempts_max: u32,
}

impl Tally {
    /// Requests that any rule took.
    pub fn taken(&self) -> u64 {
        self.rules.iter().map(|line| line.taken).sum()
    }
}

/// A plan under way.
#[derive(Debug)]
pub struct Draws {
    plan: Plan,
    coins: u64,
    seen: Vec<u64>,
    taken: Vec<u64>,
    requests: BTreeMap<Op, u64>,
    attempts: BTreeMap<(Op, String), u32>,
    counts_attempts: bool,
}

impl Draws {
    /// A plan that begins.
    pub fn new(plan: Plan) -> Draws {
        let rules = plan.rules.len();
        Draws {
            coins: plan.seed,
            seen: vec![0; rules],
            taken: vec![0; rules],
            requests: BTreeMap::new(),
            attempts: BTreeMap::new(),
            counts_attempts: plan.rules.iter().any(|rule| rule.select.attempt.is_some()),
            plan,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What becomes of a request that arrives so long after the plan began.
    pub fn draw(&mut self, op: Op, key: &str, elapsed: Duration, side: Side) -> Verdict {
        let attempt = if side == Side::After { self.attempts_of(op, key) } else { self.count(op, key) };
        let mut verdict = Verdict {
            delay: Duration::ZERO,
            late_by: Duration::ZERO,
            happens: Happens::Yes,
            told: Told::Truth,
        };
        let mut decided = false;
        for at in 0..self.plan.rules.len() {
            // Rules behind the one that decides count the request all the same: `turn` and `skip` go by what comes, not by what is left.
            let Some(place) = self.meets(at, op, key, attempt, elapsed, side) else {
                continue;
            };
            let Some(effect) = (!decided).then(|| self.take(at, place)).flatten() else {
                continue;
            };
            if let Some(delay) = effect.delay {
                verdict.delay += self.time(delay);
            }
            if effect.only_delays() {
                continue;
            }
            (verdict.happens, verdict.told) = (effect.happens, effect.told);
            if let Happens::Late(delay) = effect.happens {
                verdict.late_by = self.time(delay);
            }
            decided = true;
        }
        verdict
    }

    /// Whether nobody listens at this time, and the next time at which that may change.
    pub fn away(&self, elapsed: Duration) -> (bool, Option<Duration>) {
        let windows = || {
            let away = self.plan.rules.iter().filter(|rule| rule.effect.told == Told::Away);
            away.map(|rule| window(&rule.select))
        };
        let away = windows().any(|(from, until)| from <= elapsed && elapsed < until);
        let edges = windows().flat_map(|(from, until)| [from, until]);
        (away, edges.filter(|edge| *edge > elapsed && *edge < Duration::MAX).min())
    }

    /// What was met so far.
    pub fn tally(&self) -> Tally {
        let counts = self.seen.iter().zip(&self.taken);
        let lines = self.plan.rules.iter().zip(counts);
        Tally {
            rules: lines
                .map(|(rule, (seen, taken))| TallyLine { rule: rule.to_string(), seen: *seen, taken: *taken })
                .collect(),
            requests: self.requests.clone(),
            attempts_max: self.attempts.values().copied().max().unwrap_or_default(),
        }
    }

    /// Counts a request; which attempt of its kind for its key it is, 0 where that is not counted.
    fn count(&mut self, op: Op, key: &str) -> u32 {
        *self.requests.entry(op).or_default() += 1;
        if !self.counts_attempts {
            return 0;
        }
        let place = (op, key.to_owned());
        if !self.attempts.contains_key(&place) && self.attempts.len() >= KEYS_MAX {
            return 0;
        }
        let attempts = self.attempts.entry(place).or_default();
        *attempts += 1;
        *attempts
    }

    fn attempts_of(&self, op: Op, key: &str) -> u32 {
        if !self.counts_attempts {
            return 0;
        }
        self.attempts.get(&(op, key.to_owned())).copied().unwrap_or_default()
    }

    /// Whether a request meets the conditions of the rule at `at`; the how manieth to do so it is.
    fn meets(
        &mut self,
        at: usize,
        op: Op,
        key: &str,
        attempt: u32,
        elapsed: Duration,
        side: Side,
    ) -> Option<u64> {
        let Rule { select, effect } = self.plan.rules.get(at)?;
        let (from, until) = window(select);
        let asked = match side {
            Side::Whole => true,
            Side::Before => effect.only_delays() || effect.happens != Happens::Yes,
            Side::After => !effect.only_delays() && effect.happens == Happens::Yes,
        };
        let meant = asked
            && (select.ops.is_empty() || select.ops.contains(&op))
            && select.key.as_ref().is_none_or(|pattern| pattern.matches(key))
            && from <= elapsed
            && elapsed < until
            && select.attempt.is_none_or(|nth| nth == attempt);
        let seen = self.seen.get_mut(at).filter(|_| meant)?;
        *seen += 1;
        Some(*seen)
    }

    /// What the rule at `at` does to the `place`th request that meets it, if it takes it.
    fn take(&mut self, at: usize, place: u64) -> Option<Effect> {
        let Rule { select, effect } = self.plan.rules.get(at)?;
        let (effect, chance) = (*effect, select.chance);
        let in_turn = select.turn.is_none_or(|turn| place % turn.of == turn.place % turn.of);
        let taken = *self.taken.get(at)?;
        let counted = in_turn && place > select.skip && select.times.is_none_or(|times| taken < times);
        if !counted || !self.coin(chance) {
            return None;
        }
        *self.taken.get_mut(at)? += 1;
        Some(effect)
    }

    fn coin(&mut self, chance: Chance) -> bool {
        chance == Chance::ALWAYS || self.below(1_000_000) < u64::from(chance.millionths())
    }

    fn time(&mut self, delay: Delay) -> Duration {
        if let Some(spike) = delay.spike
            && self.coin(spike.chance)
        {
            return spike.of;
        }
        let spread = u64::try_from(delay.to.saturating_sub(delay.from).as_millis()).unwrap_or(u64::MAX);
        delay.from + Duration::from_millis(self.below(spread.saturating_add(1)))
    }

    /// A number below `bound`: splitmix64, cut down by the high half of a product.
    fn below(&mut self, bound: u64) -> u64 {
        self.coins = self.coins.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.coins;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        u64::try_from((u128::from(mixed) * u128::from(bound)) >> 64).unwrap_or_default()
    }
}

/// From when until when a rule is there.
fn window(select: &Select) -> (Duration, Duration) {
    let from = select.from;
    (from, select.lasts.map_or(Duration::MAX, |lasts| from.saturating_add(lasts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(plan: &str) -> Draws {
        Draws::new(plan.parse().unwrap())
    }

    fn told(draws: &mut Draws, op: Op, key: &str) -> Told {
        draws.draw(op, key, Duration::ZERO, Side::Whole).told
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_seed_others() {
        let faults = |seed: u64| {
            let mut draws = draws(&format!("seed {seed}\nput 30%: lost\nany: delay 1ms..9ms"));
            let all: Vec<_> =
                (0..1_000).map(|_| draws.draw(Op::Put, "k", Duration::ZERO, Side::Whole)).collect();
            all
        };
        assert_eq!(faults(1), faults(1));
        assert_ne!(faults(1), faults(2));
        let lost = faults(1).iter().filter(|verdict| verdict.told == Told::Lost).count();
        assert!((250..350).contains(&lost), "{lost} of 1000 at 30 %");
        assert!(faults(1).iter().all(|verdict| verdict.delay <= Duration::from_millis(9)));
    }

    #[test]
    fn the_first_rule_that_takes_a_request_decides_and_delays_add_up() {
        let mut draws = draws("any: delay 5ms\nput: delay 2ms\nput key=a*: lost\nput: undone 503");
        let verdict = draws.draw(Op::Put, "ab", Duration::ZERO, Side::Whole);
        assert_eq!((verdict.delay, verdict.told), (Duration::from_millis(7), Told::Lost));
        let verdict = draws.draw(Op::Put, "b", Duration::ZERO, Side::Whole);
        assert_eq!((verdict.happens, verdict.told), (Happens::No, Told::Status(503)));
        let verdict = draws.draw(Op::Get, "ab", Duration::ZERO, Side::Whole);
        assert_eq!((verdict.delay, verdict.told), (Duration::from_millis(5), Told::Truth));
        let taken: Vec<_> = draws.tally().rules.iter().map(|line| line.taken).collect();
        assert_eq!(taken, [3, 2, 1, 1]);
    }

    #[test]
    fn windows_turns_counts_and_attempts() {
        let mut timed = draws("get from=10s for=5s: 500");
        let at = |draws: &mut Draws, seconds| {
            draws.draw(Op::Get, "k", Duration::from_secs(seconds), Side::Whole).told == Told::Status(500)
        };
        assert_eq!([9, 10, 14, 15].map(|seconds| at(&mut timed, seconds)), [false, true, true, false]);

        let mut counted = draws("put skip=1 times=2: lost");
        let lost: Vec<_> = (0..5).map(|_| told(&mut counted, Op::Put, "k") == Told::Lost).collect();
        assert_eq!(lost, [false, true, true, false, false]);

        let mut turns = draws("put attempt=1 turn=1/2: lost\nput attempt=1 turn=2/2: 500");
        let answers = ["a", "a", "b", "c"].map(|key| told(&mut turns, Op::Put, key));
        assert_eq!(answers, [Told::Lost, Told::Truth, Told::Status(500), Told::Lost]);
        assert_eq!(turns.tally().attempts_max, 2);
    }

    #[test]
    fn all_four_combinations_of_the_two_coins_come_on_their_side() {
        let plan = "put key=a: lost\nput key=b: undone lost\nput key=c: 500\nput key=d: undone 500";
        let mut draws = draws(plan);
        for (key, before, after) in [
            ("a", Told::Truth, Told::Lost),
            ("b", Told::Lost, Told::Truth),
            ("c", Told::Truth, Told::Status(500)),
            ("d", Told::Status(500), Told::Truth),
        ] {
            assert_eq!(draws.draw(Op::Put, key, Duration::ZERO, Side::Before).told, before, "{key}");
            assert_eq!(draws.draw(Op::Put, key, Duration::ZERO, Side::After).told, after, "{key}");
        }
        assert_eq!(draws.tally().requests[&Op::Put], 4);
    }

    #[test]
    fn a_store_is_away_in_its_windows() {
        let draws = draws("any from=2s for=3s: away\nany from=10s: away");
        let seconds = Duration::from_secs;
        assert_eq!(draws.away(seconds(0)), (false, Some(seconds(2))));
        assert_eq!(draws.away(seconds(2)), (true, Some(seconds(5))));
        assert_eq!(draws.away(seconds(5)), (false, Some(seconds(10))));
        assert_eq!(draws.away(seconds(10)), (true, None));
    }
}
