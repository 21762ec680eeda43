//! Mirrored Services: Services of one cluster that other clusters get as Services of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::{ClusterName, Namespace, ServiceName, is_dns_label, is_label_key};
use crate::net::{self, Family};
use crate::place::Place;
use crate::port::{Protocol, ServicePort};

use super::entry::Draft;
use super::external::{Drafts, clusters};
use super::mistakes::{REMOVE_ONE, name_or_finding};
use super::raw::{RawService, RawServicePort};
use super::{Mesh, Topology, unknown_cluster};

/// A Service of one cluster that others get.
#[derive(Clone, Debug)]
pub struct MirroredService {
    /// The cluster that has it.
    pub source: ClusterName,
    /// Its name there.
    pub name: ServiceName,
    /// Its cluster IPs, at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// The clusters that get it.
    pub targets: BTreeSet<ClusterName>,
    /// Its name in these.
    pub local: ServiceName,
    /// The item.
    pub place: Place,
}

impl MirroredService {
    /// Returns its cluster IP of a family.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|it| net::family(*it) == family)
    }
}

impl Mesh {
    /// Returns the Services of a cluster that this mesh is about: those that it has, and those that it gets.
    pub fn services_of(&self, cluster: &ClusterName) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().flat_map(move |it| {
            let own = (it.source == *cluster).then_some(&it.name);
            let mirror = it.targets.contains(cluster).then_some(&it.local);
            own.into_iter().chain(mirror)
        })
    }
}

