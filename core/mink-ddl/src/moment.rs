//! Dates and times as text, and as the numbers they are stored as. The calendar is the Gregorian one for all times, as in ISO 8601.
//!
//! Lives on: anywhere (pure). It knows of no clock and of no time zones but offsets.
//! Invariants: printing takes any number that a column may hold; reading takes the years 0 to 9999, of which the types take 1 on.
use mink_types::Civil;
use mink_types::schema::TimeUnit;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
const SECONDS_PER_MINUTE: i64 = 60;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// Digits of a nanosecond.
const FRACTION_DIGITS: usize = 9;
/// Digits of years, from here on with a sign.
const YEAR_PLAIN_MAX: i64 = 9_999;

/// `2026-01-31`, in days.
pub(crate) fn read_date(text: &str) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let days = reader.date()?;
    reader.rest.is_empty().then_some(days)
}

/// `10:00` or `10:00:00.5`, in units.
pub(crate) fn read_time(text: &str, unit: TimeUnit) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let (seconds, nanoseconds) = reader.time()?;
    if !reader.rest.is_empty() {
        return None;
    }
    in_units(seconds, nanoseconds, unit)
}

/// `2026-01-31`, or that with a time behind a blank or a `T`, in units.
pub(crate) fn read_timestamp(text: &str, unit: TimeUnit) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let (seconds, nanoseconds) = reader.date_and_time()?;
    if !reader.rest.is_empty() {
        return None;
    }
    in_units(seconds, nanoseconds, unit)
}

/// A date and a time with `Z` or an offset from it as in `+02:00`, in units.
pub(crate) fn read_instant(text: &str, unit: TimeUnit) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let (seconds, nanoseconds) = reader.date_and_time()?;
    reader.take(&[' ']);
    let offset = reader.offset()?;
    if !reader.rest.is_empty() {
        return None;
    }
    in_units(seconds - offset, nanoseconds, unit)
}

/// None if the unit is too coarse for it, or 64 bits are too few.
fn in_units(seconds: i64, nanoseconds: i64, unit: TimeUnit) -> Option<i64> {
    let unit_nanoseconds = NANOSECONDS_PER_SECOND / unit.per_second();
    if nanoseconds % unit_nanoseconds != 0 {
        return None;
    }
    // In 128 bits: with nanoseconds before 1970 the seconds alone may be too many for 64.
    let units =
        i128::from(seconds) * i128::from(unit.per_second()) + i128::from(nanoseconds / unit_nanoseconds);
    i64::try_from(units).ok()
}

/// Goes over a text from left to right.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Goes over one of these characters, if one comes next.
    fn take(&mut self, symbols: &[char]) -> Option<char> {
        let found = self.rest.chars().next().filter(|found| symbols.contains(found))?;
        self.rest = self.rest.get(found.len_utf8()..)?;
        Some(found)
    }

    /// Exactly so many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits =
            self.rest.get(..count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        self.rest = self.rest.get(count..)?;
        digits.parse().ok()
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.digits(4)?;
        self.take(&['-'])?;
        let month = self.digits(2)?;
        self.take(&['-'])?;
        let civil = Civil { year, month, day: self.digits(2)? };
        // A day that there is comes back as it went.
        let known = (1..=12).contains(&month) && Civil::of(civil.days()) == civil;
        known.then(|| civil.days())
    }

    /// Seconds and nanoseconds of a day.
    fn time(&mut self) -> Option<(i64, i64)> {
        let hour = self.digits(2).filter(|hour| *hour < 24)?;
        self.take(&[':'])?;
        let minute = self.digits(2).filter(|minute| *minute < 60)?;
        let (mut second, mut nanoseconds) = (0, 0);
        if self.take(&[':']).is_some() {
            second = self.digits(2).filter(|second| *second < 60)?;
            if self.take(&['.']).is_some() {
                nanoseconds = self.fraction()?;
            }
        }
        Some(((hour * 60 + minute) * SECONDS_PER_MINUTE + second, nanoseconds))
    }

    fn fraction(&mut self) -> Option<i64> {
        let count = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if count > FRACTION_DIGITS {
            return None;
        }
        let digits = self.rest.get(..count)?;
        let nanoseconds = format!("{digits:0<FRACTION_DIGITS$}").parse().ok()?;
        self.digits(count)?;
        Some(nanoseconds)
    }

    /// Seconds since 1970-01-01, and nanoseconds.
    fn date_and_time(&mut self) -> Option<(i64, i64)> {
        let midnight = self.date()? * SECONDS_PER_DAY;
        if self.rest.is_empty() {
            return Some((midnight, 0));
        }
        self.take(&[' ', 'T', 't'])?;
        let (seconds, nanoseconds) = self.time()?;
        Some((midnight + seconds, nanoseconds))
    }

    /// Seconds that a clock shows more than one at Greenwich.
    fn offset(&mut self) -> Option<i64> {
        match self.take(&['Z', 'z', '+', '-'])? {
            sign @ ('+' | '-') => {
                let hours = self.digits(2).filter(|hours| *hours < 24)?;
                let minutes =
                    if self.take(&[':']).is_some() || !self.rest.is_empty() { self.digits(2)? } else { 0 };
                let seconds = (hours * 60 + minutes) * SECONDS_PER_MINUTE;
                (minutes < 60).then_some(if sign == '+' { seconds } else { -seconds })
            }
            _ => Some(0),
        }
    }
}

