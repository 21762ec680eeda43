//! `clustermesh init`

use std::io::Write;
use std::mem;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;
use clustermesh::rules::{Purpose, costs};
use clustermesh::yaml::scalar;

use self::clusters::{ClusterOptions, ProposedMesh};
use self::home::Home;
use self::program_source::ProgramSource;
use crate::check::{self, OutputCheck};
use crate::commands::snapshot::{self, ListedNodes};
use crate::disk::{self, Roots};
use crate::files::ShownFiles;
use crate::input_file::Unreadable;
use crate::output::Printer;
use crate::settings::{CommonOptions, FolderOptions};
use crate::{Outcome, input_file, inputs};

mod clusters;
mod home;
mod program_source;

/// Create the files of a new repository
///
/// Creates a commented config and mesh in the current folder and, on request, the files for Flux or
/// Argo CD, CI jobs and pre-commit hooks. With `--context` or `--from` it takes snapshots of your clusters
/// and proposes the mesh from them, with a reason for every line. Existing files are not changed. Prints
/// the next steps.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// Tool that applies the Peers
    #[arg(long, value_name = "TOOL", default_value = "none")]
    gitops: Gitops,

    /// CI service, for jobs that check pull requests and refresh snapshots
    #[arg(long, value_name = "SERVICE", default_value = "none")]
    ci: Ci,

    /// Commit of clustermesh that the CI jobs build
    ///
    /// The address of a git repository and the full hash of a commit. Without it, the jobs fail until you write both at
    /// the top of the workflow.
    #[arg(long, value_name = "URL@COMMIT")]
    program_source: Option<ProgramSource>,

    /// Add pre-commit hooks that check each commit
    #[arg(long)]
    pre_commit: bool,

    #[command(flatten)]
    clusters: ClusterOptions,

    #[command(flatten)]
    pub(crate) common: CommonOptions<FolderOptions>,
}

#[cfg(feature = "snapshot")]
const EXAMPLES: &str = "\
Examples:
  clustermesh init --context east --context west=admin@west.example.com
  clustermesh init --from east=east.json --from west=west.json
  clustermesh init --secrets-from hub         take over the meshes of the ClusterMesh operator
  clustermesh init --gitops flux --ci github --pre-commit
  clustermesh -C mesh init --gitops argocd";

#[cfg(not(feature = "snapshot"))]
const EXAMPLES: &str = "\
Examples:
  clustermesh init --from east=east.json --from west=west.json
  clustermesh init --gitops flux --ci github --pre-commit
  clustermesh -C mesh init --gitops argocd";

/// The tool that applies the Peers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Gitops {
    /// A Kustomization for each cluster
    Flux,
    /// An Application for each cluster
    Argocd,
    /// No files for a tool
    None,
}

/// The CI service.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Ci {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
    /// No CI jobs
    None,
}

/// A file of a new repository.
struct StarterFile {
    path: &'static str,
    text: String,
}

/// Texts in `templates/` and other folders of this project.
macro_rules! text {
    ($path:literal) => {
        include_str!(concat!("../../../../", $path))
    };
}

const CONFIG: &str = "clustermesh.yaml";
const MESH: &str = "mesh.yaml";

pub(crate) fn run(
    args: &InitArgs,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let home = Home::find();
    let flag = (args.ci != Ci::None).then_some("--ci");
    if let Some(flag) = flag.or(args.pre_commit.then_some("--pre-commit"))
        && !home.is_root()
    {
        bail!(
            "CI jobs and hooks must be in the root of the repository: run this in {}, or without {flag}",
            disk::shown(home.root())
        );
    }
    if args.gitops != Gitops::None {
        home.check()?;
    }
    args.clusters.check()?;
    let mut proposed = match proposed(args) {
        Ok(proposed) => proposed,
        Err(unreadable) => return Ok(printer.unreadable(unreadable)),
    };
    let files = files(args, &home, proposed.as_ref());
    let kept = write(&files, proposed.as_ref(), printer)?;
    let mut written = KeptNodes::default();
    if let Some(proposed) = &mut proposed {
        printer.findings(&ShownFiles::new(Vec::new()), &proposed.findings);
        written = keep(args, mem::take(&mut proposed.nodes), printer, result)?;
    }
    let steps = next(args, &kept, proposed.as_ref(), &written.first);
    printer.result(result, &steps)?;
    Ok(written.outcome)
}

