//! `init`: what a new repository starts with, and that it works.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use super::Folder;
use crate::support::{assert_contains, project};

mod added;
mod gallery;
mod jobs;
mod planned;
mod program;
mod proposed;

const FLUX: &[&str] = &["init", "--gitops", "flux", "--ci", "github", "--pre-commit"];
const ARGOCD: &[&str] = &["init", "--gitops", "argocd", "--ci", "gitlab"];

/// Returns the paths under the folder.
fn paths(folder: &Folder) -> Vec<String> {
    folder.touches(".").into_keys().collect()
}

#[test]
fn writes_what_is_not_there() {
    let folder = Folder::empty();
    let run = folder.run(FLUX);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @r"
    wrote clustermesh.yaml
    wrote .gitattributes
    wrote flux/gitrepository.yaml
    wrote templates/flux-kustomization.yaml.j2
    wrote .github/workflows/clustermesh-check.yml
    wrote .github/workflows/clustermesh-refresh.yml
    wrote .pre-commit-config.yaml
    wrote mesh.yaml
    ");
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Put your clusters and their ranges into mesh.yaml.
    2. Annotate the nodes of every cluster, so that changes of Peers interrupt no requests:
       `kubectl --context east annotate node --all kilo.squat.ai/persistent-keepalive=25`.
    3. Take snapshots: `clustermesh snapshot`, or from a file,
       `kubectl --context east get nodes -o json | clustermesh snapshot --from east=-`.
    4. Check and render: `clustermesh validate`, `clustermesh render`, `clustermesh verify`.
    5. Set the repository in flux/gitrepository.yaml. If Flux installs Kilo, write `dependsOn` with
       the name of its Kustomization into templates/flux-kustomization.yaml.j2, and render again.
    6. Write the repository and a commit of clustermesh at the top of the CI jobs, which build it; or
       remove the jobs and run `init` again with --program-source.
    7. Create the GitHub App and the kubeconfig that the first lines of
       .github/workflows/clustermesh-refresh.yml describe.
    8. Add to CODEOWNERS, with the reviewers of your network as @OWNERS, and require their approval
       (docs/how-to/ci.md of clustermesh):
       /mesh.yaml @OWNERS
       /meshes/ @OWNERS
       /clustermesh.yaml @OWNERS
       /expectations.yaml @OWNERS
       /policies/ @OWNERS
       /guards/ @OWNERS
       /snapshots/ @OWNERS
       /.github/ @OWNERS
       /CODEOWNERS @OWNERS
    9. Enable the hooks: `pre-commit install`.
    10. Commit everything except dumps of nodes, `rendered` included, and push.
    11. In each cluster, create the service account of Flux, `clustermesh rbac --delivery | kubectl apply -f -`,
       and apply flux/gitrepository.yaml and flux/CLUSTER.yaml.
    ");
    let before = folder.touches(".");
    let run = folder.run(FLUX);
    assert_eq!(run.code, 0);
    assert_eq!(folder.touches("."), before);
    assert!(run.stderr.starts_with("kept existing clustermesh.yaml\n"));
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    let run = folder.run(FLUX);
    assert_contains(&run.stdout, "1. Add to `outputs` in your existing clustermesh.yaml:\n");
}

