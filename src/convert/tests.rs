use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::fleet::Fleet;
use crate::manifest::{self, Tree};
use crate::plan::plan;
use crate::snapshot::Snapshot;
use crate::testing;

mod everything;

type Snapshots = BTreeMap<ClusterName, SnapshotFile>;

fn snapshots() -> Snapshots {
    testing::snapshots([
        (
            "east",
            "a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1",
        ),
        (
            "west",
            "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.113.2",
        ),
    ])
}

fn mesh_of(clusters: &str) -> String {
    format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata:\n  name: m # the mesh\nspec:\n  clusters:\n{clusters}"
    )
}

fn read(text: &str) -> (Source, Vec<Mesh>) {
    let source = Source::parse("mesh.yaml", text).unwrap();
    let reading = mesh::read(std::slice::from_ref(&source));
    assert!(reading.is_usable(), "{:#?}\n{text}", reading.diagnostics);
    (source, reading.meshes)
}

/// Converts all entries, and returns only these.
fn to(form: NetworkForm, text: &str) -> Result<String, String> {
    let (source, meshes) = read(text);
    converted(&source, &meshes, &snapshots(), form).map_err(|findings| {
        let messages = findings.iter().map(|it| format!("{}\n", it.message));
        messages.collect()
    })
}

fn entries(form: NetworkForm, clusters: &str) -> String {
    let text = to(form, &mesh_of(clusters)).unwrap();
    text.split_once("  clusters:\n").unwrap().1.to_owned()
}

fn tree(text: &str) -> Tree {
    let (_, meshes) = read(text);
    let snapshots = snapshots();
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    manifest::tree(&plan(&fleet).unwrap()).unwrap()
}

const TYPED: &str = "
    # The first cluster.
    - name: east # here
      podCIDRs: [10.1.0.0/16] # pods
      persistentKeepalive: 25
      # Kilo's --subnet
      wireguardCIDR: '10.201.0.0/24'
      serviceCIDR: \"\"
      additionalCIDRs:
        # storage
        - 10.31.0.0/24
        - 10.32.0.0/24 # backup
        # to be continued
    - podCIDRs:
        - 10.2.0.0/16
      wireguardCIDR: 10.202.0.0/24
      name: west
";

