//! Plain scalars: what YAML readers take a text without quotes for.

/// The type of a scalar according to at least one reader that Kubernetes tools are built on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    /// Itself.
    Text,
    /// Nothing.
    Null,
    /// Yes or no.
    Boolean,
    /// Whole or not, in any base, infinite or not at all.
    Number,
    /// A day, with or without the time of day.
    Date,
}

/// Returns what a plain scalar is taken for.
///
/// Readers of YAML 1.1 and 1.2 disagree (`no`, `0o7`, `1:30`), and so do readers of one version
/// (`1_e3`). A value that is not text for one of them is not text here.
pub(super) fn meaning(text: &str) -> Meaning {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Meaning::Null;
    }
    if is_boolean(text) {
        return Meaning::Boolean;
    }
    if is_date(text) {
        return Meaning::Date;
    }
    if is_number(text) {
        return Meaning::Number;
    }
    Meaning::Text
}

/// Returns whether every reader takes `text` for the same whole number.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    all_digits(digits) && (digits == "0" || !digits.starts_with('0'))
}

fn is_boolean(text: &str) -> bool {
    const WORDS: [&str; 8] = ["y", "yes", "n", "no", "on", "off", "true", "false"];
    let mut rest = text.chars();
    rest.next();
    // `yes`, `Yes` and `YES`, but not `yEs`.
    let one_case = rest.clone().all(char::is_lowercase) || text.chars().all(char::is_uppercase);
    one_case && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return false;
    }
    let digits = unsigned.replace('_', "");
    is_based(&digits) || is_float(&digits) || is_sexagesimal(&digits)
}

fn is_based(text: &str) -> bool {
    let with_base = |base: char, radix: u32| {
        text.strip_prefix('0')
            .and_then(|rest| rest.strip_prefix([base, base.to_ascii_uppercase()]))
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|digit| digit.is_digit(radix)))
    };
    with_base('x', 16) || with_base('o', 8) || with_base('b', 2)
}

fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_fits = exponent
        .is_none_or(|exponent| all_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = whole.bytes().chain(fraction.bytes());
    let some = !whole.is_empty() || !fraction.is_empty();
    exponent_fits && some && digits.all(|digit| digit.is_ascii_digit())
}

/// `1:30` is ninety to YAML 1.1, `1:30.5` half a second more.
fn is_sexagesimal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let first = parts.next().is_some_and(all_digits);
    let mut rest = parts.peekable();
    first
        && rest.peek().is_some()
        && rest.all(|part| all_digits(part) && part.len() <= 2 && part < "60")
        && fraction.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    let day_end = text.find(['T', 't', ' ', '\t']).unwrap_or(text.len());
    let (day, time) = text.split_at(day_end);
    let parts: Vec<&str> = day.split('-').collect();
    let [year, month, date] = parts.as_slice() else {
        return false;
    };
    let short = |part: &str| all_digits(part) && part.len() <= 2;
    let time = time.trim_start_matches(['T', 't', ' ', '\t']);
    let is_time =
        |time: &str| time.starts_with(|first: char| first.is_ascii_digit()) && time.contains(':');
    all_digits(year)
        && year.len() == 4
        && short(month)
        && short(date)
        && (day_end == text.len() || is_time(time))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_reader_takes_for_something_else_is_not_text() {
        let all = |texts: &[&str], expected: Meaning| {
            for text in texts {
                assert_eq!(meaning(text), expected, "{text}");
            }
        };
        all(&["", "~", "null", "NULL"], Meaning::Null);
        all(&["y", "No", "ON", "off", "True", "FALSE"], Meaning::Boolean);
        all(
            &[
                "0",
                "-7",
                "+7",
                "0123",
                "0899",
                "0o7",
                "0x1F",
                "0X1f",
                "0B1",
                "1_000",
                "1e3",
                "1_e3",
                "1.",
                ".5",
                "1._5",
                "1.5E-3",
                "1:30",
                "12:30:45.5",
                ".inf",
                "-.INF",
                ".NaN",
            ],
            Meaning::Number,
        );
        all(
            &["2026-11-20", "2026-1-2", "2026-11-20T10:00:00Z", "2026-11-20 10:00:00"],
            Meaning::Date,
        );
    }

    #[test]
    fn names_and_addresses_are_text() {
        for text in [
            "east",
            "nO",
            "yEs",
            "none",
            "10.0.0.1",
            "10.0.0.0/16",
            "fd00::/48",
            "1:2:3:4::/64",
            "1e",
            "e3",
            "0x",
            "0xg",
            "-",
            ".",
            "..",
            "2026-11-20x",
            "2026-11-20 x",
            "99:99",
            "1-2",
            "_1",
        ] {
            assert_eq!(meaning(text), Meaning::Text, "{text}");
        }
    }

    #[test]
    fn only_one_way_to_write_a_number_is_decimal() {
        for text in ["0", "51820", "-1"] {
            assert!(is_decimal(text), "{text}");
        }
        for text in ["", "-", "+1", "01", "1_0", "0x1", "1.0", "1e1"] {
            assert!(!is_decimal(text), "{text}");
        }
    }
}
