//! Meshes that policies narrow, and mistakes in policies.

use std::fmt::Write as _;

use super::*;
use crate::mesh::tests::mesh;

/// The meshes of a text, narrowed by policies of clusters, and what is reported about them.
fn narrowed(mesh: &str, policies: &[(&str, &str)]) -> (Vec<Mesh>, String) {
    let source = Source::parse("mesh.yaml", mesh).unwrap();
    let mut meshes = mesh::read(&[source]).meshes;
    let (mut read, mut report) = (Vec::new(), String::new());
    for (cluster, spec) in policies {
        let head = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: ";
        let source = Source::parse(format!("{cluster}.yaml"), format!("{head}{spec}\n")).unwrap();
        match super::read(&cluster.parse().unwrap(), &source) {
            Ok(policy) => read.push(policy),
            Err(problems) => {
                report.push_str(&crate::document::tests::report(&source, &problems));
            }
        }
    }
    for finding in apply(&read, &mut meshes, true) {
        let Finding { severity, rule, message, help, .. } = finding;
        writeln!(report, "{severity}[{}]: {message}", rule.name()).unwrap();
        report.extend(help.map(|it| format!("  help: {it}\n")));
    }
    (meshes, report)
}

fn three() -> String {
    mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16", "c: 10.2.0.0/16"])
}

fn names(names: &[&str]) -> Vec<ClusterName> {
    names.iter().map(|it| it.parse().unwrap()).collect()
}

#[test]
fn a_link_needs_both_ends() {
    let (meshes, report) = narrowed(&three(), &[("a", "{ acceptedClusters: [b] }")]);
    let [a, b, c] = names(&["a", "b", "c"]).try_into().unwrap();
    let links = |one, other| meshes[0].links(one, other);
    assert!(links(&a, &b) && links(&b, &a) && links(&b, &c));
    assert!(!links(&a, &c) && !links(&c, &a));
    insta::assert_snapshot!(report, @"
    warning[one-sided-link]: the policy does not accept `c`, which mesh `m` links to `a`, so they exchange no Peers
      help: add `c` to `acceptedClusters` if the link is intended; otherwise unlink the clusters with the mesh's `topology`
    ");
}

#[test]
fn clusters_that_refuse_each_other_are_reported_once() {
    let policies = [("a", "{ acceptedClusters: [b] }"), ("c", "{ acceptedClusters: [b] }")];
    let (meshes, report) = narrowed(&three(), &policies);
    let [a, c] = names(&["a", "c"]).try_into().unwrap();
    assert!(!meshes[0].links(&a, &c));
    insta::assert_snapshot!(report, @"
    notice[refused-link]: mesh `m` links `c` to `a`, and the policies of both sides refuse it, so they exchange no Peers
      help: if the link is intended, add `c` here and `a` to `acceptedClusters` of `c`; otherwise unlink the clusters with the mesh's `topology`
    ");
}

#[test]
fn an_empty_list_accepts_no_cluster_and_none_accepts_all() {
    let (meshes, _) = narrowed(&three(), &[("a", "{ acceptedClusters: [] }"), ("b", "{}")]);
    let [a, b, c] = names(&["a", "b", "c"]).try_into().unwrap();
    assert!(!meshes[0].links(&a, &b) && !meshes[0].links(&c, &a) && meshes[0].links(&b, &c));
}

#[test]
fn ranges_must_be_in_the_lists_of_mesh_and_policy() {
    let wide = three()
        .replace("10.0.0.0/16]", "10.0.0.0/16], acceptedNetworks: [10.1.0.0/16, 10.3.0.0/16]");
    let accepted = |spec: &str| {
        let (meshes, report) = narrowed(&wide, &[("a", spec)]);
        assert_eq!(report, "");
        let lists = meshes[0].entries[0].accepted_lists();
        let texts = lists.map(|list| list.iter().map(|it| it.cidr.to_string()).collect());
        texts.collect::<Vec<Vec<String>>>()
    };
    let of_mesh = ["10.1.0.0/16", "10.3.0.0/16"];
    assert_eq!(accepted("{}"), [of_mesh]);
    // Nothing in common is nothing, and not everything.
    let policy = accepted("{ acceptedNetworks: [10.9.0.0/16] }");
    assert_eq!(policy, [&of_mesh[..], &["10.9.0.0/16"]]);
}

#[test]
fn local_networks_are_added() {
    let (meshes, _) = narrowed(&three(), &[("a", "{ localNetworks: [192.168.1.0/24] }")]);
    let local = meshes[0].entries[0].local_networks.iter();
    assert_eq!(local.map(|it| it.cidr.to_string()).collect::<Vec<_>>(), ["192.168.1.0/24"]);
}

#[test]
fn mistakes_are_reported() {
    let policies = [
        ("a", "{ acceptedClusters: [d, B], acceptedNetworks: [10.0.0.0] }"),
        ("b", "{ acceptedNetworks: [], localNetworks: [0.0.0.0/0], acceptedCluster: [c] }"),
        ("c", "{ acceptedClusters: [a, bb, b] }"),
    ];
    insta::assert_snapshot!(narrowed(&three(), &policies).1, @"
    error[invalid-range]: invalid range: `10.0.0.0` has no prefix length such as `/16`
      3:54 | 10.0.0.0
      help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
    error[invalid-value]: `B` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
      3:31 | B
      help: write `b`
    error[invalid-value]: `acceptedNetworks` needs at least 1 item, not 0
      3:27 | []
    error[unknown-field]: unknown field `acceptedCluster`
      3:59 | acceptedCluster
      help: did you mean `acceptedClusters`?
    warning[unknown-cluster]: no mesh has a cluster `bb`
      help: did you mean `b`?
    ");
}
