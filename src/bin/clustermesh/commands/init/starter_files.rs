//! The files of a new repository.

use std::path::Path;

use clustermesh::yaml::scalar;

use super::clusters::ProposedMesh;
use super::home::Home;
use super::program_source::ProgramSource;
use super::{Ci, Gitops, InitArgs, kilo_kustomization};
use crate::disk::{self, Roots};

/// The largest config that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// A file of a new repository.
pub(super) struct StarterFile {
    pub(super) path: &'static str,
    pub(super) text: String,
}

/// Texts in `templates/` and other folders of this project.
macro_rules! text {
    ($path:literal) => {
        include_str!(concat!("../../../../../", $path))
    };
}

/// The config's path.
pub(super) const CONFIG: &str = "clustermesh.yaml";
/// The mesh's path.
pub(super) const MESH: &str = "mesh.yaml";

const CHECK_JOB: &str = ".github/workflows/clustermesh-check.yml";
const REFRESH_JOB: &str = ".github/workflows/clustermesh-refresh.yml";
const GITLAB_JOBS: &str = ".gitlab-ci.yml";

/// The paths of the CI jobs, which build this program.
pub(super) const JOBS: [&str; 3] = [CHECK_JOB, REFRESH_JOB, GITLAB_JOBS];

/// The mesh of a repository for which no clusters are given.
pub(super) const EXAMPLE_MESH: &str = text!("templates/init/mesh.yaml");

/// Returns the mesh of a new repository.
pub(super) fn mesh(proposed: Option<&ProposedMesh>) -> StarterFile {
    let text = proposed.map_or(EXAMPLE_MESH, |it| &it.yaml);
    StarterFile { path: MESH, text: text.to_owned() }
}

/// Returns the files that the arguments ask for, without the mesh. A repository to which clusters are added has its
/// config.
pub(super) fn files(
    args: &InitArgs,
    home: &Home,
    proposed: Option<&ProposedMesh>,
) -> Vec<StarterFile> {
    let contexts = proposed.map(contexts).unwrap_or_default();
    let is_asked = args.gitops != Gitops::None || args.ci != Ci::None || args.pre_commit;
    if proposed.is_some_and(|it| it.addition.is_some()) && !is_asked && contexts.is_empty() {
        return Vec::new();
    }
    let file = |path, text: &str| StarterFile { path, text: text.to_owned() };
    let object = |path, text: &str| file(path, &home.rebase(text));
    let jobs =
        |path, text: &str| file(path, &ProgramSource::fill_in(args.program_source.as_ref(), text));
    let mut config = text!("templates/init/clustermesh.yaml").to_owned();
    config.push_str(&contexts);
    config.push_str(&outputs(args.gitops));
    let mut files =
        vec![file(CONFIG, &config), file(".gitattributes", text!("templates/init/gitattributes"))];
    match args.gitops {
        Gitops::Flux => files.extend([
            object("flux/gitrepository.yaml", text!("flux/gitrepository.yaml")),
            object(
                "templates/flux-kustomization.yaml.j2",
                &kilo_kustomization::adapt(
                    text!("templates/gallery/flux-kustomization.yaml.j2"),
                    home.installs_kilo(),
                ),
            ),
        ]),
        Gitops::Argocd => files.extend([
            object("argocd/project.yaml", text!("argocd/project.yaml")),
            object(
                "templates/argocd-application.yaml.j2",
                text!("templates/gallery/argocd-application.yaml.j2"),
            ),
        ]),
        Gitops::None => {}
    }
    match args.ci {
        Ci::Github => files.extend([
            jobs(CHECK_JOB, text!("templates/init/github-check.yml")),
            jobs(REFRESH_JOB, text!("templates/init/github-refresh.yml")),
        ]),
        Ci::Gitlab => files.push(jobs(GITLAB_JOBS, text!("templates/init/gitlab-ci.yml"))),
        Ci::None => {}
    }
    if args.pre_commit {
        files.push(file(".pre-commit-config.yaml", text!("templates/init/pre-commit-config.yaml")));
    }
    files
}

/// Returns the lines of the config for contexts with other names than their clusters.
pub(super) fn contexts(proposed: &ProposedMesh) -> String {
    let contexts = proposed.contexts.iter().map(|it| {
        let (cluster, context) = (scalar(it.cluster.as_str()), scalar(&it.context));
        format!("  {cluster}: {{ context: {context} }}\n")
    });
    let lines: Vec<String> = contexts.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\nclusters:\n{}", lines.concat())
}

/// Returns whether the config that is there has these lines.
pub(super) fn has_outputs(gitops: Gitops) -> bool {
    let config = disk::read_text(&Roots::within(Path::new(".")), Path::new(CONFIG), LIMIT);
    config.is_ok_and(|text| text.contains(output(gitops).0))
}

/// Returns the lines of the config that make `render` write a file for each cluster.
pub(super) fn outputs(gitops: Gitops) -> String {
    if gitops == Gitops::None {
        return String::new();
    }
    let (template, path) = output(gitops);
    let head = text!("templates/init/outputs.yaml");
    format!("{head}  - template: {template}\n    path: \"{path}\"\n")
}

/// Returns the template of the objects of a tool, and the path of each.
fn output(gitops: Gitops) -> (&'static str, &'static str) {
    match gitops {
        Gitops::Flux => ("templates/flux-kustomization.yaml.j2", "flux/{{ target.name }}.yaml"),
        Gitops::Argocd => ("templates/argocd-application.yaml.j2", "argocd/{{ target.name }}.yaml"),
        Gitops::None => ("", ""),
    }
}
