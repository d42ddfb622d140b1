//! Dates and times as the texts of JSON, and as the numbers they are stored as. The calendar is the Gregorian one for all times.
//!
//! Lives on: anywhere (pure). It knows of no clock and of no time zones but offsets.
//! Invariants: what is written reads as the same number; no digit is lost on either way.
use super::number::put_digits;
use mink_types::Civil;
use mink_types::schema::TimeUnit;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// Digits of a nanosecond.
const FRACTION_DIGITS: u8 = 9;
/// The last year of four digits; those behind it, and those before 0, have a sign.
const YEAR_PLAIN_MAX: i64 = 9_999;
/// Digits of the years that 64 bits of seconds reach.
const YEAR_DIGITS_MAX: usize = 12;

/// `2026-01-31`, in days.
pub(super) fn read_date(text: &str) -> Option<i32> {
    let mut reader = Reader { rest: text.as_bytes() };
    let days = reader.date()?;
    i32::try_from(days).ok().filter(|_| reader.rest.is_empty())
}

/// `12:34:56.789`, in units of the precision.
pub(super) fn read_time(text: &str, precision: u8) -> Option<i64> {
    let mut reader = Reader { rest: text.as_bytes() };
    let (seconds, nanoseconds) = reader.time()?;
    in_units(seconds, nanoseconds, precision).filter(|_| reader.rest.is_empty())
}

/// `2026-01-31T12:34:56.789`, in units of the precision; of an instant with `Z` or an offset behind it.
pub(super) fn read_timestamp(text: &str, precision: u8, instant: bool) -> Option<i64> {
    let mut reader = Reader { rest: text.as_bytes() };
    let midnight = reader.date()?.checked_mul(SECONDS_PER_DAY)?;
    reader.take(b"T t")?;
    let (seconds, nanoseconds) = reader.time()?;
    let offset = if instant { reader.offset()? } else { 0 };
    // A time beyond what the offset leaves of 64 bits is none.
    let seconds = midnight.checked_add(seconds)?.checked_sub(offset)?;
    in_units(seconds, nanoseconds, precision).filter(|_| reader.rest.is_empty())
}

/// Milliseconds since 1970, in units of the precision.
pub(super) fn of_milliseconds(milliseconds: i64, precision: u8) -> Option<i64> {
    in_units(milliseconds.div_euclid(1_000), milliseconds.rem_euclid(1_000) * 1_000_000, precision)
}

/// None if it has more digits than the precision, or if 64 bits are too few.
fn in_units(seconds: i64, nanoseconds: i64, precision: u8) -> Option<i64> {
    let finest = 10_i64.pow(u32::from(FRACTION_DIGITS.saturating_sub(precision)));
    if nanoseconds % finest != 0 {
        return None;
    }
    let per_second = TimeUnit::of_precision(precision).per_second();
    // In 128 bits: with nanoseconds before 1970 the seconds alone may be too many for 64.
    let units = i128::from(seconds) * i128::from(per_second)
        + i128::from(nanoseconds / (NANOSECONDS_PER_SECOND / per_second));
    i64::try_from(units).ok()
}

/// Goes over a text from left to right.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// Goes over one of these bytes, if one comes next.
    fn take(&mut self, accepted: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first().filter(|(first, _)| accepted.contains(first))?;
        self.rest = rest;
        Some(*first)
    }

    /// Exactly so many digits, which 64 bits hold.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let mut value = 0;
        for digit in digits {
            value = value * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        }
        self.rest = rest;
        Some(value)
    }

    fn digits_ahead(&self) -> usize {
        self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn year(&mut self) -> Option<i64> {
        let Some(sign) = self.take(b"+-") else { return self.digits(4) };
        let count = Some(self.digits_ahead()).filter(|count| (4..=YEAR_DIGITS_MAX).contains(count))?;
        let year = self.digits(count)?;
        let year = if sign == b'+' { year } else { -year };
        // A plain year has no sign: each has one form.
        Some(year).filter(|year| !(0..=YEAR_PLAIN_MAX).contains(year))
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.year()?;
        self.take(b"-")?;
        let month = self.digits(2)?;
        self.take(b"-")?;
        let civil = Civil { year, month, day: self.digits(2)? };
        // A day that there is comes back as it went.
        let known = (1..=12).contains(&month) && Civil::of(civil.days()) == civil;
        known.then(|| civil.days())
    }

    /// Seconds and nanoseconds of a day.
    fn time(&mut self) -> Option<(i64, i64)> {
        let hour = self.digits(2).filter(|hour| *hour < 24)?;
        self.take(b":")?;
        let minute = self.digits(2).filter(|minute| *minute < 60)?;
        let (mut second, mut nanoseconds) = (0, 0);
        if self.take(b":").is_some() {
            second = self.digits(2).filter(|second| *second < 60)?;
            if self.take(b".").is_some() {
                nanoseconds = self.fraction()?;
            }
        }
        Some((hour * 3_600 + minute * 60 + second, nanoseconds))
    }

    fn fraction(&mut self) -> Option<i64> {
        let count =
            u8::try_from(self.digits_ahead()).ok().filter(|count| (1..=FRACTION_DIGITS).contains(count))?;
        let digits = self.digits(usize::from(count))?;
        Some(digits * 10_i64.pow(u32::from(FRACTION_DIGITS - count)))
    }

    /// Seconds that a clock shows more than one at Greenwich.
    fn offset(&mut self) -> Option<i64> {
        match self.take(b"Zz+-")? {
            sign @ (b'+' | b'-') => {
                let hours = self.digits(2).filter(|hours| *hours < 24)?;
                // The colon may be left out.
                let _colon = self.take(b":");
                let minutes = self.digits(2).filter(|minutes| *minutes < 60)?;
                let seconds = hours * 3_600 + minutes * 60;
                Some(if sign == b'+' { seconds } else { -seconds })
            }
            _ => Some(0),
        }
    }
}