/// From an empty folder and two dumps to a clean check.
#[test]
fn what_it_writes_works() {
    for (arguments, file) in [(FLUX, "flux/west.yaml"), (ARGOCD, "argocd/west.yaml")] {
        let folder = Folder::empty();
        assert_eq!(folder.run(arguments).code, 0);
        let example = project().join("examples/quickstart");
        fs::copy(example.join("mesh.yaml"), folder.path("mesh.yaml")).unwrap();
        for cluster in ["east", "west"] {
            let dump = example.join(format!("nodes/{cluster}.json"));
            let run = folder.run(&["snapshot", cluster, "--from", dump.to_str().unwrap()]);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        for command in [
            &["render"][..],
            &["render", "--check"],
            &["validate", "--fail-on", "warning"],
            &["verify", "--fail-on", "warning"],
        ] {
            let run = folder.run(command);
            assert_eq!(run.code, 0, "{command:?}: {}{}", run.stdout, run.stderr);
        }
        assert!(folder.read(file).contains("clustermesh-west"), "{}", folder.read(file));
    }
}

/// If the named Kustomization does not exist, Flux never applies the Peers.
#[test]
fn flux_waits_for_kilo_only_if_the_repository_installs_it() {
    let kustomization = |group: &str, name: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{ name: kilo }}\n---\napiVersion: {group}/v1\n\
             kind: Kustomization\nmetadata: {{ name: {name}, namespace: flux-system }}\n"
        )
    };
    let flux = "kustomize.toolkit.fluxcd.io";
    for (file, text, waits) in [
        ("readme.yaml", "a: b\n".to_owned(), false),
        ("clusters/west/kilo.yaml", kustomization(flux, "kilo"), true),
        ("clusters/west/kilo.yaml", kustomization(flux, "cilium"), false),
        ("clusters/west/kilo.yaml", kustomization("example.com", "kilo"), false),
        ("clusters/west/kilo.yaml", format!("{}  broken", kustomization(flux, "kilo")), false),
        ("clusters/.old/kilo.yaml", kustomization(flux, "kilo"), false),
    ] {
        let folder = Folder::mesh();
        folder.write(file, &text);
        let run = folder.run(&["init", "--gitops", "flux"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(!run.stdout.contains("dependsOn"), waits, "{text}");
        let template = "templates/flux-kustomization.yaml.j2";
        let rendered = folder.run(&["template", template, "--target", "west"]);
        assert_eq!(rendered.code, 0, "{}", rendered.stderr);
        let object: serde_json::Value = serde_yaml::from_str(&rendered.stdout).unwrap();
        let waited = &object["spec"]["dependsOn"];
        assert_eq!(*waited == serde_json::json!([{ "name": "kilo" }]), waits, "{text}");
        assert_eq!(waited.is_null(), !waits, "{}", rendered.stdout);
        assert_eq!(rendered.stdout.contains("Kilo"), waits, "{}", rendered.stdout);
    }
}

/// Its mesh is one that can be understood: only the snapshots are missing.
#[test]
fn its_mesh_is_valid() {
    let folder = Folder::empty();
    assert_eq!(folder.run(&["init"]).code, 0);
    assert_eq!(paths(&folder), [".gitattributes", "clustermesh.yaml", "mesh.yaml"]);
    let run = folder.run(&["validate", "--output", "concise"]);
    let rules: BTreeSet<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.split_once('[')?.1.split_once(']'))
        .map(|(rule, _)| rule)
        .collect();
    assert_eq!(rules, BTreeSet::from(["missing-snapshot"]), "{}", run.stdout);
}

