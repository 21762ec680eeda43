//! The steps that a person takes after `init`.

use std::path::Path;

use clustermesh::config::Config;
use clustermesh::diagnostic::escaped;
use clustermesh::template::{self, Format};
use clustermesh::text;
use minijinja::value::Serde;
use minijinja::{Value, context};

use super::clusters::ProposedMesh;
use super::home::Home;
use super::mesh_addition::MeshAddition;
use super::starter_files::{CONFIG, JOBS, MESH, contexts, has_outputs, outputs};
use super::{Ci, Gitops, InitArgs, KeptNodes};
use crate::disk::{self, Roots};
use crate::printing::numbered;

/// The steps, each a paragraph.
const STEPS: &str = include_str!("../../../../../templates/init/next-steps.md");

/// Returns what a person does next.
pub(super) fn next(
    args: &InitArgs,
    home: &Home,
    (kept, owned): (&[&str], &[String]),
    proposed: Option<&ProposedMesh>,
    KeptNodes { first, guards, .. }: &KeptNodes,
    config: &Config,
) -> anyhow::Result<String> {
    let has_config = kept.contains(&CONFIG);
    let has_outputs = args.gitops == Gitops::None || has_outputs(args.gitops);
    let addition = proposed.and_then(|it| it.addition.as_ref());
    // Jobs that are kept may have a source, but not the one that was asked for now.
    let are_kept = JOBS.iter().any(|it| kept.contains(it));
    // In a repository that has the files, the steps about them are done.
    let ci = if are_kept && addition.is_some() { Ci::None } else { args.ci };
    let has_templates = kept.iter().any(|it| it.starts_with("templates/"));
    let gitops = if has_templates && addition.is_some() { Gitops::None } else { args.gitops };
    let values = context! {
        outputs => (has_config && !has_outputs).then(|| lines(&outputs(args.gitops))),
        contexts => proposed.filter(|_| has_config).map(|it| lines(&contexts(it))),
        is_operators => proposed.is_some_and(|it| it.is_operators),
        is_proposed => proposed.is_some(),
        lists_peers => proposed.is_some_and(|it| it.lists_peers),
        has_mesh => kept.contains(&MESH),
        subnets => subnets(proposed),
        first => first.iter().map(|it| escaped(it, usize::MAX)).collect::<Vec<_>>(),
        gitops => Value::from(Serde(gitops)),
        waits_for_kilo => gitops == Gitops::Flux && home.installs_kilo(),
        lacks_source => ci != Ci::None && args.program_source.is_some() == are_kept,
        ci => Value::from(Serde(ci)),
        owned => owned.to_vec(),
        pre_commit => args.pre_commit,
        guards => Value::from(Serde(guards)),
        ..of_addition(addition, config)
    };
    let steps = template::filled("next-steps", STEPS, Format::Text, values)?;
    Ok(format!("\nNext steps:\n{}", numbered(&steps)))
}

/// Returns the values for clusters that were added to a mesh.
fn of_addition(addition: Option<&MeshAddition>, config: &Config) -> Value {
    let clusters = addition.map_or(&[][..], |it| &it.clusters);
    let mut tools = [Gitops::Argocd, Gitops::Flux].into_iter();
    let known = tools.find(|it| has_outputs(*it)).unwrap_or(Gitops::None);
    context! {
        added => text::listed(clusters),
        clusters => clusters.iter().map(|it| context! {
            name => it.as_str(),
            kubectl => config.kubectl(it),
        }).collect::<Vec<_>>(),
        file => addition.map(MeshAddition::name),
        has_guards => is_there("guards"),
        has_jobs => JOBS.iter().any(|it| is_there(it)),
        has_flux_source => is_there("flux/gitrepository.yaml"),
        known_gitops => Value::from(Serde(known)),
    }
}

fn is_there(path: &str) -> bool {
    disk::is_there(&Roots::within(Path::new(".")), Path::new(path)).unwrap_or_default()
}

/// Returns the lines of a section of the config below its name.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|it| it.starts_with(' '));
    lines.map(str::to_owned).collect()
}

/// Returns the clusters in which Kilo is to be started, each with its range and the snapshot that follows.
fn subnets(proposed: Option<&ProposedMesh>) -> Vec<Value> {
    let of_mesh = |mesh: &ProposedMesh| {
        let subnets = mesh.subnets.iter().map(|(cluster, range)| {
            context! {
                cluster => cluster.to_string(),
                range => range.to_string(),
                snapshot => mesh.next_snapshots.get(cluster),
            }
        });
        subnets.collect()
    };
    proposed.map_or_else(Vec::new, of_mesh)
}
