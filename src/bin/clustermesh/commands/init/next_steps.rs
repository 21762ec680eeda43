//! The steps that a person takes after `init`.

use std::path::Path;

use clustermesh::diagnostic::escaped;
use clustermesh::template::{self, Format};
use clustermesh::text;
use minijinja::value::Serde;
use minijinja::{Value, context};

use super::clusters::ProposedMesh;
use super::mesh_addition::MeshAddition;
use super::starter_files::{CONFIG, JOBS, MESH, contexts, has_outputs, outputs};
use super::{Ci, Gitops, InitArgs};
use crate::disk::{self, Roots};

/// The steps, each a paragraph.
const STEPS: &str = include_str!("../../../../../templates/init/next-steps.md");

/// The steps after clusters were added to a mesh.
const ADDED_STEPS: &str = include_str!("../../../../../templates/init/added-steps.md");

/// Returns what a person does next.
pub(super) fn next(
    args: &InitArgs,
    kept: &[&str],
    proposed: Option<&ProposedMesh>,
    first: &[String],
) -> anyhow::Result<String> {
    let has_config = kept.contains(&CONFIG);
    let has_outputs = args.gitops == Gitops::None || has_outputs(args.gitops);
    // Jobs that are kept may have a source, but not the one that was asked for now.
    let are_kept = JOBS.iter().any(|it| kept.contains(it));
    let values = context! {
        outputs => (has_config && !has_outputs).then(|| lines(&outputs(args.gitops))),
        contexts => proposed.filter(|_| has_config).map(|it| lines(&contexts(it))),
        is_operators => proposed.is_some_and(|it| it.is_operators),
        is_proposed => proposed.is_some(),
        lists_peers => proposed.is_some_and(|it| it.lists_peers),
        has_mesh => kept.contains(&MESH),
        subnets => subnets(proposed),
        first => first.iter().map(|it| escaped(it, usize::MAX)).collect::<Vec<_>>(),
        gitops => Value::from(Serde(args.gitops)),
        lacks_source => args.ci != Ci::None && args.program_source.is_some() == are_kept,
        ci => Value::from(Serde(args.ci)),
        pre_commit => args.pre_commit,
    };
    let steps = template::filled("next-steps", STEPS, Format::Text, values)?;
    Ok(numbered(&steps))
}

/// Returns what a person does after clusters were added to a mesh.
pub(super) fn next_for_added(
    proposed: &ProposedMesh,
    addition: &MeshAddition,
    kept: &[&str],
    first: &[String],
) -> anyhow::Result<String> {
    let mut tools = [Gitops::Argocd, Gitops::Flux].into_iter();
    let gitops = tools.find(|it| has_outputs(*it)).unwrap_or(Gitops::None);
    let has_config = kept.contains(&CONFIG);
    let values = context! {
        added => text::listed(&addition.clusters),
        clusters => addition.clusters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        file => addition.name(),
        contexts => has_config.then(|| lines(&contexts(proposed))),
        subnets => subnets(Some(proposed)),
        first => first.iter().map(|it| escaped(it, usize::MAX)).collect::<Vec<_>>(),
        has_jobs => JOBS.iter().any(|it| {
            disk::is_there(&Roots::within(Path::new(".")), Path::new(it)).unwrap_or_default()
        }),
        gitops => Value::from(Serde(gitops)),
    };
    let steps = template::filled("added-steps", ADDED_STEPS, Format::Text, values)?;
    Ok(numbered(&steps))
}

/// Returns the lines of a section of the config below its name.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|it| it.starts_with(' '));
    lines.map(str::to_owned).collect()
}

/// Returns the clusters in which Kilo is to be started, each with its range.
fn subnets(proposed: Option<&ProposedMesh>) -> Vec<[String; 2]> {
    let subnets = proposed.into_iter().flat_map(|it| &it.subnets);
    subnets.map(|(cluster, range)| [cluster.to_string(), range.to_string()]).collect()
}

/// Returns the paragraphs as numbered steps.
fn numbered(steps: &str) -> String {
    let steps = steps
        .split("\n\n")
        .map(|step| step.trim_matches('\n').replace('\n', "\n   "))
        .filter(|step| !step.is_empty());
    let steps = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}\n"));
    format!("\nNext steps:\n{}", steps.collect::<String>())
}
