//! The files of a new repository.

use clustermesh::yaml::scalar;

use super::clusters::ProposedMesh;
use super::home::Home;
use super::program_source::ProgramSource;
use super::{Ci, Gitops, InitArgs};

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

/// Returns the files that the arguments ask for.
pub(super) fn files(
    args: &InitArgs,
    home: &Home,
    proposed: Option<&ProposedMesh>,
) -> Vec<StarterFile> {
    let file = |path, text: &str| StarterFile {
        path,
        text: text.to_owned(),
    };
    let object = |path, text: &str| file(path, &home.rebase(text));
    let jobs = |path, text: &str| {
        file(
            path,
            &ProgramSource::fill_in(args.program_source.as_ref(), text),
        )
    };
    let mut config = text!("templates/init/clustermesh.yaml").to_owned();
    config.push_str(&proposed.map(contexts).unwrap_or_default());
    config.push_str(&outputs(args.gitops));
    let mesh = proposed.map(|it| it.yaml.as_str());
    let mesh = mesh.unwrap_or(text!("templates/init/mesh.yaml"));
    let mut files = vec![
        file(CONFIG, &config),
        file(MESH, mesh),
        file(".gitattributes", text!("templates/init/gitattributes")),
    ];
    match args.gitops {
        Gitops::Flux => files.extend([
            object("flux/gitrepository.yaml", text!("flux/gitrepository.yaml")),
            object(
                "templates/flux-kustomization.yaml.j2",
                text!("templates/gallery/flux-kustomization.yaml.j2"),
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
            jobs(
                ".github/workflows/clustermesh-check.yml",
                text!("templates/init/github-check.yml"),
            ),
            jobs(
                ".github/workflows/clustermesh-refresh.yml",
                text!("templates/init/github-refresh.yml"),
            ),
        ]),
        Ci::Gitlab => files.push(jobs(
            ".gitlab-ci.yml",
            text!("templates/init/gitlab-ci.yml"),
        )),
        Ci::None => {}
    }
    if args.pre_commit {
        files.push(file(
            ".pre-commit-config.yaml",
            text!("templates/init/pre-commit-config.yaml"),
        ));
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

/// Returns the lines of the config that make `render` write a file for each cluster.
pub(super) fn outputs(gitops: Gitops) -> String {
    let (template, path) = match gitops {
        Gitops::Flux => (
            "templates/flux-kustomization.yaml.j2",
            "flux/{{ target.name }}.yaml",
        ),
        Gitops::Argocd => (
            "templates/argocd-application.yaml.j2",
            "argocd/{{ target.name }}.yaml",
        ),
        Gitops::None => return String::new(),
    };
    let head = text!("templates/init/outputs.yaml");
    format!("{head}  - template: {template}\n    path: \"{path}\"\n")
}
