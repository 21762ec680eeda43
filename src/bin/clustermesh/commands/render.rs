//! `clustermesh render`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::builder::NonEmptyStringValueParser;
use clustermesh::change::Loss;
use clustermesh::diagnostic::Quoted;
use clustermesh::manifest;
use clustermesh::name::ClusterName;
use clustermesh::plan::{Plan, Target};
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::{Finding, Purpose, Subject};

use crate::disk::swap;
use crate::disk::tree::Survey;
use crate::judgement::Judgement;
use crate::output::Talk;
use crate::settings::Options;
use crate::threshold::Strict;
use crate::{Outcome, evidence, input, judgement};

/// Write the Kilo Peers of every cluster
///
/// Reads the meshes and the snapshots of their clusters and writes `rendered/TARGET/`, one folder
/// for each cluster: a kustomization, and a file of Peers for each cluster it sees. Writes all or
/// nothing, only what differs, and removes files of its own that are no longer wanted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Compare instead of writing; exits with 1 and a list if anything differs
    #[arg(long, conflicts_with = "target")]
    check: bool,

    /// Print the manifests of this cluster instead of writing any
    #[arg(long, value_name = "CLUSTER", value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,

    #[command(flatten)]
    strict: Strict,

    /// Allow a cluster to have no Peers, or none of one source; `*` for every cluster
    #[arg(long, value_name = "TARGET[/SOURCE]", value_parser = allowance)]
    allow_empty: Vec<Allowance>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh render
  clustermesh render --check                    in CI: is what is committed up to date?
  clustermesh render --target east              what would east get?
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
    let fate = if args.target.is_some() {
        None
    } else if args.check {
        Some(Fate::Kept)
    } else {
        Some(Fate::Replaced)
    };
    let judgement = judgement::judge(&evidence, Purpose::Render, fate)?;
    let mut judgement = ManuallyDrop::new(judgement);
    if is_allowed(args, None, None) {
        judgement.findings.retain(|it| it.rule.name != "no-mesh");
    }
    let losses = losses(args, &judgement)?;
    let threshold = args.strict.threshold();
    let is_wrong = threshold.fails(&judgement.findings);
    // What stands in the tree is what `--check` lists.
    let is_of_tree = |it: &&Finding| it.rule.subject == Subject::Tree;
    let is_input_wrong = threshold.fails(judgement.findings.iter().filter(|it| !is_of_tree(it)));
    judgement.add_losses(&losses);
    talk.findings(&evidence.files.of_people(), &judgement.findings);
    if args.check
        && !is_input_wrong
        && let Some(rendered) = &judgement.rendered
    {
        let outcome = check(&rendered.survey, &evidence.settings.rendered.value, result)?;
        return Ok(if is_wrong || !losses.is_empty() {
            Outcome::Findings
        } else {
            outcome
        });
    }
    let planned = judgement.planned.as_ref().filter(|_| !is_wrong);
    let Some((fleet, plan)) = planned.filter(|_| losses.is_empty()) else {
        talk.counts(&judgement.findings);
        if !args.check && !args.target.is_some() {
            talk.line("nothing was written");
        }
        return Ok(evidence.failure());
    };
    let Some(rendered) = &judgement.rendered else {
        return print(plan, args.target.as_deref(), result);
    };
    let root = &evidence.settings.rendered.value;
    swap::apply(root, &rendered.tree, &rendered.survey)
        .with_context(|| format!("cannot write `{}`; it was left as it was", root.display()))?;
    let rosters = fleet.members().iter().map(|member| &member.roster);
    let left_out = rosters.map(|roster| roster.left_out.len()).sum();
    talk.summary(plan, left_out, &rendered.survey);
    Ok(Outcome::Clean)
}

/// Returns what targets would lose altogether and no flag allows.
fn losses(args: &Args, judgement: &Judgement) -> anyhow::Result<Vec<Loss>> {
    let Some((_, plan)) = &judgement.planned else {
        return Ok(Vec::new());
    };
    let all = match (&args.target, &judgement.rendered) {
        (Some(name), _) => {
            let target = target(plan, name)?;
            let is_empty = plan.empty().any(|it| it.cluster == target.cluster);
            let target = target.cluster.to_string();
            Vec::from_iter(is_empty.then_some(Loss::EmptyTarget { target }))
        }
        (None, Some(rendered)) => {
            check_allowances(args, plan, &rendered.survey)?;
            rendered.changes.losses.clone()
        }
        (None, None) => Vec::new(),
    };
    let unasked = all.into_iter().filter(|loss| !is_loss_allowed(args, loss));
    Ok(unasked.collect())
}

fn target<'a>(plan: &'a Plan, name: &str) -> anyhow::Result<&'a Target> {
    let mut targets = plan.targets.iter();
    targets
        .find(|it| it.cluster.as_str() == name)
        .with_context(|| {
            let known = plan.targets.iter().map(|it| it.cluster.to_string());
            format!(
                "no mesh names a cluster `{}`; there are {}",
                input::name(Path::new(name)),
                names(known)
            )
        })
}

/// Prints one target's manifests.
fn print(plan: &Plan, name: Option<&str>, result: &mut impl Write) -> anyhow::Result<Outcome> {
    let target = target(plan, name.unwrap_or_default())?;
    result.write_all(manifest::stream(plan, target).as_bytes())?;
    result.flush()?;
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

fn is_loss_allowed(args: &Args, loss: &Loss) -> bool {
    match loss {
        Loss::EmptyTarget { target } | Loss::Target { target, .. } => {
            is_allowed(args, Some(target), None)
        }
        Loss::Source { target, source, .. } => is_allowed(args, Some(target), Some(source)),
        Loss::SilentSource { source } => is_allowed(args, None, Some(source)),
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
