//! The delay from a new node to its Peers, as far as the files that `init` wrote into the repository show it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clustermesh::document::Source;

use crate::clock;
use crate::disk::{self, Roots};
use crate::settings::WorkingRepository;

/// The largest of these files that is read, in bytes.
const LIMIT: u64 = 1 << 20;

const REFRESH_JOB: &str = ".github/workflows/clustermesh-refresh.yml";
const WATCH_JOB: &str = ".github/workflows/clustermesh-watch.yml";
const GITLAB_JOBS: &str = ".gitlab-ci.yml";
const GIT_REPOSITORY: &str = "flux/gitrepository.yaml";
const ARGO_PROJECT: &str = "argocd/project.yaml";

/// The number of schedules of a workflow that are read.
const SCHEDULES: usize = 50;

/// The defaults of `snapshot --wait`: it lists the nodes again, and then waits until they stay the same.
const WATCH: [(&str, Duration); 2] = [
    ("--interval", Duration::from_secs(30)),
    ("--debounce", Duration::from_secs(10)),
];

/// The steps of the delay.
pub(super) struct Delay {
    /// The steps whose length a file shows.
    pub(super) known: Vec<DelayStep>,
    /// The others.
    pub(super) unknown: Vec<String>,
}

/// A step whose length is known.
pub(super) struct DelayStep {
    /// The subject.
    pub(super) what: &'static str,
    /// The longest time that it takes.
    pub(super) longest: Duration,
    /// The file that shows it.
    pub(super) path: &'static str,
}

impl Delay {
    /// Reads the files; none if there are none.
    pub(super) fn read() -> Option<Self> {
        let here = Path::new(".");
        let root = WorkingRepository::default().repository();
        let root = root.unwrap_or_else(|| here.to_owned());
        let mut delay = Self {
            known: Vec::new(),
            unknown: Vec::new(),
        };
        let is_refreshed = delay.add_refresh(&root);
        let is_applied = delay.add_engine(here);
        let run = ["the run of the job", "the checks", "the merge"];
        delay.unknown.extend(run.map(str::to_owned));
        (is_refreshed || is_applied).then_some(delay)
    }

    /// Returns the sum of what is known.
    pub(super) fn longest(&self) -> Duration {
        self.known.iter().map(|it| it.longest).sum()
    }

    /// Returns the line for people.
    pub(super) fn line(&self) -> String {
        let unknown = self.unknown.join(", ");
        if self.known.is_empty() {
            return format!("delay until other clusters can reach a new node: unknown ({unknown})");
        }
        let known = self.known.iter();
        let known = known.map(|it| format!("{} {}, {}", minutes(it.longest), it.what, it.path));
        format!(
            "delay until other clusters can reach a new node: at most {} ({}), plus steps of unknown length: {unknown}",
            minutes(self.longest()),
            known.collect::<Vec<_>>().join("; ")
        )
    }

    /// Adds the wait for the job that takes snapshots. Returns whether there is such a job.
    fn add_refresh(&mut self, root: &Path) -> bool {
        let [github, watch, gitlab] =
            [REFRESH_JOB, WATCH_JOB, GITLAB_JOBS].map(|it| text(root, it));
        let has_job = |name: &str| {
            let mut lines = gitlab.iter().flat_map(|text| text.lines());
            lines.any(|it| it.trim_end().strip_suffix(':') == Some(name))
        };
        if let (Some(_), Some(watch)) = (&github, &watch) {
            self.add("refresh", watched(watch), WATCH_JOB);
        } else if let Some(text) = &github {
            self.add("refresh", scheduled(text), REFRESH_JOB);
        } else if let (true, Some(text)) = (has_job("clustermesh-watch"), &gitlab) {
            self.add("refresh", watched(text), GITLAB_JOBS);
        } else if has_job("clustermesh-refresh") {
            self.unknown
                .push("the pipeline schedule of GitLab".to_owned());
        } else {
            return false;
        }
        true
    }

