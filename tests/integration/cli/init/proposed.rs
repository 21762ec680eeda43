//! `init --from` and `--context`: the mesh that is proposed works.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::paths;
use crate::cli::{Folder, api_node};
use crate::support::{Run, assert_contains, project};

/// Runs `init` with the dumps of an example.
fn init(folder: &Folder, example: &str) -> Run {
    let dumps = project().join(format!("examples/{example}/nodes"));
    let mut dumps: Vec<_> = fs::read_dir(dumps).unwrap().map(|it| it.unwrap().path()).collect();
    dumps.sort();
    let from = dumps.iter().map(|path| {
        let cluster = path.file_stem().unwrap().to_str().unwrap();
        format!("--from={cluster}={}", path.to_str().unwrap())
    });
    let from: Vec<String> = from.collect();
    let from = from.iter().map(String::as_str);
    folder.run(&["init"].into_iter().chain(from).collect::<Vec<_>>())
}

/// A dump of three nodes.
fn dump(cluster: u8) -> Value {
    let items = (1..=3).map(|number| api_node(cluster, number));
    json!({ "apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>() })
}

/// A folder with dumps of two clusters.
fn dumps(clusters: [u8; 2]) -> Folder {
    let folder = Folder::empty();
    for (name, cluster) in ["east.json", "west.json"].into_iter().zip(clusters) {
        folder.write(name, dump(cluster).to_string());
    }
    folder
}

const FROM: [&str; 3] = ["init", "--from=east=east.json", "--from=west=west.json"];

/// Peers are not applied yet, so no change of them can interrupt anything.
#[test]
fn nodes_are_annotated_before_peers_are_applied() {
    let folder = dumps([1, 3]);
    let text = folder.read("west.json");
    let annotation = "\"kilo.squat.ai/persistent-keepalive\":\"25\",";
    folder.write("west.json", text.replacen(annotation, "", 1));
    let run = folder.run(&FROM);
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Check every line of mesh.yaml, and add `serviceCIDR` to the clusters whose Services others
       should reach.
    2. Check and render: `clustermesh validate`, `clustermesh render`, `clustermesh verify`.
    3. Commit everything except dumps of nodes, `rendered` included, and push.
    ");
    insta::assert_snapshot!(run.stderr, @"
    wrote clustermesh.yaml
    wrote .gitattributes
    snapshots/east.json: 3 nodes, 3 usable, written
    snapshots/west.json: 3 nodes, 3 usable, written
    wrote mesh.yaml
    No problems found (2 clusters, 6 nodes, 6 Peers).
    ");
    assert_eq!(run.code, 0);
}

/// Kilo does not run in `west`: one finding, and the step that ends it.
#[test]
fn where_kilo_is_to_be_started_is_a_step() {
    let folder = dumps([1, 3]);
    let mut west = dump(3);
    for node in west["items"].as_array_mut().unwrap() {
        node["metadata"]["annotations"] = json!({});
    }
    folder.write("west.json", west.to_string());
    let run = folder.run(&FROM);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(
        &run.stdout,
        "2. Start Kilo in west with `--subnet=10.4.0.0/16`, and then dump its nodes again and run `clustermesh snapshot --from west=west.json`.\n",
    );
    assert_contains(&run.stderr, "warning[missing-wireguard-ip]: west: ");
    assert_contains(&run.stderr, "\n1 warning\n");
}

#[test]
fn a_mesh_is_proposed_from_dumps() {
    let folder = Folder::empty();
    let run = init(&folder, "quickstart");
    insta::assert_snapshot!(run.stderr, @"
    wrote clustermesh.yaml
    wrote .gitattributes
    snapshots/east.json: 3 nodes, 3 usable, written
    snapshots/west.json: 3 nodes, 3 usable, written
    wrote mesh.yaml
    No problems found (2 clusters, 6 nodes, 6 Peers).
    ");
    insta::assert_snapshot!(run.stdout, @"
    Next steps:
    1. Check every line of mesh.yaml, and add `serviceCIDR` to the clusters whose Services others
       should reach.
    2. Check and render: `clustermesh validate`, `clustermesh render`, `clustermesh verify`.
    3. Commit everything except dumps of nodes, `rendered` included, and push.
    ");
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(folder.read("mesh.yaml"), @"
    # Proposed by `clustermesh init` from the nodes of each cluster. Check every line before you commit it.
    # The order is the order of trust: if two clusters claim the same key, the first one keeps it. Ranges must not
    # overlap. `clustermesh schema mesh` describes all fields.
    apiVersion: kilo.squat.ai/v1alpha1
    kind: ClusterMesh
    metadata:
      # The name of every Peer begins with it, so choose it before the first render.
      name: mesh
    spec:
      clusters:
        - name: east
          # Contains the pod CIDRs of all 3 nodes, the default of k3s.
          # Put the `--cluster-cidr` of the cluster here if it is another range.
          podCIDRs: [10.42.0.0/16]
          # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
          wireguardCIDR: 10.4.0.0/16
          # Kilo's `--mesh-granularity`, as most nodes report it.
          granularity: Full
          # `--service-cidr`, if other clusters should reach the Services:
          # serviceCIDR: 10.43.0.0/16
          # Otherwise, this keeps their Peers out of that range:
          # localNetworks: [10.43.0.0/16]
        - name: west
          # Contains the pod CIDRs of all 3 nodes, the default of kubeadm with flannel.
          # Put the `--cluster-cidr` of the cluster here if it is another range.
          podCIDRs: [10.244.0.0/16]
          # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
          wireguardCIDR: 10.6.0.0/16
          # Kilo's `--mesh-granularity`, as most nodes report it.
          granularity: Full
          # `--service-cidr`, if other clusters should reach the Services:
          # serviceCIDR: 10.96.0.0/12
          # Otherwise, this keeps their Peers out of that range:
          # localNetworks: [10.96.0.0/12]
    ");
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
    // A second run has nothing to do.
    let before = folder.touches(".");
    let run = init(&folder, "quickstart");
    assert_contains(
        &run.stderr,
        "error: `east` is already a cluster of the mesh `mesh`; `clustermesh snapshot --from east=/",
    );
    assert_eq!((run.code, folder.touches(".")), (2, before));
}

/// A Peer as `kubectl get peers -o json` prints it.
fn peer(name: &str, key: &str, ranges: &[&str], rest: &Value) -> Value {
    let mut spec = json!({ "publicKey": key, "allowedIPs": ranges });
    for (field, value) in rest.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({ "apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": { "name": name }, "spec": spec })
}

#[test]
fn peers_made_by_hand_are_proposed_as_comments() {
    let folder = dumps([1, 3]);
    let key = |number: u8| {
        let bytes = [[100 + number; 31].as_slice(), &[1]].concat();
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
    };
    let node = api_node(1, 1)["metadata"]["annotations"]["kilo.squat.ai/key"].clone();
    let endpoint = json!({ "endpoint": { "dnsOrIP": { "ip": "198.18.9.9" }, "port": 51820 } });
    let laptop =
        || peer("laptop", &key(1), &["10.200.0.5/32"], &json!({ "persistentKeepalive": 10 }));
    let mut rendered = peer("prod--external.x", &key(9), &["10.200.0.9/32"], &json!({}));
    rendered["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "clustermesh" });
    let list =
        |items: &[Value]| json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    folder.write(
        "east-peers.json",
        list(&[
            laptop(),
            peer("router", &key(2), &["192.168.78.0/24", "192.168.77.0/24"], &endpoint),
            peer("node", node.as_str().unwrap(), &["10.9.0.0/24"], &json!({})),
            peer("moved", &key(3), &["10.200.0.6/32"], &json!({})),
            peer("inside", &key(4), &["10.1.7.0/24"], &json!({})),
            peer("secret", &key(5), &["10.200.0.7/32"], &json!({ "presharedKey": key(6) })),
            peer("laptop-2", &key(7), &["10.200.0.5/32"], &json!({})),
            peer("unread", "???", &["10.200.0.8/32"], &json!({})),
            rendered,
        ]),
    );
    folder.write(
        "west-peers.json",
        list(&[laptop(), peer("moved", &key(3), &["10.200.0.16/32"], &json!({}))]),
    );
    let peers = ["--peers=east=east-peers.json", "--peers=west=west-peers.json"];
    let run = folder.run(&[&FROM[..], &peers[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let step = run.stdout.find("2. Decide").unwrap();
    insta::assert_snapshot!(&run.stdout[step..], @"
    2. Decide on the Peers that were made by hand, which are listed at the end of mesh.yaml. Until you
       change anything, they stay as they are.
    3. Check and render: `clustermesh validate`, `clustermesh render`, `clustermesh verify`.
    4. Commit everything except dumps of nodes, `rendered` included, and push.
    ");
    let mesh = folder.read("mesh.yaml");
    let (clusters, externals) = mesh.split_once("  # Peers that").unwrap();
    insta::assert_snapshot!(externals, @r#"
    were made by hand. To take them over, remove `# ` from the lines of `externalPeers` and its entries,
     # and follow "Peers of laptops" in docs/how-to/from-kgctl.md.
     # externalPeers:
     #   - name: laptop
     #     publicKey: ZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZQE=
     #     ranges: [10.200.0.5/32]
     #     persistentKeepalive: 10
     #     clusters: [east, west]
     #   - name: router
     #     publicKey: ZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZgE=
     #     ranges: [192.168.77.0/24, 192.168.78.0/24]
     #     endpoint: "198.18.9.9:51820"
     #     clusters: [east]
     # Peers that were made by hand and cannot be entries of `externalPeers`:
     # - unread in east: Kilo does not accept it
     # - moved in east: its ranges, endpoint or keepalive in west differ from those in east
     # - moved in west: its ranges, endpoint or keepalive in west differ from those in east
     # - secret in east: it has a pre-shared key, which an entry cannot have
     # - inside in east: 10.1.7.0/24 of `external.inside` overlaps 10.1.0.0/16 of `east`
     # - laptop-2 in east: 10.200.0.5/32 of `external.laptop-2` overlaps 10.200.0.5/32 of `external.laptop`
    "#);
    // The advice is followed.
    let externals = externals.split_once("from-kgctl.md.\n").unwrap().1;
    let externals = externals.split("  # Peers that").next().unwrap();
    let entries = externals.replace("  # ", "  ");
    folder.write("mesh.yaml", format!("{clusters}{entries}"));
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout + &run.stderr, @"No problems found (2 clusters, 6 nodes, 9 Peers).");
    // The same Peers, under other names.
    assert_eq!(folder.run(&["render", "-q"]).code, 0);
    let run = folder.run(&["diff", "--peers", "east=east-peers.json"]);
    assert_contains(&run.stdout, "laptop, which is now called mesh--external.laptop\n");
    assert_contains(&run.stdout, "router, which is now called mesh--external.router\n");
}

/// Of entries that are refused together, the one goes that cannot stay anyway.
#[test]
fn a_refused_peer_costs_no_other_its_entry() {
    let folder = dumps([1, 3]);
    let key = |number: u8| {
        let bytes = [[100 + number; 31].as_slice(), &[1]].concat();
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
    };
    let one =
        |name: &str, number: u8, ranges: &[&str]| peer(name, &key(number), ranges, &json!({}));
    let mut leaving = one("leaving", 9, &["10.200.0.9/32"]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    leaving["metadata"]["finalizers"] = json!(["example.org/wait"]);
    let items = [
        one("evil", 1, &["10.200.0.0/16", "10.1.0.0/24"]),
        one("a", 2, &["10.200.0.5/32"]),
        one("b", 3, &["10.200.0.4/31"]),
        one("c", 4, &["10.200.0.4/32"]),
        leaving,
    ];
    folder.write(
        "peers.json",
        json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string(),
    );
    let run = folder.run(&[&FROM[..], &["--peers=east=peers.json"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mesh = folder.read("mesh.yaml");
    let lines = mesh.lines().filter(|it| it.contains("  - name: ") || it.contains(" in east"));
    let lines: Vec<&str> = lines.skip(2).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    #   - name: a
    #   - name: c
    # - evil in east: 10.1.0.0/24 of `external.evil` overlaps 10.1.0.0/16 of `east`
    # - b in east: 10.200.0.4/31 of `external.b` overlaps 10.200.0.5/32 of `external.a`
    ");

    let folder = dumps([1, 3]);
    folder.write(
        "peers.json",
        json!({ "apiVersion": "v1", "kind": "List", "items": [] }).to_string(),
    );
    let twice = [&FROM[..], &["--peers=east=peers.json", "--peers=east=peers.json"]].concat();
    insta::assert_snapshot!(folder.run(&twice).stderr, @"error: --peers: `east` has more than one file; put all of its Peers into one");
}

#[test]
fn every_example_can_be_proposed() {
    for example in ["quickstart", "gitops", "hub-and-spokes", "multi-cloud-location"] {
        let folder = Folder::empty();
        let run = init(&folder, example);
        assert_eq!(run.code, 0, "{example}: {}", run.stderr);
        for command in ["validate", "render", "verify"] {
            let run = folder.run(&[command]);
            assert_eq!(run.code, 0, "{example} {command}: {}{}", run.stdout, run.stderr);
        }
    }
}

/// The name of the repository becomes a valid name of a mesh.
#[test]
fn the_mesh_is_named_after_the_repository() {
    let folder = dumps([1, 3]);
    fs::create_dir_all(folder.path("My_Shop.git/.git")).unwrap();
    let from = ["--from=east=../east.json", "--from=west=../west.json"];
    let run = folder.run(&[&["-C", "My_Shop.git", "init"], &from[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&folder.read("My_Shop.git/mesh.yaml"), "  name: my-shop-git\n");
}

#[test]
fn a_proposal_with_an_error_fails() {
    let folder = dumps([1, 2]);
    folder.write("policies/east.yaml", "kind: ClusterPolicy\n");
    let run = folder.run(&FROM);
    assert_contains(&run.stderr, "wrote mesh.yaml\nerror[");
    assert_eq!(run.code, 1);
}

/// A file that is not a snapshot may be the only copy of something.
#[test]
fn a_file_in_the_place_of_a_snapshot_stays() {
    let folder = dumps([1, 2]);
    folder.write("snapshots/east.json", "{");
    let run = folder.run(&FROM);
    assert_contains(&run.stderr, "error[unreadable-snapshot]");
    assert_eq!((run.code, folder.read("snapshots/east.json").as_str()), (1, "{"));
    assert!(!folder.path("mesh.yaml").exists());
}

/// No node behind NAT can carry the Service range, so the proposal does not advise to declare it.
#[test]
fn no_service_range_is_proposed_that_no_node_can_carry() {
    let folder = dumps([1, 3]);
    let mut west = dump(3);
    for node in west["items"].as_array_mut().unwrap() {
        node["status"]["addresses"] = json!([]);
        node["metadata"]["annotations"].as_object_mut().unwrap().remove("kilo.squat.ai/endpoint");
    }
    folder.write("west.json", west.to_string());
    let run = folder.run(&FROM);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mesh = folder.read("mesh.yaml");
    assert_eq!(mesh.matches("# serviceCIDR: ").count(), 1, "{mesh}");
    assert_contains(
        &mesh,
        "      # No node has an endpoint, so none can carry a Service range to other clusters.\n      \
         # This keeps Peers of other clusters out of the `--service-cidr`:\n      # localNetworks: [",
    );
}

#[test]
fn files_that_exist_are_kept() {
    let folder = dumps([1, 2]);
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    assert_eq!(folder.run(&["snapshot", "east", "--from", "east.json"]).code, 0);
    folder.write("east.json", dump(3).to_string());
    let run = folder.run(&FROM);
    assert_contains(&run.stderr, "kept existing clustermesh.yaml\n");
    // Snapshots are of the nodes from which the mesh is proposed.
    assert_contains(
        &run.stderr,
        "snapshots/east.json: 3 nodes, 3 usable, written (+0 ~3 -0 nodes)\n",
    );
    assert_contains(&run.stderr, "No problems found (2 clusters, 6 nodes");
    assert_eq!(run.code, 0);
}

#[test]
fn what_cannot_be_joined_is_said_before_anything_is_written() {
    let folder = dumps([1, 1]);
    // Other nodes with the same ranges.
    folder.edit("west.json", r#""uid":"1-"#, r#""uid":"2-"#);
    let run = folder.run(&FROM);
    insta::assert_snapshot!(run.stderr, @"
    error[overlapping-ranges]: west: the pod range 10.1.0.0/16 of `west` overlaps the pod range 10.1.0.0/16 of `east`
    help: clusters with common pod addresses cannot be joined: rebuild `west` with a `--cluster-cidr` that no other cluster uses, such as 10.44.0.0/16

    error[overlapping-ranges]: west: the WireGuard range 10.101.0.0/24 of `west` overlaps the WireGuard range 10.101.0.0/24 of `east`
    help: start Kilo in `west` with a `--subnet` that no other cluster uses, such as 10.4.0.0/16; then run `clustermesh init` again

    2 errors
    ");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_eq!(paths(&folder), ["east.json", "west.json"]);
    let mistakes: [&[&str]; 5] = [
        &["init", "--from=east=east.json"],
        &["init", "--from=east=east.json", "--from=east=west.json"],
        &["init", "--from=east=east.json", "--from=west=none.json"],
        &["init", "--from=east"],
        &["init", "--name=prod"],
    ];
    let errors = mistakes.map(|arguments| {
        let run = folder.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        run.stderr.lines().next().unwrap().to_owned()
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: a mesh has at least two clusters; add another --context or --from
    error: the cluster name `east` is given twice; write `--context NAME=CONTEXT` or `--from NAME=FILE` with different names
    error: cannot read `none.json`: No such file or directory (os error 2)
    error: invalid value 'east' for '--from <CLUSTER=FILE>': expected CLUSTER=FILE
    error: --name works only with --context and --from
    ");
    assert_eq!(paths(&folder), ["east.json", "west.json"]);
}

/// All of their ranges overlap, but there is only one cluster to rebuild.
#[test]
fn two_names_of_one_cluster_are_reported_as_such() {
    let folder = dumps([1, 1]);
    let run = folder.run(&FROM);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[twin-cluster]: west: node `n1` is also a node of `east`
    help: check the contexts or files of `west` and `east`: both probably show the nodes of the same cluster

    1 error
    ");
}

#[test]
fn snapshots_are_written_through_no_link() {
    let (folder, outside) = (dumps([1, 2]), Folder::empty());
    symlink(outside.path(""), folder.path("snapshots")).unwrap();
    let run = folder.run(&FROM);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_eq!(paths(&outside), Vec::<String>::new());
    assert!(!folder.path("mesh.yaml").exists(), "half of it was written");
}

#[test]
fn nodes_outside_are_findings() {
    let folder = dumps([1, 2]);
    let mut east = dump(1);
    east["items"][0]["spec"]["podCIDRs"] = json!(["172.16.0.0/24"]);
    east["items"][0]["metadata"]["name"] = "n1\n# x: y".into();
    folder.write("east.json", east.to_string());
    let run = folder.run(&FROM);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "warning[undeclared-pod-cidr]");
    assert!(folder.read("mesh.yaml").contains("of 2 of 3 nodes."));
    assert!(!folder.read("mesh.yaml").contains("x: y"));
}

#[cfg(feature = "snapshot")]
mod live {
    use super::*;
    use crate::api_server::{Answer, ApiServer, Context, Login, Request, Setup, kubeconfig};

    fn reach(folder: &Folder, servers: [&ApiServer; 2]) {
        let contexts = ["east", "admin@west"].into_iter().zip(servers);
        let contexts = contexts.map(|(name, server)| Context::new(name, &server.url()));
        folder.write("kubeconfig", kubeconfig(&contexts.collect::<Vec<_>>()));
    }

    fn run(folder: &Folder, arguments: &[&str]) -> Run {
        folder.run_with(&[("KUBECONFIG", "kubeconfig")], arguments)
    }

    const CONTEXTS: [&str; 4] =
        ["init", "--context=east", "--context=west=admin@west", "--name=prod"];

    /// Other commands do not know a cluster that is in no mesh.
    #[test]
    fn an_unknown_context_leads_to_the_known_ones() {
        let folder = dumps([1, 2]);
        let contexts = ["alpha", "admin@west"].map(|it| Context::new(it, "http://127.0.0.1:1"));
        folder.write("kubeconfig", kubeconfig(&contexts));
        let run = run(&folder, &["init", "--from=west=west.json", "--context=east"]);
        assert_eq!(run.code, 2);
        insta::assert_snapshot!(run.stderr, @"
        error[unknown-context]: east: could not be read: kubeconfig has no context `east`
        help: known contexts: `alpha`, `admin@west`; write `--context east=CONTEXT`

        1 error
        ");
    }

    #[test]
    fn a_mesh_is_proposed_from_contexts() {
        let nodes = |cluster| dump(cluster)["items"].as_array().unwrap().clone();
        let servers = [1, 2].map(|cluster| Setup::nodes(&nodes(cluster)).start());
        let folder = Folder::empty();
        reach(&folder, [&servers[0], &servers[1]]);
        let written = run(&folder, &CONTEXTS);
        assert_eq!(written.code, 0, "{}", written.stderr);
        assert!(folder.read("mesh.yaml").contains("  name: prod\n"));
        let config = folder.read("clustermesh.yaml");
        assert_contains(&config, "\nclusters:\n  west: { context: \"admin@west\" }\n");
        // The contexts are those of the config from now on.
        for command in
            [&["snapshot", "--check"][..], &["render"], &["verify", "--fail-on", "warning"]]
        {
            let run = run(&folder, command);
            assert_eq!(run.code, 0, "{command:?}: {}{}", run.stdout, run.stderr);
        }
    }

    /// From Kubernetes 1.33 on, the API server shows them to those with the right to list them.
    #[test]
    fn ranges_of_services_are_those_of_the_api_server() {
        const PATH: &str = "/apis/networking.k8s.io/v1/servicecidrs";
        let nodes = |cluster| dump(cluster)["items"].as_array().unwrap().clone();
        let ranges = json!({
            "kind": "ServiceCIDRList",
            "apiVersion": "networking.k8s.io/v1",
            "items": [
                { "metadata": { "name": "kubernetes" }, "spec": { "cidrs": ["10.99.0.0/16", "fd99::/112"] } },
                { "metadata": { "name": "more" }, "spec": { "cidrs": ["10.98.0.0/24", "x", 7] } },
                { "metadata": { "name": "wrong" }, "spec": {} },
            ],
        });
        let east = Setup::nodes(&nodes(1)).object(PATH, ranges).start();
        let forbidden = |request: &Request, _| {
            let is_asked = request.path == PATH;
            is_asked.then(|| Answer::failure(403, "Forbidden", "forbidden").into())
        };
        let west = Setup::nodes(&nodes(2)).fault(forbidden).start();
        let folder = Folder::empty();
        reach(&folder, [&east, &west]);
        let written = run(&folder, &CONTEXTS);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let mesh = folder.read("mesh.yaml");
        let (of_east, of_west) = mesh.split_once("- name: west").unwrap();
        insta::assert_snapshot!(of_east[of_east.find("      # Ranges").unwrap()..].trim_end(), @r#"
    # Ranges of the Services, from the API server. The line keeps Peers of other clusters out of them.
    # If other clusters should reach the Services, write instead:
    # serviceCIDR: 10.99.0.0/16
    localNetworks: [10.99.0.0/16, "fd99::/112", 10.98.0.0/24]
    "#);
        assert_contains(of_west, "# localNetworks: [RANGE]");
        let run = run(&folder, &["validate", "--output", "concise"]);
        assert_eq!(run.code, 0, "{}", run.stdout);
    }

    #[test]
    fn nothing_is_written_if_a_cluster_cannot_be_read() {
        let nodes = dump(1)["items"].as_array().unwrap().clone();
        let east = Setup::nodes(&nodes).start();
        let west = Setup::nodes(&nodes).login(Login::token("other")).start();
        let folder = Folder::empty();
        reach(&folder, [&east, &west]);
        let run = run(&folder, &CONTEXTS);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(
            run.stderr.starts_with("error[unauthorized]: west: could not be read"),
            "{}",
            run.stderr
        );
        assert_eq!(paths(&folder), ["kubeconfig"]);
    }

    /// The operator's cluster, with its meshes.
    fn hub(meshes: &Value, west: &ApiServer) -> Setup {
        let nodes = dump(1)["items"].as_array().unwrap().clone();
        let list = json!({ "kind": "ClusterMeshList", "metadata": {}, "items": meshes });
        let setup = Setup::nodes(&nodes).secret(
            ["operator", "west", "kubeconfig"],
            &kubeconfig(&[Context::new("any", &west.url())]),
        );
        setup.fault(move |request, _| {
            let is_list = request.path == "/apis/kilo.squat.ai/v1alpha1/clustermeshes";
            is_list.then(|| Answer::json(&list).into())
        })
    }

    fn mesh() -> Value {
        json!({
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "ClusterMesh",
            "metadata": {
                "name": "prod",
                "namespace": "operator",
                "finalizers": ["kilo-clustermesh.io/peers"],
                "managedFields": [],
            },
            "spec": { "clusters": [
                { "name": "east", "local": true, "allowedNetworks": ["10.1.0.0/16", "10.101.0.0/24"] },
                {
                    "name": "west",
                    "kubeconfigSecretRef": { "name": "west", "key": "kubeconfig" },
                    "allowedNetworks": ["10.2.0.0/16", "10.102.0.0/24"],
                },
            ] },
            "status": {},
        })
    }

    const OPERATOR: [&str; 2] = ["init", "--secrets-from=hub"];

    fn taken_over(meshes: &Value) -> (Folder, Run) {
        let nodes = dump(2)["items"].as_array().unwrap().clone();
        let west = Setup::nodes(&nodes).start();
        let hub = hub(meshes, &west).start();
        let folder = Folder::empty();
        folder.write("kubeconfig", kubeconfig(&[Context::new("hub", &hub.url())]));
        let run = run(&folder, &OPERATOR);
        (folder, run)
    }

    #[test]
    fn meshes_of_the_operator_are_taken_over() {
        let (folder, written) = taken_over(&json!([mesh()]));
        assert_eq!(written.code, 0, "{}", written.stderr);
        let text = folder.read("mesh.yaml");
        assert!(text.starts_with("# The ClusterMesh objects of the operator"), "{text}");
        let mut expected = mesh();
        expected.as_object_mut().unwrap().remove("status");
        expected["metadata"] = json!({ "name": "prod", "namespace": "operator" });
        assert_eq!(serde_yaml::from_str::<Value>(&text).unwrap(), expected);
        assert!(written.stdout.contains("1. Before you apply anything, scale the operator down"));
        for command in ["render", "verify"] {
            let run = folder.run(&[command]);
            assert_eq!(run.code, 0, "{command}: {}{}", run.stdout, run.stderr);
        }
    }

    #[test]
    fn what_is_no_mesh_is_not_taken_over() {
        let mut hostile = mesh();
        hostile["spec"]["clusters"][0]["name"] = "east\nkind: x".into();
        let mut foreign = mesh();
        foreign["spec"]["more"] = json!({ "\n- x": ["\u{1b}[2J"] });
        for meshes in [json!([]), json!([hostile]), json!([foreign])] {
            let (folder, run) = taken_over(&meshes);
            assert!(run.code == 1 || run.code == 2, "{}", run.stderr);
            assert_eq!(run.stdout, "");
            assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
            assert_eq!(paths(&folder), ["kubeconfig"]);
        }
        // The list is refused.
        let nodes = dump(2)["items"].as_array().unwrap().clone();
        let hub = Setup::nodes(&nodes);
        let hub = hub.fault(|_, _| Some(Answer::failure(403, "Forbidden", "no").into())).start();
        let folder = Folder::empty();
        folder.write("kubeconfig", kubeconfig(&[Context::new("hub", &hub.url())]));
        let run = run(&folder, &OPERATOR);
        for part in [
            "the right to `list` `clustermeshes.kilo.squat.ai` is missing",
            "help: grant this right",
        ] {
            assert_contains(&run.stderr, part);
        }
        assert_eq!((run.code, paths(&folder)), (2, vec!["kubeconfig".to_owned()]));
    }
}

/// A /48 for pods where IPv4 has a /16, also for the second family of a dual stack.
#[test]
fn networks_of_ipv6_are_proposed() {
    let folder = Folder::empty();
    for (cluster, name) in [(1, "east"), (2, "west")] {
        let nodes = [1, 2].map(|number| {
            let mut node = api_node(cluster, number);
            let annotations = &mut node["metadata"]["annotations"];
            annotations["kilo.squat.ai/endpoint"] =
                json!(format!("[2a01:4f8:{cluster}::{number}]:51820"));
            annotations["kilo.squat.ai/internal-ip"] =
                json!(format!("fd01:{cluster}::{number}/64"));
            annotations["kilo.squat.ai/wireguard-ip"] =
                json!(format!("fd02:{cluster}::{number}/64"));
            let pods =
                [format!("fd00:{cluster}:0:{number}::/64"), format!("10.{cluster}.{number}.0/24")];
            // Most nodes of `east` have IPv6 only.
            let families = if cluster == 1 { 1 } else { 2 };
            node["spec"] = json!({ "podCIDR": pods[0], "podCIDRs": pods[..families] });
            let address = format!("2a01:4f8:{cluster}::{number}");
            node["status"]["addresses"] = json!([{ "address": address, "type": "ExternalIP" }]);
            node
        });
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": nodes });
        folder.write(&format!("{name}-nodes.json"), list.to_string());
    }
    let from = ["east", "west"].map(|it| format!("{it}={it}-nodes.json"));
    let run = folder.run(&["init", "--from", &from[0], "--from", &from[1]]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mesh = folder.read("mesh.yaml");
    let fields = mesh.lines().map(str::trim_start);
    let fields: Vec<&str> =
        fields.filter(|it| it.contains("CIDR") && !it.starts_with('#')).collect();
    insta::assert_snapshot!(fields.join("\n"), @r#"
    podCIDRs: ["fd00:1::/48"]
    wireguardCIDR: fd02:1::/64
    podCIDRs: ["fd00:2::/48"]
    wireguardCIDR: fd02:2::/64
    "#);
    for command in [
        &["render"][..],
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
    ] {
        let run = folder.run(command);
        assert_eq!(run.code, 0, "{command:?}: {}{}", run.stdout, run.stderr);
    }
}

/// The next run completes what a killed run has left, and removes its temporary files.
#[test]
fn a_killed_run_is_completed_by_the_next() {
    let arguments: Vec<&str> =
        FROM.into_iter().chain(["--gitops", "flux", "--ci", "github"]).collect();
    let whole = dumps([1, 3]);
    let start = Instant::now();
    let run = whole.run(&arguments);
    let took = start.elapsed();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (mut killed, mut begun) = (0, 0);
    for round in 0..40 {
        let folder = dumps([1, 3]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
            .env_clear()
            .current_dir(folder.path(""))
            .args(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(took * round / 40);
        // SIGKILL
        child.kill().unwrap();
        let status = child.wait().unwrap();
        killed += u32::from(status.code().is_none());
        begun += u32::from(folder.path("clustermesh.yaml").exists());
        // What a kill leaves between the creation of a file and its rename.
        folder.write(".clustermesh-tmp-a1B2c3", "half");
        folder.write("flux/.clustermesh-tmp-a1B2c3", "half");
        if folder.path("mesh.yaml").exists() {
            let saved = folder.path("snapshots/east.json").exists()
                && folder.path("snapshots/west.json").exists();
            assert!(saved, "the mesh was written first, round {round}");
            continue;
        }
        let run = folder.run(&arguments);
        assert_eq!(run.code, 0, "round {round}: {}", run.stderr);
        assert_eq!(paths(&folder), paths(&whole), "round {round}");
        assert_eq!(folder.read("mesh.yaml"), whole.read("mesh.yaml"));
    }
    assert!(0 < killed && begun < 40, "{killed} killed, {begun} begun");
}

/// A snapshot that cannot be written leaves no mesh, so the next run completes it.
#[test]
fn without_its_snapshots_there_is_no_mesh() {
    let folder = dumps([1, 3]);
    let run = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "bash"])
        .arg(env!("CARGO_BIN_EXE_clustermesh"))
        .args(FROM)
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{text}");
    assert_contains(&text, "snapshots/east.json");
    assert!(folder.path("clustermesh.yaml").exists());
    assert!(!folder.path("mesh.yaml").exists());
    let run = folder.run(&FROM);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.path("mesh.yaml").exists());
}
