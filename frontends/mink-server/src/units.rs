//! Sizes and times as people type them: `8MiB`, `50ms`.
//!
//! Lives on: anywhere (pure).
use std::time::Duration;

/// A size in bytes, with or without a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

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
        _ => return Err(format!("{unit:?} is no unit of time; use ms, s, m or h")),
    };
    whole(number * micros, text).map(Duration::from_micros)
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
    fn what_has_no_meaning_is_refused_in_words() {
        for text in ["", "MiB", "8 parsec", "-1", "1e30", "99999999999999999999"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "10", "ms", "5 weeks", "-1s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
