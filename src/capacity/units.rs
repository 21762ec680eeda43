//! Numbers as text, for formulas that people read.

use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::config::capacity::Quantity;

/// Returns a count with commas between thousands.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a time in the best unit, with a sensible precision.
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.000_5 {
        "0 s".to_owned()
    } else if seconds < 0.1 {
        format!("{:.0} ms", seconds * 1_000.0)
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else if seconds < 180.0 {
        format!("{seconds:.0} s")
    } else if seconds < 10_800.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds < 172_800.0 {
        format!("{:.0} h", seconds / 3_600.0)
    } else {
        format!("{} days", count(whole(seconds / 86_400.0)))
    }
}

/// Returns a number of bytes in the best unit.
pub fn bytes(number: f64) -> String {
    if number < 1e3 {
        format!("{number:.0} B")
    } else if number < 1e4 {
        format!("{:.1} kB", number / 1e3)
    } else if number < 1e6 {
        format!("{:.0} kB", number / 1e3)
    } else if number < 1e9 {
        format!("{:.1} MB", number / 1e6)
    } else {
        format!("{:.1} GB", number / 1e9)
    }
}

/// Returns the time of a cost, such as 2.5 µs.
pub fn nanoseconds(number: u64) -> String {
    let (unit, size) = match number {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        _ => ("ms", 1_000_000),
    };
    let (whole, rest) = (number / size, number % size * 100 / size);
    let rest = format!("{rest:02}");
    match rest.trim_end_matches('0') {
        "" => format!("{whole} {unit}"),
        rest => format!("{whole}.{rest} {unit}"),
    }
}

/// Returns a value of a quantity.
pub fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::ApplySeconds
        | Quantity::RestartSeconds
        | Quantity::KustomizeSeconds
        | Quantity::FluxSeconds => seconds(value),
        _ => count(whole(value)),
    }
}

/// Returns a step of a quantity, exactly.
pub fn step(quantity: Quantity, step: u64) -> String {
    let number = count(usize::try_from(step).unwrap_or(usize::MAX));
    match quantity {
        Quantity::ApplySeconds
        | Quantity::RestartSeconds
        | Quantity::KustomizeSeconds
        | Quantity::FluxSeconds => format!("{number} s"),
        _ => number,
    }
}

/// Returns a number that was counted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float stays within the integer's bounds, and counts are never negative"
)]
pub(super) fn whole(value: f64) -> usize {
    value.round() as usize
}

/// Returns a count to reckon with.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted stays far below 2^53, and else the last digit does not matter"
)]
pub fn float(number: usize) -> f64 {
    number as f64
}

/// Returns a number without a fraction where it has none, and else to the microsecond.
pub fn number(value: f64) -> Number {
    let rounded = (value * 1e6).round() / 1e6;
    let text = format!("{rounded}");
    // Values that JSON cannot represent, such as infinity, are omitted.
    text.parse().unwrap_or_else(|_| Number::from(0))
}

/// Writes a value, if there is one.
pub(super) fn written_number<S: Serializer, T: Copy + Into<Option<f64>>>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*value).into().map(number).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        let counts = [0, 999, 1_000, 12_345, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        let times = [0.0, 0.001, 0.099, 0.11, 9.94, 43.2, 240.0, 14_400.0, 259_200.0].map(seconds);
        let expected = ["0 s", "1 ms", "99 ms", "0.1 s", "9.9 s", "43 s", "4 min", "4 h", "3 days"];
        assert_eq!(times, expected);
        let sizes = [999.0, 1_080.0, 656_000.0, 1_576_000.0, 2e9].map(bytes);
        assert_eq!(sizes, ["999 B", "1.1 kB", "656 kB", "1.6 MB", "2.0 GB"]);
        let costs = [850, 2_500, 2_050, 3_000, 1_000_000].map(nanoseconds);
        assert_eq!(costs, ["850 ns", "2.5 µs", "2.05 µs", "3 µs", "1 ms"]);
    }
}
