//! Meshes with every field, topology and style: converted in both directions, nothing but the
//! networks changes.

use serde::Deserialize as _;
use serde_yaml::Value;

use super::*;

const TOPOLOGIES: [&str; 5] = [
    "",
    "  topology: { mode: FullMesh } # all\n",
    "  topology:\n    mode: Hub # the middle\n    hubs: [c1]\n",
    "  topology:\n    mode: Hub\n    hubs:\n      - c0\n      - \"c1\" # and this one\n",
    "  topology:\n    mode: Links\n    links:\n      - [c0, c1] # first\n      - [\"c1\", c2]\n",
];

/// Fields that stay what they are, on lines of their own, with comments and with text that looks like one.
const OTHERS: [&str; 13] = [
    "state: Joining # soon",
    "local: true",
    "kubeconfigSecretRef: { name: a, key: \"k\" } # of the operator",
    "kubeconfigSecretRef:\n        # its name\n        name: a\n        key: k",
    "wireguardPort: 51821",
    "persistentKeepalive: 25 # behind NAT",
    "nodeSelector: { matchExpressions: [{ key: gone, operator: DoesNotExist }] }",
    "nodeSelector:\n        matchExpressions: # all\n          - key: gone\n            operator: DoesNotExist",
    "granularity: Full",
    "topologyLabel: 'example.com/region'",
    "endpointFrom: [ExternalIP, Annotation]\n      endpointDomains:\n        - b.example # allowedNetworks: []",
    "acceptedNetworks: [10.0.0.0/8] # podCIDRs: [10.9.0.0/16]\n      localNetworks:\n        # the LAN\n        - 172.29.0.0/24",
    "anchors:\n        - ranges: [10.{services}.0.0/16]\n          nodes: [n{cluster}]\n          count: 1",
];

/// The layout of fields and ranges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Layout {
    /// All between braces.
    Flow,
    /// A field on each line.
    Fields,
    /// A range on each line.
    Ranges,
}

/// The notation of an entry.
#[derive(Clone, Debug)]
struct Style {
    is_flat: bool,
    layout: Layout,
    has_comments: bool,
    /// Its fields of [`OTHERS`], as bits, and those of them that are written before the networks.
    others: u16,
    before: u16,
}

fn style() -> impl Strategy<Value = Style> {
    let layout = prop_oneof![
        Just(Layout::Flow),
        Just(Layout::Fields),
        Just(Layout::Ranges)
    ];
    let all = (
        any::<bool>(),
        layout,
        any::<bool>(),
        any::<u16>(),
        any::<u16>(),
    );
    all.prop_map(|(is_flat, layout, has_comments, others, before)| Style {
        is_flat,
        layout,
        has_comments,
        others,
        before,
    })
}

/// Returns the other fields of an entry, before and after its networks. A field is never there twice.
fn others(cluster: usize, style: &Style) -> [Vec<String>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    let mut last = "";
    for (bit, field) in OTHERS.iter().enumerate() {
        let name = field.split(':').next().unwrap();
        // A cluster that is not joined renders nothing.
        let is_possible = match name {
            "state" => cluster == 2,
            "local" => cluster == 0,
            _ => name != last,
        };
        let is_there = style.others >> bit & 1 == 1 && is_possible;
        if is_there {
            last = name;
            let field = field.replace("{services}", &(31 + cluster).to_string());
            let field = field.replace("{cluster}", &cluster.to_string());
            parts[usize::from(style.before >> bit & 1 == 1)].push(field);
        }
    }
    parts
}

fn networks(cluster: usize, style: &Style) -> Vec<(&'static str, Vec<String>)> {
    let pods = format!("10.{}.0.0/16", 1 + cluster);
    let wireguard = format!("10.{}.0.0/24", 201 + cluster);
    let services = format!("10.{}.0.0/16", 31 + cluster);
    let more = ["'10.4", "\"10.5"].map(|it| {
        let quote = &it[..1];
        format!("{it}{cluster}.0.0/24{quote}")
    });
    if style.is_flat {
        let [one, two] = more;
        return vec![("allowedNetworks", vec![services, pods, one, wireguard, two])];
    }
    vec![
        ("serviceCIDR", vec![services]),
        ("podCIDRs", vec![pods]),
        ("additionalCIDRs", more.to_vec()),
        ("wireguardCIDR", vec![wireguard]),
    ]
}