    /// Adds the wait for Flux or Argo CD. Returns whether there is a file of either.
    fn add_engine(&mut self, folder: &Path) -> bool {
        if let Some(text) = text(folder, GIT_REPOSITORY) {
            // A new commit starts the Kustomizations, so their own interval does not count.
            self.add("Flux", git_interval(&text), GIT_REPOSITORY);
        } else if text(folder, ARGO_PROJECT).is_some() {
            let setting = "Argo CD's `timeout.reconciliation` (default: up to 3m)";
            self.unknown.push(setting.to_owned());
        } else {
            return false;
        }
        true
    }

    fn add(&mut self, what: &'static str, longest: Option<Duration>, path: &'static str) {
        match longest {
            Some(longest) => self.known.push(DelayStep {
                what,
                longest,
                path,
            }),
            None => self.unknown.push(format!("the interval in {path}")),
        }
    }
}

fn text(folder: &Path, path: &str) -> Option<String> {
    let path: PathBuf = folder.join(path);
    disk::read_text(&Roots::within(folder), &path, LIMIT).ok()
}

/// Returns how long `snapshot --wait` of a job needs to notice a change.
fn watched(text: &str) -> Option<Duration> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let given = |option: &str| {
        let mut pairs = words.windows(2);
        pairs.find_map(|it| (it.first() == Some(&option)).then(|| it.last().copied())?)
    };
    let times = WATCH.map(|(option, default)| match given(option) {
        Some(written) => clock::duration(written).ok(),
        None => Some(default),
    });
    times.into_iter().sum()
}

/// Returns the longest pause between two runs of a workflow. Its keys are not read as YAML: `on` is a boolean to some
/// readers.
fn scheduled(text: &str) -> Option<Duration> {
    let lines = text
        .lines()
        .filter_map(|it| it.trim().strip_prefix("- cron:"));
    let mut runs: BTreeSet<u64> = BTreeSet::new();
    for line in lines.take(SCHEDULES) {
        let quoted = |quote| line.trim().strip_prefix(quote)?.split(quote).next();
        runs.extend(runs_of_a_day(quoted('\'').or_else(|| quoted('"'))?)?);
    }
    let first = *runs.first()?;
    let next = runs.iter().skip(1).copied().chain([first + 24 * 60]);
    let pauses = runs.iter().zip(next).map(|(run, next)| next - run);
    pauses.max().map(|it| Duration::from_secs(60 * it))
}

/// Returns the minutes of the day at which a cron expression starts a job on each day.
fn runs_of_a_day(cron: &str) -> Option<BTreeSet<u64>> {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    let [minutes, hours, "*", "*", "*"] = fields[..] else {
        return None;
    };
    let (minutes, hours) = (values(minutes, 60)?, values(hours, 24)?);
    let runs = hours
        .iter()
        .flat_map(|hour| minutes.iter().map(move |it| 60 * hour + it));
    Some(runs.collect())
}

/// Returns the values that a field of a cron expression selects: `*`, `*/5`, or numbers with commas.
fn values(field: &str, end: u64) -> Option<Vec<u64>> {
    if field == "*" {
        return Some((0..end).collect());
    }
    if let Some(step) = field.strip_prefix("*/") {
        let step: usize = step.parse().ok().filter(|it| *it > 0)?;
        return Some((0..end).step_by(step).collect());
    }
    let values = field
        .split(',')
        .map(|it| it.parse().ok().filter(|it| *it < end));
    values.collect()
}

/// Returns the interval at which Flux fetches the repository.
fn git_interval(text: &str) -> Option<Duration> {
    let source = Source::parse(GIT_REPOSITORY, text).ok()?;
    let is_meant = |kind: &str| kind == "GitRepository";
    let object = source.documents.iter().find(|it| {
        it.get("kind")
            .and_then(|it| it.text())
            .is_some_and(is_meant)
    })?;
    of_go(object.get("spec")?.get("interval")?.text()?)
}

/// Reads a duration of Go, such as `1m30s`.
fn of_go(text: &str) -> Option<Duration> {
    let parts = text.split_inclusive(['h', 'm', 's']);
    parts.map(|it| clock::duration(it).ok()).sum()
}

/// Writes a duration as `65m` or `40s`.
fn minutes(duration: Duration) -> String {
    let (minutes, seconds) = (duration.as_secs() / 60, duration.as_secs() % 60);
    match (minutes, seconds) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
