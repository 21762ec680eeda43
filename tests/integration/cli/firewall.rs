//! `firewall`: which ports must be open, from the plan.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Folder;
use crate::support::{assert_contains, clustermesh, copy, project};

/// What the command prints in an example.
fn printed(example: &str, arguments: &[&str]) -> String {
    let folder = project().join("examples").join(example);
    let run = clustermesh(&folder, &[&["firewall"], arguments].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout
}

/// The endpoints of a cluster with who dials them.
fn endpoints(ports: &Value, cluster: &str) -> Vec<(String, Vec<String>)> {
    let clusters = ports["clusters"].as_array().unwrap();
    let found = clusters.iter().find(|it| it["cluster"] == cluster);
    let endpoints = found.map_or(&Value::Null, |it| &it["endpoints"]).as_array();
    let endpoints = endpoints.into_iter().flatten().map(|it| {
        let by = it["dialledBy"].as_array().unwrap().iter();
        let by = by.map(|it| it.as_str().unwrap().to_owned());
        (it["endpoint"].as_str().unwrap().to_owned(), by.collect())
    });
    endpoints.collect()
}

#[test]
fn ports_are_those_that_rendered_peers_dial() {
    for example in ["hub-and-spokes", "external-peers", "multi-cloud-location"] {
        let ports: Value = serde_json::from_str(&printed(example, &["-o", "json"])).unwrap();
        // What one side sends is what the other side receives, with the known addresses of the same nodes.
        let clusters = ports["clusters"].as_array().unwrap();
        for receiver in clusters {
            for open in receiver["endpoints"].as_array().unwrap() {
                for by in open["senders"].as_array().unwrap() {
                    let sender = clusters.iter().find(|it| it["cluster"] == by["cluster"]).unwrap();
                    let sent = sender["sends"].as_array().unwrap().iter();
                    let mut sent = sent.filter(|it| it["cluster"] == receiver["cluster"]);
                    let sent = sent.next().unwrap()["endpoints"].as_array().unwrap();
                    assert!(sent.iter().any(|it| it["endpoint"] == open["endpoint"]), "{open}");
                    let known = by["addresses"].as_array().unwrap().len();
                    let unknown = usize::try_from(by["unknown"].as_u64().unwrap()).unwrap();
                    assert_eq!(known + unknown, sender["senders"].as_array().unwrap().len());
                }
            }
        }
        // The endpoint of each Peer in the files, and the folder of the file.
        let mut dialled = BTreeSet::new();
        let pattern = project().join("examples").join(example).join("rendered");
        for target in std::fs::read_dir(pattern).unwrap() {
            let target = target.unwrap().path();
            let name = target.file_name().unwrap().to_str().unwrap().to_owned();
            for file in std::fs::read_dir(&target).into_iter().flatten() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                for document in serde_yaml::Deserializer::from_str(&text) {
                    let peer: Value = serde::Deserialize::deserialize(document).unwrap();
                    let endpoint = &peer["spec"]["endpoint"];
                    let host = &endpoint["dnsOrIP"]["ip"];
                    if let (Some(host), Some(port)) = (host.as_str(), endpoint["port"].as_u64())
                        && host != "192.0.2.1"
                    {
                        dialled.insert((format!("{host}:{port}"), name.clone()));
                    }
                }
            }
        }
        assert!(3 < dialled.len());
        let clusters = ports["clusters"].as_array().unwrap().iter();
        let names = clusters.map(|it| it["cluster"].as_str().unwrap());
        let listed: BTreeSet<(String, String)> = names
            .flat_map(|it| endpoints(&ports, it))
            .flat_map(|(endpoint, by)| by.into_iter().map(move |it| (endpoint.clone(), it)))
            .filter(|(_, by)| !by.starts_with("external."))
            .collect();
        assert_eq!(listed, dialled, "{example}");
    }
}

