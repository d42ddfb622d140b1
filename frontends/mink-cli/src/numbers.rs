//! Numbers as people read them.
//!
//! Lives on: anywhere (pure).
use std::time::Duration;

/// `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12,345.7`, with so many digits behind the point.
pub(crate) fn decimal(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    let (whole, rest) = text.find('.').map_or((text.as_str(), ""), |at| text.split_at(at));
    // What is no whole number (below zero, endless) stays as it is.
    match whole.parse() {
        Ok(whole) => format!("{}{rest}", count(whole)),
        Err(_) => text,
    }
}

/// `1 record`, `2,000 records`.
pub(crate) fn records(number: u64) -> String {
    format!("{} record{}", count(number), if number == 1 { "" } else { "s" })
}

/// `3.2 MiB`.
#[expect(clippy::cast_precision_loss, reason = "a number for people")]
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 || unit == "GiB" {
            return if unit == "B" { format!("{number} B") } else { format!("{} {unit}", decimal(value, 1)) };
        }
        value /= 1024.0;
    }
    format!("{number} B")
}

/// `840 us`, `12.3 ms`, `1.25 s`.
pub(crate) fn time(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        0..1000 => format!("{micros} us"),
        1000..1_000_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{} s", decimal(duration.as_secs_f64(), 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(number), text);
        }
        assert_eq!((records(1), records(2000)), ("1 record".into(), "2,000 records".into()));
        for (number, text) in
            [(17, "17 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5,120.0 GiB")]
        {
            assert_eq!(bytes(number), text);
        }
        for (micros, text) in
            [(840, "840 us"), (12_345, "12.3 ms"), (1_250_000, "1.25 s"), (3_600_000_000, "3,600.00 s")]
        {
            assert_eq!(time(Duration::from_micros(micros)), text);
        }
        for (number, digits, text) in [(1234.56, 1, "1,234.6"), (999_999.5, 0, "1,000,000"), (0.0, 2, "0.00")]
        {
            assert_eq!(decimal(number, digits), text);
        }
        assert_eq!((decimal(-1.5, 1), decimal(f64::INFINITY, 1)), ("-1.5".into(), "inf".into()));
    }
}