/// Writes an entry, and adds its comments beside networks to `comments`.
fn entry(cluster: usize, style: &Style, comments: &mut Vec<String>) -> String {
    let [after, before] = others(cluster, style);
    let networks = networks(cluster, style);
    if style.layout == Layout::Flow {
        let mut fields = vec![format!("name: c{cluster}")];
        let one = |it: &String| !it.contains(['\n', '#']);
        fields.extend(before.into_iter().filter(one));
        for (name, values) in networks {
            let values = values.join(", ");
            let is_list = name != "serviceCIDR" && name != "wireguardCIDR";
            fields.push(if is_list {
                format!("{name}: [{values}]")
            } else {
                format!("\"{name}\": {values}")
            });
        }
        fields.extend(after.into_iter().filter(one));
        return format!("    - {{ {} }}\n", fields.join(", "));
    }
    let mut comment = || {
        if !style.has_comments {
            return String::new();
        }
        comments.push(format!("# c{}.", comments.len()));
        format!(" {}", comments[comments.len() - 1])
    };
    let mut text = format!("    # of c{cluster}\n    - name: c{cluster} # named\n");
    for field in before {
        let _ = writeln!(text, "      {field}");
    }
    for (name, values) in networks {
        if style.has_comments {
            let _ = writeln!(text, "     {}", comment());
        }
        if name == "serviceCIDR" || name == "wireguardCIDR" {
            let _ = writeln!(text, "      {name}: {}{}", values[0], comment());
        } else if style.layout == Layout::Ranges {
            let _ = writeln!(text, "      {name}:{}", comment());
            for value in values {
                let _ = writeln!(text, "        - {value}{}", comment());
            }
        } else {
            let _ = writeln!(text, "      {name}: [{}]{}", values.join(", "), comment());
        }
    }
    for field in after {
        let _ = writeln!(text, "      {field}");
    }
    text
}

fn nodes_of(cluster: usize) -> (ClusterName, SnapshotFile) {
    let name: ClusterName = format!("c{cluster}").parse().unwrap();
    let line = format!(
        "n{cluster} pod=10.{}.1.0/24 wg=10.{}.0.1/16 key={} external=198.18.113.{} granularity=full",
        1 + cluster,
        201 + cluster,
        ["A", "B", "C"][cluster],
        1 + cluster
    );
    let snapshot = Arc::new(Snapshot::new(name.clone(), vec![testing::node(&line)]).unwrap());
    let source = Arc::from(format!("{name}.json"));
    (name, SnapshotFile { snapshot, source })
}

/// Returns a mesh without its networks.
fn rest(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text);
    let values = documents.map(|it| Value::deserialize(it).unwrap());
    let without = |mut value: Value| {
        let clusters = value["spec"]["clusters"].as_sequence_mut().unwrap();
        for cluster in clusters {
            let fields = cluster.as_mapping_mut().unwrap();
            fields.retain(|name, _| {
                let name = name.as_str().unwrap();
                !name.ends_with("CIDR") && !name.ends_with("CIDRs") && name != "allowedNetworks"
            });
        }
        value
    };
    values.filter(|it| !it.is_null()).map(without).collect()
}

fn rendered(text: &str, snapshots: &Snapshots) -> Tree {
    let (_, meshes) = read(text);
    let fleet = Fleet::new(&meshes, snapshots).unwrap();
    manifest::tree(&plan(&fleet).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn only_networks_change(
        topology in 0..TOPOLOGIES.len(),
        styles in proptest::collection::vec(style(), 3),
        is_last in any::<bool>(),
    ) {
        let mut comments = Vec::new();
        let entries: Vec<String> = styles
            .iter()
            .enumerate()
            .map(|(cluster, style)| entry(cluster, style, &mut comments))
            .collect();
        let topology = TOPOLOGIES[topology];
        let head = "# A mesh.\napiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: m } # m\nspec:\n";
        let clusters = format!("  clusters: # three\n{}", entries.concat());
        let text = if is_last {
            format!("{head}{clusters}{topology}# end\n---\n# nothing\n")
        } else {
            format!("---\n{head}{topology}{clusters}    # end\n")
        };
        let snapshots: Snapshots = (0..3).map(nodes_of).collect();
        let to = |form, text: &str| {
            let (source, meshes) = read(text);
            let converted = converted(&source, &meshes, &snapshots, form);
            converted.map_err(|findings| TestCaseError::fail(format!("{findings:#?}\n{text}")))
        };
        let tree = rendered(&text, &snapshots);
        prop_assert!(3 < tree.len(), "{}", text);
        let flat = to(NetworkForm::Flat, &text)?;
        let typed = to(NetworkForm::Typed, &flat)?;
        let comment = |it: &&str| it.contains('#');
        for converted in [&flat, &typed, &to(NetworkForm::Typed, &text)?] {
            prop_assert_eq!(&tree, &rendered(converted, &snapshots), "{}\n{}", text, converted);
            prop_assert_eq!(rest(&text), rest(converted), "{}\n{}", text, converted);
            for own in &comments {
                prop_assert_eq!(converted.matches(own.as_str()).count(), 1, "{}\n{}", own, converted);
            }
            // The lines of other fields stay, with their comments.
            for line in text.lines().filter(comment).filter(|it| !it.contains("# c")) {
                prop_assert_eq!(
                    converted.lines().filter(|it| *it == line).count(),
                    text.lines().filter(|it| *it == line).count(),
                    "{}\n{}", line, converted
                );
            }
        }
        prop_assert_eq!(to(NetworkForm::Flat, &flat)?, flat.clone());
        prop_assert_eq!(to(NetworkForm::Typed, &typed)?, typed.clone());
        for gone in ["serviceCIDR", "wireguardCIDR", "additionalCIDRs:"] {
            prop_assert!(!flat.contains(gone), "{}", flat);
        }
    }
}
