//! The tools that apply the Peers: the order of their steps, and what avoids that keys are forgotten.

use std::fs;

use super::*;
use crate::support::assert_contains;

/// The clusters of the mesh.
const CLUSTERS: [&str; 3] = ["east", "north", "west"];

/// An Application for a cluster, with an option of the sync.
fn application(cluster: &str, option: &str) -> String {
    let text = include_str!("../../../../argocd/application.yaml");
    text.replace("west", cluster).replace("PrunePropagationPolicy=background", option)
}

fn deliver(folder: &Folder, option: &str) {
    for cluster in CLUSTERS {
        let path = format!("argocd/{cluster}.yaml");
        folder.write(&path, application(cluster, option));
    }
}

/// Returns the grades with each tool: with any, with Flux and with Argo CD.
fn grades(repository: &Repository) -> [String; 3] {
    let tools = [&[][..], &["--applied-by=flux"], &["--applied-by=argocd"]];
    tools.map(|it| repository.grade(it))
}

const BACKGROUND: &str = "PrunePropagationPolicy=background";

/// Argo CD's default marks Peers as deleted, and the garbage collector deletes them after some of the new ones came.
#[test]
fn argo_cd_keeps_keys_only_if_it_deletes_in_the_background() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let rename = || folder.edit("mesh.yaml", "name: prod", "name: net");
    let undo = || folder.edit("mesh.yaml", "name: net", "name: prod");
    rename();
    assert_eq!(grades(&repository), ["disruptive"; 3]);
    // Without git, too.
    assert_eq!(repository.grade(&["--against", "rendered", "--applied-by=argocd"]), "disruptive");
    undo();
    for (option, grade) in [
        (BACKGROUND, "brief"),
        ("PrunePropagationPolicy=foreground", "disruptive"),
        ("PrunePropagationPolicy=background\n      - PruneLast=true", "disruptive"),
    ] {
        deliver(folder, option);
        repository.commit();
        rename();
        assert_eq!(grades(&repository), ["disruptive", "disruptive", grade], "{option}");
        undo();
    }
    // Only those of some clusters do.
    deliver(folder, BACKGROUND);
    fs::remove_file(folder.path("argocd/north.yaml")).unwrap();
    repository.commit();
    rename();
    let run = repository.diff(&["--applied-by=argocd"]);
    assert_eq!(run.stdout.matches("Kilo may drop the keys of").count(), 1);
    let help = "help: with Argo CD, set `PrunePropagationPolicy=background` in the Application of north before this change\n";
    assert_contains(&unwrapped(&run.stdout), help);
    assert_eq!(run.stdout.matches("help:").count(), 1, "{}", run.stdout);
}

/// Returns a text without the breaks of long lines.
fn unwrapped(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(rest) if !rest.starts_with(['+', '-', '~']) => {
                all.pop();
                all.push(' ');
                all.push_str(rest);
            }
            _ => all.push_str(line),
        }
        all.push('\n');
    }
    all
}

/// The Application that is there when the change is merged may be the old one.
#[test]
fn an_option_counts_from_the_next_change_on() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    deliver(folder, "Validate=true");
    repository.commit();
    folder.edit("mesh.yaml", "name: prod", "name: net");
    deliver(folder, BACKGROUND);
    assert_eq!(repository.grade(&["--applied-by=argocd"]), "disruptive");
    folder.edit("mesh.yaml", "name: net", "name: prod");
    repository.commit();
    folder.edit("mesh.yaml", "name: prod", "name: net");
    assert_eq!(repository.grade(&["--applied-by=argocd"]), "brief");
    // A second Application of a folder, in another order.
    folder.write("argocd/more.yml", application("west", "PruneLast=true"));
    let shown = repository.diff(&["--applied-by=argocd"]).stdout;
    assert_eq!(shown.matches("Kilo may drop the keys of").count(), 1);
    assert_contains(&shown, "the Application of west before this change");
}

