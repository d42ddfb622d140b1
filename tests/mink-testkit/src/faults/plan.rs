//! What a plan of faults says: which requests, how often, when, and what becomes of them.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: a rule that cannot be carried out is refused by [`Rule::check`], not passed over.

use std::fmt;
use std::time::Duration;

/// Which faults a store has. Without rules it has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Where the coins come from: the same seed and the same order of requests give the same faults.
    pub seed: u64,
    /// The first one that takes a request decides; rules that only delay add up and go on to the next.
    pub rules: Vec<Rule>,
}

/// Some requests, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which requests.
    pub select: Select,
    /// What becomes of them.
    pub effect: Effect,
}

/// What a request asks for, as S3 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    Put,
    Get,
    Head,
    List,
    Delete,
    /// Whatever else: buckets, credentials.
    Other,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 6] = [Op::Put, Op::Get, Op::Head, Op::List, Op::Delete, Op::Other];

    /// Its name in a plan.
    pub fn name(self) -> &'static str {
        match self {
            Op::Put => "put",
            Op::Get => "get",
            Op::Head => "head",
            Op::List => "list",
            Op::Delete => "delete",
            Op::Other => "other",
        }
    }
}

/// Which requests a rule takes. All conditions must hold; the coin is thrown last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Select {
    /// Any of these; all if there are none.
    pub ops: Vec<Op>,
    /// The key (the prefix of a listing; empty for a delete of many keys).
    pub key: Option<Pattern>,
    /// From this time after the plan began.
    pub from: Duration,
    /// For so long; for ever if not given.
    pub lasts: Option<Duration>,
    /// Only the nth request of this kind for its key, counted from 1.
    pub attempt: Option<u32>,
    /// Only one of each so many.
    pub turn: Option<Turn>,
    /// So many requests pass before the rule takes its first.
    pub skip: u64,
    /// At most so many requests are taken.
    pub times: Option<u64>,
    /// How often the coin falls.
    pub chance: Chance,
}

/// The `place`th (from 1) of each `of` requests that the conditions before it leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub place: u64,
    pub of: u64,
}

/// A part of a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u32);

impl Chance {
    /// Each time.
    pub const ALWAYS: Chance = Chance(1_000_000);

    /// `millionth` in a million; at most all.
    pub fn from_millionths(millionths: u32) -> Chance {
        Chance(millionths.min(Self::ALWAYS.0))
    }

    /// In millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::ALWAYS
    }
}

/// A part of a body, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// `None` above 100.
    pub fn new(percent: u8) -> Option<Percent> {
        (percent <= 100).then_some(Percent(percent))
    }

    /// So much of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(whole)
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// A text in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern(text.into())
    }

    /// Whether it matches the whole of `key`.
    pub fn matches(&self, key: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| key.strip_prefix(first)) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match rest.split_once(piece) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        true
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effect {
    /// Before it goes on.
    pub delay: Option<Delay>,
    /// The first coin.
    pub happens: Happens,
    /// The second coin.
    pub told: Told,
}

impl Effect {
    /// Whether the request meets no more than a delay.
    pub fn only_delays(&self) -> bool {
        self.happens == Happens::Yes && self.told == Told::Truth
    }
}

/// A time between two bounds, evenly; now and then another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    pub from: Duration,
    pub to: Duration,
    pub spike: Option<Spike>,
}

/// So often it takes so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spike {
    pub of: Duration,
    pub chance: Chance,
}

impl Delay {
    /// Always the same.
    pub fn fixed(of: Duration) -> Delay {
        Delay { from: of, to: of, spike: None }
    }
}

/// Whether a request is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Happens {
    #[default]
    Yes,
    No,
    /// So long after the client was told whatever it was told. Puts and deletes only.
    Late(Delay),
    /// With the first part of its bytes only. Puts only.
    Stored(Percent),
    /// As if it had no condition: what lies there is overwritten. Puts only.
    Unconditional,
}

/// What the client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Told {
    /// What the store answered.
    #[default]
    Truth,
    /// This status, with the body that S3 gives it.
    Status(u16),
    /// Nothing: the connection breaks.
    Lost,
    /// Nothing: the connection stays open without a word.
    Silence,
    /// The first part of the body, then the connection breaks. Gets and listings only.
    Cut(Percent),
    /// The first part of the body as if it were the whole. Gets and listings only.
    Short(Percent),
    /// Nobody listens: connections are refused, open ones break. For all requests at once.
    Away,
}

impl Rule {
    /// Whether the rule can be carried out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let Select { ops, key, attempt, turn, skip, times, chance, .. } = &self.select;
        let only = |allowed: &[Op]| !ops.is_empty() && ops.iter().all(|op| allowed.contains(op));
        let Effect { happens, told, .. } = self.effect;
        match happens {
            Happens::No | Happens::Late(_) if told == Told::Truth => {
                return Err(
                    "what did not happen needs a word on what is told: a status, lost or silent".into()
                );
            }
            Happens::Late(_) if !only(&[Op::Put, Op::Delete]) => {
                return Err("late is for put and delete: name them before the colon".into());
            }
            Happens::Stored(_) | Happens::Unconditional if !only(&[Op::Put]) => {
                return Err("stored and unconditional are for put: name it before the colon".into());
            }
            _ => {}
        }
        match told {
            Told::Cut(_) | Told::Short(_) if !only(&[Op::Get, Op::List]) => {
                Err("cut and short are for get and list: name them before the colon".into())
            }
            Told::Cut(_) | Told::Short(_) if happens != Happens::Yes => {
                Err("a body that is cut is one of a request that happened".into())
            }
            Told::Status(status) if !(200..600).contains(&status) => {
                Err(format!("{status} is no status of an answer"))
            }
            Told::Away => {
                let selects = !ops.is_empty() || key.is_some() || attempt.is_some() || turn.is_some();
                let counts = *skip != 0 || times.is_some() || *chance != Chance::ALWAYS;
                if selects || counts || self.effect.delay.is_some() || happens != Happens::No {
                    return Err("away is for all requests at once: any [from=TIME] [for=TIME]: away".into());
                }
                Ok(())
            }
            _ if turn.is_some_and(|turn| turn.place == 0 || turn.place > turn.of) => {
                Err("turn=K/N takes the Kth of each N, counted from 1".into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_key() {
        for (pattern, key, matches) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*", "", true),
            ("*/wal/*", "mink/wal/7", true),
            ("*/wal/*", "mink/stream/7", false),
            ("*/wal/*", "wal/7", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("a*a", "a", false),
            ("*ab", "aab", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(key), matches, "{pattern} {key}");
        }
    }

    #[test]
    fn a_part_of_a_body_is_rounded_down() {
        let half = Percent::new(50).unwrap();
        assert_eq!((half.of(7), half.of(u64::MAX)), (3, u64::MAX / 2));
        assert_eq!(Percent::new(101), None);
    }
}
