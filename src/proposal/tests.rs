use proptest::prelude::*;

use super::*;
use crate::snapshot::{Address, AddressKind, Node};
use crate::string_map::StringMap;

mod several;

/// Returns a node of a cluster with its own /16 and /24.
fn node(cluster: u8, number: u8) -> Node {
    let annotations = [
        ("key", format!("{cluster}-{number}")),
        ("wireguard-ip", format!("10.{}.0.{number}/16", 200 + cluster)),
        ("granularity", "full".to_owned()),
        ("endpoint", format!("198.51.100.{number}:51820")),
    ];
    let annotations = annotations.map(|(key, value)| (format!("kilo.squat.ai/{key}"), value));
    Node {
        name: format!("n{number}"),
        addresses: vec![Address {
            address: format!("198.51.100.{number}"),
            kind: AddressKind::ExternalIP,
        }],
        annotations: annotations.into_iter().collect(),
        pod_cidrs: vec![format!("10.{cluster}.{number}.0/24")],
        ..Node::default()
    }
}

fn nodes(cluster: u8) -> Vec<Node> {
    (1..=3).map(|number| node(cluster, number)).collect()
}

fn annotate(node: &mut Node, key: &str, value: &str) {
    node.annotations.insert(format!("kilo.squat.ai/{key}"), value);
}

fn proposed(clusters: [Vec<Node>; 2]) -> Result<Proposal, Vec<Obstacle>> {
    let names = ["east", "west"].map(|it| it.parse().unwrap());
    let snapshots = names.into_iter().zip(clusters);
    let snapshots = snapshots.map(|(name, nodes)| Snapshot::new(name, nodes).unwrap());
    Proposal::new("prod".parse().unwrap(), &snapshots.collect::<Vec<_>>())
}

fn yaml(clusters: [Vec<Node>; 2]) -> String {
    proposed(clusters).unwrap().to_yaml()
}

