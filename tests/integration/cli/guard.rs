//! `guard`: the policy that it prints, what it refuses to print, and which Peers it would refuse.

use std::fs;
use std::process::Command;

use super::Folder;
use crate::support::{Run, assert_contains, copy, project};

const WRITERS: &str = "system:serviceaccount:flux-system:clustermesh";

fn example(name: &str) -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples").join(name), folder.0.path());
    folder
}

/// Runs the first command of a help as a shell does.
fn follow(folder: &Folder, help: &str) {
    let command = help.split('`').nth(1).unwrap();
    let program = env!("CARGO_BIN_EXE_clustermesh");
    let command = command.replacen("clustermesh", program, 1);
    let mut shell = Command::new("sh");
    let run = shell.arg("-c").arg(&command).current_dir(folder.0.path());
    let run = run.output().unwrap();
    assert!(run.status.success(), "{command}: {run:?}");
}

/// Returns the message and the help of the only finding about a guard.
fn found(folder: &Folder) -> (String, String) {
    let all = outdated(folder);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    one.clone()
}

/// Returns the messages and helps of the findings about guards.
fn outdated(folder: &Folder) -> Vec<(String, String)> {
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|it| it["rule"] == "outdated-guard");
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    findings.map(|it| (text(&it["message"]), text(&it["help"]))).collect()
}

