//! The text of a plan, both ways.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: what is printed can be read again and means the same; an error names the line and says what may stand there.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::plan::{
    Chance, Delay, Effect, Happens, Op, Pattern, Percent, Plan, Rule, Select, Spike, Told, Turn,
};

/// Why a text is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    line: String,
    reason: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in the line {:?}: {}", self.line, self.reason)
    }
}

impl std::error::Error for PlanError {}

impl FromStr for Plan {
    type Err = PlanError;

    /// One rule a line; `#` begins a comment; `seed N` may stand on a line of its own.
    fn from_str(text: &str) -> Result<Plan, PlanError> {
        let mut plan = Plan::default();
        for line in text.lines() {
            let words = line.split('#').next().unwrap_or_default().trim();
            let wrong = |reason| PlanError { line: words.to_owned(), reason };
            if words.is_empty() {
                continue;
            }
            match words.strip_prefix("seed ") {
                Some(seed) => {
                    plan.seed =
                        seed.trim().parse().map_err(|_| wrong("a seed is a whole number".to_owned()))?;
                }
                None => plan.rules.push(rule(words).map_err(wrong)?),
            }
        }
        Ok(plan)
    }
}

impl FromStr for Rule {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Rule, PlanError> {
        rule(text.trim()).map_err(|reason| PlanError { line: text.trim().to_owned(), reason })
    }
}

fn rule(text: &str) -> Result<Rule, String> {
    let (who, what) = text.split_once(": ").ok_or("a rule is WHO: WHAT, e.g. put 10%: lost")?;
    let rule = Rule { select: select(who)?, effect: effect(what)? };
    rule.check()?;
    Ok(rule)
}

fn select(text: &str) -> Result<Select, String> {
    let mut words = text.split_whitespace();
    let mut select = Select { ops: ops(words.next().unwrap_or_default())?, ..Select::default() };
    for word in words {
        let number = |value: &str| value.parse::<u64>().map_err(|_| format!("{word}: no whole number"));
        match word.split_once('=') {
            None => select.chance = chance(word)?,
            Some(("key", pattern)) => select.key = Some(Pattern::new(pattern)),
            Some(("from", time)) => select.from = duration(time)?,
            Some(("for", time)) => select.lasts = Some(duration(time)?),
            Some(("attempt", n)) => {
                select.attempt = Some(u32::try_from(number(n)?).map_err(|_| format!("{word}: too many"))?);
            }
            Some(("turn", turn)) => {
                let (place, of) = turn.split_once('/').ok_or("turn=K/N takes the Kth of each N")?;
                select.turn = Some(Turn { place: number(place)?, of: number(of)? });
            }
            Some(("skip", n)) => select.skip = number(n)?,
            Some(("times", n)) => select.times = Some(number(n)?),
            Some(_) => {
                let known = "key=, from=, for=, attempt=, turn=, skip=, times=, a chance such as 10%";
                return Err(format!("{word}: not one of {known}"));
            }
        }
    }
    Ok(select)
}

fn ops(text: &str) -> Result<Vec<Op>, String> {
    if text == "any" {
        return Ok(Vec::new());
    }
    let names = text.split(',');
    names
        .map(|name| Op::ALL.into_iter().find(|op| op.name() == name).ok_or(name))
        .collect::<Result<_, _>>()
        .map_err(|name| {
            format!(
                "{name:?} is not one of any, put, get, head, list, delete, other (or several: put,delete)"
            )
        })
}

fn effect(text: &str) -> Result<Effect, String> {
    let mut effect = Effect::default();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word}: a value is missing"));
        match word {
            "delay" => {
                let mut delay = delay(value()?)?;
                if words.next_if_eq(&"spike").is_some() {
                    let mut value = || words.next().ok_or("spike TIME CHANCE, e.g. spike 2s 1%");
                    delay.spike = Some(Spike { of: duration(value()?)?, chance: chance(value()?)? });
                }
                effect.delay = Some(delay);
            }
            "undone" => effect.happens = Happens::No,
            "late" => effect.happens = Happens::Late(delay(value()?)?),
            "stored" => effect.happens = Happens::Stored(percent(value()?)?),
            "unconditional" => effect.happens = Happens::Unconditional,
            "lost" => effect.told = Told::Lost,
            "silent" => effect.told = Told::Silence,
            "cut" => effect.told = Told::Cut(percent(value()?)?),
            "short" => effect.told = Told::Short(percent(value()?)?),
            "away" => (effect.happens, effect.told) = (Happens::No, Told::Away),
            status => {
                let known = "delay, undone, late, stored, unconditional, lost, silent, cut, short, away";
                let told = status.parse().map(Told::Status);
                effect.told =
                    told.map_err(|_| format!("{word}: not one of {known}, or a status such as 503"))?;
            }
        }
    }
    Ok(effect)
}

