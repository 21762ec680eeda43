//! Settings: flags over variables over the config over defaults.

use std::fs;

use crate::cli::{Folder, MESH, TREE, node};
use crate::support::assert_contains;

const CONFIG: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [from-file.yaml]
snapshots: nodes
rendered: deploy/peers
";

/// A mesh whose config sets all paths.
fn configured() -> Folder {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    fs::rename(folder.path("mesh.yaml"), folder.path("from-file.yaml")).unwrap();
    fs::rename(folder.path("snapshots"), folder.path("nodes")).unwrap();
    folder
}

/// A second mesh, of two clusters.
fn second_mesh(folder: &Folder) -> String {
    for (number, cluster) in [(4, "south"), (5, "center")] {
        folder.keep(cluster, &[node(number, 1)]);
    }
    let text = MESH
        .replace("prod", "lab")
        .replace("east", "south")
        .replace("north", "center")
        .replace("10.1.", "10.4.")
        .replace("10.2.", "10.5.")
        .replace("10.101.", "10.104.")
        .replace("10.102.", "10.105.");
    text.split("    - name: west").next().unwrap().to_owned()
}

#[test]
fn needs_no_config() {
    assert_eq!(Folder::rendered().tree(), TREE);
}

#[test]
fn goes_by_the_config() {
    let folder = configured();
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("deploy/peers").len(), TREE.len());
}

#[test]
fn looks_for_the_config_upwards() {
    let folder = configured();
    fs::create_dir_all(folder.path("docs/deep")).unwrap();
    let run = folder.run(&["-C", "docs/deep", "render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("deploy/peers").len(), TREE.len());
    assert_eq!(folder.touches("docs").len(), 0);
}

#[test]
fn finds_the_config_in_the_root_of_the_repository() {
    let folder = configured();
    fs::create_dir(folder.path(".git")).unwrap();
    fs::create_dir(folder.path("docs")).unwrap();
    assert_eq!(folder.run(&["-C", "docs", "render"]).code, 0);
}

#[test]
fn looks_no_further_than_the_repository() {
    let folder = configured();
    fs::create_dir_all(folder.path("repository/.git")).unwrap();
    let run = folder.run(&["-C", "repository", "render"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "no mesh found");
}

#[test]
fn takes_a_worktree_for_a_repository() {
    let folder = configured();
    folder.write("worktree/.git", "gitdir: elsewhere\n");
    assert_eq!(folder.run(&["-C", "worktree", "render"]).code, 2);
}

#[test]
fn prefers_the_nearest_config() {
    let folder = configured();
    let config = CONFIG.replace("from-file.yaml", "../from-file.yaml").replace("nodes", "../nodes");
    folder.write("inner/clustermesh.yaml", config);
    fs::create_dir(folder.path(".git")).unwrap();
    assert_eq!(folder.run(&["-C", "inner", "render"]).code, 0);
    assert_eq!(folder.touches("inner/deploy/peers").len(), TREE.len());
}

#[test]
fn reads_the_config_that_is_named() {
    let folder = configured();
    fs::rename(folder.path("clustermesh.yaml"), folder.path("other.yaml")).unwrap();
    assert_eq!(folder.run(&["render", "--config", "other.yaml"]).code, 0);
    let run = folder.run_with(&[("CLUSTERMESH_CONFIG", "other.yaml")], &["render", "--check"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn takes_paths_of_the_config_from_its_folder() {
    let folder = configured();
    fs::create_dir(folder.path("docs")).unwrap();
    let run = folder.run(&["-C", "docs", "render", "--config", "../clustermesh.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("deploy/peers").len(), TREE.len());
}

#[test]
fn takes_paths_of_flags_from_where_it_stands() {
    let folder = configured();
    fs::create_dir(folder.path("docs")).unwrap();
    let run = folder.run(&["-C", "docs", "render", "--rendered", "peers"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("docs/peers").len(), TREE.len());
}

#[test]
fn prefers_variables_to_the_config() {
    let folder = configured();
    let variables = [("CLUSTERMESH_RENDERED", "from-variable")];
    assert_eq!(folder.run_with(&variables, &["render"]).code, 0);
    assert_eq!(folder.touches("from-variable").len(), TREE.len());
    assert!(!folder.path("deploy").exists());
}

#[test]
fn prefers_flags_to_variables() {
    let folder = configured();
    let variables = [
        ("CLUSTERMESH_MESHES", "nowhere.yaml"),
        ("CLUSTERMESH_SNAPSHOTS", "nowhere"),
        ("CLUSTERMESH_RENDERED", "nowhere"),
    ];
    let flags =
        ["render", "--mesh", "from-file.yaml", "--snapshots", "nodes", "--rendered", "from-flag"];
    let run = folder.run_with(&variables, &flags);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("from-flag").len(), TREE.len());
    assert!(!folder.path("nowhere").exists());
}

#[test]
fn takes_flags_before_the_command_too() {
    let folder = Folder::mesh();
    assert_eq!(folder.run(&["--rendered", "out", "render"]).code, 0);
    assert_eq!(folder.touches("out").len(), TREE.len());
}

#[test]
fn reads_every_mesh_of_a_folder() {
    let folder = Folder::mesh();
    folder.write("meshes/lab.yml", second_mesh(&folder));
    fs::rename(folder.path("mesh.yaml"), folder.path("meshes/prod.yaml")).unwrap();
    folder.write("meshes/README.md", "not a mesh");
    folder.write("meshes/more/mesh.yaml", "not: read");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.path("rendered/south/lab--center.yaml").exists());
    assert!(folder.path("rendered/east/prod--west.yaml").exists());
}

#[test]
fn reads_a_mesh_and_a_folder_of_meshes() {
    let folder = Folder::mesh();
    folder.write("meshes/lab.yaml", second_mesh(&folder));
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(folder.path("rendered/south/lab--center.yaml").exists());
    assert!(folder.path("rendered/east/prod--west.yaml").exists());
}

#[test]
fn reads_every_mesh_that_is_named() {
    let folder = Folder::mesh();
    folder.write("lab.yaml", second_mesh(&folder));
    let run = folder.run(&["render", "--mesh", "mesh.yaml", "--mesh", "lab.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let variables = [("CLUSTERMESH_MESHES", "lab.yaml,mesh.yaml")];
    assert_eq!(folder.run_with(&variables, &["render", "--check"]).code, 0);
}

#[test]
fn reads_several_meshes_of_one_file() {
    let folder = Folder::mesh();
    let lab = second_mesh(&folder);
    folder.write("mesh.yaml", format!("---\n{MESH}---\n# nothing\n---\n{lab}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(folder.path("rendered/south/lab--center.yaml").exists());
}

#[test]
fn puts_snapshots_where_the_config_says() {
    let folder = configured();
    fs::create_dir(folder.path("docs")).unwrap();
    let dump = crate::cli::api_node(1, 1).to_string();
    let arguments = ["-C", "docs", "snapshot", "east", "--from", "-", "--accept", "east"];
    let run = folder.run_with_input(&arguments, &dump);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.read("nodes/east.json").contains("\"uid\": \"1-1\""));
}

#[test]
fn needs_no_mesh_for_a_snapshot() {
    let folder = Folder::empty();
    let dump = crate::cli::api_node(1, 1).to_string();
    let run = folder.run_with_input(&["snapshot", "east", "--from", "-"], &dump);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.path("snapshots/east.json").exists());
}
