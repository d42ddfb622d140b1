//! Days as people say them, and as numbers. The calendar is the Gregorian one for all times, as in ISO 8601.
//!
//! Lives on: anywhere (pure). It knows of no clock and of no time zones.

/// Years after which the calendar is the same again, and their days.
const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01, where an era begins, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// A day as people say it. Whether there is one of these numbers, [`Civil::of`] of its [`Civil::days`] tells: it gives the same again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
}

impl Civil {
    /// Days since 1970-01-01. Years begin in March here, so that the leap day is the last.
    pub fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let month = (self.month + 9) % 12;
        let year_of_era = year.rem_euclid(ERA_YEARS);
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(ERA_YEARS) * ERA_DAYS + day_of_era - EPOCH_DAYS
    }

    /// The day so many days after 1970-01-01, which are fewer than 64 bits of seconds have.
    pub fn of(days: i64) -> Civil {
        let days = days + EPOCH_DAYS;
        let day_of_era = days.rem_euclid(ERA_DAYS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        let year = days.div_euclid(ERA_DAYS) * ERA_YEARS + year_of_era + i64::from(month <= 2);
        Civil { year, month, day: day_of_year - (153 * from_march + 2) / 5 + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_from_the_year_1_to_9999_follows_the_one_before_it() {
        let month_days = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut days = -719_162;
        for year in 1..=9_999 {
            for month in 1..=12 {
                for day in 1..=month_days(year, month) {
                    let civil = Civil { year, month, day };
                    assert_eq!(civil.days(), days, "{civil:?}");
                    assert_eq!(Civil::of(days), civil);
                    days += 1;
                }
            }
        }
        assert_eq!(days - 1, 2_932_896, "9999-12-31");
    }
}