/// Returns the namespaces in which a cluster accepts Services of others, or reports what is wrong with them.
pub(super) fn accepted_services(
    written: &[String],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<BTreeSet<Namespace>> {
    let mut accepted = BTreeMap::new();
    let before = findings.len();
    for (index, text) in written.iter().enumerate() {
        let own = place.index(index);
        let parsed = text.parse::<Namespace>();
        let Some(namespace) = name_or_finding("namespace", text, parsed, &own, findings) else {
            continue;
        };
        if namespace.is_of_kubernetes() {
            let message = format!("{} is a namespace of Kubernetes", Quoted(text));
            let finding = Finding::new(&mistake::INVALID_VALUE, message).at(own, "");
            findings
                .push(finding.help("accept Services of other clusters in a namespace of yours"));
        } else if let Some(first) = accepted.insert(namespace, own.clone()) {
            let message = format!("duplicate namespace {}", Quoted(text));
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            findings.push(finding.at_both(own, first).help(REMOVE_ONE));
        }
    }
    (findings.len() == before).then(|| accepted.into_keys().collect())
}

/// Returns the Services that clusters mirror, or reports what is wrong with them.
pub(super) fn services(
    written: &[RawService],
    drafts: &[Draft],
    topology: Option<&Topology>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<MirroredService>> {
    let drafts: Drafts = drafts.iter().map(|it| (&*it.text, it)).collect();
    let services: Vec<Option<MirroredService>> = (0..)
        .zip(written)
        .map(|(index, written)| {
            let gate = ServiceGate {
                drafts: &drafts,
                topology,
                place: place.index(index),
            };
            gate.service(written, findings)
        })
        .collect();
    services.into_iter().collect()
}

/// The check of one item.
struct ServiceGate<'g> {
    drafts: &'g Drafts<'g>,
    topology: Option<&'g Topology>,
    place: Place,
}

impl ServiceGate<'_> {
    fn service(&self, written: &RawService, findings: &mut Mistakes) -> Option<MirroredService> {
        let source = self.source(&written.cluster, findings);
        let name = self.name([&written.namespace, &written.name], &self.place, findings);
        let local = match &written.r#as {
            Some(it) => {
                let namespace = it.namespace.as_ref().unwrap_or(&written.namespace);
                let name = it.name.as_ref().unwrap_or(&written.name);
                self.name([namespace, name], &self.place.key("as"), findings)
            }
            None => name.clone(),
        };
        let addresses = self.addresses(&written.cluster_ips, source, findings);
        let ports = ports(&written.ports, &self.place.key("ports"), findings);
        let place = self.place.key("in");
        let targets = clusters(&written.r#in, self.drafts, &place, findings);
        let (source, local, targets) = (source?.name.clone()?, local?, targets?);
        let before = findings.len();
        for (index, text) in written.r#in.iter().enumerate() {
            let target = self.drafts.get(&**text);
            let refusal = target.and_then(|it| self.refusal(&source, it, &local));
            findings.extend(refusal.map(|it| it.at(place.index(index), "")));
        }
        (findings.len() == before).then_some(MirroredService {
            source,
            name: name?,
            addresses: addresses?,
            ports: ports?,
            targets,
            local,
            place: self.place.clone(),
        })
    }

    fn source(&self, text: &str, findings: &mut Mistakes) -> Option<&Draft> {
        let draft = self.drafts.get(text).copied();
        if draft.is_none() {
            let (place, known) = (self.place.key("cluster"), self.drafts.keys().copied());
            findings.push(unknown_cluster(
                text,
                place,
                known,
                "this mesh has no cluster",
            ));
        }
        draft
    }

    /// Returns a name, given with its namespace.
    fn name(
        &self,
        [namespace, name]: [&str; 2],
        place: &Place,
        findings: &mut Mistakes,
    ) -> Option<ServiceName> {
        let own = place.key("namespace");
        let namespace = name_or_finding("namespace", namespace, namespace.parse(), &own, findings);
        let of = |namespace| ServiceName::new(namespace, name);
        name_or_finding(
            "Service",
            name,
            of(namespace?),
            &place.key("name"),
            findings,
        )
    }

    /// Returns the cluster IPs of the Service, which only the whole cluster has.
    fn addresses(
        &self,
        written: &[String],
        source: Option<&Draft>,
        findings: &mut Mistakes,
    ) -> Option<Vec<IpAddr>> {
        let place = self.place.key("clusterIPs");
        let mut addresses: Vec<IpAddr> = Vec::new();
        let before = findings.len();
        for (index, text) in written.iter().enumerate() {
            let Ok(address) = text.parse::<IpAddr>() else {
                let message = format!("{} is not an IP address", Quoted(text));
                let finding = Finding::new(&mistake::INVALID_VALUE, message);
                findings.push(finding.at(place.index(index), "").help(
                    "write a cluster IP that `kubectl get service` prints; a headless Service has none, and cannot be mirrored",
                ));
                continue;
            };
            let address = address.to_canonical();
            let family = net::family(address);
            if addresses.iter().any(|it| net::family(*it) == family) {
                let message = format!("a second {family} address");
                let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
                findings.push(
                    finding
                        .at(place.index(index), "")
                        .help("write one of each family"),
                );
            }
            // Mistakes in the ranges are reported already.
            let networks = source.and_then(|it| it.declared.networks.as_ref());
            if let Some(networks) = networks
                && !networks.has_common(address)
            {
                findings.push(networks.not_common(address, place.index(index)));
            }
            addresses.push(address);
        }
        (findings.len() == before).then_some(addresses)
    }

    /// Returns why a cluster does not get the Service.
    fn refusal(
        &self,
        source: &ClusterName,
        target: &Draft,
        local: &ServiceName,
    ) -> Option<Finding> {
        let name = target.name.as_ref()?;
        let (message, help) = if name == source {
            let message = format!("`{name}` has the Service itself");
            (message, "name other clusters only".to_owned())
        } else if self.topology.is_some_and(|it| !it.links(source, name)) {
            let message = format!("`{name}` is not linked to `{source}`");
            (
                message,
                format!("link them in `topology`, or remove `{name}`"),
            )
        } else if local.is_of_api_server() {
            let message = format!("`{local}` of `{name}` is its own API server");
            (message, "give it another name: `as: {name: …}`".to_owned())
        } else if !target
            .accepted_services
            .as_ref()?
            .contains(&local.namespace)
        {
            let namespace = &local.namespace;
            let message = format!("`{name}` accepts no Services of others in `{namespace}`");
            let help = format!("add `{namespace}` to `acceptedServices` of `{name}`");
            (message, help)
        } else {
            return None;
        };
        Some(Finding::new(&mistake::CONTRADICTING_FIELDS, message).help(help))
    }
}

