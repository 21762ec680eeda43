//! `clustermesh render`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::builder::{FalseyValueParser, NonEmptyStringValueParser};
use clustermesh::change::{self, Loss, Stale};
use clustermesh::diagnostic::{Quoted, Severity};
use clustermesh::manifest;
use clustermesh::name::ClusterName;
use clustermesh::plan::Plan;
use clustermesh::rules::{Finding, Purpose};
use rayon::prelude::*;

use crate::disk::tree::{Survey, survey};
use crate::disk::{self, swap};
use crate::output::Talk;
use crate::settings::{Options, Settings};
use crate::{Outcome, evidence, input, judgement};

/// The largest rendered file that is read back, in bytes.
const MANIFEST_LIMIT: u64 = 256 << 20;

/// Write the Kilo Peers of every cluster
///
/// Reads the meshes and the snapshots of their clusters and writes `rendered/TARGET/`, one folder
/// for each cluster: a kustomization, and a file of Peers for each cluster it sees. Writes all or
/// nothing, only what differs, and removes files of its own that are no longer wanted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Compare instead of writing; exits with 1 and a list if anything differs
    #[arg(long, conflicts_with_all = ["stdout", "target"])]
    check: bool,

    /// Only this cluster's manifests, to standard output
    #[arg(long, value_name = "CLUSTER", requires = "stdout", value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,

    /// Print instead of writing
    #[arg(long, requires = "target")]
    stdout: bool,

    /// Let warnings fail too
    #[arg(long, env = "CLUSTERMESH_STRICT", hide_env_values = true, value_parser = FalseyValueParser::new())]
    strict: bool,

    /// Allow a cluster to lose all its Peers, or those of one source; `*` for every cluster
    #[arg(long, value_name = "TARGET[/SOURCE]", value_parser = allowance)]
    allow_empty: Vec<Allowance>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh render
  clustermesh render --check                    in CI: is what is committed up to date?
  clustermesh render --target east --stdout     what would east get?
  clustermesh render --allow-empty west --allow-empty '*/west'     west leaves the mesh";

pub(crate) fn run(
    args: &Args,
    options: &Options,
    talk: &mut Talk,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let evidence = match evidence::gather(options) {
        // The process ends with the command, and everything is freed then at once.
        Ok(evidence) => ManuallyDrop::new(evidence),
        Err(unreadable) => return Ok(talk.unreadable(unreadable)),
    };
    let mut judgement = ManuallyDrop::new(judgement::judge(&evidence, Purpose::Render)?);
    if is_allowed(args, None, None) {
        judgement.findings.retain(|it| it.rule.name != "no-mesh");
    }
    talk.findings(&evidence.files.of_people(), &judgement.findings);
    let planned = judgement.planned.as_ref();
    let Some((fleet, plan)) = planned.filter(|_| !fails(args, &judgement.findings)) else {
        talk.counts(&judgement.findings);
        if !args.check && !args.stdout {
            talk.line("nothing was written");
        }
        return Ok(evidence.failure());
    };
    if let Some(target) = &args.target {
        return print(args, plan, target, talk, result);
    }
    let rosters = fleet.members().iter().map(|member| &member.roster);
    let left_out = rosters.map(|roster| roster.left_out.len()).sum();
    write(args, &evidence.settings, (plan, left_out), talk, result)
}

/// Returns whether what was found is bad enough to stop.
fn fails(args: &Args, findings: &[Finding]) -> bool {
    let limit = if args.strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    findings.iter().any(|finding| limit <= finding.severity)
}

/// Prints one target's manifests.
fn print(
    args: &Args,
    plan: &Plan,
    name: &str,
    talk: &mut Talk,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let Some(target) = plan.targets.iter().find(|it| it.cluster.as_str() == name) else {
        let known = plan.targets.iter().map(|it| it.cluster.to_string());
        bail!(
            "no mesh names a cluster `{}`; there are {}",
            input::name(Path::new(name)),
            names(known)
        );
    };
    if target.blocks.is_empty() && !is_allowed(args, Some(name), None) {
        let loss = Loss::EmptyTarget {
            target: name.to_owned(),
        };
        talk.losses(&[loss]);
        return Ok(Outcome::Findings);
    }
    result.write_all(manifest::stream(plan, target).as_bytes())?;
    result.flush()?;
    Ok(Outcome::Clean)
}

