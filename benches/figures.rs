//! What was measured, and how it is told: medians with their spread, next to what we aim for.

use std::fmt;

/// Seconds of each round, and the peak in bytes.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) render: Vec<f64>,
    pub(crate) again: Vec<f64>,
    pub(crate) copy: Vec<f64>,
    pub(crate) script: Vec<f64>,
    pub(crate) peak: Option<u64>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "render", &seconds(&self.render), "")?;
        line(f, "copy of the same bytes", &seconds(&self.copy), "")?;
        line(f, "script", &seconds(&self.script), "")?;
        line(f, "second render", &seconds(&self.again), "")?;
        let ratio = |over: &[f64], under: &[f64]| times(&ratios(over, under));
        let (render, copy) = (&self.render, &self.copy);
        line(f, "render ÷ copy", &ratio(render, copy), "≤ 2.0×")?;
        line(f, "script ÷ render", &ratio(&self.script, render), "≥ 6×")?;
        line(f, "peak memory", &mebibytes(self.peak), "≤ 64 MiB")?;
        line(f, "second ÷ first", &ratio(&self.again, render), "≤ 1.0×")
    }
}

fn line(f: &mut fmt::Formatter<'_>, what: &str, value: &str, aim: &str) -> fmt::Result {
    let line = format!("  {what:<24}{value:<32}");
    match aim {
        "" => writeln!(f, "{}", line.trim_end()),
        aim => writeln!(f, "{line}aim {aim}"),
    }
}

/// Round by round, so that what slows a whole round down cancels out.
fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    let rounds = over.iter().zip(under);
    rounds.map(|(over, under)| over / under).collect()
}

fn seconds(samples: &[f64]) -> String {
    spread(samples, |sample| format!("{sample:.3} s"))
}

fn times(samples: &[f64]) -> String {
    spread(samples, |sample| format!("{sample:.2}×"))
}

fn spread(samples: &[f64], shown: fn(&f64) -> String) -> String {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).map(shown);
    match (sorted.first().map(shown), median, sorted.last().map(shown)) {
        (Some(least), Some(median), Some(most)) => format!("{median:<9}({least} to {most})"),
        _ => "not measured".to_owned(),
    }
}

fn mebibytes(bytes: Option<u64>) -> String {
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