#[test]
fn the_guards_of_the_example_are_current() {
    for cluster in ["east", "west"] {
        let folder = example("gitops");
        let run = folder.run(&["guard", cluster, "--writers", WRITERS]);
        let file = project().join(format!("examples/gitops/guards/{cluster}.yaml"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert_eq!(run.stdout, fs::read_to_string(file).unwrap());
        let check = folder.run(&["guard", cluster, "--check"]);
        assert_eq!((check.code, check.stdout.as_str()), (0, ""));
        let counts = format!("0 of 3 Peers would be refused in {cluster}\n");
        assert_eq!(check.stderr, counts);
    }
}

#[test]
fn without_writers_everyone_may_write() {
    let folder = example("quickstart");
    let run = folder.run(&["guard", "west"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"note: without `--writers`, the policy accepts Peers from every user with the right to write them");
    assert_contains(&run.stdout, "    - name: isWriter\n      expression: 'true'\n");
    assert_contains(&run.stdout, "validationActions: [\"Deny\"]\n");
    let warning = folder.run(&["guard", "west", "--warn", "--writers", WRITERS]);
    assert_contains(&warning.stdout, "validationActions: [\"Warn\", \"Audit\"]\n");
}

#[test]
fn an_account_that_delivers_cannot_write_allowed_peers() {
    let folder = example("quickstart");
    let guard = |writers: &str, others: &str, peer: &str| {
        let options = ["--writers", writers, "--allow-peer", peer, "--allow-peer-writers", others];
        folder.run(&[&["guard", "west"][..], &options].concat())
    };
    let run = guard(WRITERS, "ada", "laptop=10.9.0.7/32,10.9.1.0/24");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stdout, "\"laptop\": [\"10.9.0.7/32\", \"10.9.1.0/24\"]");
    insta::assert_snapshot!(run.stderr, @"note: a Peer of `--allow-peer` may have no endpoint; until it connects, Kilo does not apply later changes of other Peers");
    let run = guard(WRITERS, "group:system:serviceaccounts", "laptop=10.9.0.7/32");
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: `system:serviceaccount:flux-system:clustermesh` cannot be both in `--writers` and in `--allow-peer-writers`: a person who can change the repository could then replace the key of an allowed Peer; give these Peers other writers");
    let run = guard(WRITERS, "ada", "quickstart--east--x=10.9.0.7/32");
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: `--allow-peer quickstart--east--x=…` is not possible: clustermesh writes Peers with such names; rename that Peer");
    for peer in ["laptop", "Laptop=10.9.0.7/32", "laptop=10.9.0.7"] {
        assert_eq!(guard(WRITERS, "ada", peer).code, 2, "{peer}");
    }
    let alone = folder.run(&["guard", "west", "--allow-peer", "laptop=10.9.0.7/32"]);
    assert_eq!(alone.code, 2);
    assert_contains(&alone.stderr, "--allow-peer-writers");
}

#[test]
fn peers_that_would_be_refused_are_listed() {
    let folder = example("quickstart");
    let rendered = folder.path("rendered/west/quickstart--east.yaml");
    let text = fs::read_to_string(rendered).unwrap();
    let run = folder.run(&[
        "guard",
        "west",
        "--check",
        "--peers",
        "west=rendered/west/quickstart--east.yaml",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let wrong = text.replacen("10.42.0.0/24", "10.244.0.1/24", 1).replacen(
        "source-cluster: east",
        "source-cluster: west",
        2,
    );
    folder.write("peers.yaml", wrong);
    folder.write(
        "laptop.yaml",
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {name: laptop}\nspec: {allowedIPs: [10.9.0.7/32], \
         publicKey: 'vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4='}\n",
    );
    let run = folder.run(&["guard", "west", "--check", "--peers", "west=peers.yaml"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    quickstart--east--east-agent-1: the labels name no mesh and source from which this cluster accepts Peers
    quickstart--east--east-agent-1: the name of the Peer does not fit its labels: MESH--SOURCE--NODE, or MESH--external.NAME of an external peer
    quickstart--east--east-agent-1: an allowed IP is outside of the ranges that this cluster accepts of this source
    quickstart--east--east-agent-2: the labels name no mesh and source from which this cluster accepts Peers
    quickstart--east--east-agent-2: the name of the Peer does not fit its labels: MESH--SOURCE--NODE, or MESH--external.NAME of an external peer
    quickstart--east--east-agent-2: an allowed IP is outside of the ranges that this cluster accepts of this source
    quickstart--east--east-server-1: an allowed IP overlaps a range of this cluster itself
    quickstart--east--east-server-1: an allowed IP is outside of the ranges that this cluster accepts of this source
    quickstart--east--east-server-1: an allowed IP has host bits
    ");
    let laptop = ["guard", "west", "--check", "--peers", "west=laptop.yaml"];
    let run = folder.run(&laptop);
    insta::assert_snapshot!(format!("{}{}", run.stdout, run.stderr), @"
    laptop: the Peer has no labels of clustermesh and is not one that the owner of the cluster allows (`--allow-peer`)
    laptop: an allowed IP is outside of the ranges that this cluster accepts of this source
    laptop: the Peer has no endpoint, so Kilo would not apply later changes of other Peers
    1 of 1 Peers would be refused in west
    ");
    let allowed =
        ["--writers", WRITERS, "--allow-peer", "laptop=10.9.0.0/24", "--allow-peer-writers", "ada"];
    let run = folder.run(&[&laptop[..], &allowed].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let run = folder.run(&["guard", "west", "--peers", "west=laptop.yaml"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "work only with `--check`");
}

/// Runs `guard west` with allowed Peers.
fn with_peers(folder: &Folder, peers: &[&str], more: &[&str]) -> Run {
    let mut options = vec!["guard", "west", "--writers", WRITERS];
    options.extend(["--allow-peer-writers", "ada"]);
    options.extend(peers.iter().flat_map(|it| ["--allow-peer", it]));
    folder.run(&[&options, more].concat())
}

#[test]
fn ranges_of_an_allowed_peer_are_merged() {
    // The policy counts the ranges that contain an allowed IP, and accepts exactly one.
    let folder = example("quickstart");
    folder.write(
        "laptop.yaml",
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {name: laptop}\nspec: {allowedIPs: [10.9.0.0/24], \
         publicKey: 'vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4='}\n",
    );
    for peers in [
        &["laptop=10.9.0.0/24,10.9.0.7/32"][..],
        &["laptop=10.9.0.0/24", "laptop=10.9.0.0/24"],
        &["laptop=10.9.0.128/25,10.9.0.0/25"],
    ] {
        let run = with_peers(&folder, peers, &[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_contains(&run.stdout, "\"laptop\": [\"10.9.0.0/24\"]");
        let check = ["--check", "--peers", "west=laptop.yaml"];
        let run = with_peers(&folder, peers, &check);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    }
}

#[test]
fn an_allowed_peer_has_no_range_of_a_mesh() {
    let folder = example("quickstart");
    let refused = |ranges: &str| {
        let run = with_peers(&folder, &[&format!("laptop={ranges}")], &[]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{ranges}");
        run.stderr
    };
    let mut errors = String::new();
    for ranges in [
        "10.244.7.0/24",
        "10.6.0.9/32",
        "10.42.0.0/24",
        "10.0.0.0/8",
        "0.0.0.0/1",
        "0.0.0.0/0",
        "192.168.0.0/16,0.0.0.0/1,128.0.0.0/1",
        "fd00:9::/64",
        "::/1",
        "10.9.0.7/24",
    ] {
        errors += &refused(ranges);
    }
    insta::assert_snapshot!(errors, @"
    error: `--allow-peer laptop=…` is not possible: 10.244.7.0/24 overlaps 10.244.0.0/16 of west, so the Peer could receive packets for that cluster; allow ranges that no mesh declares
    error: `--allow-peer laptop=…` is not possible: 10.6.0.9/32 overlaps 10.6.0.0/16 of west, so the Peer could receive packets for that cluster; allow ranges that no mesh declares
    error: `--allow-peer laptop=…` is not possible: 10.42.0.0/24 overlaps 10.42.0.0/16 of east, so the Peer could receive packets for that cluster; allow ranges that no mesh declares
    error: `--allow-peer laptop=…` is not possible: 10.0.0.0/8 overlaps 10.42.0.0/16 of east, so the Peer could receive packets for that cluster; allow ranges that no mesh declares
    error: `--allow-peer laptop=…` is not possible: 0.0.0.0/1 is wider than /8, so one Peer could receive packets for many networks; allow narrower ranges
    error: `--allow-peer laptop=…` is not possible: 0.0.0.0/0 is wider than /8, so one Peer could receive packets for many networks; allow narrower ranges
    error: `--allow-peer laptop=…` is not possible: 0.0.0.0/0 is wider than /8, so one Peer could receive packets for many networks; allow narrower ranges
    error: `--allow-peer laptop=…` is not possible: west declares no range of the address family of fd00:9::/64, so it cannot reach such a Peer
    error: `--allow-peer laptop=…` is not possible: ::/1 is wider than /16, so one Peer could receive packets for many networks; allow narrower ranges
    error: invalid value 'laptop=10.9.0.7/24' for '--allow-peer <NAME=RANGES>': `10.9.0.7/24` has host bits; write `10.9.0.0/24` for its network or `10.9.0.7/32` for the address

    For more information, try '--help'.
    ");
}

#[test]
fn a_typo_in_an_account_is_an_error() {
    let folder = example("quickstart");
    let run = folder.run(&["guard", "west", "--writers", "flux-system/clustermesh"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"
    error: invalid value 'flux-system/clustermesh' for '--writers <ACCOUNT>': expected `system:serviceaccount:NAMESPACE:NAME`, `group:NAME` or the name of a user; each account needs an option of its own

    For more information, try '--help'.
    ");
    let peer = ["--writers", WRITERS, "--allow-peer", "laptop=10.9.0.7/32"];
    let others = ["--allow-peer-writers", "system:masters"];
    let run = folder.run(&[&["guard", "west"][..], &peer, &others].concat());
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn a_flat_list_leaves_the_inside_open() {
    let folder = example("quickstart");
    let mesh = fs::read_to_string(folder.path("mesh.yaml")).unwrap();
    let (head, _) = mesh.split_once("    - name: west").unwrap();
    let west =
        "    - name: west\n      allowedNetworks: [10.244.0.0/16, 10.96.0.0/12, 10.6.0.0/16]\n";
    folder.write("mesh.yaml", format!("{head}{west}"));
    let run = folder.run(&["guard", "west", "--writers", WRITERS]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"note: the entry of west has `allowedNetworks`, which does not show its pod ranges, so the policy does not refuse endpoints inside of the cluster");
}

#[test]
fn a_peer_that_costs_too_much_fails() {
    let folder = example("quickstart");
    let mesh = fs::read_to_string(folder.path("mesh.yaml")).unwrap();
    let ranges = |count: u32| {
        let all = (0..count).map(|it| format!("172.{}.{}.0/24", 16 + it / 128, it % 128 * 2));
        let all: Vec<String> = all.collect();
        mesh.replacen("10.0.1.0/24", &all.join("\n        - "), 1)
    };
    folder.write("mesh.yaml", ranges(60));
    let run = folder.run(&["guard", "west", "--writers", WRITERS]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder.write("mesh.yaml", ranges(400));
    let run = folder.run(&["guard", "west", "--writers", WRITERS]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: Peer quickstart--east--east-agent-1 has 403 allowed IPs, which the policy compares with 402 ranges: a cost of 661726, more than half of the 1000000 that an API server spends on a Peer; declare fewer, wider ranges");
    assert_eq!(run.stdout, "");
    folder.write("mesh.yaml", ranges(1600));
    let run = folder.run(&["guard", "west", "--writers", WRITERS]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: Peer quickstart--east--east-agent-1 has 1603 allowed IPs, and the policy refuses more than 1500; in the entry of its cluster, declare fewer, wider ranges, or `podCIDRs: Merged` under `advertise` if most of them are pod CIDRs");
}

#[test]
fn a_mesh_with_mistakes_has_no_guard() {
    let folder = example("quickstart");
    let run = folder.run(&["guard", "north"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = folder.run(&["guard", "west"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_contains(&run.stderr, "missing-snapshot");
}

/// The owner of a cluster needs time before another cluster joins: afterwards, Flux would apply nothing there.
#[test]
fn a_guard_that_a_joining_cluster_needs_is_reported_before_it_joins() {
    let folder = example("quickstart");
    let mesh = folder.read("mesh.yaml");
    let with_state = |state: &str| {
        let entry = "    - name: east";
        folder.write(
            "mesh.yaml",
            mesh.replace(entry, &format!("    - state: {state}\n      name: east")),
        );
    };
    let guard = || folder.run(&["guard", "west", "--writers", WRITERS]).stdout;
    with_state("Leaving");
    folder.write("guards/west.yaml", guard());
    assert_eq!(outdated(&folder), []);
    with_state("Joining");
    let (message, help) = found(&folder);
    insta::assert_snapshot!(message, @"the guard of west does not accept Peers of quickstart/east, which `render` does not write yet");
    let run = folder.run(&["validate", "--fail-on", "warning"]);
    assert_contains(&run.stdout, "notice[outdated-guard]: west: ");
    follow(&folder, &help);
    assert_eq!(outdated(&folder), []);
    folder.write("mesh.yaml", &mesh);
    assert_eq!(outdated(&folder), []);
    with_state("Leaving");
    let (message, help) = found(&folder);
    insta::assert_snapshot!(message, @"the guard of west accepts Peers of quickstart/east, which the mesh does not allow");
    follow(&folder, &help);
    assert_eq!(outdated(&folder), []);
}

/// The list is the cause, and a guard that follows it would be as narrow as the mistake.
#[test]
fn a_guard_beside_a_range_that_is_not_accepted_follows_from_that() {
    let folder = Folder::rendered();
    let accepted = "acceptedNetworks: [10.2.0.0/15, 10.102.0.0/23]";
    let pods = "podCIDRs: [10.1.0.0/16]";
    folder.edit("mesh.yaml", pods, &format!("{pods}\n      {accepted}"));
    folder.write("guards/east.yaml", folder.run(&["guard", "east", "--writers", WRITERS]).stdout);
    assert_eq!(outdated(&folder), []);
    folder.edit("mesh.yaml", "[10.2.0.0/15", "[10.20.0.0/15");
    let run = folder.run(&["validate"]);
    let lines: Vec<&str> =
        run.stdout.lines().filter(|it| it.contains('[') && it.contains("]: ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    error[unaccepted-range]: west: 10.3.1.0/24, 10.3.2.0/24 left out: not in `acceptedNetworks`, so no path works between the linked clusters (target east), where Peers have them now (2 other findings follow from it: error[lost-source])
    warning[unaccepted-range]: north: 10.2.1.0/24, 10.2.2.0/24 left out: not in `acceptedNetworks`, so no path works between the linked clusters (target east), where Peers have them now
    warning[unaccepted-range]: west: 10.103.0.1/32, 10.103.0.2/32 left out: not in `acceptedNetworks` (target east), where Peers have them now
    ");
}

#[test]
fn outdated_guards_are_written_again_with_their_options() {
    let folder = example("gitops");
    let update = |arguments: &[&str]| folder.run(&[&["guard", "--update"], arguments].concat());
    let before = ["east", "west"].map(|it| folder.read(&format!("guards/{it}.yaml")));
    let run = update(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(run.stderr, "2 guards unchanged\n");

    // East accepts more of west, and west of east.
    let options = ["--allow-peer", "laptop=10.9.0.7/32", "--allow-peer-writers", "ada", "--warn"];
    let west = [&["guard", "west", "--writers", WRITERS], &options[..]].concat();
    folder.write("guards/west.yaml", folder.run(&west).stdout);
    let mesh = folder.read("mesh.yaml");
    let wider =
        mesh.replace("- 10.0.1.0/24", "- 10.0.0.0/22").replace("10.6.0.0/16", "10.6.0.0/15");
    folder.write("mesh.yaml", &wider);
    let run = update(&["west"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr + &run.stdout, @"
    guards/west.yaml: written
    Before the merge, as the owner of each cluster:
      kubectl --context west apply --server-side -f guards/west.yaml
    ");
    assert_eq!(folder.read("guards/west.yaml"), folder.run(&west).stdout);
    assert_eq!(folder.read("guards/east.yaml"), before[0]);
    assert_eq!(update(&[]).stderr, "guards/east.yaml: written\n1 guard unchanged\n");

    // They accept less: first, the clusters must have applied the Peers that the old guards accept.
    folder.write("mesh.yaml", &mesh);
    let run = update(&[]);
    insta::assert_snapshot!(run.stderr + &run.stdout, @"
    guards/east.yaml: written
    guards/west.yaml: written
    After the merge, when the clusters have applied it, as the owner of each cluster:
      kubectl --context east apply --server-side -f guards/east.yaml
      kubectl --context west apply --server-side -f guards/west.yaml
    ");
    assert_eq!(folder.read("guards/east.yaml"), before[0]);

    // Nothing is written if one of them cannot be printed again.
    folder.write("mesh.yaml", &wider);
    folder.write("guards/west.yaml", "kind: ConfigMap\n");
    let run = update(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: guards/west.yaml contains no ValidatingAdmissionPolicy `clustermesh-peers`; run `clustermesh guard west --writers ACCOUNT > guards/west.yaml` with the accounts that may write Peers and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`");
    assert_eq!(folder.read("guards/east.yaml"), before[0]);
    fs::remove_dir_all(folder.path("guards")).unwrap();
    insta::assert_snapshot!(update(&[]).stderr, @"error: no guard to update: `clustermesh guard CLUSTER --writers ACCOUNT > guards/CLUSTER.yaml` prints a new one");
}

#[test]
fn an_outdated_guard_is_reported() {
    let folder = example("quickstart");
    let options = ["--writers", WRITERS, "--writers", "group:ops team"];
    let guard = || {
        let run = folder.run(&[&["guard", "west"][..], &options].concat());
        folder.write("guards/west.yaml", run.stdout);
    };
    let validated = |code: i32| {
        let run = folder.run(&["validate", "--fail-on", "warning"]);
        assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
        run.stdout
    };
    guard();
    validated(0);

    // The mesh allows more: what is rendered would be refused.
    let mesh = folder.read("mesh.yaml");
    folder.edit("mesh.yaml", "- 10.0.1.0/24", "- 10.0.0.0/22");
    insta::assert_snapshot!(validated(1), @"
    error[outdated-guard]: west: the guard of west refuses 1 Peer that `render` writes: quickstart--east--east-agent-1 (an allowed IP is outside of the ranges that this cluster accepts of this source)
    --> guards/west.yaml:6:1
    help: run `clustermesh guard --update`, then the commands that it prints
    ");
    let run = folder.run(&["render", "--check"]);
    assert_contains(&run.stderr, "warning[outdated-guard]: ");
    guard();
    validated(0);

    // The mesh allows less.
    folder.write("mesh.yaml", &mesh);
    insta::assert_snapshot!(validated(1), @"
    warning[outdated-guard]: west: the guard of west accepts 10.0.0.0/24 of quickstart/east (and 1 more), which the mesh does not allow
    --> guards/west.yaml:6:1
    help: run `clustermesh guard --update`, then the commands that it prints
    ");
    guard();
    folder.edit("guards/west.yaml", "0 < it.prefixLength()", "true");
    insta::assert_snapshot!(validated(1), @"
    warning[outdated-guard]: west: the guard of west is outdated: this version prints it with another `spec.validations[9].expression`
    --> guards/west.yaml:6:1
    help: run `clustermesh guard --update`, then the commands that it prints
    ");
    guard();
    for (from, to, printed) in [
        ("failurePolicy: Fail", "failurePolicy: Ignore", "`spec.failurePolicy: Fail`"),
        (
            "operations: [CREATE, UPDATE, DELETE]",
            "operations: [CREATE]",
            "`spec.matchConstraints.resourceRules[0].operations[1]: UPDATE`",
        ),
        (
            "validationActions: [\"Deny\"]",
            "validationActions: [Audit]",
            "`spec.validationActions[0]: Deny`",
        ),
    ] {
        folder.edit("guards/west.yaml", from, to);
        assert_contains(
            &validated(1),
            &format!("is outdated: this version prints it with {printed}\n"),
        );
        guard();
    }
}

#[test]
fn a_file_that_is_not_a_guard_is_reported_with_the_reason() {
    let folder = example("quickstart");
    let found = |text: String| {
        folder.write("guards/west.yaml", text);
        outdated(&folder)
    };
    let good = folder.run(&["guard", "west", "--writers", WRITERS]).stdout;
    let (policy, binding) = good.split_once("---\n").unwrap();
    assert_eq!(found(format!("---\n{binding}---\n{policy}---\n")), []);
    folder.write("guards/west.yaml", "kind: ConfigMap\n");
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @"
    error[outdated-guard]: west: guards/west.yaml contains no ValidatingAdmissionPolicy `clustermesh-peers`
    --> guards/west.yaml:1:1
    help: run `clustermesh guard west --writers ACCOUNT > guards/west.yaml` with the accounts that may write Peers and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`
    ");
    // `kubectl apply` applies every document, and of two with one name the last.
    let east = folder.run(&["guard", "east"]).stdout;
    let api = "apiVersion: admissionregistration.k8s.io/v1\n";
    let texts = [
        String::new(),
        "not: [yaml".to_owned(),
        east,
        format!("{good}---\n{policy}"),
        format!("{good}---\n{}", binding.replace("Deny", "Audit")),
        format!("{good}---\nkind: ConfigMap\n"),
        good.replace(api, "apiVersion: example.com/v1\n"),
        good.replace("users\\\":", "user\\\":"),
        policy.to_owned(),
        format!("<<<<<<< HEAD\n{good}"),
    ];
    let reasons = texts.map(|text| {
        let [(message, _)] = found(text).try_into().unwrap();
        message.strip_prefix("guards/west.yaml ").unwrap().to_owned()
    });
    insta::assert_snapshot!(reasons.join("\n"), @"
    is empty
    is not YAML
    is the guard of east
    is not what `clustermesh guard` prints: a policy and its binding, and no other objects
    is not what `clustermesh guard` prints: a policy and its binding, and no other objects
    is not what `clustermesh guard` prints: a policy and its binding, and no other objects
    contains no ValidatingAdmissionPolicy `clustermesh-peers`
    is not what `clustermesh guard` prints: a policy and its binding, and no other objects
    contains no ValidatingAdmissionPolicyBinding `clustermesh-peers`
    contains git's conflict markers: two versions of the file were not merged
    ");
    // The placeholder of the help is not an account.
    let literal = folder.run(&["guard", "west", "--writers", "ACCOUNT"]);
    assert_eq!((literal.code, literal.stdout.as_str()), (2, ""));
}

#[test]
fn allowed_peers_that_the_mesh_made_impossible_are_left_out() {
    let folder = example("quickstart");
    let options = [
        "guard",
        "west",
        "--writers",
        WRITERS,
        "--allow-peer",
        "laptop=10.9.0.7/32",
        "--allow-peer-writers",
        "ada",
    ];
    let both = [&options[..], &["--allow-peer", "phone=192.168.7.7/32"]].concat();
    let guard = folder.run(&both).stdout;
    folder.write("guards/west.yaml", &guard);
    assert_eq!(outdated(&folder), []);

    // The mesh declares the range of the laptop, and west accepts it.
    folder.edit("mesh.yaml", "- 10.0.1.0/24", "- 10.9.0.0/24");
    let (text, help) = found(&folder);
    insta::assert_snapshot!(text, @"the guard of west refuses 1 Peer that `render` writes: quickstart--east--east-agent-1 (an allowed IP is outside of the ranges that this cluster accepts of this source)");
    follow(&folder, &help);
    assert_eq!(outdated(&folder), []);
    let printed = folder.read("guards/west.yaml");
    assert_contains(&printed, "\"phone\": [\"192.168.7.7/32\"]");
    assert!(!printed.contains("laptop"));
    assert_contains(&printed, "ada");

    // West does not accept it, so nothing else differs. Without Peers of other programs, they have no writers.
    let folder = example("quickstart");
    let own = "      wireguardCIDR: 10.6.0.0/16\n";
    let accepted =
        "      acceptedNetworks: [10.42.0.0/16, 10.43.0.0/16, 10.4.0.0/16, 10.0.1.0/24]\n";
    folder.edit("mesh.yaml", own, &format!("{own}{accepted}"));
    let guard = folder.run(&options).stdout;
    folder.write("guards/west.yaml", &guard);
    assert_eq!(outdated(&folder), []);
    folder.edit("mesh.yaml", "- 10.0.1.0/24", "- 10.0.1.0/24\n        - 10.9.0.0/24");
    let (text, help) = found(&folder);
    insta::assert_snapshot!(text, @"the guard of west allows Peer `laptop`, but 10.9.0.7/32 overlaps 10.9.0.0/24 of east, so the Peer could receive packets for that cluster; allow ranges that no mesh declares");
    follow(&folder, &help);
    assert_eq!(outdated(&folder), []);
}

#[test]
fn decisions_that_no_option_can_have_are_asked_for_again() {
    let folder = example("quickstart");
    let options = ["--allow-peer", "laptop=10.9.0.7/32", "--allow-peer-writers", "ada"];
    let guard =
        folder.run(&[&["guard", "west", "--writers", "flux"][..], &options].concat()).stdout;
    for (from, to) in [
        (r#"[\"flux\"]"#, r#"[\"system:masters\"]"#),
        (r#"[\"flux\"]"#, r#"[\"flux\\u202e\"]"#),
        (r#"[\"flux\"]"#, r#"[\"ada\"]"#),
        (r#"[\"flux\"]"#, "[]"),
        (r#"[\"ada\"]"#, "[]"),
        ("\"laptop\"", "\"Laptop\""),
        ("\"10.9.0.7/32\"", ""),
    ] {
        assert!(guard.contains(from), "{from}");
        folder.write("guards/west.yaml", guard.replace(from, to));
        folder.edit("mesh.yaml", "- 10.0.1.0/24", "- 10.0.0.0/23");
        let (text, help) = found(&folder);
        assert!(
            help.contains("run `clustermesh guard west --writers ACCOUNT > guards/west.yaml` with"),
            "{to}: {text}"
        );
        folder.edit("mesh.yaml", "- 10.0.0.0/23", "- 10.0.1.0/24");
    }
}

#[test]
fn guards_of_no_cluster_are_reported() {
    let folder = example("gitops");
    let validated = || folder.run(&["validate"]).stdout;
    folder.write("guards/wets.yaml", "");
    insta::assert_snapshot!(validated(), @"
    warning[unnamed-cluster]: no mesh contains a cluster `wets`
    --> guards/wets.yaml
    help: rename it to `west.yaml` if `west` is meant
    ");
    fs::rename(folder.path("guards/wets.yaml"), folder.path("guards/west.yml")).unwrap();
    insta::assert_snapshot!(validated(), @"
    warning[invalid-value]: not read: the guard of `west` must be called `west.yaml`
    --> guards/west.yml
    help: rename the file, or remove it
    ");
    fs::remove_file(folder.path("guards/west.yml")).unwrap();
    folder.write("guards/README.md", "");
    assert_eq!(outdated(&folder), []);
    for number in 10..50 {
        folder.write(&format!("guards/tenant-{number}.yaml"), "");
    }
    insta::assert_snapshot!(validated(), @"
    warning[unnamed-cluster]: no mesh contains a cluster `tenant-10` (and 39 more files)
    --> guards/tenant-10.yaml
    help: if the cluster has another name now, rename the file to `CLUSTER.yaml`; if the cluster is gone, delete the file
    ");
    // Which clusters there are is unknown.
    let mesh = folder.read("mesh.yaml");
    folder.write("mesh.yaml", format!("{mesh}  [\n"));
    assert!(!validated().contains("unnamed-cluster"));
}