/// Returns the entries without comments.
fn entries(clusters: [Vec<Node>; 2]) -> String {
    let yaml = yaml(clusters);
    let lines = yaml.lines().skip_while(|it| *it != "  clusters:").skip(1);
    let lines = lines.filter(|it| !it.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

fn obstacles(clusters: [Vec<Node>; 2]) -> String {
    let obstacles = proposed(clusters).unwrap_err();
    let texts = obstacles.iter().map(|it| format!("{it}\n  help: {}\n", it.help()));
    texts.collect()
}

#[test]
fn every_line_has_a_reason() {
    let east = (0..3).map(|number| Node {
        pod_cidrs: vec![format!("10.42.{number}.0/24"), format!("fd00:42:0:{number}::/64")],
        ..node(1, number + 1)
    });
    let mut west = nodes(2);
    west[0].pod_cidrs = vec!["172.16.0.0/24".to_owned()];
    for (node, endpoint) in
        west.iter_mut().zip(["a.nodes.example.org:7", "b.nodes.example.org:7", "192.168.0.1:7"])
    {
        node.addresses.clear();
        annotate(node, "force-endpoint", endpoint);
    }
    west[2].annotations.remove("kilo.squat.ai/force-endpoint");
    annotate(&mut west[2], "endpoint", "192.168.0.1:7");
    annotate(&mut west[2], "persistent-keepalive", "25");
    insta::assert_snapshot!(yaml([east.collect(), west]), @r#"
    # Proposed by `clustermesh init` from the nodes of each cluster. Check every line before you commit it.
    # The order is the order of trust: if two clusters claim the same key, the first one keeps it. Ranges must not
    # overlap. `clustermesh schema mesh` describes all fields.
    apiVersion: kilo.squat.ai/v1alpha1
    kind: ClusterMesh
    metadata:
      # The name of every Peer begins with it, so choose it before the first render.
      name: prod
    spec:
      clusters:
        - name: east
          # Contains the IPv4 pod CIDRs of all 3 nodes, the default of k3s.
          # The pods also have addresses in fd00:42::/48. They are left out, as no cluster here routes IPv6.
          # Put the `--cluster-cidr` of the cluster here if it is another range.
          podCIDRs: [10.42.0.0/16]
          # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
          wireguardCIDR: 10.201.0.0/16
          # Kilo's `--mesh-granularity`, as most nodes report it.
          granularity: Full
          # `--service-cidr`, if other clusters should reach the Services:
          # serviceCIDR: 10.43.0.0/16
          # Otherwise, this keeps their Peers out of that range:
          # localNetworks: [10.43.0.0/16]
        - name: west
          # Contains the pod CIDRs of 2 of 3 nodes.
          # Put the `--cluster-cidr` of the cluster here if it is another range.
          podCIDRs: [10.2.0.0/16]
          # Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on all 3 nodes.
          wireguardCIDR: 10.202.0.0/16
          # Kilo's `--mesh-granularity`, as most nodes report it.
          granularity: Full
          # The endpoints of most nodes are these names. The owner of their domain may change where
          # they lead, so trust it, or use addresses.
          endpointDomains: [a.nodes.example.org, b.nodes.example.org]
          # Most nodes listen on this port (Kilo's `--port`).
          wireguardPort: 7
          # Nodes behind NAT, or without an endpoint (1 of 3 nodes), dial the other clusters and keep
          # the tunnel open. They need the annotation `kilo.squat.ai/persistent-keepalive: "25"`.
          persistentKeepalive: 25
          # `--service-cidr`, if other clusters should reach the Services:
          # serviceCIDR: RANGE
          # Otherwise, this keeps their Peers out of that range:
          # localNetworks: [RANGE]
    "#);
}

#[test]
fn a_minority_changes_nothing() {
    let usual = entries([nodes(1), nodes(2)]);
    insta::assert_snapshot!(usual, @"
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.201.0.0/16
      granularity: Full
    - name: west
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.202.0.0/16
      granularity: Full
    ");
    let mut east = nodes(1);
    let liar = &mut east[0];
    liar.pod_cidrs = vec!["10.2.0.0/24".to_owned(), "fd00::/64".to_owned()];
    annotate(liar, "wireguard-ip", "10.202.0.9/8");
    annotate(liar, "granularity", "cross");
    annotate(liar, "endpoint", "198.51.100.9:7");
    annotate(liar, "force-endpoint", "198.51.100.9:7");
    liar.name = "n1\n      # wireguardCIDR: 0.0.0.0/0".to_owned();
    assert_eq!(entries([east, nodes(2)]), usual);
}

#[test]
fn nodes_behind_nat_dial() {
    let private = |cluster: u8| {
        let mut nodes = nodes(cluster);
        for node in &mut nodes {
            node.addresses[0].kind = AddressKind::InternalIP;
            annotate(node, "endpoint", "100.64.0.1:51820");
            annotate(node, "persistent-keepalive", "25");
        }
        nodes
    };
    insta::assert_snapshot!(entries([private(1), nodes(2)]), @"
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.201.0.0/16
      granularity: Full
      persistentKeepalive: 25
    - name: west
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.202.0.0/16
      granularity: Full
    ");
    // No node can be dialled but at an internal address.
    let both = entries([private(1), private(2)]);
    assert_eq!(both.matches("persistentKeepalive: 25").count(), 2, "{both}");
    let mut silent = private(1);
    for node in &mut silent {
        annotate(node, "persistent-keepalive", "0");
    }
    let silent = entries([silent, nodes(2)]);
    assert!(silent.contains("persistentKeepalive: 25"), "{silent}");
    assert!(!silent.contains("InternalIP"), "{silent}");
    // As many call as do not.
    let mut half = private(1);
    half.push(node(1, 4));
    half[3].addresses[0].kind = AddressKind::InternalIP;
    annotate(&mut half[3], "persistent-keepalive", "25");
    for node in &mut half[..2] {
        annotate(node, "persistent-keepalive", "0");
    }
    let half = entries([half, nodes(2)]);
    assert!(half.contains("persistentKeepalive: 25"), "{half}");
    assert!(!half.contains("InternalIP"), "{half}");
    let mut found = private(1);
    for node in &mut found {
        annotate(node, "endpoint", "198.51.100.7:51820");
    }
    let found = entries([found, nodes(2)]);
    assert!(found.contains("endpointFrom: [Annotation, ExternalIP, Kilo]"), "{found}");
    assert!(!found.contains("persistentKeepalive"), "{found}");
}

#[test]
fn a_cluster_without_kilo_gets_a_free_range() {
    let mut west = nodes(2);
    for node in &mut west {
        node.annotations = StringMap::default();
    }
    let mut east = nodes(1);
    for node in &mut east {
        annotate(node, "wireguard-ip", "10.4.0.1/16");
    }
    let yaml = yaml([east, west]);
    assert!(yaml.contains("wireguardCIDR: 10.6.0.0/16"), "{yaml}");
    assert!(yaml.contains("Start it with `--subnet=10.6.0.0/16`"), "{yaml}");
}

/// The upstream form of the operator's README.
#[test]
fn addresses_with_the_length_of_a_host_do_not_show_the_subnet() {
    let mut east = nodes(1);
    annotate(&mut east[0], "wireguard-ip", "10.201.0.1/32");
    let usual = entries([nodes(1), nodes(2)]);
    assert_eq!(entries([east.clone(), nodes(2)]), usual);
    east.truncate(1);
    insta::assert_snapshot!(obstacles([east, nodes(2)]), @"
    the WireGuard addresses of the nodes show no common network
      help: write mesh.yaml by hand, with the `--subnet` of all Kilo agents in `wireguardCIDR`
    ");
}

#[test]
fn a_large_pool_is_wider() {
    let many = (0..=255).flat_map(|third| (0..3).map(move |second| (second, third)));
    let many = many.map(|(second, third)| Node {
        name: format!("n{second}-{third}"),
        pod_cidrs: vec![format!("10.{}.{third}.0/24", 8 + second)],
        ..node(1, third)
    });
    let entries = entries([many.collect(), nodes(2)]);
    assert!(entries.contains("podCIDRs: [10.8.0.0/15]"), "{entries}");
}

#[test]
fn ranges_that_share_a_16_are_narrowed() {
    let mut west = nodes(1);
    for (number, node) in (64..).zip(&mut west) {
        node.pod_cidrs = vec![format!("10.1.{number}.0/24")];
        annotate(node, "wireguard-ip", "10.202.0.1/16");
    }
    let entries = entries([nodes(1), west]);
    assert!(entries.contains("podCIDRs: [10.1.0.0/22]"), "{entries}");
    assert!(entries.contains("podCIDRs: [10.1.64.0/22]"), "{entries}");
}

#[test]
fn what_cannot_be_joined_is_not_proposed() {
    insta::assert_snapshot!(obstacles([nodes(1), nodes(1)]), @"
    the pod range 10.1.0.0/16 of `west` overlaps the pod range 10.1.0.0/16 of `east`
      help: clusters with common pod addresses cannot be joined: rebuild `west` with a `--cluster-cidr` that no other cluster uses, such as 10.44.0.0/16
    the WireGuard range 10.201.0.0/16 of `west` overlaps the WireGuard range 10.201.0.0/16 of `east`
      help: start Kilo in `west` with a `--subnet` that no other cluster uses, such as 10.4.0.0/16; then run `clustermesh init` again
    ");
    let mut default = [nodes(1), nodes(2)];
    for node in default.iter_mut().flatten() {
        annotate(node, "wireguard-ip", "10.4.0.1/16");
    }
    insta::assert_snapshot!(obstacles(default), @"
    the WireGuard range 10.4.0.0/16 of `west` overlaps the WireGuard range 10.4.0.0/16 of `east`
      help: start Kilo in `west` with a `--subnet` that no other cluster uses, such as 10.6.0.0/16; then run `clustermesh init` again
    ");
    let mut west = nodes(2);
    for (number, node) in (1..).zip(&mut west) {
        node.pod_cidrs.clear();
        annotate(node, "wireguard-ip", &format!("10.{number}.0.1/16"));
    }
    let mut east = nodes(1);
    east.truncate(2);
    east[1].pod_cidrs = vec!["192.168.0.0/24".to_owned()];
    insta::assert_snapshot!(obstacles([east, west]), @"
    the pod CIDRs of the nodes have no common range: 1 of 2 are in 192.168.0.0/16
      help: write mesh.yaml by hand, with the `--cluster-cidr` of the cluster in `podCIDRs`
    no node has a valid pod CIDR (`spec.podCIDR`)
      help: let Kubernetes assign pod CIDRs (see `docs/how-to/which-clusters.md`); Kilo cannot work without them
    ");
    let mut everywhere = nodes(2);
    for node in &mut everywhere {
        node.pod_cidrs.push("::/0".to_owned());
    }
    let refused = obstacles([nodes(1), everywhere]);
    assert!(refused.starts_with("no valid mesh can be proposed: "), "{refused}");
}

proptest! {
    /// Texts of nodes get into no line, except as ranges that the nodes agree on.
    #[test]
    fn no_node_injects_a_line(texts in proptest::collection::vec(".{0,20}", 6)) {
        let mut east = nodes(1);
        for node in &mut east {
            node.name.clone_from(&texts[0]);
            for (key, text) in ["location", "force-endpoint", "granularity", "wireguard-ip"].into_iter().zip(&texts[1..]) {
                annotate(node, key, &format!("{text}\n# {text}"));
            }
            node.pod_cidrs.push(texts[5].clone());
        }
        for (number, node) in (0..).zip(&mut east) {
            node.name = format!("{}{number}", node.name);
        }
        if let Ok(proposal) = proposed([east, nodes(2)]) {
            let yaml = proposal.to_yaml();
            let fields = yaml.lines().map(str::trim_start).filter(|it| !it.starts_with('#'));
            for line in fields {
                let known = ["apiVersion", "kind", "metadata", "name", "spec", "clusters", "- name", "podCIDRs", "wireguardCIDR", "granularity", "endpointFrom", "endpointDomains", "wireguardPort", "persistentKeepalive"];
                prop_assert!(known.iter().any(|it| line.starts_with(&format!("{it}:"))), "{}", line);
            }
            prop_assert!(yaml.is_ascii());
        }
    }
}
