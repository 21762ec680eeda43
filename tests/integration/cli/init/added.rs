//! `init` with a cluster that the mesh does not have: its entry is added.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::paths;
use crate::cli::{Folder, api_node};
use crate::support::{Run, assert_contains};

const SOUTH: [&str; 2] = ["init", "--from=south=south.json"];

/// The line with the state of an added cluster.
const JOINING: &str = "      state: Joining # until you remove this line, its ranges are reserved, and no cluster gets its Peers\n";

/// A dump of three nodes.
fn dump(cluster: u8) -> Value {
    let items = (1..=3).map(|number| api_node(cluster, number));
    json!({ "apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>() })
}

/// The mesh of three clusters, and the dump of a fourth.
fn folder() -> Folder {
    let folder = Folder::mesh();
    folder.write("south.json", dump(4).to_string());
    folder
}

/// A folder with this mesh of `east` and `west`.
fn with_mesh(text: &str) -> Folder {
    let folder = folder();
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    folder.write("mesh.yaml", text);
    folder
}

/// Returns the lines that a run has added to a text.
fn added(before: &str, after: &str) -> String {
    let start = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let start = before[..start].rfind('\n').map_or(0, |it| it + 1);
    let rest = &before[start..];
    let end = after.len() - rest.len();
    assert_eq!(&after[end..], rest, "more than lines were added");
    after[start..end].to_owned()
}

#[test]
fn a_fourth_cluster_is_added() {
    let folder = folder();
    let before = folder.read("mesh.yaml");
    assert_eq!(folder.run(&["render", "-q"]).code, 0);
    let tree = folder.touches("rendered");
    let run = folder.run(&SOUTH);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/south.json: 3 nodes, 3 usable, written
    added south to mesh.yaml
    No problems found (4 clusters, 9 nodes, 12 Peers).
    ");
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Check every line of south in mesh.yaml, and add `serviceCIDR` if other clusters
       should reach the Services.
    2. Render and check: `clustermesh render`, `clustermesh verify`. Commit everything except dumps of
       nodes, and push. No cluster gets Peers of south yet.
    3. Open the ports in the first table of `clustermesh firewall south`. If other clusters
       limit the sources or destinations of UDP, `clustermesh firewall` lists what they need.
    4. Remove `state: Joining` of south in mesh.yaml, and run `clustermesh render` and
       `clustermesh verify` again. Commit all files, the new ones too (`git add -A`). With this commit, all
       clusters get the Peers.
    ");
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(added(&before, &folder.read("mesh.yaml")), @"
    - name: south
      state: Joining # until you remove this line, its ranges are reserved, and no cluster gets its Peers
      # Contains the pod CIDRs of all 3 nodes.
      # Put the `--cluster-cidr` of the cluster here if it is another range.
      podCIDRs: [10.4.0.0/16]
      # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
      wireguardCIDR: 10.104.0.0/24
      # Kilo's `--mesh-granularity`, as most nodes report it.
      granularity: Full
      # `--service-cidr`, if other clusters should reach the Services:
      # serviceCIDR: RANGE
      # Otherwise, this keeps their Peers out of that range:
      # localNetworks: [RANGE]
    ");
    // Nothing changes for the others until it joins.
    assert_eq!(folder.run(&["render", "-q"]).code, 0);
    for (path, touch) in tree {
        assert_eq!(folder.touches("rendered").get(&path), Some(&touch), "{path}");
    }
    folder.edit("mesh.yaml", JOINING, "");
    for command in ["validate", "render", "verify"] {
        let run = folder.run(&[command]);
        assert_eq!(run.code, 0, "{command}: {}{}", run.stdout, run.stderr);
    }
    assert!(folder.path("rendered/south/prod--east.yaml").exists());
}

/// The style of the file is kept: line ends, byte order mark, indentation, blank lines, comments and the flat form.
#[test]
fn the_style_of_the_file_is_kept() {
    let text = "\u{feff}apiVersion: kilo.squat.ai/v1alpha1\r\nkind: ClusterMesh\r\nmetadata: { name: prod }\r\nspec:\r\n  clusters:\r\n  # first\r\n  -   name: east\r\n      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24] # one\r\n\r\n  # second\r\n  -   name: west\r\n      allowedNetworks:\r\n      - 10.3.0.0/16\r\n      - 10.103.0.0/24 # two\r\n      # of west\r\n\r\n  # end\r\n  topology: { mode: FullMesh }";
    let folder = with_mesh(text);
    let run = folder.run(&SOUTH);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let added = added(text, &folder.read("mesh.yaml"));
    assert_eq!(added.matches("\r\n").count(), added.matches('\n').count());
    insta::assert_snapshot!(added.replace('\r', ""), @"
    -   name: south
        state: Joining # until you remove this line, its ranges are reserved, and no cluster gets its Peers
        # Contains the pod CIDRs of all 3 nodes.
        # Put the `--cluster-cidr` of the cluster here if it is another range.
        # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
        allowedNetworks: [10.4.0.0/16, 10.104.0.0/24]
        # Kilo's `--mesh-granularity`, as most nodes report it.
        granularity: Full
        # Add the `--service-cidr` to the list, if other clusters should reach the Services.
        # Otherwise, this keeps their Peers out of that range:
        # localNetworks: [RANGE]
    ");
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
}

/// A file without a last line end gets one.
#[test]
fn a_file_without_a_last_line_end_gets_the_entry() {
    let folder = folder();
    let text = folder.read("mesh.yaml");
    folder.write("mesh.yaml", text.trim_end());
    let run = folder.run(&SOUTH);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.read("mesh.yaml").starts_with(&text));
}

#[test]
fn of_several_meshes_one_is_named() {
    let folder = folder();
    let other = folder.read("mesh.yaml").replace("prod", "test").replace(": 10.", ": 172.");
    let other = other.replace("[10.", "[172.2").replace("- name: ", "- name: t-");
    folder.write("mesh.yaml", folder.read("mesh.yaml") + "---\n" + &other);
    let stderr = folder.refusal(2, |it| it.run(&SOUTH));
    insta::assert_snapshot!(stderr, @"error: there are several meshes, `prod`, `test`: name the one that gets the clusters, such as `--name prod`");
    let stderr = folder.refusal(2, |it| it.run(&[&SOUTH[..], &["--name=none"]].concat()));
    insta::assert_snapshot!(stderr, @"error: --name: `none` is not a mesh of this repository, which has `prod`, `test`");
    let run = folder.run(&[&SOUTH[..], &["--name=test"]].concat());
    assert!(folder.read("mesh.yaml").rfind("t-west") < folder.read("mesh.yaml").find("south"));
    assert_contains(&run.stderr, "added south to mesh.yaml\n");
}

/// Where the result is uncertain, nothing changes, and the entry is printed with its place.
#[test]
fn an_unusual_file_is_not_changed() {
    let head =
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n";
    let east = "{ name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24 }";
    let west = "{ name: west, podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.103.0.0/24 }";
    let block =
        "\n    - name: west\n      podCIDRs: [10.3.0.0/16]\n      wireguardCIDR: 10.103.0.0/24\n";
    let cases = [
        format!("{head}  clusters: [{east}, {west}]\n"),
        format!("{head}  clusters:\n    - {east}\n    - {west}\n"),
        format!(
            "{head}  topology: {{ mode: Hub, hubs: [&e east] }}\n  clusters:\n    - name: *e\n      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24{block}"
        ),
        format!(
            "{head}  clusters:\n    - {east}\n    -\n      name: west\n      podCIDRs: [10.3.0.0/16]\n      wireguardCIDR: 10.103.0.0/24\n"
        ),
    ];
    let cases = cases.map(|text| {
        let folder = with_mesh(&text);
        let before = folder.touches(".");
        let run = folder.run(&SOUTH);
        assert_eq!((run.code, folder.touches(".")), (1, before), "{text}");
        (run.stdout, run.stderr)
    });
    let reasons = cases.each_ref().map(|it| it.1.as_str());
    let [flow, braces, aliases, layout] = cases.each_ref().map(|it| it.0.as_str());
    insta::assert_snapshot!(flow, @"    { name: south, state: Joining, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.104.0.0/24, granularity: Full }");
    for entry in [braces, aliases, layout] {
        assert_contains(entry, "    - name: south\n");
    }
    insta::assert_snapshot!(reasons.join(""), @"
    error: nothing was changed: `spec.clusters` is written in flow style. Add the entry above at the end of `spec.clusters` (mesh.yaml:5), and then run `clustermesh snapshot --from south=south.json`
    error: nothing was changed: `spec.clusters` is written in flow style. Add the entry above at the end of `spec.clusters` (mesh.yaml:5), and then run `clustermesh snapshot --from south=south.json`
    error: nothing was changed: the mesh uses YAML aliases. Add the entry above at the end of `spec.clusters` (mesh.yaml:6), and then run `clustermesh snapshot --from south=south.json`
    error: nothing was changed: the layout of `spec.clusters` is unusual. Add the entry above at the end of `spec.clusters` (mesh.yaml:5), and then run `clustermesh snapshot --from south=south.json`
    ");
}

#[test]
fn links_and_read_only_files_are_not_changed() {
    let folder = folder();
    fs::set_permissions(folder.path("mesh.yaml"), fs::Permissions::from_mode(0o444)).unwrap();
    let before = folder.touches(".");
    let read_only = folder.run(&SOUTH);
    assert_eq!((read_only.code, folder.touches(".")), (1, before));
    fs::rename(folder.path("mesh.yaml"), folder.path("real.yaml")).unwrap();
    symlink("real.yaml", folder.path("mesh.yaml")).unwrap();
    let before = folder.touches(".");
    let link = folder.run(&SOUTH);
    assert_eq!((link.code, folder.touches(".")), (1, before));
    assert_contains(&link.stdout, "    - name: south\n");
    insta::assert_snapshot!(read_only.stderr + &link.stderr, @"
    error: nothing was changed: `mesh.yaml` is read-only. Add the entry above at the end of `spec.clusters` (mesh.yaml:6), and then run `clustermesh snapshot --from south=south.json`
    error: nothing was changed: `mesh.yaml` is a symbolic link. Add the entry above at the end of `spec.clusters` (mesh.yaml:6), and then run `clustermesh snapshot --from south=south.json`
    ");
}

#[test]
fn what_cannot_be_added_is_reported() {
    let run = |arguments: &[&str], change: &dyn Fn(&Folder)| -> Run {
        let folder = folder();
        change(&folder);
        let before = paths(&folder);
        let run = folder.run(&[&["init"], arguments].concat());
        assert_eq!((run.stdout.as_str(), paths(&folder)), ("", before));
        run
    };
    let ranges = |folder: &Folder| {
        folder.edit("south.json", "10.4.", "10.1.");
        folder.edit("south.json", "10.104.", "10.103.");
    };
    let twin = |folder: &Folder| folder.write("south.json", dump(1).to_string());
    let example = |folder: &Folder| {
        let text = include_str!("../../../../templates/init/mesh.yaml");
        folder.write("mesh.yaml", text);
    };
    let south = "--from=south=south.json";
    let runs = [
        run(&[south], &ranges),
        run(&[south], &twin),
        run(&["--from=east=south.json"], &|_| {}),
        run(&[south, "--peers=south=south.json"], &|_| {}),
        run(&[south, south], &|_| {}),
        run(&[south], &example),
    ];
    let texts = runs.map(|it| format!("{}: {}", it.code, it.stderr));
    insta::assert_snapshot!(texts.join("\n"), @"
    1: error[overlapping-ranges]: south: the pod range 10.1.0.0/16 of `south` overlaps the pod range 10.1.0.0/16 of `east`
    help: clusters with common pod addresses cannot be joined: rebuild `south` with a `--cluster-cidr` that no other cluster uses, such as 10.44.0.0/16

    error[overlapping-ranges]: south: the WireGuard range 10.103.0.0/24 of `south` overlaps the WireGuard range 10.103.0.0/24 of `west`
    help: start Kilo in `south` with a `--subnet` that no other cluster uses, such as 10.4.0.0/16; then run `clustermesh init` again

    2 errors

    1: error[twin-cluster]: south: node `n1` is also a node of `east`
    help: check the contexts or files of `south` and `east`: both probably show the nodes of the same cluster

    1 error

    2: error: `east` is already a cluster of the mesh `prod`; `clustermesh snapshot --from east=south.json` saves its nodes again

    2: error: --peers works only for a new mesh, and there is one already; move its file away

    2: error: the cluster name `south` is given twice; write `--context NAME=CONTEXT` or `--from NAME=FILE` with different names

    2: error: `mesh.yaml` is the example that `init` has written; remove it first
    ");
}

/// Ranges are compared with everything that is declared, and Kilo gets a range that nothing uses.
#[test]
fn a_free_range_avoids_everything_that_is_known() {
    let folder = folder();
    let mut south = dump(4);
    for node in south["items"].as_array_mut().unwrap() {
        node["metadata"]["annotations"] = json!({});
    }
    folder.write("south.json", south.to_string());
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.101.0.0/24\n",
        "      wireguardCIDR: 10.101.0.0/24\n      additionalCIDRs: [10.6.0.0/24]\n      localNetworks: [10.7.0.0/16]\n",
    );
    folder.edit("snapshots/west.json", "192.168.3.1/24", "10.8.0.1/24");
    folder.edit("snapshots/west.json", "192.168.3.2\"", "10.9.0.2\"");
    let run = folder.run(&SOUTH);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&folder.read("mesh.yaml"), "wireguardCIDR: 10.10.0.0/16\n");
    assert_contains(&run.stdout, "Start Kilo in south with `--subnet=10.10.0.0/16`");
}

/// The files of Flux and the jobs that `init` wrote for the others serve the new cluster too.
#[test]
fn tools_deliver_the_new_cluster_too() {
    let folder = Folder::empty();
    for (number, name) in (1..).zip(["east", "west", "south"]) {
        folder.write(&format!("{name}.json"), dump(number).to_string());
    }
    for (tool, file) in [("flux", "flux/south.yaml"), ("argocd", "argocd/south.yaml")] {
        let _ = fs::remove_file(folder.path("mesh.yaml"));
        let _ = fs::remove_file(folder.path("clustermesh.yaml"));
        let start = [
            "init",
            "--gitops",
            tool,
            "--ci=github",
            "--from=east=east.json",
            "--from=west=west.json",
        ];
        assert_eq!(folder.run(&start).code, 0);
        let run = folder.run(&SOUTH);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_contains(&run.stdout, file);
        assert_contains(&run.stdout, "Add south to the kubeconfig of the CI jobs.");
        let render = folder.run(&["render"]);
        assert_eq!(render.code, 0, "{}", render.stderr);
        assert!(folder.path(file).exists());
    }
}

/// What is printed can be pasted: in the style and with the indentation of the list.
#[test]
fn the_printed_entry_can_be_pasted() {
    let head =
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n";
    let east = "{ name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24 }";
    let west = "{ name: west, podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.103.0.0/24 }";
    let flow = format!("{head}  clusters: [{east}, {west}");
    let block = format!("{head}  clusters:\n  - {east}\n  - {west}\n");
    for (text, between, end) in [(&flow, ",\n", "]\n"), (&block, "", "")] {
        let folder = with_mesh(&format!("{text}{end}"));
        let run = folder.run(&SOUTH);
        assert_eq!(run.code, 1, "{}", run.stderr);
        folder.write("mesh.yaml", format!("{text}{between}{}{end}", run.stdout));
        let run = folder.run(&["snapshot", "--from=south=south.json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let run = folder.run(&["validate", "--fail-on", "warning"]);
        assert_eq!(run.code, 0, "{}", run.stdout);
        assert_contains(&run.stderr, "3 clusters, 7 nodes");
    }
}

/// The entry and the snapshot are from the same nodes.
#[test]
fn an_older_snapshot_is_replaced() {
    let folder = folder();
    let mut old = dump(5);
    old["items"][0]["metadata"]["annotations"]["kilo.squat.ai/granularity"] = json!("location");
    folder.write("old.json", old.to_string());
    folder.write("mesh.yaml", folder.read("mesh.yaml").replace("name: north", "name: south"));
    assert_eq!(folder.run(&["snapshot", "--from=south=old.json"]).code, 0);
    folder.write("mesh.yaml", folder.read("mesh.yaml").replace("name: south", "name: north"));
    let run = folder.run(&SOUTH);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&folder.read("mesh.yaml"), "podCIDRs: [10.4.0.0/16]");
    let snapshot = folder.read("snapshots/south.json");
    assert!(snapshot.contains("10.4.1.0/24") && !snapshot.contains("10.5.1.0/24"), "{snapshot}");
    assert_contains(&run.stderr, "No problems found (4 clusters, 9 nodes, 12 Peers).\n");
    // Another file stays.
    let folder = self::folder();
    folder.write("snapshots/south.json", "{\"mine\": 1}");
    let before = folder.touches(".");
    let run = folder.run(&SOUTH);
    assert_contains(&run.stderr, "error[unreadable-snapshot]");
    assert_contains(&run.stderr, "help: restore the committed file or move it away");
    assert_eq!((run.code, folder.touches(".")), (1, before));
}

#[test]
fn the_mode_of_the_file_is_kept() {
    let folder = folder();
    let mode = |path: &str| fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777;
    let set = |path: &str| {
        fs::set_permissions(folder.path(path), fs::Permissions::from_mode(0o600)).unwrap();
    };
    assert_eq!(folder.run(&["render", "-q"]).code, 0);
    let files = ["snapshots/east.json", "rendered/east/prod--west.yaml"];
    files.into_iter().chain(["mesh.yaml"]).for_each(set);
    assert_eq!(folder.run(&SOUTH).code, 0);
    assert_eq!(mode("mesh.yaml"), 0o600);
    folder.edit("mesh.yaml", JOINING, "");
    let mut west = dump(3);
    west["items"].as_array_mut().unwrap().pop();
    folder.write("west.json", west.to_string());
    folder.write("east.json", dump(1).to_string());
    for command in
        [&["snapshot", "--from=east=east.json", "--from=west=west.json"][..], &["render"]]
    {
        let run = folder.run(command);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    assert_eq!(files.map(mode), [0o600; 2]);
}

/// Other flags of the same run have their steps too.
#[test]
fn the_steps_of_all_flags_are_printed() {
    let folder = folder();
    let flags = ["--gitops=flux", "--ci=github", "--pre-commit"];
    let run = folder.run(&[&SOUTH[..], &flags].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Check every line of south in mesh.yaml, and add `serviceCIDR` if other clusters
       should reach the Services.
    2. Set the repository in flux/gitrepository.yaml. If Flux installs Kilo, write `dependsOn` with
       the name of its Kustomization into templates/flux-kustomization.yaml.j2.
    3. Write the repository and a commit of clustermesh at the top of the CI jobs, which build it; or
       remove the jobs and run `init` again with --program-source.
    4. Create the GitHub App and the kubeconfig that the first lines of
       .github/workflows/clustermesh-refresh.yml describe.
    5. Add to CODEOWNERS, with the reviewers of your network as @OWNERS, and require their approval
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
    6. Enable the hooks: `pre-commit install`.
    7. Render and check: `clustermesh render`, `clustermesh verify`. Commit everything except dumps of
       nodes, and push. No cluster gets Peers of south yet.
    8. In each cluster, create the service account of Flux, `clustermesh rbac --delivery | kubectl apply -f -`,
       and apply flux/gitrepository.yaml and flux/CLUSTER.yaml.
    9. Open the ports in the first table of `clustermesh firewall south`. If other clusters
       limit the sources or destinations of UDP, `clustermesh firewall` lists what they need.
    10. Remove `state: Joining` of south in mesh.yaml, and run `clustermesh render` and
       `clustermesh verify` again. Commit all files, the new ones too (`git add -A`). With this commit, all
       clusters get the Peers.
    ");
    let mut idle = dump(4);
    for node in idle["items"].as_array_mut().unwrap() {
        node["metadata"]["annotations"] = json!({});
    }
    let folder = self::folder();
    folder.write("south.json", idle.to_string());
    let run = folder.run(&SOUTH);
    assert_contains(
        &run.stdout,
        "and then dump its nodes again and run `clustermesh snapshot --from south=south.json`.",
    );
}

/// The steps about files that are there already were taken when these were written.
#[test]
fn steps_that_were_taken_are_not_repeated() {
    let folder = folder();
    let flags = ["--gitops=flux", "--ci=github"];
    assert_eq!(folder.run(&[&["init"][..], &flags].concat()).code, 0);
    let guard = folder.run(&["guard", "east", "--writers", "ada"]).stdout;
    folder.write("guards/east.yaml", guard);
    let run = folder.run(&[&SOUTH[..], &flags].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Check every line of south in mesh.yaml, and add `serviceCIDR` if other clusters
       should reach the Services.
    2. Add south to the kubeconfig of the CI jobs.
    3. Update the guards: `clustermesh guard --update`, and the commands that it prints. Print one for the
       new cluster, `clustermesh guard south --writers ada > guards/south.yaml`,
       and let its owner apply it, `kubectl --context south apply --server-side -f guards/south.yaml`.
    4. Render and check: `clustermesh render`, `clustermesh verify`. Commit everything except dumps of
       nodes, and push. No cluster gets Peers of south yet. The CI job that compares controls
       fails in this change, because guards accept more: merge it nevertheless when their owners have
       approved.
    5. Create the service account of Flux and what it applies:
       `clustermesh rbac --delivery | kubectl --context south apply -f -`,
       `kubectl --context south apply -f flux/gitrepository.yaml -f flux/south.yaml`.
    6. Open the ports in the first table of `clustermesh firewall south`. If other clusters
       limit the sources or destinations of UDP, `clustermesh firewall` lists what they need.
    7. Remove `state: Joining` of south in mesh.yaml, and run `clustermesh render` and
       `clustermesh verify` again. Commit all files, the new ones too (`git add -A`). With this commit, all
       clusters get the Peers.
    ");
}

/// Only a mesh with guards has guards to print again.
#[test]
fn the_steps_name_guards_if_there_are_some() {
    let folder = folder();
    let guard = folder.run(&["guard", "east", "--writers", "ada"]).stdout;
    folder.write("guards/east.yaml", guard);
    let run = folder.run(&SOUTH);
    let (_, steps) = run.stdout.split_once("\n2. ").unwrap();
    insta::assert_snapshot!(steps, @"
    Update the guards: `clustermesh guard --update`, and the commands that it prints. Print one for the
       new cluster, `clustermesh guard south --writers ada > guards/south.yaml`,
       and let its owner apply it, `kubectl --context south apply --server-side -f guards/south.yaml`.
    3. Render and check: `clustermesh render`, `clustermesh verify`. Commit everything except dumps of
       nodes, and push. No cluster gets Peers of south yet.
    4. Open the ports in the first table of `clustermesh firewall south`. If other clusters
       limit the sources or destinations of UDP, `clustermesh firewall` lists what they need.
    5. Remove `state: Joining` of south in mesh.yaml, and run `clustermesh render` and
       `clustermesh verify` again. Commit all files, the new ones too (`git add -A`). With this commit, all
       clusters get the Peers.
    ");
}

/// The default range of a distribution is proposed once: a second cluster cannot declare it.
#[test]
fn a_default_range_of_services_that_another_cluster_declares_is_not_proposed() {
    let folder = folder();
    folder.edit(
        "mesh.yaml",
        "    - name: east\n",
        "    - name: east\n      serviceCIDR: 10.43.0.0/16\n",
    );
    let mut nodes = dump(4);
    for node in nodes["items"].as_array_mut().unwrap() {
        node["metadata"]["labels"] = json!({ "node.kubernetes.io/instance-type": "k3s" });
    }
    folder.write("south.json", nodes.to_string());
    let before = folder.read("mesh.yaml");
    assert_eq!(folder.run(&SOUTH).code, 0);
    let added = added(&before, &folder.read("mesh.yaml"));
    let (_, hint) = added.split_once("granularity: Full\n").unwrap();
    insta::assert_snapshot!(hint, @"
    # `--service-cidr`, if other clusters should reach the Services; it must not overlap with 10.43.0.0/16 of east:
    # serviceCIDR: RANGE
    # If it does, this keeps it for the Services of this cluster, whose pods then cannot reach east there:
    # localNetworks: [10.43.0.0/16]
    ");
}