fn put_unsigned(out: &mut Vec<u8>, value: i64, width: usize) {
    put_digits(out, value.unsigned_abs(), width);
}

pub(super) fn put_date(out: &mut Vec<u8>, days: i64) {
    let Civil { year, month, day } = Civil::of(days);
    if !(0..=YEAR_PLAIN_MAX).contains(&year) {
        out.push(if year < 0 { b'-' } else { b'+' });
    }
    put_unsigned(out, year, 4);
    out.push(b'-');
    put_unsigned(out, month, 2);
    out.push(b'-');
    put_unsigned(out, day, 2);
}

/// A time of day, with the digits of its precision; with all that its unit has, if there are more.
pub(super) fn put_time(out: &mut Vec<u8>, units: i64, precision: u8) {
    let per_second = TimeUnit::of_precision(precision).per_second();
    let (seconds, units) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    put_unsigned(out, seconds / 3_600, 2);
    out.push(b':');
    put_unsigned(out, seconds / 60 % 60, 2);
    out.push(b':');
    put_unsigned(out, seconds % 60, 2);
    let unit_digits = match per_second {
        1 => 0_u8,
        1_000 => 3,
        1_000_000 => 6,
        _ => 9,
    };
    let beyond = 10_i64.pow(u32::from(unit_digits.saturating_sub(precision)));
    let (fraction, digits) =
        if units % beyond == 0 { (units / beyond, precision) } else { (units, unit_digits) };
    if digits > 0 {
        out.push(b'.');
        put_unsigned(out, fraction, usize::from(digits));
    }
}

pub(super) fn put_timestamp(out: &mut Vec<u8>, units: i64, precision: u8) {
    let per_second = TimeUnit::of_precision(precision).per_second();
    let seconds = units.div_euclid(per_second);
    put_date(out, seconds.div_euclid(SECONDS_PER_DAY));
    out.push(b'T');
    // In two steps, for a day's units fit in 64 bits whatever the date.
    let units_of_day = seconds.rem_euclid(SECONDS_PER_DAY) * per_second + units.rem_euclid(per_second);
    put_time(out, units_of_day, precision);
}

