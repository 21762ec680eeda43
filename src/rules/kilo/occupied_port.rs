//! Occupied ports: does a network plugin listen where Kilo does?

use super::OCCUPIED_PORT;
use super::inspected_cluster::InspectedCluster;
use crate::mesh::DEFAULT_PORT;
use crate::rules::{Finding, bare};
use crate::text::{count, listed};

/// Returns a finding about nodes whose network plugin has WireGuard tunnels of its own on Kilo's port. flannel and Calico
/// use WireGuard's default, which is Kilo's too.
pub(super) fn finding(inspected: &InspectedCluster) -> Option<Finding> {
    let entry = inspected.member.entry;
    let nodes: Vec<_> = inspected
        .all_nodes()
        .filter(|(node, kilo)| {
            let port = kilo.endpoint.as_ref().map_or(entry.port, |it| it.port);
            node.plugin.as_ref().is_some_and(|it| it.wireguard) && port == DEFAULT_PORT
        })
        .map(|it| it.0)
        .collect();
    let first = *nodes.first()?;
    let plugin = first.plugin.as_ref()?.name;
    let message = format!(
        "the WireGuard of {plugin} also uses UDP {DEFAULT_PORT} on {}: {}",
        count(nodes.len(), "node"),
        listed(nodes.iter().map(|it| bare(&it.name)))
    );
    let name = &entry.name;
    let finding = Finding::on_cluster(&OCCUPIED_PORT, name, message);
    Some(finding.at(inspected.place(first).key("plugin"), "").help(format!(
        "start Kilo with another `--port`, such as 51822, set `wireguardPort: 51822` for `{name}`, then run \
         `clustermesh snapshot {name}`; or use another backend of {plugin}"
    )))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    fn report_on(port: u16, plugins: [&str; 2]) -> String {
        let nodes = [1, 2].map(|number| {
            format!(
                "n{number} pod=10.1.{number}.0/24 wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:{port} \
                 internal-ip=192.168.0.{number}/24 granularity=full persistent-keepalive=25 plugin={}",
                plugins[number - 1]
            )
        });
        let found = report(
            super::super::tests::findings,
            &[("east", "granularity: Full", &nodes.join("\n")), ("west", "granularity: Full", "")],
        );
        let start = found.find("warning[occupied-port]");
        start.map_or(String::new(), |it| found.get(it..).unwrap().to_owned())
    }

    #[test]
    fn a_plugin_with_tunnels_on_the_port_of_kilo_is_reported() {
        insta::assert_snapshot!(report_on(51820, ["Flannel,wireguard"; 2]), @"
        warning[occupied-port] east: the WireGuard of flannel also uses UDP 51820 on 2 nodes: n1, n2
          east.json#/nodes/0/plugin 
          help: start Kilo with another `--port`, such as 51822, set `wireguardPort: 51822` for `east`, then run `clustermesh snapshot east`; or use another backend of flannel
        ");
        insta::assert_snapshot!(report_on(51820, ["Calico,wireguard", "Calico"]), @"
        warning[occupied-port] east: the WireGuard of Calico also uses UDP 51820 on 1 node: n1
          east.json#/nodes/0/plugin 
          help: start Kilo with another `--port`, such as 51822, set `wireguardPort: 51822` for `east`, then run `clustermesh snapshot east`; or use another backend of Calico
        ");
        assert_eq!(report_on(51821, ["Flannel,wireguard"; 2]), "");
        assert_eq!(report_on(51820, ["Flannel"; 2]), "");
    }
}
