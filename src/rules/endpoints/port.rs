//! Ports: does the node listen on the dialled one?

use super::dialled::DialledEndpoint;
use super::{UNANSWERED_PORT, UNDECLARED_PORT, on_endpoint};
use crate::kilo::node::annotation;
use crate::membership::Origin;
use crate::mesh::DEFAULT_PORT;
use crate::rules::Finding;
use crate::wireguard::Endpoint;

/// Returns findings about the port on which a node is dialled.
pub(super) fn finding(dialled: &DialledEndpoint) -> Option<Finding> {
    let entry = dialled.member.entry;
    // The endpoint of an external peer is complete.
    if entry.name.is_external() {
        return None;
    }
    match dialled.of_kilo() {
        Some((key, kilo)) if !is_answered(dialled, &kilo) => Some(unanswered(dialled, key, &kilo)),
        _ if dialled.endpoint.port != entry.port => Some(undeclared(dialled)),
        _ => None,
    }
}

/// Returns whether Kilo listens on the port, or a person may have had it forwarded: with another
/// address than Kilo's, other clusters do not dial the node itself.
fn is_answered(dialled: &DialledEndpoint, kilo: &Endpoint) -> bool {
    let is_forwarded = match dialled.origin {
        Origin::Annotation(key) => {
            key == annotation::CLUSTERMESH_ENDPOINT && dialled.endpoint.host != kilo.host
        }
        Origin::ExternalIP | Origin::InternalIP => false,
    };
    is_forwarded || dialled.endpoint.port == kilo.port
}

fn unanswered(dialled: &DialledEndpoint, key: &str, kilo: &Endpoint) -> Finding {
    let (endpoint, port) = (dialled.endpoint, kilo.port);
    let message = format!(
        "endpoint {endpoint} does not match the port on which Kilo listens, \
        {port}"
    );
    let place = dialled.candidate.place.key("annotations").key(key);
    let what = format!("the endpoint does not have the port on which Kilo listens, {port}");
    let finding = on_endpoint(dialled, &UNANSWERED_PORT, message);
    let finding =
        finding.with_alike(what, Some(endpoint.to_string())).at(place, "Kilo listens on this port");
    let is_declared = dialled.member.entry.port == endpoint.port && endpoint.port != DEFAULT_PORT;
    let declared = is_declared.then(|| dialled.member.entry.field("wireguardPort"));
    let finding = finding.at(declared, "the cluster's port");
    let forward = format!("forward UDP {} to {port}", endpoint.port);
    finding.help(match dialled.origin {
        Origin::Annotation(key) => format!("write port {port} in annotation `{key}`, or {forward}"),
        Origin::ExternalIP | Origin::InternalIP => {
            let entry = dialled.member.entry;
            if entry.default_of("wireguardPort").is_none() {
                let cluster = &entry.name;
                format!("set `wireguardPort: {port}` for `{cluster}` in the mesh, or {forward}")
            } else {
                format!(
                    "set `wireguardPort: {port}` in `defaults` of the mesh or in the entries of these clusters, or {forward}"
                )
            }
        }
    })
}

fn undeclared(dialled: &DialledEndpoint) -> Finding {
    let entry = &dialled.member.entry;
    let (endpoint, declared) = (dialled.endpoint, entry.port);
    let message = format!(
        "endpoint {endpoint} has another port than the cluster's \
        `wireguardPort`, {declared}"
    );
    let finding = on_endpoint(dialled, &UNDECLARED_PORT, message);
    let finding = finding.at(entry.field("wireguardPort"), "the cluster's port");
    finding.help(format!(
        "correct the endpoint if its port is wrong; if a router forwards port {}, ignore this rule for `{}` in the config",
        endpoint.port, entry.name
    ))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    /// Returns the findings about `east` with one node that reports this.
    fn report_on(fields: &str, says: &str) -> String {
        let node = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full";
        let nodes = format!("{node} {says}");
        report(super::super::findings, &[("east", fields, &nodes), ("west", "", "")])
    }

    #[test]
    fn an_address_gets_the_declared_port_wherever_kilo_listens() {
        insta::assert_snapshot!(report_on("", "external=198.18.0.1 endpoint=198.18.0.1:51821"), @"
        warning[unanswered-port] east/n: endpoint 198.18.0.1:51820 does not match the port on which Kilo listens, 51821
          east.json#/nodes/0/addresses/0/address 
          east.json#/nodes/0/annotations/kilo.squat.ai~1endpoint Kilo listens on this port
          help: set `wireguardPort: 51821` for `east` in the mesh, or forward UDP 51820 to 51821
        ");
        insta::assert_snapshot!(report_on("wireguardPort: 51821", "external=198.18.0.1 endpoint=198.18.0.1:51821"), @"");
        insta::assert_snapshot!(report_on("", "external=198.18.0.1 force-endpoint=nonsense endpoint=192.168.0.1:51820"), @"");
    }

    #[test]
    fn a_port_that_may_be_forwarded_is_only_not_the_declared_one() {
        let kilo = "endpoint=192.168.0.1:51820";
        insta::assert_snapshot!(report_on("", &format!("{kilo} clustermesh-endpoint=198.18.0.1:4500")), @"
        notice[undeclared-port] east/n: endpoint 198.18.0.1:4500 has another port than the cluster's `wireguardPort`, 51820
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          mesh.yaml#/spec/clusters/0/wireguardPort the cluster's port
          help: correct the endpoint if its port is wrong; if a router forwards port 4500, ignore this rule for `east` in the config
        ");
        insta::assert_snapshot!(report_on("", &format!("{kilo} clustermesh-endpoint=192.168.0.1:4500")), @"
        warning[unanswered-port] east/n: endpoint 192.168.0.1:4500 does not match the port on which Kilo listens, 51820
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          east.json#/nodes/0/annotations/kilo.squat.ai~1endpoint Kilo listens on this port
          help: write port 51820 in annotation `kilo.squat.ai/clustermesh-endpoint`, or forward UDP 4500 to 51820
        ");
    }

    #[test]
    fn quiet_where_all_is_the_same_or_nothing_is_known() {
        assert_eq!(report_on("", "force-endpoint=198.18.0.1:51820 endpoint=198.18.0.1:51820"), "");
        assert_eq!(report_on("", "external=198.18.0.1"), "");
        assert_eq!(
            report_on("", "clustermesh-endpoint=198.18.0.1:51820 endpoint=192.168.0.1:9"),
            ""
        );
    }
}
