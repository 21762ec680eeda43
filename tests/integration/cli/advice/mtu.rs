//! Advice about packets that are too large for a tunnel.

use super::findings;
use crate::cli::*;
use crate::support::{assert_contains, copy, project};

/// Returns the message and the help of the only finding about MTUs.
fn exceeded(folder: &Folder) -> Option<(String, String)> {
    let mut found = findings(folder).into_iter();
    let found = found.find(|it| it[0] == "exceeded-mtu");
    found.map(|[_, severity, help, message]| {
        assert_eq!(severity, "warning");
        (message, help)
    })
}

fn example() -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples/multi-cloud-location"), folder.0.path());
    assert_eq!(exceeded(&folder), None);
    folder
}

/// Writes the number of the help into the entry of a cluster.
fn follow(folder: &Folder, help: &str, written: &str) {
    let (_, rest) = help.split_once("write `").unwrap();
    let (field, _) = rest.split_once('`').unwrap();
    let (before, _) = written.rsplit_once("pods: ").unwrap();
    folder.edit("mesh.yaml", written, &format!("{before}{field} }}"));
    assert_eq!(exceeded(folder), None);
}

#[test]
fn the_number_to_set_fits() {
    let folder = example();
    let (right, wrong) = ("internal: 9001, pods: 1380 }", "internal: 9001, pods: 8900 }");
    folder.edit("mesh.yaml", right, wrong);
    let (message, help) = exceeded(&folder).unwrap();
    insta::assert_snapshot!(message, @"pods send packets of up to 8900 bytes, but the tunnels of gcp carry 1380, 80 less than its `underlay`");
    assert_contains(&help, "--set-mss 1340`");
    follow(&folder, &help, wrong);
    // A location of another cluster, from which no message comes back.
    folder.edit(
        "mesh.yaml",
        "underlay: 1500, internal: 9001, pods: 1380 }",
        "underlay: 1500, internal: 1300, pods: 1280 }\n      advertise: { nodeAddresses: false }",
    );
    let (message, help) = exceeded(&folder).unwrap();
    insta::assert_snapshot!(message, @"a location of aws carries 1280, 20 less than the MTU between its nodes because of IPIP, and pods of 2 clusters send more (gcp: 1380, onprem: 1380)");
    assert_contains(&help, "write `pods: 1280`");
}

/// Cilium sends IPIP in its own tunnels between the nodes of a location.
#[test]
fn a_location_with_cilium_carries_less() {
    let folder = example();
    let (right, narrow) = ("internal: 9001, pods: 1380 }", "internal: 1449, pods: 1380 }");
    folder.edit("mesh.yaml", right, narrow);
    assert_eq!(exceeded(&folder), None);
    let snapshot = folder.read("snapshots/aws.json");
    let shown = r#""plugin": { "name": "Cilium" }, "name": "ip-"#;
    folder.write("snapshots/aws.json", snapshot.replace(r#""name": "ip-"#, shown));
    let (message, _) = exceeded(&folder).unwrap();
    insta::assert_snapshot!(message, @"a location of aws carries 1379, 70 less than the MTU between its nodes because of IPIP in VXLAN, and pods of 3 clusters send more (aws: 1380, gcp: 1380, onprem: 1380)");
}

/// Pods with IPv6 addresses cannot have the MTU that fits, so the finding ends only if it is ignored.
#[test]
fn pods_with_ipv6_keep_1280_bytes() {
    let folder = example();
    folder.edit("mesh.yaml", "underlay: 1500, pods: 1380", "underlay: 1280, pods: 1200");
    folder.edit("mesh.yaml", "internal: 9001, pods: 1380", "internal: 9001, pods: 1200");
    let (_, help) = exceeded(&folder).unwrap();
    assert_contains(&help, "--set-mss 1160`");
    assert_contains(&help, "ignore this rule for `gcp`");
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nignore: [{ rule: exceeded-mtu, cluster: gcp, reason: clamped }]\n");
    assert_eq!(exceeded(&folder), None);
}

#[test]
fn numbers_that_no_network_has_are_refused() {
    let folder = example();
    for (to, says) in [
        ("{ underlay: 1279 }", "`underlay` must be from 1280 to 65535, not `1279`"),
        ("{ underlay: 65536 }", "`underlay` must be from 1280 to 65535, not `65536`"),
        ("{ pods: 575 }", "`pods` must be from 576 to 65535, not `575`"),
        ("{ underlay: 1359 }", "`underlay: 1359` is too small for IPv6"),
        ("{ internal: 1299 }", "`internal: 1299` is too small for IPv6"),
        ("{ pods: 1279 }", "`pods: 1279` is too small for IPv6"),
        ("1500", "`mtu` must be a mapping"),
        ("{ mtu: 1500 }", "unknown field `mtu`"),
    ] {
        let mesh = folder.read("mesh.yaml");
        folder.edit("mesh.yaml", "{ underlay: 1460, pods: 1380 }", to);
        let found = findings(&folder);
        let messages: Vec<&str> = found.iter().map(|it| it[3].as_str()).collect();
        assert!(messages.iter().any(|it| it.contains(says)), "{to}: {messages:?}");
        folder.write("mesh.yaml", mesh);
    }
    for accepted in ["{ underlay: 1360, internal: 1300, pods: 1280 }", "{}", "{ underlay: 65535 }"]
    {
        let mesh = folder.read("mesh.yaml");
        folder.edit("mesh.yaml", "{ underlay: 1460, pods: 1380 }", accepted);
        assert!(findings(&folder).iter().all(|it| it[1] != "error"), "{accepted}");
        folder.write("mesh.yaml", mesh);
    }
}