/// Also in another folder.
#[test]
fn applications_are_found_where_render_writes_them() {
    for place in ["argocd/{{ target.name }}.yaml", "a/b/{{ target.name }}/app.yml"] {
        let repository = Repository::of(Folder::mesh());
        let folder = &repository.folder;
        let run = folder.run(&["init", "--gitops", "argocd"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        folder.edit("clustermesh.yaml", "argocd/{{ target.name }}.yaml", place);
        assert_eq!(folder.run(&["render"]).code, 0);
        repository.commit();
        folder.edit("mesh.yaml", "name: prod", "name: net");
        let [any, flux, argo_cd] = grades(&repository);
        assert_eq!([&*any, &flux, &argo_cd], ["disruptive", "disruptive", "brief"]);
    }
    // One for all clusters.
    for file in ["applicationset.yaml", "applicationset-directories.yaml"] {
        let repository = Repository::of(Folder::rendered());
        let folder = &repository.folder;
        let text = fs::read_to_string(crate::support::project().join("argocd").join(file)).unwrap();
        folder.write(&format!("argocd/{file}"), text);
        repository.commit();
        folder.edit("mesh.yaml", "name: prod", "name: net");
        assert_eq!(repository.grade(&["--applied-by=argocd"]), "brief");
    }
}

/// Files that Argo CD would not take show nothing, and cause no error.
#[test]
fn files_that_are_no_applications_show_nothing() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    folder.write("argocd/a.yaml", "argoproj.io/: [");
    folder.write("argocd/b.yaml", "#".repeat(2 << 20));
    folder.write(
        "argocd/c.yaml",
        application("west", BACKGROUND).replace("argoproj.io/v1alpha1", "v1"),
    );
    std::os::unix::fs::symlink("/etc/passwd", folder.path("argocd/d.yaml")).unwrap();
    fs::create_dir(folder.path("argocd/e.yaml")).unwrap();
    repository.commit();
    assert_eq!(repository.grade(&[]), "none");
    folder.edit("mesh.yaml", "name: prod", "name: net");
    assert_eq!(repository.grade(&["--applied-by=argocd"]), "disruptive");
}

/// A cluster, a mesh, or one Peer.
#[test]
fn each_tool_has_one_remedy() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let helps = |arguments: &[&str]| -> Vec<String> {
        let text = unwrapped(&repository.diff(arguments).stdout);
        let lines = text.lines().filter_map(|it| it.trim().strip_prefix("help: "));
        let of_keys = lines.filter(|it| !it.starts_with("let the"));
        of_keys.map(str::to_owned).collect()
    };
    folder.edit("mesh.yaml", "name: prod", "name: net");
    let touch = |cluster: &str, selection: &str| {
        format!(
            "after the change, run `kubectl --context {cluster} annotate peers --overwrite {selection} touched=1`"
        )
    };
    let mesh = "-l kilo-clustermesh.io/mesh=net";
    let expected = CLUSTERS.map(|it| touch(it, mesh));
    assert_eq!(helps(&["--applied-by=flux"]), expected);
    let both = helps(&[]);
    assert_eq!(both.len(), 6, "{both:?}");
    assert_eq!(both[1], format!("with Flux or kubectl, {}", touch("east", mesh)));
    let json = repository.diff(&["--output", "json"]).json();
    assert_eq!(json["targets"][0]["help"], json!(both[..2]));
    let page = repository.diff(&["--output", "markdown"]).stdout;
    assert_eq!(page.matches("annotate peers").count(), 3, "{page}");

    folder.edit("mesh.yaml", "name: net", "name: prod");
    folder.edit("mesh.yaml", "name: west", "name: orient");
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    folder.keep("orient", &[node(3, 1), node(3, 2)]);
    let cluster = "-l kilo-clustermesh.io/source-cluster=orient";
    let expected = ["east", "north"].map(|it| touch(it, cluster));
    assert_eq!(helps(&["--applied-by=flux"]), expected);

    // Two nodes swap their keys: no order keeps both.
    folder.edit("mesh.yaml", "name: orient", "name: west");
    let [mut one, mut two] = [node(3, 1), node(3, 2)];
    let key = |it: &mut Value| it["annotations"]["kilo.squat.ai/key"].take();
    let (first, second) = (key(&mut one), key(&mut two));
    one["annotations"]["kilo.squat.ai/key"] = second;
    two["annotations"]["kilo.squat.ai/key"] = first;
    folder.keep("west", &[one, two]);
    let west = "-l kilo-clustermesh.io/source-cluster=west";
    let expected = ["east", "north"].map(|it| touch(it, west));
    deliver(folder, BACKGROUND);
    assert_eq!(helps(&["--applied-by=argocd"]), expected);
    assert_eq!(helps(&[]), expected);
}
