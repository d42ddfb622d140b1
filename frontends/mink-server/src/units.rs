//! Sizes and times as people type them: `8MiB`, `50ms`.
//!
//! Lives on: anywhere (pure).
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
/// What is rounded keeps at least so many of its unit, and so is off by a sixteenth at most.
const ROUNDED_MIN: u64 = 16;

/// A size in bytes, with or without a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No more than it, in few digits: what has room for it has room for this.
    #[must_use]
    pub fn rounded_down(self) -> Bytes {
        let unit = UNITS.iter().map(|(_, unit)| *unit).find(|unit| self.0 / unit >= ROUNDED_MIN).unwrap_or(1);
        Bytes(self.0 / unit * unit)
    }
}

impl fmt::Display for Bytes {
    /// To the byte, in the largest unit of which it is a multiple; read back, it is the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// What a limit is a number of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    Count(u64),
    Size(Bytes),
}

impl Amount {
    pub(crate) fn size(bytes: u64) -> Amount {
        Amount::Size(Bytes(bytes))
    }

    /// A size in few digits; a count is exact.
    pub(crate) fn rounded_down(self) -> Amount {
        match self {
            Amount::Count(_) => self,
            Amount::Size(bytes) => Amount::Size(bytes.rounded_down()),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Count(count) => count.fmt(f),
            Amount::Size(bytes) => bytes.fmt(f),
        }
    }
}

/// Splits `12.5MiB` into number and unit.
fn parts(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse().map_err(|_| format!("{text:?} does not begin with a number"))?;
    Ok((number, unit.trim()))
}

/// A number in range as an integer; digits behind the point are dropped.
fn whole(value: f64, text: &str) -> Result<u64, String> {
    if (0.0..1e18).contains(&value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range, checked just above"
        )]
        return Ok(value as u64);
    }
    Err(format!("{text:?} is out of range"))
}

impl std::str::FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let (number, unit) = parts(text)?;
        let factor: f64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kib" | "k" => 1024.0,
            "mib" | "m" => 1024.0 * 1024.0,
            "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            _ => return Err(format!("{unit:?} is no unit of size; use B, KiB, MiB or GiB")),
        };
        whole(number * factor, text).map(Bytes)
    }
}

/// A duration such as `50ms`, `10s`, `5m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = parts(text)?;
    let micros: f64 = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        "h" => 3600e6,
        "d" => 86_400e6,
        "" => {
            let bare = text.trim();
            return Err(format!("{bare} has no unit; write {bare}ms, {bare}s, {bare}m or {bare}h"));
        }
        _ => return Err(format!("{unit:?} is no unit of time; use ms, s, m or h")),
    };
    whole(number * micros, text).map(Duration::from_micros)
}

/// How many of something there must be one of.
pub(crate) fn at_least_1(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.trim().parse().map_err(|_| format!("{text:?} is no whole number from 1 on"))?;
    NonZeroUsize::new(number).ok_or_else(|| "give at least 1".into())
}

/// A number from 1 on: a limit of 0 would refuse everything.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    at_least_1(text).map(NonZeroUsize::get)
}

/// A time that is not 0: a deadline of 0 would close every connection.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| if time.is_zero() { Err("give more than 0s".into()) } else { Ok(time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_people_type_them() {
        for (text, bytes) in
            [("8MiB", 8 << 20), ("512", 512), ("1.5 KiB", 1536), ("2g", 2 << 30), ("3 MB", 3_000_000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for (text, millis) in
            [("50ms", 50), ("10s", 10_000), ("1.5s", 1_500), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_size_is_told_as_it_can_be_typed() {
        for (bytes, told) in [
            (64 << 20, "64MiB"),
            (1 << 30, "1GiB"),
            (3 << 29, "1536MiB"),
            (1536, "1536B"),
            (2048, "2KiB"),
            (0, "0B"),
            ((1 << 30) + 1, "1073741825B"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), told);
            assert_eq!(told.parse(), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn what_there_is_room_for_is_told_in_few_digits_and_never_as_more() {
        for (bytes, told) in
            [(8_241_971_200, "7860MiB"), (12_345_678, "12056KiB"), (20_000, "19KiB"), (999, "999B")]
        {
            assert_eq!(Amount::size(bytes).rounded_down().to_string(), told);
            assert!(Bytes(bytes).rounded_down() <= Bytes(bytes));
        }
        assert_eq!(Amount::Count(123_456_789).rounded_down().to_string(), "123456789");
    }

    #[test]
    fn a_time_without_a_unit_and_a_count_of_none_are_refused_with_what_to_write() {
        assert_eq!(duration("1"), Err("1 has no unit; write 1ms, 1s, 1m or 1h".into()));
        assert_eq!(duration("2 parsec"), Err("\"parsec\" is no unit of time; use ms, s, m or h".into()));
        assert_eq!(at_least_1("0"), Err("give at least 1".into()));
        assert_eq!(at_least_1("3"), Ok(NonZeroUsize::MIN.saturating_add(2)));
        for text in ["", "-1", "two", "1.5"] {
            assert!(at_least_1(text).is_err_and(|words| words.contains("from 1 on")), "{text}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert_eq!(count("0"), Err("give at least 1".into()));
        assert_eq!(count("7"), Ok(7));
        assert_eq!(some_time("0s"), Err("give more than 0s".into()));
        assert_eq!(some_time("2m"), Ok(Duration::from_mins(2)));
    }

    #[test]
    fn what_has_no_meaning_is_refused_in_words() {
        for text in ["", "MiB", "8 parsec", "-1", "1e30", "99999999999999999999"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "10", "ms", "5 weeks", "-1s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