fn delay(text: &str) -> Result<Delay, String> {
    let Some((from, to)) = text.split_once("..") else {
        return Ok(Delay::fixed(duration(text)?));
    };
    let (from, to) = (duration(from)?, duration(to)?);
    if from > to {
        return Err(format!("{text}: the longer time stands second"));
    }
    Ok(Delay { from, to, spike: None })
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("{text:?} is no time; write 50ms, 1.5s or 2m")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is no time; write 50ms, 1.5s or 2m"))?;
    let time = Duration::try_from_secs_f64(number * seconds);
    // Whole milliseconds: what the timers keep.
    time.map(|time| Duration::from_millis(u64::try_from(time.as_micros() / 1_000).unwrap_or(u64::MAX)))
        .map_err(|_| format!("{text:?} is too long"))
}

fn chance(text: &str) -> Result<Chance, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and a million"
            )]
            Ok(Chance::from_millionths((percent * 10_000.0).round() as u32))
        }
        _ => Err(format!("{text:?} is no chance; write 10% or 0.5%")),
    }
}

fn percent(text: &str) -> Result<Percent, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
    number.and_then(Percent::new).ok_or_else(|| format!("{text:?} is no part of a body; write 50%"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.select, self.effect)
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.ops.iter().map(|op| op.name()).collect();
        f.write_str(if names.is_empty() { "any" } else { "" })?;
        f.write_str(&names.join(","))?;
        if let Some(key) = &self.key {
            write!(f, " key={key}")?;
        }
        if !self.from.is_zero() {
            write!(f, " from={}", Time(self.from))?;
        }
        if let Some(lasts) = self.lasts {
            write!(f, " for={}", Time(lasts))?;
        }
        if let Some(attempt) = self.attempt {
            write!(f, " attempt={attempt}")?;
        }
        if let Some(turn) = self.turn {
            write!(f, " turn={}/{}", turn.place, turn.of)?;
        }
        if self.skip != 0 {
            write!(f, " skip={}", self.skip)?;
        }
        if let Some(times) = self.times {
            write!(f, " times={times}")?;
        }
        if self.chance != Chance::ALWAYS {
            write!(f, " {}", self.chance)?;
        }
        Ok(())
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(delay) = self.delay {
            write!(f, " delay {delay}")?;
        }
        match self.happens {
            Happens::Yes => {}
            Happens::No if self.told == Told::Away => {}
            Happens::No => f.write_str(" undone")?,
            Happens::Late(delay) => write!(f, " late {delay}")?,
            Happens::Stored(part) => write!(f, " stored {}%", part.get())?,
            Happens::Unconditional => f.write_str(" unconditional")?,
        }
        match self.told {
            Told::Truth => Ok(()),
            Told::Status(status) => write!(f, " {status}"),
            Told::Lost => f.write_str(" lost"),
            Told::Silence => f.write_str(" silent"),
            Told::Cut(part) => write!(f, " cut {}%", part.get()),
            Told::Short(part) => write!(f, " short {}%", part.get()),
            Told::Away => f.write_str(" away"),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Time(self.from))?;
        if self.to != self.from {
            write!(f, "..{}", Time(self.to))?;
        }
        match self.spike {
            Some(spike) => write!(f, " spike {} {}", Time(spike.of), spike.chance),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.millionths()) / 10_000.0)
    }
}

/// A time as a plan has it.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis if millis % 1_000 == 0 => write!(f, "{}s", millis / 1_000),
            millis => write!(f, "{millis}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let text = "seed 7
any: delay 5ms..30ms spike 2s 1%
put key=*/wal/* 10%: lost
put,delete from=10s for=30s: undone 503
put key=a*b attempt=1 turn=2/4 skip=3 times=2 0.5%: delay 1500ms late 2s..5s 500
put: stored 50%
put: unconditional
get,list: cut 50%
get: short 0%
head: silent
any from=20s for=30s: away
";
        let plan: Plan = text.parse().unwrap();
        assert_eq!(plan.to_string(), text);
        assert_eq!(plan.rules.len(), 10);
        assert!(plan.rules[0].effect.only_delays());
    }

    #[test]
    fn comments_and_empty_lines_are_passed_over() {
        let plan: Plan = "# nothing\n\n  put 10%: lost # a comment\n".parse().unwrap();
        assert_eq!(plan.rules, ["put 10%: lost".parse().unwrap()]);
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        for (text, words) in [
            ("put lost", "WHO: WHAT"),
            ("putt: lost", "\"putt\" is not one of"),
            ("put 110%: lost", "no chance"),
            ("put from=10: lost", "no time"),
            ("put key: lost", "no chance"),
            ("put colour=red: lost", "not one of key="),
            ("put: undone", "needs a word on what is told"),
            ("put: late 3s", "needs a word on what is told"),
            ("get: late 3s lost", "for put and delete"),
            ("any: stored 50%", "for put"),
            ("put: cut 50%", "for get and list"),
            ("put: stored 101%", "no part of a body"),
            ("put: 99", "no status"),
            ("put: vanish", "not one of delay"),
            ("put: away", "for all requests at once"),
            ("put turn=5/4: lost", "counted from 1"),
            ("put: delay 3s..1s", "stands second"),
            ("seed x", "whole number"),
        ] {
            let error = text.parse::<Plan>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