/// Proposes a mesh, if there are clusters to propose one for.
fn proposed(args: &InitArgs) -> Result<Option<ProposedMesh>, Unreadable> {
    if !args.clusters.are_given() {
        return Ok(None);
    }
    if disk::is_there(&Roots::within(Path::new(".")), Path::new(MESH)) {
        let problem = "`mesh.yaml` exists, so no mesh is proposed; move it away, or use \
                       `clustermesh snapshot`";
        return Err(anyhow!(problem).into());
    }
    let mut settings = args.common.files.0.settle()?;
    args.clusters.propose(&mut settings).map(Some)
}

/// Writes the files that do not exist, and returns the paths of the others.
fn write(
    files: &[StarterFile],
    proposed: Option<&ProposedMesh>,
    printer: &mut Printer,
) -> anyhow::Result<Vec<&'static str>> {
    let roots = Roots::within(Path::new("."));
    // All or nothing, as far as can be known before.
    let snapshots = proposed.map(|_| "snapshots/CLUSTER.json");
    for path in files.iter().map(|it| it.path).chain(snapshots) {
        disk::check_output(&roots, Path::new(path))
            .with_context(|| format!("cannot write `{path}`"))?;
        for folder in Path::new(path).ancestors().skip(1) {
            if folder != Path::new("")
                && disk::is_there(&roots, folder)
                && !disk::is_folder(&roots, folder)
            {
                bail!(
                    "cannot write `{path}`: {} is not a folder",
                    disk::shown(folder)
                );
            }
        }
    }
    let mut kept = Vec::new();
    for file in files {
        let path = Path::new(file.path);
        if disk::is_there(&roots, path) {
            kept.push(file.path);
            printer.line(&format!("kept existing {}", file.path));
        } else {
            disk::write_file(&roots, path, file.text.as_bytes())?;
            printer.line(&format!("wrote {}", file.path));
        }
    }
    Ok(kept)
}

/// The result for the nodes that were saved.
struct KeptNodes {
    outcome: Outcome,
    /// The steps before any Peer is applied.
    first: Vec<String>,
}

impl Default for KeptNodes {
    fn default() -> Self {
        Self {
            outcome: Outcome::Clean,
            first: Vec::new(),
        }
    }
}

/// Saves the nodes, and checks them with the mesh that was written.
fn keep(
    args: &InitArgs,
    nodes: Vec<ListedNodes>,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<KeptNodes> {
    let gathered = args.common.files.0.settle().and_then(|settings| {
        let meshes = input_file::clusters(&settings.mesh_files()?)?.meshes;
        let outcome = snapshot::write_first(nodes, &settings, &meshes, printer, result)?;
        Ok((outcome, inputs::gather(&args.common.files.0)?))
    });
    let (outcome, inputs) = match gathered {
        Ok(gathered) => gathered,
        Err(unreadable) => {
            return Ok(KeptNodes {
                outcome: printer.unreadable(unreadable),
                ..KeptNodes::default()
            });
        }
    };
    let checked = check::check(&inputs, Purpose::Validate, None, OutputCheck::Unasked)?;
    printer.findings(&inputs.files, &checked.findings);
    printer.counts(&checked.findings, checked.checked().as_ref());
    let of_changes = checked.findings.into_iter();
    let of_changes = of_changes.filter(|it| costs::is_about(it.rule));
    let first = of_changes.filter_map(|it| it.help);
    Ok(KeptNodes {
        outcome,
        first: first.collect(),
    })
}

fn files(args: &InitArgs, home: &Home, proposed: Option<&ProposedMesh>) -> Vec<StarterFile> {
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
fn contexts(proposed: &ProposedMesh) -> String {
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
fn outputs(gitops: Gitops) -> String {
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

/// Returns what a person does next.
fn next(
    args: &InitArgs,
    kept: &[&str],
    proposed: Option<&ProposedMesh>,
    first: &[String],
) -> String {
    let mut steps = Vec::new();
    if kept.contains(&CONFIG) && args.gitops != Gitops::None {
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
    } else {
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
    if args.ci != Ci::None && args.program_source.is_none() {
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
            "Apply flux/gitrepository.yaml and flux/CLUSTER.yaml in each cluster.".to_owned(),
        ),
        Gitops::Argocd => {
            steps.push("Apply the folder argocd in the cluster of Argo CD.".to_owned());
        }
        Gitops::None => {}
    }
    let steps: Vec<String> = (1..)
        .zip(steps)
        .map(|(number, step)| format!("{number}. {step}\n"))
        .collect();
    format!("\nNext steps:\n{}", steps.concat())
}