/// Whether these are the units of a time of day.
pub(super) fn is_time(units: i64, precision: u8) -> bool {
    (0..SECONDS_PER_DAY * TimeUnit::of_precision(precision).per_second()).contains(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).expect("digits")
    }

    #[test]
    fn days_that_there_are_not_are_refused() {
        assert_eq!(read_date("1970-01-01"), Some(0));
        assert_eq!(read_date("1969-12-31"), Some(-1));
        assert_eq!(read_date("2024-02-29"), Some(19_782));
        assert_eq!(read_date("9999-12-31"), Some(2_932_896));
        assert_eq!(read_date("+10000-01-01"), Some(2_932_897));
        assert_eq!(read_date("-0001-12-31"), Some(-719_529));
        for bad in [
            "",
            "2023-02-29",
            "1900-02-29",
            "2026-00-10",
            "2026-13-01",
            "2026-04-31",
            "2026-01-00",
            "2026-1-1",
            "26-01-01",
            "2026/01/01",
            " 2026-01-01",
            "2026-01-01 ",
            "+2026-01-01",
            "-0000-01-01",
            "20260101",
            "+6000000-01-01",
            "+999999999999-01-01",
            "+9999999999999-01-01",
            "2026-01-0\u{661}",
        ] {
            assert_eq!(read_date(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn digits_beyond_the_precision_are_refused_and_zeros_are_none() {
        assert_eq!(read_time("23:59:59.999", 3), Some(86_399_999));
        assert_eq!(read_time("10:00", 0), Some(36_000));
        assert_eq!(read_time("10:00:00.500000000", 1), Some(36_000_500));
        assert_eq!(read_time("10:00:00.123456789", 9), Some(36_000_123_456_789));
        for bad in [
            "24:00:00",
            "23:60:00",
            "23:59:60",
            "1:00",
            "10:00:00.",
            "10:00:00.0000000000",
            "10",
            "10:00:00Z",
        ] {
            assert_eq!(read_time(bad, 9), None, "{bad:?}");
        }
        assert_eq!(read_time("10:00:00.51", 1), None);
        assert_eq!(read_time("10:00:00.0005", 3), None);
    }

    #[test]
    fn an_instant_needs_its_offset_and_a_timestamp_takes_none() {
        assert_eq!(read_timestamp("1970-01-02T00:00:01", 0, false), Some(86_401));
        assert_eq!(read_timestamp("1970-01-02 00:00:01", 0, false), Some(86_401));
        for (text, seconds) in [
            ("1970-01-02 00:00:01Z", 86_401),
            ("1970-01-02T02:00:01+02:00", 86_401),
            ("1970-01-01T18:30:01-0530", 86_401),
        ] {
            assert_eq!(read_timestamp(text, 0, true), Some(seconds), "{text:?}");
            assert_eq!(read_timestamp(text, 0, false), None, "{text:?}");
        }
        for bad in [
            "1970-01-02T00:00:01",
            "1970-01-02",
            "1970-01-02T00:00+24:00",
            "1970-01-02T00:00+02:60",
            "1970-01-02T00:00+02",
            "1970-01-02T00:00:00Zz",
        ] {
            assert_eq!(read_timestamp(bad, 0, true), None, "{bad:?}");
        }
    }

    #[test]
    fn milliseconds_are_instants_of_any_precision_that_holds_them() {
        assert_eq!(of_milliseconds(-1, 3), Some(-1));
        assert_eq!(of_milliseconds(1_500, 1), Some(1_500));
        assert_eq!(of_milliseconds(1_510, 1), None);
        assert_eq!(of_milliseconds(1_500, 0), None);
        assert_eq!(of_milliseconds(-2_000, 0), Some(-2));
        assert_eq!(of_milliseconds(7, 9), Some(7_000_000));
        assert_eq!(of_milliseconds(i64::MAX, 6), None);
    }

    #[test]
    fn times_are_written_with_the_digits_of_their_precision() {
        assert_eq!(written(|out| put_timestamp(out, 1_769_862_896_780, 3)), "2026-01-31T12:34:56.780");
        assert_eq!(written(|out| put_timestamp(out, 1_769_862_896_780, 2)), "2026-01-31T12:34:56.78");
        assert_eq!(written(|out| put_timestamp(out, -1, 0)), "1969-12-31T23:59:59");
        assert_eq!(written(|out| put_timestamp(out, i64::MIN, 0)), "-292277022657-01-27T08:29:52");
        assert_eq!(written(|out| put_time(out, 0, 9)), "00:00:00.000000000");
        // What a writer of columns stored is not cut.
        assert_eq!(written(|out| put_time(out, 36_000_512, 1)), "10:00:00.512");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same(days: i32, units: i64, precision in 0..=9_u8) {
            prop_assert_eq!(read_date(&written(|out| put_date(out, days.into()))), Some(days));
            let beyond = TimeUnit::of_precision(precision).per_second() / 10_i64.pow(precision.into());
            let units = units / beyond * beyond;
            let text = written(|out| put_timestamp(out, units, precision));
            prop_assert_eq!(read_timestamp(&text, precision, false), Some(units));
            prop_assert_eq!(read_timestamp(&(text + "Z"), precision, true), Some(units));
            let of_day = units.rem_euclid(SECONDS_PER_DAY * TimeUnit::of_precision(precision).per_second());
            prop_assert!(is_time(of_day, precision));
            prop_assert_eq!(read_time(&written(|out| put_time(out, of_day, precision)), precision), Some(of_day));
        }
    }
}