pub(crate) fn date_text(days: i64) -> String {
    let Civil { year, month, day } = Civil::of(days);
    if (0..=YEAR_PLAIN_MAX).contains(&year) {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{year:+05}-{month:02}-{day:02}")
    }
}

/// A time of day; zeros at the end of its fraction are left out.
pub(crate) fn time_text(units: i64, unit: TimeUnit) -> String {
    let seconds = units.div_euclid(unit.per_second());
    let nanoseconds = units.rem_euclid(unit.per_second()) * (NANOSECONDS_PER_SECOND / unit.per_second());
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    if nanoseconds != 0 {
        text.push_str(format!(".{nanoseconds:0FRACTION_DIGITS$}").trim_end_matches('0'));
    }
    text
}

pub(crate) fn timestamp_text(units: i64, unit: TimeUnit) -> String {
    let seconds = units.div_euclid(unit.per_second());
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    // In two steps, for a day's units fit in 64 bits whatever the date.
    let units_of_day =
        seconds.rem_euclid(SECONDS_PER_DAY) * unit.per_second() + units.rem_euclid(unit.per_second());
    format!("{} {}", date_text(days), time_text(units_of_day, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_written_and_days_that_there_are_not_are_refused() {
        assert_eq!(read_date("1970-01-01"), Some(0));
        assert_eq!(read_date("1969-12-31"), Some(-1));
        assert_eq!(read_date("2024-02-29"), Some(19_782));
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
            "2026-01-1\u{661}",
            "20260101",
        ] {
            assert_eq!(read_date(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn times_are_read_in_their_unit_and_no_digit_is_lost() {
        let ms = TimeUnit::Milliseconds;
        assert_eq!(read_time("00:00", ms), Some(0));
        assert_eq!(read_time("23:59:59.999", ms), Some(86_399_999));
        assert_eq!(read_time("10:00:00.5", ms), Some(36_000_500));
        assert_eq!(read_time("10:00:00.500000000", ms), Some(36_000_500));
        for bad in [
            "24:00",
            "23:60",
            "23:59:60",
            "1:00",
            "10:00:00.",
            "10:00:00.0005",
            "10",
            "10:00:00.0000000000",
            "10:00Z",
        ] {
            assert_eq!(read_time(bad, ms), None, "{bad:?}");
        }
    }

    #[test]
    fn an_instant_needs_its_offset_and_a_timestamp_takes_none() {
        let s = TimeUnit::Seconds;
        assert_eq!(read_timestamp("1970-01-02", s), Some(86_400));
        assert_eq!(read_timestamp("1970-01-02T00:00:01", s), Some(86_401));
        assert_eq!(read_timestamp("1970-01-02 00:00:01Z", s), None);
        assert_eq!(read_timestamp("1970-01-02 ", s), None);
        assert_eq!(read_instant("1970-01-02 00:00:01", s), None);
        for (text, seconds) in [
            ("1970-01-02 00:00:01Z", 86_401),
            ("1970-01-02T02:00:01+02:00", 86_401),
            ("1970-01-01 18:30:01 -0530", 86_401),
            ("1970-01-02 02:00:01+02", 86_401),
        ] {
            assert_eq!(read_instant(text, s), Some(seconds), "{text:?}");
        }
        for bad in
            ["1970-01-02 00:00+24:00", "1970-01-02 00:00+02:60", "1970-01-02 00:00+2", "1970-01-02 00:00+02:"]
        {
            assert_eq!(read_instant(bad, s), None, "{bad:?}");
        }
    }

    #[test]
    fn what_64_bits_do_not_hold_is_refused() {
        let ns = TimeUnit::Nanoseconds;
        assert_eq!(read_timestamp("2262-04-11 23:47:16.854775807", ns), Some(i64::MAX));
        assert_eq!(read_timestamp("2262-04-11 23:47:16.854775808", ns), None);
        assert_eq!(read_timestamp("1677-09-21 00:12:43.145224192", ns), Some(i64::MIN));
        assert_eq!(read_timestamp("1677-09-21 00:12:43.145224191", ns), None);
    }

    #[test]
    fn any_number_prints() {
        for unit in [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds]
        {
            for units in [i64::MIN, -1, 0, 1, i64::MAX] {
                assert!(timestamp_text(units, unit).len() > 18);
            }
        }
        assert_eq!(timestamp_text(i64::MIN, TimeUnit::Seconds), "-292277022657-01-27 08:29:52");
        assert_eq!(timestamp_text(-1, TimeUnit::Milliseconds), "1969-12-31 23:59:59.999");
        assert_eq!(date_text(2_932_897), "+10000-01-01");
        assert_eq!(time_text(36_000_500, TimeUnit::Milliseconds), "10:00:00.5");
    }
}