/// Writes the tree, or compares it.
fn write(
    args: &Args,
    settings: &Settings,
    (plan, left_out): (&Plan, usize),
    talk: &mut Talk,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let texts: Vec<_> = plan.blocks.par_iter().map(manifest::text).collect();
    let tree = manifest::tree_of(plan, &texts)?;
    let rendered = &settings.rendered.value;
    let survey = survey(rendered, &tree)?;
    if args.check {
        return check(&survey, rendered, result);
    }
    survey.check_unblocked(rendered)?;
    check_allowances(args, plan, &survey)?;
    let losses: Vec<Loss> = losses(plan, &survey, rendered)?
        .into_iter()
        .filter(|loss| !is_loss_allowed(args, loss))
        .collect();
    if !losses.is_empty() {
        talk.losses(&losses);
        talk.line("nothing was written");
        return Ok(Outcome::Findings);
    }
    swap::apply(rendered, &tree, &survey).with_context(|| {
        format!(
            "cannot write `{}`; it was left as it was",
            rendered.display()
        )
    })?;
    talk.summary(plan, left_out, &survey);
    Ok(Outcome::Clean)
}

/// Lists what a render would do to the tree, and what else is in it.
fn check(survey: &Survey, rendered: &Path, result: &mut impl Write) -> anyhow::Result<Outcome> {
    let mut lines: BTreeMap<&str, &str> = BTreeMap::new();
    let groups = [
        ("missing", &survey.missing),
        ("changed", &survey.changed),
        ("stale", &survey.stale),
    ];
    for (what, paths) in groups {
        lines.extend(paths.iter().map(|path| (path.as_str(), what)));
    }
    let foreign: Vec<(&str, String)> = survey
        .foreign
        .iter()
        .chain(&survey.blocked)
        .map(|it| (it.path.as_str(), format!("foreign ({})", it.kind)))
        .collect();
    lines.extend(foreign.iter().map(|(path, kind)| (*path, kind.as_str())));
    let list = lines.iter().map(|(path, what)| {
        let path = input::name(&rendered.join(path));
        format!("{what}: {path}\n")
    });
    crate::print(result, &list.collect::<String>())?;
    if lines.is_empty() {
        Ok(Outcome::Clean)
    } else {
        Ok(Outcome::Findings)
    }
}

/// A flag for a cluster that is nowhere is a slip, and would not do what it was meant for.
fn check_allowances(args: &Args, plan: &Plan, survey: &Survey) -> anyhow::Result<()> {
    let planned = plan.targets.iter().map(|target| target.cluster.as_str());
    let left = survey
        .stale
        .iter()
        .filter_map(|path| path.split('/').next());
    let known: BTreeSet<&str> = planned.chain(left).collect();
    let mut targets = args.allow_empty.iter().filter_map(|it| it.target.as_ref());
    if let Some(target) = targets.find(|it| !known.contains(it.as_str())) {
        let known = names(known.iter().map(|name| input::name(Path::new(name))));
        bail!("--allow-empty names a cluster `{target}` that is nowhere; there are {known}");
    }
    Ok(())
}

fn losses(plan: &Plan, survey: &Survey, rendered: &Path) -> anyhow::Result<Vec<Loss>> {
    let stale = survey
        .stale
        .iter()
        .map(|path| {
            let text = disk::read_text(&rendered.join(path), MANIFEST_LIMIT)?;
            Ok(Stale {
                path: path.clone(),
                text,
            })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let same: BTreeSet<String> = survey.same.iter().cloned().collect();
    Ok(change::losses(plan, &stale, &same))
}

fn is_loss_allowed(args: &Args, loss: &Loss) -> bool {
    match loss {
        Loss::EmptyTarget { target } | Loss::Target { target, .. } => {
            is_allowed(args, Some(target), None)
        }
        Loss::Source { target, source, .. } => is_allowed(args, Some(target), Some(source)),
    }
}

/// What a flag allows: a target to be emptied, or to lose one source.
#[derive(Clone, Debug)]
struct Allowance {
    /// None for every target.
    target: Option<ClusterName>,
    /// None for every source.
    source: Option<String>,
}

fn allowance(text: &str) -> Result<Allowance, String> {
    let (target, source) = match text.split_once('/') {
        Some((target, source)) => (target, Some(source)),
        None => (text, None),
    };
    let target = match target {
        "*" => None,
        name => Some(
            name.parse()
                .map_err(|error| format!("{} is no cluster name: {error}", Quoted(name)))?,
        ),
    };
    if source.is_some_and(|source| source.is_empty() || source.contains('/')) {
        return Err("expected TARGET or TARGET/SOURCE".to_owned());
    }
    let source = source.map(str::to_owned);
    Ok(Allowance { target, source })
}

/// Returns whether a flag allows a target to be emptied, or to lose a source.
fn is_allowed(args: &Args, target: Option<&str>, source: Option<&str>) -> bool {
    args.allow_empty.iter().any(|allowed| {
        let is_target = allowed
            .target
            .as_ref()
            .is_none_or(|it| Some(it.as_str()) == target);
        let is_source = allowed
            .source
            .as_ref()
            .is_none_or(|it| Some(it.as_str()) == source);
        is_target && is_source
    })
}

fn names(names: impl Iterator<Item = String>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
