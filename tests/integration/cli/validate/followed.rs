//! Findings about what Kilo does: `validate` has one where `verify` fails, and after its help neither has any.

use clustermesh::net::Family;

use crate::cli::*;
use crate::support::assert_contains;

/// Returns the rules of the findings of `validate` about a cluster, with what helps.
fn found(folder: &Folder, cluster: &str) -> Vec<(String, String)> {
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let about = findings.filter(|it| it["cluster"] == cluster);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    about.map(|it| (text(&it["rule"]), text(&it["help"]))).collect()
}

/// Renders, and returns the exit code of `verify`.
fn verified(folder: &Folder) -> i32 {
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    folder.run(&["verify"]).code
}

#[test]
fn a_pod_cidr_of_a_node_that_is_left_out() {
    // Both are claims of one node, and excused.
    for (name, pods) in [("a0", "10.1.1.0/24"), ("z0", "10.1.1.128/25")] {
        let folder = Folder::mesh();
        let mut other = node(1, 9);
        other["name"] = json!(name);
        other["podCIDRs"] = json!([pods]);
        // Other clusters cannot dial it, and its own cluster can.
        other["addresses"] = json!([]);
        folder.keep("east", &[node(1, 1), node(1, 2), other.clone()]);
        assert_eq!(verified(&folder), 0);
        let found = found(&folder, "east");
        let overlap = found.iter().find(|it| it.0 == "overlapping-node-pod-cidr").unwrap();
        assert_contains(&overlap.1, "`kubectl --context east get node ");
        assert_contains(&overlap.1, &format!("{name} "));
        assert!(!overlap.1.contains("delete"), "{}", overlap.1);
        other["podCIDRs"] = json!(["10.1.9.0/24"]);
        folder.keep("east", &[node(1, 1), node(1, 2), other]);
        assert_eq!(verified(&folder), 0);
        let rules: Vec<String> = self::found(&folder, "east").into_iter().map(|it| it.0).collect();
        assert_eq!(rules, ["missing-endpoint"]);
    }
}

