//! Days that the calendar does not have, as texts name them: `2026-02-31`.
//!
//! Lives on: anywhere (pure).
use mink_types::Civil;
use mink_types::schema::DataType;
use std::ops::Range;

/// Places of a year, a month and a day in `2026-01-31`.
const YEAR: Range<usize> = 0..4;
const MONTH: Range<usize> = 5..7;
const DAY: Range<usize> = 8..10;

/// Whether values of the type name a day.
pub(crate) fn has_days(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date | DataType::Timestamp { .. } | DataType::TimestampLtz { .. })
}

/// That there is no such day, of a text which begins as a day does, alone or before a time.
pub(crate) fn no_such_day(text: &str) -> Option<String> {
    let day = text.get(..DAY.end)?;
    let is_dash = |at: usize| day.as_bytes().get(at) == Some(&b'-');
    let goes_on = text.as_bytes().get(DAY.end).is_some_and(u8::is_ascii_digit);
    if !is_dash(YEAR.end) || !is_dash(MONTH.end) || goes_on {
        return None;
    }
    let number = |at: Range<usize>| {
        let digits = day.get(at).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<i64>().ok()
    };
    let civil = Civil { year: number(YEAR)?, month: number(MONTH)?, day: number(DAY)? };
    // A day that there is comes back as it went.
    let is_known = (1..=12).contains(&civil.month) && Civil::of(civil.days()) == civil;
    (!is_known).then(|| format!("there is no day {day}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_the_calendar_lacks_is_told_apart_from_what_is_no_day_at_all() {
        for text in ["2026-02-31", "2025-02-29T10:00:00Z", "2026-13-01 10:00:00", "2026-04-00", "2026-00-10"]
        {
            assert_eq!(no_such_day(text), Some(format!("there is no day {}", &text[..10])));
        }
        for text in [
            "2026-01-31",
            "2024-02-29T25:00",
            "2026-02-310",
            "31.02.2026",
            "2026-2-31",
            "",
            "2026-02-3é",
            "+2026-02-31",
        ] {
            assert_eq!(no_such_day(text), None, "{text}");
        }
    }
}
