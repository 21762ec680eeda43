//! How figures are printed: medians with their spread, next to the target.

use std::fmt;

/// One of them in a line, with the aim if there is one.
pub(crate) fn line(f: &mut fmt::Formatter<'_>, what: &str, value: &str, aim: &str) -> fmt::Result {
    let line = format!("  {what:<24}{value:<32}");
    match aim {
        "" => writeln!(f, "{}", line.trim_end()),
        aim => writeln!(f, "{line}aim {aim}"),
    }
}

/// Round by round, so that what slows a whole round down cancels out.
pub(crate) fn ratio(over: &[f64], under: &[f64]) -> String {
    let rounds = over.iter().zip(under);
    let ratios: Vec<f64> = rounds.map(|(over, under)| over / under).collect();
    spread(&ratios, |ratio| format!("{ratio:.2}×"))
}

pub(crate) fn seconds(samples: &[f64]) -> String {
    spread(samples, |sample| format!("{sample:.3} s"))
}

pub(crate) fn spread(samples: &[f64], shown: fn(&f64) -> String) -> String {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).map(shown);
    match (sorted.first().map(shown), median, sorted.last().map(shown)) {
        (Some(least), Some(median), Some(most)) => format!("{median:<9}({least} to {most})"),
        _ => "not measured".to_owned(),
    }
}

pub(crate) fn mebibytes(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{} MiB", bytes.div_ceil(1 << 20)),
        None => "not measured".to_owned(),
    }
}

/// 122500 as 122,500.
pub(crate) fn thousands(number: u32) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (front, rest) => format!("{},{rest:03}", thousands(front)),
    }
}