/// What users copy is what `init` writes for a cluster `west`.
#[test]
fn the_gallery_is_what_users_copy() {
    let read = |text: &str| -> serde_json::Value { serde_yaml::from_str(text).unwrap() };
    for (template, copied) in [
        ("templates/gallery/flux-kustomization.yaml.j2", "flux/peers-west.yaml"),
        ("templates/gallery/argocd-application.yaml.j2", "argocd/application.yaml"),
    ] {
        let folder = Folder::mesh();
        let template = project().join(template);
        let run = folder.run(&["template", template.to_str().unwrap(), "--target", "west"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let copied = fs::read_to_string(project().join(copied)).unwrap();
        assert_eq!(read(&run.stdout), read(&copied));
    }
}

/// Names that YAML readers take for something else than strings.
#[test]
fn the_gallery_keeps_hostile_names() {
    let names = ["no", "1", "null", "1e3", "0x1", "y"];
    let folder = Folder::empty();
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata:\n  name: \"on\"\nspec:\n  clusters:\n".to_owned();
    for (number, name) in (1..).zip(names) {
        let wireguard = 100 + number;
        let _ = writeln!(
            mesh,
            "    - {{ name: \"{name}\", podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.{wireguard}.0.0/24 }}"
        );
        folder.keep(name, &[super::node(number, 1)]);
    }
    folder.write("mesh.yaml", mesh);
    for template in ["flux-kustomization", "argocd-application"] {
        let template = project().join(format!("templates/gallery/{template}.yaml.j2"));
        for name in names {
            let run = folder.run(&["template", template.to_str().unwrap(), "--target", name]);
            assert_eq!(run.code, 0, "{}", run.stderr);
            let read: serde_json::Value = serde_yaml::from_str(&run.stdout).unwrap();
            assert_eq!(read["metadata"]["name"], format!("clustermesh-{name}"));
            let (path, expected) = match read["kind"].as_str() {
                Some("Application") => {
                    (&read["spec"]["source"]["path"], format!("rendered/{name}"))
                }
                _ => (&read["spec"]["path"], format!("./rendered/{name}")),
            };
            assert_eq!(*path, expected);
        }
    }
}

#[test]
fn ci_belongs_to_the_root_of_a_repository() {
    let folder = Folder::empty();
    fs::create_dir_all(folder.path(".git")).unwrap();
    fs::create_dir_all(folder.path("inner")).unwrap();
    let run = folder.run(&["-C", "inner", "init", "--ci", "github"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "must be in the root of the repository");
    assert_eq!(fs::read_dir(folder.path("inner")).unwrap().count(), 0);
    assert_eq!(folder.run(&["-C", "inner", "init"]).code, 0);
    assert_eq!(folder.run(&["init", "--ci", "github"]).code, 0);
}

/// Flux and Argo CD read paths from the root of the repository.
#[test]
fn paths_begin_at_the_root_of_the_repository() {
    let example = project().join("examples/quickstart");
    let folder = Folder::empty();
    fs::create_dir_all(folder.path(".git")).unwrap();
    fs::create_dir_all(folder.path("net/mesh")).unwrap();
    let run = |arguments: &[&str]| {
        let run = folder.run(&[&["-C", "net/mesh"], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    for tool in ["flux", "argocd"] {
        run(&["init", "--gitops", tool]);
        fs::copy(example.join("mesh.yaml"), folder.path("net/mesh/mesh.yaml")).unwrap();
        for cluster in ["east", "west"] {
            let dump = example.join(format!("nodes/{cluster}.json"));
            run(&["snapshot", cluster, "--from", dump.to_str().unwrap()]);
        }
        run(&["render"]);
        if tool == "flux" {
            assert_contains(
                &folder.read("net/mesh/flux/west.yaml"),
                "\n  path: \"./net/mesh/rendered/west\"\n",
            );
            assert_contains(
                &folder.read("net/mesh/flux/gitrepository.yaml"),
                "    /*\n    !/net\n    /net/*\n    !/net/mesh\n    /net/mesh/*\n    !/net/mesh/rendered\n    \
                 !/net/mesh/rendered-services\n",
            );
        } else {
            assert_contains(
                &folder.read("net/mesh/argocd/west.yaml"),
                "\n    path: net/mesh/rendered/west\n",
            );
        }
        fs::remove_file(folder.path("net/mesh/clustermesh.yaml")).unwrap();
    }
    fs::create_dir_all(folder.path("a\"b")).unwrap();
    let run = folder.run(&["-C", "a\"b", "init", "--gitops", "flux"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "cannot be written into the files for Flux and Argo CD");
    for flag in ["--ci=github", "--pre-commit"] {
        let run = folder.run(&["-C", "net/mesh", "init", flag]);
        assert_eq!(run.code, 2);
        assert_contains(&run.stderr, "must be in the root of the repository");
    }
}

#[test]
fn writes_through_no_link() {
    let (folder, outside) = (Folder::empty(), Folder::empty());
    symlink(outside.path(""), folder.path("flux")).unwrap();
    let run = folder.run(&["init", "--gitops", "flux"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_eq!(paths(&outside), Vec::<String>::new());
    assert!(!folder.path("mesh.yaml").exists(), "half of it was written");
    folder.write("templates", "mine");
    fs::remove_file(folder.path("flux")).unwrap();
    let run = folder.run(&["init", "--gitops", "flux"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(!folder.path("mesh.yaml").exists(), "half of it was written");
}

/// A workflow runs only what is pinned, and has no more rights than it needs.
#[test]
fn workflows_are_pinned_and_have_few_rights() {
    let folders =
        ["templates/init", "templates/gallery"].map(|it| fs::read_dir(project().join(it)).unwrap());
    let mut pinned = 0;
    for entry in folders.into_iter().flatten() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("github") {
            assert!(text.contains("\npermissions: {}\n"), "{name}");
        }
        for line in text.lines().filter(|it| it.contains("uses: ")) {
            let (_, commit) = line.split_once('@').unwrap();
            let digits = commit.chars().take_while(char::is_ascii_hexdigit).count();
            assert_eq!(digits, 40, "{name}: {line}");
            pinned += 1;
        }
    }
    assert!(4 < pinned);
    let check = fs::read_to_string(project().join("templates/init/github-check.yml")).unwrap();
    assert!(!check.contains("secrets."), "a stranger's pull request would see secrets");
}