/// The upstream form of the operator's README.
#[test]
fn wireguard_addresses_that_do_not_show_the_subnet() {
    let folder = Folder::mesh();
    let nodes = [1, 2, 3, 4].map(|it| {
        let mut node = node(1, it);
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(format!("10.101.0.{it}/32"));
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(verified(&folder), 0);
    assert_eq!(found(&folder, "east"), []);
}

/// The families of a cluster: of its pod CIDRs in their order, its internal IPs, and Kilo's subnet.
#[derive(Clone, Copy, Debug)]
struct Families {
    pods: &'static [Family],
    internal: Family,
    subnet: Family,
}

const V4: Families = Families { pods: &[Family::V4], internal: Family::V4, subnet: Family::V4 };

const V6: Families = Families { pods: &[Family::V6], internal: Family::V6, subnet: Family::V6 };

const V4_FIRST: &[Family] = &[Family::V4, Family::V6];
const V6_FIRST: &[Family] = &[Family::V6, Family::V4];

impl Families {
    /// Returns the entry of a cluster.
    fn entry(self, name: &str, number: u8) -> String {
        let pods = self.pods.iter().map(|it| match it {
            Family::V4 => format!("10.{number}.0.0/16"),
            Family::V6 => format!("'fd00:{number}::/32'"),
        });
        let pods: Vec<String> = pods.collect();
        let subnet = match self.subnet {
            Family::V4 => format!("10.10{number}.0.0/24"),
            Family::V6 => format!("'fd00:10{number}::/112'"),
        };
        let pods = pods.join(", ");
        format!("    - name: {name}\n      podCIDRs: [{pods}]\n      wireguardCIDR: {subnet}\n")
    }

    /// Returns a node of a cluster.
    fn node(self, cluster: u8, number: u8) -> Value {
        let mut node = node(cluster, number);
        let pods = self.pods.iter().map(|it| match it {
            Family::V4 => format!("10.{cluster}.{number}.0/24"),
            Family::V6 => format!("fd00:{cluster}:{number}::/64"),
        });
        node["podCIDRs"] = pods.collect();
        if self.internal == Family::V6 {
            let address = format!("fd00:9{cluster}::{number}/64");
            node["annotations"]["kilo.squat.ai/internal-ip"] = json!(address);
        }
        if self.subnet == Family::V6 {
            let address = format!("fd00:10{cluster}::{number}/112");
            node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(address);
        }
        node
    }

    /// Does what a help text demands.
    fn following(self, help: &str) -> Self {
        let wanted = |is_v4: bool| if is_v4 { Family::V4 } else { Family::V6 };
        let pods = match self.pods {
            V4_FIRST if help.contains("--cluster-cidr") => V6_FIRST,
            V6_FIRST if help.contains("--cluster-cidr") => V4_FIRST,
            pods => pods,
        };
        let internal = match help.split_once("force-internal-ip=") {
            Some((_, address)) => wanted(address.starts_with("192.168.")),
            None => self.internal,
        };
        let subnet = match help.split_once("--subnet ") {
            Some((_, subnet)) => wanted(subnet.starts_with("10.")),
            None => self.subnet,
        };
        Self { pods, internal, subnet }
    }
}

/// Clusters `east` and `west` with three nodes each.
fn two_of(east: Families, west: Families) -> Folder {
    let folder = Folder::empty();
    let (head, _) = MESH.split_once("    - name").unwrap();
    let entries = east.entry("east", 1) + &west.entry("west", 3);
    folder.write("mesh.yaml", format!("{head}{entries}"));
    for (name, number, families) in [("east", 1, east), ("west", 3, west)] {
        folder.keep(name, &[1, 2, 3].map(|it| families.node(number, it)));
    }
    folder
}

/// Of two clusters, the first has addresses of both families.
const MIXED: [(Families, Families); 7] = [
    (Families { pods: V6_FIRST, ..V4 }, V4),
    (Families { pods: V6_FIRST, ..V4 }, Families { pods: V4_FIRST, ..V4 }),
    (Families { internal: Family::V6, ..V4 }, V4),
    (Families { internal: Family::V6, subnet: Family::V6, ..V4 }, V4),
    (Families { pods: V4_FIRST, internal: Family::V6, ..V4 }, V6),
    (Families { subnet: Family::V4, ..V6 }, V6),
    (Families { internal: Family::V4, subnet: Family::V4, ..V6 }, V6),
];

#[test]
fn addresses_of_two_families_in_one_cluster() {
    for (mut east, west) in MIXED {
        let folder = two_of(east, west);
        assert_eq!(folder.run(&["render", "--allow-empty", "*"]).code, 0);
        let report = folder.run(&["verify"]);
        assert_eq!(report.code, 1, "{east:?} {west:?} {}", report.stdout);
        let found = found(&folder, "east");
        let mixed = found.iter().find(|it| it.0 == "mismatched-subnet");
        let (_, help) = mixed.unwrap_or_else(|| panic!("{east:?} {west:?} {found:?}"));
        east = east.following(help);
        let folder = two_of(east, west);
        assert_eq!(verified(&folder), 0, "{help} {east:?} {west:?}");
        for cluster in ["east", "west"] {
            let found = self::found(&folder, cluster);
            let is_left = |it: &(String, String)| it.0 != "unroutable-family";
            assert!(!found.iter().any(is_left), "{help} {east:?} {found:?}");
        }
    }
}

#[test]
fn clusters_of_different_families() {
    let partner = Families { pods: V4_FIRST, ..V4 };
    for (six, four) in [(Families { pods: V6_FIRST, ..V6 }, V4), (V6, partner)] {
        let folder = two_of(six, four);
        let found = found(&folder, "east");
        let different = found.iter().find(|it| it.0 == "different-families");
        let (_, help) = different.unwrap_or_else(|| panic!("{found:?}"));
        let folder = if help.starts_with("in `east`") {
            two_of(six.following(help), four)
        } else {
            two_of(six, four.following(help))
        };
        assert_eq!(verified(&folder), 0, "{help}");
        let found = self::found(&folder, "east");
        assert!(!found.iter().any(|it| it.0.contains("families")), "{help} {found:?}");
    }
    // No family is common to their pods.
    let folder = two_of(V6, V4);
    let found = found(&folder, "east");
    let different = found.iter().find(|it| it.0 == "different-families").unwrap();
    assert!(!different.1.contains("kubectl"), "{}", different.1);
}

/// Runs the commands of help texts that change location ranges.
fn annotate(nodes: &mut [Value], helps: &[(String, String)]) {
    const KEY: &str = "kilo.squat.ai/allowed-location-ips";
    for (_, help) in helps {
        let commands =
            help.split('`').filter(|it| it.starts_with("kubectl --context east annotate"));
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            let [.., name, "--overwrite", change] = words[..] else { panic!("{command}") };
            let node = nodes.iter_mut().find(|it| it["name"] == name).unwrap();
            let annotations = node["annotations"].as_object_mut().unwrap();
            match change.strip_prefix(KEY).unwrap().strip_prefix('=') {
                Some(ranges) => annotations.insert(KEY.to_owned(), json!(ranges)),
                None => annotations.remove(KEY),
            };
        }
    }
}

#[test]
fn contested_location_ranges() {
    let folder = Folder::mesh();
    let entry = "wireguardCIDR: 10.101.0.0/24";
    let declared = format!("{entry}\n      additionalCIDRs: [172.31.0.0/16]");
    folder.edit("mesh.yaml", entry, &declared);
    for offers in [
        // Of one another, equal, nested twice, and from two nodes of a location.
        ["172.31.0.0/24", "172.31.0.0/24", "", ""],
        ["172.31.0.0/22", "172.31.1.0/24", "172.31.0.0/23", ""],
        ["172.31.1.0/24", "172.31.0.0/22", "", "172.31.0.0/21"],
        ["172.31.0.0/23", "172.31.0.0/22", "172.31.1.0/24", ""],
        ["172.31.1.0/24,172.31.9.0/24", "172.31.0.0/22", "172.31.9.0/24", ""],
        // Of Peers, of what their clusters declare, and of nodes of another location.
        ["10.3.0.0/22", "10.3.1.0/25", "", ""],
        ["10.3.7.0/24", "", "", ""],
        ["192.168.1.0/24,172.31.9.0/24", "10.1.1.0/26", "", ""],
        ["172.31.0.0/22,10.3.0.0/22", "172.31.1.0/24,10.3.0.0/24", "", "10.3.0.0/16"],
    ] {
        let mut nodes: Vec<Value> = [1, 2, 3, 4].map(|it| node(1, it)).into();
        for (node, (offer, location)) in
            nodes.iter_mut().zip(offers.into_iter().zip("abcb".chars()))
        {
            let annotations = node["annotations"].as_object_mut().unwrap();
            annotations["kilo.squat.ai/granularity"] = json!("location");
            annotations.insert("kilo.squat.ai/location".to_owned(), json!(location.to_string()));
            if !offer.is_empty() {
                annotations.insert("kilo.squat.ai/allowed-location-ips".to_owned(), json!(offer));
            }
        }
        nodes[3]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
        folder.keep("east", &nodes);
        let about = |folder: &Folder| {
            let mut found = found(folder, "east");
            found.retain(|it| it.0.contains("location-range"));
            found
        };
        let before = about(&folder);
        annotate(&mut nodes, &before);
        folder.keep("east", &nodes);
        let mut after = about(&folder);
        // What was not declared before is not declared after that.
        after.retain(|it| !before.contains(it));
        assert_eq!(after, [], "{offers:?} {before:?}");
        let contested = |it: &(String, String)| it.0 == "contested-location-range";
        assert_eq!(before.iter().any(contested), offers[0] != "10.3.7.0/24");
    }
}