/// Returns the ports of a Service, or reports what Kubernetes would refuse.
fn ports(
    written: &[RawServicePort],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<ServicePort>> {
    let (mut names, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    let before = findings.len();
    let mut ports = Vec::new();
    for (index, port) in written.iter().enumerate() {
        let place = place.index(index);
        let name = port.name.clone().unwrap_or_default();
        let protocol = port.protocol.unwrap_or(Protocol::Tcp);
        let mut wrong = |rule, field: &str, message: String, help: &str| {
            let finding = Finding::new(rule, message).at(place.key(field), "");
            findings.push(finding.help(help));
        };
        if name.is_empty() && 1 < written.len() {
            let message = "a Service with several ports needs a name for each".to_owned();
            wrong(
                &mistake::MISSING_FIELD,
                "name",
                message,
                "write the `name` that the Service has",
            );
        } else if !name.is_empty() && !is_dns_label(&name) {
            let message = format!("{} is not a DNS-1123 label", Quoted(&name));
            wrong(
                &mistake::INVALID_VALUE,
                "name",
                message,
                "write the `name` that the Service has",
            );
        } else if names.insert(name.clone(), ()).is_some() {
            let message = format!("duplicate port name {}", Quoted(&name));
            wrong(&mistake::DUPLICATE_ITEM, "name", message, REMOVE_ONE);
        } else if numbers.insert((port.port, protocol), ()).is_some() {
            let message = format!("duplicate port {}", port.port);
            wrong(&mistake::DUPLICATE_ITEM, "port", message, REMOVE_ONE);
        }
        if let Some(application) = port.app_protocol.as_ref().filter(|it| !is_label_key(it)) {
            let message = format!("{} is not an application protocol", Quoted(application));
            wrong(
                &mistake::INVALID_VALUE,
                "appProtocol",
                message,
                "write a name such as `http` or `kubernetes.io/h2c`",
            );
        }
        // The schema keeps zero out.
        ports.extend(NonZeroU16::new(port.port).map(|number| ServicePort {
            app_protocol: port.app_protocol.clone(),
            name,
            port: number,
            protocol,
        }));
    }
    (findings.len() == before).then_some(ports)
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    /// Returns the findings about a mesh with a Service.
    fn services(services: &str) -> String {
        accepting("shop", services)
    }

    /// Returns the same where a cluster accepts Services in other namespaces.
    fn accepting(accepted: &str, services: &str) -> String {
        report(&format!(
            "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: {{ name: m }}
spec:
  topology: {{ mode: Links, links: [[a, b], [b, c]] }}
  clusters:
  - {{ name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, acceptedServices: [shop, default] }}
  - {{ name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24, serviceCIDR: 10.102.0.0/16 }}
  - {{ name: c, allowedNetworks: [10.3.0.0/16], acceptedServices: [{accepted}] }}
  services:
{services}
"
        ))
    }

    #[test]
    fn names_clusters_and_addresses_are_checked() {
        insta::assert_snapshot!(accepting(
            "kube-system, shop, shop, X",
            "
  - { name: api, namespace: Shop, cluster: b, clusterIPs: [10.102.0.1], ports: [{ port: 80 }], in: [a] }
  - { name: 1api, namespace: shop, cluster: d, clusterIPs: [x, 10.102.0.1], ports: [{ port: 80 }], in: [a, a, e] }
  - { name: web, namespace: shop, cluster: b, clusterIPs: [10.102.0.1, 10.103.0.1], ports: [{ port: 80 }], in: [a] }
"
        ), @"
        error[invalid-value]: `kube-system` is a namespace of Kubernetes
          10:67 | kube-system
          help: accept Services of other clusters in a namespace of yours
        error[duplicate-item]: duplicate namespace `shop`
          10:86 | shop | second here
          10:80 | shop | first here
          help: remove one of the two
        error[invalid-value]: `X` is not a valid namespace name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
          10:92 | X
        error[invalid-value]: `Shop` is not a valid namespace name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
          13:29 | Shop
        error[unknown-cluster]: this mesh has no cluster `d`
          14:45 | d
        error[invalid-value]: `1api` is not a valid Service name: expected a lowercase letter, then lowercase letters, digits and inner dashes (a DNS-1035 label)
          14:13 | 1api
        error[invalid-value]: `x` is not an IP address
          14:61 | x
          help: write a cluster IP that `kubectl get service` prints; a headless Service has none, and cannot be mirrored
        error[duplicate-item]: duplicate cluster `a`
          14:108 | a | second here
          14:105 | a | first here
          help: remove one of the two
        error[unknown-cluster]: this mesh has no cluster `e`
          14:111 | e
        error[duplicate-item]: a second IPv4 address
          15:72 | 10.103.0.1
          help: write one of each family
        error[invalid-value]: 10.103.0.1 is in no range that the whole cluster shares
          15:72 | 10.103.0.1
          help: write the Service range of the cluster in `serviceCIDR`
        ");
    }

    #[test]
    fn only_linked_clusters_that_accept_the_namespace_get_it() {
        let service = |fields: &str| {
            format!(
                "  - {{ cluster: b, clusterIPs: [10.102.0.1], ports: [{{ port: 80 }}], {fields} }}\n"
            )
        };
        let all = [
            service("name: api, namespace: shop, in: [a, b]"),
            service("name: web, namespace: other, in: [a]"),
            service("name: kubernetes, namespace: default, in: [a]"),
            service("name: api, namespace: other, in: [a], as: { namespace: shop }"),
        ];
        insta::assert_snapshot!(services(&all.concat()), @"
        error[contradicting-fields]: `b` has the Service itself
          12:104 | b
          help: name other clusters only
        error[contradicting-fields]: `a` accepts no Services of others in `other`
          13:102 | a
          help: add `other` to `acceptedServices` of `a`
        error[contradicting-fields]: `default/kubernetes` of `a` is its own API server
          14:111 | a
          help: give it another name: `as: {name: …}`
        ");
        let far = "  - { name: api, namespace: shop, cluster: c, clusterIPs: [10.3.0.9], ports: [{ port: 80 }], in: [a] }\n";
        insta::assert_snapshot!(services(far), @"
        error[contradicting-fields]: `a` is not linked to `c`
          12:99 | a
          help: link them in `topology`, or remove `a`
        ");
    }

    #[test]
    fn ports_are_as_kubernetes_wants_them() {
        insta::assert_snapshot!(services(
            "
  - name: api
    namespace: shop
    cluster: b
    clusterIPs: [10.102.0.1]
    in: [a]
    ports: [{ port: 80 }, { name: b, port: 81, appProtocol: 'a b' }, { name: b, port: 82 }, { name: c, port: 81 }, { name: D, port: 83 }]
"
        ), @"
        error[missing-field]: a Service with several ports needs a name for each
          18:13 | { port: 80 }
          help: write the `name` that the Service has
        error[invalid-value]: `a b` is not an application protocol
          18:61 | 'a b'
          help: write a name such as `http` or `kubernetes.io/h2c`
        error[duplicate-item]: duplicate port name `b`
          18:78 | b
          help: remove one of the two
        error[duplicate-item]: duplicate port 81
          18:110 | 81
          help: remove one of the two
        error[invalid-value]: `D` is not a DNS-1123 label
          18:124 | D
          help: write the `name` that the Service has
        ");
    }
}