#[test]
fn a_table_has_what_kilo_needs_inside_of_clusters_too() {
    insta::assert_snapshot!(printed("multi-cloud-location", &[]), @"
    CLUSTER  OPEN                     ON                                                                                     FROM
    aws      UDP 198.18.113.64:51820  ip-10-30-4-23.eu-west-1.compute.internal                                               gcp (198.18.2.122), onprem, nodes of aws
    aws      UDP 198.18.100.90:51820  forward UDP 51820 to 10.31.21.5 (ip-10-31-21-5.ec2.internal)                           gcp (198.18.2.122), onprem, nodes of aws
    aws      IPIP (protocol 4)        ip-10-30-4-23.eu-west-1.compute.internal, ip-10-30-9-140.eu-west-1.compute.internal    each other
    aws      IPIP (protocol 4)        ip-10-31-16-31.ec2.internal, ip-10-31-21-5.ec2.internal, ip-10-31-30-112.ec2.internal  each other
    gcp      UDP 198.18.2.122:51820   pool-1-m9wt                                                                            aws (198.18.100.90, 198.18.113.64), onprem
    gcp      IPIP (protocol 4)        pool-1-h3kd, pool-1-m9wt, pool-1-x2pf                                                  each other
    onprem   IPIP (protocol 4)        rack1-node1, rack1-node2, rack2-node1                                                  each other

    CLUSTER  SENDS TO                                      OF   FROM
    aws      UDP 198.18.2.122:51820                        gcp  ip-10-30-4-23.eu-west-1.compute.internal (198.18.113.64), ip-10-31-21-5.ec2.internal (198.18.100.90)
    gcp      UDP 198.18.100.90:51820, 198.18.113.64:51820  aws  pool-1-m9wt (198.18.2.122)
    onprem   UDP 198.18.100.90:51820, 198.18.113.64:51820  aws  rack1-node1
    onprem   UDP 198.18.2.122:51820                        gcp  rack1-node1
    ");
    insta::assert_snapshot!(printed("external-peers", &["external.branch"]), @"
    CLUSTER          OPEN                   ON        FROM
    external.branch  UDP 198.18.77.1:51820  the host  east (198.18.113.11, 198.18.113.12)

    CLUSTER          SENDS TO                                      OF    FROM
    external.branch  UDP 198.18.113.11:51820, 198.18.113.12:51820  east  the host (198.18.77.1)
    ");
}

#[test]
fn a_cluster_behind_nat_needs_no_open_port_and_sends() {
    let ports = printed("multi-cloud-location", &["onprem", "-o", "json"]);
    let ports: Value = serde_json::from_str(&ports).unwrap();
    assert_eq!(endpoints(&ports, "onprem"), []);
    let onprem = &ports["clusters"][0];
    // Its leader, and no address: that of the NAT is in no snapshot.
    assert_eq!(onprem["senders"], serde_json::json!([{ "node": "rack1-node1" }]));
    let sent = onprem["sends"].as_array().unwrap().iter();
    let sent: Vec<(&str, usize)> = sent
        .map(|it| (it["cluster"].as_str().unwrap(), it["endpoints"].as_array().unwrap().len()))
        .collect();
    assert_eq!(sent, [("aws", 2), ("gcp", 1)]);
    let run = clustermesh(&project().join("examples/quickstart"), &["firewall", "wset"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "did you mean `west`?");
}

#[test]
fn another_port_of_an_endpoint_is_forwarded() {
    let folder = Folder::empty();
    copy(&project().join("examples/quickstart"), folder.0.path());
    let file = folder.path("snapshots/west.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let own = "\"kilo.squat.ai/endpoint\":";
    assert!(text.contains(own));
    let text = text.replacen(
        own,
        "\"kilo.squat.ai/clustermesh-endpoint\": \"198.18.7.7:4500\",\n        \"kilo.squat.ai/endpoint\":",
        1,
    );
    std::fs::write(&file, text).unwrap();
    let run = folder.run(&["firewall", "west"]);
    assert_contains(&run.stdout, "UDP 198.18.7.7:4500");
    // No address of the node, so something in between has it.
    assert_contains(&run.stdout, "forward UDP 51820 to ");
}

#[test]
fn the_example_of_the_schema_is_what_is_printed() {
    let example = include_str!("../../../src/firewall/example.json");
    assert_eq!(printed("quickstart", &["-o", "json"]), example);
}

/// A name that Kubernetes would not accept has no Peer, but Kilo may count the node.
#[test]
fn names_of_nodes_are_escaped() {
    let folder = Folder::empty();
    copy(&project().join("examples/quickstart"), folder.0.path());
    let file = folder.path("snapshots/west.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let snapshot: Value = serde_json::from_str(&text).unwrap();
    let name = snapshot["nodes"][0]["name"].as_str().unwrap();
    let hostile = text.replace(&format!("\"name\": \"{name}\""), "\"name\": \"a\\u001b[2J\"");
    assert_ne!(hostile, text);
    std::fs::write(&file, hostile).unwrap();
    let run = folder.run(&["firewall", "west"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
}

#[test]
fn templates_of_the_gallery_have_the_ports() {
    let example = project().join("examples/multi-cloud-location");
    for (target, ports, addresses, sent) in [("aws", 1, 5, 3), ("onprem", 0, 3, 3)] {
        let filled = |template: &str| {
            let template = project().join("templates/gallery").join(template);
            let template = template.to_str().unwrap();
            let run = clustermesh(
                &example,
                &["--root", project().to_str().unwrap(), "template", template, "--target", target],
            );
            assert_eq!(run.code, 0, "{}", run.stderr);
            run.stdout
        };
        let rules = filled("nftables.nft.j2");
        assert_eq!(rules.matches("\nudp dport 51820 accept").count(), ports, "{rules}");
        assert_eq!(rules.matches(" ip protocol 4 accept").count(), addresses, "{rules}");
        let terraform: Value = serde_json::from_str(&filled("terraform-aws.tf.json.j2")).unwrap();
        let rules = &terraform["resource"]["aws_vpc_security_group_ingress_rule"];
        assert_eq!(rules.as_object().unwrap().len(), 2 * ports + 1, "{rules}");
        // The endpoints of others, and for aws those of its own two leaders.
        let egress = &terraform["resource"]["aws_vpc_security_group_egress_rule"];
        assert_eq!(egress.as_object().unwrap().len(), sent + 1, "{egress}");
        let output = filled("nftables-output.nft.j2");
        let lines: Vec<&str> = output.lines().filter(|it| !it.starts_with('#')).collect();
        assert_eq!(lines.len(), sent + addresses, "{output}");
        assert_contains(&output, "\nip daddr 198.18.2.122 udp dport 51820 accept\n");
        assert_eq!(output.matches(" ip protocol 4 accept").count(), addresses, "{output}");
    }
}

/// Cilium sends the packets between nodes of a location, in its own tunnels.
#[test]
fn nodes_with_cilium_need_vxlan() {
    let folder = Folder::empty();
    copy(&project().join("examples/multi-cloud-location"), folder.0.path());
    let file = folder.path("snapshots/gcp.json");
    let mut snapshot: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    for node in snapshot["nodes"].as_array_mut().unwrap() {
        node["plugin"] = serde_json::json!({ "name": "Cilium" });
    }
    std::fs::write(&file, snapshot.to_string()).unwrap();
    let run = folder.run(&["firewall", "gcp"]);
    assert_contains(&run.stdout, "VXLAN (UDP 8472)");
    assert!(!run.stdout.contains("IPIP"), "{}", run.stdout);
}

/// Until its Peers are gone, the other clusters dial it.
#[test]
fn a_cluster_that_leaves_keeps_its_ports() {
    let folder = Folder::empty();
    copy(&project().join("examples/quickstart"), folder.0.path());
    let before = folder.run(&["firewall", "west"]).stdout;
    folder.edit("mesh.yaml", "- name: west", "- state: Leaving\n      name: west");
    let run = folder.run(&["firewall", "west"]);
    assert_eq!(run.stdout, before);
    insta::assert_snapshot!(run.stderr, @"note: these are the ports before west left: close those for other clusters when its Peers are gone");
}
