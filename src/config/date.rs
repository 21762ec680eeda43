//! Dates: days of the calendar, as people write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A day from the year 0 to 9999.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// The reason why a text is not a date.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum DateError {
    /// Not four digits, two and two.
    #[error("expected the form `2027-01-31`")]
    Form,
    /// The day does not exist in the calendar.
    #[error("the day does not exist")]
    Calendar,
}

/// The last second that has a date.
const LAST_SECOND: i64 = 253_402_300_799;

const DAY_SECONDS: i64 = 86_400;

impl Date {
    /// Returns the day of a time in Unix seconds, in UTC.
    pub fn of_unix_seconds(seconds: i64) -> Self {
        let mut days = seconds.clamp(0, LAST_SECOND) / DAY_SECONDS;
        let (mut year, mut month) = (1970, 1);
        while i64::from(days_of_year(year)) <= days {
            days -= i64::from(days_of_year(year));
            year += 1;
        }
        while i64::from(days_of_month(year, month)) <= days {
            days -= i64::from(days_of_month(year, month));
            month += 1;
        }
        Self {
            year,
            month,
            // Fewer than a month has are left.
            day: u8::try_from(days + 1).unwrap_or(1),
        }
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts.as_slice() else {
            return Err(DateError::Form);
        };
        let date = Self {
            year: number(year, 4)?,
            month: number(month, 2)?,
            day: number(day, 2)?,
        };
        let Self { year, month, day } = date;
        if (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day) {
            Ok(date)
        } else {
            Err(DateError::Calendar)
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

fn number<T: FromStr>(text: &str, digits: usize) -> Result<T, DateError> {
    if text.len() != digits || !text.bytes().all(|it| it.is_ascii_digit()) {
        return Err(DateError::Form);
    }
    text.parse().map_err(|_| DateError::Form)
}

fn days_of_year(year: u16) -> u16 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn knows_the_calendar() {
        for day in [
            "2027-01-31",
            "2024-02-29",
            "2000-02-29",
            "0000-01-01",
            "9999-12-31",
        ] {
            assert_eq!(day.parse::<Date>().unwrap().to_string(), day);
        }
        for day in [
            "2027-02-29",
            "2100-02-29",
            "2027-04-31",
            "2027-13-01",
            "2027-00-10",
            "2027-01-00",
        ] {
            assert_eq!(day.parse::<Date>(), Err(DateError::Calendar), "{day}");
        }
        for day in [
            "",
            "2027",
            "2027-1-31",
            "27-01-31",
            "2027-01-31T00:00:00Z",
            "2027/01/31",
            "+027-01-31",
            "2027-01-31-",
            "20270131",
            "２027-01-31",
            "31-01-2027",
        ] {
            assert_eq!(day.parse::<Date>(), Err(DateError::Form), "{day}");
        }
    }

    #[test]
    fn knows_the_day_of_a_time() {
        let day = |seconds| Date::of_unix_seconds(seconds).to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(-1), "1970-01-01");
        assert_eq!(day(86_399), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_735_689_599), "2024-12-31");
        assert_eq!(day(1_735_689_600), "2025-01-01");
        assert_eq!(day(4_107_542_400), "2100-03-01");
        assert_eq!(day(i64::MAX), "9999-12-31");
    }

    proptest! {
        #[test]
        fn later_days_are_greater(day in 0..2_932_896_i64) {
            let date = Date::of_unix_seconds(day * DAY_SECONDS);
            prop_assert!(date < Date::of_unix_seconds((day + 1) * DAY_SECONDS));
            prop_assert_eq!(date.to_string().parse(), Ok(date));
        }
    }
}
