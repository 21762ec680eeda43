//! Dates: days of the calendar, as people write them.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, civil};
use thiserror::Error;

/// A day from the year 0 to 9999.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Date(civil::Date);

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

const EPOCH: civil::Date = civil::date(1970, 1, 1);

impl Date {
    /// Returns the day of a time in Unix seconds, in UTC.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self(EPOCH.saturating_add(SignedDuration::from_secs(seconds.max(0))))
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        // The parser takes other forms of ISO 8601 too.
        let is_of_form = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_of_form {
            return Err(DateError::Form);
        }
        text.parse().map(Self).map_err(|_| DateError::Calendar)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY_SECONDS: i64 = 86_400;

    #[test]
    fn knows_the_calendar() {
        for day in ["2027-01-31", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"] {
            assert_eq!(day.parse::<Date>().unwrap().to_string(), day);
        }
        for day in
            ["2027-02-29", "2100-02-29", "2027-04-31", "2027-13-01", "2027-00-10", "2027-01-00"]
        {
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
        let day = |seconds| Date::from_unix_seconds(seconds).to_string();
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
            let date = Date::from_unix_seconds(day * DAY_SECONDS);
            prop_assert!(date < Date::from_unix_seconds((day + 1) * DAY_SECONDS));
            prop_assert_eq!(date.to_string().parse(), Ok(date));
        }
    }
}
