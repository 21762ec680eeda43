//! The steps that a person takes after `init`.

use super::clusters::ProposedMesh;
use super::starter_files::{CONFIG, JOBS, MESH, contexts, has_outputs, outputs};
use super::{Ci, Gitops, InitArgs};

/// Returns what a person does next.
pub(super) fn next(
    args: &InitArgs,
    kept: &[&str],
    proposed: Option<&ProposedMesh>,
    first: &[String],
) -> String {
    let mut steps = Vec::new();
    if kept.contains(&CONFIG) && args.gitops != Gitops::None && !has_outputs(args.gitops) {
        let lines = outputs(args.gitops);
        let lines: Vec<&str> = lines.lines().filter(|it| it.starts_with(' ')).collect();
        steps.push(format!(
            "Add to `outputs` in your existing {CONFIG}:\n   {}",
            lines.join("\n   ")
        ));
    }
    let contexts = proposed.map(contexts).unwrap_or_default();
    if kept.contains(&CONFIG) && !contexts.is_empty() {
        let lines: Vec<&str> = contexts.lines().filter(|it| it.starts_with(' ')).collect();
        steps.push(format!(
            "Add to `clusters` in your existing {CONFIG}:\n   {}",
            lines.join("\n   ")
        ));
    }
    if proposed.is_some_and(|it| it.is_operators) {
        steps.push(
            "Before you apply anything, scale the operator down, but keep its objects: while it runs, it\n   \
             restores its Peers, and it deletes all of them if a ClusterMesh is deleted."
                .to_owned(),
        );
    } else if proposed.is_some() {
        steps.push(
            "Check every line of mesh.yaml, and add `serviceCIDR` to the clusters whose Services others\n   \
             should reach."
                .to_owned(),
        );
    } else if !kept.contains(&MESH) {
        steps.push("Put your clusters and their ranges into mesh.yaml.".to_owned());
        steps.push(
            "Annotate the nodes of every cluster, so that changes of Peers interrupt no requests:\n   \
             `kubectl --context east annotate node --all kilo.squat.ai/persistent-keepalive=25`."
                .to_owned(),
        );
        steps.push(
            "Take snapshots: `clustermesh snapshot`, or from a file,\n   \
             `kubectl --context east get nodes -o json | clustermesh snapshot east --from -`."
                .to_owned(),
        );
    }
    steps.extend(proposed.into_iter().flat_map(starts));
    let first = first.iter();
    steps.extend(first.map(|it| format!("Before Peers are applied, {it}.")));
    steps.push(
        "Check and render: `clustermesh validate`, `clustermesh render`, `clustermesh verify`."
            .to_owned(),
    );
    match args.gitops {
        Gitops::Flux => steps.push(
            "Set the repository in flux/gitrepository.yaml. If Flux does not install Kilo, remove `dependsOn`\n   \
             from templates/flux-kustomization.yaml.j2; otherwise set its name there. Then render again."
                .to_owned(),
        ),
        Gitops::Argocd => steps.push(
            "Set the repository in argocd/project.yaml and templates/argocd-application.yaml.j2, then\n   \
             render again."
                .to_owned(),
        ),
        Gitops::None => {}
    }
    // Jobs that are kept may have a source, but not the one that was asked for now.
    let are_kept = JOBS.iter().any(|it| kept.contains(it));
    if args.ci != Ci::None && args.program_source.is_some() == are_kept {
        steps.push(
            "Write the repository and a commit of clustermesh at the top of the CI jobs, which build it; or\n   \
             remove the jobs and run `init` again with --program-source."
                .to_owned(),
        );
    }
    match args.ci {
        Ci::Github => steps.push(
            "Create the GitHub App and the kubeconfig that the first lines of\n   \
             .github/workflows/clustermesh-refresh.yml describe."
                .to_owned(),
        ),
        Ci::Gitlab => steps.push(
            "Create the token, the kubeconfig and the schedule that the first lines of .gitlab-ci.yml\n   \
             describe."
                .to_owned(),
        ),
        Ci::None => {}
    }
    if args.pre_commit {
        steps.push("Enable the hooks: `pre-commit install`.".to_owned());
    }
    steps.push("Commit everything, `rendered` included, and push.".to_owned());
    match args.gitops {
        Gitops::Flux => steps.push(
            "In each cluster, create the service account of Flux, `clustermesh rbac --delivery | kubectl apply -f -`,\n   \
             and apply flux/gitrepository.yaml and flux/CLUSTER.yaml."
                .to_owned(),
        ),
        Gitops::Argocd => {
            steps.push("Apply the folder argocd in the cluster of Argo CD.".to_owned());
        }
        Gitops::None => {}
    }
    numbered(steps)
}

/// Returns the steps that start Kilo where it does not run yet.
fn starts(proposed: &ProposedMesh) -> impl Iterator<Item = String> {
    let subnets = proposed.subnets.iter();
    subnets.map(|(cluster, range)| {
        format!(
            "Start Kilo in {cluster} with `--subnet={range}`, and then run `clustermesh snapshot {cluster}`."
        )
    })
}

fn numbered(steps: Vec<String>) -> String {
    let steps = (1..).zip(steps);
    let steps = steps.map(|(number, step)| format!("{number}. {step}\n"));
    format!("\nNext steps:\n{}", steps.collect::<Vec<_>>().concat())
}
