//! The steps that a person takes after `init`.

use clustermesh::diagnostic::escaped;
use clustermesh::template::{self, Format};
use minijinja::value::Serde;
use minijinja::{Value, context};

use super::clusters::ProposedMesh;
use super::starter_files::{CONFIG, JOBS, MESH, contexts, has_outputs, outputs};
use super::{Ci, Gitops, InitArgs};

/// The steps, each a paragraph.
const STEPS: &str = include_str!("../../../../../templates/init/next-steps.md");

/// Returns what a person does next.
pub(super) fn next(
    args: &InitArgs,
    kept: &[&str],
    proposed: Option<&ProposedMesh>,
    first: &[String],
) -> anyhow::Result<String> {
    let has_config = kept.contains(&CONFIG);
    // The lines of a section of the config below its name.
    let lines = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|it| it.starts_with(' '));
        lines.map(str::to_owned).collect()
    };
    let has_outputs = args.gitops == Gitops::None || has_outputs(args.gitops);
    let subnets = proposed.into_iter().flat_map(|it| &it.subnets);
    // Jobs that are kept may have a source, but not the one that was asked for now.
    let are_kept = JOBS.iter().any(|it| kept.contains(it));
    let values = context! {
        outputs => (has_config && !has_outputs).then(|| lines(outputs(args.gitops))),
        contexts => proposed.filter(|_| has_config).map(|it| lines(contexts(it))),
        is_operators => proposed.is_some_and(|it| it.is_operators),
        is_proposed => proposed.is_some(),
        lists_peers => proposed.is_some_and(|it| it.lists_peers),
        has_mesh => kept.contains(&MESH),
        subnets => subnets
            .map(|(cluster, range)| [cluster.to_string(), range.to_string()])
            .collect::<Vec<_>>(),
        first => first.iter().map(|it| escaped(it, usize::MAX)).collect::<Vec<_>>(),
        gitops => Value::from(Serde(args.gitops)),
        lacks_source => args.ci != Ci::None && args.program_source.is_some() == are_kept,
        ci => Value::from(Serde(args.ci)),
        pre_commit => args.pre_commit,
    };
    let steps = template::filled("next-steps", STEPS, Format::Text, values)?;
    let steps = steps
        .split("\n\n")
        .map(|step| step.trim_matches('\n').replace('\n', "\n   "))
        .filter(|step| !step.is_empty());
    let steps = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}\n"));
    Ok(format!("\nNext steps:\n{}", steps.collect::<String>()))
}