#[test]
fn a_typed_entry_becomes_one_list_with_its_comments() {
    insta::assert_snapshot!(entries(NetworkForm::Flat, TYPED), @"
    # The first cluster.
    - name: east # here
      allowedNetworks:
        - 10.1.0.0/16 # pods
        # Kilo's --subnet
        - '10.201.0.0/24'
        # storage
        - 10.31.0.0/24
        - 10.32.0.0/24 # backup
      persistentKeepalive: 25
        # to be continued
    - allowedNetworks: [10.2.0.0/16, 10.202.0.0/24]
      name: west
    ");
    assert_eq!(
        tree(&mesh_of(TYPED)),
        tree(&to(NetworkForm::Flat, &mesh_of(TYPED)).unwrap())
    );
}

#[test]
fn a_flat_entry_gets_a_field_for_each_use() {
    let flat = entries(NetworkForm::Flat, TYPED);
    insta::assert_snapshot!(entries(NetworkForm::Typed, &flat), @"
    # The first cluster.
    - name: east # here
      podCIDRs:
        - 10.1.0.0/16 # pods
      # Kilo's --subnet
      wireguardCIDR: '10.201.0.0/24'
      additionalCIDRs:
        # storage
        - 10.31.0.0/24
        - 10.32.0.0/24 # backup
      persistentKeepalive: 25
        # to be continued
    - podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.202.0.0/24
      name: west
    ");
}

#[test]
fn entries_between_braces_stay_there() {
    let flow = "    - { name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, wireguardPort: 51821, serviceCIDR: 10.31.0.0/16 }
    - { podCIDRs: [10.2.0.0/16], name: west, additionalCIDRs: [10.32.0.0/24], wireguardCIDR: 10.202.0.0/24 }
";
    let flat = entries(NetworkForm::Flat, flow);
    insta::assert_snapshot!(flat, @"
    - { name: east, allowedNetworks: [10.1.0.0/16, 10.201.0.0/24, 10.31.0.0/16], wireguardPort: 51821 }
    - { allowedNetworks: [10.2.0.0/16, 10.202.0.0/24, 10.32.0.0/24], name: west }
    ");
    insta::assert_snapshot!(entries(NetworkForm::Typed, &flat), @"
    - { name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, additionalCIDRs: [10.31.0.0/16], wireguardPort: 51821 }
    - { podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24, additionalCIDRs: [10.32.0.0/24], name: west }
    ");
}

#[test]
fn json_stays_json() {
    let json = r#"{"apiVersion":"kilo.squat.ai/v1alpha1","kind":"ClusterMesh","metadata":{"name":"m"},
"spec":{"clusters":[
{"name":"east","podCIDRs":["10.1.0.0/16"],"wireguardCIDR":"10.201.0.0/24"},
{"name":"west","allowedNetworks":["10.2.0.0/16","10.202.0.0/24"]}]}}"#;
    let flat = to(NetworkForm::Flat, json).unwrap();
    let value: serde_json::Value = serde_json::from_str(&flat).unwrap();
    let east = &value["spec"]["clusters"][0];
    assert_eq!(east["allowedNetworks"][1], "10.201.0.0/24");
    assert_eq!(east.as_object().unwrap().len(), 2);
    let typed = to(NetworkForm::Typed, &flat).unwrap();
    let value: serde_json::Value = serde_json::from_str(&typed).unwrap();
    assert_eq!(value["spec"]["clusters"][1]["podCIDRs"][0], "10.2.0.0/16");
}

#[test]
fn lines_end_as_before() {
    let windows = |text: &str| text.replace('\n', "\r\n");
    let mesh = mesh_of(TYPED);
    let flat = to(NetworkForm::Flat, &mesh).unwrap();
    assert_eq!(to(NetworkForm::Flat, &windows(&mesh)), Ok(windows(&flat)));
    let typed = to(NetworkForm::Typed, &flat).unwrap();
    assert_eq!(to(NetworkForm::Typed, &windows(&flat)), Ok(windows(&typed)));
}

#[test]
fn what_the_typed_form_cannot_express_is_an_error() {
    let typed = |east: &str| {
        let clusters = format!(
            "    - {{ name: east, allowedNetworks: [{east}] }}\n    - {{ name: west, allowedNetworks: [10.2.0.0/16, 10.202.0.0/24] }}\n"
        );
        to(NetworkForm::Typed, &mesh_of(&clusters)).unwrap_err()
    };
    insta::assert_snapshot!(typed("10.1.0.0/16"), @"`east` declares no range that contains WireGuard addresses of its nodes");
    insta::assert_snapshot!(typed("10.201.0.0/16"), @"`east` declares no range that contains pod CIDRs of its nodes");
    let unknown = "    - { name: north, allowedNetworks: [10.3.0.0/16] }\n    - { name: west, allowedNetworks: [10.2.0.0/16, 10.202.0.0/24] }\n";
    let error = to(NetworkForm::Typed, &mesh_of(unknown)).unwrap_err();
    assert_eq!(
        error,
        "`north` has no snapshot, so the use of its ranges is unknown\n"
    );
}

#[test]
fn what_an_edit_would_change_elsewhere_is_an_error() {
    let aliased = "    - { name: east, podCIDRs: &pods [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, acceptedNetworks: *pods }
    - { name: west, allowedNetworks: [10.2.0.0/16, 10.202.0.0/24] }
";
    assert!(to(NetworkForm::Flat, &mesh_of(aliased)).is_err());
    let commented = "    - { name: east, podCIDRs: [10.1.0.0/16, # pods
        10.3.0.0/16], wireguardCIDR: 10.201.0.0/24 }
    - { name: west, allowedNetworks: [10.2.0.0/16, 10.202.0.0/24] }
";
    let error = to(NetworkForm::Flat, &mesh_of(commented)).unwrap_err();
    assert_eq!(
        error,
        "`east` has comments between braces, which would be lost\n"
    );
}

/// The fields of `east` in some order and some style, with comments that are numbered.
fn written(order: &[usize], styles: &[u8]) -> (String, Vec<String>) {
    let fields: [(&str, &[&str]); 5] = [
        ("podCIDRs", &["10.1.0.0/16"]),
        ("wireguardCIDR", &["10.201.0.0/24"]),
        ("serviceCIDR", &["10.31.0.0/16"]),
        ("additionalCIDRs", &["10.32.0.0/24", "10.33.0.0/24"]),
        ("persistentKeepalive", &["25"]),
    ];
    let mut comments = Vec::new();
    let mut comment = |is_there: bool| {
        if !is_there {
            return String::new();
        }
        comments.push(format!("# c{}.", comments.len()));
        format!(" {}", comments[comments.len() - 1])
    };
    let mut text = String::from("    - name: east\n");
    for (&field, &style) in order.iter().zip(styles) {
        let (name, values) = fields[field];
        if style & 1 == 1 {
            let _ = writeln!(text, "     {}", comment(true));
        }
        let is_list = name == "podCIDRs" || name == "additionalCIDRs";
        if is_list && style & 2 == 2 {
            let _ = writeln!(text, "      {name}:{}", comment(style & 4 == 4));
            for value in values {
                let _ = writeln!(text, "        - \"{value}\"{}", comment(style & 8 == 8));
            }
        } else if is_list {
            let _ = writeln!(
                text,
                "      {name}: [{}]{}",
                values.join(", "),
                comment(style & 4 == 4)
            );
        } else {
            let _ = writeln!(
                text,
                "      {name}: {}{}",
                values[0],
                comment(style & 4 == 4)
            );
        }
    }
    text.push_str(
        "    - { name: west, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24 } # end\n",
    );
    (mesh_of(&text), comments)
}

proptest! {
    #[test]
    fn there_and_back_is_the_same_plan_with_all_comments(
        order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        styles in proptest::collection::vec(0u8..16, 5),
    ) {
        let (text, comments) = written(&order, &styles);
        let flat = to(NetworkForm::Flat, &text).unwrap();
        let typed = to(NetworkForm::Typed, &flat).unwrap();
        for converted in [&flat, &typed] {
            prop_assert_eq!(tree(&text), tree(converted), "{}\n{}", text, converted);
            for comment in &comments {
                prop_assert_eq!(converted.matches(comment.as_str()).count(), 1, "{} {}", comment, converted);
            }
        }
        prop_assert_eq!(to(NetworkForm::Flat, &flat).unwrap(), flat.clone());
        prop_assert_eq!(to(NetworkForm::Flat, &typed).unwrap().matches("allowedNetworks").count(), 2);
    }
}
